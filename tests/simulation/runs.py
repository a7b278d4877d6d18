"""Many runs: until so many moves have happened, or a property fails; and a failing run cut to the moves that it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.oracle.world import CheckedWorld
from tests.simulation.setup import Setup, setup_of
from tests.simulation.state import REACHED, Violation
from tests.simulation.world import Move, World, moves_of

DRAWN_IN_A_RUN = 1500
"""Moves drawn in one run; about half of them can be made."""

SEEDS_APART = 1_000_000
"""The runs of a seed are numbered; run R of seed S is that of the number S * SEEDS_APART + R."""


class Failure(NamedTuple):
    """A property that failed: in which run of the seed, after how many moves of that run, and of all runs."""

    seed: int
    run: int
    moves: int
    all_moves: int
    violation: Violation

    @property
    def name(self) -> str:
        return self.violation.name


@dataclass
class Tally:
    """What so many runs have done."""

    runs: int = 0
    moves: int = 0
    calls: int = 0
    reached: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REACHED, 0))
    failure: Failure | None = None

    def add(self, world: World) -> None:
        self.runs += 1
        self.moves += world.moves
        self.calls += world.calls
        for name, times in world.reached.items():
            self.reached[name] += times


def world_of(setup: Setup) -> World:
    """A cluster with or without oracles, as its setup says."""
    return CheckedWorld(setup) if setup.oracles else World(setup)


def number_of(seed: int, run: int) -> int:
    """The number from which setup and moves of a run are drawn."""
    return seed * SEEDS_APART + run


def simulate(
    seed: int,
    moves: int,
    base: Setup | None = None,
    first_run: int = 0,
    progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Run after run of a seed until so many moves have been made, or one fails."""
    tally, run = Tally(), first_run
    while tally.moves < moves:
        number = number_of(seed, run)
        world: World | None = None
        setup = setup_of(number, base)
        try:
            world = world_of(setup)
            for move in moves_of(setup, number, DRAWN_IN_A_RUN):
                world.take(move)
                if tally.moves + world.moves >= moves:
                    break
        except Violation as violation:
            done = world.moves + 1 if world else 0
            tally.failure = Failure(seed, run, done, tally.moves + done, violation)
        if world:
            tally.add(world)
        if tally.failure or not world:
            return tally
        run += 1
        if progress:
            progress(tally)
    return tally


# ---- a failing run, cut short


def fails(setup: Setup, moves: Sequence[Move]) -> Violation | None:
    """The violation to which these moves lead, if they lead to one."""
    try:
        world = world_of(setup)
        for move in moves:
            world.take(move)
    except Violation as violation:
        return violation
    return None


def shrink(setup: Setup, moves: Sequence[Move], name: str) -> list[Move]:
    """Moves that still violate the property: ever smaller parts are left out, until every single one is needed."""
    left, size = list(moves), max(1, len(moves) // 2)
    while True:
        start, dropped = 0, False
        while start < len(left):
            tried = left[:start] + left[start + size :]
            violation = fails(setup, tried)
            if violation is not None and violation.name == name:
                left, dropped = tried, True
            else:
                start += size
        if size == 1 and not dropped:
            return left
        size = max(1, size // 2) if not dropped or size > 1 else 1


def cut(failure: Failure, base: Setup | None = None) -> list[Move]:
    """The moves of a failing run that it needs."""
    number = number_of(failure.seed, failure.run)
    setup = setup_of(number, base)
    return shrink(setup, list(moves_of(setup, number, DRAWN_IN_A_RUN)), failure.name)


def told(setup: Setup, moves: Sequence[Move]) -> list[str]:
    """A run in words, with the violation at its end."""
    lines: list[str] = []
    try:
        world = world_of(setup)
        world.say = lambda line: lines.append(f"    {line}")
        for move in moves:
            before = len(lines)
            lines.append(f"  {move[0]}")
            world.take(move)
            if len(lines) == before + 1:
                lines.pop()
    except Violation as violation:
        lines.append(f"  violated: {violation}")
    return lines
