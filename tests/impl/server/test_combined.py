"""A broker and its controller in one process: two parties that talk, and share no more than the metadata log."""

import asyncio
import gc
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.impl.broker.calls import Ask, Call, ChannelKey, Effect
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.controller import dispatch
from kspec.impl.metadata.election_file import QUORUM_STATE
from kspec.impl.metadata.files import FOLDER
from kspec.impl.requests.topics import create_missing
from kspec.impl.server import clock
from kspec.impl.server.combined import CombinedShell
from kspec.impl.server.files import BrokerFailureError
from kspec.impl.server.startup import RunningBroker
from kspec.impl.wire.values import Message
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.quorum import transitions
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Instant, TimestampMs

PLACE = TopicPartition("kept", 0)


class OneNode:
    """A broker with its controller, in this process, without an event loop: its clocks are moved by the test."""

    def __init__(self, folder: Path) -> None:
        config = BrokerConfig({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"})
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.running = RunningBroker(config, rules_of("4.4", None), self._socket)
        assert isinstance(self.running.broker, CombinedShell)
        self.shell = self.running.broker
        self.served = 0
        self.shell.on_serve = self._serve
        self._ahead_ms = 0
        self.shell.now = self.now
        self.running.join()
        self.shell.deliver()

    def _serve(self) -> None:
        self.served += 1

    def now(self) -> Instant:
        now = clock.now()
        return Instant(now.after(self._ahead_ms), TimestampMs(now.timestamp + self._ahead_ms))

    def move_on(self, ms: int) -> None:
        """So much time goes by, in which nothing is done: as for a process that is paused."""
        self._ahead_ms += ms
        self.shell.do_what_is_due()

    def create(self) -> None:
        """Create a topic as if a client had asked for what is not there."""
        self.shell.carry_out(create_missing(self.running.core, [PLACE.topic], self.now()))
        self.shell.deliver()

    @property
    def leader_epoch(self) -> int:
        replica = self.running.core.replicas[PLACE]
        assert replica.partition.leader == self.running.core.node_id
        return int(replica.partition.leader_epoch)

    def close(self) -> None:
        self.running.close()
        self._socket.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OneNode]:
    made = OneNode(tmp_path)
    yield made
    made.close()


def test_it_is_registered_and_unfenced_as_in_a_cluster_before_it_serves(node: OneNode) -> None:
    registration = node.running.core.cluster.registration
    assert registration is not None
    assert not registration.fenced
    assert node.running.member.membership.lifecycle.state == BrokerState.RUNNING
    assert node.served == 1


def test_a_topic_that_was_created_has_its_leader_when_the_controller_has_answered(node: OneNode) -> None:
    node.create()
    assert node.leader_epoch == 0


def test_a_folder_of_controller_epoch_0_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As brokers with their controller in them once began."""
    with monkeypatch.context() as patched:
        patched.setattr(transitions, "next_epoch", lambda epoch: epoch)
        before = OneNode(tmp_path)
        before.create()
        before.close()
        assert before.shell.controller.voter.epoch == 0
    (tmp_path / FOLDER / QUORUM_STATE).unlink()
    after = OneNode(tmp_path)
    assert after.shell.controller.voter.epoch == 1
    assert after.served == 1
    assert after.leader_epoch > 0
    after.close()


def test_a_broker_that_was_killed_is_no_duplicate_of_itself(tmp_path: Path) -> None:
    before = OneNode(tmp_path)
    before.create()
    before.running.directory.close({}, None)  # the lock is free, and nobody has told the controller
    after = OneNode(tmp_path)
    assert after.served == 1
    assert after.leader_epoch > 0
    after.close()


def test_a_pause_longer_than_the_session_fences_nobody_whose_heartbeat_comes_first(node: OneNode) -> None:
    node.create()
    node.move_on(10)
    epoch = node.leader_epoch
    node.move_on(20_000)
    assert node.leader_epoch == epoch
    registration = node.running.core.cluster.registration
    assert registration is not None
    assert not registration.fenced


def test_a_request_that_the_controller_fails_at_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat, failures = dispatch.HANDLERS["BrokerHeartbeat"], [RuntimeError("deep")]

    def fail_once(core: Any, call: Call, now: Instant) -> list[Effect]:
        if failures:
            raise failures.pop()
        return heartbeat(core, call, now)

    monkeypatch.setitem(dispatch.HANDLERS, "BrokerHeartbeat", fail_once)
    node = OneNode(tmp_path)
    assert node.served == 0
    node.move_on(200)
    assert node.served == 1
    node.close()


def test_a_request_to_another_broker_leaves_the_process(node: OneNode) -> None:
    asked: list[Ask] = []

    class AskRecorder:
        def ask(self, one: Ask) -> None:
            asked.append(one)

        def close(self) -> None:
            """Nothing is open."""

    node.shell.channels = AskRecorder()
    ask = Ask(ChannelKey(2, "fetch"), "Fetch", Message(), lambda answer, now: [])
    node.shell.carry_out([ask])
    assert asked == [ask]


@contextmanager
def serving(folder: Path) -> Iterator[asyncio.AbstractEventLoop]:
    """The event loop of a broker that serves."""
    config = BrokerConfig({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"})
    thresholds, loop = gc.get_threshold(), asyncio.new_event_loop()
    running = RunningBroker(config, rules_of("4.4", None), socket.create_server(("127.0.0.1", 0)))
    try:
        gc.unfreeze()
        running.start(loop)
        loop.run_until_complete(asyncio.wait_for(running.decided.wait(), 60))
        assert running.serves
        yield loop
        running.stop()
        loop.run_until_complete(asyncio.wait_for(running.ended.wait(), 60))
        running.close()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        loop.close()


def test_what_was_loaded_at_the_start_is_not_looked_at_by_the_garbage_collector(tmp_path: Path) -> None:
    with serving(tmp_path):
        assert gc.get_freeze_count() > 0


def test_housekeeping_leaves_a_partition_alone_whose_files_could_not_be_opened(tmp_path: Path) -> None:
    before = OneNode(tmp_path)
    before.create()
    before.close()
    shutil.rmtree(tmp_path / "kept-0")
    (tmp_path / "kept-0").write_text("a file", encoding="utf-8")
    failed: list[dict[str, Any]] = []
    with serving(tmp_path) as loop:
        loop.set_exception_handler(lambda _, context: failed.append(context))
        loop.run_until_complete(asyncio.sleep(1.2))
    assert failed == []


def test_a_member_that_nobody_registers_ends_without_having_served(tmp_path: Path) -> None:
    OneNode(tmp_path).close()
    given = {"process.roles": "broker", "controller.quorum.voters": "100@127.0.0.1:1", "log.dirs": str(tmp_path)}
    config = BrokerConfig({**given, "listeners": "PLAINTEXT://127.0.0.1:0", "initial.broker.registration.timeout.ms": "1"})
    loop, thresholds = asyncio.new_event_loop(), gc.get_threshold()
    with closing(loop), closing(socket.create_server(("127.0.0.1", 0))) as listening:
        running = RunningBroker(config, rules_of("4.4", None), listening)
        running.start(loop)
        loop.run_until_complete(asyncio.wait_for(running.ended.wait(), 60))
        assert not running.serves
        with pytest.raises(BrokerFailureError, match="no controller has registered broker 1"):
            running.close()
    gc.set_threshold(*thresholds)
