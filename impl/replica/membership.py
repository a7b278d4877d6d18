"""This broker in the cluster: it registers, is unfenced when it is ready, sends heartbeats, and asks for leave to stop.

Kafka: `BrokerLifecycleManager`. The states and what is sent in each are `spec.broker.lifecycle`.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar, TypeVarTuple, assert_never

from kspec.impl.broker.calls import CONTROLLER, Ask, ChannelKey, Effect, Stop
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.timers import Timer
from kspec.impl.wire.values import Message
from kspec.spec.broker.lifecycle import (
    CleanShutdown,
    LifecycleStep,
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    on_registration_timeout,
    set_ready_to_unfence,
    stop,
)
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.step import SendToController
from kspec.spec.values import BrokerEpoch, Error, Incarnation, Instant, MonotonicMs, Offset

ResponseT = TypeVar("ResponseT")
Given = TypeVarTuple("Given")

LOG = logging.getLogger("kspec.broker")

CHANNEL = ChannelKey(CONTROLLER, "lifecycle")
RETRY_MS = 100
"""The pause before a failed request is retried. Kafka: `resendExponentialBackoff`, its first value."""

REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"

STARTS_QUICKLY_MS = 10
"""The pause between heartbeats of a starting broker that waits for a decision. Kafka: `BrokerLifecycleManager`, 10 ms."""


WHY: Mapping[str, str] = {
    "DUPLICATE_BROKER_REGISTRATION": "another process with this node.id is alive, or was until just now",
    "INCONSISTENT_CLUSTER_ID": "its log directory is of another cluster",
    "INVALID_REGISTRATION": (
        "the directory.id in its log directory's meta.properties is another broker's, as that of a copied folder is; "
        "take that line out, and it gets one of its own"
    ),
    "UNSUPPORTED_VERSION": "the cluster has a level of a feature that this broker does not know",
}
"""By the name of the error: the reason that an operator can do something about."""


class Introduction(NamedTuple):
    """The parts of a registration that no rule looks at: cluster, listeners, features, log directories, rack."""

    cluster_id: str
    listeners: list[Message]
    features: list[Message]
    log_dirs: list[bytes]
    rack: str | None


class Membership:
    """One incarnation of this broker. `changed` is told of each new state."""

    def __init__(
        self,
        core: BrokerCore,
        lifecycle: BrokerLifecycle,
        introduction: Introduction,
        changed: Callable[[BrokerState, Instant], list[Effect]],
    ) -> None:
        self._core = core
        self.lifecycle = lifecycle
        self._introduction = introduction
        self._changed = changed
        self._timer: Timer[Effect] | None = None
        self._asking = False
        self._again = False
        self._refused = Error.NONE
        """With which error the controller has refused to register this broker last: it is told once."""

    def start(self, now: Instant) -> list[Effect]:
        """Begin to register."""
        return self._communicate(now)

    def expect_registration(self, now: Instant) -> None:
        """Stop if nobody has registered this broker in time, which begins now."""
        wait_ms = self._core.config.number(REGISTRATION_TIMEOUT)
        self._core.timers.at(now.after(wait_ms), lambda now: self._give_up(wait_ms, now))

    def _give_up(self, wait_ms: int, now: Instant) -> list[Effect]:
        why = "it has not answered" if self._refused == Error.NONE else f"it has answered {self._refused.name}"
        told = f"no controller has registered broker {self.lifecycle.broker} in {wait_ms} ms ({REGISTRATION_TIMEOUT}): {why}"
        return self._take(self._step(on_registration_timeout), now, told)

    def start_again(self, incarnation: Incarnation, now: Instant) -> list[Effect]:
        """Register anew, since the registration is gone: as another incarnation."""
        self.lifecycle = BrokerLifecycle(self.lifecycle.broker, incarnation)
        return self._communicate(now)

    def ready(self, now: Instant) -> list[Effect]:
        """The logs are recovered, and metadata applied: the broker may be unfenced."""
        return [*self._take(self._step(set_ready_to_unfence), now), *self._communicate(now)]

    def begin_stop(self, now: Instant) -> list[Effect]:
        """Ask for leave to stop, if the broker takes part; otherwise stop."""
        return [*self._take(self._step(begin_controlled_shutdown), now), *self._communicate(now)]

    def stop_anyway(self, now: Instant) -> list[Effect]:
        """Stop without leave: the controller has not answered in time."""
        return self._take(self._step(stop), now)

    # ---- asking

    def _communicate(self, now: Instant) -> list[Effect]:
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
            match effect:
                case SendToController():
                    effects.append(self._send(effect.message))
                case CleanShutdown():
                    raise AssertionError("nothing is sent by a broker that stops")
                case _:
                    assert_never(effect)
        return effects

    def _send(self, request: BrokerRegistrationRequest | BrokerHeartbeatRequest) -> Ask:
        self._asking = True
        match request:
            case BrokerRegistrationRequest():
                registered = partial(self._registered, request.incarnation)
                return self._ask("BrokerRegistration", self._registration(request), registered)
            case BrokerHeartbeatRequest():
                return self._ask("BrokerHeartbeat", _heartbeat(request), self._heard)
            case _:
                assert_never(request)

    def _ask(self, api: str, message: Message, take: Callable[[Message, Instant], LifecycleStep]) -> Ask:
        def answered(answer: Message | None, now: Instant) -> list[Effect]:
            self._asking = False
            if answer is None:
                return self._later(RETRY_MS, now)
            before = self.lifecycle
            effects = self._take(take(answer, now), now)
            return [*effects, *self._follow_up(before, answer, now)]

        return Ask(CHANNEL, api, message, answered, timeout_ms=self._core.config.number("broker.session.timeout.ms"))

    def _follow_up(self, before: BrokerLifecycle, answer: Message, now: Instant) -> list[Effect]:
        """The next communication: at once after a change, soon while the broker starts or stops, otherwise in its time."""
        if self._again or self.lifecycle != before:
            self._again = False
            return self._communicate(now)
        if answer.error_code:
            return self._later(RETRY_MS, now)
        waits = self.lifecycle.state != BrokerState.RUNNING
        return self._later(STARTS_QUICKLY_MS if waits else self._core.config.number("broker.heartbeat.interval.ms"), now)

    def _later(self, wait_ms: int, now: Instant) -> list[Effect]:
        if self._again:
            self._again = False
            return self._communicate(now)
        if self._timer is None:
            self._timer = self._core.timers.at(now.after(wait_ms), self._on_time)
        return []

    def _on_time(self, now: Instant) -> list[Effect]:
        self._timer = None
        return self._communicate(now)

    # ---- answers

    def _step(self, handler: Callable[[BrokerLifecycle, *Given], LifecycleStep], *given: *Given) -> LifecycleStep:
        return self._core.step(handler, None, self.lifecycle, *given)

    def _answered(
        self,
        handler: Callable[[BrokerProtocol, BrokerLifecycle, ResponseT, MonotonicMs], LifecycleStep],
        response: ResponseT,
        now: Instant,
    ) -> LifecycleStep:
        return self._core.step(handler, self._core.protocol, self.lifecycle, response, now.monotonic)

    def _take(self, step: LifecycleStep, now: Instant, why: str = "") -> list[Effect]:
        before, self.lifecycle = self.lifecycle, step.state
        effects: list[Effect] = []
        for effect in step.effects:
            match effect:
                case CleanShutdown():
                    effects.append(Stop(why))
                case SendToController():
                    raise AssertionError("requests of the lifecycle are sent by `_communicate` alone")
                case _:
                    assert_never(effect)
        if before.state != self.lifecycle.state:
            effects = [*self._changed(self.lifecycle.state, now), *effects]
        return effects

    def _registered(self, asked: Incarnation, answer: Message, now: Instant) -> LifecycleStep:
        """The controller has answered the incarnation that asked: whether that is this one is for the rules to say."""
        response = BrokerRegistrationResponse(Error(answer.error_code), asked, BrokerEpoch(answer.broker_epoch))
        if response.error not in (Error.NONE, self._refused):
            why = WHY.get(response.error.name, "it is asked again")
            LOG.error("broker %d is not registered: %s, %s", self.lifecycle.broker, response.error.name, why)
        self._refused = response.error
        return self._answered(handle_broker_registration_response, response, now)

    def _heard(self, answer: Message, now: Instant) -> LifecycleStep:
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
