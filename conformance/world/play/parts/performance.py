"""What the parts of a run under way share: the world, the run, who plays whom; a step; and how two things are compared."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from conformance.world.play.cast import Cast
from conformance.world.play.players import Players, Scene
from conformance.world.play.watching import difference, in_words
from conformance.world.runs.run import Run
from conformance.world.stage.world import World
from model_check.core.model import Action

ARRIVAL_SECONDS = 3.0
"""How long a request of the real broker may take that the model says it sends."""


class DepartedError(Exception):
    """The real broker does something else than the model."""

    def __init__(self, what: str, expected: str, observed: str) -> None:
        super().__init__(f"{what}: expected {expected}, observed {observed}")
        self.what, self.expected, self.observed = what, expected, observed


class Step(NamedTuple):
    """A step of a run: its number (from 1), its action, and the model's states before and after it."""

    number: int
    action: Action
    before: Scene
    after: Scene

    @property
    def name(self) -> str:
        """The action's name."""
        return self.action.name

    @property
    def args(self) -> Mapping[str, Any]:
        """The action's arguments."""
        return self.action.args

    def is_of(self, part: str, broker: int) -> bool:
        """Whether this broker plays this part in the action, such as `leader`."""
        return bool(self.args.get(part) == broker)


Act: TypeAlias = Callable[[Step], Awaitable[None]]
"""Performs a step of one kind, as far as the broker under test has a part in it."""


class Performance:
    """A run under way. `real`: the run's broker that is the one under test."""

    def __init__(self, world: World, run: Run, name: str) -> None:
        self.world = world
        self.run = run
        self.real = run.real
        self.players = Players(dict(run.model.parameters))
        self.cast = Cast(world, run.real, name)
        self.idempotent = bool(run.model.parameters["retries"])


def same(what: str, expected: Any, observed: Any) -> None:
    """Compare two values of one kind, the observed one may be none. Raises: `DepartedError`."""
    if expected == observed:
        return
    found = difference(expected, observed) if hasattr(observed, "_fields") else None
    if found is None:
        raise DepartedError(what, in_words(expected), "none" if observed is None else in_words(observed))
    raise DepartedError(f"{what}: {found[0]}", found[1], found[2])
