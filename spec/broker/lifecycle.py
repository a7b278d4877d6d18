"""A broker's own side of its start and stop: register, catch up, be unfenced, shut down in order.

The controller's side is `spec.controller.brokers`. An incarnation is one process of a broker. It repeats a request until it
is answered, so the controller may get a request twice. An answer to an earlier incarnation must not reach this one.
"""

from typing import NamedTuple, TypeAlias

from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.step import SendToController, Step
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, Error, Incarnation, MonotonicMs, Offset


class CleanShutdown(NamedTuple):
    """Flush all logs, then write the clean-shutdown file with this broker epoch, then stop.

    Kafka: `LogManager.shutdown`, `CleanShutdownFileHandler`.
    """

    broker_epoch: BrokerEpoch


LifecycleEffect: TypeAlias = (
    SendToController[BrokerRegistrationRequest] | SendToController[BrokerHeartbeatRequest] | CleanShutdown
)


LifecycleStep: TypeAlias = Step[BrokerLifecycle, LifecycleEffect]


def next_communication(lifecycle: BrokerLifecycle, metadata_offset: Offset) -> LifecycleStep:
    """The incarnation's next periodic request: its registration until it is registered, then heartbeats.

    Parameters: the offset of the last metadata record that it has applied.

    **Kafka:** `BrokerLifecycleManager.CommunicationEvent`, `sendBrokerRegistration`, `sendBrokerHeartbeat`.
    """
    if lifecycle.broker_epoch == NO_BROKER_EPOCH:
        request = BrokerRegistrationRequest(lifecycle.broker, lifecycle.incarnation, lifecycle.previous_broker_epoch)
        return Step(lifecycle, (SendToController(request),))
    heartbeat = BrokerHeartbeatRequest(
        lifecycle.broker,
        lifecycle.broker_epoch,
        metadata_offset,
        want_fence=not lifecycle.ready_to_unfence,
        want_shutdown=lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    )
    return Step(lifecycle, (SendToController(heartbeat),))


def handle_broker_registration_response(
    protocol: BrokerProtocol, lifecycle: BrokerLifecycle, response: BrokerRegistrationResponse, now: MonotonicMs
) -> LifecycleStep:
    """The incarnation learns its broker epoch. After an error it asks again later.

    **Kafka:** `BrokerLifecycleManager.BrokerRegistrationResponseEvent`.
    """
    if response.error != Error.NONE or not protocol.takes_registration(lifecycle, response):
        return Step(lifecycle)
    return Step(lifecycle._replace(broker_epoch=response.broker_epoch))


def handle_broker_heartbeat_response(
    protocol: BrokerProtocol, lifecycle: BrokerLifecycle, response: BrokerHeartbeatResponse, now: MonotonicMs
) -> LifecycleStep:
    """The answer to a heartbeat takes the incarnation one state further. After an error it asks again later.

    **Kafka:** `BrokerLifecycleManager.BrokerHeartbeatResponseEvent`.
    """
    if response.error != Error.NONE:
        return Step(lifecycle)
    if lifecycle.state == BrokerState.STARTING and response.is_caught_up:
        return Step(lifecycle._replace(state=BrokerState.RECOVERY))
    if lifecycle.state == BrokerState.RECOVERY and not response.is_fenced:
        return Step(lifecycle._replace(state=BrokerState.RUNNING))
    if lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN and response.should_shut_down:
        return stop(lifecycle)
    return Step(lifecycle)


def set_ready_to_unfence(lifecycle: BrokerLifecycle) -> LifecycleStep:
    """The incarnation has recovered its logs and applied the metadata.

    **Kafka:** `BrokerLifecycleManager.setReadyToUnfence`.
    """
    return Step(lifecycle._replace(ready_to_unfence=True))


def begin_controlled_shutdown(lifecycle: BrokerLifecycle) -> LifecycleStep:
    """The incarnation shall stop: it asks for a controlled shutdown if it is unfenced, otherwise it stops at once.

    **Kafka:** `BrokerLifecycleManager.BeginControlledShutdownEvent`.
    """
    if lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        return Step(lifecycle)
    if lifecycle.state == BrokerState.RUNNING:
        return Step(lifecycle._replace(state=BrokerState.PENDING_CONTROLLED_SHUTDOWN))
    return stop(lifecycle)


def on_registration_timeout(lifecycle: BrokerLifecycle) -> LifecycleStep:
    """The time in which a starting incarnation must have been registered is over: it stops, unless it is registered.

    It comes once, `initial.broker.registration.timeout.ms` after the start. A broker that is unregistered later, and
    registers anew, has no such limit.

    **Kafka:** `BrokerLifecycleManager.RegistrationTimeoutEvent`, whose end makes `BrokerServer.startup` fail: the logs are
    closed in order, and the process ends with an error.
    """
    waits = lifecycle.broker_epoch == NO_BROKER_EPOCH and lifecycle.state != BrokerState.SHUTTING_DOWN
    return stop(lifecycle) if waits else Step(lifecycle)


def stop(lifecycle: BrokerLifecycle) -> LifecycleStep:
    """The incarnation stops cleanly, even if the controller has not allowed it in time.

    **Kafka:** `BrokerLifecycleManager.beginShutdown`, `BrokerServer.shutdown`.
    """
    return Step(lifecycle._replace(state=BrokerState.SHUTTING_DOWN), (CleanShutdown(lifecycle.broker_epoch),))


def start_again(lifecycle: BrokerLifecycle, previous_broker_epoch: BrokerEpoch) -> BrokerLifecycle:
    """The next incarnation of the broker, with the broker epoch of the clean-shutdown file, if there is one.

    **Kafka:** `LogManager.readBrokerEpochFromCleanShutdownFiles`, `BrokerServer.startup`.
    """
    following = Incarnation(lifecycle.incarnation + 1)
    return BrokerLifecycle(lifecycle.broker, following, previous_broker_epoch=previous_broker_epoch)
