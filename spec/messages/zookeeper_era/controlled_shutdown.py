"""ControlledShutdown: a broker asks to be relieved of its leaderships (up to 3.9)."""

from typing import NamedTuple

from spec.values import BrokerEpoch, BrokerId, Error, PartitionId


class ControlledShutdownRequest(NamedTuple):
    """A broker wants to shut down without its partitions losing their leader. Kafka: `ControlledShutdownRequest`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


class ControlledShutdownResponse(NamedTuple):
    """Which partitions the broker leads still; when none, it may stop. Kafka: `ControlledShutdownResponse`."""

    error: Error
    remaining: frozenset[PartitionId] = frozenset()
