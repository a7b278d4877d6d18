"""Runs of the simulated cluster: one for a seed, always the same; a run in which a property fails is shrunk."""

import gc
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import seed as seed_globally
from typing import NamedTuple

from kspec.impl.storage.small_files import seed_ids
from kspec.model_check.search.shrinking import Shrinker
from kspec.trials.simulated.clients.partitions import ProducerClient
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.plan import plan
from kspec.trials.simulated.setup import RunSetup
from kspec.trials.simulated.transactions.cluster import TransactionalCluster

logging.getLogger("kspec").addHandler(logging.NullHandler())  # what nodes complain of is what a run is for


class BrokenProperty(NamedTuple):
    """A property that fails: its name, and how."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run. `told`: the faults with their times, and the steps so far."""

    seed: int
    steps: int
    virtual_ms: int
    acknowledged: int
    faults: tuple[Fault, ...]
    told: tuple[str, ...]
    broken: BrokenProperty | None = None
    longest_ms: int = 0
    """The longest time from the first send of a producer's batch to its acknowledgement, with all retries."""
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
"""Thresholds of the garbage collector: a step allocates many values, and hardly a reference cycle."""


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run(
    setup: RunSetup,
    most_steps: int,
    faults: Iterable[Fault] | None = None,
    most_ms: int | None = None,
    kind: type[SimulatedCluster] | None = None,
) -> RunOutcome:
    """Run a seed for so many steps or ms, with its own faults or with these. The same arguments give the same run.

    `kind`: the class of the cluster, which may observe or direct more of it; by default the one of the setup.
    """
    if kind is None:
        kind = TransactionalCluster if setup.transactions else SimulatedCluster
    seed_globally(setup.seed)
    seed_ids(setup.seed)
    planned = plan(setup.seed, sorted(setup.protocols), setup.conditions_now) if faults is None else faults
    cluster = kind(setup, planned)
    start_ms, broken = cluster.clock.now_ms, None
    try:
        with _seldom_collected():
            cluster.run(most_steps, most_ms)
    except BrokenPromiseError as error:
        broken = BrokenProperty(error.name, error.what)
    except Exception as error:
        error.add_note(f"seed {setup.seed}, after {cluster.steps:,} steps")
        raise
    acknowledged = sum(len(history.acknowledged) for history in cluster.histories.values())
    return RunOutcome(
        setup.seed,
        cluster.steps,
        cluster.clock.now_ms - start_ms,
        acknowledged,
        tuple(cluster.faults.happened),
        tuple(cluster.told),
        broken,
        max((one.longest_ms for one in cluster.clients if isinstance(one, ProducerClient)), default=0),
        tuple(sorted({error.name for one in cluster.clients if one.is_promised for error in one.reported})),
    )


def shrunk(setup: RunSetup, outcome: RunOutcome) -> RunOutcome:
    """A run with as few faults as can be, and as few steps, in which the same property fails."""
    assert outcome.broken is not None, "only a run in which a property fails is shrunk"
    best, shrinking = outcome, Shrinker(outcome.faults)
    for begin, end in shrinking.ranges():
        found = run(setup, best.steps, best.faults[:begin] + best.faults[end:])
        is_same = found.broken is not None and found.broken.name == outcome.broken.name
        if is_same and len(found.faults) < len(best.faults):
            best, shrinking.best = found, found.faults
    return best
