"""The common state of the parts of a replay: the world, the run, its parties; a step; and the comparison of two values."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kspec.conformance.world.environment.world import World
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.observed_replica import difference, in_words
from kspec.conformance.world.replay.parties import Parties
from kspec.conformance.world.replay.spec_parties import SpecParties
from kspec.conformance.world.runs.run import WorldRun
from kspec.model_check.core.model import Action

ARRIVAL_SECONDS = 3.0
"""The longest wait (s) for a request of the real broker that the model says it sends."""


class DepartedError(Exception):
    """A difference between the real broker and the model."""

    def __init__(self, what: str, expected: str, observed: str) -> None:
        super().__init__(f"{what}: expected {expected}, observed {observed}")
        self.what, self.expected, self.observed = what, expected, observed


class WorldStep(NamedTuple):
    """A step of a run: its number (from 1), its action, and the model's states before and after it."""

    number: int
    action: Action
    before: ModelState
    after: ModelState

    @property
    def name(self) -> str:
        """The action's name."""
        return self.action.name

    @property
    def args(self) -> Mapping[str, Any]:
        """The action's arguments."""
        return self.action.args

    def is_of(self, part: str, broker: int) -> bool:
        """Whether this broker has this part in the action, such as `leader`."""
        return bool(self.args.get(part) == broker)


StepFunction: TypeAlias = Callable[[WorldStep], Awaitable[None]]
"""A function that takes a step of one kind, as far as the broker under test has a part in it."""


class ReplayContext:
    """The context of a replay. `real`: the run's broker that is the one under test."""

    def __init__(self, world: World, run: WorldRun, name: str) -> None:
        self.world = world
        self.run = run
        self.real = run.real
        self.spec_parties = SpecParties(dict(run.model.parameters))
        self.parties = Parties(world, run.real, name)
        self.idempotent = bool(run.model.parameters["retries"])


def same(what: str, expected: Any, observed: Any) -> None:
    """Compare two values of one kind, the observed one may be none. Raises: `DepartedError`."""
    if expected == observed:
        return
    found = difference(expected, observed) if hasattr(observed, "_fields") else None
    if found is None:
        raise DepartedError(what, in_words(expected), "none" if observed is None else in_words(observed))
    raise DepartedError(f"{what}: {found[0]}", found[1], found[2])
