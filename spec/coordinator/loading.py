"""A group as the records of `__consumer_offsets` give it: what a coordinator that takes over has."""

from collections.abc import Iterable
from functools import reduce

from spec.coordinator.group import (
    Group,
    GroupState,
    Member,
    PendingOffset,
    absent,
    exists,
    new_group,
    topics_of_members,
)
from spec.coordinator.records import (
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from spec.messages.groups.join_group import GroupProtocol
from spec.values import NO_PRODUCER_ID, ProducerId


def replay(group: Group, record: GroupRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> Group:
    """The group after one more of its records. A record of a transaction waits for the transaction's end.

    A group that only commits offsets has no record of its own; it exists from the first of them.

    **Kafka:** `GroupMetadataManager.replay`, `OffsetMetadataManager.replay`.
    """
    match record:
        case GroupMetadataRecord():
            return _with_metadata(group, record)
        case GroupTombstone():
            gone = absent(group.group_id)
            return gone._replace(offsets=group.offsets, pending_offsets=group.pending_offsets)
        case OffsetCommitRecord():
            living = group if exists(group) else _brought_to_life(group, record)
            if producer_id == NO_PRODUCER_ID:
                return _with_offsets(living, (record,))
            pending = PendingOffset(producer_id, record)
            others = (one for one in living.pending_offsets if not _same_pending(one, pending))
            return living._replace(pending_offsets=(*others, pending))
        case _:
            return group._replace(
                offsets=tuple(one for one in group.offsets if not _same(one, record)),
                pending_offsets=tuple(one for one in group.pending_offsets if not _same(one.commit, record)),
            )


def replay_all(group: Group, records: Iterable[GroupRecord]) -> Group:
    """The group after several records."""
    return reduce(replay, records, group)


def replay_end_of_transaction(group: Group, producer_id: ProducerId, committed: bool) -> Group:
    """A transaction has ended: the offsets that it committed count, or they never will.

    **Kafka:** `OffsetMetadataManager.replayEndTransactionMarker`. **Leaves out:** that an offset committed without a
    transaction meanwhile, and so later in the log, stays.
    """
    ended = tuple(one.commit for one in group.pending_offsets if one.producer_id == producer_id)
    others = tuple(one for one in group.pending_offsets if one.producer_id != producer_id)
    return _with_offsets(group._replace(pending_offsets=others), ended if committed else ())


def load(records: Iterable[GroupRecord]) -> tuple[Group, ...]:
    """All groups that the records of a partition of `__consumer_offsets` give, in the order in which they appear.

    **Kafka:** `CoordinatorLoaderImpl`, `GroupCoordinatorShard.replay`.
    """
    groups: dict[str, Group] = {}
    for record in records:
        before = groups.get(record.group_id, absent(record.group_id))
        groups[record.group_id] = replay(before, record)
    return tuple(group for group in groups.values() if exists(group))


def _with_metadata(group: Group, record: GroupMetadataRecord) -> Group:
    """**Kafka:** `GroupMetadataManager.replay` of a `GroupMetadataValue`."""
    loaded = Group(
        group.group_id,
        GroupState.STABLE if record.members else GroupState.EMPTY,
        state_since_ms=record.state_since_ms,
        protocol_type=record.protocol_type or None,
        protocol_name=record.protocol_name,
        generation=record.generation,
        leader=record.leader,
        members=tuple(_loaded_member(member, record) for member in record.members),
        offsets=group.offsets,
        pending_offsets=group.pending_offsets,
    )
    return loaded._replace(subscribed=topics_of_members(loaded))


def _loaded_member(member: MemberRecord, record: GroupMetadataRecord) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.session_timeout_ms if member.rebalance_timeout_ms == -1 else member.rebalance_timeout_ms,
        record.protocol_type,
        (GroupProtocol(record.protocol_name or "", member.subscription),),
        member.assignment,
    )


def _brought_to_life(group: Group, record: OffsetCommitRecord) -> Group:
    created = new_group(group.group_id, record.committed_at_ms)
    return created._replace(offsets=group.offsets, pending_offsets=group.pending_offsets)


def _with_offsets(group: Group, records: tuple[OffsetCommitRecord, ...]) -> Group:
    by_partition = {(record.topic, record.partition): record for record in (*group.offsets, *records)}
    return group._replace(offsets=tuple(by_partition[key] for key in sorted(by_partition)))


def _same(one: OffsetCommitRecord, other: OffsetCommitRecord | OffsetTombstone) -> bool:
    return one.topic == other.topic and one.partition == other.partition


def _same_pending(one: PendingOffset, other: PendingOffset) -> bool:
    return one.producer_id == other.producer_id and _same(one.commit, other.commit)
