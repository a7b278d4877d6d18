"""Processes of the simulated cluster: brokers and a controller, each with clocks, and with a disk that outlives it."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVarTuple

from kspec.impl.broker.calls import CONTROLLER, Ask, ChannelKey
from kspec.impl.broker.replicas import Replicas, id_bytes
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.config.voters import Place
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.timing import start_timers
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.bootstrap import format_controller
from kspec.impl.metadata.files import records_in
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.voters import KnownVoters
from kspec.impl.replica.controllers import KnownControllers
from kspec.impl.replica.metadata_copy import MetadataCopy
from kspec.impl.replica.metadata_follower import MetadataFollower
from kspec.impl.server.broker import BrokerShell
from kspec.impl.server.controller import ControllerShell
from kspec.impl.server.housekeeping import apply_retention_to
from kspec.impl.server.shell import Shell
from kspec.impl.server.startup import member_core, new_member
from kspec.impl.storage import LogDirectory, StorageError
from kspec.impl.storage.small_files import LEADER_EPOCHS, META_PROPERTIES
from kspec.impl.wire.apis import APIS, CONTROLLER_APIS, Api
from kspec.impl.wire.frames import RequestHeader
from kspec.impl.wire.requests import CLIENT_ID as CLIENT
from kspec.impl.wire.values import Message
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import Controller
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_DIRECTORY,
    BrokerId,
    DirectoryId,
    Incarnation,
    Instant,
    MonotonicMs,
    ReplicaKey,
)
from kspec.trials.simulated.clock import EVEN, NodeClock, VirtualClock
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from kspec.trials.simulated.network import Frame, Network, SimulatedConnection, answer_frame

Given = TypeVarTuple("Given")

CLUSTER_ID = "a3NwZWMtc2ltdWxhdGlvbg"
CLIENT_ID = CLIENT.decode()
NOWHERE = -2
HOUSEKEEPING_MS = 1_000

read_once = lru_cache(maxsize=20_000)(records_in)
"""A cached decoder: all nodes read the same metadata log, each again when it starts, and a batch is decoded once."""


def lose_epochs(disk: SimulatedDisk, random: Random) -> list[str]:
    """Damage some epoch files: empty, zeros, or the content of some epochs before; the logs beside them are whole.

    Returns the paths of those that have changed.
    """
    lost = []
    for path in disk.paths_of(LEADER_EPOCHS):
        content = disk.read_file(path)
        kept = content.splitlines()[2:][: random.randint(0, 2)]
        behind = b"".join(b"%s\n" % line for line in (b"0", b"%d" % len(kept), *kept))
        left = random.choice((content, b"", bytes(len(content)), behind))
        disk.put(path, left)
        if left != content:
            lost.append(path)
    return lost


class SimulatedNode(ABC):
    """A process that can be started, killed, paused, and lose power. `disk`: the one that it opens when it starts."""

    apis: dict[int, Api] = APIS

    def __init__(self, node_id: int, clock: VirtualClock, network: Network, random: Random) -> None:
        self.node_id = node_id
        self.clock = clock
        self.network = network
        self.random = random
        self.now = NodeClock(clock, node_id)
        """The time by its own clocks."""
        self.disk = SimulatedDisk(now_ms=lambda: self.now().timestamp)
        self.note: StepRecorder | None = None
        """A listener to each step of a handler."""
        self.epoch_files: Random | None = None
        """Random numbers for the loss of epoch files at an unclean stop; none if they are never lost."""
        self.tell: Callable[[str], None] = lambda what: None
        """A listener to losses of files."""
        self.incarnation = 0
        self.up = False
        self.serves = False
        self._paused = False
        self._held: deque[Callable[[], None]] = deque()
        self.busy_until = 0
        """The time at which the disk operation that it waits for is complete (ms)."""
        self._timer_at: MonotonicMs | None = None
        self._last_versions = {api.name: api.offered.last for api in self.apis.values()}

    def set_wall_clock(self, ahead_ms: int, rate: int = EVEN) -> None:
        """Set the wall clock to so far ahead of the true time, and its rate (ms in a second). Timers do not depend on it."""
        self.now.set_wall(ahead_ms, rate)

    def set_rate(self, rate: int) -> None:
        """Set the rate of the monotonic clock (ms in a second); timers are due by it."""
        self.now.set_rate(rate)
        self._timer_at = None
        if self.up:
            self._has_done()

    # ---- the process

    def run(self, action: Callable[[*Given], None], *given: *Given) -> None:
        """Run an action in this process: later if it is paused or waits for its disk, never if it has ended."""
        if not self.up:
            return
        if self._paused or self._held or self.busy_until > self.clock.now_ms:
            self._held.append(partial(action, *given))
            return
        action(*given)
        if self.up:
            self._has_done()

    def _has_done(self) -> None:
        """Complete an action: wait for the disk if it is busy, and schedule the core's next timer."""
        if self.disk.condition.spent_ms:
            self._wait_for_disk()
        deadline = self.shell.node.timers.next_deadline()
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._timer_at = deadline
            self.clock.at(self.now.when(deadline), self._wake, deadline, self.incarnation)

    def _wait_for_disk(self) -> None:
        condition = self.disk.condition
        self.busy_until = self.clock.now_ms + condition.spent_ms
        condition.spent_ms = 0
        self.clock.at(self.busy_until, self._go_through)

    def _go_through(self) -> None:
        """Run the actions that have been held, each as an event of its own."""
        if self._held and not self._paused and self.busy_until <= self.clock.now_ms:
            self._held.popleft()()
            if self.up:
                self._has_done()
            if self._held and self.busy_until <= self.clock.now_ms:
                self.clock.at(self.clock.now_ms, self._go_through)

    def in_this_run(self, action: Callable[[], None]) -> Callable[[], None]:
        """The same action, if this process still runs when it is due."""
        incarnation = self.incarnation

        def go() -> None:
            if self.incarnation == incarnation:
                self.run(action)

        return go

    def start(self) -> None:
        """Start a new process on the disk."""
        assert not self.up, f"node {self.node_id} runs"
        self.incarnation += 1
        self.now.boot(self.incarnation)
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
        """Take the first steps of a process of this kind."""

    def kill(self, survives: Survives = Survives.ALL, sent_arrives_ms: int | None = None) -> None:
        """Kill the process. Unless all survives, the power is lost as well.

        `sent_arrives_ms`: the delay of its last messages; none: they never arrive.
        """
        self.up = self.serves = False
        self.incarnation += 1
        whole = survives == Survives.ALL
        kept = self.disk.unsynced_names if whole else self.random.randint(0, self.disk.unsynced_names)
        self.disk = self.disk.after_power_loss(survives, kept)
        if self.epoch_files is not None:
            for path in lose_epochs(self.disk, self.epoch_files):
                self.tell(f"{path} is lost, or behind its log")
        self._end(sent_arrives_ms)

    def _end(self, sent_arrives_ms: int | None = None) -> None:
        self.up = self.serves = False
        self._held.clear()
        self.network.servers.pop(self.node_id, None)
        self.network.forget(self.node_id, sent_arrives_ms)

    def pause(self) -> None:
        """Pause the process, as SIGSTOP does."""
        if self.up:
            self._paused = True

    def go_on(self) -> None:
        """Resume a paused process."""
        self._paused = False
        self._go_through()

    # ---- the shell's surroundings

    shell: Any

    def last_version(self, api: str) -> int | None:
        """The highest version of an API that it offers."""
        return self._last_versions.get(api)

    def deliver(self, connection: SimulatedConnection, frame: Frame) -> None:
        """Take a request that has arrived."""
        self.run(self._take, connection, frame)

    def _take(self, connection: SimulatedConnection, frame: Frame) -> None:
        if connection.closed:
            return
        if connection.holds:
            connection.waiting.append(frame)
            return
        if isinstance(frame, bytes):
            self.shell.on_frame(connection, memoryview(frame))
            return
        key, version, correlation, message = frame
        api = self.apis[key]
        header = RequestHeader(key, version, correlation, CLIENT_ID, api, 0)
        self.shell.on_request(connection, header, api.name, message)

    def hung_up(self, connection: SimulatedConnection) -> None:
        """Take note that a connection is closed."""
        if self.up:
            self.shell.on_closed(connection)

    def _wake(self, deadline: MonotonicMs, incarnation: int) -> None:
        if self._timer_at == deadline and self.incarnation == incarnation:
            self.run(self._on_time)

    def _on_time(self) -> None:
        """Run the timers that are due; another event may have run them already."""
        self._timer_at = None
        self.shell.do_what_is_due()


class AnsweredShell(Protocol):
    """A shell that sends requests, and takes their answers."""

    def answered(self, asked: Ask, answer: Message | None) -> None:
        """Take an answer, or none."""


class _SimulatedSender:
    """The sender of a node's requests. `controller_id`: the controller that a broker asks."""

    def __init__(self, node: "SimulatedNode", shell: AnsweredShell, controller_id: Callable[[], int]) -> None:
        self._node, self._shell, self._controller_id = node, shell, controller_id

    def ask(self, asked: Ask) -> None:
        """Send a request; the response comes later."""
        if asked.channel.node == CONTROLLER:
            asked.channel = ChannelKey(self._controller_id(), asked.channel.purpose)
        self._node.network.ask(self._node, asked, partial(self._shell.answered, asked))

    def close(self) -> None:
        """Do nothing: connections end with the process."""


class _ControllersSender(_SimulatedSender):
    """The sender of a controller's requests: to the controller at the port that is known of it."""

    def __init__(self, node: "SimulatedNode", core: ControllerCore, shell: AnsweredShell) -> None:
        super().__init__(node, shell, lambda: node.node_id)
        self._core = core

    def ask(self, asked: Ask) -> None:
        """Send a request; nobody is reached whose address is not known."""
        place = self._core.place_of(asked.channel.node)
        sent = ChannelKey(NOWHERE if place is None else place.port, asked.channel.purpose)
        answered = partial(self._shell.answered, asked)
        self._node.network.ask(self._node, replace(asked, channel=sent), answered)


class _Virtual(Shell):
    """A shell in virtual time, and on a virtual network."""

    coded = False
    """Whether responses are encoded."""

    def set_timer(self) -> None:
        """Do nothing: the node checks the timers after each of its steps."""

    def parts_of(self, header: RequestHeader, message: Message) -> list[Any]:
        """The parts of a response."""
        return super().parts_of(header, message) if self.coded else [answer_frame(header, message)]


class _BrokerShell(_Virtual, BrokerShell):
    """The shell of a broker."""


class _ControllerShell(_Virtual, ControllerShell):
    """The shell of a controller."""


class BrokerNode(SimulatedNode):
    """A broker. `settings` are those of its properties file."""

    def __init__(
        self,
        node_id: int,
        clock: VirtualClock,
        network: Network,
        random: Random,
        protocol: BrokerProtocol,
        settings: dict[str, str],
        controllers: Sequence[int],
    ) -> None:
        super().__init__(node_id, clock, network, random)
        self.protocol = protocol
        self.controllers = controllers
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
        controllers = KnownControllers({one: Place("127.0.0.1", one) for one in self.controllers})
        incarnation = Incarnation((self.node_id << 64) + self.incarnation)
        self.member = new_member(core, self.replicas, MetadataFollower(core, copy, controllers), incarnation)
        self.shell = self.broker = _BrokerShell(core, self.replicas, copy)
        self.broker.now, self.broker.coded = self.now, self.network.coded
        self.broker.channels = _SimulatedSender(self, self.broker, lambda: controllers.asked)
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
        if self.config.number("log.retention.bytes") >= 0:
            self._delete_old(now)
        with suppress(OSError, StorageError):
            self.directory.checkpoint_high_watermarks(self.replicas.high_watermarks())
            if self.random.random() < 0.2:
                for files in self.directory.to_flush(now.monotonic):
                    files.flush(now.monotonic)
                self.directory.checkpoint_logs()
        self.directory.clean_up(now.monotonic)

    def _delete_old(self, now: Instant) -> None:
        """Delete old segments, as a broker's housekeeping does."""
        for replica in list(self.core.replicas.values()):
            if self.up and not replica.offline:
                with suppress(OSError, StorageError):
                    apply_retention_to(self.broker, replica, now)

    @property
    def is_registered(self) -> bool:
        """Whether this process has its broker epoch."""
        return self.member.membership.lifecycle.broker_epoch != NO_BROKER_EPOCH

    def erase(self) -> None:
        """Delete all files of a broker that is down, but the one with its identity."""
        path = f"{self._path}/{META_PROPERTIES}"
        content, self.disk = self.disk.read_file(path), SimulatedDisk(now_ms=lambda: self.now().timestamp)
        self.disk.make_folder(self._path)
        self.disk.write_file(path, content)

    def stop(self) -> None:
        """Begin a controlled shutdown."""

        def stop() -> None:
            self.broker.carry_out(self.member.stop(self.now()))

        self.run(stop)

    def _close(self) -> None:
        epoch = self.member.membership.lifecycle.broker_epoch
        try:
            self.directory.close(self.replicas.high_watermarks(), epoch, self.replicas.logs_loaded)
        except (OSError, StorageError):
            self.kill()
            return
        self.incarnation += 1
        self._end()


class ControllerNode(SimulatedNode):
    """A controller: the only one, one of several `voters`, or one that finds the others by `bootstrap` (KIP-853). Ports are
    ids here. `quorum`: its rules as a voter, if they are not those of its release.
    """

    apis = CONTROLLER_APIS

    def __init__(
        self,
        node_id: int,
        clock: VirtualClock,
        network: Network,
        random: Random,
        rules: Controller,
        settings: dict[str, str],
        voters: Sequence[int] = (),
        bootstrap: Sequence[int] = (),
        quorum: QuorumProtocol | None = None,
    ) -> None:
        super().__init__(node_id, clock, network, random)
        self.rules, self.quorum = rules, quorum
        self._directory_id = NO_DIRECTORY
        self.note_voter: StepRecorder | None = None
        """A listener to each step as a voter."""
        others = ",".join(f"127.0.0.1:{one}" for one in bootstrap)
        own = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{one}" for one in voters or (node_id,)),
            **({"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": others} if bootstrap else {}),
            "listeners": f"CONTROLLER://127.0.0.1:{node_id}",
            "log.dirs": f"/sim/{node_id}",
        }
        self.config = ControllerConfig({**settings, **own})

    @property
    def _draws(self) -> str:
        """The seed of the times that this process waits by chance: other ones than those of other nodes, and starts."""
        return f"{self.node_id} {self.incarnation} {self.random.getstate()[1][0]}"

    def format(self, voters: KnownVoters) -> None:
        """Format its disk with the voters that the cluster begins with. Raises: `StorageError`, if it is not empty."""
        format_controller(self.disk, f"/sim/{self.node_id}", CLUSTER_ID, self.node_id, voters, self.now())

    @property
    def key(self) -> ReplicaKey:
        """This replica, with the directory of its last start; without one while its disk is lost."""
        return ReplicaKey(BrokerId(self.node_id), self._directory_id)

    def lose_disk(self) -> None:
        """Lose all files, while it is down: its next start is that of another replica."""
        self.disk, self._directory_id = SimulatedDisk(now_ms=lambda: self.now().timestamp), NO_DIRECTORY

    def revive(self) -> bool:
        """Start it, if it is down; whether it was."""
        was_down = not self.up
        if was_down:
            self.start()
        return was_down

    def _start(self) -> None:
        now, path = self.now(), f"/sim/{self.node_id}"
        self.directory = LogDirectory.open(path, self.disk, CLUSTER_ID, self.node_id)
        log = MetadataLog(self.disk, Path(path), now)
        log.read = read_once
        self.core = core = ControllerCore(self.config, self.rules, log, Random(self._draws), self.quorum)
        core.deciding.note, core.voter.note = self.note, self.note_voter
        core.cluster_id = CLUSTER_ID
        core.voter.directory = self._directory_id = DirectoryId(id_bytes(self.directory.directory_id))
        self.shell = shell = _ControllerShell(core, log)
        shell.now, shell.coded = self.now, self.network.coded
        shell.channels = _ControllersSender(self, core, shell)
        shell.on_failure = lambda: self.clock.at(self.clock.now_ms, self.in_this_run(self.kill))
        shell.carry_out(core.start(now))
        start_timers(core, now)
        self.serves = True
        self.network.servers[self.node_id] = self
