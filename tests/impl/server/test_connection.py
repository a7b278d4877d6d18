"""A connection by itself: frames cut anywhere, many at once, their answers in order and together, and the limits."""

import random
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from kspec.impl.server.network.connection import MOST_UNANSWERED, Connection
from kspec.impl.server.network.receiving import COPIED, LARGE, SHARED, SHARED_MEMORY, Frames, RefusedFrameError
from kspec.impl.wire.writing import Part, size_of
from tests.limits.turns import Turns


class RecordingLoop:
    """An event loop whose turns the test takes."""

    def __init__(self) -> None:
        self.readers: dict[Any, Callable[..., Any]] = {}
        self.writers: dict[Any, Callable[..., Any]] = {}
        self.soon: list[Callable[..., Any]] = []

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: Any) -> None:
        self.readers.pop(fd, None)

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.writers[fd] = callback

    def remove_writer(self, fd: Any) -> None:
        self.writers.pop(fd, None)

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in (*soon, *self.readers.values()):
            callback()


class RecordingOwner:
    """Keeps what came. It answers each frame with the frame's number, at once or when the frames are settled."""

    largest_frame = 4 << 20

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.seen: list[memoryview] = []
        self.settled: list[int] = []
        self.answers: list[tuple[int, int]] | None = []
        self.keeps = False
        self.puts_off = True
        self.room = 1 << 30
        self.closed = 0

    def begin(self) -> None:
        assert self.keeps or not self.seen

    def on_frame(self, connection: Connection, frame: memoryview) -> None:
        place = connection.new_place()
        if self.answers is not None:
            self.answers.append((place, len(self.frames)))
        self.frames.append(bytes(frame))
        self.seen.append(frame)
        if not self.puts_off:
            self.answer_all(connection)

    def settle(self, connection: Connection, last: bool) -> None:
        """Until now nothing has been received over the frames that were given."""
        given = self.frames[len(self.frames) - len(self.seen) :]
        assert [bytes(frame) for frame in self.seen] == given
        self.settled.append(len(self.seen))
        if not self.keeps:
            self.seen = []
        self.answer_all(connection)

    def answer_all(self, connection: Connection) -> None:
        answers, self.answers = self.answers, [] if self.answers is not None else None
        for place, number in answers or []:
            connection.answer(place, [struct.pack(">i", number)])

    def on_closed(self, connection: Connection) -> None:
        self.closed += 1

    def may_read(self, size: int) -> bool:
        return size <= self.room


class ConnectedPair:
    """A connection, and its client."""

    def __init__(self) -> None:
        self.client, self.server = socket.socketpair()
        self.client.setblocking(False)
        self.server.setblocking(False)
        self.loop, self.owner = RecordingLoop(), RecordingOwner()
        self.connection = Connection(self.loop, cast(Any, NamedSocket(self.server)), self.owner, ("client", 1))

    def send(self, data: bytes) -> None:
        """Send everything, while the connection takes its turns."""
        left = memoryview(data)
        turns = Turns()
        while left:
            turns.go()
            try:
                left = left[self.client.send(left) :]
            except BlockingIOError:
                self.loop.turn()
        for _ in range(5):
            self.loop.turn()

    def answers(self) -> list[int]:
        try:
            data = self.client.recv(1 << 16)
        except BlockingIOError:
            return []
        return [number for (number,) in struct.iter_unpack(">i", data)]


class NamedSocket:
    """A socket of a pair with an address, as one of the network has."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.sends = 0

    def getsockname(self) -> tuple[str, int]:
        return ("server", 2)

    def __getattr__(self, name: str) -> Any:
        self.sends += name in ("send", "sendmsg")
        return getattr(self._sock, name)


@pytest.fixture
def pair() -> Iterator[ConnectedPair]:
    made = ConnectedPair()
    yield made
    made.connection.close()
    made.client.close()
    assert made.owner.closed == 1


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def some_frames(sizes: list[int], seed: int = 1) -> list[bytes]:
    drawn = random.Random(seed)
    return [drawn.randbytes(size) for size in sizes]


def test_frames_cut_at_every_place_are_the_same(pair: ConnectedPair) -> None:
    frames = some_frames([1, 0, 7, 4, 30])
    data = framed(*frames)
    for cut in range(len(data) + 1):
        pair.send(data[:cut])
        pair.send(data[cut:])
        assert pair.owner.frames == frames
        assert pair.answers() == list(range(len(frames)))
        pair.owner.frames.clear()


SIZES = [1, COPIED, COPIED + 1, 65_000, LARGE - 1, LARGE, LARGE + 1, SHARED, SHARED + 1, 2 << 20, 3, 300_000, 5]


@pytest.mark.parametrize("seed", range(6))
def test_frames_of_all_sizes_cut_anywhere_are_the_same(pair: ConnectedPair, seed: int) -> None:
    drawn = random.Random(seed)
    frames = some_frames([drawn.choice(SIZES) for _ in range(25)], seed)
    data = framed(*frames)
    cuts = sorted(drawn.randrange(len(data)) for _ in range(20))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        pair.send(data[start:end])
    assert pair.owner.frames == frames
    assert pair.answers() == list(range(len(frames)))


def test_connections_that_take_turns_do_not_mix_what_they_receive() -> None:
    pairs, drawn = [ConnectedPair() for _ in range(3)], random.Random(3)
    wanted = [some_frames([drawn.choice(SIZES[:7]) for _ in range(12)], number) for number in range(3)]
    left = [framed(*frames) for frames in wanted]
    turns = Turns()
    while any(left):
        turns.go()
        number = drawn.randrange(3)
        size = drawn.randrange(1, 90_000)
        pairs[number].send(left[number][:size])
        left[number] = left[number][size:]
    for pair, frames in zip(pairs, wanted, strict=True):
        assert pair.owner.frames == frames
        pair.connection.close()
        pair.client.close()


def test_what_comes_together_is_settled_together_and_answered_with_one_call(pair: ConnectedPair) -> None:
    frames = some_frames([65_000] * 3 + [10] * 5)
    sock: Any = pair.connection._sock
    pair.client.send(framed(*frames))
    pair.loop.turn()
    assert pair.owner.frames == frames
    assert [count for count in pair.owner.settled if count] == [len(frames)]
    assert sock.sends == 1
    assert pair.answers() == list(range(len(frames)))


def test_answers_that_other_requests_complete_leave_together(pair: ConnectedPair) -> None:
    """As a follower's fetch completes the requests of producers on other connections."""
    other = ConnectedPair()
    pair.owner.answers = None
    pair.send(framed(*some_frames([10] * 4)))
    assert pair.answers() == []

    def complete(connection: Connection, frame: memoryview) -> None:
        for place in range(4):
            pair.connection.answer(place, [struct.pack(">i", place)])
        assert pair.answers() == []

    other.owner.on_frame = complete  # type: ignore[method-assign]
    sock: Any = pair.connection._sock
    other.send(framed(b"fetch"))
    assert sock.sends == 1
    assert pair.answers() == [0, 1, 2, 3]
    pair.connection.answer(pair.connection.new_place(), [struct.pack(">i", 4)])
    assert pair.answers() == [4]
    other.connection.close()
    other.client.close()


def test_frames_that_are_kept_are_not_received_over(pair: ConnectedPair) -> None:
    pair.owner.keeps = True
    frames = some_frames([5_000, 65_000, 65_000, 10, LARGE + 1] * 8)
    pair.send(framed(*frames))
    assert pair.owner.frames == frames
    assert [bytes(frame) for frame in pair.owner.seen] == frames
    pair.owner.seen.clear()


def test_a_small_frame_that_is_kept_does_not_hold_the_shared_memory(pair: ConnectedPair) -> None:
    pair.owner.keeps = True
    pair.send(framed(b"x" * COPIED))
    before = SHARED_MEMORY.memory
    assert SHARED_MEMORY.free() is before
    pair.owner.seen.clear()


def test_no_more_requests_are_taken_than_may_be_unanswered(pair: ConnectedPair) -> None:
    pair.owner.answers = None
    frames = some_frames([20] * (3 * MOST_UNANSWERED))
    pair.send(framed(*frames))
    assert len(pair.owner.frames) == pair.connection.unanswered == MOST_UNANSWERED
    for place in range(len(frames)):
        pair.connection.answer(place, [struct.pack(">i", place)])
        pair.loop.turn()
    assert pair.owner.frames == frames
    assert pair.connection.unanswered == 0
    assert pair.answers() == list(range(len(frames)))


def test_requests_that_wait_are_taken_though_nothing_more_comes(pair: ConnectedPair) -> None:
    """All of them have been received: no event of the socket tells of those that are left."""
    pair.owner.answers = None
    pair.send(framed(*some_frames([20] * (MOST_UNANSWERED + 5))))
    assert pair.connection.held_bytes == 5 * 24
    for place in range(5):
        pair.connection.answer(place, [])
    pair.loop.turn()
    assert len(pair.owner.frames) == MOST_UNANSWERED + 5


def test_more_are_taken_when_those_before_were_only_put_off(pair: ConnectedPair) -> None:
    frames = some_frames([20] * (3 * MOST_UNANSWERED))
    pair.send(framed(*frames))
    assert pair.owner.frames == frames
    assert max(pair.owner.settled) == MOST_UNANSWERED


@pytest.mark.parametrize("size", [-1, RecordingOwner.largest_frame + 1])
def test_what_came_before_a_frame_that_cannot_be_is_answered(pair: ConnectedPair, size: int) -> None:
    pair.client.send(framed(b"one", b"two") + struct.pack(">i", size) + b"three")
    pair.loop.turn()
    assert pair.owner.frames == [b"one", b"two"]
    assert pair.owner.closed == 1
    assert pair.answers() == [0, 1]


@pytest.mark.parametrize("size", [COPIED + 1, LARGE + 1])
def test_a_frame_that_there_is_no_memory_for_closes_the_connection(pair: ConnectedPair, size: int) -> None:
    pair.owner.room = COPIED
    pair.client.send(framed(b"one") + struct.pack(">i", size) + b"part")
    pair.loop.turn()
    assert pair.owner.closed == 1
    assert pair.answers() == [0]


def test_the_end_of_the_stream_closes_the_connection_after_the_answers(pair: ConnectedPair) -> None:
    pair.client.send(framed(b"one", b"two") + b"\0\0")
    pair.client.shutdown(socket.SHUT_WR)
    for _ in range(3):
        pair.loop.turn()
    assert pair.owner.closed == 1
    assert pair.answers() == [0, 1]


def test_a_client_that_does_not_read_is_read_from_no_more(pair: ConnectedPair) -> None:
    answer: list[Part] = [bytes(100_000)]
    pair.owner.answers = None
    pair.send(framed(*some_frames([20] * 20)))
    for place in range(20):
        pair.connection.answer(place, answer)
    assert pair.connection.held_bytes > 1 << 20
    pair.client.send(framed(b"more"))
    pair.loop.turn()
    assert not pair.loop.readers
    received = 0
    turns = Turns()
    while received < 20 * size_of(answer[0]):
        turns.go()
        try:
            received += len(pair.client.recv(1 << 20))
        except BlockingIOError:
            for callback in list(pair.loop.writers.values()):
                callback()
    for callback in list(pair.loop.writers.values()):
        callback()
    assert pair.connection.held_bytes == 0
    assert len(pair.owner.frames) == 20
    pair.loop.turn()
    assert pair.owner.frames[20:] == [b"more"]


def test_a_part_that_was_put_aside_is_taken_up_again() -> None:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    frames = Frames(RecordingOwner())
    frames.take_up()
    right.send(framed(b"a" * 10)[:7])
    assert frames.receive(left)[0] == 7
    assert frames.next() is None
    frames.put_aside()
    assert frames.held_bytes == 7
    SHARED_MEMORY.memory[:20] = b"z" * 20
    frames.take_up()
    right.send(framed(b"a" * 10)[7:])
    frames.receive(left)
    found = frames.next()
    assert found is not None
    assert bytes(found) == b"a" * 10
    refusing = RecordingOwner()
    refusing.room = 0
    refused = Frames(refusing)
    refused.take_up()
    right.send(framed(b"a" * 10)[:7])
    refused.receive(left)
    with pytest.raises(RefusedFrameError, match="no memory for a frame of 10 bytes"):
        refused.put_aside()
    left.close()
    right.close()
