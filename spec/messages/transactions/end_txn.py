"""EndTxn: a producer commits or aborts its transaction."""

from dataclasses import dataclass

from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, ProducerEpoch, ProducerId, TransactionalId


@dataclass(frozen=True, slots=True)
class EndTxnRequest:
    """End a transaction. Kafka: `EndTxnRequestData`.

    `client_level`: the client's transaction version: 2 from v5 on, else 0. `knows_fenced`: the client understands
    `PRODUCER_FENCED` (v2 and later).
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool
    client_level: int = 0
    knows_fenced: bool = True


@dataclass(frozen=True, slots=True)
class EndTxnResponse:
    """The outcome, and the id and epoch of the producer's next transaction. Kafka: `EndTxnResponseData`."""

    error: Error
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
