"""Processes of the simulated cluster: brokers and a controller, each with a clock, and a disk that outlives it."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

from impl.broker.calls import CONTROLLER, Ask, Channel, Note
from impl.broker.replicas import Replicas
from impl.config.broker import BrokerConfig
from impl.config.controller import ControllerConfig
from impl.controller.core import ControllerCore
from impl.controller.features import first_records
from impl.controller.timing import start_timers
from impl.metadata.files import records_in
from impl.metadata.log import MetadataLog
from impl.replica.metadata_copy import MetadataCopy
from impl.server.broker import Broker
from impl.server.controller import FIRST_EPOCH, ControllerShell
from impl.server.member import member_core, new_member
from impl.server.shell import Shell
from impl.sim.clock import Clock
from impl.sim.network import Frame, Line, Network, answer_frame
from impl.storage import LogDirectory, StorageError
from impl.storage.simulated_disk import SimulatedDisk, Survives
from impl.wire.apis import APIS, CONTROLLER_APIS, MEMBER_APIS, Api
from impl.wire.frames import RequestHeader
from impl.wire.requests import CLIENT_ID as CLIENT
from impl.wire.values import Message
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import Controller
from spec.values import NO_BROKER_EPOCH, Incarnation

CLUSTER_ID = "a3NwZWMtc2ltdWxhdGlvbg"
CLIENT_ID = CLIENT.decode()
HOUSEKEEPING_MS = 1_000

read_once = lru_cache(maxsize=20_000)(records_in)
"""All nodes read the same metadata log, and each reads it again when it starts: a batch is decoded once."""


class Node(ABC):
    """A process that can be started, killed, paused, and robbed of its power. `disk` is what it finds when it starts."""

    apis: dict[int, Api] = APIS

    def __init__(self, node_id: int, clock: Clock, network: Network, random: Random) -> None:
        self.node_id = node_id
        self.clock = clock
        self.network = network
        self.random = random
        self.disk = SimulatedDisk(now_ms=self.now)
        self.skew_ms = 0
        """How far its clock is ahead."""
        self.note: Note | None = None
        """Told of each step of a handler."""
        self.incarnation = 0
        self.up = False
        self.serves = False
        self._paused = False
        self._held: deque[Callable[[], None]] = deque()
        self.busy_until = 0
        """When its disk has done what it waits for (ms)."""
        self._timer_at: int | None = None
        self._last_versions = {api.name: api.offered.last for api in self.apis.values()}

    def now(self) -> int:
        """The time by its own clock."""
        return self.clock.now_ms + self.skew_ms

    def set_clock(self, skew_ms: int) -> None:
        """Its clock jumps, to so far ahead of the true time; timers are due by the clock."""
        self.skew_ms = skew_ms
        self._timer_at = None
        if self.up:
            self._has_done()

    # ---- the process

    def run(self, action: Callable[..., None], *given: Any) -> None:
        """Do something in this process: later if it is paused or waits for its disk, never if it is gone."""
        if not self.up:
            return
        if self._paused or self._held or self.busy_until > self.clock.now_ms:
            self._held.append(partial(action, *given))
            return
        action(*given)
        if self.up:
            self._has_done()

    def _has_done(self) -> None:
        """After each action: wait for the disk if that has anything to do, and wake when the core's next timer is due."""
        if self.disk.condition.spent_ms:
            self._wait_for_disk()
        deadline = self.shell.node.timers.next_deadline()
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._timer_at = deadline
            self.clock.at(deadline - self.skew_ms, self._wake, deadline, self.incarnation)

    def _wait_for_disk(self) -> None:
        condition = self.disk.condition
        self.busy_until = self.clock.now_ms + condition.spent_ms
        condition.spent_ms = 0
        self.clock.at(self.busy_until, self._go_through)

    def _go_through(self) -> None:
        """Do what has come up while it could not, each as an event of its own."""
        if self._held and not self._paused and self.busy_until <= self.clock.now_ms:
            self._held.popleft()()
            if self.up:
                self._has_done()
            if self._held and self.busy_until <= self.clock.now_ms:
                self.clock.at(self.clock.now_ms, self._go_through)

    def in_this_run(self, action: Callable[[], None]) -> Callable[[], None]:
        """The same action, if this process still lives when it is due."""
        incarnation = self.incarnation

        def go() -> None:
            if self.incarnation == incarnation:
                self.run(action)

        return go

    def start(self) -> None:
        """Start a new process on the disk."""
        assert not self.up, f"node {self.node_id} runs"
        self.incarnation += 1
        self.up = True
        self._paused = False
        self._held.clear()
        self.busy_until = 0
        self._timer_at = None
        try:
            self._start()
        except (OSError, StorageError):
            self.kill()
        else:
            self._has_done()

    @abstractmethod
    def _start(self) -> None:
        """What this kind of process does first."""

    def kill(self, survives: Survives = Survives.ALL, sent_arrives_ms: int | None = None) -> None:
        """End the process without warning. Unless all survives, the power is lost as well.

        `sent_arrives_ms`: after how long what it has sent last arrives, if it does.
        """
        self.up = self.serves = False
        self.incarnation += 1
        whole = survives == Survives.ALL
        kept = self.disk.unsynced_names if whole else self.random.randint(0, self.disk.unsynced_names)
        self.disk = self.disk.after_power_loss(survives, kept)
        self._end(sent_arrives_ms)

    def _end(self, sent_arrives_ms: int | None = None) -> None:
        self.up = self.serves = False
        self._held.clear()
        self.network.servers.pop(self.node_id, None)
        self.network.forget(self.node_id, sent_arrives_ms)

    def pause(self) -> None:
        """The process stands still, as after SIGSTOP."""
        if self.up:
            self._paused = True

    def go_on(self) -> None:
        """A process that stood still does what has come up meanwhile."""
        self._paused = False
        self._go_through()

    # ---- the shell's surroundings

    shell: Any

    def last_version(self, api: str) -> int | None:
        """The highest version of an API that it offers."""
        return self._last_versions.get(api)

    def deliver(self, connection: Line, frame: Frame) -> None:
        """A request has arrived."""
        self.run(self._take, connection, frame)

    def _take(self, connection: Line, frame: Frame) -> None:
        if connection.closed:
            return
        if isinstance(frame, bytes):
            self.shell.on_frame(connection, memoryview(frame))
            return
        key, version, correlation, message = frame
        api = self.apis[key]
        header = RequestHeader(key, version, correlation, CLIENT_ID, api, 0)
        self.shell.on_request(connection, header, api.name, message)

    def hung_up(self, connection: Line) -> None:
        """A connection is closed."""
        if self.up:
            self.shell.on_closed(connection)

    def _wake(self, deadline: int, incarnation: int) -> None:
        if self._timer_at == deadline and self.incarnation == incarnation:
            self.run(self._on_time)

    def _on_time(self) -> None:
        """Do what is due; by another event this may have happened already."""
        self._timer_at = None
        self.shell.carry_out(self.shell.node.timers.due(self.now()))


class _Asking:
    """What sends a broker's requests."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node

    def ask(self, asked: Ask) -> None:
        """Send a request; the answer comes later."""
        node = self._node
        if asked.channel.node == CONTROLLER:
            asked.channel = Channel(node.controller_id, asked.channel.purpose)
        node.network.ask(node, asked, partial(self._answered, asked))

    def _answered(self, asked: Ask, answer: Message | None) -> None:
        self._node.broker.answered(asked, answer)

    def close(self) -> None:
        """Connections end with the process."""


class _Virtual(Shell):
    """A shell in virtual time, and on a virtual network."""

    coded = False
    """Whether answers are bytes on their way."""

    def set_timer(self) -> None:
        """The node looks at the timers after each of its steps."""

    def parts_of(self, header: RequestHeader, message: Message) -> list[Any]:
        """The answer to a request as it is sent."""
        return super().parts_of(header, message) if self.coded else [answer_frame(header, message)]


class _BrokerShell(_Virtual, Broker):
    """The shell of a broker."""


class _ControllerShell(_Virtual, ControllerShell):
    """The shell of a controller."""


class BrokerNode(Node):
    """A broker. `settings` are those of its properties file."""

    apis = MEMBER_APIS

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        network: Network,
        random: Random,
        protocol: BrokerProtocol,
        settings: dict[str, str],
        controller_id: int,
    ) -> None:
        super().__init__(node_id, clock, network, random)
        self.protocol = protocol
        self.controller_id = controller_id
        self.config = BrokerConfig(
            {**settings, "node.id": str(node_id), "process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{node_id}"}
        )
        self._path = f"/sim/{node_id}"

    def _start(self) -> None:
        now = self.now()
        self.directory = LogDirectory.open(self._path, self.disk, CLUSTER_ID, self.node_id)
        self.directory.closed_at_once = 1
        endpoint = Message(name="PLAINTEXT", host="127.0.0.1", port=self.node_id, security_protocol=0)
        self.core = core = member_core(self.config, self.protocol, endpoint, self.directory)
        core.note = core.cluster.note = self.note
        copy = MetadataCopy(self.disk, Path(self._path), now)
        copy.read = read_once
        self.replicas = Replicas(core, self.directory, most_threads=1)
        incarnation = Incarnation((self.node_id << 64) + self.incarnation)
        self.member = new_member(core, self.replicas, copy, incarnation)
        self.shell = self.broker = _BrokerShell(core, self.replicas, copy)
        self.broker.now, self.broker.coded = self.now, self.network.coded
        self.broker.channels = _Asking(self)
        self.broker.on_serve = self._serve
        self.broker.on_stop = lambda: self.clock.at(self.clock.now_ms, self.in_this_run(self._close))
        self.broker.on_failure = lambda: self.clock.at(self.clock.now_ms, self.in_this_run(self.kill))
        self.clock.after(HOUSEKEEPING_MS, self.in_this_run(self._keep_house))
        self.broker.carry_out(self.member.start(now))

    def _serve(self) -> None:
        self.serves = True
        self.network.servers[self.node_id] = self

    def _keep_house(self) -> None:
        self.clock.after(HOUSEKEEPING_MS, self.in_this_run(self._keep_house))
        now = self.now()
        with suppress(OSError, StorageError):
            self.directory.checkpoint_high_watermarks(self.replicas.high_watermarks())
            if self.random.random() < 0.2:
                for files in self.directory.to_flush(now):
                    files.flush(now)
                self.directory.checkpoint_logs()
        self.directory.clean_up(now)

    @property
    def is_registered(self) -> bool:
        """Whether this process has been told its broker epoch."""
        return self.member.membership.lifecycle.broker_epoch != NO_BROKER_EPOCH

    def stop(self) -> None:
        """Stop in order: the process asks the controller for leave."""
        self.run(lambda: self.broker.carry_out(self.member.stop(self.now())))

    def _close(self) -> None:
        epoch = self.member.membership.lifecycle.broker_epoch
        try:
            self.directory.close(self.replicas.high_watermarks(), epoch, self.replicas.logs_loaded)
        except (OSError, StorageError):
            self.kill()
            return
        self.incarnation += 1
        self._end()


class ControllerNode(Node):
    """The controller."""

    apis = CONTROLLER_APIS

    def __init__(
        self, node_id: int, clock: Clock, network: Network, random: Random, rules: Controller, settings: dict[str, str]
    ) -> None:
        super().__init__(node_id, clock, network, random)
        self.rules = rules
        own = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.voters": f"{node_id}@127.0.0.1:{node_id}",
            "listeners": f"CONTROLLER://127.0.0.1:{node_id}",
            "log.dirs": f"/sim/{node_id}",
        }
        self.config = ControllerConfig({**settings, **own})

    def _start(self) -> None:
        now, path = self.now(), f"/sim/{self.node_id}"
        self.directory = LogDirectory.open(path, self.disk, CLUSTER_ID, self.node_id)
        log = MetadataLog(self.disk, Path(path), now)
        log.read = read_once
        log.epoch = max(log.epoch, FIRST_EPOCH)
        self.core = core = ControllerCore(self.config, self.rules, log, log.image(), now)
        core.cluster.note = self.note
        core.cluster_id = CLUSTER_ID
        self.shell = shell = _ControllerShell(core, log)
        shell.now, shell.coded = self.now, self.network.coded
        shell.on_failure = lambda: self.clock.at(self.clock.now_ms, self.in_this_run(self.kill))
        core.stored(log.begin_epoch(self.node_id, now), now)
        if not core.finalized_features:
            shell.carry_out(core.change_metadata(first_records(core)))
        start_timers(core, now)
        self.serves = True
        self.network.servers[self.node_id] = self
