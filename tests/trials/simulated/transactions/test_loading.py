"""A coordinator whose log has a record that is not committed waits before it acts on that."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kspec.impl.broker.replica import Replica
from kspec.impl.requests.transactions.coordinator import Transactions
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.topics.names import TRANSACTION_STATE
from kspec.spec.mutation import weaken
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.topics import TopicPartition
from kspec.trials.simulated.plan import RunConditions
from kspec.trials.simulated.setup import RunSetup
from kspec.trials.simulated.transactions.cluster import TransactionalCluster
from tests.trials.simulated.hunting import TRANSACTIONAL

PLACE = TopicPartition(TRANSACTION_STATE, 0)
LATE_MS = 3_000
"""The time for which the third replica gets no records, less than it may lag."""

CONDITIONS = RunConditions(partitions=1, max_lag=10_000, session=3_000)


class MovedCoordinator:
    """A cluster whose coordinator stops when a record of its own is on a second replica, and not committed."""

    def __init__(self, mutant: str | None) -> None:
        transactions = BROKER_NEXT.transactions
        if mutant is not None:
            transactions = weaken(transactions, TRANSACTIONAL[mutant])
        protocols = dict.fromkeys((1, 2, 3), replace(BROKER_NEXT, transactions=transactions))
        setup = RunSetup(1, protocols, Controller(KRAFT_NEXT), transactions=True, conditions=CONDITIONS)
        self.cluster = cluster = TransactionalCluster(setup)
        cluster.begin()
        self.until(lambda: all(one.ended for one in cluster.producers))
        (self.index,) = (index for index, place in cluster.places.items() if place == PLACE)
        first = cluster.leader_of(self.index)
        self.second, third = (one for one in cluster.replicas_of(self.index) if one != first)
        for forth in (True, False):
            cluster.network.late[third, "fetch", forth] = cluster.clock.now_ms + LATE_MS
        own, other = self.replica(first), self.replica(self.second)
        self.until(lambda: end_of(own) == end_of(other) > own.partition.local.high_watermark)
        cluster.brokers[first].stop()
        self.until(lambda: cluster.leader_of(self.index) == self.second)
        self.until(lambda: other.partition.leader == self.second)

    def replica(self, broker: int) -> Replica:
        return self.cluster.brokers[broker].core.replicas[PLACE]

    def until(self, holds: Callable[[], bool]) -> None:
        self.cluster.until(holds, "come so far")

    def coordinates(self) -> bool:
        found: Transactions = self.cluster.brokers[self.second].broker.transactions
        return PLACE.partition in found.log.shards

    def is_committed(self) -> bool:
        replica = self.replica(self.second)
        return replica.partition.local.high_watermark == end_of(replica)


def end_of(replica: Replica) -> int:
    return replica.partition.local.log.end_offset


@pytest.mark.parametrize(
    ("mutant", "committed"), [pytest.param(None, True, marks=pytest.mark.slow), ("acts-before-committed", False)]
)
def test_a_coordinator_acts_on_its_log_once_that_is_committed(mutant: str | None, committed: bool) -> None:
    moved = MovedCoordinator(mutant)
    assert not moved.is_committed()
    moved.until(moved.coordinates)
    assert moved.is_committed() is committed
