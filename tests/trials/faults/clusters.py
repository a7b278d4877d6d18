"""Clusters of three brokers behind proxies, with clients of one partition, for tests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import HOST, Program, nodes_of, ports_behind
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe, PartitionView
from kspec.trials.faults.links import Links
from kspec.trials.faults.load import Load, LoadConsumer, LoadSettings, Recorder, create_topic
from kspec.trials.history.events import ACKNOWLEDGED, Event, SendOutcome
from tests.limits.turns import Turns
from tests.trials.cluster.running import free_ports

LIMIT_S = 120.0
"""An emergency stop."""

TOPIC = "t"
SOON = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500", "replica.lag.time.max.ms": "3000"}


@asynccontextmanager
async def three_brokers(folder: Path, program: Program, **settings: str) -> AsyncIterator[tuple[ClusterSupervisor, Links]]:
    """A controller and three brokers that serve; settings have `_` in place of `.`."""
    given = {**SOON, **{name.replace("_", "."): value for name, value in settings.items()}}
    nodes = nodes_of(folder, 3, ports_behind(free_ports(8), 3), given)
    cluster = ClusterSupervisor(ClusterFolder(folder), nodes, program, print)
    links = Links({node.name: (node.told, node.port) for node in nodes}, cluster.folder.pids)
    await links.open()
    try:
        await cluster.start()
        watching = asyncio.create_task(cluster.watch())
        try:
            yield cluster, links
        finally:
            watching.cancel()
    finally:
        cluster.kill()
        await links.close()


class LoadedCluster:
    """A cluster under load, for a scenario to act upon. `leader` and `followers` are those of the beginning."""

    def __init__(self, cluster: ClusterSupervisor, links: Links, recorder: Recorder, view: ClusterProbe) -> None:
        self.cluster = cluster
        self.links = links
        self.leader = ""
        self.followers: list[str] = []
        self._recorder = recorder
        self._view = view

    async def begin(self) -> None:
        """Know who leads."""
        one = await self.until_seen(lambda one: len(one.isr) == 3)
        self.leader = str(one.leader)
        self.followers = [str(broker) for broker in one.replicas if broker != one.leader]

    async def until_seen(self, wanted: Callable[[PartitionView], bool]) -> PartitionView:
        """Wait until the brokers show what is wanted of the partition."""

        async def look() -> PartitionView:
            turns = Turns()
            while True:
                turns.go()
                found = await self._view.partitions(TOPIC)
                if found and wanted(found[0]):
                    return found[0]
                await asyncio.sleep(0.1)

        return await asyncio.wait_for(look(), LIMIT_S)

    async def until_led_by_others(self) -> None:
        """Wait for the next leader."""
        await self.until_seen(lambda one: one.leader >= 0 and str(one.leader) != self.leader)

    async def until_acknowledged(self, more: int) -> None:
        """Wait until that many records more are acknowledged."""
        begin = len(self._recorder.events)

        async def wait() -> None:
            turns = Turns()
            while sum(isinstance(e, SendOutcome) and e.kind == ACKNOWLEDGED for e in self._recorder.events[begin:]) < more:
                turns.go()
                await asyncio.sleep(0.1)

        await asyncio.wait_for(wait(), LIMIT_S)

    def kill(self, node: str) -> None:
        """Kill a node, which stays away until the scenario is over."""
        self.cluster.held.add(node)
        self.cluster.processes[node].kill()


Scenario: TypeAlias = Callable[[LoadedCluster], Awaitable[None]]


def played(program: Program, folder: Path, scenario: Scenario, acks: str = "all", **settings: str) -> list[Event]:
    """The history that clients saw of a scenario, after which everything is healed and all is read once more."""

    async def play() -> list[Event]:
        async with three_brokers(folder, program, **settings) as (cluster, links):
            recorder = Recorder()
            view = ClusterProbe({process.node.node_id: (HOST, process.node.port) for process in cluster.brokers})
            await asyncio.to_thread(create_topic, cluster.addresses, TOPIC, 1, 3)
            load = Load(cluster.addresses, TOPIC, 1, LoadSettings(consumers=1, acks=acks), recorder)
            play = LoadedCluster(cluster, links, recorder, view)
            await play.begin()
            load.start()
            await play.until_acknowledged(20)
            await scenario(play)
            links.mend()
            cluster.held.clear()
            await play.until_seen(lambda one: len(one.isr) == 3)
            await asyncio.to_thread(load.stop)
            await asyncio.to_thread(_read_all, cluster.addresses, recorder)
            view.close()
            return recorder.events

    return asyncio.run(play())


def _read_all(servers: str, recorder: Recorder) -> None:
    reader = LoadConsumer(servers, TOPIC, [0], "last-reading", recorder)
    reader.read_to_the_end()
    reader.close()
