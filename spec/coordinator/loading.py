"""A group as the records of `__consumer_offsets` give it: what a coordinator that takes over has."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping

from kspec.spec.coordinator.group import (
    Group,
    GroupState,
    Member,
    PendingOffset,
    absent,
    as_consumer_group,
    created,
    exists,
    topics_of_members,
)
from kspec.spec.coordinator.modern.replaying import replay_consumer_record
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    LogEntry,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
    TransactionalCommit,
)
from kspec.spec.coordinator.rules.transactional import CountsOffset, counts_if_latest
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.values import NO_PRODUCER_ID, GroupId, ProducerId


def replay(group: Group, record: GroupRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> Group:
    """The group after one more of its records. A record of a transaction waits for the transaction's end.

    A group that only commits offsets has no record of its own; it exists from the first of them. The end of a group leaves
    its offsets as they are: each has a tombstone of its own.

    **Kafka:** `GroupMetadataManager.replay`, `OffsetMetadataManager.replay`.
    """
    match record:
        case GroupMetadataRecord():
            return _with_metadata(group, record)
        case GroupTombstone():
            gone = absent(group.group_id)
            return gone._replace(offsets=group.offsets, pending_offsets=group.pending_offsets)
        case OffsetCommitRecord():
            living = group if exists(group) else created(group, record.committed_at_ms)
            if producer_id == NO_PRODUCER_ID:
                overtaken = tuple(_overtaken(one) if _same(one.commit, record) else one for one in living.pending_offsets)
                return living._replace(offsets=_with_offset(living.offsets, record), pending_offsets=overtaken)
            pending = PendingOffset(producer_id, record)
            others = (one for one in living.pending_offsets if not _same_pending(one, pending))
            return living._replace(pending_offsets=(*others, pending))
        case OffsetTombstone():
            return group._replace(
                offsets=tuple(one for one in group.offsets if not _same(one, record)),
                pending_offsets=tuple(one for one in group.pending_offsets if not _same(one.commit, record)),
            )
        case _:
            consumer = replay_consumer_record(group.consumer, record)
            return group if consumer is None and group.consumer is None else as_consumer_group(group, consumer)


def replay_all(group: Group, records: Iterable[GroupRecord]) -> Group:
    """The group after several records: those of offsets that follow each other are taken together, which is quicker."""
    commits: list[OffsetCommitRecord] = []
    gone: set[tuple[str, int]] = set()
    for record in records:
        match record:
            case OffsetCommitRecord():
                group, gone = _without_offsets(group, gone), set()
                commits.append(record)
            case OffsetTombstone():
                group, commits = _with_commits(group, commits), []
                gone.add((record.topic, record.partition))
            case _:
                group = replay(_without_offsets(_with_commits(group, commits), gone), record)
                commits, gone = [], set()
    return _without_offsets(_with_commits(group, commits), gone)


def plain_record(entry: LogEntry) -> GroupRecord | None:
    """The record that an entry is, unless it is of a transaction."""
    match entry:
        case TransactionalCommit() | EndOfTransaction():
            return None
        case _:
            return entry


def entries_needed(commits: Iterable[Hashable | None]) -> list[int]:
    """The places of the entries from which a load gives the same groups, of committed entries that are of no transaction.

    `commits` has for each the partition of a group that it commits an offset of, and `None` for any other entry. Of commits
    of one partition with no other entry between them the first is needed, since a group may exist from it on, and the last.

    **Kafka:** `CoordinatorLoaderImpl` reads all; what `LogCleaner` drops is no more needed.
    """
    needed: list[int] = []
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for place, partition in enumerate(commits):
        if partition is not None:
            first.setdefault(partition, place)
            last[partition] = place
            continue
        needed += {*first.values(), *last.values(), place}
        first, last = {}, {}
    return sorted((*needed, *{*first.values(), *last.values()}))


def _with_commits(group: Group, commits: list[OffsetCommitRecord]) -> Group:
    """The group after commits that are of no transaction."""
    if len(commits) < 2:
        return replay(group, commits[0]) if commits else group
    living = group if exists(group) else created(group, commits[0].committed_at_ms)
    before = {(one.topic, one.partition): one for one in group.offsets}
    latest = {(one.topic, one.partition): one for one in commits}
    after = before | latest
    in_order = after.values() if len(after) == len(before) else [after[place] for place in sorted(after)]
    pending = tuple(
        _overtaken(one) if (one.commit.topic, one.commit.partition) in latest else one for one in living.pending_offsets
    )
    return living._replace(offsets=tuple(in_order), pending_offsets=pending)


def _without_offsets(group: Group, gone: set[tuple[str, int]]) -> Group:
    """The group without the offsets of some partitions, those that are pending with them."""
    if not gone:
        return group
    return group._replace(
        offsets=tuple(one for one in group.offsets if (one.topic, one.partition) not in gone),
        pending_offsets=tuple(one for one in group.pending_offsets if (one.commit.topic, one.commit.partition) not in gone),
    )


def replay_entry(group: Group, entry: LogEntry, counts: CountsOffset = counts_if_latest) -> Group:
    """The group after one more entry of its log, which may be of a transaction. `counts`: a rule of the coordinator's."""
    match entry:
        case TransactionalCommit(producer_id, commit):
            return replay(group, commit, producer_id)
        case EndOfTransaction(producer_id, committed):
            return replay_end_of_transaction(group, producer_id, committed, counts)
        case _:
            return replay(group, entry)


def replay_end_of_transaction(
    group: Group, producer_id: ProducerId, committed: bool, counts: CountsOffset = counts_if_latest
) -> Group:
    """A transaction has ended: the offsets that it committed count, or they never will.

    An offset that was committed for the same partition meanwhile, and so stands later in the log, stays.

    **Kafka:** `OffsetMetadataManager.replayEndTransactionMarker`, which compares the offsets of the records in the log; here
    the order of the pending offsets is that of their records.
    """
    offsets, left = group.offsets, []
    counted: set[tuple[str, int]] = set()
    for one in reversed(group.pending_offsets):
        partition = (one.commit.topic, one.commit.partition)
        if one.producer_id != producer_id:
            left.append(_overtaken(one) if partition in counted else one)
        elif counts(committed, one.is_overtaken):
            counted.add(partition)
            offsets = _with_offset(offsets, one.commit)
    return group._replace(offsets=offsets, pending_offsets=tuple(reversed(left)))


def load(entries: Iterable[LogEntry]) -> tuple[Group, ...]:
    """All groups that a log gives, in the order in which they appear, and what is left of those that are gone.

    **Kafka:** `CoordinatorLoaderImpl`, `GroupCoordinatorShard.replay`.
    """
    groups: dict[GroupId, Group] = {}
    for entry in entries:
        for group_id in groups_of(entry, groups):
            groups[group_id] = replay_entry(groups.get(group_id, absent(group_id)), entry)
    return tuple(group for group in groups.values() if is_kept(group))


def groups_of(entry: LogEntry, groups: Mapping[GroupId, Group]) -> tuple[GroupId, ...]:
    """The groups that an entry is about: the end of a transaction is about all of which it has committed offsets."""
    match entry:
        case TransactionalCommit():
            return (entry.commit.group_id,)
        case EndOfTransaction(producer_id):
            return tuple(
                group_id
                for group_id, group in groups.items()
                if any(one.producer_id == producer_id for one in group.pending_offsets)
            )
        case _:
            return (entry.group_id,)


def is_kept(group: Group) -> bool:
    """Whether there is something to know of a group: it exists, or has offsets, or may have once a transaction ends."""
    return exists(group) or bool(group.offsets) or bool(group.pending_offsets)


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


def _with_offset(offsets: tuple[OffsetCommitRecord, ...], record: OffsetCommitRecord) -> tuple[OffsetCommitRecord, ...]:
    """The offsets of a group with one more, in their order: nothing but the tuple itself is made anew."""
    place = bisect_left(offsets, (record.topic, record.partition), key=lambda one: (one.topic, one.partition))
    following = place + (place < len(offsets) and _same(offsets[place], record))
    return (*offsets[:place], record, *offsets[following:])


def _overtaken(pending: PendingOffset) -> PendingOffset:
    return pending._replace(is_overtaken=True)


def _same(one: OffsetCommitRecord, other: OffsetCommitRecord | OffsetTombstone) -> bool:
    return one.topic == other.topic and one.partition == other.partition


def _same_pending(one: PendingOffset, other: PendingOffset) -> bool:
    return one.producer_id == other.producer_id and _same(one.commit, other.commit)
