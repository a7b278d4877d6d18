"""A batch that becomes far larger than it was sent holds nobody up but its own producer."""

from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow

GZIP, LZ4, ZSTD = 1, 3, 4
VALUE = bytes(1 << 20)
VERSION = 9
LEAST_SERVED = 10
"""Requests of a neighbour that are answered at least, while a batch is read that takes a good part of a second."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("slow") / "logs") as running:
        yield running


def batch(codec: int, mebibytes: int, sequence: int = -1, producer_id: int = -1) -> bytes:
    records = [(int(time() * 1000), b"k", VALUE)] * mebibytes
    epoch = 0 if producer_id >= 0 else -1
    return new_batch(records, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def send(client: BrokerClient, topic: str, records: bytes, acks: int = -1) -> None:
    data = Message(name=topic, partition_data=[Message(index=0, records=records)])
    client.send("Produce", VERSION, Message(acks=acks, timeout_ms=60_000, topic_data=[data]))


def answer(client: BrokerClient) -> tuple[Error, int]:
    found = client.receive("Produce", VERSION).responses[0].partition_responses[0]
    return Error(found.error_code), found.base_offset


def has_answer(client: BrokerClient) -> bool:
    client.socket.setblocking(False)
    try:
        return bool(client.socket.recv(1, 2))  # MSG_PEEK
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(60)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_neighbour_is_served_meanwhile(broker: BrokerProcess, codec: int, policy: str) -> None:
    """With a policy that compacts each record is looked at, and all lie in memory together."""
    topic = f"large-{codec}-{policy}"
    with BrokerClient(broker.port) as producer, BrokerClient(broker.port) as neighbour:
        neighbour.create(topic, cleanup_policy=policy)
        send(producer, topic, batch(codec, 220))
        served, turns = 0, Turns()
        while not has_answer(producer):
            turns.go()
            assert neighbour.call("Metadata", 9, topics=[Message(name=topic)]).topics[0].error_code == 0
            served += 1
        assert answer(producer) == (Error.NONE, 0)
        assert served >= LEAST_SERVED
        assert neighbour.fetch(topic, 0).high_watermark == 220


@pytest.mark.parametrize(("mebibytes", "error"), [(120, Error.NONE), (300, Error.UNKNOWN_SERVER_ERROR)])
def test_a_neighbour_is_served_while_a_batch_is_compressed_anew(broker: BrokerProcess, mebibytes: int, error: Error) -> None:
    """The topic wants another codec. Of more than 256 MiB nothing is taken: all of it lies in memory."""
    topic = f"anew-{mebibytes}"
    with BrokerClient(broker.port) as producer, BrokerClient(broker.port) as neighbour:
        neighbour.create(topic, compression_type="lz4", max_message_bytes=str(8 << 20))
        send(producer, topic, batch(GZIP, mebibytes))
        served, turns = 0, Turns()
        while not has_answer(producer):
            turns.go()
            neighbour.call("ApiVersions", 0)
            served += 1
        assert answer(producer)[0] == error
        assert served >= LEAST_SERVED


@pytest.mark.parametrize("acks", [-1, 1])
def test_the_requests_of_a_producer_keep_their_order(broker: BrokerProcess, acks: int) -> None:
    """Each batch has the sequence that follows; one that came too early would be out of order."""
    topic = f"in-order-{acks}"
    with BrokerClient(broker.port) as client:
        client.create(topic)
        producer_id = client.call("InitProducerId", 1, transactional_id=None, transaction_timeout_ms=1000).producer_id
        sizes = [1, 30, 1, 2, 40, 1]
        with client.together():
            for number, size in enumerate(sizes):
                send(client, topic, batch(GZIP, size, sum(sizes[:number]), producer_id), acks)
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        assert [answer(client) for _ in sizes] == [(Error.NONE, start) for start in starts]


def test_the_next_request_waits_for_all_batches_of_the_one_before(broker: BrokerProcess) -> None:
    """The first of two batches is looked into long before the second."""
    with BrokerClient(broker.port) as client:
        client.create("several", partitions=2)
        parts = [Message(index=0, records=batch(GZIP, 5)), Message(index=1, records=batch(GZIP, 200))]
        with client.together():
            topics = [Message(name="several", partition_data=parts)]
            client.send("Produce", VERSION, Message(acks=-1, timeout_ms=60_000, topic_data=topics))
            topics = [Message(name="several", partition_data=[Message(index=1, records=batch(GZIP, 1))])]
            client.send("Produce", VERSION, Message(acks=-1, timeout_ms=60_000, topic_data=topics))
        first = client.receive("Produce", VERSION).responses[0].partition_responses
        assert [(one.error_code, one.base_offset) for one in first] == [(0, 0), (0, 0)]
        assert answer(client) == (Error.NONE, 200)


def test_without_acks_the_next_request_waits(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("no-acks")
        with client.together():
            send(client, "no-acks", batch(GZIP, 50), acks=0)
            send(client, "no-acks", batch(GZIP, 1))
        assert answer(client) == (Error.NONE, 50)


def test_a_topic_that_is_deleted_meanwhile_takes_nothing(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as producer, BrokerClient(broker.port) as neighbour:
        neighbour.create("deleted")
        send(producer, "deleted", batch(GZIP, 200))
        neighbour.call("Metadata", 9, topics=[])  # the batch has been received
        deleted = neighbour.call("DeleteTopics", 4, topic_names=["deleted"], timeout_ms=5000)
        assert deleted.responses[0].error_code == 0
        neighbour.create("deleted", segment_bytes="100000000")
        error, start = answer(producer)
        assert (error, start) in [(Error.NONE, 0), (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_a_producer_that_goes_away_has_produced_all_the_same(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as neighbour:
        neighbour.create("gone")
        with BrokerClient(broker.port) as producer:
            send(producer, "gone", batch(GZIP, 100))
            neighbour.call("Metadata", 9, topics=[])
        turns = Turns()
        while neighbour.fetch("gone", 0).high_watermark < 100:
            turns.go()


def test_a_stop_in_order_does_not_wait_for_ever(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker:
        with BrokerClient(broker.port) as producer:
            producer.create("stopped")
            send(producer, "stopped", batch(GZIP, 200))
            assert broker.stop() == 0
        assert "Traceback" not in broker.text_of_log()
        broker.start()
