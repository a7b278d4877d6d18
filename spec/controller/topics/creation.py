"""CreateTopics and CreatePartitions: what the controller decides."""

from collections import Counter
from collections.abc import Iterable

from kspec.spec.controller.protocol import Controller, TopicSettings
from kspec.spec.controller.rules.reassignment import wrong_with_assignment
from kspec.spec.controller.state import ControllerState, ControllerStep, decide
from kspec.spec.controller.topics.configs import wrong_with_topic_configs
from kspec.spec.controller.topics.names import CLUSTER_METADATA, look_alike, wrong_with_name
from kspec.spec.controller.topics.placement import UsableBroker, place, wrong_with_placement
from kspec.spec.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    MorePartitions,
    PartitionsCreated,
)
from kspec.spec.messages.topics.create_topics import (
    DEFAULT,
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from kspec.spec.metadata import (
    ConfigRecord,
    MetadataImage,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    TopicRecord,
    is_active,
    partition_of,
    rack_of,
)
from kspec.spec.topics import ConfigResource, ResourceType, TopicIdPartition, TopicImage, topic_named
from kspec.spec.values import BrokerId, Epoch, Error, MonotonicMs, PartitionEpoch, PartitionId, TopicId

MOST_PARTITIONS = 10_000
"""The partitions that one request may create. Kafka: `ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`."""

Refusal = tuple[Error, str]
Replicas = tuple[BrokerId, ...]


def handle_create_topics(
    controller: Controller, state: ControllerState, request: CreateTopicsRequest, now: MonotonicMs
) -> ControllerStep:
    """Create topics. Each succeeds or fails by itself, but for `POLICY_VIOLATION`, which all get.

    Errors, the first that applies: `POLICY_VIOLATION` (over 10,000 partitions), `INVALID_REQUEST` (a name twice, or the
    metadata's own), `INVALID_TOPIC_EXCEPTION`, `TOPIC_ALREADY_EXISTS`, `INVALID_CONFIG`, and those of the partitions:
    `INVALID_REQUEST`, `INVALID_REPLICA_ASSIGNMENT`, `INVALID_REPLICATION_FACTOR`, `INVALID_PARTITIONS`.

    **Kafka:** `ControllerApis.createTopics`, `ReplicationControlManager.createTopics`. **Leaves out:** two topics of one
    request that collide with each other, which Kafka lets pass; policies and quotas; authorization.
    """
    settings, image = controller.topics, state.image
    wanted = sum(_partitions_wanted(settings, topic) for topic in request.topics)
    if wanted > MOST_PARTITIONS:
        refusal = _too_many(wanted)
        return decide(state, (), CreateTopicsResponse(tuple(_refused(topic, refusal) for topic in request.topics)))
    times = Counter(topic.name for topic in request.topics)
    following = image.following_partition
    records: list[MetadataRecord] = []
    results: dict[str, CreatedTopic] = {}
    for number, topic in enumerate(request.topics):
        refusal_of_topic = _refusal_of_topic(settings, image, topic, times[topic.name] > 1)
        partitions, refusal_of_parts = _partitions_of(settings, image, topic, request.seed + number)
        refused = refusal_of_topic or refusal_of_parts
        if refused is None:
            records += _records_of_topic(topic, partitions, following)
            following = PartitionId(following + len(partitions))
            results[topic.name] = CreatedTopic(
                topic.name, Error.NONE, None, topic.topic_id, len(partitions), len(partitions[0].replicas)
            )
        else:
            results[topic.name] = _refused(topic, refused)
    kept = () if request.validate_only else tuple(records)
    return decide(state, kept, CreateTopicsResponse(tuple(results.values())))


def _refused(topic: NewTopic, refusal: Refusal) -> CreatedTopic:
    return CreatedTopic(topic.name, *refusal)


def _too_many(wanted: int) -> Refusal:
    return Error.POLICY_VIOLATION, f"one request may create {MOST_PARTITIONS} partitions, and this one has {wanted}"


def _partitions_wanted(settings: TopicSettings, topic: NewTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return settings.default_partitions if topic.partitions == DEFAULT else max(topic.partitions, 0)


def _refusal_of_topic(settings: TopicSettings, image: MetadataImage, topic: NewTopic, twice: bool) -> Refusal | None:
    """**Kafka:** `ControllerApis.createTopics`, `validateNewTopicNames`, `computeConfigChanges`."""
    if twice:
        return Error.INVALID_REQUEST, f"the request has topic {topic.name} more than once"
    if topic.name == CLUSTER_METADATA:
        return Error.INVALID_REQUEST, f"{topic.name} is the metadata's own topic"
    if topic_named(image.topics, topic.name) is not None:
        return Error.TOPIC_ALREADY_EXISTS, f"topic {topic.name} exists"
    wrong = wrong_with_name(topic.name)
    if wrong is not None:
        return Error.INVALID_TOPIC_EXCEPTION, wrong
    alike = look_alike(image.topics, topic.name)
    if alike is not None:
        return Error.INVALID_TOPIC_EXCEPTION, f"in metrics {topic.name} looks like the topic {alike}"
    configs = dict(topic.configs)  # of a setting that is there twice, the last value counts
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        return Error.INVALID_CONFIG, f"no value is given for {', '.join(missing)}"
    given = tuple((name, value) for name, value in configs.items() if value is not None)
    wrong = wrong_with_topic_configs(settings, given)
    return None if wrong is None else (Error.INVALID_CONFIG, wrong)


def _records_of_topic(
    topic: NewTopic, partitions: tuple[PartitionRegistration, ...], following: PartitionId
) -> tuple[MetadataRecord, ...]:
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    return (
        TopicRecord(topic.name, topic.topic_id),
        *(ConfigRecord(resource, name, value) for name, value in dict(topic.configs).items()),
        *_partition_records(topic.topic_id, 0, partitions, following),
    )


def _partition_records(
    topic_id: TopicId, first: int, partitions: tuple[PartitionRegistration, ...], following: PartitionId
) -> tuple[PartitionRecord, ...]:
    """New partitions of a topic, from the index `first` on, with numbers from `following` on."""
    return tuple(
        PartitionRecord(PartitionId(following + place), registration, TopicIdPartition(topic_id, first + place))
        for place, registration in enumerate(partitions)
    )


# ---- replicas

Partitions = tuple[tuple[PartitionRegistration, ...], Refusal | None]


def _partitions_of(settings: TopicSettings, image: MetadataImage, topic: NewTopic, seed: int) -> Partitions:
    """**Kafka:** `ReplicationControlManager.createTopic`."""
    if topic.assignments:
        return _partitions_as_given(image, topic)
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        return (), (Error.INVALID_REPLICATION_FACTOR, "the replication factor is positive, or -1 for the cluster's")
    if topic.partitions < DEFAULT or topic.partitions == 0:
        return (), (Error.INVALID_PARTITIONS, "the number of partitions is positive, or -1 for the cluster's")
    factor = settings.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
    return _placed(image, _partitions_wanted(settings, topic), factor, seed)


def _placed(image: MetadataImage, partitions: int, factor: int, seed: int) -> Partitions:
    brokers = usable_brokers(image)
    wrong = wrong_with_placement(brokers, factor)
    if wrong is not None:
        return (), (Error.INVALID_REPLICATION_FACTOR, wrong)
    return _registered(image, place(brokers, partitions, factor, seed), Error.INVALID_REPLICATION_FACTOR)


def usable_brokers(image: MetadataImage) -> tuple[UsableBroker, ...]:
    """The brokers that may host new replicas: all that are not shutting down.

    **Kafka:** `BrokerHeartbeatManager.UsableBrokerIterator`. **Leaves out:** cordoned log directories.
    """
    return tuple(
        UsableBroker(one.broker, rack_of(image, one.broker), one.fenced)
        for one in image.brokers
        if not one.in_controlled_shutdown
    )


def _partitions_as_given(image: MetadataImage, topic: NewTopic) -> Partitions:
    if topic.replication_factor != DEFAULT or topic.partitions != DEFAULT:
        return (), (Error.INVALID_REQUEST, "with replicas given, partitions and replication factor are -1")
    by_index = {assignment.partition: assignment.replicas for assignment in topic.assignments}
    given = tuple(assignment.replicas for assignment in topic.assignments)
    wrong = _wrong_with_any(image, given, len(given[0]))
    if wrong is None and sorted(by_index) != list(range(len(topic.assignments))):
        wrong = "the partitions are not 0, 1, 2, and so on, each once"
    if wrong is not None:
        return (), (Error.INVALID_REPLICA_ASSIGNMENT, wrong)
    in_order = (by_index[index] for index in range(len(by_index)))
    return _registered(image, in_order, Error.INVALID_REPLICA_ASSIGNMENT)


def _wrong_with_any(image: MetadataImage, given: tuple[Replicas, ...], factor: int) -> str | None:
    """The reason why the first wrong one of the assignments is wrong."""
    wrong = (wrong_with_assignment(image.brokers, replicas, factor) for replicas in given)
    return next((one for one in wrong if one is not None), None)


def _registered(image: MetadataImage, placed: Iterable[Replicas], error: Error) -> Partitions:
    """Each partition as it begins: its active replicas are in sync, the first of them leads.

    **Kafka:** `ReplicationControlManager.buildPartitionRegistration`.
    """
    partitions = []
    for replicas in placed:
        active = [replica for replica in replicas if is_active(image.brokers, replica)]
        if not active:
            return (), (error, f"all brokers of {replicas} are fenced or shutting down")
        partitions.append(PartitionRegistration(replicas, frozenset(active), active[0], Epoch(0), PartitionEpoch(0)))
    return tuple(partitions), None


# ---- more partitions


def handle_create_partitions(
    controller: Controller, state: ControllerState, request: CreatePartitionsRequest, now: MonotonicMs
) -> ControllerStep:
    """Add partitions to topics, with as many replicas as their first partitions have.

    Errors, the first that applies: `POLICY_VIOLATION` (over 10,000 partitions, of the whole request), `INVALID_REQUEST` (a
    name twice), `UNKNOWN_TOPIC_OR_PARTITION`, `INVALID_PARTITIONS` (no increase), `INVALID_REPLICA_ASSIGNMENT`,
    `INVALID_REPLICATION_FACTOR`.

    **Kafka:** `ControllerApis.createPartitions`, `ReplicationControlManager.createPartitions`.
    """
    known = [(topic, topic_named(state.image.topics, topic.name)) for topic in request.topics]
    wanted = sum(max(topic.count - len(before.partitions), 0) for topic, before in known if before is not None)
    times = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: dict[str, PartitionsCreated] = {}
    for number, (topic, before) in enumerate(known):
        added: tuple[PartitionRecord, ...] = ()
        refusal: Refusal | None = None
        if wanted > MOST_PARTITIONS:
            refusal = _too_many(wanted)
        elif times[topic.name] > 1:
            refusal = Error.INVALID_REQUEST, f"the request has topic {topic.name} more than once"
        elif before is None:
            refusal = Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}"
        else:
            following = PartitionId(state.image.following_partition + len(records))
            added, refusal = _added(state.image, topic, before, request.seed + number, following)
        records += added
        results[topic.name] = PartitionsCreated(topic.name, *(refusal or (Error.NONE, None)))
    kept = () if request.validate_only else tuple(records)
    return decide(state, kept, CreatePartitionsResponse(tuple(results.values())))


def _added(
    image: MetadataImage, topic: MorePartitions, before: TopicImage, seed: int, following: PartitionId
) -> tuple[tuple[PartitionRecord, ...], Refusal | None]:
    count, factor = len(before.partitions), _replication_factor(image, before)
    additional = topic.count - count
    if additional <= 0:
        wrong = f"topic {topic.name} has {count} partitions, and {topic.count} would be no increase"
        return (), (Error.INVALID_PARTITIONS, wrong)
    if topic.assignments is None:
        partitions, refusal = _placed(image, additional, factor, seed)
    else:
        wrong_given = None
        if len(topic.assignments) != additional:
            wrong_given = f"{additional} partitions are added, and replicas are given for {len(topic.assignments)}"
        wrong_given = wrong_given or _wrong_with_any(image, topic.assignments, factor)
        if wrong_given is not None:
            return (), (Error.INVALID_REPLICA_ASSIGNMENT, wrong_given)
        partitions, refusal = _registered(image, topic.assignments, Error.INVALID_REPLICA_ASSIGNMENT)
    return _partition_records(before.topic_id, count, partitions, following), refusal


def _replication_factor(image: MetadataImage, topic: TopicImage) -> int:
    """The number of replicas of a topic's first partition; 0 if it has no partition yet."""
    first = partition_of(image, topic.partitions[0]) if topic.partitions else None
    return 0 if first is None else len(first.replicas)
