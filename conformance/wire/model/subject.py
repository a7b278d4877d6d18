"""A subject of the suite: one part of a broker as a model whose moves are requests of clients."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange
from kspec.model_check.core.model import REFUSED, Model, then
from kspec.spec.broker.protocol import BrokerProtocol


class MoveResult(NamedTuple):
    """The result of a move: the state after it, and the exchange on the wire."""

    state: Hashable
    exchange: Exchange


Take = Callable[[BrokerProtocol, Any], MoveResult | None]
"""A move under some release's rules in a state; none where it is not possible, or beyond the bounds."""


class Move(NamedTuple):
    """A request that clients may make. `name` is part of the names of cases, `words` of their titles.

    `handler` is the function of `spec` that answers it, `promise` what the answer is good for.
    """

    name: str
    words: str
    handler: Callable[..., Any]
    promise: str
    take: Take


@dataclass(frozen=True)
class Subject:
    """One part of a broker.

    `setup` makes what a run needs before its first move, by the holes that the run has. `looks` are moves that show what
    a run has left behind: they end every run. `is_goal` leaves out moves that only prepare others.
    """

    name: str
    meaning: str
    initial: Hashable
    moves: tuple[Move, ...]
    setup: Callable[[Any, frozenset[str]], tuple[Exchange, ...]]
    bounds: Mapping[str, int] = field(default_factory=dict)
    looks: tuple[Move, ...] = ()
    by_release: bool = False
    """Whether its answers depend on rules in which releases differ."""
    is_goal: Callable[[str], bool] = lambda name: True
    most_moves: int | None = None
    """The longest runs that are explored, where far more states lie behind them than any case needs."""

    def model(self, protocol: BrokerProtocol) -> Model:
        """The subject as a model, which any engine explores: the states after its moves, without the exchanges."""
        model = Model(f"wire.{self.name}", dict(self.bounds))
        slot = model.slot(self.name, self.initial)
        for move in self.moves:

            def after(state: Any, move: Move = move) -> Any:
                taken = move.take(protocol, state)
                return REFUSED if taken is None else taken.state

            model.action(move.name, {}, (), (then(slot, after, slot),))
        return model
