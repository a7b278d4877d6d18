"""A broker's incarnation: its state, and which answers to its registration it takes."""

from enum import Enum
from typing import NamedTuple

from spec.messages.broker_registration import BrokerRegistrationResponse
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Incarnation


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
