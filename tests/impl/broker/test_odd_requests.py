"""Requests that are rare, and that once failed."""

from collections.abc import Iterator
from uuid import uuid4

import crc32c
import pytest

from impl.records.batch import HEADER_SIZE
from impl.records.record import new_batch
from impl.wire.values import Message
from spec.values import Error
from tests.impl.broker.process import BrokerProcess, Client, wait_until

CRC_AT, CRC_FROM = 17, 21


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("odd") / "logs") as running:
        yield running


def test_a_topic_id_in_an_old_metadata_request_is_refused(broker: BrokerProcess) -> None:
    with Client(broker.port) as client:
        named = client.create("named")
        for topics in ([Message(name=None)], [Message(name="named"), Message(name="named", topic_id=named.topic_id)]):
            answer = client.call("Metadata", 10, topics=topics)
            assert [Error(one.error_code) for one in answer.topics] == [Error.INVALID_REQUEST] * len(topics)
        by_id = client.call("Metadata", 12, topics=[Message(name=None, topic_id=named.topic_id)])
        assert [(one.name, one.error_code) for one in by_id.topics] == [("named", 0)]
        (unknown,) = client.call("Metadata", 12, topics=[Message(name=None, topic_id=uuid4().bytes)]).topics
        assert Error(unknown.error_code) == Error.UNKNOWN_TOPIC_ID


def test_records_that_cannot_be_read_have_no_offset_by_time(broker: BrokerProcess) -> None:
    with Client(broker.port) as client:
        client.create("unreadable")
        batch = bytearray(new_batch([(1_000, b"key", b"value")]))
        batch[HEADER_SIZE + 3 :] = b"\x7f" * (len(batch) - HEADER_SIZE - 3)
        batch[CRC_AT:CRC_FROM] = crc32c.crc32c(bytes(batch[CRC_FROM:])).to_bytes(4, "big")
        assert client.produce("unreadable", bytes(batch)).error_code == 0
        for timestamp in (0, -3):
            topics = [Message(name="unreadable", partitions=[Message(partition_index=0, timestamp=timestamp)])]
            (found,) = client.call("ListOffsets", 7, replica_id=-1, topics=topics).topics[0].partitions
            assert (Error(found.error_code), found.offset) == (Error.INVALID_RECORD, -1)


def test_groups_end_with_the_topic_that_keeps_them(broker: BrokerProcess) -> None:
    with Client(broker.port) as member, Client(broker.port) as other:
        for _ in range(2):
            other.call("FindCoordinator", 4, key_type=0, coordinator_keys=["ended"])
        joining = {
            "group_id": "ended",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [Message(name="range", metadata=b"")],
        }
        first = member.call("JoinGroup", 3, member_id="", **joining)
        assert first.error_code == 0
        other.send("JoinGroup", 3, Message(member_id="", **joining))
        with Client(broker.port) as third:
            wait_until(lambda: third.call("Heartbeat", 3, group_id="ended", **member_of(first)).error_code == 27)
            (deleted,) = third.call(
                "DeleteTopics", 6, topics=[Message(name="__consumer_offsets")], timeout_ms=1000
            ).responses
            assert deleted.error_code == 0
            assert Error(other.receive("JoinGroup", 3).error_code) == Error.NOT_COORDINATOR
            refused = third.call("Heartbeat", 3, group_id="ended", **member_of(first))
            assert Error(refused.error_code) in {Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE}
            for _ in range(2):
                third.call("FindCoordinator", 4, key_type=0, coordinator_keys=["ended"])
            gone = third.call("Heartbeat", 3, group_id="ended", **member_of(first))
            assert Error(gone.error_code) == Error.UNKNOWN_MEMBER_ID


def member_of(joined: Message) -> dict[str, object]:
    return {"generation_id": joined.generation_id, "member_id": joined.member_id}


def test_an_offset_may_be_kept_for_ever_and_a_day(broker: BrokerProcess) -> None:
    with Client(broker.port) as client:
        client.create("kept")
        wait_until(lambda: client.call("FindCoordinator", 3, key="keeps", key_type=0).error_code == 0)
        offset = Message(partition_index=0, committed_offset=5, committed_metadata="")
        topics = [Message(name="kept", partitions=[offset])]

        def error() -> Error:
            answer = client.call(
                "OffsetCommit",
                4,
                group_id="keeps",
                generation_id_or_member_epoch=-1,
                member_id="",
                retention_time_ms=2**63 - 1,
                topics=topics,
            )
            return Error(answer.topics[0].partitions[0].error_code)

        wait_until(lambda: error() == Error.NONE)


def test_fetches_of_clients_that_have_gone_leave_nothing_behind(broker: BrokerProcess) -> None:
    with Client(broker.port) as client:
        client.create("waited-for")
        wanted = Message(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [Message(topic="waited-for", partitions=[wanted])]
        fetch = Message(max_wait_ms=2**31 - 1, min_bytes=1, max_bytes=1 << 20, topics=topics)
        memory = []
        for _ in range(3):
            for _ in range(60):
                with Client(broker.port) as gone:
                    for _ in range(30):
                        gone.send("Fetch", 12, fetch)
            assert client.call("ApiVersions", 0).error_code == 0
            memory.append(broker.memory())
        assert memory[2] - memory[1] < 4 << 20
        assert client.produce("waited-for", new_batch([(1, b"k", b"v")])).base_offset == 0


def test_the_settings_of_a_broker_have_types_and_sources(broker: BrokerProcess) -> None:
    with Client(broker.port) as client:
        asked = Message(resource_type=4, resource_name="1", configuration_keys=None)
        (answer,) = client.call("DescribeConfigs", 4, resources=[asked], include_synonyms=True).results
        found = {one.name: one for one in answer.configs}
        kinds = {"offsets.topic.replication.factor": 4, "num.partitions": 3, "log.retention.ms": 5, "log.dir": 7}
        assert {name: found[name].config_type for name in kinds} == kinds
        assert found["num.partitions"].read_only
        assert not found["message.max.bytes"].read_only
        delay = found["group.initial.rebalance.delay.ms"]
        assert (delay.value, delay.config_source) == ("0", 4)
        assert [(one.value, one.source) for one in delay.synonyms] == [("0", 4), ("3000", 5)]
