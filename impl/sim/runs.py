"""Runs of the simulated cluster: one for a seed, always the same; a run in which a property fails is shrunk."""

import gc
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import seed as seed_globally
from typing import NamedTuple

from impl.sim.clients import Producer
from impl.sim.cluster import SimulatedCluster
from impl.sim.history import BrokenPromiseError
from impl.sim.plan import Fault, plan
from impl.sim.setup import Setup

logging.getLogger("kspec").addHandler(logging.NullHandler())  # what nodes complain of is what a run is for


class Broken(NamedTuple):
    """A property that fails: its name, and how."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `told`: the faults with their times, and the steps so far."""

    seed: int
    steps: int
    virtual_ms: int
    acknowledged: int
    faults: tuple[Fault, ...]
    told: tuple[str, ...]
    broken: Broken | None = None
    longest_ms: int = 0
    """How long a batch of a producer took at most until it was acknowledged, with all that it had to send again."""
    reported: tuple[str, ...] = ()
    """Errors after which clients of Kafka do not ask again by themselves, but tell their users: those of clients to which
    something is promised.
    """

    def in_words(self) -> str:
        """In a line."""
        told = f"seed {self.seed}: {self.steps:,} steps, {self.virtual_ms / 1000:.0f} s, {len(self.faults)} faults"
        if self.broken is None:
            acknowledged = f"{self.acknowledged:,} records acknowledged, after {self.longest_ms / 1000:.1f} s at most"
            reported = f", clients told {', '.join(self.reported)}" if self.reported else ""
            return f"{told}, {acknowledged}, all properties hold{reported}"
        return f"{told}: BROKEN {self.broken.name}: {self.broken.what}"

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "seed": self.seed,
            "steps": self.steps,
            "virtual_ms": self.virtual_ms,
            "acknowledged": self.acknowledged,
            "longest_ms": self.longest_ms,
            "reported": list(self.reported),
            "faults": [fault.in_words() for fault in self.faults],
            "broken": None if self.broken is None else self.broken._asdict(),
        }


COLLECTED_AFTER = (200_000, 20, 50)
"""How many values are made between two looks for circles of garbage: a step makes many values, and hardly a circle."""


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run(
    setup: Setup,
    most_steps: int,
    faults: Iterable[Fault] | None = None,
    most_ms: int | None = None,
    kind: type[SimulatedCluster] = SimulatedCluster,
) -> Outcome:
    """Run a seed for so many steps or ms, with its own faults or with these. The same arguments give the same run.

    `kind`: the class of the cluster, if somebody wants to see more of it.
    """
    seed_globally(setup.seed)
    planned = plan(setup.seed, sorted(setup.protocols), setup.surroundings) if faults is None else faults
    cluster = kind(setup, planned)
    start_ms, broken = cluster.clock.now_ms, None
    try:
        with _seldom_collected():
            cluster.run(most_steps, most_ms)
    except BrokenPromiseError as error:
        broken = Broken(error.name, error.what)
    acknowledged = sum(len(history.acknowledged) for history in cluster.histories.values())
    return Outcome(
        setup.seed,
        cluster.steps,
        cluster.clock.now_ms - start_ms,
        acknowledged,
        tuple(cluster.faults.happened),
        tuple(cluster.told),
        broken,
        max((one.longest_ms for one in cluster.clients if isinstance(one, Producer)), default=0),
        tuple(sorted({error.name for one in cluster.clients if one.is_promised for error in one.reported})),
    )


def shrunk(setup: Setup, outcome: Outcome) -> Outcome:
    """A run with as few faults as can be, and as few steps, in which the same property fails.

    Halves of the faults are left out, then quarters, and so on to single ones; what is not needed stays out.
    """
    assert outcome.broken is not None, "only a run in which a property fails is shrunk"
    best, size = outcome, max(1, len(outcome.faults) // 2)
    while True:
        place = 0
        while place < len(best.faults):
            found = run(setup, best.steps, best.faults[:place] + best.faults[place + size :])
            if (
                found.broken is not None
                and found.broken.name == outcome.broken.name
                and len(found.faults) < len(best.faults)
            ):
                best = found
            else:
                place += size
        if size == 1:
            return best
        size //= 2
