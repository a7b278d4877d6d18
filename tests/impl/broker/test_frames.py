"""Frames that are no requests, and requests that are not answered: the connection ends, the neighbours go on."""

import struct
from collections.abc import Iterator

import pytest

from kspec.impl.records.batch import BatchHeader, headers
from kspec.impl.records.record import StoredRecord, new_batch, records_of
from kspec.impl.server.network.receiving import LARGEST_SPARE, Spares
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.schema import schema
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until


def test_memory_is_used_again_when_nobody_looks_at_it() -> None:
    spares = Spares()
    memory = spares.take(100)
    memory[:3] = b"abc"
    view = memoryview(memory)[1:2]
    spares.give(memory)
    assert spares.take(50) is not memory
    view.release()
    spares.give(memory)
    assert memory[:3] == b"abc"
    assert spares.take(101) is not memory
    assert spares.take(50) is memory


def test_only_so_much_memory_is_kept() -> None:
    spares = Spares()
    pieces = [bytearray(size) for size in (30, 10, 20, LARGEST_SPARE + 1)]
    for piece in pieces:
        spares.give(piece)
    assert spares.take(1) is pieces[0]
    assert spares.take(1) is pieces[2]
    assert len(spares.take(1)) == 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("frames") / "logs") as running:
        yield running


def header(key: int, version: int, client_id: bytes | None = b"x", correlation: int = 7) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation, length) + (client_id or b"")


CLOSING = {
    "negative length": struct.pack(">i", -1),
    "oversized": struct.pack(">i", 2**31 - 1),
    "one byte over the limit": struct.pack(">i", 104857601),
    "empty": struct.pack(">i", 0),
    "three bytes": struct.pack(">i", 3) + b"abc",
    "unknown API": struct.pack(">i", 11) + header(999, 0),
    "API of controllers": struct.pack(">i", 11) + header(56, 2),
    "unknown version": struct.pack(">i", 11) + header(3, 99),
    "negative version": struct.pack(">i", 11) + header(3, -1),
    "garbage": struct.pack(">i", 31) + header(3, 9) + b"\x00" + b"\xff" * 19,
    "huge array": struct.pack(">i", 15) + header(3, 8) + struct.pack(">i", 2**31 - 1),
    "client id beyond the frame": struct.pack(">i", 11) + struct.pack(">hhih", 3, 8, 7, 1000) + b"x",
    "old produce": struct.pack(">i", 11) + header(0, 0),
}


@pytest.mark.parametrize("what", CLOSING)
def test_bytes_that_are_no_request_close_the_connection_and_no_other(broker: BrokerProcess, what: str) -> None:
    with BrokerClient(broker.port) as neighbour, BrokerClient(broker.port) as client:
        client.socket.sendall(CLOSING[what])
        with pytest.raises(ConnectionError):
            client.receive_frame()
        assert neighbour.call("ApiVersions", 4).error_code == 0


def test_a_frame_that_ends_early_leaves_nothing_behind(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as neighbour:
        for _ in range(5):
            with BrokerClient(broker.port) as client:
                client.socket.sendall(struct.pack(">i", 1000) + b"half")
        assert neighbour.call("ApiVersions", 4).error_code == 0


def test_api_versions_of_an_unknown_version_is_answered_as_version_0_with_an_error(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.send_frame(header(18, 99))
        frame = client.receive_frame()
        assert frame == struct.pack(">ihi", 7, 35, 1) + struct.pack(">hhh", 18, 0, 5)
        assert client.call("ApiVersions", 0).error_code == 0


def test_the_offered_versions_are_those_that_can_be_read(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        offered = {entry.api_key: entry for entry in client.call("ApiVersions", 3).api_keys}
    assert offered.keys() == APIS.keys()
    for api in APIS.values():
        assert offered[api.key].max_version in schema(f"{api.name}Request").versions
    assert (offered[0].min_version, offered[0].max_version) == (0, 13)
    assert (offered[1].min_version, offered[1].max_version) == (4, 18)
    assert (offered[2].min_version, offered[2].max_version) == (1, 11)


def test_a_client_may_have_no_name(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.send_frame(header(18, 0, None))
        assert client.receive_frame()[:6] == struct.pack(">ih", 7, 0)


def test_bytes_behind_a_request_are_ignored(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.send_frame(header(3, 8) + write_message("MetadataRequest", 8, Message(topics=None)) + b"more")
        assert client.receive_frame()[:4] == struct.pack(">i", 7)


def test_unknown_tagged_fields_are_skipped(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        body = write_message("MetadataRequest", 9, Message(topics=None))
        client.send_frame(header(3, 9) + b"\x00" + body[:-1] + b"\x01\x63\x03abc")
        assert client.receive_frame()[:4] == struct.pack(">i", 7)


def test_answers_come_in_the_order_of_the_requests(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("ordered")
        wanted = Message(topic="ordered", partitions=[Message(partition=0, fetch_offset=0, partition_max_bytes=100)])
        poll = Message(max_wait_ms=200, min_bytes=1, max_bytes=100, topics=[wanted])
        sent = [
            client.send("Metadata", 9, Message(topics=None)),
            client.send("Fetch", 12, poll),
            client.send("Metadata", 9, Message(topics=None)),
            client.send("ApiVersions", 3, Message()),
        ]
        received = [int.from_bytes(client.receive_frame()[:4], "big") for _ in sent]
        assert received == sent


def test_acks_0_gets_no_answer_and_an_error_closes_the_connection(broker: BrokerProcess) -> None:
    batch = new_batch([(1, b"k", b"v")] * 2)
    with BrokerClient(broker.port) as client:
        client.create("silent")
        data = Message(name="silent", partition_data=[Message(index=0, records=batch)])
        client.send("Produce", 9, Message(acks=0, timeout_ms=1000, topic_data=[data]))
        assert client.call("ApiVersions", 0).error_code == 0
        assert client.fetch("silent", 0).high_watermark == 2
        data = Message(name="missing", partition_data=[Message(index=0, records=batch)])
        client.send("Produce", 9, Message(acks=0, timeout_ms=1000, topic_data=[data]))
        with pytest.raises(ConnectionError):
            client.receive_frame()


def produce_request(topic: str, partition: int, acks: int, batch: bytes) -> Message:
    data = Message(name=topic, partition_data=[Message(index=partition, records=batch)])
    return Message(acks=acks, timeout_ms=1000, topic_data=[data])


def test_requests_that_come_together_are_appended_and_answered_in_their_order(broker: BrokerProcess) -> None:
    """Appends of one partition are joined; a fetch between them reads what came before it, and nothing is lost."""
    with BrokerClient(broker.port) as client:
        client.create("together", 2)
        batches = [new_batch([(1, None, b"%d" % number)] * (1 + number % 3)) for number in range(60)]
        places = [number % 2 if number < 30 else 0 for number in range(60)]
        acks = [(-1, 1, 0)[number % 3] for number in range(60)]
        ends, wanted = [0, 0], []
        with client.together():
            for number, batch in enumerate(batches):
                client.send("Produce", 9, produce_request("together", places[number], acks[number], batch))
                if acks[number]:
                    wanted.append(("Produce", 9, ends[places[number]]))
                ends[places[number]] += 1 + number % 3
                if number % 20 == 10:
                    asked = Message(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                    client.send(
                        "Fetch", 12, Message(max_bytes=1 << 20, topics=[Message(topic="together", partitions=[asked])])
                    )
                    wanted.append(("Fetch", 12, ends[0]))
        for api, version, offset in wanted:
            (answer,) = client.receive(api, version).responses
            (found,) = answer.partition_responses if api == "Produce" else answer.partitions
            assert found.error_code == 0
            assert offset == (found.base_offset if api == "Produce" else found.high_watermark)
        for partition in range(2):
            fetched = client.fetch("together", 0, partition)
            values = [record.value for header in headers(fetched.records) for record in values_in(fetched, header)]
            sent = [b"%d" % n for n in range(60) for _ in range(1 + n % 3) if places[n] == partition]
            assert values == sent


def values_in(fetched: Message, header: BatchHeader) -> list[StoredRecord]:
    return list(records_of(bytes(fetched.records[header.position : header.position + header.size])))


def test_a_reader_that_does_not_read_holds_nobody_up_and_little_memory(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as writer, BrokerClient(broker.port) as slow:
        writer.create("large")
        batch = new_batch([(1, None, bytes(900_000))])
        for _ in range(40):
            assert writer.produce("large", batch).error_code == 0
        before = broker.memory()
        wanted = Message(partition=0, fetch_offset=0, partition_max_bytes=1 << 26)
        fetch = Message(min_bytes=1, max_bytes=1 << 26, topics=[Message(topic="large", partitions=[wanted])])
        for _ in range(50):
            slow.send("Fetch", 12, fetch)
        assert writer.produce("large", batch).error_code == 0
        assert writer.fetch("large", 0).error_code == 0
        assert broker.memory() - before < 32 << 20
        first = slow.receive("Fetch", 12)
        assert first.responses[0].partitions[0].error_code == 0


def test_topics_that_cannot_be(broker: BrokerProcess) -> None:
    def wanted(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Message:
        given = [Message(name=one.replace("_", "."), value=value) for one, value in configs.items()]
        return Message(name=name, num_partitions=partitions, replication_factor=factor, assignments=[], configs=given)

    topics = {
        Error.INVALID_REPLICATION_FACTOR: [wanted("rf9", factor=9), wanted("rf0", factor=0)],
        Error.INVALID_PARTITIONS: [wanted("parts0", partitions=0)],
        Error.INVALID_TOPIC_EXCEPTION: [wanted("a/b"), wanted("..")],
        Error.INVALID_CONFIG: [wanted("value", retention_ms="soon"), wanted("unknown", no_such="1")],
    }
    with BrokerClient(broker.port) as client:
        for error, refused in topics.items():
            answer = client.call("CreateTopics", 7, topics=refused, timeout_ms=5000)
            assert [one.error_code for one in answer.topics] == [error.value] * len(refused)
        answer = client.call("CreateTopics", 7, topics=[wanted("only-looked-at")], timeout_ms=5000, validate_only=True)
        assert answer.topics[0].error_code == 0
        asked = client.call(
            "Metadata", 9, topics=[Message(name="only-looked-at"), Message(name="a/b")], allow_auto_topic_creation=False
        )
        assert [topic.error_code for topic in asked.topics] == [3, 17]


def test_connections_that_are_closed_are_forgotten(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:  # all that serves a connection is loaded
        client.call("ApiVersions", 0)
    before = broker.memory()
    for _ in range(100):
        BrokerClient(broker.port).close()
    with BrokerClient(broker.port) as client:
        wait_until(lambda: client.call("ApiVersions", 0).error_code == 0)
    assert broker.memory() - before < 16 << 20
