"""AddOffsetsToTxn: the offsets of a group are to be committed in a transaction."""

from dataclasses import dataclass

from kspec.spec.values import Error, GroupId, ProducerEpoch, ProducerId, TransactionalId


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnRequest:
    """Add the partition that holds a group's offsets to a transaction. Kafka: `AddOffsetsToTxnRequestData`.

    `knows_fenced`: the client understands `PRODUCER_FENCED` (v2 and later).
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    group_id: GroupId
    knows_fenced: bool = True


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnResponse:
    """Whether the offsets are part of the transaction. Kafka: `AddOffsetsToTxnResponseData`."""

    error: Error
