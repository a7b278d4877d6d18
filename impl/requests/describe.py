"""What clients ask about the broker and the cluster: versions, metadata, log directories."""

from typing import Any

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.replica import Place
from impl.metadata.image import Topic
from impl.requests.features import feature_fields
from impl.requests.topics import create_missing
from impl.wire.apis import APIS
from impl.wire.schema import NO_UUID
from impl.wire.values import Message
from spec.broker.clients.metadata_requests import (
    Cursor,
    check_cursor,
    check_missing_topic,
    check_named_topics,
    counts_by_id,
    entries_that_count,
    page_size,
)
from spec.controller.topics.names import wrong_with_name
from spec.metadata import PartitionRegistration, is_unfenced
from spec.releases.features import features_supported
from spec.values import NO_LEADER, Error

NO_OPERATIONS = -(2**31)
"""The client has not asked which operations are allowed. Kafka: `MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED`."""

TOPIC_OPERATIONS, CLUSTER_OPERATIONS = 3576, 8096
"""Everything that can be done with a topic, or with the cluster, as bits. There is nobody to forbid it.

Kafka: `AclEntry.supportedOperations`.
"""


def api_versions(core: Core, call: Call, now: int) -> list[Effect]:
    """Which requests are answered, in which versions, and which features there are.

    **Kafka:** `KafkaApis.handleApiVersionsRequest`.
    """
    offered = [
        Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last) for api in core.apis.values()
    ]
    features = feature_fields(features_supported("next"), core.image, call.version)
    return [call.respond(error_code=0, api_keys=sorted(offered, key=lambda entry: entry.api_key), **features)]


def unsupported_api_versions(call: Call) -> list[Effect]:
    """The answer to ApiVersions in a version that is not known: version 0 of the answer, which names ApiVersions alone."""
    api = APIS[call.header.key]
    listed = [Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last)]
    return [call.respond(error_code=Error.UNSUPPORTED_VERSION.value, api_keys=listed)]


def metadata(core: Core, call: Call, now: int) -> list[Effect]:
    """Brokers, topics and partitions; a topic that is not there may be created.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest`.
    """
    request = call.message
    effects: list[Effect] = []
    given = tuple((one.name is not None, bytes(one.topic_id) != NO_UUID) for one in request.topics or ())
    error = check_named_topics(call.version, given)
    if error != Error.NONE:
        return [call.respond(topics=[_missing(error, one.name or "", bytes(one.topic_id)) for one in request.topics])]
    if request.topics is None or (call.version == 0 and not request.topics):
        named = [_topic(core, topic, call) for topic in core.cluster.image.topics.values()]
    else:
        named = []
        missing = []
        by_id = counts_by_id(given)
        for one in (request.topics[position] for position in entries_that_count(given)):
            topic = core.cluster.topic(one.name, bytes(one.topic_id), by_id)
            if topic is not None:
                named.append(_topic(core, topic, call))
            else:
                error = check_missing_topic(by_id, by_id or wrong_with_name(one.name) is None)
                missing += [one.name] if error == Error.UNKNOWN_TOPIC_OR_PARTITION else []
                operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations and not by_id else NO_OPERATIONS
                name = None if by_id else one.name
                named.append(_missing(error, name, bytes(one.topic_id), operations))
        if missing and request.allow_auto_topic_creation and core.config["auto.create.topics.enable"]:
            effects = create_missing(core, missing, now)
    fields: dict[str, Any] = {
        "brokers": alive_brokers(core),
        "cluster_id": core.cluster_id,
        "controller_id": core.cluster.self_id,
        "topics": named,
    }
    if request.include_cluster_authorized_operations:
        fields["cluster_authorized_operations"] = CLUSTER_OPERATIONS
    return [call.respond(**fields), *effects]


def alive_brokers(core: Core) -> list[Message]:
    """The brokers that are alive, with their addresses."""
    known = core.cluster.worked_out()
    if ALIVE not in known:
        known[ALIVE] = _alive_brokers(core)
    return known[ALIVE]


ALIVE = "brokers that are alive", -1
"""What their part of an answer is about."""


def _alive_brokers(core: Core) -> list[Message]:
    endpoints = core.cluster.image.endpoints
    return [
        Message(
            node_id=registration.broker,
            host=endpoints[registration.broker].host,
            port=endpoints[registration.broker].port,
            rack=core.cluster.image.racks.get(registration.broker),
        )
        for registration in core.cluster.image.spec.brokers
        if not registration.fenced and registration.broker in endpoints
    ]


def _missing(error: Error, name: str | None, topic_id: bytes = NO_UUID, operations: int = NO_OPERATIONS) -> Message:
    fields = {"topic_id": topic_id, "partitions": [], "topic_authorized_operations": operations}
    return Message(error_code=error.value, name=name, **fields)


def _topic(core: Core, topic: Topic, call: Call) -> Message:
    known = core.cluster.worked_out()
    if topic.name not in known:
        registrations = core.cluster.registrations()
        known[topic.name] = [
            _partition(core, Place(topic.name, index), registrations[partition_id])
            for index, partition_id in enumerate(topic.partitions)
        ]
    message = Message(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=core.is_internal(topic.name),
        partitions=known[topic.name],
    )
    if call.message.include_topic_authorized_operations:
        message.__dict__["topic_authorized_operations"] = TOPIC_OPERATIONS
    return message


def _partition(core: Core, place: Place, registration: PartitionRegistration) -> Message:
    brokers = core.cluster.image.spec.brokers
    leader = registration.leader
    error = Error.NONE if leader != NO_LEADER else Error.LEADER_NOT_AVAILABLE
    return Message(
        error_code=error.value,
        partition_index=place.partition,
        leader_id=leader,
        leader_epoch=registration.leader_epoch,
        replica_nodes=list(registration.replicas),
        isr_nodes=sorted(registration.isr),
        offline_replicas=[replica for replica in registration.replicas if not is_unfenced(brokers, replica)],
    )


def describe_topic_partitions(core: Core, call: Call, now: int) -> list[Effect]:
    """Topics with their partitions, page by page (KIP-966). **Kafka:** `DescribeTopicPartitionsRequestHandler`."""
    request = call.message
    asked = {topic.name for topic in request.topics}
    at = None if request.cursor is None else Cursor(request.cursor.topic_name, request.cursor.partition_index)
    error = check_cursor(asked, at)
    if error != Error.NONE:
        return [call.respond(topics=[_missing(error, topic.name) for topic in request.topics])]
    names = sorted(name for name in asked or core.cluster.image.topics if at is None or name >= at.topic)
    first = at.partition if at is not None and names[:1] == [at.topic] else 0
    left = page_size(request.response_partition_limit, core.config["max.request.partition.size.limit"])
    registrations = core.cluster.registrations()
    topics: list[Message] = []
    cursor = None
    for name in names:
        if left == 0:
            cursor = Message(topic_name=name, partition_index=0)
            break
        topic = core.cluster.image.topics.get(name)
        if topic is None:
            missing = check_missing_topic(False, wrong_with_name(name) is None)
            topics.append(_missing(missing, name, operations=TOPIC_OPERATIONS))
            continue
        shown = list(enumerate(topic.partitions))[first : first + left]
        topics.append(
            Message(
                error_code=0,
                name=name,
                topic_id=topic.topic_id,
                is_internal=core.is_internal(name),
                partitions=[_described(core, Place(name, index), registrations[one]) for index, one in shown],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        left -= len(shown)
        if first + len(shown) < len(topic.partitions):
            cursor = Message(topic_name=name, partition_index=first + len(shown))
            break
        first = 0
    return [call.respond(topics=topics, next_cursor=cursor)]


def _described(core: Core, place: Place, registration: PartitionRegistration) -> Message:
    message = _partition(core, place, registration)
    message.__dict__["eligible_leader_replicas"] = sorted(registration.elr)
    message.__dict__["last_known_elr"] = sorted(registration.last_known_elr)
    return message


def describe_cluster(core: Core, call: Call, now: int) -> list[Effect]:
    """The brokers and the controller. **Kafka:** `AuthHelper.computeDescribeClusterResponse`."""
    request = call.message
    if call.version >= 1 and request.endpoint_type != 1:
        wrong = Error.MISMATCHED_ENDPOINT_TYPE if request.endpoint_type == 2 else Error.UNSUPPORTED_ENDPOINT_TYPE
        return [call.respond(error_code=wrong.value, endpoint_type=1)]
    listed = [
        Message(broker_id=one.node_id, host=one.host, port=one.port, rack=one.rack, is_fenced=False)
        for one in alive_brokers(core)
    ]
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
    return [
        call.respond(
            cluster_id=core.cluster_id,
            controller_id=core.cluster.self_id,
            brokers=listed,
            cluster_authorized_operations=operations,
        )
    ]


def describe_log_dirs(core: Core, call: Call, now: int) -> list[Effect]:
    """How large the partitions are on disk. **Kafka:** `ReplicaManager.describeLogDirs`."""
    wanted = call.message.topics
    if wanted is None:
        places = list(core.replicas)
    else:
        places = [Place(topic.topic, index) for topic in wanted for index in topic.partitions]
    by_topic: dict[str, list[Message]] = {}
    for place in places:
        replica = core.replicas.get(place)
        if replica is not None:
            by_topic.setdefault(place.topic, []).append(
                Message(
                    partition_index=place.partition, partition_size=replica.files.size, offset_lag=0, is_future_key=False
                )
            )
    topics = [Message(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    total, usable = core.disk_space()
    result = Message(error_code=0, log_dir=core.log_dir, topics=topics, total_bytes=total, usable_bytes=usable)
    return [call.respond(error_code=0, results=[result])]
