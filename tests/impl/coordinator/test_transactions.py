"""`__consumer_offsets` as another broker has left it: with offsets that were committed in transactions, and markers."""

import asyncio
from pathlib import Path

from kspec.impl.coordinator.records import encode
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.values import GroupId, Offset
from tests.impl.broker.process import BrokerProcess
from tests.limits.turns import Turns
from tests.trials.cluster.group_client import Line, commit, committed, coordinator_of

GROUP, TOPIC, PRODUCER = "group", "t", 7
TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
MARKER = b"\0\0\0\0\0\0"
"""The value of a marker: its version, and the epoch of the coordinator of transactions."""


def in_transaction(at: int, producer: int, partition: int, offset: int) -> bytes:
    record = encode(OffsetCommitRecord(GroupId(GROUP), TOPIC, partition, Offset(offset)))
    given = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL}
    return new_batch([(1, *record)], base_offset=at, leader_epoch=0, **given)


def marker(at: int, producer: int, kind: bytes) -> bytes:
    given = {"producer_id": producer, "producer_epoch": 0, "attributes": TRANSACTIONAL | CONTROL}
    return new_batch([(1, kind, MARKER)], base_offset=at, leader_epoch=0, **given)


def test_offsets_of_transactions_count_as_in_kafka_and_a_marker_does_not_end_the_start(tmp_path: Path) -> None:
    """Committed, aborted, open, and overtaken by a commit without a transaction: partitions 0 to 3."""
    overrides = ["offsets.topic.num.partitions=1", "num.partitions=4"]
    with BrokerProcess(tmp_path / "logs", overrides=overrides) as broker:
        asyncio.run(_commit_one(broker.port))
        assert broker.stop() == 0
        (log,) = (tmp_path / "logs" / "__consumer_offsets-0").glob("*.log")
        with log.open("ab") as file:
            file.write(in_transaction(1, PRODUCER, 0, 10) + marker(2, PRODUCER, COMMIT))
            file.write(in_transaction(3, PRODUCER, 1, 11) + marker(4, PRODUCER, ABORT))
            file.write(in_transaction(5, PRODUCER + 1, 2, 12))
            file.write(in_transaction(6, PRODUCER, 3, 13))
            plain = encode(OffsetCommitRecord(GroupId(GROUP), TOPIC, 3, Offset(20)))
            file.write(new_batch([(1, *plain)], base_offset=7, leader_epoch=0) + marker(8, PRODUCER, COMMIT))
        (tmp_path / "logs" / ".kafka_cleanshutdown").unlink()
        broker.start()
        asyncio.run(_look(broker.port))
        assert broker.stop() == 0


async def _commit_one(port: int) -> None:
    place = await coordinator_of({1: ("127.0.0.1", port)}, GROUP)
    line = Line(place)
    await line.ask("Metadata", 9, topics=[Message(name=TOPIC)], allow_auto_topic_creation=True)
    turns = Turns()
    while await commit(line, GROUP, TOPIC, 1, 1):
        turns.go()
        await asyncio.sleep(0.1)
    line.close()


async def _look(port: int) -> None:
    line = Line(await coordinator_of({1: ("127.0.0.1", port)}, GROUP))
    assert await committed(line, GROUP, TOPIC, 4) == {0: 10, 1: 1, 2: -1, 3: 20}
    assert await commit(line, GROUP, TOPIC, 0, 30) == 0
    assert await committed(line, GROUP, TOPIC, 4) == {0: 30, 1: 1, 2: -1, 3: 20}
    line.close()
