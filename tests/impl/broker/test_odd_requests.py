"""Requests that are rare, and that once failed."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.requests.hand_made import GZIP, made, rec

SET, DELETE = 0, 1
"""Kafka: `AlterConfigOp.OpType`."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("odd") / "logs") as running:
        yield running


def test_a_topic_id_in_an_old_metadata_request_is_refused(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        named = client.create("named")
        for topics in ([Message(name=None)], [Message(name="named"), Message(name="named", topic_id=named.topic_id)]):
            answer = client.call("Metadata", 10, topics=topics)
            assert [Error(one.error_code) for one in answer.topics] == [Error.INVALID_REQUEST] * len(topics)
        by_id = client.call("Metadata", 12, topics=[Message(name=None, topic_id=named.topic_id)])
        assert [(one.name, one.error_code) for one in by_id.topics] == [("named", 0)]
        (unknown,) = client.call("Metadata", 12, topics=[Message(name=None, topic_id=uuid4().bytes)]).topics
        assert Error(unknown.error_code) == Error.UNKNOWN_TOPIC_ID


def test_records_that_cannot_be_read_have_no_offset_by_time(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("unreadable")
        batch = made(rec(0, more=1) + rec(1), 2, GZIP)  # a compressed record is taken, whatever length it says it has
        assert client.produce("unreadable", batch.raw(1_000)).error_code == 0
        for timestamp in (0, -3):
            topics = [Message(name="unreadable", partitions=[Message(partition_index=0, timestamp=timestamp)])]
            (found,) = client.call("ListOffsets", 7, replica_id=-1, topics=topics).topics[0].partitions
            assert (Error(found.error_code), found.offset) == (Error.INVALID_RECORD, -1)


def test_groups_end_with_the_topic_that_keeps_them(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as member, BrokerClient(broker.port) as other:
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
        with BrokerClient(broker.port) as third:
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
    with BrokerClient(broker.port) as client:
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


def settled_memory(broker: BrokerProcess) -> int:
    """The memory of a broker that has handled all that was sent: clients that ask much wait for each other."""
    seen = [-1, 0]

    def is_settled() -> bool:
        time.sleep(0.3)
        seen[:] = [seen[1], broker.memory()]
        return seen[0] == seen[1]

    wait_until(is_settled)
    return seen[1]


def test_fetches_of_clients_that_have_gone_leave_nothing_behind(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("waited-for")
        wanted = Message(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [Message(topic="waited-for", partitions=[wanted])]
        fetch = Message(max_wait_ms=2**31 - 1, min_bytes=1, max_bytes=1 << 20, topics=topics)
        memory = []
        for _ in range(6):
            for _ in range(60):
                with BrokerClient(broker.port) as gone:
                    for _ in range(30):
                        gone.send("Fetch", 12, fetch)
            assert client.call("ApiVersions", 0).error_code == 0
            memory.append(settled_memory(broker))
        assert memory[5] - memory[4] < 4 << 20
        assert client.produce("waited-for", new_batch([(1, b"k", b"v")])).base_offset == 0


def test_the_settings_of_a_broker_have_types_and_sources(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
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


def test_what_topics_have_of_the_broker_changes_while_it_runs(tmp_path: Path) -> None:
    """As with Kafka 4.4.0, whose error codes and synonyms these are."""
    with BrokerProcess(tmp_path / "logs") as broker:
        with BrokerClient(broker.port) as client:
            client.create("t", 1)

            def changed(node: str, name: str, value: str | None) -> int:
                change = Message(name=name, config_operation=SET if value is not None else DELETE, value=value)
                resource = Message(resource_type=4, resource_name=node, configs=[change])
                (answer,) = client.call("IncrementalAlterConfigs", 1, resources=[resource]).responses
                return int(answer.error_code)

            assert changed("", "log.retention.ms", "78") == Error.NONE.value
            assert changed("1", "log.retention.ms", "77") == Error.NONE.value
            assert changed("1", "log.retention.ms", "soon") == Error.INVALID_REQUEST.value
            assert changed("1", "node.id", "8") == Error.INVALID_REQUEST.value
            assert changed("", "log.roll.ms", "5") == changed("", "log.roll.ms", None) == Error.NONE.value
            batch = new_batch([(1, b"k", b"v")])
            assert client.produce("t", batch).error_code == Error.NONE.value
            assert changed("", "log.message.timestamp.before.max.ms", "1") == Error.NONE.value
            assert client.produce("t", batch).error_code == Error.INVALID_TIMESTAMP.value, "it counts at once"
        broker.restart()
        with BrokerClient(broker.port) as client:
            asked = Message(resource_type=2, resource_name="t", configuration_keys=["retention.ms"])
            (described,) = client.call("DescribeConfigs", 4, resources=[asked], include_synonyms=True).results
            (found,) = described.configs
            synonyms = [(one.name, one.value, one.source) for one in found.synonyms]
    assert (described.error_message, found.value, found.config_source) == ("", "77", 2)
    behind = [("log.retention.ms", "77", 2), ("log.retention.ms", "78", 3), ("log.retention.hours", "168", 5)]
    assert synonyms == behind


# ---- what random requests to Apache Kafka 4.4.0 and to this broker showed to be different


def test_topics_without_partitions_are_left_out_where_kafka_leaves_them_out(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("sparse")
        empty = [Message(name="sparse", partitions=[])]
        assert client.call("ListOffsets", 7, replica_id=-1, topics=empty).topics == []
        assert client.call("DeleteRecords", 2, topics=empty, timeout_ms=100).topics == []
        data = [Message(name="sparse", partition_data=[])]
        assert client.call("Produce", 9, acks=-1, timeout_ms=100, topic_data=data).responses == []


@pytest.mark.parametrize(("names", "at"), [(("paged",), ("other", 0)), (("paged",), ("paged", -1))])
def test_a_page_that_begins_nowhere_is_refused(broker: BrokerProcess, names: tuple[str, ...], at: tuple[str, int]) -> None:
    with BrokerClient(broker.port) as client:
        topics, cursor = [Message(name=name) for name in names], Message(topic_name=at[0], partition_index=at[1])
        answer = client.call("DescribeTopicPartitions", 0, topics=topics, response_partition_limit=5, cursor=cursor)
        assert [Error(one.error_code) for one in answer.topics] == [Error.INVALID_REQUEST] * len(names)


def test_ids_count_and_names_do_not_where_metadata_are_asked_for_by_both(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        known = client.create("by-id")
        asked = [Message(name="something", topic_id=known.topic_id)]
        (found,) = client.call("Metadata", 12, topics=asked, allow_auto_topic_creation=False).topics
        assert (found.name, found.error_code) == ("by-id", 0)


def test_settings_of_a_broker_that_there_is_not_are_refused_alone(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        client.create("settled")
        resources = [
            Message(resource_type=4, resource_name="seven", configs=[]),
            Message(
                resource_type=2,
                resource_name="settled",
                configs=[Message(name="retention.ms", config_operation=0, value="5000")],
            ),
        ]
        answer = client.call("IncrementalAlterConfigs", 1, resources=resources, validate_only=True)
        found = {one.resource_name: Error(one.error_code) for one in answer.responses}
        assert found == {"seven": Error.INVALID_REQUEST, "settled": Error.NONE}


def test_a_member_without_a_session_is_refused_before_its_coordinator_is_looked_for(broker: BrokerProcess) -> None:
    with BrokerClient(broker.port) as client:
        joining = {"group_id": "anywhere", "session_timeout_ms": 1, "rebalance_timeout_ms": 1, "member_id": ""}
        answer = client.call("JoinGroup", 7, **joining, protocol_type="consumer", protocols=[])
        assert (Error(answer.error_code), answer.protocol_name) == (Error.INVALID_SESSION_TIMEOUT, None)
        syncing = {"group_id": "anywhere", "generation_id": 0, "member_id": "m", "protocol_name": "range"}
        assert (
            Error(client.call("SyncGroup", 5, **syncing, protocol_type=None).error_code) == Error.INCONSISTENT_GROUP_PROTOCOL
        )
