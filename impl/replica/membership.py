"""This broker in the cluster: it registers, is unfenced when it is ready, sends heartbeats, and asks for leave to stop.

Kafka: `BrokerLifecycleManager`. The states and what is sent in each are `spec.broker.lifecycle`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from impl.broker.calls import CONTROLLER, Ask, Channel, Effect, Stop
from impl.broker.core import Core
from impl.broker.timers import Timer
from impl.wire.values import Message
from spec.broker.lifecycle import (
    CleanShutdown,
    LifecycleStep,
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    set_ready_to_unfence,
    stop,
)
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from spec.step import SendToController
from spec.values import BrokerEpoch, Error, Offset

CHANNEL = Channel(CONTROLLER, "lifecycle")
RETRY_MS = 100
"""When a request is repeated that was not answered well. Kafka: `resendExponentialBackoff`, its first value."""

STARTS_QUICKLY_MS = 10
"""How soon a starting broker asks again whether it may go on. Kafka: `BrokerLifecycleManager`, 10 ms."""


class Introduction(NamedTuple):
    """What a registration says that no rule looks at: cluster, listeners, features, log directories, rack."""

    cluster_id: str
    listeners: list[Message]
    features: list[Message]
    log_dirs: list[bytes]
    rack: str | None


class Membership:
    """One incarnation of this broker. `changed` is told of each new state."""

    def __init__(
        self,
        core: Core,
        lifecycle: BrokerLifecycle,
        introduction: Introduction,
        changed: Callable[[BrokerState, int], list[Effect]],
    ) -> None:
        self._core = core
        self.lifecycle = lifecycle
        self._introduction = introduction
        self._changed = changed
        self._timer: Timer | None = None
        self._asking = False
        self._again = False

    def start(self, now: int) -> list[Effect]:
        """Begin to register."""
        return self._communicate(now)

    def ready(self, now: int) -> list[Effect]:
        """The logs are recovered, and metadata applied: the broker may be unfenced."""
        return [*self._take(self._step(set_ready_to_unfence), now), *self._communicate(now)]

    def begin_stop(self, now: int) -> list[Effect]:
        """Ask for leave to stop, if the broker takes part; otherwise stop."""
        return [*self._take(self._step(begin_controlled_shutdown), now), *self._communicate(now)]

    def stop_anyway(self, now: int) -> list[Effect]:
        """Stop without leave: the controller has not answered in time."""
        return self._take(self._step(stop), now)

    # ---- asking

    def _communicate(self, now: int) -> list[Effect]:
        if self._asking:
            self._again = True
            return []
        if self._timer is not None:
            self._core.timers.cancel(self._timer)
            self._timer = None
        if self.lifecycle.state == BrokerState.SHUTTING_DOWN:
            return []
        applied = Offset(self._core.cluster.image.spec.end_offset - 1)
        effects: list[Effect] = []
        for effect in self._step(next_communication, applied).effects:
            assert isinstance(effect, SendToController)
            self._asking = True
            if isinstance(effect.message, BrokerRegistrationRequest):
                effects.append(self._ask("BrokerRegistration", self._registration(effect.message), self._registered))
            else:
                effects.append(self._ask("BrokerHeartbeat", _heartbeat(effect.message), self._heard))
        return effects

    def _ask(self, api: str, message: Message, take: Callable[[Message, int], LifecycleStep]) -> Ask:
        def answered(answer: Message | None, now: int) -> list[Effect]:
            self._asking = False
            if answer is None:
                return self._later(RETRY_MS, now)
            before = self.lifecycle
            effects = self._take(take(answer, now), now)
            return [*effects, *self._follow_up(before, answer, now)]

        return Ask(CHANNEL, api, message, answered, timeout_ms=self._core.config["broker.session.timeout.ms"])

    def _follow_up(self, before: BrokerLifecycle, answer: Message, now: int) -> list[Effect]:
        """The next communication: at once after a change, soon while the broker starts or stops, otherwise in its time."""
        if self._again or self.lifecycle != before:
            self._again = False
            return self._communicate(now)
        if answer.error_code:
            return self._later(RETRY_MS, now)
        waits = self.lifecycle.state != BrokerState.RUNNING
        return self._later(STARTS_QUICKLY_MS if waits else self._core.config["broker.heartbeat.interval.ms"], now)

    def _later(self, wait_ms: int, now: int) -> list[Effect]:
        if self._again:
            self._again = False
            return self._communicate(now)
        if self._timer is None:
            self._timer = self._core.timers.at(now + wait_ms, self._on_time)
        return []

    def _on_time(self, now: int) -> list[Effect]:
        self._timer = None
        return self._communicate(now)

    # ---- answers

    def _step(self, handler: Callable[..., LifecycleStep], *given: Any) -> LifecycleStep:
        return self._core.step(handler, None, self.lifecycle, *given)

    def _answered(self, handler: Callable[..., LifecycleStep], response: Any, now: int) -> LifecycleStep:
        return self._core.step(handler, self._core.protocol, self.lifecycle, response, now)

    def _take(self, step: LifecycleStep, now: int) -> list[Effect]:
        before, self.lifecycle = self.lifecycle, step.state
        effects: list[Effect] = [Stop() for effect in step.effects if isinstance(effect, CleanShutdown)]
        if before.state != self.lifecycle.state:
            effects = [*self._changed(self.lifecycle.state, now), *effects]
        return effects

    def _registered(self, answer: Message, now: int) -> LifecycleStep:
        response = BrokerRegistrationResponse(
            Error(answer.error_code), self.lifecycle.incarnation, BrokerEpoch(answer.broker_epoch)
        )
        return self._answered(handle_broker_registration_response, response, now)

    def _heard(self, answer: Message, now: int) -> LifecycleStep:
        response = BrokerHeartbeatResponse(
            Error(answer.error_code), answer.is_caught_up, answer.is_fenced, answer.should_shut_down
        )
        return self._answered(handle_broker_heartbeat_response, response, now)

    # ---- messages

    def _registration(self, request: BrokerRegistrationRequest) -> Message:
        known = self._introduction
        return Message(
            broker_id=request.broker,
            cluster_id=known.cluster_id,
            incarnation_id=int(request.incarnation).to_bytes(16, "big"),
            listeners=known.listeners,
            features=known.features,
            rack=known.rack,
            log_dirs=known.log_dirs,
            previous_broker_epoch=request.previous_broker_epoch,
        )


def _heartbeat(request: BrokerHeartbeatRequest) -> Message:
    return Message(
        broker_id=request.broker,
        broker_epoch=request.broker_epoch,
        current_metadata_offset=request.metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shutdown,
    )
