"""A quorum of our controllers and Apache Kafka's: either leads, the others follow, and all decide on one log."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import HOST, nodes_of, ports_from
from kspec.trials.cluster.supervisor import ClusterSupervisor
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.limits.turns import Turns
from tests.trials.cluster.running import free_ports, kspec_program

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

KILLS = 4
NAMES = {101: "controller-1", 102: "controller-2", 103: "controller-3"}


class MixedQuorum:
    """Three controllers, some of them Kafka's, and a broker of ours."""

    def __init__(self, folder: Path, kafkas: Sequence[str]) -> None:
        port = free_ports(4)
        self.place = HOST, port
        nodes = nodes_of(folder, 1, ports_from(port, 1, 3), {})
        self.cluster = ClusterSupervisor(ClusterFolder(folder), nodes, kspec_program(), print, restarts=False)
        program = KafkaProgram(jars_or_skip(NEWEST))
        for name in kafkas:
            self.cluster.processes[name].program = program

    async def create(self, topic: str) -> None:
        """Create a topic, as soon as somebody decides."""
        wanted = Message(name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        turns = Turns()
        while True:
            turns.go()
            try:
                answer = await ask_once(
                    self.place, "CreateTopics", 5, topics=[wanted], timeout_ms=10_000, validate_only=False
                )
                if answer.topics[0].error_code in (Error.NONE.value, Error.TOPIC_ALREADY_EXISTS.value):
                    return
            except NOT_REACHED:
                pass
            await asyncio.sleep(0.1)

    async def quorum(self) -> Message:
        """The quorum by its leader, once all voters have the log."""
        asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
        turns = Turns()
        while True:
            turns.go()
            part = (await ask_once(self.place, "DescribeQuorum", 0, topics=asked)).topics[0].partitions[0]
            ends = [one.log_end_offset for one in part.current_voters]
            if not part.error_code and min(ends) >= part.high_watermark - 1:
                found: Message = part
                return found
            await asyncio.sleep(0.1)

    async def run(self) -> list[int]:
        """Kill whoever leads, again and again; the leaders."""
        leaders = []
        await self.cluster.start()
        try:
            await self.create("first")
            for number in range(KILLS):
                leaders.append((await self.quorum()).leader_id)
                self.cluster.processes[NAMES[leaders[-1]]].kill()
                await self.create(f"after-{number}")
                await self.cluster.restart(NAMES[leaders[-1]])
            last = await self.quorum()
            assert [one.replica_id for one in last.current_voters] == sorted(NAMES)
            told = await ask_once(self.place, "Metadata", 9, topics=None)
            assert {one.name for one in told.topics} == {"first", *(f"after-{number}" for number in range(KILLS))}
        finally:
            await self.cluster.stop()
        return leaders


@pytest.mark.parametrize(
    "kafkas", [("controller-3",), ("controller-2", "controller-3"), ("1",)], ids=["one", "two", "the broker"]
)
def test_nodes_of_both_agree(kafkas: Sequence[str], tmp_path: Path) -> None:
    leaders = asyncio.run(MixedQuorum(tmp_path / "c", kafkas).run())
    assert len(set(leaders)) > 1
