"""The handlers of offsets: commit, fetch, delete, and their end when nobody has needed them for long."""

from spec.coordinator.effects import PersistRecords
from spec.coordinator.group import (
    CONSUMER,
    Group,
    GroupState,
    GroupStep,
    absent,
    check_member,
    exists,
    is_subscribed,
    new_group,
    touched,
)
from spec.coordinator.loading import replay_all
from spec.coordinator.protocol import Coordinator
from spec.coordinator.records import GroupRecord, GroupTombstone, OffsetCommitRecord, OffsetTombstone
from spec.messages.groups.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)
from spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from spec.messages.groups.offset_fetch import FetchedOffset, OffsetFetchRequest, OffsetFetchResponse, TopicPartition
from spec.step import Reply, Step
from spec.values import NO_MEMBER_ID, NO_TOPIC_ID, Error, TopicId

RESTS = frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE})


def handle_offset_commit(coordinator: Coordinator, group: Group, request: OffsetCommitRequest, now: int) -> GroupStep:
    """Commit offsets, and answer when they are stored. A commit of a member is a sign of life.

    Errors: those of `check_commit`, of all partitions; of one `OFFSET_METADATA_TOO_LARGE`.

    **Kafka:** `OffsetMetadataManager.commitOffset`, `validateOffsetCommit`. **Leaves out:** `UNKNOWN_TOPIC_OR_PARTITION`,
    which `KafkaApis` answers for partitions that do not exist before it asks the coordinator.
    """
    error = check_commit(group, request)
    if error != Error.NONE:
        return Step(group, (Reply(commit_refused(request, error)),))
    committed = group if exists(group) else new_group(request.group_id, now)
    if group.state in RESTS:
        committed = touched(committed, request.member_id, now)
    expires = None if request.retention_ms == DEFAULT_RETENTION else _as_long(now + request.retention_ms)
    errors = tuple(_check_metadata(coordinator, offset) for offset in request.offsets)
    records = tuple(
        OffsetCommitRecord(
            request.group_id,
            offset.topic,
            offset.partition,
            offset.offset,
            offset.leader_epoch,
            offset.metadata or "",
            now,
            expires,
            offset.topic_id,
        )
        for offset, failed in zip(request.offsets, errors, strict=True)
        if failed == Error.NONE
    )
    answer = OffsetCommitResponse(
        tuple(
            PartitionError(offset.topic, offset.partition, failed, offset.topic_id)
            for offset, failed in zip(request.offsets, errors, strict=True)
        )
    )
    return _store(committed, records, Reply(answer))


def check_commit(group: Group, request: OffsetCommitRequest) -> Error:
    """Whether offsets may be committed: by a member in its generation, or by anybody while the group is empty.

    A commit that names neither member nor generation comes from a consumer that assigns partitions to itself. It may create
    the group.

    Errors, the first that applies: `GROUP_ID_NOT_FOUND` or for older clients `ILLEGAL_GENERATION`, those of `check_member`,
    `ILLEGAL_GENERATION`, `UNKNOWN_MEMBER_ID`, `REBALANCE_IN_PROGRESS`.

    **Kafka:** `OffsetMetadataManager.validateOffsetCommit`, `ClassicGroup.validateOffsetCommit`.
    """
    if not exists(group):
        missing = Error.GROUP_ID_NOT_FOUND if request.reports_missing_group else Error.ILLEGAL_GENERATION
        return Error.NONE if request.generation < 0 else missing
    if request.generation < 0 and group.state == GroupState.EMPTY:
        return Error.NONE
    if request.generation >= 0 or request.member_id != NO_MEMBER_ID or request.instance_id is not None:
        error = check_member(group, request.member_id, request.instance_id)
        if error != Error.NONE:
            return error
        if request.generation != group.generation:
            return Error.ILLEGAL_GENERATION
    else:
        return Error.UNKNOWN_MEMBER_ID
    return Error.REBALANCE_IN_PROGRESS if group.state == GroupState.COMPLETING_REBALANCE else Error.NONE


def commit_refused(request: OffsetCommitRequest, error: Error) -> OffsetCommitResponse:
    """The answer that has the same error for every partition. **Kafka:** `OffsetCommitRequest.getErrorResponse`."""
    partitions = (PartitionError(offset.topic, offset.partition, error, offset.topic_id) for offset in request.offsets)
    return OffsetCommitResponse(tuple(partitions))


def _as_long(time: int) -> int:
    """A time (ms) as a Java `long` holds it: one beyond the end of all times lies before their beginning, and is over.

    **Kafka:** `OffsetMetadataManager.expireTimestampMs`, whose addition overflows.
    """
    return (time + 2**63) % 2**64 - 2**63


def _check_metadata(coordinator: Coordinator, offset: OffsetToCommit) -> Error:
    units = len((offset.metadata or "").encode("utf-16-le", "surrogatepass")) // 2
    return Error.OFFSET_METADATA_TOO_LARGE if units > coordinator.settings.max_metadata_size else Error.NONE


def _store(group: Group, records: tuple[GroupRecord, ...], *answers: Reply) -> GroupStep:  # type: ignore[type-arg]
    """Store records, then answer; the group is as a load of the records would give it."""
    if not records:
        return Step(group, answers)
    return Step(replay_all(group, records), (PersistRecords(records), *answers))


def handle_offset_fetch(coordinator: Coordinator, group: Group, request: OffsetFetchRequest, now: int) -> GroupStep:
    """How far the group has read. A group that does not exist has read nothing, which is no error.

    Errors: of a partition `UNSTABLE_OFFSET_COMMIT`, if a transaction is open that commits its offset, and the client wants
    stable offsets only.

    **Kafka:** `OffsetMetadataManager.fetchOffsets`, `fetchAllOffsets`. **Leaves out:** `UNKNOWN_TOPIC_ID`, which `KafkaApis`
    answers for an id that no topic has.
    """
    by_partition = {(record.topic, record.partition): record for record in group.offsets}
    wanted = request.partitions
    if wanted is None:
        wanted = tuple(TopicPartition(topic, partition) for topic, partition in by_partition)
    unstable = {(pending.commit.topic, pending.commit.partition) for pending in group.pending_offsets}
    fetched = []
    for asked in wanted:
        record = by_partition.get((asked.topic, asked.partition))
        if request.require_stable and (asked.topic, asked.partition) in unstable:
            failed = FetchedOffset(asked.topic, asked.partition, Error.UNSTABLE_OFFSET_COMMIT, topic_id=asked.topic_id)
            fetched.append(failed)
        elif record is None or _of_another_topic(record.topic_id, asked.topic_id):
            fetched.append(FetchedOffset(asked.topic, asked.partition, topic_id=asked.topic_id))
        else:
            fetched.append(
                FetchedOffset(
                    asked.topic,
                    asked.partition,
                    Error.NONE,
                    record.offset,
                    record.leader_epoch,
                    record.metadata,
                    asked.topic_id,
                )
            )
    return Step(group, (Reply(OffsetFetchResponse(Error.NONE, request.group_id, tuple(fetched))),))


def _of_another_topic(committed: TopicId, asked: TopicId) -> bool:
    """Whether the topic has been deleted and created again since. **Kafka:** `isMismatchedTopicId`."""
    return NO_TOPIC_ID not in (committed, asked) and committed != asked


def handle_offset_delete(coordinator: Coordinator, group: Group, request: OffsetDeleteRequest, now: int) -> GroupStep:
    """Forget offsets of topics that the group does not read.

    Errors: `INVALID_GROUP_ID`, `GROUP_ID_NOT_FOUND`, `NON_EMPTY_GROUP` (members of another type than consumers); of a
    partition `GROUP_SUBSCRIBED_TO_TOPIC`.

    **Kafka:** `OffsetMetadataManager.deleteOffsets`, `ClassicGroup.validateOffsetDelete`. **Leaves out:**
    `UNKNOWN_TOPIC_OR_PARTITION`, which `KafkaApis` answers.
    """
    error = _check_delete(group, request)
    if error != Error.NONE:
        return Step(group, (Reply(OffsetDeleteResponse(error)),))
    known = {(record.topic, record.partition) for record in group.offsets}
    known |= {(pending.commit.topic, pending.commit.partition) for pending in group.pending_offsets}
    partitions, records = [], []
    for asked in request.partitions:
        used = is_subscribed(group, asked.topic)
        failed = Error.GROUP_SUBSCRIBED_TO_TOPIC if used else Error.NONE
        partitions.append(PartitionError(asked.topic, asked.partition, failed, asked.topic_id))
        if not used and (asked.topic, asked.partition) in known:
            records.append(OffsetTombstone(group.group_id, asked.topic, asked.partition))
    return _store(group, tuple(records), Reply(OffsetDeleteResponse(Error.NONE, tuple(partitions))))


def _check_delete(group: Group, request: OffsetDeleteRequest) -> Error:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    if not exists(group):
        return Error.GROUP_ID_NOT_FOUND
    in_use = group.state != GroupState.EMPTY and group.protocol_type != CONSUMER
    return Error.NON_EMPTY_GROUP if in_use else Error.NONE


def on_offsets_expiry(coordinator: Coordinator, group: Group, now: int) -> GroupStep:
    """Forget the offsets whose time is over, and an empty group that has none left. Due every
    `offsets.retention.check.interval.ms`.

    **Kafka:** `GroupCoordinatorShard.cleanupGroupMetadata`, `OffsetMetadataManager.cleanupExpiredOffsets`.
    """
    pending = {(offset.commit.topic, offset.commit.partition) for offset in group.pending_offsets}
    expired = tuple(
        record
        for record in group.offsets
        if not is_subscribed(group, record.topic)
        and (record.topic, record.partition) not in pending
        and _is_expired(coordinator, group, record, now)
    )
    records: tuple[GroupRecord, ...] = tuple(
        OffsetTombstone(record.group_id, record.topic, record.partition) for record in expired
    )
    forgotten = group.state == GroupState.EMPTY and not pending and len(expired) == len(group.offsets)
    if forgotten:
        step = _store(group, (*records, GroupTombstone(group.group_id)))
        return Step(absent(group.group_id), step.effects)
    return _store(group, records)


def _is_expired(coordinator: Coordinator, group: Group, record: OffsetCommitRecord, now: int) -> bool:
    """Whether a committed offset has been kept long enough (KIP-211).

    The time runs from the end of the group's last member; for topics that the members of a stable group no longer read, and
    for consumers that are in no group, from the commit.

    **Kafka:** `ClassicGroup.offsetExpirationCondition`, `OffsetExpirationConditionImpl`.
    """
    empty = group.state == GroupState.EMPTY
    reads_others = group.state == GroupState.STABLE and group.protocol_type == CONSUMER and group.subscribed is not None
    if group.protocol_type is not None and not empty and not reads_others:
        return False
    if record.expires_at_ms is not None:
        return now >= record.expires_at_ms
    begins = record.committed_at_ms
    if group.protocol_type is not None and empty and group.state_since_ms is not None:
        begins = group.state_since_ms
    return now - begins >= coordinator.settings.offsets_retention_ms


def on_topic_deleted(coordinator: Coordinator, group: Group, topic: str, topic_id: TopicId, now: int) -> GroupStep:
    """A topic is deleted, and the group's offsets in it with it. **Kafka:** `OffsetMetadataManager.onTopicsDeleted`."""
    commits = (*group.offsets, *(pending.commit for pending in group.pending_offsets))
    gone = {commit.partition for commit in commits if commit.topic == topic and commit.topic_id in (NO_TOPIC_ID, topic_id)}
    return _store(group, tuple(OffsetTombstone(group.group_id, topic, partition) for partition in sorted(gone)))
