"""Shortest ways by breadth-first search, and the choice of runs that cover all goals together."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Set
from itertools import islice
from typing import Generic, TypeVar

Place = TypeVar("Place", bound=Hashable)
Step = TypeVar("Step")
Goal = TypeVar("Goal", bound=Hashable)
Way = TypeVar("Way")


class Ways(Generic[Place, Step]):
    """The places that a breadth-first search has reached, and a shortest way to each.

    Whoever searches goes through `levels` or `places`, and calls `reach` for each step from a place.
    """

    def __init__(self, start: Place) -> None:
        self._origins: dict[Place, tuple[Place, Step] | None] = {start: None}
        self._level = [start]

    def __len__(self) -> int:
        return len(self._origins)

    def levels(self) -> Iterator[list[Place]]:
        """The places by their distance from the start; those that are reached meanwhile come in the next level."""
        while self._level:
            level, self._level = self._level, []
            yield level

    def places(self, most_levels: int | None = None) -> Iterator[Place]:
        """The places, the nearest first: all, or those of so many levels."""
        for level in islice(self.levels(), most_levels):
            yield from level

    def reach(self, place: Place, step: Step, after: Place) -> None:
        """Note a step from a place to another one."""
        if after not in self._origins:
            self._origins[after] = place, step
            self._level.append(after)

    def to(self, place: Place) -> list[Step]:
        """The steps of a shortest way."""
        steps: list[Step] = []
        while (origin := self._origins[place]) is not None:
            place, step = origin
            steps.append(step)
        return steps[::-1]


def covering(ways: Iterable[tuple[Goal, Way]], met: Callable[[Way], Set[Goal]]) -> Iterator[tuple[Way, list[Goal]]]:
    """The ways that are needed to meet all goals, in the order given, each with the goals that none before it meets.

    `ways`: for each goal a way that meets it; of a goal that is met before it comes, the way is not needed.
    """
    covered: set[Goal] = set()
    for goal, way in ways:
        if goal not in covered:
            new = ({goal} | met(way)) - covered
            covered |= new
            yield way, sorted(new)  # type: ignore[type-var]
