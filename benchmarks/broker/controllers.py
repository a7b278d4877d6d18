"""Three controllers beside three of Apache Kafka: `python -m benchmarks.broker.controllers [--kafka 4.4.0] [--kills 9]`.

A cluster of three controllers and a broker, first of this project, then of Kafka, with Kafka's default times. Measured are
its start, topics created in a second, and the time from kill -9 of the active controller to the answer to a CreateTopics
that is sent then, by the broker. The killed controller is started again when another one has decided, and has caught up
before the next kill.
"""

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

from benchmarks.broker.clusters import KAFKAS_FLAGS, OURS
from benchmarks.broker.load import LIMIT_S
from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.jars import find_jars
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import HOST, Program, controller_id, nodes_of, ports_from
from kspec.trials.cluster.programs import KspecProgram
from kspec.trials.cluster.supervisor import ClusterSupervisor

CONTROLLERS, IN_FLIGHT, PAUSE_S = 3, 20, 0.05
METADATA = "__cluster_metadata"


class MeasuredQuorum:
    """A cluster with several controllers, and what was measured of it."""

    def __init__(self, name: str, program: Program, folder: Path, first_port: int) -> None:
        self.name = name
        self.measures: dict[str, str] = {}
        nodes = nodes_of(folder, 1, ports_from(first_port, 1, CONTROLLERS), {})
        self._place = HOST, first_port
        self._cluster = ClusterSupervisor(ClusterFolder(folder), nodes, program, print, restarts=False)
        self._controllers = {controller_id(one.name): one.name for one in nodes if not one.is_broker}
        self._numbers = count(1)

    async def measure(self, kills: int, topics: int) -> None:
        """Start, measure, stop. Raises: `ClusterError`."""
        begun = time.monotonic()
        await self._cluster.start()
        try:
            await self._create()
            self.measures["started, first topic created (s)"] = f"{time.monotonic() - begun:.1f}"
            self.measures["topics created in a second, one by one"] = f"{await self._rate(topics, 1):.0f}"
            self.measures[f"… {IN_FLIGHT} at a time"] = f"{await self._rate(topics, IN_FLIGHT):.0f}"
            waits = [await self._after_kill() for _ in range(kills)]
            median, most = statistics.median(waits), max(waits)
            self.measures[f"to the next decision after kill -9 (s), median and most of {kills}"] = (
                f"{median:.2f}, {most:.2f}"
            )
        finally:
            await self._cluster.stop()

    async def _create(self) -> None:
        """Create a topic, and wait for it as long as it takes."""
        wanted = Message(name=f"t{next(self._numbers)}", num_partitions=1, replication_factor=1, assignments=[], configs=[])

        async def created() -> bool:
            answer = await ask_once(self._place, "CreateTopics", 5, topics=[wanted], timeout_ms=30_000, validate_only=False)
            return answer.topics[0].error_code in (Error.NONE.value, Error.TOPIC_ALREADY_EXISTS.value)

        await until(created)

    async def _rate(self, topics: int, at_a_time: int) -> float:
        begun = time.monotonic()
        for _ in range(topics // at_a_time):
            await asyncio.gather(*(self._create() for _ in range(at_a_time)))
        return topics // at_a_time * at_a_time / (time.monotonic() - begun)

    async def _quorum(self) -> Message:
        asked = [Message(topic_name=METADATA, partitions=[Message(partition_index=0)])]
        answer = await ask_once(self._place, "DescribeQuorum", 0, topics=asked)
        part: Message = answer.topics[0].partitions[0]
        return part

    async def _has_caught_up(self) -> bool:
        quorum = await self._quorum()
        ends = [one.log_end_offset for one in quorum.current_voters]
        return not quorum.error_code and min(ends) >= quorum.high_watermark - 1

    async def _after_kill(self) -> float:
        """Kill the active controller: the time until another one has decided (s)."""
        await until(self._has_caught_up)
        name = self._controllers[(await self._quorum()).leader_id]
        self._cluster.processes[name].kill()
        begun = time.monotonic()
        await self._create()
        took = time.monotonic() - begun
        await self._cluster.restart(name)
        return took


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds; a node that does not answer is asked again."""
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            if await holds():
                return
        except NOT_REACHED:
            pass
        if time.monotonic() > end:
            raise RuntimeError("it does not come to hold")
        await asyncio.sleep(PAUSE_S)


def table(clusters: list[MeasuredQuorum]) -> str:
    """The measurements: a row for each measure, a column for each cluster."""
    rows = [["", *(one.name for one in clusters)], ["---"] * (len(clusters) + 1)]
    rows += [[name, *(one.measures[name] for one in clusters)] for name in clusters[0].measures]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Measure one cluster after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--kills", type=int, default=9, metavar="N")
    parser.add_argument("--topics", type=int, default=200, metavar="N")
    parser.add_argument("--port", type=int, default=20_300, metavar="N", help="The first port.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    programs: list[tuple[str, Program]] = [("kspec", KspecProgram(OURS, {}, {}))]
    if options.kafka:
        programs.append((f"Apache Kafka {options.kafka}", KafkaProgram(find_jars(options.kafka), KAFKAS_FLAGS)))
    clusters = []
    try:
        for number, (name, program) in enumerate(programs):
            clusters.append(MeasuredQuorum(name, program, folder / str(number), options.port))
            asyncio.run(clusters[-1].measure(options.kills, options.topics))
            print(name, clusters[-1].measures, flush=True)
        print(table(clusters))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
