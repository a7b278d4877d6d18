"""Creating and deleting topics. Facts from Apache Kafka's `ReplicationControlManagerTest` and `TopicTest`."""

import pytest

from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.topics.creation import handle_create_partitions, handle_create_topics, usable_brokers
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.messages.topics.create_partitions import CreatePartitionsRequest, MorePartitions
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, ReplicaAssignment
from kspec.spec.messages.topics.delete_topics import DeleteTopicsRequest, TopicName
from kspec.spec.metadata import ConfigRecord, MetadataImage, PartitionRecord, RemoveTopicRecord, replay
from kspec.spec.topics import NO_TOPICS, configs_of, topic_named, topic_with_id
from kspec.spec.values import NO_TOPIC_ID, BrokerId, Error
from tests.spec.controller.topics.places import (
    broker,
    cluster,
    create,
    decided,
    named,
    new,
    of_topic,
    topic_id,
    with_topic,
)


@pytest.mark.parametrize("name", ["valid", "TOPIC", "nAmEs", "ar6", "VaL1d", "_0-9_.", "...", "a" * 249])
def test_legal_names(name: str) -> None:
    assert wrong_with_name(name) is None


@pytest.mark.parametrize("name", ["", "foo bar", ".", "..", "foo:bar", "foo=bar", "ä", "a\0", "a" * 250])
def test_illegal_names(name: str) -> None:
    assert wrong_with_name(name) is not None
    image, (answer,) = create(cluster(), new(name))
    assert (answer.error, image.topics) == (Error.INVALID_TOPIC_EXCEPTION, NO_TOPICS)


# ---- CreateTopics


def test_a_topic_is_created() -> None:
    image, (answer,) = create(cluster(), new("topic", 3, 2, configs=(("segment.bytes", "1048576"),)))
    assert (answer.error, answer.topic_id, answer.partitions, answer.replication_factor) == (Error.NONE, topic_id(1), 3, 2)
    (topic,) = image.topics.by_name
    assert topic_named(image.topics, "topic") == topic_with_id(image.topics, topic_id(1)) == topic
    assert topic.partitions == (0, 1, 2)
    assert configs_of(image.configs, of_topic()) == (("segment.bytes", "1048576"),)


def test_the_cluster_gives_what_is_not_said() -> None:
    settings = TopicSettings(default_partitions=4, default_replication_factor=3)
    _, (answer,) = create(cluster(), new("topic"), settings=settings)
    assert (answer.partitions, answer.replication_factor) == (4, 3)


def test_active_replicas_are_in_sync_and_the_first_leads() -> None:
    given = (ReplicaAssignment(1, (BrokerId(2), BrokerId(1))), ReplicaAssignment(0, (BrokerId(3), BrokerId(2))))
    request = CreateTopicsRequest((new("topic", assignments=given),))
    decision = decided(handle_create_topics, cluster(broker(1), broker(2), broker(3, fenced=True)), request)
    registrations = [one.registration for one in decision.records if isinstance(one, PartitionRecord)]
    assert [one.replicas for one in registrations] == [(3, 2), (2, 1)]
    assert [one.isr for one in registrations] == [{2}, {1, 2}]
    assert [one.leader for one in registrations] == [2, 2]


def test_only_to_look_creates_nothing() -> None:
    decision = decided(handle_create_topics, cluster(), CreateTopicsRequest((new("topic", 1, 1),), validate_only=True))
    assert decision.records == ()
    assert decision.answer.topics[0].error == Error.NONE


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, Error.INVALID_PARTITIONS),
        (-2, 1, Error.INVALID_PARTITIONS),
        (1, 0, Error.INVALID_REPLICATION_FACTOR),
        (1, -2, Error.INVALID_REPLICATION_FACTOR),
        (1, 4, Error.INVALID_REPLICATION_FACTOR),
        (1, 3, Error.NONE),
    ],
)
def test_numbers_that_cannot_be(partitions: int, factor: int, error: Error) -> None:
    image, (answer,) = create(cluster(), new("topic", partitions, factor))
    assert answer.error == error
    assert bool(image.topics.by_name) == (error == Error.NONE)


@pytest.mark.parametrize(
    ("given", "changes", "error"),
    [
        ([(0, (1, 2))], {"factor": 2}, Error.INVALID_REQUEST),
        ([(0, (1, 2))], {"partitions": 1}, Error.INVALID_REQUEST),
        ([(0, (1, 2)), (0, (1, 2))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (1, 2)), (2, (1, 2))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, ())], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (1, 1))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (1, 9))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (1, 2)), (1, (1,))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (4,))], {}, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (1, 2)), (1, (2, 3))], {}, Error.NONE),
    ],
)
def test_replicas_that_a_client_chooses(
    given: list[tuple[int, tuple[int, ...]]], changes: dict[str, int], error: Error
) -> None:
    chosen = tuple(ReplicaAssignment(index, tuple(BrokerId(one) for one in replicas)) for index, replicas in given)
    image = cluster(broker(1), broker(2), broker(3), broker(4, fenced=True))
    _, (answer,) = create(image, new("topic", assignments=chosen, **changes))
    assert answer.error == error


def test_no_replica_is_placed_where_every_broker_is_away() -> None:
    _, (answer,) = create(cluster(broker(1, fenced=True)), new("topic", 1, 1))
    assert answer.error == Error.INVALID_REPLICATION_FACTOR
    _, (answer,) = create(cluster(broker(1, leaving=True), broker(2, fenced=True)), new("topic", 1, 1))
    assert answer.error == Error.INVALID_REPLICATION_FACTOR


def test_brokers_that_shut_down_get_no_new_replicas() -> None:
    brokers = (broker(1, leaving=True), broker(2), broker(3, fenced=True))
    image = MetadataImage(brokers=brokers, racks=((BrokerId(2), "rack"),))
    assert [(one.broker, one.rack, one.fenced) for one in usable_brokers(image)] == [(2, "rack", False), (3, None, True)]


def test_a_name_is_used_once() -> None:
    image = with_topic()
    _, (answer,) = create(image, new("topic", number=2))
    assert answer.error == Error.TOPIC_ALREADY_EXISTS
    image, answers = create(cluster(), new("one"), new("one"), new("two", number=2))
    assert [(answer.name, answer.error) for answer in answers] == [("one", Error.INVALID_REQUEST), ("two", Error.NONE)]


def test_names_that_look_alike_in_metrics_collide() -> None:
    image = replay(replay(cluster(), named("a.b")), named("plain", 8))
    _, answers = create(image, new("a_b"), new("a.b", number=2), new("a.c", number=3), new("plain", number=4))
    assert [answer.error for answer in answers] == [
        Error.INVALID_TOPIC_EXCEPTION,
        Error.TOPIC_ALREADY_EXISTS,
        Error.NONE,
        Error.TOPIC_ALREADY_EXISTS,
    ]


def test_the_metadata_topic_is_not_created() -> None:
    _, (answer,) = create(cluster(), new("__cluster_metadata"))
    assert answer.error == Error.INVALID_REQUEST


@pytest.mark.parametrize("config", [("segment.bytes", "x"), ("segment.bytes", None), ("nonsense", "1")])
def test_settings_are_looked_at(config: tuple[str, str | None]) -> None:
    _, (answer,) = create(cluster(), new("topic", configs=(config,)))
    assert answer.error == Error.INVALID_CONFIG


def test_a_request_has_ten_thousand_partitions_at_most() -> None:
    image, answers = create(cluster(), new("a", 9_999, 1), new("b", 2, 1, number=2))
    assert [answer.error for answer in answers] == [Error.POLICY_VIOLATION] * 2
    given = tuple(ReplicaAssignment(0, (BrokerId(1),)) for _ in range(10_001))
    _, (answer,) = create(image, new("c", assignments=given))
    assert answer.error == Error.POLICY_VIOLATION


def test_one_that_fails_does_not_hinder_the_others() -> None:
    image, answers = create(cluster(), new("bad name"), new("good", number=2), new("__cluster_metadata", number=3))
    assert [answer.error for answer in answers][1] == Error.NONE
    assert [topic.name for topic in image.topics.by_name] == ["good"]


# ---- CreatePartitions


def more(image: MetadataImage, *topics: MorePartitions, validate_only: bool = False) -> list[Error]:
    decision = decided(handle_create_partitions, image, CreatePartitionsRequest(topics, validate_only))
    assert all(isinstance(record, PartitionRecord) for record in decision.records)
    assert not (validate_only and decision.records)
    return [topic.error for topic in decision.answer.topics]


def test_partitions_are_added_with_as_many_replicas() -> None:
    image = with_topic(partitions=2, factor=2)
    decision = decided(handle_create_partitions, image, CreatePartitionsRequest((MorePartitions("topic", 5),)))
    added = [record for record in decision.records if isinstance(record, PartitionRecord)]
    assert [(record.partition_id, record.place.partition) for record in added] == [(2, 2), (3, 3), (4, 4)]
    assert all(len(record.registration.replicas) == 2 for record in added)
    assert more(image, MorePartitions("topic", 5), validate_only=True) == [Error.NONE]


def test_what_partitions_cannot_be_added() -> None:
    image = with_topic()
    assert more(image, MorePartitions("topic", 2), MorePartitions("nowhere", 2)) == [
        Error.INVALID_PARTITIONS,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert more(image, MorePartitions("topic", 1)) == [Error.INVALID_PARTITIONS]
    assert more(image, MorePartitions("topic", 3), MorePartitions("topic", 4)) == [Error.INVALID_REQUEST]
    assert more(image, MorePartitions("topic", 10_003)) == [Error.POLICY_VIOLATION]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([(1, 2)], Error.NONE),
        ([(1,)], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(1, 2), (2, 1)], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(1, 1)], Error.INVALID_REPLICA_ASSIGNMENT),
        ([], Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_replicas_of_new_partitions_that_a_client_chooses(given: list[tuple[int, ...]], error: Error) -> None:
    chosen = tuple(tuple(BrokerId(one) for one in replicas) for replicas in given)
    assert more(with_topic(), MorePartitions("topic", 3, chosen)) == [error]


def test_no_partition_is_added_where_every_broker_is_away() -> None:
    image = with_topic(factor=1)._replace(brokers=(broker(1, fenced=True),))
    assert more(image, MorePartitions("topic", 3)) == [Error.INVALID_REPLICATION_FACTOR]
    assert more(image, MorePartitions("topic", 3, ((BrokerId(1),),))) == [Error.INVALID_REPLICA_ASSIGNMENT]


# ---- DeleteTopics


def delete(image: MetadataImage, *topics: TopicName) -> list[tuple[str | None, Error]]:
    answer = decided(handle_delete_topics, image, DeleteTopicsRequest(topics)).answer
    return [(topic.name, topic.error) for topic in answer.topics]


def test_a_topic_is_deleted_with_its_settings() -> None:
    image = replay(with_topic(), ConfigRecord(of_topic(), "retention.ms", "1"))
    for wanted in (TopicName("topic"), TopicName(None, topic_id(1))):
        decision = decided(handle_delete_topics, image, DeleteTopicsRequest((wanted,)))
        assert decision.records == (RemoveTopicRecord(topic_id(1)),)
        assert decision.answer.topics[0].name == "topic"
        gone = replay(image, decision.records[0])
        assert gone == decision.image
        assert (gone.topics, gone.partitions, gone.configs) == (NO_TOPICS, (), ())


def test_what_cannot_be_deleted() -> None:
    image = with_topic()
    assert delete(image, TopicName("nowhere"), TopicName(None, topic_id(7))) == [
        ("nowhere", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (None, Error.UNKNOWN_TOPIC_ID),
    ]
    assert delete(image, TopicName(None, NO_TOPIC_ID)) == [(None, Error.INVALID_REQUEST)]
    assert delete(image, TopicName("topic", topic_id(1))) == [("topic", Error.INVALID_REQUEST)]
    assert delete(image, TopicName("topic"), TopicName("topic")) == [("topic", Error.INVALID_REQUEST)]
    assert delete(image, TopicName(None, NO_TOPIC_ID), TopicName(None, NO_TOPIC_ID)) == [(None, Error.INVALID_REQUEST)] * 2
    assert delete(image, TopicName("topic"), TopicName(None, topic_id(1))) == [("topic", Error.INVALID_REQUEST)]
