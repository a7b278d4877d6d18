"""What a controller does because the time has come: sessions end, leaders are looked for, preferred replicas are elected.

What is done is decided in `spec.controller`; here is only when it is asked.
"""

from collections.abc import Callable
from typing import Any

from impl.broker.calls import Effect, Then
from impl.controller.core import ControllerCore
from spec.controller.brokers import on_session_check
from spec.controller.partitions import on_balance_check, on_unclean_election_check


def start_timers(core: ControllerCore, now: int) -> None:
    """Ask for the first time. Kafka: `QuorumController.registerMaybeFenceStaleBroker`, `registerElectPreferred`,
    `registerElectUnclean`.
    """
    config = core.config
    core.timers.at(next_session_check(core, now), lambda now: _check_sessions(core, now))
    _again(core, config["unclean.leader.election.interval.ms"], on_unclean_election_check, now)
    if config["auto.leader.rebalance.enable"]:
        _again(core, config["leader.imbalance.check.interval.seconds"] * 1000, on_balance_check, now)


def _again(core: ControllerCore, interval_ms: int, handler: Callable[..., Any], now: int) -> None:
    def go(now: int) -> list[Effect]:
        _again(core, interval_ms, handler, now)
        return core.on_event(handler, now)

    core.timers.at(now + interval_ms, go)


def next_session_check(core: ControllerCore, now: int) -> int:
    """When a session may be over next (ms): the first that ends, and not later than half a session from now."""
    timeout_ms: int = core.config["broker.session.timeout.ms"]
    unfenced = {one.broker for one in core.state.image.brokers if not one.fenced}
    ends = [one.last_contact_ms + timeout_ms + 1 for one in core.state.sessions if one.broker in unfenced]
    return max(now + 1, min([*ends, now + max(timeout_ms // 2, 1)]))


def _check_sessions(core: ControllerCore, now: int) -> list[Effect]:
    """Fence those who have been silent for too long, one after the other, and set the next time."""
    effects = core.on_event(on_session_check, now)
    if effects:
        return [*effects, Then(lambda: _check_sessions(core, now))]
    core.timers.at(next_session_check(core, now), lambda now: _check_sessions(core, now))
    return []
