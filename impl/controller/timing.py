"""Timed work of a controller: sessions end, leaders are looked for, preferred replicas are elected.

What is done is decided in `spec.controller`; here is only when it is asked.
"""

from collections.abc import Callable

from kspec.impl.broker.calls import Effect, Then
from kspec.impl.controller.core import ControllerCore
from kspec.spec.controller.brokers import on_session_check
from kspec.spec.controller.partitions import on_balance_check, on_unclean_election_check
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import ControllerState, ControllerStep
from kspec.spec.values import Instant, MonotonicMs


def start_timers(core: ControllerCore, now: Instant) -> None:
    """Ask for the first time. Kafka: `QuorumController.registerMaybeFenceStaleBroker`, `registerElectPreferred`,
    `registerElectUnclean`.
    """
    config = core.config
    core.timers.at(next_session_check(core, now), lambda now: _check_sessions(core, now))
    _again(core, config.number("unclean.leader.election.interval.ms"), on_unclean_election_check, now)
    if config.flag("auto.leader.rebalance.enable"):
        _again(core, config.number("leader.imbalance.check.interval.seconds") * 1000, on_balance_check, now)


def _again(
    core: ControllerCore,
    interval_ms: int,
    handler: Callable[[Controller, ControllerState, MonotonicMs], ControllerStep],
    now: Instant,
) -> None:
    def go(now: Instant) -> list[Effect]:
        _again(core, interval_ms, handler, now)
        return core.on_event(handler, now)

    core.timers.at(now.after(interval_ms), go)


def next_session_check(core: ControllerCore, now: Instant) -> MonotonicMs:
    """The time at which a session may be over next (ms): the first that ends, and not later than half a session from now."""
    timeout_ms: int = core.config.number("broker.session.timeout.ms")
    unfenced = {one.broker for one in core.state.image.brokers if not one.fenced}
    ends = [MonotonicMs(one.last_contact_ms + timeout_ms + 1) for one in core.state.sessions if one.broker in unfenced]
    return max(now.after(1), min([*ends, now.after(max(timeout_ms // 2, 1))]))


def _check_sessions(core: ControllerCore, now: Instant) -> list[Effect]:
    """Fence those who have been silent for too long, one after the other, and set the next time."""
    effects = core.on_event(on_session_check, now)
    if effects:
        return [*effects, Then(lambda: _check_sessions(core, now))]
    core.timers.at(next_session_check(core, now), lambda now: _check_sessions(core, now))
    return []
