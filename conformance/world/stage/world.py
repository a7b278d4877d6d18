"""A world for one real broker: its process, the controller that it talks to, and the other brokers as nodes of the network.

Nothing is decided here: what the controller writes, and what the other brokers ask and answer, is said by whoever plays. The
broker has node id 1; nodes 2 to 5 are played, and registered from the beginning.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from conformance.kafka.codec import Codec
from conformance.kafka.jars import Jars
from conformance.kafka.network import Arrived, Connection, Listener, api_versions
from conformance.kafka.process import HOST, KafkaProcess, format_log_dir, free_port
from conformance.world.stage.metadata_log import CONTROLLER_EPOCH, CONTROLLER_NODE, MetadataLog
from impl.wire.values import Message

REAL_NODE = 1
PLAYED_NODES = (2, 3, 4, 5)

FENCED_LEADER_EPOCH, STALE_BROKER_EPOCH = 74, 77

START_SECONDS = 120.0
STEP_SECONDS = 10.0
"""Emergency stops: no verdict depends on how soon something happens, but a broker that never answers is given up."""

POLL_SECONDS = 0.005
HEARTBEAT_MS = 50
BACKOFF_MS = 50
ENDLESS_LAG_MS = 3_600_000
RESET_FENCING, UNFENCE, FENCE, SHUTTING_DOWN = 0, -1, 1, 1


class BrokerGoneError(Exception):
    """The broker under test has died, or does not answer."""


def directory_id(node: int) -> bytes:
    """The id of a node's log directory."""
    return bytes([0xD0, *([0] * 5), 0x40, 0, 0x80, *([0] * 6), node])


class World:
    """One real broker and all that surrounds it. `proposals` are AlterPartition requests; whoever plays answers them.

    `unexpected`: requests to other brokers that a follower does not send as long as all goes well.
    """

    def __init__(self, jars: Jars, *, lag_ms: int = ENDLESS_LAG_MS, settings: Mapping[str, object] | None = None) -> None:
        self.codec = Codec(jars)
        self.jars = jars
        self.lag_ms = lag_ms
        self.folder = Path(tempfile.mkdtemp(prefix="kspec-world-"))
        self.port = free_port()
        self.log = MetadataLog(self.codec)
        self.controller = Listener(self.codec, CONTROLLER_NODE, self._controller)
        self.peers = {node: Listener(self.codec, node, self._peer) for node in PLAYED_NODES}
        self.fetches: dict[int, asyncio.Queue[Arrived]] = {node: asyncio.Queue() for node in PLAYED_NODES}
        self.proposals: asyncio.Queue[Arrived] = asyncio.Queue()
        self.registrations: asyncio.Queue[Arrived] = asyncio.Queue()
        self.epochs: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.leaving: set[int] = set()
        self.directories = {node: directory_id(node) for node in (REAL_NODE, *PLAYED_NODES)}
        self.features: list[Message] = []
        self.unexpected: list[Arrived] = []
        self.applied_offset = -1
        self.holds_registrations = False
        self.start_seconds = START_SECONDS
        self._settings = dict(settings or {})
        self._connection: Connection | None = None
        self.process = KafkaProcess(jars, self.folder, {})

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open all ports, start the broker, and wait until it is unfenced and serves. Raises: `BrokerGoneError`."""
        await self.controller.open()
        for listener in self.peers.values():
            await listener.open()
        self.process.settings = self._server_properties()
        format_log_dir(self.data, REAL_NODE, self.directories[REAL_NODE])
        await self.start()

    async def start(self) -> None:
        """Start the broker, and wait until it is unfenced and serves."""
        self.applied_offset = -1
        self.log.new_reader()
        self.process.start()
        await self.until(lambda: REAL_NODE in self.epochs and REAL_NODE not in self.fenced, "be unfenced", START_SECONDS)
        await self.until(lambda: self.process.started, "complete its start", START_SECONDS)
        await self.applied()

    async def close(self) -> None:
        """End the broker, close all ports, remove the folder."""
        await self.power_off()
        for listener in (self.controller, *self.peers.values()):
            await listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> Path:
        """The broker's log directory."""
        return self.folder / "data"

    def _server_properties(self) -> dict[str, object]:
        return {
            "process.roles": "broker",
            "node.id": REAL_NODE,
            "controller.quorum.voters": f"{CONTROLLER_NODE}@{HOST}:{self.controller.port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.data,
            "auto.create.topics.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 4,
            "num.replica.fetchers": 1,
            "background.threads": 2,
            "num.recovery.threads.per.data.dir": 1,
            "replica.lag.time.max.ms": self.lag_ms,
            "replica.fetch.wait.max.ms": 400,
            "replica.fetch.backoff.ms": BACKOFF_MS,
            "broker.heartbeat.interval.ms": HEARTBEAT_MS,
            "broker.session.timeout.ms": 600_000,
            "controlled.shutdown.enable": "false",
            **self._settings,
        }

    async def power_off(self) -> None:
        """End the process without warning, and forget the connection to it."""
        self.process.kill()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    # ---- waiting

    def check(self) -> None:
        """Raise `BrokerGoneError` if the broker is no more, and what went wrong in a listener."""
        for listener in (self.controller, *self.peers.values()):
            if listener.failure is not None:
                raise listener.failure
        if not self.process.running:
            last = self.process.last_lines(1)
            raise BrokerGoneError(f"the broker has died: {last[0] if last else 'it has written nothing'}")

    async def until(self, condition: Callable[[], bool], what: str, seconds: float = STEP_SECONDS) -> None:
        """Wait for a condition. Raises: `BrokerGoneError` if it never comes."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise BrokerGoneError(f"the broker did not {what} within {seconds:g} s")
            await asyncio.sleep(POLL_SECONDS)

    async def applied(self) -> None:
        """Wait until the broker has applied all metadata that it is shown: its heartbeats say so."""
        wanted = self.log.shown - 1
        await self.until(lambda: self.applied_offset >= wanted, f"apply the metadata up to offset {wanted}")

    # ---- the controller's end

    async def _controller(self, arrived: Arrived) -> Message | None:
        match arrived.api:
            case "ApiVersions":
                return api_versions(self.codec)
            case "Fetch":
                return await self._metadata_fetch(arrived)
            case "BrokerRegistration":
                if self.holds_registrations:
                    self.registrations.put_nowait(arrived)
                    return None
                return self.register_real(arrived)
            case "BrokerHeartbeat":
                return self._heartbeat(arrived.message)
            case "AlterPartition":
                self.proposals.put_nowait(arrived)
                return None
            case "AllocateProducerIds":
                return Message(error_code=0, producer_id_start=0, producer_id_len=1000)
            case "AssignReplicasToDirs":
                return _assigned(arrived.message)
            case other:
                raise AssertionError(f"the broker sends its controller {other}, which nobody plays")

    async def _metadata_fetch(self, arrived: Arrived) -> Message:
        topic = arrived.message.topics[0]
        asked = topic.partitions[0]
        if asked.current_leader_epoch < CONTROLLER_EPOCH:
            return self._metadata_answer(arrived, FENCED_LEADER_EPOCH, max(self.log.told, 0), b"")
        high_watermark, records = await self.log.fetch(asked.fetch_offset, arrived.message.max_wait_ms)
        return self._metadata_answer(arrived, 0, high_watermark, records)

    def _metadata_answer(self, arrived: Arrived, error: int, high_watermark: int, records: bytes) -> Message:
        partition = Message(
            partition_index=0,
            error_code=error,
            high_watermark=high_watermark,
            log_start_offset=0,
            current_leader=Message(leader_id=CONTROLLER_NODE, leader_epoch=CONTROLLER_EPOCH),
            records=records,
        )
        topic = Message(topic_id=arrived.message.topics[0].topic_id, partitions=[partition])
        endpoint = Message(node_id=CONTROLLER_NODE, host=HOST, port=self.controller.port)
        return Message(error_code=0, responses=[topic], node_endpoints=[endpoint])

    def register_real(self, arrived: Arrived) -> Message:
        """Register the broker under test, fenced; the first time, its played neighbours before it, unfenced."""
        asked = arrived.message
        self.features = list(asked.features)
        if asked.log_dirs:
            self.directories[REAL_NODE] = bytes(asked.log_dirs[0])
        if not self.epochs:
            self._first_metadata()
        self.log.append([self.real_incarnation(arrived, self.log.end, fenced=True)])
        self.log.show()
        return Message(error_code=0, broker_epoch=self.epochs[REAL_NODE])

    def real_incarnation(self, arrived: Arrived, offset: int, *, fenced: bool) -> tuple[str, Message]:
        """The record that registers the incarnation of the broker under test that asks for it."""
        asked = arrived.message
        listeners = [
            Message(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in asked.listeners
        ]
        return self._registration(REAL_NODE, offset, bytes(asked.incarnation_id), listeners, fenced=fenced)

    def _first_metadata(self) -> None:
        version = next(one.max_supported_version for one in self.features if one.name == "metadata.version")
        self.log.append([("FeatureLevelRecord", Message(name="metadata.version", feature_level=version))])
        self.log.append([self.new_incarnation(node, self.log.end + place) for place, node in enumerate(PLAYED_NODES)])

    def new_incarnation(self, node: int, offset: int, *, fenced: bool = False) -> tuple[str, Message]:
        """The record that registers a new incarnation of a played node, to be appended at this offset."""
        endpoint = Message(name="PLAINTEXT", host=HOST, port=self.peers[node].port, security_protocol=0)
        return self._registration(node, offset, node.to_bytes(8) + offset.to_bytes(8), [endpoint], fenced=fenced)

    def _registration(
        self, node: int, offset: int, incarnation: bytes, listeners: list[Message], *, fenced: bool
    ) -> tuple[str, Message]:
        """A registration record, whose offset is the broker epoch. Kafka: `ClusterControlManager.registerBroker`."""
        features = [
            Message(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in self.features
        ]
        self.epochs[node] = offset
        self.leaving.discard(node)
        (self.fenced.add if fenced else self.fenced.discard)(node)
        record = Message(
            broker_id=node,
            incarnation_id=incarnation,
            broker_epoch=offset,
            end_points=listeners,
            features=features,
            fenced=fenced,
            log_dirs=[self.directories[node]],
        )
        return "RegisterBrokerRecord", record

    def registration_change(self, node: int, *, fenced: bool | None, leaving: bool = False) -> tuple[str, Message]:
        """The record that fences or unfences a node, or says that it is in controlled shutdown."""
        if fenced is not None:
            (self.fenced.add if fenced else self.fenced.discard)(node)
        if leaving:
            self.leaving.add(node)
        change = RESET_FENCING if fenced is None else FENCE if fenced else UNFENCE
        record = Message(
            broker_id=node,
            broker_epoch=self.epochs[node],
            fenced=change,
            in_controlled_shutdown=SHUTTING_DOWN if leaving else 0,
        )
        return "BrokerRegistrationChangeRecord", record

    def _heartbeat(self, asked: Message) -> Message:
        if asked.broker_epoch != self.epochs.get(REAL_NODE):
            return Message(error_code=STALE_BROKER_EPOCH)
        caught_up = asked.current_metadata_offset >= self.epochs[REAL_NODE]
        self.applied_offset = asked.current_metadata_offset
        starts = not self.holds_registrations and not self.process.started
        if starts and caught_up and not asked.want_fence and REAL_NODE in self.fenced:
            self.log.append([self.registration_change(REAL_NODE, fenced=False)])
            self.log.show()
        return Message(
            error_code=0,
            is_caught_up=caught_up,
            is_fenced=REAL_NODE in self.fenced,
            should_shut_down=asked.want_shut_down,
        )

    # ---- the other brokers' end

    async def _peer(self, arrived: Arrived) -> Message | None:
        match arrived.api:
            case "ApiVersions":
                return api_versions(self.codec)
            case "Fetch":
                self.fetches[arrived.node].put_nowait(arrived)
                return None
            case _:
                # Not held: Kafka's fetcher asks with a lock that the change of the broker's metadata needs as well.
                self.unexpected.append(arrived)
                arrived.close()
                return None

    # ---- requests to the broker

    async def connect(self) -> Connection:
        """A connection of its own to the broker. Raises: `BrokerGoneError`."""
        try:
            return await Connection.open(self.codec, self.port)
        except ConnectionError as error:
            self.check()
            raise BrokerGoneError(f"the broker accepts no connection: {error}") from error

    async def ask(self, api: str, version: int, message: Message) -> Message:
        """Ask the broker something on a connection that is kept. Raises: `BrokerGoneError`."""
        if self._connection is None:
            self._connection = await self.connect()
        try:
            return await self._connection.ask(api, version, message, STEP_SECONDS)
        except (ConnectionError, TimeoutError) as error:
            await self._connection.close()
            self._connection = None
            self.check()
            raise BrokerGoneError(f"the broker did not answer {api}: {error!r}") from error


def _assigned(asked: Message) -> Message:
    def topic(one: Any) -> Message:
        done = [Message(partition_index=part.partition_index, error_code=0) for part in one.partitions]
        return Message(topic_id=one.topic_id, partitions=done)

    directories = [Message(id=one.id, topics=[topic(part) for part in one.topics]) for one in asked.directories]
    return Message(error_code=0, directories=directories)
