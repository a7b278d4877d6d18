"""A cluster of which one node's wall clock jumps, there and back: nobody is fenced, leaves an ISR, or waits."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kspec.impl.metadata.files import ImageReader
from kspec.trials.cluster.clocks import MISSING, MovableClocks, faketime_library, move_clock
from kspec.trials.cluster.plan import CONTROLLER, HOST
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe
from kspec.trials.faults.load import create_topic
from tests.limits.turns import Turns
from tests.times import YEAR_MS
from tests.trials.cluster.running import kspec_program
from tests.trials.faults.clusters import LIMIT_S, TOPIC, three_brokers

HOUR_MS = 3_600_000
SESSION_S = 8.0
"""Also the lag of a follower: long enough on a busy machine, and much less than any jump."""

LONGEST_S = 10.0
"""The longest time of a record on a busy machine: less than the smallest jump, and than the timeout of a request."""

pytestmark = pytest.mark.skipif(faketime_library() is None, reason=f"NOT RUN: clocks that jump: {MISSING}")


class ClockedClients:
    """A producer that waits for all replicas, and two members of a group; what they saw."""

    def __init__(self, servers: str) -> None:
        self.longest_s = 0.0
        self.sent = self.polled = self.rebalances = 0
        self.failed: list[str] = []
        self._producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0})
        self._servers = servers
        self._members: list[Consumer] = []

    def _join(self) -> None:
        group = {"group.id": "members", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        member = Consumer({"bootstrap.servers": self._servers, **group, "session.timeout.ms": 6_000})
        member.subscribe([TOPIC], on_assign=self._rebalanced, on_revoke=self._rebalanced)
        self._members.append(member)

    def _rebalanced(self, *_: object) -> None:
        self.rebalances += 1

    def go_on(self, seconds: float) -> None:
        """Send and poll for a while."""
        end = time.monotonic() + seconds
        turns = Turns()
        while time.monotonic() < end:
            turns.go()
            begun = time.monotonic()

            def delivered(error: object, _: object, begun: float = begun) -> None:
                self.longest_s = max(self.longest_s, time.monotonic() - begun)
                self.failed += [] if error is None else [str(error)]

            self._producer.produce(TOPIC, b"v", on_delivery=delivered)
            self.sent += 1
            self._producer.poll(0.05)
            for member in self._members:
                message = member.poll(0.02)
                self.polled += message is not None and message.error() is None

    def settle(self) -> None:
        """Wait until two have joined, and records go through."""
        end = time.monotonic() + LIMIT_S
        for count in (1, 2):
            self._join()
            before = self.rebalances
            turns = Turns()
            while self.polled == 0 or self.rebalances == before or len(self._assigned()) < count:
                turns.go()
                assert time.monotonic() < end, "the clients do not get anywhere"
                self.go_on(0.5)
        assert self._producer.flush(LIMIT_S) == 0
        self.longest_s, self.failed = 0.0, []

    def _assigned(self) -> list[Consumer]:
        return [member for member in self._members if member.assignment()]

    def close(self) -> None:
        """The end, when all is delivered."""
        assert self._producer.flush(LIMIT_S) == 0
        for member in self._members:
            member.close()


async def jumps(cluster: ClusterSupervisor, names: Sequence[str], jump_ms: int) -> None:
    """The clock of each node in turn jumps and later back, while clients go on; nothing comes of it."""
    servers = cluster.addresses
    await asyncio.to_thread(create_topic, servers, TOPIC, 2, 3)
    clients = ClockedClients(servers)
    await asyncio.to_thread(clients.settle)
    view = ClusterProbe({process.node.node_id: (HOST, process.node.port) for process in cluster.brokers})
    written = ImageReader(cluster.processes[CONTROLLER].node.data)
    before, epochs = written.image().spec.end_offset, await view.partitions(TOPIC)
    rebalances = clients.rebalances
    for name in names:
        for ms in (jump_ms, 0):
            move_clock(cluster.processes[name].node.clock, ms)
            await asyncio.to_thread(clients.go_on, SESSION_S + 1.5)
    after, polled = await view.partitions(TOPIC), clients.polled
    await asyncio.to_thread(clients.go_on, 1.0)
    assert written.image().spec.end_offset == before, "the controller has changed something"
    told = [[(one.leader, one.leader_epoch, set(one.isr)) for one in seen] for seen in (epochs, after)]
    assert told[0] == told[1]
    assert clients.rebalances == rebalances
    assert clients.failed == []
    assert clients.longest_s < LONGEST_S
    assert clients.polled > polled
    view.close()
    clients.close()


def run(folder: Path, names: Sequence[str], jump_ms: int) -> None:
    library = faketime_library()
    assert library is not None

    times = dict.fromkeys(("broker_session_timeout_ms", "replica_lag_time_max_ms"), str(round(SESSION_S * 1000)))

    async def play() -> None:
        program = MovableClocks(kspec_program(), library)
        async with three_brokers(folder, program, offsets_topic_num_partitions="1", **times) as (cluster, _):
            await asyncio.wait_for(jumps(cluster, names, jump_ms), LIMIT_S * 3)

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", [CONTROLLER, "1"])
def test_a_clock_that_goes_a_minute_ahead_and_back_fences_nobody(tmp_path: Path, name: str) -> None:
    run(tmp_path, [name], 60_000)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("jump_ms", [60_000, -60_000, HOUR_MS, -HOUR_MS, 30 * YEAR_MS, -30 * YEAR_MS])
def test_no_node_minds_a_clock_that_jumps_there_and_back(tmp_path: Path, jump_ms: int) -> None:
    run(tmp_path, [CONTROLLER, "1", "2", "3"], jump_ms)
