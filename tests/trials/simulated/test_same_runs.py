"""A seed does today what it did: every step. And what is looked at as far as it has changed is what a look at all finds."""

import pytest

from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.promises import Promises
from kspec.trials.simulated.runs import run
from tests.limits.marks import marked
from tests.trials.simulated.digests import CASES, NEXT, digest, known, setup_named
from tests.trials.simulated.hunting import TRANSACTIONAL
from tests.trials.simulated.mutants import known as known_mutants


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_run_is_the_one_that_is_written_down(case: tuple[str, int]) -> None:
    """After a change of what seeds do: `python -m tests.trials.simulated.digests`."""
    (wanted,) = [one for one in known() if (one["name"], one["seed"]) == case]
    assert digest(*case) == wanted


class AllPromises(Promises):
    """Looks at everything after each event."""

    def look(self) -> None:
        """Look at all brokers and all partitions."""
        self.look_at_all()


class LookedAtWhole(SimulatedCluster):
    """A cluster of which everything is looked at after each event."""

    kind_of_promises = AllPromises


FOUND = {name: one for name, one in known_mutants().items() if "promise" in one and name not in TRANSACTIONAL}
QUICK = sorted(name for name, one in FOUND.items() if one["steps"] <= 450)
LATER = sorted(set(FOUND) - set(QUICK), key=lambda name: (FOUND[name]["steps"], name))
LATER_BY_DAY = LATER[: len(LATER) // 2 : 4]


def check_whole(name: str, seed: int, limit: int) -> None:
    setup = setup_named(name, seed)
    assert run(setup, limit, kind=LookedAtWhole) == run(setup, limit)


@pytest.mark.parametrize("name", QUICK)
def test_a_look_at_what_has_changed_finds_what_a_look_at_all_finds(name: str) -> None:
    check_whole(name, FOUND[name]["seed"], FOUND[name]["limit"])


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(LATER, nightly=[*{*LATER} - {*LATER_BY_DAY}]))
def test_a_look_at_what_has_changed_finds_what_a_look_at_all_finds_later(name: str) -> None:
    check_whole(name, FOUND[name]["seed"], FOUND[name]["limit"])


@pytest.mark.parametrize("seed", [3, 9])
def test_where_all_properties_hold_a_look_at_all_finds_nothing_either(seed: int) -> None:
    check_whole(NEXT, seed, 600)
