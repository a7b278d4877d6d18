"""InitProducerId: an idempotent producer asks for its id."""

from dataclasses import dataclass

from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, ProducerEpoch, ProducerId


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest:
    """A producer without transactions asks for an id; one that had an id may say which (KIP-360).

    Kafka: `InitProducerIdRequestData`. **Leaves out:** transactional ids.
    """

    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    """The producer's id and epoch. Kafka: `InitProducerIdResponseData`."""

    error: Error
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
