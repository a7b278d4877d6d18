"""A world for one real broker: its process, the controller that it talks to, and the other brokers as nodes of the network.

Nothing is decided here: what the controller writes, and what the other brokers ask and answer, is said by whoever plays. The
broker has node id 1; nodes 2 to 5 are played, and registered from the beginning.
"""

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from conformance.kafka.codec import Codec
from conformance.kafka.network import Arrived, Connection, Listener, api_versions
from conformance.kafka.process import HOST, format_log_dir, free_port
from conformance.world.stage.controller import PlayedController, Registering
from conformance.world.stage.metadata_log import CONTROLLER_NODE
from conformance.world.stage.registry import PLAYED_NODES, REAL_NODE, Registry
from conformance.world.stage.target import Target
from impl.wire.values import Message

START_SECONDS = 120.0
STEP_SECONDS = 10.0
STOP_SECONDS = 60.0
"""Emergency stops: no verdict depends on how soon something happens, but a broker that never answers is given up."""

POLL_SECONDS = 0.005
HEARTBEAT_MS = 50
BACKOFF_MS = 50
ENDLESS_LAG_MS = 3_600_000
PUBLISHED = re.compile(r"Publishing (?:initial )?metadata at offset OffsetAndEpoch.offset=(\d+)")
"""What the broker writes into its own log when it begins to apply metadata up to an offset."""
SESSION_MS = 1000
"""Nobody ends a session here. A broker waits at most so long before it repeats a request that was refused."""


class BrokerGoneError(Exception):
    """The broker under test has died, or does not answer."""


class World:
    """One real broker and all that surrounds it.

    `unexpected`: requests to other brokers that a follower does not send as long as all goes well. `asks_to_stop`: whether
    an incarnation that is started asks its controller before it stops.
    """

    def __init__(self, target: Target, *, lag_ms: int = ENDLESS_LAG_MS, asks_to_stop: bool = True) -> None:
        self.codec = Codec(target.jars)
        self.target = target
        self.lag_ms = lag_ms
        self.asks_to_stop = asks_to_stop
        self.folder = Path(tempfile.mkdtemp(prefix="kspec-world-"))
        self.port = free_port()
        self.peers = {node: Listener(self.codec, node, self._peer) for node in PLAYED_NODES}
        self.fetches: dict[int, asyncio.Queue[Arrived]] = {node: asyncio.Queue() for node in PLAYED_NODES}
        self.registry = Registry()
        self.controller = PlayedController(self.codec, self.registry)
        self.log = self.controller.log
        self.unexpected: list[Arrived] = []
        self.process = target.process(self.folder)
        self._connection: Connection | None = None

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
        self.start(Registering.TAKEN)
        await self.serves()

    def start(self, registering: Registering) -> None:
        """Start the broker. What becomes of its registration is said."""
        self.controller.awaits_incarnation(registering)
        self.process.settings = self._server_properties()
        self.process.start()

    async def serves(self) -> None:
        """Wait until the broker is registered and unfenced by itself, and serves. Raises: `BrokerGoneError`."""
        self.controller.registering, self.controller.unfences = Registering.TAKEN, True
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

    def _listeners(self) -> tuple[Listener, ...]:
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
        """Raise `BrokerGoneError` if the broker is no more, and what went wrong in a listener."""
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
        """Wait until the broker has applied all metadata that it is shown: its heartbeats say so.

        An incarnation that is not registered sends none; of it only its own log tells.
        """
        wanted = self.log.shown - 1
        await self.until(lambda: self._last_applied() >= wanted, f"apply the metadata up to offset {wanted}")

    def _last_applied(self) -> int:
        if self.controller.registering != Registering.REFUSED:
            return self.controller.heard.applied
        return max((int(found[1]) for found in PUBLISHED.finditer(self.process.log_text())), default=-1)

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
            await self._disconnect()
            self.check()
            raise BrokerGoneError(f"the broker did not answer {api}: {error!r}") from error
