"""Simulated clusters that notice a planted bug, by an oracle or by a property that fails."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.planted_bugs.planting import PlantedBug, planted
from tests.planted_bugs.processes import in_a_process
from tests.trials.oracle.listening import OracledCluster
from tests.trials.simulated.hunting import setup_of_next

SEEDS, STEPS = (2, 11, 19, 40), 1_500
"""The clusters that are simulated: with members of groups, or with records that are deleted; and how many steps."""

UNCLEAN_SEED = 1
"""The cluster in which any replica may be elected."""

SIMULATED = ("broker", "controller", "coordinator", "log", "messages", "metadata", "values")
"""The rooms whose rules are called there."""

LIMIT_S = 300


def fails_in(bug: PlantedBug) -> str:
    """The failure by which simulated clusters notice a bug; nothing if they do not."""
    if bug.function.partition(":")[0].partition(".")[0] not in SIMULATED:
        return ""
    failed = in_a_process(lambda: next(failures(bug), ""), LIMIT_S)
    return f"simulated clusters: {failed}" if failed else ""


def setups() -> list[RunSetup]:
    """The clusters that are simulated."""
    return [replace(setup_of_next(UNCLEAN_SEED), unclean_elections=True), *map(setup_of_next, SEEDS)]


def failures(bug: PlantedBug | None) -> Iterator[str]:
    """Failures in simulated clusters, with a bug or without."""
    with planted(bug) if bug else nullcontext():
        for setup in setups():
            try:
                broken = run(setup, STEPS, kind=OracledCluster).broken
            except Exception as failure:  # a bug may break the simulation itself, which is noticed as well
                yield type(failure).__name__
            else:
                if broken is not None:
                    yield broken.name
