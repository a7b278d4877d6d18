"""AllocateProducerIds: a broker asks the controller for a block of producer ids."""

from dataclasses import dataclass

from kspec.spec.values import NO_PRODUCER_ID, BrokerEpoch, BrokerId, Error, ProducerId


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsRequest:
    """A broker asks for a block. Kafka: `AllocateProducerIdsRequestData`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse:
    """The first id of the block, and how many there are. Kafka: `AllocateProducerIdsResponseData`."""

    error: Error
    first: ProducerId = NO_PRODUCER_ID
    size: int = 0
