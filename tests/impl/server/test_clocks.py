"""A broker whose wall clock jumps while it runs: time-outs go on as before, and timestamps follow the wall clock."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.cluster.clocks import MISSING, faketime_library, move_clock
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.times import YEAR_MS

HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000
FAR = [60_000, -60_000, HOUR_MS, -HOUR_MS, 30 * YEAR_MS, -30 * YEAR_MS, -60 * YEAR_MS]
JUMPS = marked(FAR, nightly=[-60_000, HOUR_MS, -HOUR_MS, -60 * YEAR_MS])
NEAR_MS = 30_000
"""The longest time between two looks at the clock: an emergency, and much less than any jump."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(faketime_library() is None, reason=f"NOT RUN: clocks that jump: {MISSING}"),
]


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """By how much the clock of the test's broker is off."""
    move_clock(tmp_path / "clock", 0)
    return tmp_path / "clock"


@pytest.fixture
def broker(tmp_path: Path, clock: Path) -> Iterator[BrokerProcess]:
    """It looks often at what is old, and a group waits a second for further members."""
    often = ("log.retention.check.interval.ms", "offsets.retention.check.interval.ms")
    overrides = [*(f"{name}=100" for name in often), "group.initial.rebalance.delay.ms=1000", "log.initial.task.delay.ms=0"]
    with BrokerProcess(tmp_path / "logs", overrides=overrides, clock=clock) as running:
        yield running


def now_ms() -> int:
    return int(time.time() * 1000)


def records(at_ms: int, count: int = 1, value: bytes = b"v") -> bytes:
    return new_batch([(at_ms, None, value)] * count)


def start_of(client: BrokerClient, topic: str) -> int:
    """The log start of a topic."""
    asked = Message(name=topic, partitions=[Message(partition_index=0, timestamp=-2)])
    answer = client.call("ListOffsets", 5, replica_id=-1, isolation_level=0, topics=[asked])
    return int(answer.topics[0].partitions[0].offset)


def joining(group: str) -> dict[str, object]:
    protocols = [Message(name="range", metadata=b"")]
    times = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": 5_000}
    return {"group_id": group, **times, "member_id": "", "protocol_type": "consumer", "protocols": protocols}


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_fetch_that_waits_ends_in_its_time(broker: BrokerProcess, clock: Path, jump_ms: int) -> None:
    with BrokerClient(broker.port) as client:
        client.create("t")
        for first, then in ((0, jump_ms), (jump_ms, 0)):
            move_clock(clock, first)
            wanted = Message(topic="t", partitions=[Message(partition=0, fetch_offset=0, partition_max_bytes=1000)])
            begun = time.monotonic()
            client.send("Fetch", 12, Message(max_wait_ms=1_000, min_bytes=1, max_bytes=1000, topics=[wanted]))
            time.sleep(0.3)
            move_clock(clock, then)
            assert client.receive("Fetch", 12).error_code == 0
            assert 0.95 <= time.monotonic() - begun < 0.95 + NEAR_MS / 1000


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_member_joins_and_keeps_its_session(broker: BrokerProcess, clock: Path, jump_ms: int) -> None:
    """The clock jumps while it waits for its first generation, then there and back between its heartbeats."""
    with BrokerClient(broker.port) as client:
        wait_until(lambda: client.call("FindCoordinator", 3, key="g", key_type=0).error_code == 0)
        begun = time.monotonic()
        client.send("JoinGroup", 3, Message(**joining("g")))
        time.sleep(0.3)
        move_clock(clock, jump_ms)
        joined = client.receive("JoinGroup", 3)
        assert joined.error_code == 0
        assert 0.95 <= time.monotonic() - begun < 0.95 + NEAR_MS / 1000
        member = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
        assert client.call("SyncGroup", 3, **member, assignments=[]).error_code == 0
        for ms in (0, jump_ms, 0):
            move_clock(clock, ms)
            time.sleep(0.2)
            assert client.call("Heartbeat", 3, **member).error_code == 0


def test_a_member_that_is_silent_loses_its_session_while_the_clock_stands_still(broker: BrokerProcess, clock: Path) -> None:
    """The wall clock goes back by as much as passes: by that clock no time would pass."""
    with BrokerClient(broker.port) as client:
        wait_until(lambda: client.call("FindCoordinator", 3, key="g", key_type=0).error_code == 0)
        joined = client.call("JoinGroup", 3, **joining("g"))
        member = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
        assert client.call("SyncGroup", 3, **member, assignments=[]).error_code == 0
        begun = time.monotonic()
        turns = Turns()
        while time.monotonic() - begun < 7:
            turns.go()
            move_clock(clock, -round((time.monotonic() - begun) * 1000))
            time.sleep(0.1)
        assert Error(client.call("Heartbeat", 3, **member).error_code) == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_the_time_of_an_append_is_that_of_the_wall_clock(broker: BrokerProcess, clock: Path, jump_ms: int) -> None:
    """Also when that is before what the log has already, and the log goes on."""
    with BrokerClient(broker.port) as client:
        client.create("t", message_timestamp_type="LogAppendTime", retention_ms="-1")
        for offset, ahead_ms in enumerate((0, jump_ms, 0)):
            move_clock(clock, ahead_ms)
            answer = client.produce("t", records(7))
            assert (answer.error_code, answer.base_offset) == (0, offset)
            assert abs(answer.log_append_time_ms - now_ms() - ahead_ms) < NEAR_MS
        asked = Message(name="t", partitions=[Message(partition_index=0, timestamp=now_ms() - NEAR_MS)])
        found = client.call("ListOffsets", 5, replica_id=-1, isolation_level=0, topics=[asked]).topics[0].partitions[0]
        assert (found.error_code, found.offset) == (0, 0)


def test_a_record_may_be_as_far_ahead_of_the_wall_clock_as_the_setting_says(broker: BrokerProcess, clock: Path) -> None:
    with BrokerClient(broker.port) as client:
        client.create("t", message_timestamp_after_max_ms=str(HOUR_MS))
        for ahead_ms, error in ((0, Error.NONE), (-2 * HOUR_MS, Error.INVALID_TIMESTAMP), (2 * HOUR_MS, Error.NONE)):
            move_clock(clock, ahead_ms)
            assert Error(client.produce("t", records(now_ms())).error_code) == error


def test_what_is_old_by_the_wall_clock_is_deleted_and_nothing_else(broker: BrokerProcess, clock: Path) -> None:
    with BrokerClient(broker.port) as client:
        client.create("t", retention_ms=str(10 * HOUR_MS), segment_bytes=str(1 << 20))
        for _ in range(5):
            assert client.produce("t", records(now_ms(), value=b"v" * 700_000)).error_code == 0
        for ahead_ms in (9 * HOUR_MS, -9 * HOUR_MS, -30 * YEAR_MS):
            move_clock(clock, ahead_ms)
            time.sleep(0.5)
            assert start_of(client, "t") == 0
        move_clock(clock, 11 * HOUR_MS)
        wait_until(lambda: start_of(client, "t") >= 4)


def test_committed_offsets_of_an_empty_group_are_forgotten_by_the_wall_clock(broker: BrokerProcess, clock: Path) -> None:
    """After `offsets.retention.minutes`, a week. Its records say when the offset was committed, so only that clock tells."""
    with BrokerClient(broker.port) as client:
        client.create("t")
        wait_until(lambda: client.call("FindCoordinator", 3, key="g", key_type=0).error_code == 0)
        offset = Message(partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata="")
        alone = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
        topics = [Message(name="t", partitions=[offset])]
        assert client.call("OffsetCommit", 6, **alone, topics=topics).topics[0].partitions[0].error_code == 0

        def committed() -> int:
            asked = [Message(name="t", partition_indexes=[0])]
            answer = client.call("OffsetFetch", 6, group_id="g", topics=asked)
            return int(answer.topics[0].partitions[0].committed_offset)

        for days in (6, -6, 0):
            move_clock(clock, days * DAY_MS)
            time.sleep(0.5)
            assert committed() == 5
        move_clock(clock, 8 * DAY_MS)
        wait_until(lambda: committed() == -1)


@pytest.mark.parametrize("ahead_ms", marked([-30 * YEAR_MS, -60 * YEAR_MS, 30 * YEAR_MS], nightly=[-60 * YEAR_MS]))
def test_a_start_with_another_time_than_the_log_has(tmp_path: Path, clock: Path, ahead_ms: int) -> None:
    """As on a machine whose clock has lost its battery: before all that was written, before 1970, or long after."""
    with BrokerProcess(tmp_path / "logs", clock=clock) as broker:
        with BrokerClient(broker.port) as client:
            client.create("t", retention_ms="-1", message_timestamp_type="LogAppendTime")
            assert client.produce("t", records(1, 3)).error_code == 0
        for ms, kills in ((ahead_ms, False), (0, True), (ahead_ms, True), (0, False)):
            broker.kill() if kills else broker.stop()
            move_clock(clock, ms)
            broker.start()
            with BrokerClient(broker.port) as client:
                answer = client.produce("t", records(1))
                assert answer.error_code == 0
                assert abs(answer.log_append_time_ms - now_ms() - ms) < NEAR_MS
                read = client.fetch("t", 0)
                assert read.error_code == 0
                assert read.high_watermark == answer.base_offset + 1


def test_a_start_while_the_clock_jumps(tmp_path: Path, clock: Path) -> None:
    over = threading.Event()

    def jump() -> None:
        turns = Turns()
        while not over.is_set():
            turns.go()
            for ms in FAR:
                move_clock(clock, ms)
                time.sleep(0.003)
        move_clock(clock, 0)

    broker = BrokerProcess(tmp_path / "logs", clock=clock)
    for kills in (False, True):
        over.clear()
        jumping = threading.Thread(target=jump)
        jumping.start()
        try:
            broker.start()
        finally:
            over.set()
            jumping.join()
        with BrokerClient(broker.port) as client:
            if not kills:
                client.create("t", message_timestamp_type="LogAppendTime", retention_ms="-1")
            answer = client.produce("t", records(now_ms()))
            assert answer.error_code == 0
            assert abs(answer.log_append_time_ms - now_ms()) < NEAR_MS
        broker.kill() if kills else broker.stop()
    assert broker.replay_traces() > 0
