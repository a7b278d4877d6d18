"""Runs that need several real brokers: a coordinator that acts on what is not committed, and is lost with it.

The brokers are processes behind proxies, which hold the fetches of one of them. What is claimed is looked for, and compared
with no rule.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.process import free_ports
from kspec.conformance.kafka.reports import RunReport
from kspec.conformance.transactions.looks import look_at_partition
from kspec.conformance.transactions.observer import PAUSE_S, ProducerName, TransactionObserver
from kspec.conformance.transactions.prompt import has_versions
from kspec.conformance.transactions.replay import PATIENCE, TRANSACTION_STATE, set_level, until
from kspec.impl.wire.values import Message
from kspec.model_check.models.transactions.board import ID
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.values import Error
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import nodes_of, ports_behind
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.faults.links import Hold, Links

BROKERS = 3
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "auto.leader.rebalance.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "60000",
    "replica.lag.time.max.ms": "60000",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "200",
}
"""A follower that does not fetch stays in sync for a minute, and a broker that is killed is fenced after four seconds."""

SHORT_MS = 3_000
"""The time (ms) that a transaction may take where the record of its end is to be too late."""

REPLICATION_S = 2.0
"""The time (s) in which a follower has fetched a record."""


class ObservedCluster(TransactionObserver):
    """Three brokers under observation.

    `coordinator`, `second`, `third`: the replicas of the coordinator's log, in the order in which they are to lead. The
    topic has one replica, on the third.
    """

    def __init__(self, supervisor: ClusterSupervisor, links: Links, codec: Codec, level: int, name: str) -> None:
        super().__init__(codec, level, name)
        self.supervisor = supervisor
        self._links = links
        self._holds: list[Hold] = []
        self.coordinator = self.second = self.third = ""

    async def begin(self) -> None:
        """Have the coordinator's log and the topic made. Raises: `ConnectionError`."""
        await self.turn_to("1")
        if has_versions(self.codec.release):
            await set_level(self.connection, self.level)
        await until(self._all_in_sync, "the replicas of the coordinator's log are in sync")
        (partition,) = (await self._described(TRANSACTION_STATE)).partitions
        first, *others = partition.replica_nodes
        assert partition.leader_id == first, "a new partition is led by its first replica"
        self.coordinator, self.second, self.third = str(first), *map(str, others)
        placed = [Message(partition_index=0, broker_ids=[int(self.third)])]
        topic = Message(name=self.names.topic, num_partitions=-1, replication_factor=-1, assignments=placed)
        await self.connection.ask("CreateTopics", 7, Message(topics=[topic], timeout_ms=10_000))
        await until(self._is_led, f"{self.names.topic} is not led")
        await self.turn_to(self.coordinator)

    async def _described(self, topic: str) -> Message:
        found: Message = (await self.connection.ask("Metadata", 12, Message(topics=[Message(name=topic)]))).topics[0]
        return found

    async def _all_in_sync(self) -> bool:
        asked = Message(key_type=1, coordinator_keys=[self.names.transactional_id(ID)])
        answer = await self.connection.ask("FindCoordinator", 4, asked)
        if answer.coordinators[0].error_code:
            return False
        return len((await self._described(TRANSACTION_STATE)).partitions[0].isr_nodes) == BROKERS

    async def _is_led(self) -> bool:
        partitions = (await self._described(self.names.topic)).partitions
        return bool(partitions) and str(partitions[0].leader_id) == self.third

    async def connected(self, broker: str) -> NodeConnection:
        """A connection to a broker."""
        return await NodeConnection.open(self.codec, self.supervisor.processes[broker].node.told)

    async def turn_to(self, broker: str) -> None:
        """Ask this broker from now on."""
        await self.close()
        self.opened = await self.connected(broker)

    async def coordinates(self, broker: str) -> None:
        """Wait until a broker leads the coordinator's log, and ask it from now on. Raises: `TimeoutError`."""
        await self.turn_to(self.third)

        async def leads() -> bool:
            return str((await self._described(TRANSACTION_STATE)).partitions[0].leader_id) == broker

        await until(leads, f"broker {broker} does not lead the coordinator's log")
        await self.turn_to(broker)

    # ---- what happens to the brokers

    def hold_fetches(self, *brokers: str) -> None:
        """Brokers get no records of others from now on; they are in touch with the controller, and in sync."""
        for broker in brokers:
            for other in {self.coordinator, self.second, self.third} - {broker}:
                for answers in (False, True):
                    self._holds.append(self._links.hold(broker, other, "Fetch", answers=answers))

    def release(self) -> None:
        """They may fetch; what was held is lost."""
        for hold in self._holds:
            hold.lose()
            hold.let_go()

    async def stop(self, broker: str) -> None:
        """Stop a broker in order."""
        await self.supervisor.stop_node(self.supervisor.processes[broker])

    def kill(self, broker: str) -> None:
        """Kill a broker."""
        self.supervisor.processes[broker].kill()

    async def start(self, broker: str) -> None:
        """Start a broker, and wait until it serves."""
        process = self.supervisor.processes[broker]
        process.start()
        await until(self._serving(broker), f"broker {broker} does not serve")

    def _serving(self, broker: str) -> Callable[[], Awaitable[bool]]:
        async def serves() -> bool:
            return self.supervisor.processes[broker].serves

        return serves

    # ---- what is seen

    async def log(self) -> tuple[str, ...]:
        """The batches and markers of the topic."""
        connection = await self.connected(self.third)
        try:
            return (await look_at_partition(connection, self.names, 0)).entries
        finally:
            await connection.close()

    async def sees(self, kind: str, seconds: float = 20.0) -> bool:
        """Wait for a marker of a kind in the topic; whether it has come."""
        end = time.monotonic() + seconds
        while not any(one.startswith(kind) for one in await self.log()):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(PAUSE_S)
        return True

    async def described_once_loaded(self) -> str:
        """The state of the transactional id, as soon as the coordinator has loaded its log."""
        while (found := await self.described()) in (one.name for one in PATIENCE):
            await asyncio.sleep(PAUSE_S)
        return found

    async def read_topic(self) -> list[str]:
        """The records that a consumer gets which reads what is committed."""
        before = self.opened
        self.opened = await self.connected(self.third)
        try:
            return await self.read("read as committed")
        finally:
            await self.close()
            self.opened = before


class ClusterObservation(NamedTuple):
    """An observation of three brokers: the versions of transactions in which it is made, and what must be seen."""

    name: str
    words: str
    claim: str
    levels: tuple[int, ...]
    observe: Callable[[ObservedCluster], Awaitable[bool]]
    since: tuple[int, ...] = (3, 9)


async def _open_transaction(cluster: ObservedCluster) -> ProducerName:
    producer = await cluster.producer()
    if cluster.level < 2:
        await cluster.take(cluster.adding(producer), "it adds the partition")
    leader = await cluster.connected(cluster.third)
    await cluster.take(cluster.record(producer, 0, 1), "it writes a record", leader)
    await leader.close()
    return producer


async def _unknown_end(cluster: ObservedCluster) -> bool:
    cluster.take_at_most(SHORT_MS)
    producer = await _open_transaction(cluster)
    cluster.hold_fetches(cluster.second, cluster.third)
    cluster.lines.append(
        "the other replicas of the coordinator's log get no records, for as long as the transaction may take"
    )
    error = await cluster.ask(cluster.ending(producer, True), "it commits")
    cluster.release()
    await asyncio.sleep(REPLICATION_S)
    cluster.lines.append("the replicas fetch the record, which is committed so")
    await cluster.stop(cluster.coordinator)
    await cluster.coordinates(cluster.second)
    ended = await cluster.state("CompleteCommit")
    cluster.lines.append(f"the coordinator stops; for the next one the transaction is {await cluster.described()}")
    other = await cluster.take(cluster.ending(producer, False), "a producer that gives up, and aborts, is told")
    again = await cluster.take(cluster.ending(producer, True), "one that asks again, as Java's does, is told")
    read = await cluster.read_topic()
    told = (error, other, again) == (Error.COORDINATOR_NOT_AVAILABLE, Error.INVALID_TXN_STATE, Error.NONE)
    return told and ended and read == ["1.1"]


async def _uncommitted_end(cluster: ObservedCluster) -> bool:
    producer = await _open_transaction(cluster)
    cluster.hold_fetches(cluster.third)
    cluster.lines.append("one of the three replicas of the coordinator's log gets no records for a moment, and is in sync")
    other = await cluster.connected(cluster.coordinator)
    asked = other.send(*cluster.encoded(InitProducerIdRequest(transactional_id=ID)))
    cluster.lines.append(
        "another producer asks for the id, and fences the first one: PrepareAbort is written, not committed"
    )
    await asyncio.sleep(REPLICATION_S)
    is_answered = asked.done()
    asked.cancel()
    await cluster.stop(cluster.coordinator)
    cluster.lines.append("the coordinator stops in order, and the producer that has asked is gone")
    await cluster.coordinates(cluster.second)
    aborted = await cluster.sees("abort")
    cluster.lines.append(f"the second broker coordinates; in the log of the topic: {' '.join(await cluster.log())}")
    cluster.kill(cluster.second)
    cluster.release()
    cluster.lines.append("it is killed")
    await cluster.start(cluster.coordinator)
    await cluster.coordinates(cluster.third)
    cluster.lines.append(f"the third broker coordinates: the transaction is {await cluster.described_once_loaded()}")
    error = await cluster.take(cluster.ending(producer, True), "the first producer commits")
    await cluster.state("Complete")
    cluster.lines.append(f"the transaction is {await cluster.described()}")
    cluster.lines.append(f"in the log of the topic: {' '.join(await cluster.log())}")
    read = await cluster.read_topic()
    return aborted and not is_answered and error == Error.NONE and not read


CLUSTER_OBSERVATIONS = (
    ClusterObservation(
        "unknown-end",
        "The record of a commit is not committed in time, and its producer is told of an error. It is committed later.",
        "the next coordinator commits; who asks again with the same end is told so, and who aborts is refused",
        (0, 1, 2),
        _unknown_end,
    ),
    ClusterObservation(
        "uncommitted-end",
        "A coordinator loads the abort of a transaction that is not committed, and writes its marker. Then it is lost.",
        "a record is aborted of a transaction whose producer is told that it is committed",
        (0, 1, 2),
        _uncommitted_end,
    ),
)
"""Observations of clusters."""


@asynccontextmanager
async def _running(jars: Jars, folder: Path, level: int, name: str) -> AsyncIterator[ObservedCluster]:
    nodes = nodes_of(folder, BROKERS, ports_behind(free_ports(2 * (BROKERS + 1)), BROKERS), SETTINGS)
    supervisor = ClusterSupervisor(ClusterFolder(folder), nodes, KafkaProgram(jars), lambda line: None, restarts=False)

    def pids() -> dict[str, int]:
        return {name: one.pid for name, one in supervisor.processes.items() if one.running and one.pid is not None}

    links = Links({node.name: (node.told, node.port) for node in nodes}, pids)
    await links.open()
    try:
        await supervisor.start()
        cluster = ObservedCluster(supervisor, links, Codec(jars), level, name)
        try:
            yield cluster
        finally:
            await cluster.close()
    finally:
        supervisor.kill()
        await links.close()


async def observe_cluster(jars: Jars, level: int, found: ClusterObservation) -> RunReport:
    """Observe a new cluster in a version of transactions. Raises: `KafkaMissingError`, `ConnectionError`, `TimeoutError`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kspec-transactions-") as folder:
        async with _running(jars, Path(folder), level, "run-1") as cluster:
            await cluster.begin()
            is_true = await found.observe(cluster)
    about = (found.name, found.words, found.claim, jars.release, tuple(cluster.lines))
    ending = f"transaction.version {level}, {len(cluster.lines)} observations"
    return RunReport(*about, True, is_true, ending, 1, time.monotonic() - began)
