"""The handlers of brokers and controller joined by a network that delays, loses and reorders: nothing promised is lost."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spec.broker.effects import BatchesAppended, EpochOpened, LogStartMoved, LogTruncated
from spec.controller.rules.brokers import unfences_whoever_asks
from spec.mutation import weaken
from spec.releases.broker import BROKER_NEXT
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.values import Epoch, Offset
from tests.simulation import broker_moves, carrying_out, client_moves, properties, world
from tests.simulation.mutants import with_mutant
from tests.simulation.oracle.world import ORACLES
from tests.simulation.properties import ALWAYS
from tests.simulation.runs import cut, fails, number_of, simulate, told, world_of
from tests.simulation.setup import MOVES, Setup, setup_of
from tests.simulation.state import Violation
from tests.simulation.storage.disk import Disk, StoredWronglyError
from tests.simulation.storage.records import Sent, as_batches
from tests.simulation.world import World, moves_of, run


def test_nothing_is_violated() -> None:
    tally = simulate(seed=1, moves=6000)
    assert tally.failure is None
    assert min(tally.reached.values()) > 0, tally.reached


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "moves"), [(Setup(), 350_000), (Setup(unclean_elections=True), 60_000)], ids=["", "unclean"]
)
def test_nothing_is_violated_for_longer(setup: Setup, moves: int) -> None:
    tally = simulate(seed=2, moves=moves, base=setup)
    assert tally.failure is None
    assert tally.moves >= moves


def test_a_seed_gives_the_same_runs_again() -> None:
    assert simulate(seed=7, moves=1500) == simulate(seed=7, moves=1500)


def test_every_move_happens() -> None:
    """In one cluster or another."""
    happened: set[str] = set()
    for seed in range(12):
        setup = setup_of(seed, Setup(oracles=False, unclean_elections=seed % 2 == 1))
        world = World(setup)
        for move in moves_of(setup, seed, 1500):
            before = world.moves
            world.take(move)
            if world.moves > before:
                happened.add(move[0])
    assert happened == set(MOVES)


def test_a_cluster_that_is_left_alone_comes_to_hold_the_same_everywhere() -> None:
    for seed in range(6):
        drawn = setup_of(seed, Setup(oracles=False))
        weights = tuple((name, 0.0 if name == "kill" else often) for name, often in drawn.weights)
        setup = replace(drawn, max_lag=30_000, reassigns=False, power_losses=False, weights=weights)
        world = run(setup, moves_of(setup, seed, 400))
        world.heal()
        topic = world.topic
        assert topic is not None
        assert topic.isr == set(topic.replicas)
        ends = {world.node(replica).partition.local for replica in topic.replicas}
        assert len({(local.log.records, local.log.start_offset, local.high_watermark) for local in ends}) == 1
        assert min(ends).log.end_offset == len(world.committed)


# ---- failing runs


def test_a_failing_run_is_cut_to_what_it_needs() -> None:
    setup = with_mutant(Setup(oracles=False), "unclean-replica-keeps-its-place")
    failure = simulate(seed=1, moves=20_000, base=setup).failure
    assert failure is not None
    assert failure.name == "UncleanExclusion"
    moves = cut(failure, setup)
    assert len(moves) < 12
    drawn = setup_of(number_of(failure.seed, failure.run), setup)
    with pytest.raises(Violation, match="UncleanExclusion"):
        run(drawn, moves, world_of(drawn))
    assert "violated: UncleanExclusion" in told(drawn, moves)[-1]


# ---- what was kept out until the rules stood it


def test_a_broker_that_leads_again_before_it_is_registered_is_found() -> None:
    """Kafka 3.5 to 4.4 acts before it is registered; its closed ports save it."""
    early = {mutant.name: mutant for mutant in BROKER_MUTANTS}
    broker = weaken(weaken(BROKER_NEXT, early["act-before-registration"]), early["open-ports-at-once"])
    failure = simulate(1, 5000, Setup(oracles=False, broker=broker)).failure
    assert failure is not None
    assert failure.name in ("SameEpochSameRecords", "CommittedOnLaterLeaders")


JOINING = {
    "publish": 9.0,
    "ask": 20.0,
    "deliver": 24.0,
    "produce": 1.0,
    "propose": 8.0,
    "communicate": 9.0,
    "pass_time": 2.0,
    "break_connection": 4.0,
    "expire": 3.0,
    "start": 1.0,
}
"""A cluster in which brokers drop out of the ISR and come back, and connections break."""


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_second_copy_of_a_refused_proposal_is_found(forgotten: bool) -> None:
    """The controller of `next` writes refusals down, so nothing happens."""
    refusals = next(mutant for mutant in CONTROLLER_MUTANTS if mutant.name == "refusal-without-trace")
    setup = Setup(
        max_lag=10**8,
        reordered=100,
        newest_image=100,
        power_losses=False,
        reassigns=False,
        clean_stops=False,
        idempotent=False,
        oracles=False,
        weights=tuple(JOINING.items()),
        controller=weaken(KRAFT_NEXT, refusals) if forgotten else KRAFT_NEXT,
    )
    violation = fails(setup, list(moves_of(setup, 19, 800)))
    assert (violation.name if violation else None) == ("QuorumSuperset" if forgotten else None)


def test_a_broker_that_stops_and_is_elected_is_found() -> None:
    """By the rules up to 4.4: see docs/findings/stopping-broker-is-elected.md."""
    setup = Setup(oracles=False, controller=replace(KRAFT_NEXT, may_unfence=unfences_whoever_asks))
    failure = simulate(1, 500, setup, first_run=803).failure
    assert failure is not None
    assert failure.name == "LeaderIsActive"
    assert simulate(1, 500, Setup(oracles=False), first_run=803).failure is None


# ---- properties and what is stored


def test_every_property_is_looked_at() -> None:
    said = "".join(
        Path(str(module.__file__)).read_text(encoding="utf-8")
        for module in (properties, carrying_out, client_moves, broker_moves, world)
    )
    looked_at = set(re.findall(r'"([A-Z]\w+)"', said)) & set(ALWAYS)
    assert looked_at == set(ALWAYS)
    assert not set(ORACLES) & set(ALWAYS)


def test_what_is_stored_is_the_fold_of_the_changes() -> None:
    disk = Disk()
    batch: Any = Sent(7, 2, Epoch(3))
    last: Any = Sent(8, 1, Epoch(3))
    disk.store(EpochOpened(Epoch(3), Offset(0)))
    disk.store(BatchesAppended(Offset(0), (batch, last)))
    disk.store(LogStartMoved(Offset(1)))
    disk.store(LogTruncated(Offset(2)))
    assert [record.value for record in disk.records] == [71]
    assert (disk.start, disk.end, disk.latest_epoch) == (1, 2, 3)
    assert disk.holds(disk.as_log())
    assert not disk.holds(disk.as_log().append((Sent(9, 1, Epoch(3)),)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        BatchesAppended(Offset(1), ()),
        LogTruncated(Offset(1)),
        LogStartMoved(Offset(0)),
        EpochOpened(Epoch(2), Offset(1)),
        EpochOpened(Epoch(-1), Offset(0)),
    ],
    ids=str,
)
def test_a_change_that_does_not_fit_is_refused(change: object) -> None:
    with pytest.raises(StoredWronglyError):
        Disk().store(change)  # type: ignore[arg-type]


def test_records_come_in_the_batches_in_which_they_were_appended() -> None:
    batches: Any = (Sent(1, 2, Epoch(0)), Sent(2, 1, Epoch(0)), Sent(3, 3, Epoch(1)))
    records: list[Any] = [record for batch in batches for record in batch.records]
    assert as_batches(records) == batches
    assert [batch.record_count for batch in as_batches(records[1:-1])] == [1, 1, 2]
