"""Folders with transactions: Apache Kafka's are opened here, and ours there, after a stop and after a kill."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records.markers import batch_in
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles, RealDisk
from kspec.impl.wire.values import Message
from kspec.spec.log.batch import Batch
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.transactions.log.partition import PartitionTransactions, with_batches
from kspec.spec.values import Offset
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.marks import marked
from tests.times import at_ms

pytestmark = pytest.mark.slow

TRANSACTIONS = 7
MOST_RECORDS = 100
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")


def transact(address: str) -> None:
    """Transactions of two producers, some of them aborted; two are left open, one of them of a third producer."""
    producers = [Producer({"bootstrap.servers": address, "transactional.id": f"id-{number}"}) for number in range(3)]
    for producer in producers:
        producer.init_transactions(60)
    for number in range(TRANSACTIONS):
        producers[1].begin_transaction()
        producers[1].produce("t", b"%d-open" % number)
        producers[1].flush(30)
        producers[0].begin_transaction()
        for place in range(3):
            producers[0].produce("t", b"%d-%d" % (number, place))
        producers[0].flush(30)
        if number % 2:
            producers[0].commit_transaction(60)
        else:
            producers[0].abort_transaction(60)
        if number % 3:
            producers[1].commit_transaction(60)
        else:
            producers[1].abort_transaction(60)
    for producer in producers[1:]:
        producer.begin_transaction()
        producer.produce("t", b"never")
        producer.flush(30)


def expected_records() -> list[bytes]:
    found = []
    for number in range(TRANSACTIONS):
        if number % 3:
            found.append(b"%d-open" % number)
        if number % 2:
            found += [b"%d-%d" % (number, place) for place in range(3)]
    return sorted(found)


def committed_records(address: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found = []
    for _ in range(MOST_RECORDS):
        message = consumer.poll(30)
        if message is None or message.error():
            break
        found.append(message.value() or b"")
    consumer.close()
    return sorted(found)


def told(port: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """The answers to clients about the partition: its producers, and how far it is stable."""
    with BrokerClient(port) as client:
        asked = Message(name="t", partition_indexes=[0])
        (topic,) = client.call("DescribeProducers", 0, topics=[asked]).topics
        producers = [
            (one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset)
            for one in topic.partitions[0].active_producers
        ]
        offsets = []
        for isolation in (0, 1):
            one = Message(partition_index=0, current_leader_epoch=-1, timestamp=-1)
            topics = [Message(name="t", partitions=[one])]
            (listed,) = client.call("ListOffsets", 7, replica_id=-1, isolation_level=isolation, topics=topics).topics
            offsets.append(listed.partitions[0].offset)
    return sorted(producers), offsets


def create(port: int) -> None:
    with BrokerClient(port) as client:
        client.create("t")


def batches_of(files: PartitionFiles) -> tuple[Batch, ...]:
    found = [(segment, header) for segment in files.segments for header in segment.headers()]
    return tuple(batch_in(header._replace(position=0), segment.batch(header)) for segment, header in found)


def test_a_folder_of_kafka_is_opened_here(tmp_path: Path) -> None:
    with SingleKafka(jars_or_skip(NEWEST), tmp_path / "kafka") as node:
        create(node.port)
        transact(node.address)
        by_kafka = told(node.port)
        assert committed_records(node.address) == expected_records()
        node.process.stop()
    folder = tmp_path / "kafka" / "logs" / "t-0"
    directory = LogDirectory.open(str(tmp_path / "ours"), RealDisk(), "c" * 22, 1)
    shutil.copytree(folder, tmp_path / "ours" / "t-0")
    directory.close({}, None)
    directory = LogDirectory.open(str(tmp_path / "ours"), RealDisk(), "c" * 22, 1)
    files = directory.open_partition("t", 0, LogConfig(), at_ms(0))
    read = with_batches(TRANSACTIONS_NEXT, PartitionTransactions(), Offset(0), batches_of(files))
    assert len(read.aborted) == 7
    assert tuple(files.aborted(Offset(0))) == read.aborted
    assert files.transactions().ongoing == read.ongoing
    producers = [
        (one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.transaction_start)
        for one in files.transactions().producers
    ]
    assert by_kafka == (producers, [files.log.end_offset, min(one.first_offset for one in read.ongoing)])


@pytest.mark.parametrize("clean", marked([True, False], nightly=[True]))
def test_a_folder_of_ours_is_opened_by_kafka(clean: bool, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "ours") as broker:
        create(broker.port)
        transact(broker.address)
        by_ours = told(broker.port)
        assert committed_records(broker.address) == expected_records()
    with SingleKafka(jars_or_skip(NEWEST), tmp_path / "kafka") as node:
        create(node.port)
        node.process.stop()
        logs = tmp_path / "kafka" / "logs"
        metadata = (logs / "t-0" / "partition.metadata").read_bytes()
        shutil.rmtree(logs / "t-0")
        shutil.copytree(tmp_path / "ours" / "t-0", logs / "t-0")
        (logs / "t-0" / "partition.metadata").write_bytes(metadata)
        end = by_ours[1][0]
        for name in CHECKPOINTS:
            lines = (logs / name).read_text().splitlines()
            kept = [f"t 0 {end}" if line.startswith("t 0 ") else line for line in lines]
            (logs / name).write_text("\n".join(kept) + "\n")
        if not clean:
            (logs / ".kafka_cleanshutdown").unlink()
        node.start()
        assert told(node.port) == by_ours
        assert committed_records(node.address) == expected_records()


def damage_index(folder: Path, whole: bytes, how: str) -> None:
    index = folder / f"{0:020d}.txnindex"
    index.unlink(missing_ok=True)
    if how != "gone":
        index.write_bytes(b"" if how == "emptied" else whole[:-1])


@pytest.mark.nightly
def test_a_lost_index_shows_aborted_records_as_committed(tmp_path: Path) -> None:
    """To both; of one that was cut Kafka loses the last entry, and here it is made anew."""
    everything = len(expected_records()) + 15
    found: dict[str, list[int]] = {"gone": [], "emptied": [], "cut": []}
    with SingleKafka(jars_or_skip(NEWEST), tmp_path / "kafka") as node:
        create(node.port)
        transact(node.address)
        node.process.stop()
        folder = tmp_path / "kafka" / "logs" / "t-0"
        whole = (folder / f"{0:020d}.txnindex").read_bytes()
        for how, counts in found.items():
            damage_index(folder, whole, how)
            node.start()
            counts.append(len(committed_records(node.address)))
            node.process.stop()
    with BrokerProcess(tmp_path / "ours") as broker:
        create(broker.port)
        transact(broker.address)
        folder = tmp_path / "ours" / "t-0"
        for how, counts in found.items():
            assert broker.stop() == 0
            whole = whole if how != "gone" else (folder / f"{0:020d}.txnindex").read_bytes()
            damage_index(folder, whole, how)
            broker.start()
            counts.append(len(committed_records(broker.address)))
    right = len(expected_records())
    assert found == {"gone": [everything] * 2, "emptied": [everything] * 2, "cut": [right + 1, right]}
