"""The handlers of brokers and controller joined: whatever the world does, nothing that was promised is lost."""

import pytest

from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.mutation import weaken
from kspec.spec.releases.broker import BROKER_4_0, BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_4_0, KRAFT_NEXT
from tests.limits.marks import marked_pairs
from tests.limits.turns import Turns
from tests.spec.cluster import BrokenClusterError, DivergedError, HandlerCluster


def run(cluster: HandlerCluster[RecordLog], steps: int) -> HandlerCluster[RecordLog]:
    for _ in range(steps):
        cluster.anything()
    cluster.heal()
    cluster.check_all_kept()
    return cluster


def test_nothing_promised_is_lost() -> None:
    elections = acknowledged = 0
    for seed in range(12):
        cluster = run(HandlerCluster(EMPTY_LOG, BROKER_NEXT, KRAFT_NEXT, seed), 2500)
        assert all(cluster.committed[offset].value == value for offset, value in cluster.acknowledged)
        elections += cluster.elections
        acknowledged += len(cluster.acknowledged)
    assert elections > 50
    assert acknowledged > 100


@pytest.mark.parametrize("seed", range(4))
def test_4_0_needs_more_bad_luck_than_this_to_lose_anything(seed: int) -> None:
    run(HandlerCluster(EMPTY_LOG, BROKER_4_0, KRAFT_4_0, seed), 2000)


KILLED = ("no-divergence-check", "count-diverging-fetch")
"""Mutants that die within a few runs; the others need the model checker, or more luck."""


@pytest.mark.parametrize("name", KILLED)
def test_without_one_of_the_rules_a_run_goes_wrong(name: str) -> None:
    (mutant,) = [mutant for mutant in BROKER_MUTANTS if mutant.name == name]

    def goes_wrong(seed: int) -> bool:
        try:
            run(HandlerCluster(EMPTY_LOG, weaken(BROKER_NEXT, mutant), KRAFT_NEXT, seed), 2000)
        except BrokenClusterError as broken:
            return isinstance(broken, DivergedError)
        return False

    assert any(goes_wrong(seed) for seed in range(60))


@pytest.mark.slow
@pytest.mark.parametrize(("records", "elections"), marked_pairs([(20_000, 60), (100_000, 300)], nightly=[(100_000, 300)]))
def test_many_records_and_leaders(records: int, elections: int) -> None:
    """Over the carrier that a broker uses; records are told apart by their epochs."""
    cluster = HandlerCluster(EMPTY_EPOCH_LOG, BROKER_NEXT, KRAFT_NEXT, seed=1, rare=0.2, check_every=2000, batch=250)
    turns = Turns()
    while cluster.elections < elections or len(cluster.acknowledged) < records:
        turns.go()
        cluster.anything()
    cluster.heal()
    cluster.check_all_kept()
