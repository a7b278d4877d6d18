"""The shortest run of one model in which another one, under the same actions, does not do the same."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kspec.model_check.core.model import State
from kspec.model_check.explorer.address import AddressStep
from kspec.model_check.explorer.moves import key_of
from kspec.model_check.explorer.run import Run
from kspec.model_check.explorer.verdicts import PropertyWatch
from kspec.model_check.search.ways import Ways
from kspec.model_check.traces.retrace import names_in

Pair = tuple[State, State]
"""A state of each of the two models."""

Fire = Callable[[State], State | None]


class PairMove(NamedTuple):
    """A move of one model, and the same move of the other one: their variants as functions of states."""

    name: str
    args: tuple[tuple[str, Any], ...]
    here: tuple[Fire, ...]
    there: tuple[Fire, ...]


class PairStep(NamedTuple):
    """A step of both models, the states after it, and whether these are the difference that is looked for."""

    step: AddressStep
    here: State
    there: State
    differs: bool


class DifferenceSearch:
    """Breadth-first search over pairs of states that the same actions lead to, until the two differ.

    `in_verdicts`: until a property is violated on one side only; else until a step is possible on this side only, or
    leads to another state there.
    """

    def __init__(self, run: Run, other: Run, in_verdicts: bool, most: int) -> None:
        self.run, self.other, self.in_verdicts, self.most = run, other, in_verdicts, most
        self.ways = Ways[Pair, AddressStep]((run.model.initial, other.model.initial))
        self.complete = False
        self._moves = list(_moves_of_both(run, other))
        self._bounds = tuple([term.bind() for term in model.constraint] for model in (run.model, other.model))
        self._watches = (PropertyWatch(run.model), PropertyWatch(other.model))
        asked = {prop.name for prop in run.model.properties if prop.kind == "always" and prop.by_default}
        self._asked = {name for name in asked if other.model.property_named(name) is not None}

    def search(self, going: Callable[[int, int], None]) -> tuple[list[AddressStep], State] | None:
        """The steps of a shortest run in which the two differ, and the state here at its end; `None` if none was found.

        `going` is told how deep and how many pairs the search has seen, before each level and now and then.
        """
        for depth, level in enumerate(self.ways.levels()):
            for number, pair in enumerate(level):
                if number % 64 == 0:
                    going(depth, len(self.ways))
                for taken in self._steps(pair):
                    if taken.differs:
                        return [*self.ways.to(pair), taken.step], taken.here
                    self.ways.reach(pair, taken.step, (taken.here, taken.there))
                if len(self.ways) >= self.most:
                    return None
        self.complete = True
        return None

    def _steps(self, pair: Pair) -> Iterator[PairStep]:
        for move in self._moves:
            mine = self._ways(move.here, pair[0], 0)
            theirs = self._ways(move.there, pair[1], 1) if mine else []
            for choice, here in enumerate(mine, start=1):
                step = AddressStep(move.name, move.args, choice)
                if theirs:
                    there = here if here in theirs else theirs[0]
                    differs = self._verdicts_differ(here, there) if self.in_verdicts else there != here
                    yield PairStep(step, here, there, differs)
                elif not self.in_verdicts:
                    yield PairStep(step, here, pair[1], True)

    def _ways(self, variants: tuple[Fire, ...], state: State, side: int) -> list[State]:
        found = dict.fromkeys(after for fire in variants if (after := fire(state)) is not None)
        return [after for after in found if all(within(after) for within in self._bounds[side])]

    def _verdicts_differ(self, here: State, there: State) -> bool:
        mine, theirs = (
            self._asked.intersection(watch.violated_at(state))
            for watch, state in zip(self._watches, (here, there), strict=True)
        )
        return mine != theirs


def _moves_of_both(run: Run, other: Run) -> Iterator[PairMove]:
    names = names_in(run.model, other.model)
    for move in run.moves.values():
        there = other.moves.get(key_of(names.get(move.name, move.name), move.args))
        variants = () if there is None else there.variants
        yield PairMove(
            move.name,
            tuple(move.args.items()),
            tuple(action.bind() for action in move.variants),
            tuple(action.bind() for action in variants),
        )
