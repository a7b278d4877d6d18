"""Subjects after a restart: what a broker has kept."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange, RequestFields, equals
from kspec.conformance.wire.model.requests import NO_COORDINATOR, NOT_READY
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol

AFTER = "after-restart."


class RestartState(NamedTuple):
    """A subject's state, and whether the broker has been restarted."""

    inner: Any
    done: bool = False


def _when(move: Move, done: bool, restarts: bool = False) -> Move:
    """A move of the subject before the restart, or after it; or the restart itself."""

    def take(protocol: BrokerProtocol, state: RestartState) -> MoveResult | None:
        taken = move.take(protocol, state.inner) if state.done == done else None
        if taken is None:
            return None
        exchange = taken.exchange
        if done:  # a broker that has just started does not do all of its work yet
            exchange = exchange._replace(retried=(*exchange.retried, *NOT_READY, *NO_COORDINATOR))
        return MoveResult(RestartState(taken.state, done or restarts), exchange)

    words = f"after that {move.words}" if done else move.words
    return move._replace(name=f"{AFTER}{move.name}" if done else move.name, words=words, take=take)


RESTARTED = "the broker is restarted"
ALIVE = Exchange(
    RequestFields("ApiVersions", {}, Versions(0, 0)),
    "alive again",
    constraints=(equals("error_code", 0),),
    words=RESTARTED,
    restarts=True,
)
"""The first request after a restart, which every broker answers at once."""


def plain_restart(
    handler: Callable[..., Any], promise: str, may: Callable[[Any], bool] = lambda state: True, asked: Exchange = ALIVE
) -> Move:
    """A restart that changes nothing of a subject, in the states in which it `may` be; `asked` is the request after it."""

    def take(protocol: BrokerProtocol, state: Any) -> MoveResult | None:
        return MoveResult(state, asked) if may(state) else None

    return Move("restart", RESTARTED, handler, promise, take)


def after_restart(subject: Subject, restart: Move, before: Sequence[str], after: Sequence[str]) -> Subject:
    """The subject, with one restart between some of its moves and some others: these alone are what a run is there for."""
    known = {move.name: move for move in subject.moves}
    moves = (
        *(_when(known[name], False) for name in before),
        _when(restart, False, restarts=True),
        *(_when(known[name], True) for name in after),
    )
    return replace(
        subject,
        name=f"{subject.name}-again",
        meaning=f"{subject.meaning}; after a restart",
        initial=RestartState(subject.initial),
        moves=moves,
        setup=lambda state, holes: subject.setup(state.inner, holes),
        looks=(),
        is_goal=lambda name: name.startswith(AFTER),
    )
