"""BrokerHeartbeat: a registered broker reports that it is alive, and asks to be unfenced or to shut down."""

from typing import NamedTuple

from kspec.spec.values import BrokerEpoch, BrokerId, Error, Offset


class BrokerHeartbeatRequest(NamedTuple):
    """A registered broker is alive, has replayed metadata up to an offset, and may ask to be fenced, unfenced or shut down.

    `metadata_offset` is the offset of the last metadata record that it has applied. Kafka: `BrokerHeartbeatRequest`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    metadata_offset: Offset
    want_fence: bool = False
    want_shutdown: bool = False


class BrokerHeartbeatResponse(NamedTuple):
    """The controller's answer about the broker's own state. Kafka: `BrokerHeartbeatResponse`."""

    error: Error
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
