"""A reassignment with throttles in a simulated cluster: how many bytes are copied in how much simulated time."""

from collections.abc import Callable

import pytest

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.broker.throttle import FOLLOWER, LEADER, Throttle
from kspec.impl.wire.values import Message
from kspec.spec.controller.protocol import Controller
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.simulated.clients.client import ClientEndpoint, nothing
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.ids import CONTROLLER_ID, TOPIC
from kspec.trials.simulated.plan import RunConditions
from kspec.trials.simulated.setup import RunSetup
from tests.limits.turns import Turns

PROTOCOL = {one.name: one for one in BROKER_RELEASES}["next"]
STEPS, FETCH_BYTES = 4_000, 512
SECONDS = 20
"""The time of a throttled move that keeps to the rate (s)."""

BROKER, TOPICS, SET = 4, 2, 0
"""Kinds of resources, and the operation, of IncrementalAlterConfigs."""


NEVER_MS = 10**9
"""The time of the first fault."""


class SmallFetches(RunSetup):
    """A cluster whose followers fetch little at a time."""

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "replica.fetch.max.bytes": str(FETCH_BYTES), "replica.fetch.backoff.ms": "50"}


class ReassignedCluster:
    """A cluster of three brokers, whose partition has been moved from the first and second to the second and third."""

    def __init__(self, side: str | None, of_brokers: bool = False) -> None:
        conditions = RunConditions(pauses=(NEVER_MS, NEVER_MS), partitions=1, max_lag=10_000)
        self.cluster = SimulatedCluster(
            SmallFetches(
                3, dict.fromkeys((1, 2, 3), PROTOCOL), Controller(KRAFT_NEXT), replication_factor=2, conditions=conditions
            )
        )
        self.cluster.run(STEPS)
        first = self.cluster.brokers[1].core.replicas
        self.size = next(replica.files.size for place, replica in first.items() if place.topic == TOPIC)
        self.rate = self.size // SECONDS
        self.copied: list[tuple[int, int]] = []
        """The times (ms) at which bytes of throttled replicas were counted, and how many by then."""
        if side is not None:
            self._throttle(side, of_brokers)
        self.took_ms = self._move(side)

    def _ask(self, api: str, message: Message) -> Message:
        found: list[Message | None] = []
        self.cluster.network.ask(
            ClientEndpoint(5_000), Ask(ChannelKey(CONTROLLER_ID, "test"), api, message, nothing), found.append
        )
        self._until(lambda: bool(found))
        assert found[0] is not None
        return found[0]

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = self.cluster.clock.now_ms + 1_000 * 10 * SECONDS
        turns = Turns()
        while not holds():
            turns.go()
            assert self.cluster.clock.now_ms < deadline, "it does not come to hold"
            self.cluster.clock.next_event()

    def _throttle(self, side: str, of_brokers: bool) -> None:
        def resource(kind: int, name: str, setting: str, value: str) -> Message:
            change = Message(name=f"{side}.replication.throttled.{setting}", config_operation=SET, value=value)
            return Message(resource_type=kind, resource_name=name, configs=[change])

        named = ["" if of_brokers else str(node) for node in ([1] if of_brokers else [1, 2, 3])]
        resources = [resource(BROKER, name, "rate", str(self.rate)) for name in named]
        resources.append(resource(TOPICS, TOPIC, "replicas", "*" if side == LEADER else "0:3"))
        answer = self._ask("IncrementalAlterConfigs", Message(resources=resources))
        assert [one.error_code for one in answer.responses] == [0] * len(resources)

    def _move(self, side: str | None) -> int:
        began = self.cluster.clock.now_ms
        wanted = Message(name=TOPIC, partitions=[Message(partition_index=0, replicas=[2, 3])])
        self._ask("AlterPartitionReassignments", Message(topics=[wanted]))

        def is_moved() -> bool:
            if side is not None:
                self._note(side)
            (partition,) = self.cluster.controller.core.image.spec.partitions
            return set(partition.registration.replicas) == {2, 3} and not partition.registration.removing

        self._until(is_moved)
        return self.cluster.clock.now_ms - began

    def _note(self, side: str) -> None:
        counted = sum(throttle.counted for throttle in self.throttles(side))
        if not self.copied or counted > self.copied[-1][1]:
            self.copied.append((self.cluster.clock.now_ms, counted))

    def throttles(self, side: str) -> list[Throttle]:
        """This side's throttle of each broker."""
        nodes = self.cluster.brokers.values()
        return [node.core.leader_throttle if side == LEADER else node.core.follower_throttle for node in nodes]


@pytest.fixture(scope="module")
def without() -> ReassignedCluster:
    return ReassignedCluster(None)


@pytest.mark.slow
@pytest.mark.parametrize(("side", "of_brokers"), [(LEADER, False), (FOLLOWER, False), (FOLLOWER, True)])
def test_a_throttled_move_takes_as_long_as_the_rate_says(side: str, of_brokers: bool, without: ReassignedCluster) -> None:
    """The rate is measured over eleven windows, and a fetch is not cut: so much more may be copied, and no more."""
    moved = ReassignedCluster(side, of_brokers)
    counted = moved.copied[-1][1]
    assert counted >= moved.size
    assert moved.took_ms >= 1_000 * (SECONDS - 3)
    assert moved.took_ms > 5 * without.took_ms
    began = moved.copied[0][0]
    for time, so_far in moved.copied:
        assert so_far - moved.copied[0][1] <= moved.rate * (time - began + 2_000) / 1_000 + 2 * FETCH_BYTES, (
            time - began,
            so_far,
        )


@pytest.mark.slow
def test_without_a_throttle_nothing_is_counted(without: ReassignedCluster) -> None:
    counted = [throttle.counted for side in (LEADER, FOLLOWER) for throttle in without.throttles(side)]
    assert counted == [0] * 6
