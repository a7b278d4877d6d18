"""ControlledShutdown: a broker asks the controller to move its leaderships (up to 3.9)."""

from typing import NamedTuple

from kspec.spec.values import BrokerEpoch, BrokerId, Error, PartitionId


class ControlledShutdownRequest(NamedTuple):
    """A broker wants to shut down without its partitions losing their leader. Kafka: `ControlledShutdownRequest`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


class ControlledShutdownResponse(NamedTuple):
    """The partitions that the broker still leads; if there are none, it may stop. Kafka: `ControlledShutdownResponse`."""

    error: Error
    remaining: frozenset[PartitionId] = frozenset()
