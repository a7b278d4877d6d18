"""A world for one real broker: its process, and stand-ins for its controller and for the other brokers.

The replay decides what the controller writes, and the requests and responses of the other brokers. The broker has node id 1;
nodes 2 to 5 are stand-ins, which are registered from the beginning.
"""

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import ArrivedRequest, NodeConnection, NodeStandIn, api_versions
from kspec.conformance.kafka.process import HOST, format_log_dir, free_port
from kspec.conformance.world.environment.controller import ControllerStandIn, RegistrationFate
from kspec.conformance.world.environment.metadata_log import CONTROLLER_NODE
from kspec.conformance.world.environment.registry import REAL_NODE, STAND_IN_NODES, Registry
from kspec.conformance.world.environment.target import WorldTarget
from kspec.impl.wire.values import Message

START_SECONDS = 120.0
STEP_SECONDS = 10.0
STOP_SECONDS = 60.0
"""The longest waits (s): no verdict depends on speed, but a broker that never answers is given up."""

POLL_SECONDS = 0.005
HEARTBEAT_MS = 50
BACKOFF_MS = 50
ENDLESS_LAG_MS = 3_600_000
PUBLISHED = re.compile(r"Publishing (?:initial )?metadata at offset OffsetAndEpoch.offset=(\d+)")
"""The line in the broker's own log when it begins to apply metadata up to an offset."""
SESSION_MS = 1000
"""The session timeout. No session ends by it here; it is the longest back-off of a broker whose request was refused."""


class BrokerGoneError(Exception):
    """A broker under test that has died, or does not answer."""


class World:
    """One real broker and its environment.

    `unexpected`: requests to other brokers that a follower does not send in any run. `asks_to_stop`: whether an incarnation
    that is started asks its controller before it stops.
    """

    def __init__(self, target: WorldTarget, *, lag_ms: int = ENDLESS_LAG_MS, asks_to_stop: bool = True) -> None:
        self.codec = Codec(target.jars)
        self.target = target
        self.lag_ms = lag_ms
        self.asks_to_stop = asks_to_stop
        self.folder = Path(tempfile.mkdtemp(prefix="kspec-world-"))
        self.port = free_port()
        self.peers = {node: NodeStandIn(self.codec, node, self._peer) for node in STAND_IN_NODES}
        self.fetches: dict[int, asyncio.Queue[ArrivedRequest]] = {node: asyncio.Queue() for node in STAND_IN_NODES}
        self.registry = Registry()
        self.controller = ControllerStandIn(self.codec, self.registry)
        self.log = self.controller.log
        self.unexpected: list[ArrivedRequest] = []
        self.process = target.process(self.folder)
        self._connection: NodeConnection | None = None

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
        for listener in self._listeners():
            await listener.open()
        self.registry.ports = {node: listener.port for node, listener in self.peers.items()}
        format_log_dir(self.data, REAL_NODE, self.registry.directories[REAL_NODE])
        self.start(RegistrationFate.TAKEN)
        await self.serves()

    def start(self, registering: RegistrationFate) -> None:
        """Start the broker. `registering`: the response to its registration."""
        self.controller.awaits_incarnation(registering)
        self.process.settings = self._server_properties()
        self.process.start()

    async def serves(self) -> None:
        """Wait until the broker is registered and unfenced by itself, and serves. Raises: `BrokerGoneError`."""
        self.controller.registering, self.controller.unfences = RegistrationFate.TAKEN, True
        epochs, fenced = self.registry.epochs, self.registry.fenced
        await self.until(lambda: REAL_NODE in epochs and REAL_NODE not in fenced, "be unfenced", START_SECONDS)
        await self.until(lambda: self.process.started, "complete its start", START_SECONDS)
        self.controller.unfences = False
        await self.applied()

    async def close(self) -> None:
        """End the broker, close all ports, remove the folder."""
        await self.power_off()
        for listener in self._listeners():
            await listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listeners(self) -> tuple[NodeStandIn, ...]:
        return self.controller.listener, *self.peers.values()

    @property
    def data(self) -> Path:
        """The broker's log directory."""
        return self.folder / "data"

    def _server_properties(self) -> dict[str, object]:
        return {
            "process.roles": "broker",
            "node.id": REAL_NODE,
            "controller.quorum.voters": f"{CONTROLLER_NODE}@{HOST}:{self.controller.listener.port}",
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
            "broker.session.timeout.ms": SESSION_MS,
            "controlled.shutdown.enable": str(self.asks_to_stop).lower(),
        }

    async def power_off(self) -> None:
        """End the process without warning, and forget the connection to it."""
        self.process.kill()
        await self._disconnect()

    async def stopped(self) -> None:
        """Wait for the end of a process that was told to stop. Raises: `BrokerGoneError` if it goes on."""
        deadline = time.monotonic() + STOP_SECONDS
        while self.process.running:
            if time.monotonic() > deadline:
                raise BrokerGoneError(f"the broker did not stop within {STOP_SECONDS:g} s")
            await asyncio.sleep(POLL_SECONDS)
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    # ---- waiting

    def check(self) -> None:
        """Raise `BrokerGoneError` if the broker has died, or the failure of a listener."""
        for listener in self._listeners():
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
        """Wait until the broker has applied the metadata log up to its high watermark, as its heartbeats show.

        An incarnation that is not registered sends none; its own log shows it.
        """
        last = self.log.shown - 1
        await self.until(lambda: self._last_applied() >= last, f"apply the metadata up to offset {last}")

    def _last_applied(self) -> int:
        if self.controller.registering != RegistrationFate.REFUSED:
            return self.controller.heard.applied
        return max((int(found[1]) for found in PUBLISHED.finditer(self.process.log_text())), default=-1)

    # ---- the other brokers' end

    async def _peer(self, arrived: ArrivedRequest) -> Message | None:
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

    async def connect(self) -> NodeConnection:
        """A connection of its own to the broker. Raises: `BrokerGoneError`."""
        try:
            return await NodeConnection.open(self.codec, self.port)
        except ConnectionError as error:
            self.check()
            raise BrokerGoneError(f"the broker accepts no connection: {error}") from error

    async def ask(self, api: str, version: int, message: Message) -> Message:
        """Send the broker a request on a connection that is kept; its response. Raises: `BrokerGoneError`."""
        if self._connection is None:
            self._connection = await self.connect()
        try:
            return await self._connection.ask(api, version, message, STEP_SECONDS)
        except (ConnectionError, TimeoutError) as error:
            await self._disconnect()
            self.check()
            raise BrokerGoneError(f"the broker did not answer {api}: {error!r}") from error
