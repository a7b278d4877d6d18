"""Clients that behave badly: what one of them may cost is bounded, and its neighbours have their turn."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import pytest

from kspec.impl.server.network import connection as network
from kspec.impl.server.network.connection import LARGE_ANSWERS, Connection, Traffic
from kspec.impl.server.network.receiving import FIRST_PART, Frames
from tests.impl.server.test_connection import NamedSocket, RecordingLoop, framed, some_frames
from tests.limits.turns import Turns

ANSWER = bytes(256 << 10)


class EagerAnswerer:
    """Answers each request at once, with much; it counts what it has made."""

    largest_frame = 200 << 20

    def __init__(self, answer: bytes = ANSWER) -> None:
        self.answer = answer
        self.handled: list[str] = []
        self.on_handled: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Nothing is put off."""

    def settle(self, connection: Connection, last: bool) -> None:
        """Nothing was put off."""

    def on_frame(self, connection: Connection, frame: memoryview) -> None:
        self.handled.append(connection.host)
        self.on_handled()
        connection.answer(connection.new_place(), [self.answer])

    def on_closed(self, connection: Connection) -> None:
        """The test looks at the connection."""

    def may_read(self, size: int) -> bool:
        return True


class Room:
    """Some clients of one process."""

    def __init__(self) -> None:
        self.loop, self.owner, self.traffic = RecordingLoop(), EagerAnswerer(), Traffic()
        self.sockets: list[socket.socket] = []

    def join(self, name: str) -> tuple[Connection, socket.socket]:
        """One more client."""
        client, server = socket.socketpair()
        client.setblocking(False)
        server.setblocking(False)
        self.sockets += [client, server]
        return Connection(self.loop, cast(Any, NamedSocket(server)), self.owner, (name, 1), self.traffic), client


@pytest.fixture
def room() -> Iterator[Room]:
    """An empty one."""
    made = Room()
    yield made
    for one in made.sockets:
        one.close()


def turns(room: Room, count: int = 20) -> None:
    for _ in range(count):
        room.loop.turn()


def test_of_a_client_that_reads_nothing_one_request_more_is_handled_than_the_system_takes(room: Room) -> None:
    one, client = room.join("deaf")
    client.send(framed(*some_frames([20] * 200)))
    turns(room)
    handled = len(room.owner.handled)
    assert handled * len(ANSWER) <= one.bytes_out + len(ANSWER)
    assert 0 < one.held_bytes < len(ANSWER) + 8_192
    turns(room)
    assert len(room.owner.handled) == handled


def test_it_gets_all_its_answers_once_it_reads(room: Room) -> None:
    _, client = room.join("slow")
    client.send(framed(*some_frames([20] * 50)))
    received = 0
    for _ in range(5_000):
        turns(room, 1)
        for writer in list(room.loop.writers.values()):
            writer()
        try:
            received += len(client.recv(1 << 20))
        except BlockingIOError:
            continue
        if received == 50 * len(ANSWER):
            break
    assert received == 50 * len(ANSWER)
    assert room.owner.handled == ["slow"] * 50
    assert room.traffic.unsent == 0
    assert not room.traffic.stuck


def test_who_asks_much_gives_way(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes a millisecond here; a client with 500 has few of them handled before another with one."""
    now = [0.0]
    monkeypatch.setattr(network, "perf_counter", lambda: now[0])
    room.owner.answer = b"short"

    def a_millisecond() -> None:
        now[0] += 0.001

    room.owner.on_handled = a_millisecond
    greedy = [room.join(f"greedy {number}")[1] for number in range(5)]
    _, modest = room.join("modest")
    for one in greedy:
        one.send(framed(*some_frames([20] * 500)))
    turns(room, 1)
    assert len(room.owner.handled) <= 5 * 3
    modest.send(framed(*some_frames([20])))
    before = len(room.owner.handled)
    turns(room, 1)
    assert "modest" in room.owner.handled
    assert len(room.owner.handled) - before <= 1 + 2 * network.ROUND_SECONDS / 0.001
    turns(room, 2_000)
    assert {name: room.owner.handled.count(name) for name in set(room.owner.handled)} == {
        "modest": 1,
        **{f"greedy {number}": 500 for number in range(5)},
    }


def test_who_holds_most_and_reads_nothing_goes_when_all_hold_too_much(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(network, "MOST_UNSENT_IN_ALL", len(ANSWER))
    joined = [room.join(f"deaf {number}") for number in range(8)]
    for _, client in joined:
        client.send(framed(*some_frames([20] * 10)))
    turns(room)
    assert room.traffic.unsent <= len(ANSWER)
    assert any(one.closed for one, _ in joined)
    assert "wait for it, and it reads none" in caplog.text
    for one, _ in joined:
        one.close()
    assert room.traffic.unsent == 0
    assert not room.traffic.stuck


def test_answers_that_are_read_do_not_wait_for_each_other(room: Room) -> None:
    """Large ones leave before the next is made."""
    assert len(ANSWER) > LARGE_ANSWERS
    _, client = room.join("quick")
    client.send(framed(*some_frames([20])))
    turns(room, 1)
    assert client.recv(4) == ANSWER[:4]


def test_what_is_announced_costs_no_more_than_what_has_come(room: Room) -> None:
    one, client = room.join("boaster")
    client.send(struct.pack(">i", 100 << 20) + bytes(150 << 10))
    turns(room, 3)
    assert one.held_bytes <= FIRST_PART
    assert room.owner.handled == []


def test_a_large_frame_comes_whole_in_memory_that_grows() -> None:
    class FrameLimits:
        largest_frame = 64 << 20

        def may_read(self, size: int) -> bool:
            return True

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    content = bytes(range(256)) * (5 * FIRST_PART // 256)
    left = memoryview(struct.pack(">i", len(content)) + content)
    frames = Frames(FrameLimits())
    frames.take_up()
    found = None
    turns = Turns()
    while found is None:
        turns.go()
        with suppress(BlockingIOError):
            left = left[theirs.send(left) :] if left else left
        try:
            frames.receive(ours)
        except BlockingIOError:
            continue
        found = frames.next()
    assert found == content
    ours.close()
    theirs.close()
