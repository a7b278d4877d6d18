"""Runs of clusters in simulated time: the same for a seed, without a broken promise for `next`, and with one for mutants."""

from dataclasses import replace
from functools import cache
from heapq import heappop
from zlib import crc32

import pytest

from kspec.impl.replica.metadata_follower import WAIT_MS as METADATA_WAIT_MS
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import Controller
from kspec.spec.mutation import weaken
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.names import KRAFT_NAMES, kraft_of
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.kinds.stops import BrokerRestart, ControllerKill, PowerLoss
from kspec.trials.simulated.plan import RunConditions
from kspec.trials.simulated.runs import RunOutcome, run, shrunk
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked
from tests.limits.turns import Turns

BROKERS = (1, 2, 3)
NEXT: BrokerProtocol = {one.name: one for one in BROKER_RELEASES}["next"]
MUTANTS = {one.name: one for one in BROKER_MUTANTS}


def setup(seed: int, protocol: BrokerProtocol = NEXT) -> RunSetup:
    return RunSetup(seed, dict.fromkeys(BROKERS, protocol), Controller(KRAFT_NEXT))


@cache
def of_seed(seed: int, steps: int = 2_000) -> RunOutcome:
    return run(setup(seed), steps)


def test_a_seed_is_always_the_same_run() -> None:
    assert run(setup(1), 2_000) == of_seed(1)
    assert of_seed(1).told != of_seed(2).told


def events_of(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each event of a run: its time, what happens, with which bytes and numbers."""
    found: list[str] = []

    def next_event(self: VirtualClock) -> bool:
        if not self._events:
            return False
        self.now_ms, _, event, given = heappop(self._events)
        told = [crc32(one) if isinstance(one, (bytes, bytearray, memoryview)) else one for one in given]
        plain = [one for one in told if isinstance(one, (int, str))]
        found.append(f"{self.now_ms} {getattr(event, '__qualname__', '')} {plain}")
        event(*given)
        return True

    with monkeypatch.context() as patched:
        patched.setattr(VirtualClock, "next_event", next_event)
        run(setup(seed), 1_500)
    return found


@pytest.mark.parametrize("seed", marked([5, 12, 20], slow=[5, 12]))
def test_every_byte_of_a_run_is_the_same_when_it_is_run_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are by the seed, too: of members, topics, folders. Seeds 5 and 12 have groups; in 20 messages are bytes."""
    assert events_of(seed, monkeypatch) == events_of(seed, monkeypatch)


def test_a_run_is_the_same_with_messages_as_bytes() -> None:
    assert setup(20).is_coded
    assert not setup(1).is_coded
    assert run(replace(setup(1), coded=True), 2_000) == of_seed(1)


@pytest.mark.parametrize("seed", range(1, 4))
def test_next_keeps_all_promises(seed: int) -> None:
    outcome = of_seed(seed)
    assert outcome.broken is None
    assert outcome.acknowledged > 50
    assert outcome.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked(range(10, 22), nightly=range(11, 22)))
def test_next_keeps_all_promises_for_long(seed: int) -> None:
    outcome = run(setup(seed), 10_000)
    assert outcome.broken is None
    assert len(outcome.faults) > 1


def test_a_stop_before_recovery_does_not_hide_what_was_lost() -> None:
    """A broker lost power, came back while there was no controller, and was told to stop before it had opened its logs."""
    faults = [
        Fault(1_000, PowerLoss, 2, 1, 400, Survives.HALF),
        Fault(1_100, ControllerKill, 1, 2, 3_000, Survives.ALL),
        Fault(1_600, BrokerRestart, 2, 1, 2_000, Survives.ALL),
    ]
    outcome = run(replace(setup(12), conditions=RunConditions()), 1_500, faults)
    assert outcome.broken is None
    assert outcome.faults == tuple(faults)


def test_a_broker_that_stops_before_it_is_registered_counts_as_one_that_may_have_lost_records() -> None:
    """One broker had lost records, and the eligible one stopped before it was registered: it was eligible no more."""
    assert run(setup(3240), 1_500).broken is None


def first_broken(name: str, seeds: int, steps: int) -> RunOutcome | None:
    protocol = weaken(NEXT, MUTANTS[name])
    outcomes = (run(setup(seed, protocol), steps) for seed in range(1, seeds + 1))
    return next((outcome for outcome in outcomes if outcome.broken is not None), None)


def test_a_broken_promise_is_found_and_made_short() -> None:
    found = first_broken("count-what-is-sent", 5, 3_000)
    assert found is not None
    assert found.broken is not None
    short = shrunk(setup(found.seed, weaken(NEXT, MUTANTS["count-what-is-sent"])), found)
    assert short.broken is not None
    assert short.broken.name == found.broken.name
    assert len(short.faults) <= len(found.faults)
    assert short.as_json()["broken"] == short.broken._asdict()
    assert short.broken.name in short.in_words()


@pytest.mark.parametrize("release", ["0.10", "0.11", "3.0", "3.2", "3.9", "4.0"])
def test_a_cluster_of_an_older_release_starts_and_replicates(release: str) -> None:
    controller = Controller(kraft_of(release if release in KRAFT_NAMES else KRAFT_NAMES[0]))
    protocol = {one.name: one for one in BROKER_RELEASES}[release]
    outcome = run(RunSetup(1, dict.fromkeys(BROKERS, protocol), controller, conditions=RunConditions(partitions=1)), 300, [])
    assert outcome.broken is None
    assert outcome.acknowledged > 20


def test_a_broker_that_ends_by_itself_has_not_stopped_cleanly() -> None:
    """Its disk was full. Another one must not lose power before it is in sync again: of two losses nothing is promised."""
    outcome = run(setup(841), 600)
    assert any("is full" in told for told in outcome.told)
    assert outcome.broken is None


# ---- several controllers


def of_three(seed: int) -> RunSetup:
    return replace(setup(seed), controllers=3)


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_three_controllers_keep_all_promises(seed: int) -> None:
    assert run(of_three(seed), 800).broken is None


@pytest.mark.parametrize(("controllers", "seed"), [(2, 4), (4, 3), (9, 4)])
def test_other_numbers_of_controllers_keep_all_promises(controllers: int, seed: int) -> None:
    """Of two controllers none loses its disk: the other would wait for the first one's vote for ever."""
    assert run(replace(setup(seed), controllers=controllers), 1_500).broken is None


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1, 301, 50))
def test_three_controllers_keep_all_promises_in_many_runs(first: int) -> None:
    for seed in range(first, first + 50):
        assert run(of_three(seed), 3_000).broken is None, seed


def test_brokers_hear_of_a_decision_of_three_controllers_at_once() -> None:
    """Their fetches say how much they know to be committed: one that waits is answered when more is (KIP-1166)."""
    cluster = SimulatedCluster(replace(of_three(1), conditions=RunConditions(partitions=1)))
    cluster.controller.start()
    for node in cluster.brokers.values():
        node.start()
    decided_ms: dict[int, float] = {}
    late_ms: dict[int, float] = {}
    end_ms = cluster.clock.now_ms + 10_000
    turns = Turns()
    while cluster.clock.now_ms < end_ms:
        turns.go()
        cluster.next_event()
        decided_ms.setdefault(cluster.controller.core.image.spec.end_offset, cluster.clock.now_ms)
        least = min(node.core.cluster.image.spec.end_offset for node in cluster.brokers.values())
        for offset in decided_ms.keys() - late_ms.keys():
            if offset <= least:
                late_ms[offset] = cluster.clock.now_ms - decided_ms[offset]
    assert len(late_ms) > 3
    assert max(late_ms.values()) < METADATA_WAIT_MS / 2
