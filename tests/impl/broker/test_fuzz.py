"""A broker under requests that nobody would send: it goes on, its memory does not grow, its other clients are served."""

import os
import select
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.impl.records.reading import PLAIN_BYTES
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.fuzz import Fuzzer
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.turns import Turns

FRAMES = int(os.environ.get("KSPEC_FUZZ", "5000"))
"""`KSPEC_FUZZ=1000000` is the run of a night."""

LEAST_A_SECOND = 100
"""Frames. An emergency stop, far away: a machine with nothing else to do handles some thousand."""

GROWTH = 96 << 20
"""The allowed growth of the broker's memory (bytes) after the first tenth, which fills caches."""

TIDIED_AFTER = 2_000
KEPT = {"fuzzed", "other", "compacted", "neighbours", "__consumer_offsets"}

CONNECTIONS = 16
"""They are open at the same time. Between two frames of one, all others have a turn, and so has the neighbour."""

FRAMES_OF_A_CONNECTION = 20


IN_MEMORY = Path("/dev/shm")
"""Frames make and delete topics, and each is synced to the disk: most of the time would be the disk's."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory, if the machine has such a place: no power is lost here."""
    if not os.access(IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="kspec-fuzz-", dir=IN_MEMORY) as name:
        yield Path(name)


class Conversation:
    """One connection: frames, until there were enough or the broker has closed it.

    All frames of a `polite` one can be read. So each has to be answered, though perhaps later, and the broker has no reason
    to close the connection.
    """

    def __init__(self, port: int, polite: bool) -> None:
        self.polite = polite
        self.sent: list[bytes] = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._answers = 0

    def send(self, frame: bytes) -> bool:
        """Send a frame; whether the connection was open."""
        self.sent.append(frame)
        try:
            self._socket.sendall(frame)
        except ConnectionError:
            return False
        return True

    def is_over(self) -> bool:
        """Take what the broker has answered so far; whether this was all."""
        turns = Turns()
        while select.select([self._socket], [], [], 0)[0]:
            turns.go()
            try:
                answer = self._socket.recv(1 << 16)
            except ConnectionError:
                answer = b""
            if not answer:
                assert not self.polite, f"closed, though it could be read: {[one.hex() for one in self.sent]}"
                return True
        return len(self.sent) == FRAMES_OF_A_CONNECTION

    def close(self) -> None:
        self._socket.close()


def tidy(client: BrokerClient) -> None:
    """Delete the topics that a frame has made by accident: they have a right to their memory."""
    known = client.call("Metadata", 12, topics=None).topics
    gone = [Message(name=None, topic_id=topic.topic_id) for topic in known if topic.name not in KEPT]
    client.call("DeleteTopics", 6, topics=gone, timeout_ms=1000)


def converse(fuzzer: Fuzzer, port: int, conversations: list[Conversation]) -> int:
    """A frame on each connection; connections that are over are closed, and others opened. How many frames were sent."""
    for one in [one for one in conversations if one.is_over()]:
        conversations.remove(one)
        one.close()
    turns = Turns()
    while len(conversations) < CONNECTIONS:
        turns.go()
        conversations.append(Conversation(port, polite=fuzzer.random.random() < 0.1))
    return sum(one.send(fuzzer.readable_frame() if one.polite else fuzzer.frame()) for one in conversations)


def produced(neighbour: BrokerClient, number: int) -> Message:
    """The answer to a record. A frame may unregister the broker: until it is registered again, no partition has a leader."""
    turns = Turns()
    while True:
        turns.go()
        answer = neighbour.produce("neighbours", new_batch([(1, b"k", b"%d" % number)]))
        if answer.error_code != Error.NOT_LEADER_OR_FOLLOWER.value:
            return answer


def fuzz(broker: BrokerProcess, frames: int, seed: int) -> None:
    with BrokerClient(broker.port) as neighbour:
        fuzzer = Fuzzer(seed, [one.api_key for one in neighbour.call("ApiVersions", 0).api_keys])
        for name in ("fuzzed", "other"):
            fuzzer.ids.append(neighbour.create(name, 2).topic_id)
        neighbour.create("compacted", cleanup_policy="compact")
        neighbour.create("neighbours", retention_ms="-1")
        large = neighbour.produce("neighbours", new_batch([(1, b"k", bytes(PLAIN_BYTES))]))
        assert large.error_code == 0, "such a batch is read by the compiled reader, which is in memory from now on"
        sent = after_warming = tidied = 0
        written = 1
        conversations: list[Conversation] = []
        turns = Turns()
        while sent < frames:
            turns.go()
            if sent - tidied >= TIDIED_AFTER:
                tidied = sent
                tidy(neighbour)
            sent += converse(fuzzer, broker.port, conversations)
            answer = produced(neighbour, written)
            assert (answer.error_code, answer.base_offset) == (0, written)
            written += 1
            if not after_warming and sent >= frames // 10:
                after_warming = broker.memory()
        for one in conversations:
            one.close()
        assert neighbour.fetch("neighbours", 0).high_watermark == written
    assert broker.process is not None
    assert broker.process.poll() is None
    grown = broker.memory() - after_warming
    print(f"{sent} frames, {written} requests of a neighbour, {grown / 2**20:.1f} MiB more than after the first tenth")
    assert grown < GROWTH
    assert "Traceback" not in broker.text_of_log(), "a request has failed that no rule refuses"


def test_a_thousand_frames(folder: Path) -> None:
    with BrokerProcess(folder / "logs", traced=False) as broker:
        fuzz(broker, 1_000, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900 + FRAMES / LEAST_A_SECOND)
def test_many_frames(folder: Path) -> None:
    with BrokerProcess(folder / "logs", traced=False) as broker:
        fuzz(broker, FRAMES, seed=2)
