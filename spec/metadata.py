"""The cluster's metadata: registrations, the records that change them, and how a broker acts on several at once.

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

from spec.values import (
    NO_LEADER,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    Offset,
    PartitionEpoch,
    PartitionId,
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
    """What the controller has decided about a partition.

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
    """What the controller knows of a broker: which incarnation of it is registered, and whether it takes part.

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
    """A partition as a whole: at its creation, and in a snapshot. Kafka: `PartitionRecord`."""

    partition_id: PartitionId
    registration: PartitionRegistration


class PartitionChangeRecord(NamedTuple):
    """What changes in a partition; `None`, and `NO_LEADER_CHANGE`, mean that something stays. Kafka: the same name."""

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
    """An incarnation of a broker is registered; its broker epoch is the offset of this record.

    Kafka: `RegisterBrokerRecord`.
    """

    registration: BrokerRegistration


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


MetadataRecord: TypeAlias = (
    PartitionRecord | PartitionChangeRecord | RegisterBrokerRecord | BrokerRegistrationChangeRecord | UnregisterBrokerRecord
)


# ---- the image


class MetadataImage(NamedTuple):
    """The fold of the metadata log below `end_offset`: brokers and partitions, each in order of their ids.

    Kafka: `MetadataImage`; in the controller its `TimelineHashMap`s.
    """

    end_offset: Offset = Offset(0)
    brokers: tuple[BrokerRegistration, ...] = ()
    partitions: tuple[PartitionRecord, ...] = ()


EMPTY_IMAGE = MetadataImage()


def broker_of(brokers: tuple[BrokerRegistration, ...], broker: BrokerId) -> BrokerRegistration | None:
    """The registration of `broker`, `None` if there is none. **Kafka:** `ClusterControlManager.registration`."""
    for registration in brokers:
        if registration.broker == broker:
            return registration
    return None


def partition_of(image: MetadataImage, partition_id: PartitionId) -> PartitionRegistration | None:
    """The registration of `partition`, `None` if there is none. **Kafka:** `TopicsImage.getPartition`."""
    return _partition_at(image.partitions, _place_of(image.partitions, partition_id), partition_id)


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
    brokers, partitions = image.brokers, image.partitions
    match record:
        case PartitionRecord():
            partitions = _with_partition(partitions, record)
        case PartitionChangeRecord(partition_id=changed):
            before = partition_of(image, changed)
            assert before is not None, f"the metadata log changes partition {changed}, which does not exist"
            partitions = _with_partition(partitions, PartitionRecord(changed, merge(before, record)))
        case RegisterBrokerRecord(registration):
            brokers = _with_broker(brokers, registration._replace(registered_at=image.end_offset))
        case BrokerRegistrationChangeRecord(broker=broker):
            registered = broker_of(brokers, broker)
            assert registered is not None, f"the metadata log changes broker {broker}, which is not registered"
            brokers = _with_broker(brokers, change_broker(registered, record))
        case _:
            brokers = tuple(registration for registration in brokers if registration.broker != record.broker)
    return MetadataImage(Offset(image.end_offset + 1), brokers, partitions)


def replay_all(image: MetadataImage, records: tuple[MetadataRecord, ...]) -> MetadataImage:
    """The image after several records: as if they came one after the other, and quicker where many change partitions.

    **Kafka:** `MetadataLoader.handleCommit`, `MetadataDelta.apply`.
    """
    for of_partitions, run in groupby(records, key=_is_of_partition):
        together = tuple(run)
        many = of_partitions and len(together) > 1
        image = _replay_partitions(image, cast(PartitionRecords, together)) if many else reduce(replay, together, image)
    return image


PartitionRecords: TypeAlias = tuple[PartitionRecord | PartitionChangeRecord, ...]


def _is_of_partition(record: MetadataRecord) -> bool:
    match record:
        case PartitionRecord() | PartitionChangeRecord():
            return True
        case _:
            return False


def _replay_partitions(image: MetadataImage, records: PartitionRecords) -> MetadataImage:
    """The image after records of partitions, which are put in their places only at the end."""
    changed: dict[PartitionId, PartitionRecord] = {}
    for record in records:
        match record:
            case PartitionRecord(partition_id=number):
                changed[number] = record
            case _:
                number = record.partition_id
                before = changed[number].registration if number in changed else partition_of(image, number)
                assert before is not None, f"the metadata log changes partition {number}, which does not exist"
                changed[number] = PartitionRecord(number, merge(before, record))
    kept = (record for record in image.partitions if record.partition_id not in changed)
    partitions = tuple(sorted((*kept, *changed.values()), key=attrgetter("partition_id")))
    return MetadataImage(Offset(image.end_offset + len(records)), image.brokers, partitions)


def _with_partition(partitions: tuple[PartitionRecord, ...], new: PartitionRecord) -> tuple[PartitionRecord, ...]:
    place = _place_of(partitions, new.partition_id)
    there = _partition_at(partitions, place, new.partition_id) is not None
    return (*partitions[:place], new, *partitions[place + there :])


def _place_of(partitions: tuple[PartitionRecord, ...], partition_id: PartitionId) -> int:
    """Where a partition stands, or would stand."""
    return bisect_left(partitions, partition_id, key=attrgetter("partition_id"))


def _partition_at(
    partitions: tuple[PartitionRecord, ...], place: int, partition_id: PartitionId
) -> PartitionRegistration | None:
    """The registration of a partition that stands at this place if there is one."""
    there = partitions[place : place + 1]
    return there[0].registration if there and there[0].partition_id == partition_id else None


def _with_broker(brokers: tuple[BrokerRegistration, ...], new: BrokerRegistration) -> tuple[BrokerRegistration, ...]:
    others = [registration for registration in brokers if registration.broker != new.broker]
    return tuple(sorted([*others, new], key=attrgetter("broker")))


# ---- the difference of two images, as a broker sees it


class LocalRole(Enum):
    """What one broker has to do when a partition changes. Kafka: the parts of `LocalReplicaChanges`."""

    UNCHANGED = "unchanged"
    DELETED = "deleted"
    LEADER = "leader"
    FOLLOWER = "follower"


class LocalChange(NamedTuple):
    """What one broker has to do about one partition, and the registration to do it by (`None` unless it hosts a replica).

    `elected`: it leads in another leader epoch than before. Kafka: `LocalReplicaChanges`.
    """

    role: LocalRole
    registration: PartitionRegistration | None = None
    elected: bool = False


UNCHANGED = LocalChange(LocalRole.UNCHANGED)
DELETED = LocalChange(LocalRole.DELETED)


def local_change(before: PartitionRegistration | None, after: PartitionRegistration | None, broker: BrokerId) -> LocalChange:
    """What `broker` has to do when a partition was `before` in its last image and is `after` in its next.

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
