"""The cluster's metadata: brokers, partitions, topics and settings, the records that change them, and how a broker acts on
several at once.

The controller decides by appending records to the metadata log. The controller and every broker hold an *image*: the fold of
the records up to some offset. A broker does not act on each record. It takes all records that have arrived since its last
image, and acts on the difference of the two images. So a leader that lost its leadership and regained it in between never
learns that it had lost it.
"""

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeAlias, cast

from kspec.spec.topics import (
    NO_PLACE,
    NO_TOPICS,
    ConfigResource,
    ConfigurationsImage,
    ResourceType,
    TopicIdPartition,
    TopicImage,
    TopicsImage,
    topic_with_id,
    with_config,
    with_partitions,
    with_topic,
    without_topics,
)
from kspec.spec.values import (
    NO_LEADER,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    Offset,
    PartitionEpoch,
    PartitionId,
    ProducerId,
    TopicId,
    next_epoch,
    next_partition_epoch,
)

NO_LEADER_CHANGE = BrokerId(-2)
"""In a record: leader and leader epoch stay. Kafka: `LeaderConstants.NO_LEADER_CHANGE`."""

NOBODY: frozenset[BrokerId] = frozenset()


class LeaderRecoveryState(Enum):
    """Whether a partition's leader has yet to recover from an unclean election. Kafka: `LeaderRecoveryState`."""

    RECOVERED = 0
    RECOVERING = 1


class PartitionRegistration(NamedTuple):
    """A partition as the controller has decided it.

    `replicas` are in order of preference; during a reassignment they are the old and the new ones; `adding` and `removing`
    say which are which. `elr` are the eligible leader replicas. `last_known_elr` are former members of ISR or ELR, or the
    last leader alone, depending on a setting. Kafka: `PartitionRegistration`. **Leaves out:** log directories.
    """

    replicas: tuple[BrokerId, ...]
    isr: frozenset[BrokerId]
    leader: BrokerId
    leader_epoch: Epoch
    partition_epoch: PartitionEpoch
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: frozenset[BrokerId] = NOBODY
    last_known_elr: frozenset[BrokerId] = NOBODY
    adding: frozenset[BrokerId] = NOBODY
    removing: frozenset[BrokerId] = NOBODY


class BrokerRegistration(NamedTuple):
    """A broker as the controller knows it: its registered incarnation, and whether it takes part.

    A broker is *active* if it is neither fenced nor in controlled shutdown. `registered_at` is the offset of its last
    registration record; a broker may be unfenced once it has replayed that. Kafka: `BrokerRegistration`, and
    `ClusterControlManager.registerBrokerRecordOffsets`. **Leaves out:** endpoints, features, racks, log directories.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    incarnation: Incarnation
    fenced: bool
    in_controlled_shutdown: bool = False
    registered_at: Offset = UNKNOWN_OFFSET


# ---- records


class PartitionRecord(NamedTuple):
    """A partition as a whole: at its creation, and in a snapshot. Kafka: `PartitionRecord`.

    A partition has a number, and a place in a topic. Rules for partitions ask for the number alone; where nobody asks for
    names, as in models, the place is `NO_PLACE`.
    """

    partition_id: PartitionId
    registration: PartitionRegistration
    place: TopicIdPartition = NO_PLACE


class PartitionChangeRecord(NamedTuple):
    """A change of a partition; `None`, and `NO_LEADER_CHANGE`, mean that something stays. Kafka: the same name."""

    partition_id: PartitionId
    isr: frozenset[BrokerId] | None = None
    leader: BrokerId = NO_LEADER_CHANGE
    replicas: tuple[BrokerId, ...] | None = None
    removing: frozenset[BrokerId] | None = None
    adding: frozenset[BrokerId] | None = None
    recovery: LeaderRecoveryState | None = None
    elr: frozenset[BrokerId] | None = None
    last_known_elr: frozenset[BrokerId] | None = None


class RegisterBrokerRecord(NamedTuple):
    """An incarnation of a broker is registered; its broker epoch is the offset of this record. `rack` is where it stands.

    Kafka: `RegisterBrokerRecord`.
    """

    registration: BrokerRegistration
    rack: str | None = None


class BrokerRegistrationChangeRecord(NamedTuple):
    """A registered broker is fenced, unfenced or begins to shut down; `None` leaves the value as it is.

    Kafka: `BrokerRegistrationChangeRecord`, and before 3.3 `FenceBrokerRecord` and `UnfenceBrokerRecord`, which did the same
    to `fenced`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """A broker's registration is removed. (Not a tuple, so that it never equals a `PartitionRecord`.) Kafka:
    `UnregisterBrokerRecord`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic exists. Kafka: `TopicRecord`."""

    name: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic is deleted, with its partitions and settings. Kafka: `RemoveTopicRecord`."""

    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A resource's own setting; `None` takes it away. Kafka: `ConfigRecord`."""

    resource: ConfigResource
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """A block of producer ids is given out: `following` is the first after it. Kafka: `ProducerIdsRecord`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    following: ProducerId


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A feature has another level; level 0 is that of a feature that is not in use. Kafka: `FeatureLevelRecord`."""

    name: str
    level: int


MetadataRecord: TypeAlias = (
    PartitionRecord
    | PartitionChangeRecord
    | RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
)


# ---- the image


class MetadataImage(NamedTuple):
    """The fold of the metadata log below `end_offset`: brokers and partitions in order of their ids, and their names beside.

    `following_partition` is the number of the next new partition; no number is given twice. `racks` are those that brokers
    have named. `following_producer_id` is the first producer id that has not been given out.

    Kafka: `MetadataImage`; in the controller its `TimelineHashMap`s.
    """

    end_offset: Offset = Offset(0)
    brokers: tuple[BrokerRegistration, ...] = ()
    partitions: tuple[PartitionRecord, ...] = ()
    topics: TopicsImage = NO_TOPICS
    configs: ConfigurationsImage = ()
    racks: tuple[tuple[BrokerId, str], ...] = ()
    features: tuple[tuple[str, int], ...] = ()
    following_partition: PartitionId = PartitionId(0)
    following_producer_id: ProducerId = ProducerId(0)


EMPTY_IMAGE = MetadataImage()


def broker_of(brokers: tuple[BrokerRegistration, ...], broker: BrokerId) -> BrokerRegistration | None:
    """The registration of `broker`, `None` if there is none. **Kafka:** `ClusterControlManager.registration`."""
    for registration in brokers:
        if registration.broker == broker:
            return registration
    return None


def rack_of(image: MetadataImage, broker: BrokerId) -> str | None:
    """The rack that a broker has named, `None` if it has none. **Kafka:** `BrokerRegistration.rack`."""
    return dict(image.racks).get(broker)


def partition_of(image: MetadataImage, partition_id: PartitionId) -> PartitionRegistration | None:
    """The registration of `partition`, `None` if there is none. **Kafka:** `TopicsImage.getPartition`."""
    found = partition_record(image, partition_id)
    return None if found is None else found.registration


def partition_record(image: MetadataImage, partition_id: PartitionId) -> PartitionRecord | None:
    """A partition with its topic and index, `None` if there is none. **Kafka:** `TopicsImage.getPartition`."""
    place = _place_of(image.partitions, partition_id)
    there = image.partitions[place : place + 1]
    return there[0] if there and there[0].partition_id == partition_id else None


def merge(partition: PartitionRegistration, record: PartitionChangeRecord) -> PartitionRegistration:
    """The partition after one more record: the next partition epoch, and the next leader epoch if a leader is named.

    The leader epoch also grows if the named leader already leads.

    **Kafka:** `PartitionRegistration.merge`.
    """
    named = record.leader != NO_LEADER_CHANGE
    return PartitionRegistration(
        replicas=partition.replicas if record.replicas is None else record.replicas,
        isr=partition.isr if record.isr is None else record.isr,
        leader=record.leader if named else partition.leader,
        leader_epoch=next_epoch(partition.leader_epoch) if named else partition.leader_epoch,
        partition_epoch=next_partition_epoch(partition.partition_epoch),
        recovery=partition.recovery if record.recovery is None else record.recovery,
        elr=partition.elr if record.elr is None else record.elr,
        last_known_elr=partition.last_known_elr if record.last_known_elr is None else record.last_known_elr,
        adding=partition.adding if record.adding is None else record.adding,
        removing=partition.removing if record.removing is None else record.removing,
    )


def change_broker(broker: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    """The registration after one more record. **Kafka:** `ClusterControlManager.replayRegistrationChange`."""
    fenced = broker.fenced if record.fenced is None else record.fenced
    leaving = broker.in_controlled_shutdown if record.in_controlled_shutdown is None else record.in_controlled_shutdown
    return broker._replace(fenced=fenced, in_controlled_shutdown=leaving)


def replay(image: MetadataImage, record: MetadataRecord) -> MetadataImage:
    """The image after one more record of the metadata log.

    **Kafka:** `MetadataDelta.replay`; in the controller `ReplicationControlManager.replay`, `ClusterControlManager.replay`.
    """
    at = image.end_offset
    image = image._replace(end_offset=Offset(at + 1))
    match record:
        case PartitionRecord():
            return _with_partition(image, record)
        case PartitionChangeRecord():
            return _with_partition(image, _partition_after(image, record))
        case RegisterBrokerRecord(registration, rack):
            brokers = _with_broker(image.brokers, registration._replace(registered_at=at))
            return image._replace(brokers=brokers, racks=_with_rack(image.racks, registration.broker, rack))
        case BrokerRegistrationChangeRecord(broker=broker):
            registered = broker_of(image.brokers, broker)
            assert registered is not None, f"the metadata log changes broker {broker}, which is not registered"
            return image._replace(brokers=_with_broker(image.brokers, change_broker(registered, record)))
        case UnregisterBrokerRecord(broker=broker):
            brokers = tuple(registration for registration in image.brokers if registration.broker != broker)
            return image._replace(brokers=brokers, racks=_with_rack(image.racks, broker, None))
        case _:
            return _replay_names(image, record)


def _replay_names(
    image: MetadataImage,
    record: TopicRecord | RemoveTopicRecord | ConfigRecord | ProducerIdsRecord | FeatureLevelRecord,
) -> MetadataImage:
    """The image after a record that no rule for partitions reads.

    **Kafka:** `TopicsDelta.replay`, `ConfigurationsDelta.replay`, `ProducerIdsDelta.replay`, `FeaturesDelta.replay`.
    """
    match record:
        case TopicRecord(name, topic_id):
            return image._replace(topics=with_topic(image.topics, TopicImage(name, topic_id)))
        case RemoveTopicRecord():
            return _without_topics(image, (record,))
        case ConfigRecord(resource, name, value):
            return image._replace(configs=with_config(image.configs, resource, name, value))
        case FeatureLevelRecord(name, level):
            others = tuple(one for one in image.features if one[0] != name)
            return image._replace(features=tuple(sorted((*others, (name, level)))) if level else others)
        case _:
            return image._replace(following_producer_id=record.following)


def replay_all(image: MetadataImage, records: tuple[MetadataRecord, ...]) -> MetadataImage:
    """The image after several records: as if they came one after the other, and quicker where many are about topics.

    **Kafka:** `MetadataLoader.handleCommit`, `MetadataDelta.apply`.
    """
    for kind, run in groupby(records, key=_run_of):
        together = tuple(run)
        if kind == _Run.TOPICS and len(together) > 1:
            image = _replay_topics(image, cast(RecordsOfTopics, together))
        elif kind == _Run.REMOVALS:
            removals = cast(tuple[RemoveTopicRecord, ...], together)
            image = _without_topics(image._replace(end_offset=Offset(image.end_offset + len(together))), removals)
        else:
            image = reduce(replay, together, image)
    return image


class _Run(Enum):
    """Records that are replayed together."""

    TOPICS = "topics and their partitions"
    REMOVALS = "removals of topics"
    OTHERS = "others"


RecordsOfTopics: TypeAlias = tuple[PartitionRecord | PartitionChangeRecord | TopicRecord | ConfigRecord, ...]


def _run_of(record: MetadataRecord) -> _Run:
    match record:
        case PartitionRecord() | PartitionChangeRecord() | TopicRecord() | ConfigRecord():
            return _Run.TOPICS
        case RemoveTopicRecord():
            return _Run.REMOVALS
        case _:
            return _Run.OTHERS


def _replay_topics(image: MetadataImage, records: RecordsOfTopics) -> MetadataImage:
    """The image after records of topics, whose partitions are put in their places only at the end."""
    changed: dict[PartitionId, PartitionRecord] = {}
    added: dict[TopicId, dict[int, PartitionId]] = {}
    for record in records:
        match record:
            case TopicRecord() | ConfigRecord():
                image = _replay_names(image, record)
            case PartitionRecord(number, _, place):
                changed[number] = record
                added.setdefault(place.topic_id, {})[place.partition] = number
            case _:
                changed[record.partition_id] = _partition_after(image, record, changed.get(record.partition_id))
    topics = image.topics
    for topic_id, numbers in added.items():
        topics = with_partitions(topics, topic_id, numbers)
    image = image._replace(end_offset=Offset(image.end_offset + len(records)), topics=topics)
    if not changed:
        return image
    kept = (record for record in image.partitions if record.partition_id not in changed)
    partitions = tuple(sorted((*kept, *changed.values()), key=attrgetter("partition_id")))
    return image._replace(partitions=partitions, following_partition=_following(image, max(changed)))


def _without_topics(image: MetadataImage, records: tuple[RemoveTopicRecord, ...]) -> MetadataImage:
    """The image without topics that are removed, and without their partitions and settings."""
    gone = [topic for record in records if (topic := topic_with_id(image.topics, record.topic_id)) is not None]
    assert len(gone) == len(records), "the metadata log removes a topic that does not exist"
    numbers = {number for topic in gone for number in topic.partitions}
    names = {topic.name for topic in gone}
    return image._replace(
        partitions=tuple(one for one in image.partitions if one.partition_id not in numbers),
        topics=without_topics(image.topics, names),
        configs=tuple(
            one for one in image.configs if not (one.resource.kind == ResourceType.TOPIC and one.resource.name in names)
        ),
    )


def _partition_after(
    image: MetadataImage, record: PartitionChangeRecord, changed: PartitionRecord | None = None
) -> PartitionRecord:
    """A partition after one more record. `changed`: the partition after records before this one, if the image lacks them."""
    before = partition_record(image, record.partition_id) if changed is None else changed
    assert before is not None, f"the metadata log changes partition {record.partition_id}, which does not exist"
    return before._replace(registration=merge(before.registration, record))


def _with_partition(image: MetadataImage, new: PartitionRecord) -> MetadataImage:
    partitions, place = image.partitions, _place_of(image.partitions, new.partition_id)
    there = partition_record(image, new.partition_id) is not None
    added = {} if there else {new.place.partition: new.partition_id}
    return image._replace(
        partitions=(*partitions[:place], new, *partitions[place + there :]),
        topics=with_partitions(image.topics, new.place.topic_id, added) if added else image.topics,
        following_partition=_following(image, new.partition_id),
    )


def _following(image: MetadataImage, highest: PartitionId) -> PartitionId:
    """The number of the next new partition, once there is one with the number `highest`."""
    return max(image.following_partition, PartitionId(highest + 1))


def _place_of(partitions: tuple[PartitionRecord, ...], partition_id: PartitionId) -> int:
    """The place at which a partition stands, or would stand."""
    return bisect_left(partitions, partition_id, key=attrgetter("partition_id"))


def _with_rack(
    racks: tuple[tuple[BrokerId, str], ...], broker: BrokerId, rack: str | None
) -> tuple[tuple[BrokerId, str], ...]:
    others = tuple(one for one in racks if one[0] != broker)
    return others if rack is None else tuple(sorted((*others, (broker, rack))))


def _with_broker(brokers: tuple[BrokerRegistration, ...], new: BrokerRegistration) -> tuple[BrokerRegistration, ...]:
    others = [registration for registration in brokers if registration.broker != new.broker]
    return tuple(sorted([*others, new], key=attrgetter("broker")))


# ---- the difference of two images, as a broker sees it


class LocalRole(Enum):
    """The task of one broker when a partition changes. Kafka: the parts of `LocalReplicaChanges`."""

    UNCHANGED = "unchanged"
    DELETED = "deleted"
    LEADER = "leader"
    FOLLOWER = "follower"


class LocalChange(NamedTuple):
    """The task of one broker for one partition, and the registration to do it by (`None` unless it hosts a replica).

    `elected`: it leads in another leader epoch than before. Kafka: `LocalReplicaChanges`.
    """

    role: LocalRole
    registration: PartitionRegistration | None = None
    elected: bool = False


UNCHANGED = LocalChange(LocalRole.UNCHANGED)
DELETED = LocalChange(LocalRole.DELETED)


def local_change(before: PartitionRegistration | None, after: PartitionRegistration | None, broker: BrokerId) -> LocalChange:
    """The task of `broker` when a partition was `before` in its last image and is `after` in its next.

    Any number of records may lie between the two; only the last state counts. So a broker that led before and leads after
    becomes leader, never follower, even if another broker led in between and the leader epoch grew by two or more.

    **Kafka:** `TopicDelta.localChanges`, `TopicsDelta.localChanges` (since 3.0).
    """
    hosted = before is not None and broker in before.replicas
    if after is None or broker not in after.replicas:
        return DELETED if hosted else UNCHANGED
    if before is not None and before.partition_epoch == after.partition_epoch:
        return UNCHANGED
    if after.leader == broker:
        elected = before is None or before.leader_epoch != after.leader_epoch
        return LocalChange(LocalRole.LEADER, after, elected)
    return LocalChange(LocalRole.FOLLOWER, after)


def has_leader(partition: PartitionRegistration) -> bool:
    """Whether the partition has a leader. **Kafka:** `PartitionRegistration.hasLeader`."""
    return partition.leader != NO_LEADER


def is_unfenced(brokers: tuple[BrokerRegistration, ...], broker: BrokerId) -> bool:
    """Whether `broker` is registered and not fenced.

    **Kafka:** `ClusterControlManager.isUnfenced`, `MetadataCache.hasAliveBroker`.
    """
    registration = broker_of(brokers, broker)
    return registration is not None and not registration.fenced


def is_active(brokers: tuple[BrokerRegistration, ...], broker: BrokerId) -> bool:
    """Whether `broker` may lead and may be in sync: registered, not fenced, not in controlled shutdown.

    **Kafka:** `ClusterControlManager.isActive`, `KRaftMetadataCache.hasAliveBroker` with `isBrokerShuttingDown`.
    """
    registration = broker_of(brokers, broker)
    return registration is not None and not registration.fenced and not registration.in_controlled_shutdown
