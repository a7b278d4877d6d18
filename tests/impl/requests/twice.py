"""Requests that name the same thing twice in a list, and what a broker answers them with.

`python -m tests.impl.requests.twice HOST:PORT` asks a broker that is alone and prints what it says as JSON. What Apache
Kafka 4.4.0 says is in `tests/data/kafka-4.4-twice.json`.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from tests.impl.broker.process import BrokerClient, wait_until

TOPIC, GROUP = "named-twice", "group-twice"
Ask = Callable[[BrokerClient], Any]
SECONDS = 6
"""The longest wait for an answer: Kafka does not answer each of these requests."""


def prepare(client: BrokerClient) -> bytes:
    """A topic with a record, a group with offsets; the topic's id."""
    made = client.create(TOPIC, 2)
    wait_until(lambda: all(client.fetch(TOPIC, 0, number).error_code == 0 for number in range(2)))
    batch = new_batch([(int(time.time() * 1000), b"k", b"v")])
    assert client.produce(TOPIC, batch).error_code == 0
    wait_until(
        lambda: client.call("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP]).coordinators[0].error_code == 0
    )
    partitions = [Message(partition_index=number, committed_offset=number + 5) for number in range(2)]
    topics = [Message(name=TOPIC, partitions=partitions)]
    offsets = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    wait_until(lambda: client.call("OffsetCommit", 8, **offsets).topics[0].partitions[0].error_code == 0)
    return bytes(made.topic_id)


def sorted_by_name(answers: list[Message]) -> list[Message]:
    """Answers in the order of their names: that of the broker does not matter."""
    return sorted(answers, key=lambda one: str(one.name))


def _new(name: str, **given: Any) -> Message:
    fields = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | given
    return Message(name=name, **fields)


def _assigned(*partitions: tuple[int, list[int]]) -> dict[str, Any]:
    listed = [Message(partition_index=number, broker_ids=brokers) for number, brokers in partitions]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": listed}


def _config(name: str, value: str | None = None, operation: int = 0) -> Message:
    return Message(name=name, value=value, config_operation=operation)


def _old(name: str, value: str) -> Message:
    return Message(name=name, value=value)


def cases(topic_id: bytes) -> dict[str, Ask]:
    """The requests, in this order: some requests change what the later ones see."""

    def creates(*topics: Message, **more: Any) -> Ask:
        return lambda client: [
            [one.name, one.error_code]
            for one in sorted_by_name(client.call("CreateTopics", 7, topics=list(topics), timeout_ms=5000, **more).topics)
        ]

    def grows(*topics: Message) -> Ask:
        return lambda client: [
            [one.name, one.error_code]
            for one in client.call("CreatePartitions", 3, topics=list(topics), timeout_ms=5000).results
        ]

    def deletes(*topics: Message) -> Ask:
        return lambda client: sorted(
            [one.error_code, one.name is None]
            for one in client.call("DeleteTopics", 6, topics=list(topics), timeout_ms=5000).responses
        )

    def alters(api: str, version: int, *resources: Message) -> Ask:
        return lambda client: [
            [one.resource_name, one.error_code] for one in client.call(api, version, resources=list(resources)).responses
        ]

    def resource(*configs: Message, name: str = TOPIC) -> Message:
        return Message(resource_type=2, resource_name=name, configs=list(configs))

    def listed(version: int, *partitions: int) -> Ask:
        wanted = [Message(partition_index=one, timestamp=-1) for one in partitions]
        return lambda client: [
            sorted([one.partition_index, one.error_code, one.offset] for one in topic.partitions)
            for topic in client.call(
                "ListOffsets", version, replica_id=-1, topics=[Message(name=TOPIC, partitions=wanted)]
            ).topics
        ]

    def fetched(version: int, topics: list[list[int]]) -> Ask:
        by_id = version >= 13
        named = {"topic_id": topic_id} if by_id else {"topic": TOPIC}
        wanted = [
            Message(**named, partitions=[Message(partition=one, fetch_offset=0, partition_max_bytes=1000) for one in listed])
            for listed in topics
        ]
        return lambda client: [
            [[one.partition_index, one.error_code, len(one.records or b"") > 0] for one in topic.partitions]
            for topic in client.call("Fetch", version, max_wait_ms=0, max_bytes=10_000, topics=wanted).responses
        ]

    def for_epoch(topics: list[list[int]]) -> Ask:
        wanted = [
            Message(topic=TOPIC, partitions=[Message(partition=one, leader_epoch=0) for one in listed]) for listed in topics
        ]
        return lambda client: [
            [[one.partition, one.error_code, one.end_offset] for one in topic.partitions]
            for topic in client.call("OffsetForLeaderEpoch", 4, replica_id=-1, topics=wanted).topics
        ]

    def commits(topics: list[list[tuple[int, int]]]) -> Ask:
        wanted = [
            Message(name=TOPIC, partitions=[Message(partition_index=one, committed_offset=at) for one, at in listed])
            for listed in topics
        ]
        fields = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "", "topics": wanted}
        return lambda client: [
            [[one.partition_index, one.error_code] for one in topic.partitions]
            for topic in client.call("OffsetCommit", 8, **fields).topics
        ]

    def offsets(groups: list[list[list[int]]]) -> Ask:
        wanted = [
            Message(group_id=GROUP, topics=[Message(name=TOPIC, partition_indexes=listed) for listed in topics])
            for topics in groups
        ]
        return lambda client: [
            [
                [[one.partition_index, one.error_code, one.committed_offset] for one in topic.partitions]
                for topic in group.topics
            ]
            for group in client.call("OffsetFetch", 8, groups=wanted).groups
        ]

    def deletes_records(topics: list[list[tuple[int, int]]]) -> Ask:
        wanted = [
            Message(name=TOPIC, partitions=[Message(partition_index=one, offset=at) for one, at in listed])
            for listed in topics
        ]
        return lambda client: [
            sorted([one.partition_index, one.error_code, one.low_watermark] for one in topic.partitions)
            for topic in client.call("DeleteRecords", 2, topics=wanted, timeout_ms=5000).topics
        ]

    def joins(protocols: list[str], group: str) -> Ask:
        def ask(client: BrokerClient) -> Any:
            fields = {
                "group_id": group,
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 10_000,
                "protocol_type": "consumer",
                "protocols": [Message(name=name, metadata=name.encode()) for name in protocols],
            }
            answer = client.call("JoinGroup", 3, member_id="", **fields)
            return [answer.error_code, answer.protocol_name]

        return ask

    twice = [Message(name=TOPIC)] * 2
    none, other = Message(name=None), Message(name=None, topic_id=topic_id)
    return {
        "create": creates(_new("c1"), _new("c1")),
        "create-twice-and-another": creates(_new("c2"), _new("c2"), _new("c3")),
        "create-three-times": creates(_new("c4"), _new("c4"), _new("c4")),
        "create-there-already-twice": creates(_new(TOPIC), _new(TOPIC)),
        "create-replicas": creates(_new("c5", **_assigned((0, [1, 1])))),
        "create-partitions": creates(_new("c6", **_assigned((0, [1]), (0, [1])))),
        "create-partitions-and-replicas": creates(_new("c7", **_assigned((0, [1]), (1, [1, 1])))),
        "create-configs": creates(_new("c8", configs=[_old("retention.ms", "1000"), _old("retention.ms", "2000")])),
        "create-configs-wrong-first": creates(_new("c9", configs=[_old("retention.ms", "x"), _old("retention.ms", "2000")])),
        "create-configs-wrong-last": creates(_new("c10", configs=[_old("retention.ms", "1000"), _old("retention.ms", "x")])),
        "grow": grows(Message(name=TOPIC, count=3), Message(name=TOPIC, count=4)),
        "grow-twice-and-another": grows(
            Message(name=TOPIC, count=3), Message(name=TOPIC, count=3), Message(name="c3", count=2)
        ),
        "grow-replicas": grows(Message(name="c3", count=3, assignments=[Message(broker_ids=[1, 1])])),
        "delete": deletes(Message(name="c3"), Message(name="c3")),
        "delete-unknown-twice": deletes(Message(name="c99"), Message(name="c99")),
        "delete-by-id": deletes(other, other),
        "delete-by-name-and-id": deletes(Message(name=TOPIC), other),
        "delete-nameless": deletes(none, none),
        "incremental-keys": alters(
            "IncrementalAlterConfigs", 1, resource(_config("retention.ms", "1"), _config("retention.ms", "2"))
        ),
        "incremental-resources": alters(
            "IncrementalAlterConfigs", 1, resource(_config("retention.ms", "1")), resource(_config("segment.ms", "7"))
        ),
        "incremental-resources-and-another": alters(
            "IncrementalAlterConfigs",
            1,
            resource(_config("retention.ms", "1")),
            resource(_config("segment.ms", "7")),
            resource(_config("retention.ms", "1"), name="c99"),
        ),
        "alter-keys": alters("AlterConfigs", 2, resource(_old("retention.ms", "1"), _old("retention.ms", "2"))),
        "alter-resources": alters("AlterConfigs", 2, resource(_old("retention.ms", "1")), resource(_old("segment.ms", "7"))),
        "describe-resources": lambda client: [
            [one.resource_name, one.error_code, len(one.configs)]
            for one in client.call(
                "DescribeConfigs",
                4,
                resources=[Message(resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms"])] * 2,
            ).results
        ],
        "describe-keys": lambda client: [
            [one.resource_name, one.error_code, len(one.configs)]
            for one in client.call(
                "DescribeConfigs",
                4,
                resources=[Message(resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms"] * 2)],
            ).results
        ],
        "list-offsets": listed(7, 0, 0),
        "list-offsets-and-another": listed(7, 0, 1, 0),
        "list-offsets-old": listed(1, 0, 0),
        "list-offsets-topics": lambda client: [
            sorted([one.partition_index, one.error_code, one.offset] for one in topic.partitions)
            for topic in client.call(
                "ListOffsets",
                7,
                replica_id=-1,
                topics=[Message(name=TOPIC, partitions=[Message(partition_index=0, timestamp=-1)])] * 2,
            ).topics
        ],
        "fetch-partitions": fetched(12, [[0, 0]]),
        "fetch-partitions-by-id": fetched(13, [[0, 0]]),
        "fetch-partitions-and-another": fetched(12, [[0, 1, 0]]),
        "fetch-topics": fetched(12, [[0], [0]]),
        "fetch-topics-others": fetched(12, [[0], [1]]),
        "for-epoch": for_epoch([[0, 0]]),
        "for-epoch-topics": for_epoch([[0], [0]]),
        "commit": commits([[(0, 11), (0, 12)]]),
        "commit-topics": commits([[(1, 21)], [(1, 22)]]),
        "offsets-partitions": offsets([[[0, 0]]]),
        "offsets-topics": offsets([[[0], [1]]]),
        "offsets-topics-same": offsets([[[0], [0]]]),
        "offsets-groups": offsets([[[0]], [[1]]]),
        "metadata": lambda client: [
            [one.name, one.error_code]
            for one in client.call("Metadata", 12, topics=twice, allow_auto_topic_creation=False).topics
        ],
        "metadata-unknown": lambda client: [
            [one.name, one.error_code]
            for one in client.call("Metadata", 12, topics=[Message(name="c99")] * 2, allow_auto_topic_creation=False).topics
        ],
        "metadata-by-id": lambda client: [
            [one.name, one.error_code] for one in client.call("Metadata", 12, topics=[other] * 2).topics
        ],
        "describe-partitions": lambda client: [
            [one.name, one.error_code, len(one.partitions)]
            for one in client.call("DescribeTopicPartitions", 0, topics=twice, response_partition_limit=100).topics
        ],
        "coordinators": lambda client: [
            [one.key, one.error_code]
            for one in client.call("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP] * 2).coordinators
        ],
        "describe-groups": lambda client: [
            [one.group_id, one.error_code] for one in client.call("DescribeGroups", 5, groups=[GROUP] * 2).groups
        ],
        "join-protocols": joins(["range", "range"], "joined-1"),
        "join-protocols-others": joins(["range", "sticky", "range"], "joined-2"),
        "delete-records": deletes_records([[(0, 0), (0, 1)]]),
        "delete-records-topics": deletes_records([[(0, 1)], [(0, 0)]]),
        "delete-offsets": lambda client: [
            [[one.partition_index, one.error_code] for one in topic.partitions]
            for topic in client.call(
                "OffsetDelete",
                0,
                group_id=GROUP,
                topics=[Message(name=TOPIC, partitions=[Message(partition_index=0)] * 2)],
            ).topics
        ],
        "delete-groups": lambda client: sorted(
            [one.group_id, one.error_code] for one in client.call("DeleteGroups", 2, groups_names=[GROUP, GROUP]).results
        ),
    }


def ask_all(port: int) -> dict[str, Any]:
    """A broker's answers."""
    with BrokerClient(port) as client:
        topic_id = prepare(client)
    found: dict[str, Any] = {}
    for name, ask in cases(topic_id).items():
        with BrokerClient(port, timeout=SECONDS) as client:
            try:
                found[name] = ask(client)
            except ConnectionError:
                found[name] = "closed"
            except TimeoutError:
                found[name] = "not answered"
    return found


if __name__ == "__main__":
    print(json.dumps(ask_all(int(sys.argv[1].rpartition(":")[2])), indent=0))
