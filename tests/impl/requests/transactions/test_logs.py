"""Transactions at the leader of a partition, by raw requests: verification, markers, and what readers are told."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.impl.records.batch import TRANSACTIONAL, headers
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.requests.transaction_client import TransactionClient

LATEST = -1


class TransactionalTopic:
    """A broker with a topic of two partitions, and a producer of transactions."""

    def __init__(self, broker: BrokerProcess, client: BrokerClient) -> None:
        self.broker, self.client = broker, client
        client.create("t", 2)
        self.one, self.other = self.producer("one"), self.producer("other")

    def producer(self, name: str) -> TransactionClient:
        producer = TransactionClient(self.client, name)
        producer.find()
        producer.init_when_possible()
        return producer

    def send(self, whose: TransactionClient, sequence: int, version: int = 11, partition: int = 0, acks: int = -1) -> None:
        batch = batch_of(whose.producer_id, whose.epoch, sequence)
        data = [Message(name="t", partition_data=[Message(index=partition, records=batch)])]
        message = Message(transactional_id=whose.name, acks=acks, timeout_ms=5_000, topic_data=data)
        self.client.send("Produce", version, message)

    def write(self, whose: TransactionClient, sequence: int, version: int = 11, partition: int = 0) -> Error:
        self.send(whose, sequence, version, partition)
        return self.written(version)

    def written(self, version: int = 11) -> Error:
        (topic,) = self.client.receive("Produce", version).responses
        return Error(topic.partition_responses[0].error_code)

    def mark(
        self, whose: TransactionClient, committed: bool, version: int = 0, coordinator: int = 0, **fields: int
    ) -> Error:
        given = {"producer_id": whose.producer_id, "producer_epoch": whose.epoch} | fields
        topics = [Message(name="t", partition_indexes=[0])]
        marker = Message(
            transaction_result=committed,
            topics=topics,
            coordinator_epoch=coordinator,
            **given,
        )
        (answered,) = self.client.call("WriteTxnMarkers", 2, markers=[marker]).markers
        return Error(answered.topics[0].partitions[0].error_code)

    def fetch(self, offset: int, committed: bool, wait_ms: int = 0, client: BrokerClient | None = None) -> Message:
        one = client or self.client
        one.send("Fetch", 11, fetch_request(offset, committed, wait_ms))
        return fetched(one)

    def stable(self) -> int:
        return int(self.fetch(0, False).last_stable_offset)

    def latest(self, committed: bool) -> int:
        one = Message(partition_index=0, current_leader_epoch=-1, timestamp=LATEST)
        topics = [Message(name="t", partitions=[one])]
        (topic,) = self.client.call("ListOffsets", 7, replica_id=-1, isolation_level=int(committed), topics=topics).topics
        return int(topic.partitions[0].offset)


def batch_of(producer_id: int, epoch: int, sequence: int) -> bytes:
    return new_batch(
        [(time.time_ns() // 1_000_000, b"k", b"v")],
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def fetch_request(offset: int, committed: bool, wait_ms: int = 0) -> Message:
    part = Message(partition=0, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [Message(topic="t", partitions=[part])]
    return Message(
        replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, isolation_level=int(committed), session_epoch=-1, topics=topics
    )


def fetched(client: BrokerClient) -> Message:
    (topic,) = client.receive("Fetch", 11).responses
    part: Message = topic.partitions[0]
    return part


def offsets_of(part: Message) -> list[int]:
    return [int(header.base_offset) for header in headers(memoryview(bytes(part.records or b"")))]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[TransactionalTopic]:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        yield TransactionalTopic(broker, client)


@pytest.mark.parametrize(
    ("version", "error"), [(9, Error.INVALID_TXN_STATE), (10, Error.INVALID_TXN_STATE), (11, Error.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added(version: int, error: Error, served: TransactionalTopic) -> None:
    assert served.one.add(("t", 1)) == [Error.NONE]
    assert served.write(served.one, 0, version) == error
    assert served.write(served.one, 0, version, partition=1) == Error.NONE
    assert served.stable() == 0


def test_a_producer_of_version_2_adds_by_writing(served: TransactionalTopic) -> None:
    assert served.write(served.one, 0, version=12) == Error.NONE
    assert served.one.state() == "Ongoing"
    assert served.one.end(True) == Error.NONE
    assert served.one.epoch == 1
    wait_until(lambda: served.stable() == 2)
    assert served.write(served.one, 3, version=12) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert served.write(served.one, 0, version=12) == Error.NONE, "sequences begin again with each epoch"


def test_a_producer_that_was_replaced_is_told_so(served: TransactionalTopic) -> None:
    assert served.one.add(("t", 0)) == [Error.NONE]
    again = TransactionClient(served.client, "one")
    again.init_when_possible()
    assert again.epoch > served.one.epoch
    assert served.write(served.one, 0) == Error.INVALID_PRODUCER_EPOCH


def test_requests_that_come_together_are_appended_in_their_order(served: TransactionalTopic) -> None:
    assert served.one.add(("t", 0)) == [Error.NONE]
    with served.client.together():
        for sequence in range(6):
            served.send(served.one, sequence)
    assert [served.written() for _ in range(6)] == [Error.NONE] * 6
    assert offsets_of(served.fetch(0, False)) == [0, 1, 2, 3, 4, 5]


def test_what_readers_are_told_while_it_is_open_and_after_it_is_aborted(served: TransactionalTopic) -> None:
    for one in (served.one, served.other):
        assert one.add(("t", 0)) == [Error.NONE]
        assert served.write(one, 0) == Error.NONE
    uncommitted, committed = served.fetch(0, False), served.fetch(0, True)
    assert offsets_of(uncommitted) == [0, 1]
    assert (uncommitted.last_stable_offset, uncommitted.high_watermark, uncommitted.aborted_transactions) == (0, 2, None)
    assert (offsets_of(committed), committed.last_stable_offset, committed.aborted_transactions) == ([], 0, [])
    assert (served.latest(True), served.latest(False)) == (0, 2)
    assert served.one.end(False, version=3) == Error.NONE
    wait_until(lambda: served.stable() == 1)
    committed = served.fetch(0, True)
    assert offsets_of(committed) == [0]
    assert [(one.producer_id, one.first_offset) for one in committed.aborted_transactions] == [(served.one.producer_id, 0)]
    assert served.fetch(1, True).aborted_transactions == []
    assert served.other.end(True, version=3) == Error.NONE
    wait_until(lambda: served.stable() == 4)
    committed = served.fetch(0, True)
    assert offsets_of(committed) == [0, 1, 2, 3]
    assert len(committed.aborted_transactions) == 1
    assert served.fetch(4, True).aborted_transactions == []


def test_a_fetch_of_what_is_committed_waits_for_the_end_of_the_transaction(served: TransactionalTopic) -> None:
    assert served.one.add(("t", 0)) == [Error.NONE]
    assert served.write(served.one, 0) == Error.NONE
    with BrokerClient(served.broker.port) as reader:
        reader.send("Fetch", 11, fetch_request(0, True, wait_ms=60_000))
        assert served.write(served.one, 1) == Error.NONE
        assert served.one.end(True, version=3) == Error.NONE
        assert offsets_of(fetched(reader)) == [0, 1, 2]


def test_markers_that_are_refused_and_repeated(served: TransactionalTopic) -> None:
    one = served.one
    assert one.add(("t", 0)) == [Error.NONE]
    assert served.write(one, 0) == Error.NONE
    assert served.mark(one, committed=True, coordinator=5) == Error.NONE
    assert served.mark(one, committed=True, coordinator=5) == Error.NONE, "without an open transaction"
    assert served.mark(one, committed=True, coordinator=4) == Error.TRANSACTION_COORDINATOR_FENCED
    assert served.mark(one, committed=False, producer_id=999, producer_epoch=7) == Error.NONE, "of an unknown producer"
    assert served.mark(one, committed=False, producer_id=999, producer_epoch=6) == Error.INVALID_PRODUCER_EPOCH
    assert served.stable() == 4
    asked = Message(name="t", partition_indexes=[0])
    (topic,) = served.client.call("DescribeProducers", 0, topics=[asked]).topics
    known = {each.producer_id: each for each in topic.partitions[0].active_producers}
    assert (known[999].producer_epoch, known[999].coordinator_epoch, known[999].last_sequence) == (7, 0, -1)
    assert (known[one.producer_id].coordinator_epoch, known[one.producer_id].current_txn_start_offset) == (5, -1)


def test_a_marker_for_a_partition_that_is_not_there(served: TransactionalTopic) -> None:
    topics = [Message(name="none", partition_indexes=[0]), Message(name="t", partition_indexes=[9])]
    marker = Message(producer_id=1, producer_epoch=0, transaction_result=True, topics=topics, coordinator_epoch=0)
    (answered,) = served.client.call("WriteTxnMarkers", 1, markers=[marker]).markers
    errors = [Error(part.error_code) for topic in answered.topics for part in topic.partitions]
    assert errors == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2


def test_a_batch_after_the_marker_does_not_open_a_transaction_that_nobody_ends(served: TransactionalTopic) -> None:
    """A late copy of a request, as KIP-890 has it."""
    assert served.one.add(("t", 0)) == [Error.NONE]
    assert served.write(served.one, 0) == Error.NONE
    assert served.one.end(False, version=3) == Error.NONE
    wait_until(lambda: served.stable() == 2)
    assert served.write(served.one, 1) == Error.TRANSACTION_ABORTABLE
    assert served.stable() == 2


def test_two_producers_in_one_request(served: TransactionalTopic) -> None:
    batches = [
        Message(index=index, records=batch_of(one.producer_id, 0, 0)) for index, one in enumerate((served.one, served.other))
    ]
    data = [Message(name="t", partition_data=batches)]
    message = {"transactional_id": "one", "acks": 1, "timeout_ms": 5_000, "topic_data": data}
    (topic,) = served.client.call("Produce", 11, **message).responses
    assert [part.error_code for part in topic.partition_responses] == [Error.INVALID_PRODUCER_ID_MAPPING.value] * 2


@pytest.mark.parametrize("killed", [False, True])
def test_after_a_start_everything_is_known(killed: bool, served: TransactionalTopic) -> None:
    for one, committed in ((served.one, False), (served.one, True)):
        assert one.add(("t", 0)) == [Error.NONE]
        assert served.write(one, int(committed)) == Error.NONE
        assert one.end(committed, version=3) == Error.NONE
        wait_until(lambda one=one: one.state().startswith("Complete"))
    assert served.other.add(("t", 0)) == [Error.NONE]
    assert served.write(served.other, 0) == Error.NONE
    served.client.close()
    if killed:
        served.broker.kill()
    else:
        assert served.broker.stop() == 0
    served.broker.start()
    with BrokerClient(served.broker.port) as client:
        again = served.fetch(0, True, client=client)
        assert (offsets_of(again), again.last_stable_offset) == ([0, 1, 2, 3], 4)
        assert [one.first_offset for one in again.aborted_transactions] == [0]


def test_without_verification_a_batch_is_taken_as_it_comes(tmp_path: Path) -> None:
    overrides = ("transaction.partition.verification.enable=false",)
    with BrokerProcess(tmp_path / "logs", overrides=overrides) as broker, BrokerClient(broker.port) as client:
        served = TransactionalTopic(broker, client)
        assert served.write(served.one, 0) == Error.NONE
        assert served.stable() == 0
        assert served.write(served.other, 0, version=12) == Error.NONE
        assert served.other.state() == "Ongoing", "its partitions are added all the same"


def test_without_a_coordinator_the_producer_is_to_try_again(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("t")
        data = [Message(name="t", partition_data=[Message(index=0, records=batch_of(5, 0, 0))])]
        answer = client.call("Produce", 11, transactional_id="one", acks=1, timeout_ms=5_000, topic_data=data)
        part = answer.responses[0].partition_responses[0]
        words = "Unable to verify the partition has been added to the transaction. Underlying error: "
        told = (Error(part.error_code), part.error_message)
        assert told == (Error.NOT_ENOUGH_REPLICAS, f"{words}COORDINATOR_NOT_AVAILABLE")
