"""A broker's incarnation: its state, which answers to its registration it takes, and when it takes part."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.messages.broker_registration import BrokerRegistrationResponse
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Incarnation, Offset


class BrokerState(Enum):
    """The state of a broker between its start and its stop. Kafka: `BrokerState`."""

    STARTING = "registers, and catches up with the metadata"
    RECOVERY = "has caught up, and waits to be unfenced"
    RUNNING = "takes part"
    PENDING_CONTROLLED_SHUTDOWN = "waits for leave to stop"
    SHUTTING_DOWN = "stops"


class BrokerLifecycle(NamedTuple):
    """One incarnation of a broker. Kafka: `BrokerLifecycleManager`.

    `broker_epoch` is unknown until it is registered. `previous_broker_epoch` is the broker epoch of the incarnation before,
    if that shut down cleanly (`NO_BROKER_EPOCH` otherwise). `ready_to_unfence`: its logs are recovered and its metadata
    published.
    """

    broker: BrokerId
    incarnation: Incarnation
    state: BrokerState = BrokerState.STARTING
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    previous_broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    ready_to_unfence: bool = False


def answers_this_incarnation(lifecycle: BrokerLifecycle, response: BrokerRegistrationResponse) -> bool:
    """Whether an answer is to the registration of this incarnation.

    **Kafka:** the connection and its correlation id; a restarted process has new ones.
    """
    return response.incarnation == lifecycle.incarnation


def has_lost_registration(lifecycle: BrokerLifecycle, is_registered: bool, metadata_end: Offset) -> bool:
    """Whether somebody has removed the registration of an incarnation that goes on: it has been registered, and the metadata
    that it has read go past its registration and have none.

    This may come at any time after the registration, also before the controller has unfenced the incarnation.

    Parameters: the incarnation; whether its broker is registered by the metadata, and their end.

    **Kafka:** no release registers again: `BrokerLifecycleManager` repeats its heartbeats, each of which is answered
    BROKER_ID_NOT_REGISTERED, until the process is started anew.
    """
    stops = lifecycle.state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)
    was_registered = lifecycle.broker_epoch != NO_BROKER_EPOCH and metadata_end > lifecycle.broker_epoch
    return was_registered and not is_registered and not stops


# ---- when a broker that has just started takes part


def acts_once_caught_up(lifecycle: BrokerLifecycle, metadata_end: Offset, end_at_start: Offset) -> bool:
    """Whether a broker that has just started acts on its metadata: only once it has read all that was committed at its
    start.

    Otherwise it would replay its past, and lead again in an epoch in which an earlier incarnation of it has led. That epoch
    would then have two histories, which a comparison of epochs cannot tell apart.

    The rule does not ask whether the incarnation is registered. While the session of the one before is valid, the controller
    refuses the registration, and the metadata still show the one before in its place. See `opens_ports_once_unfenced`.

    Parameters: the incarnation; the end of the metadata log that it has read, and the end that it learned when it started.

    **Kafka:** `MetadataLoader.stillNeedToCatchUp`; `BrokerServer.startup`, which installs the metadata publishers before it
    waits for the registration (since 3.5; read from 3.5.2, 3.9.2 and 4.4.0).
    """
    return metadata_end >= end_at_start


def acts_once_registered(lifecycle: BrokerLifecycle, metadata_end: Offset, end_at_start: Offset) -> bool:
    """As `acts_once_caught_up`, and the incarnation has read its own registration, by the controller's word.

    **Kafka:** `BrokerServer.startup`, which waits for `BrokerLifecycleManager.initialCatchUpFuture` before
    `BrokerMetadataListener.startPublishing`: 3.0 to 3.4 (read from 3.0.2, 3.2.3, 3.3.2 and 3.4.1). Up to 2.8 the controller
    sends requests to registered brokers only.
    """
    return lifecycle.state != BrokerState.STARTING and acts_once_caught_up(lifecycle, metadata_end, end_at_start)


def acts_on_any_metadata(lifecycle: BrokerLifecycle, metadata_end: Offset, end_at_start: Offset) -> bool:
    """A broker that has just started acts on the metadata that it has read so far. **Kafka:** no release."""
    return True


def opens_ports_at_once(lifecycle: BrokerLifecycle) -> bool:
    """A broker answers other brokers and clients as soon as it acts on metadata.

    **Kafka:** `BrokerServer.startup`: `SocketServer.enableRequestProcessing` comes before `setReadyToUnfence`, up to 3.4.
    """
    return True


def opens_ports_once_unfenced(lifecycle: BrokerLifecycle) -> bool:
    """Whether a broker that has just started answers other brokers and clients: only once it has been unfenced.

    Until then nobody can hear from it that it leads. That matters where it acts before it is registered: it may lead its old
    epoch again, with a log that has lost records, and its followers would truncate theirs. A broker that is fenced later
    goes on answering.

    **Kafka:** `BrokerServer.startup`: `SocketServer.enableRequestProcessing` comes after the first unfencing, since 3.5
    (read from 3.5.2, 3.9.2 and 4.4.0).
    """
    return lifecycle.state not in (BrokerState.STARTING, BrokerState.RECOVERY)
