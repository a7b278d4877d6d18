"""Requests of clients about the broker and the cluster: versions, metadata, log directories."""

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Respond, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.requests.administration.controller import feature_fields
from kspec.impl.requests.topics import create_missing
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.schema import NO_UUID
from kspec.impl.wire.values import KeptMessage, Message
from kspec.spec.broker.clients.absent_features import check_directory_change
from kspec.spec.broker.clients.metadata_requests import (
    OF_BROKERS,
    Cursor,
    check_cursor,
    check_endpoint_type,
    check_leader,
    check_missing_topic,
    check_named_topics,
    counts_by_id,
    entries_that_count,
    page_size,
)
from kspec.spec.broker.clients.versions import UNSUPPORTED
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.metadata import PartitionRegistration, is_unfenced, rack_of
from kspec.spec.topics import TopicImage, TopicPartition
from kspec.spec.values import Error, Instant

NO_OPERATIONS = -(2**31)
"""The client has not asked which operations are allowed. Kafka: `MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED`."""

TOPIC_OPERATIONS, CLUSTER_OPERATIONS = 3576, 8096
"""Everything that can be done with a topic, or with the cluster, as bits. There is nobody to forbid it.

Kafka: `AclEntry.supportedOperations`.
"""


def api_versions(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Requests that are answered, in which versions, and the features that there are.

    **Kafka:** `KafkaApis.handleApiVersionsRequest`.
    """
    offered = [
        Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last) for api in core.apis.values()
    ]
    features = feature_fields(core.features, core.image, call.version, core.image.kraft_version)
    return [call.respond(error_code=0, api_keys=sorted(offered, key=lambda entry: entry.api_key), **features)]


def unsupported_api_versions(call: Call) -> list[Effect]:
    """The answer to ApiVersions in a version that is not known: version 0 of the answer, which names ApiVersions alone."""
    api = APIS[call.header.key]
    listed = [Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last)]
    return [call.respond(error_code=UNSUPPORTED.value, api_keys=listed)]


def metadata(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Brokers, topics and partitions; a topic that is not there may be created.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest`.
    """
    kept, about = core.cluster.metadata_parts().answers, _about(call)
    if about in kept:
        return [Respond(call, kept[about])]
    return [InTurns(call, _metadata(core, call, kept, about, now))]


def _metadata(core: BrokerCore, call: Call, kept: dict[object, KeptMessage], about: object, now: Instant) -> Steps:
    request = call.message
    effects: list[Effect] = []
    given = tuple((one.name is not None, bytes(one.topic_id) != NO_UUID) for one in request.topics or ())
    error = check_named_topics(call.version, given)
    if error != Error.NONE:
        return [call.respond(topics=[_missing(error, one.name or "", bytes(one.topic_id)) for one in request.topics])]
    if request.topics is None or (call.version == 0 and not request.topics):
        named = []
        for number, known in enumerate(list(core.cluster.image.topics.values())):
            topic = core.cluster.image.topics.get(known.name)
            if topic is not None and topic.topic_id == known.topic_id:
                named.append(_topic(core, topic, call))
            if ends_turn(number):
                yield []
    else:
        named = []
        missing = []
        by_id = counts_by_id(given)
        mentions = {(one.name, bytes(one.topic_id)): one for one in (request.topics[at] for at in entries_that_count(given))}
        for number, one in enumerate(mentions.values()):  # each topic is answered once
            if ends_turn(number):
                yield []
            topic = core.cluster.topic(one.name, bytes(one.topic_id), by_id)
            if topic is not None:
                named.append(_topic(core, topic, call))
            else:
                error = check_missing_topic(by_id, by_id or wrong_with_name(one.name) is None)
                missing += [one.name] if error == Error.UNKNOWN_TOPIC_OR_PARTITION else []
                operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations and not by_id else NO_OPERATIONS
                name = None if by_id else one.name
                named.append(_missing(error, name, bytes(one.topic_id), operations))
        if missing and request.allow_auto_topic_creation and core.config.flag("auto.create.topics.enable"):
            effects = create_missing(core, missing, now)
    fields: dict[str, object] = {
        "brokers": alive_brokers(core),
        "cluster_id": core.cluster_id,
        "controller_id": core.cluster.self_id,
        "topics": named,
    }
    if request.include_cluster_authorized_operations:
        fields["cluster_authorized_operations"] = CLUSTER_OPERATIONS
    if not any(one.error_code for one in named) and sum(len(one.partitions) for one in named) >= WORTH_KEEPING:
        if len(kept) >= MOST_KEPT:
            kept.pop(next(iter(kept)))
        kept[about] = KeptMessage(**fields)
        return [Respond(call, kept[about], len(named) > TURN_SIZE)]
    return [call.respond(**fields).long_if(len(named) > TURN_SIZE), *effects]


WORTH_KEEPING, MOST_KEPT = 50, 16
"""An answer about so many partitions is kept for those who ask the same, and so many such answers at most."""


def _about(call: Call) -> object:
    """All of a Metadata request on which its answer depends, as long as no topic is missing."""
    request = call.message
    topics = None if request.topics is None else tuple((one.name, bytes(one.topic_id)) for one in request.topics)
    whole = request.include_cluster_authorized_operations
    return call.version, topics, request.include_topic_authorized_operations, whole


def alive_brokers(core: BrokerCore) -> list[Message]:
    """The brokers that are alive, with their addresses."""
    known = core.cluster.metadata_parts()
    if known.brokers is None:
        known.brokers = _alive_brokers(core)
    return known.brokers


def _alive_brokers(core: BrokerCore) -> list[Message]:
    endpoints = core.cluster.image.endpoints
    return [
        Message(
            node_id=registration.broker,
            host=endpoints[registration.broker].host,
            port=endpoints[registration.broker].port,
            rack=rack_of(core.cluster.image.spec, registration.broker),
        )
        for registration in core.cluster.image.spec.brokers
        if not registration.fenced and registration.broker in endpoints
    ]


def _missing(error: Error, name: str | None, topic_id: bytes = NO_UUID, operations: int = NO_OPERATIONS) -> Message:
    fields = {"topic_id": topic_id, "partitions": [], "topic_authorized_operations": operations}
    return Message(error_code=error.value, name=name, **fields)


def _topic(core: BrokerCore, topic: TopicImage, call: Call) -> Message:
    known = core.cluster.metadata_parts().topics
    if topic.name not in known:
        registrations = core.cluster.registrations()
        known[topic.name] = [
            _partition(core, TopicPartition(topic.name, index), registrations[partition_id])
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


def _partition(core: BrokerCore, place: TopicPartition, registration: PartitionRegistration) -> Message:
    brokers = core.cluster.image.spec.brokers
    leader = registration.leader
    error = check_leader(leader)
    return Message(
        error_code=error.value,
        partition_index=place.partition,
        leader_id=leader,
        leader_epoch=registration.leader_epoch,
        replica_nodes=list(registration.replicas),
        isr_nodes=sorted(registration.isr),
        offline_replicas=[replica for replica in registration.replicas if not is_unfenced(brokers, replica)],
    )


def describe_topic_partitions(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Topics with their partitions, page by page (KIP-966). **Kafka:** `DescribeTopicPartitionsRequestHandler`."""
    return [InTurns(call, _topic_partitions(core, call))]


def _topic_partitions(core: BrokerCore, call: Call) -> Steps:
    request = call.message
    asked = {topic.name for topic in request.topics}
    at = None if request.cursor is None else Cursor(request.cursor.topic_name, request.cursor.partition_index)
    error = check_cursor(asked, at)
    if error != Error.NONE:
        return [call.respond(topics=[_missing(error, topic.name) for topic in request.topics])]
    names = sorted(name for name in asked or core.cluster.image.topics if at is None or name >= at.topic)
    first = at.partition if at is not None and names[:1] == [at.topic] else 0
    left = page_size(request.response_partition_limit, core.config.number("max.request.partition.size.limit"))
    topics: list[Message] = []
    cursor = None
    for number, name in enumerate(names):
        if ends_turn(number):
            yield []
        if left == 0:
            cursor = Message(topic_name=name, partition_index=0)
            break
        topic = core.cluster.image.topics.get(name)
        if topic is None:
            missing = check_missing_topic(False, wrong_with_name(name) is None)
            topics.append(_missing(missing, name, operations=TOPIC_OPERATIONS))
            continue
        registrations = core.cluster.registrations()
        shown = list(enumerate(topic.partitions))[first : first + left]
        topics.append(
            Message(
                error_code=0,
                name=name,
                topic_id=topic.topic_id,
                is_internal=core.is_internal(name),
                partitions=[_described(core, TopicPartition(name, index), registrations[one]) for index, one in shown],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        left -= len(shown)
        if first + len(shown) < len(topic.partitions):
            cursor = Message(topic_name=name, partition_index=first + len(shown))
            break
        first = 0
    return [call.respond(topics=topics, next_cursor=cursor).long_if(len(topics) > TURN_SIZE)]


def _described(core: BrokerCore, place: TopicPartition, registration: PartitionRegistration) -> Message:
    message = _partition(core, place, registration)
    message.__dict__["eligible_leader_replicas"] = sorted(registration.elr)
    message.__dict__["last_known_elr"] = sorted(registration.last_known_elr)
    return message


def describe_cluster(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """The brokers and the controller. **Kafka:** `AuthHelper.computeDescribeClusterResponse`."""
    request = call.message
    error = check_endpoint_type(OF_BROKERS, request.endpoint_type if call.version >= 1 else OF_BROKERS)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, error_message=error.name)]
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


def describe_log_dirs(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Sizes of the partitions on disk. **Kafka:** `ReplicaManager.describeLogDirs`."""
    return [InTurns(call, _log_dirs(core, call))]


def _log_dirs(core: BrokerCore, call: Call) -> Steps:
    wanted = call.message.topics
    if wanted is None:
        places = list(core.replicas)
    else:
        places = [TopicPartition(topic.topic, index) for topic in wanted for index in topic.partitions]
    by_topic: dict[str, list[Message]] = {}
    for number, place in enumerate(places):
        if ends_turn(number):
            yield []
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
    return [call.respond(error_code=0, results=[result]).long_if(len(places) > TURN_SIZE)]


def alter_replica_log_dirs(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Move replicas to another log directory: there is one. **Kafka:** `ReplicaManager.alterReplicaLogDirs`."""
    return [InTurns(call, _alter_log_dirs(core, call))]


def _alter_log_dirs(core: BrokerCore, call: Call) -> Steps:
    number = 0
    answers: dict[str, list[Message]] = {}
    for directory in call.message.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                has_replica = TopicPartition(topic.name, index) in core.replicas
                error = check_directory_change({core.log_dir}, directory.path, has_replica)
                answers.setdefault(topic.name, []).append(Message(partition_index=index, error_code=error.value))
                if ends_turn(number):
                    yield []
                number += 1
    results = [Message(topic_name=name, partitions=found) for name, found in answers.items()]
    return [call.respond(results=results).long_if(number > TURN_SIZE)]
