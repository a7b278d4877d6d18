"""The load of a coordinator's log ends, whatever becomes of the log: its groups are there, or have no coordinator."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.impl.broker.calls import Aside, Effect
from kspec.impl.broker.replica import Replica
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.requests import coordinator_log, group_log, groups
from kspec.impl.requests.topics import create_offsets_topic
from kspec.impl.server import clock
from kspec.impl.server.combined import CombinedShell
from kspec.impl.server.shell import Shell
from kspec.impl.server.startup import RunningBroker
from kspec.impl.storage import StorageError
from kspec.impl.storage.segment import FileSlice
from kspec.spec.coordinator.refusals import GroupRequest
from kspec.spec.coordinator.runtime import LoadedGroups
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerId, Epoch, Error, GroupId, Offset
from tests.limits.turns import Turns

ResponseT = TypeVar("ResponseT", bound=groups.GroupResponse)
COMMITS, PIECE = 60, 500
PLACE = TopicPartition(group_log.TOPIC, 0)


class LoadingBroker:
    """A broker in this process whose log of groups has begun to be read: nothing goes on before `go_on` is called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config = BrokerConfig(
            {
                "node.id": "1",
                "log.dirs": str(folder),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "offsets.topic.num.partitions": "1",
                "offsets.topic.replication.factor": "1",
            }
        )
        monkeypatch.setattr(coordinator_log, "LOADED_AT_ONCE", PIECE)
        monkeypatch.setattr(coordinator_log, "READ_BYTES", PIECE)
        self.aside: list[Aside] = []
        self.start()
        self.running.broker.carry_out(create_offsets_topic(self.running.core, clock.now()))
        self.deliver()
        for number in range(COMMITS):
            assert self.commit(f"group-{number}", number) == Error.NONE
        self.stop()
        monkeypatch.setattr(Shell, "_do_aside", lambda _, effect: self.aside.append(effect))
        self.start()
        assert self.answer("group-0") == (Error.COORDINATOR_LOAD_IN_PROGRESS, {})

    def start(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.running = RunningBroker(self.config, rules_of("next", None), self.socket)
        self.running.broker.on_serve = lambda: None
        self.running.join()
        self.deliver()

    def stop(self) -> None:
        self.running.close()
        self.socket.close()

    def deliver(self) -> None:
        """Let the broker talk to its controller."""
        assert isinstance(self.running.broker, CombinedShell)
        self.running.broker.deliver()

    @property
    def groups(self) -> groups.Groups:
        return self.running.broker.groups

    @property
    def replica(self) -> Replica:
        return self.running.core.replicas[PLACE]

    @property
    def is_loading(self) -> bool:
        return self.groups.log.loads_any()

    def ask(self, request: GroupRequest, kind: type[ResponseT]) -> ResponseT:
        """Hand a request to the coordinator: its answer."""
        found: list[ResponseT] = []

        def answered(answer: ResponseT) -> list[Effect]:
            found.append(answer)
            return []

        self.running.broker.carry_out(self.groups.decide(request, kind, answered, clock.now()))
        (answer,) = found
        return answer

    def commit(self, group: str, offset: int) -> Error:
        request = OffsetCommitRequest(GroupId(group), (OffsetToCommit("t", 0, Offset(offset)),))
        return self.ask(request, OffsetCommitResponse).partitions[0].error

    def answer(self, group: str) -> tuple[Error, dict[tuple[str, int], int]]:
        found = self.ask(OffsetFetchRequest(GroupId(group), None), OffsetFetchResponse)
        return found.error, {(one.topic, one.partition): one.offset for one in found.partitions}

    def known(self) -> set[int]:
        """The groups whose offset is there, by their numbers. All answers say that the load is over."""
        answers = [self.answer(f"group-{number}") for number in range(COMMITS)]
        assert all(error == Error.NONE for error, _ in answers)
        assert all(not offsets or offsets == {("t", 0): number} for number, (_, offsets) in enumerate(answers))
        return {number for number, (_, offsets) in enumerate(answers) if offsets}

    def move_start(self, offset: int) -> None:
        """The log start moves, as by retention."""
        self.replica.files.start_at(Offset(offset), clock.now())
        local = self.replica.partition.local
        self.replica.partition = self.replica.partition._replace(local=local._replace(log=self.replica.files.log))

    def go_on(self, pieces: int = 1_000_000) -> None:
        """Read more of the log, as far as there is more to read."""
        turns = Turns(1000)
        while self.aside and pieces:
            turns.go()
            effect = self.aside.pop(0)
            self.running.broker.carry_out(effect.work()(clock.now()))
            pieces -= 1


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadingBroker]:
    made = LoadingBroker(tmp_path / "logs", monkeypatch)
    yield made
    made.stop()


def test_all_is_loaded_piece_by_piece(broker: LoadingBroker) -> None:
    broker.go_on(pieces=3)
    assert broker.is_loading
    broker.go_on()
    assert broker.known() == set(range(COMMITS))


def test_the_log_start_moves_past_what_was_read(broker: LoadingBroker) -> None:
    """Records that were read before count, as it does for a coordinator that had read all of it."""
    broker.go_on(pieces=2)
    broker.move_start(40)
    broker.go_on()
    assert set(range(40, COMMITS)) <= broker.known()
    assert broker.known() < set(range(COMMITS))


def test_all_of_the_log_is_deleted(broker: LoadingBroker) -> None:
    broker.go_on(pieces=1)
    broker.move_start(COMMITS)
    broker.go_on()
    assert not broker.is_loading
    assert broker.known() < set(range(COMMITS))
    assert broker.commit("group-0", 0) == Error.NONE


@pytest.mark.parametrize("read", [1, 5, 12])
def test_the_log_is_cut(broker: LoadingBroker, read: int) -> None:
    """Records that were cut off are unknown, even if they were read before."""
    broker.go_on(pieces=read)
    assert broker.is_loading
    replica = broker.replica
    replica.files.truncate_to(Offset(10))
    local = replica.partition.local._replace(log=replica.files.log, high_watermark=Offset(10))
    replica.partition = replica.partition._replace(local=local)
    broker.go_on()
    assert broker.known() == set(range(10))


def test_the_leader_epoch_moves_on(broker: LoadingBroker) -> None:
    """A broker that still leads has lost nothing: the load goes on."""
    broker.go_on(pieces=2)
    replica = broker.replica
    replica.partition = replica.partition._replace(leader_epoch=Epoch(replica.partition.leader_epoch + 1))
    broker.running.broker.carry_out(broker.groups.role_changed(replica, clock.now()))
    broker.go_on()
    assert broker.known() == set(range(COMMITS))


def test_another_broker_leads_now_and_then_this_one_again(broker: LoadingBroker) -> None:
    broker.go_on(pieces=2)
    replica = broker.replica
    led = replica.partition
    replica.partition = led._replace(leader=BrokerId(2), leader_epoch=Epoch(led.leader_epoch + 1))
    broker.running.broker.carry_out(broker.groups.role_changed(replica, clock.now()))
    assert broker.answer("group-0") == (Error.NOT_COORDINATOR, {})
    replica.files.truncate_to(Offset(10))
    local = led.local._replace(log=replica.files.log, high_watermark=Offset(10))
    replica.partition = led._replace(leader_epoch=Epoch(led.leader_epoch + 2), local=local)
    broker.running.broker.carry_out(broker.groups.role_changed(replica, clock.now()))
    assert broker.is_loading or broker.known() == set(range(10))
    broker.go_on()
    assert broker.known() == set(range(10))


ERRORS = [StorageError("damaged"), OSError(5, "Input/output error"), AssertionError(), MemoryError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", ["find", "read", "replay"])
def test_a_failure_ends_the_load(
    broker: LoadingBroker, error: Exception, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The groups have no coordinator then, and one line says why. Another leadership begins anew."""

    def fail(*_: object, **__: object) -> LoadedGroups:
        raise error

    broker.go_on(pieces=2)
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        if step == "find":
            patched.setattr(broker.replica.files, "read", fail)
        elif step == "read":
            patched.setattr(FileSlice, "bytes", fail)
        else:
            patched.setattr(group_log, "load_groups", fail)
        broker.go_on()
    assert not broker.is_loading
    assert broker.answer("group-0") == (Error.NOT_COORDINATOR, {})
    assert broker.commit("group-0", 0) == Error.NOT_COORDINATOR
    assert [line for line in caplog.messages if "__consumer_offsets-0 cannot be read" in line] == caplog.messages
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith(str(error) or type(error).__name__)
    broker.running.broker.carry_out(broker.groups.role_changed(broker.replica, clock.now()))
    broker.go_on()
    assert broker.known() == set(range(COMMITS))


def test_the_partition_is_deleted(broker: LoadingBroker) -> None:
    broker.go_on(pieces=2)
    core = broker.running.core
    replica = core.replicas[PLACE]
    replica.files.delete(clock.now().monotonic)
    del core.replicas[PLACE]
    broker.go_on()
    assert not broker.is_loading
    core.replicas[PLACE] = replica


def test_an_exception_in_a_thread_is_no_load_for_ever(broker: LoadingBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a real event loop and real threads."""
    monkeypatch.undo()
    broker.stop()
    monkeypatch.setattr(coordinator_log, "LOADED_AT_ONCE", PIECE)
    monkeypatch.setattr(coordinator_log, "READ_BYTES", PIECE)

    def fail(*_: object) -> LoadedGroups:
        raise RecursionError("deep")

    monkeypatch.setattr(group_log, "load_groups", fail)
    loop = asyncio.new_event_loop()
    broker.socket = socket.create_server(("127.0.0.1", 0))
    broker.running = RunningBroker(broker.config, rules_of("next", None), broker.socket)
    broker.running.broker.on_serve = lambda: None
    broker.running.broker.use(loop)
    broker.running.join()
    broker.deliver()
    assert broker.is_loading

    async def until_it_is_over() -> None:
        turns = Turns(seconds=60)
        while broker.is_loading:
            turns.go()
            await asyncio.sleep(0.01)

    loop.run_until_complete(until_it_is_over())
    loop.close()
    assert broker.answer("group-0") == (Error.NOT_COORDINATOR, {})
