"""AddPartitionsToTxn: partitions become part of a transaction, or a leader asks whether one is."""

from dataclasses import dataclass

from kspec.spec.topics import TopicPartition
from kspec.spec.values import Error, ProducerEpoch, ProducerId, TransactionalId


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnRequest:
    """Add partitions to a transaction, which begins with the first. Kafka: `AddPartitionsToTxnRequestData`.

    `client_level`: the transaction version of the client for whom a leader asks (v4 and later), 0 for a client itself.
    `verify_only`: nothing is added, the answer says which partitions are in the transaction.
    `knows_fenced`: the client understands `PRODUCER_FENCED` (v2 and later).
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: frozenset[TopicPartition]
    client_level: int = 0
    verify_only: bool = False
    knows_fenced: bool = True


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResponse:
    """The error of each partition, in order of topic and partition. Kafka: `AddPartitionsToTxnResponseData`."""

    partitions: tuple[tuple[TopicPartition, Error], ...]
