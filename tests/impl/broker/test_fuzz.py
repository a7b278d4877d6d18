"""A broker under requests that nobody would send: it goes on, its memory does not grow, its other clients are served."""

import os
from pathlib import Path

import pytest

from impl.records.record import new_batch
from impl.wire.values import Message
from tests.impl.broker.fuzz import Fuzzer
from tests.impl.broker.process import BrokerProcess, Client

FRAMES = int(os.environ.get("KSPEC_FUZZ", "5000"))
"""`KSPEC_FUZZ=1000000` is the run of a night."""

GROWTH = 96 << 20
"""How much more memory (bytes) than after the first tenth, which fills caches, the broker may have."""


TIDIED_AFTER = 2_000
KEPT = {"fuzzed", "other", "compacted", "neighbours", "__consumer_offsets"}


def tidy(client: Client) -> None:
    """Delete the topics that a frame has made by accident: they have a right to their memory."""
    known = client.call("Metadata", 12, topics=None).topics
    gone = [Message(name=None, topic_id=topic.topic_id) for topic in known if topic.name not in KEPT]
    client.call("DeleteTopics", 6, topics=gone, timeout_ms=1000)


def fuzz(broker: BrokerProcess, frames: int, seed: int) -> None:
    fuzzer = Fuzzer(seed)
    with Client(broker.port) as neighbour:
        for name in ("fuzzed", "other"):
            fuzzer.ids.append(neighbour.create(name, 2).topic_id)
        neighbour.create("compacted", cleanup_policy="compact")
        neighbour.create("neighbours", retention_ms="-1")
        sent = written = after_warming = tidied = 0
        while sent < frames:
            if sent - tidied >= TIDIED_AFTER:
                tidied = sent
                tidy(neighbour)
            sent += fuzzer.converse(broker.port)
            answer = neighbour.produce("neighbours", new_batch([(1, b"k", b"%d" % written)]))
            assert (answer.error_code, answer.base_offset) == (0, written)
            written += 1
            if not after_warming and sent >= frames // 10:
                after_warming = broker.memory()
        assert neighbour.fetch("neighbours", 0).high_watermark == written
    assert broker.process is not None
    assert broker.process.poll() is None
    assert broker.memory() - after_warming < GROWTH
    assert "Traceback" not in broker.text_of_log(), "a request has failed that no rule refuses"


def test_a_thousand_frames(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", traced=False) as broker:
        fuzz(broker, 1_000, seed=1)


@pytest.mark.slow
def test_many_frames(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", traced=False) as broker:
        fuzz(broker, FRAMES, seed=2)
