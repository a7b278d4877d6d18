"""InitProducerId: an idempotent producer, or one of transactions, asks for its id."""

from dataclasses import dataclass

from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, ProducerEpoch, ProducerId, TransactionalId


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest:
    """A producer asks for an id; one that had an id may say which (KIP-360).

    One of transactions has a `transactional_id`, and the longest time that a transaction may take, in milliseconds.
    `knows_fenced`: the client understands `PRODUCER_FENCED` (v4 and later).

    Kafka: `InitProducerIdRequestData`. **Leaves out:** the fields of KIP-939, which no release uses.
    """

    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    transactional_id: TransactionalId | None = None
    timeout_ms: int = 0
    knows_fenced: bool = True


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    """The producer's id and epoch. Kafka: `InitProducerIdResponseData`."""

    error: Error
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
