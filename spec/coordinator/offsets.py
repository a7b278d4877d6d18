"""The handlers of offsets: commit, fetch, delete, and their end when nobody has needed them for long."""

from functools import reduce

from kspec.spec.coordinator.effects import GroupAnswer, PersistRecords, PersistTransactionalOffsets
from kspec.spec.coordinator.group import (
    Group,
    GroupState,
    GroupStep,
    absent,
    check_member,
    created,
    exists,
    is_subscribed,
    touched,
)
from kspec.spec.coordinator.loading import replay_all, replay_entry
from kspec.spec.coordinator.modern.commits import check_commit_of_consumer, check_fetch_of_consumer, commits_partition
from kspec.spec.coordinator.modern.group_steps import forgetting
from kspec.spec.coordinator.modern.state import consumer_of
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import GroupRecord, OffsetCommitRecord, OffsetTombstone, TransactionalCommit
from kspec.spec.messages.groups.join_group import CONSUMER
from kspec.spec.messages.groups.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import (
    FetchedOffset,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, NO_TOPIC_ID, Error, GroupId, Instant, TimestampMs, TopicId

RESTS = frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE})


def handle_offset_commit(coordinator: Coordinator, group: Group, request: OffsetCommitRequest, now: Instant) -> GroupStep:
    """Commit offsets, and answer when they are stored. A commit of a member is a sign of life.

    Errors: those of `check_commit`, of all partitions; of one `OFFSET_METADATA_TOO_LARGE`, and those of
    `commits_partition`.

    **Kafka:** `OffsetMetadataManager.commitOffset`, `validateOffsetCommit`. **Leaves out:** `UNKNOWN_TOPIC_OR_PARTITION`,
    which `KafkaApis` answers for partitions that do not exist before it asks the coordinator.
    """
    error = check_commit(coordinator, group, request)
    if error != Error.NONE:
        return Step(group, (Reply(commit_refused(request, error)),))
    committed = group if exists(group) else created(group, now.timestamp)
    if group.state in RESTS:
        committed = touched(committed, request.member_id, now)
    expires = None if request.retention_ms == DEFAULT_RETENTION else _as_long(now.timestamp + request.retention_ms)
    errors = tuple(_check_offset(coordinator, group, request, offset) for offset in request.offsets)
    records = tuple(
        _record_of(request.group_id, offset, now, expires)
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


def check_commit(coordinator: Coordinator, group: Group, request: OffsetCommitRequest) -> Error:
    """Whether offsets may be committed: by a member in its generation, or by anybody while the group is empty.

    A commit that names neither member nor generation comes from a consumer that assigns partitions to itself. It may create
    the group.

    Errors, the first that applies: `GROUP_ID_NOT_FOUND` or for older clients `ILLEGAL_GENERATION`, those of `check_member`,
    `ILLEGAL_GENERATION`, `UNKNOWN_MEMBER_ID`, `REBALANCE_IN_PROGRESS`; of a consumer group those of
    `check_commit_of_consumer`.

    **Kafka:** `OffsetMetadataManager.validateOffsetCommit`, `ClassicGroup.validateOffsetCommit`.
    """
    if not exists(group):
        missing = Error.GROUP_ID_NOT_FOUND if request.reports_missing_group else Error.ILLEGAL_GENERATION
        return Error.NONE if request.generation < 0 else missing
    names_member = request.member_id != NO_MEMBER_ID or request.instance_id is not None
    takes = coordinator.protocol.commits_while_empty(names_member)
    if request.generation < 0 and group.state == GroupState.EMPTY and takes:
        return Error.NONE
    if group.consumer is not None:
        return check_commit_of_consumer(coordinator.protocol, group.consumer, request)
    if request.generation >= 0 or names_member:
        error = check_member(group, request.member_id, request.instance_id)
        if error != Error.NONE:
            return error
        if not coordinator.protocol.is_present_generation(request.generation, group.generation):
            return Error.ILLEGAL_GENERATION
    else:
        return Error.UNKNOWN_MEMBER_ID
    completing = group.state == GroupState.COMPLETING_REBALANCE
    return Error.NONE if coordinator.protocol.may_commit(completing) else Error.REBALANCE_IN_PROGRESS


def commit_refused(request: OffsetCommitRequest, error: Error) -> OffsetCommitResponse:
    """The answer that has the same error for every partition. **Kafka:** `OffsetCommitRequest.getErrorResponse`."""
    partitions = (PartitionError(offset.topic, offset.partition, error, offset.topic_id) for offset in request.offsets)
    return OffsetCommitResponse(tuple(partitions))


def handle_txn_offset_commit(
    coordinator: Coordinator, group: Group, request: TxnOffsetCommitRequest, now: Instant
) -> GroupStep:
    """Commit offsets in a transaction: they wait for its end, and a plain commit that comes later stays (`PendingOffset`).

    The leader of the group's partition has had the transaction verified before, as that of any batch
    (`spec.transactions.log.partition`), and checks it again as it appends.

    Errors: those of `check_txn_commit`, of all partitions; of one `OFFSET_METADATA_TOO_LARGE`.

    **Kafka:** `OffsetMetadataManager.commitTransactionalOffset`.
    """
    written = coordinator.protocol.checks_when_written
    error = check_txn_commit(coordinator, group, request) if written else Error.NONE
    limit = coordinator.settings.max_metadata_size
    errors = tuple(error if error != Error.NONE else _check_metadata(limit, offset) for offset in request.offsets)
    commits = tuple(
        TransactionalCommit(request.producer_id, _record_of(request.group_id, offset, now))
        for offset, failed in zip(request.offsets, errors, strict=True)
        if failed == Error.NONE
    )
    answer: Reply[GroupAnswer] = Reply(
        TxnOffsetCommitResponse(
            tuple(
                PartitionError(offset.topic, offset.partition, failed, offset.topic_id)
                for offset, failed in zip(request.offsets, errors, strict=True)
            )
        )
    )
    if not commits:
        return Step(group, (answer,))
    after = reduce(replay_entry, commits, group)
    return Step(after, (PersistTransactionalOffsets(request.producer_epoch, commits), answer))


def check_before_verification(coordinator: Coordinator, group: Group, request: TxnOffsetCommitRequest) -> Error:
    """Whether a TxnOffsetCommit goes on to have its transaction verified. All do, since a rebalance may come meanwhile.

    Errors: none; if it is not checked when it is written, those of `check_txn_commit`.

    **Kafka:** `GroupCoordinator.handleTxnCommitOffsets` (KAFKA-15784).
    """
    written = coordinator.protocol.checks_when_written
    return Error.NONE if written else check_txn_commit(coordinator, group, request)


def txn_commit_refused(request: TxnOffsetCommitRequest, error: Error) -> TxnOffsetCommitResponse:
    """The answer that has the same error for every partition. Producers before v2 do not expect that a coordinator loads.

    **Kafka:** `TxnOffsetCommitRequest.getErrorResponse`, `KafkaApis.handleTxnOffsetCommitRequest` (KAFKA-7296).
    """
    if error == Error.COORDINATOR_LOAD_IN_PROGRESS and not request.knows_loading:
        error = Error.COORDINATOR_NOT_AVAILABLE
    partitions = (PartitionError(offset.topic, offset.partition, error, offset.topic_id) for offset in request.offsets)
    return TxnOffsetCommitResponse(tuple(partitions))


def check_txn_commit(coordinator: Coordinator, group: Group, request: TxnOffsetCommitRequest) -> Error:
    """Whether offsets may be committed in a transaction: by a member in its generation, or by who names no member.

    A rebalance does not matter, since members fetch offsets that are stable alone.

    Errors: `INVALID_GROUP_ID`; `GROUP_ID_NOT_FOUND` and `STALE_MEMBER_EPOCH`, or for older clients `ILLEGAL_GENERATION`;
    those of `check_member`; of a consumer group `UNKNOWN_MEMBER_ID`.

    **Kafka:** `OffsetMetadataManager.validateTransactionalOffsetCommit`, `ClassicGroup.validateOffsetCommit`,
    `ConsumerGroup.validateOffsetCommit`.
    """
    illegal = Error.ILLEGAL_GENERATION
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    if not exists(group):
        missing = Error.GROUP_ID_NOT_FOUND if request.reports_missing_group else illegal
        return Error.NONE if request.generation < 0 else missing
    if request.generation < 0 and group.state == GroupState.EMPTY:
        return Error.NONE
    if group.consumer is not None:
        member = consumer_of(group.consumer, request.member_id)
        if member is None:
            return Error.UNKNOWN_MEMBER_ID
        tells_stale = request.reports_missing_group and member.classic is None
        stale = Error.STALE_MEMBER_EPOCH if tells_stale else illegal
        return Error.NONE if int(request.generation) == member.epoch else stale
    if request.generation < 0 and request.member_id == NO_MEMBER_ID and request.instance_id is None:
        return Error.NONE
    error = check_member(group, request.member_id, request.instance_id)
    if error != Error.NONE:
        return error
    is_present = coordinator.protocol.is_present_generation(request.generation, group.generation)
    return Error.NONE if is_present else illegal


def _record_of(
    group_id: GroupId, offset: OffsetToCommit, now: Instant, expires: TimestampMs | None = None
) -> OffsetCommitRecord:
    """The record of an offset that is committed now."""
    return OffsetCommitRecord(
        group_id,
        offset.topic,
        offset.partition,
        offset.offset,
        offset.leader_epoch,
        offset.metadata or "",
        now.timestamp,
        expires,
        offset.topic_id,
    )


def _as_long(time: int) -> TimestampMs:
    """A time (ms) as a Java `long` holds it: one beyond the end of all times lies before their beginning, and is over.

    **Kafka:** `OffsetMetadataManager.expireTimestampMs`, whose addition overflows.
    """
    return TimestampMs((time + 2**63) % 2**64 - 2**63)


def _check_offset(coordinator: Coordinator, group: Group, request: OffsetCommitRequest, offset: OffsetToCommit) -> Error:
    error = _check_metadata(coordinator.settings.max_metadata_size, offset)
    if error != Error.NONE:
        return error
    if group.consumer is None or not group.consumer.members:
        return Error.NONE
    return commits_partition(coordinator, group.consumer, request, offset)


def _check_metadata(limit: int, offset: OffsetToCommit) -> Error:
    units = len((offset.metadata or "").encode("utf-16-le", "surrogatepass")) // 2
    return Error.OFFSET_METADATA_TOO_LARGE if units > limit else Error.NONE


def _store(group: Group, records: tuple[GroupRecord, ...], *answers: Reply) -> GroupStep:  # type: ignore[type-arg]
    """Store records, then answer; the group is as a load of the records would give it."""
    if not records:
        return Step(group, answers)
    return Step(replay_all(group, records), (PersistRecords(records), *answers))


def handle_offset_fetch(coordinator: Coordinator, group: Group, request: OffsetFetchRequest, now: Instant) -> GroupStep:
    """Answer with the offsets that the group has read. A group that does not exist has read nothing, which is no error.

    Errors: those of `check_fetch_of_consumer`; of a partition `UNSTABLE_OFFSET_COMMIT`, if a transaction is open that
    commits its offset, and the client wants stable offsets only.

    **Kafka:** `OffsetMetadataManager.fetchOffsets`, `fetchAllOffsets`. **Leaves out:** `UNKNOWN_TOPIC_ID`, which `KafkaApis`
    answers for an id that no topic has.
    """
    error = Error.NONE if group.consumer is None else check_fetch_of_consumer(group.consumer, request)
    if error != Error.NONE:
        return Step(group, (Reply(OffsetFetchResponse(error, request.group_id)),))
    by_partition = {(record.topic, record.partition): record for record in group.offsets if exists(group)}
    wanted = request.partitions
    if wanted is None:
        wanted = tuple(OffsetFetchPartition(topic, partition) for topic, partition in by_partition)
    unstable = {(pending.commit.topic, pending.commit.partition) for pending in group.pending_offsets}
    fetched = []
    for asked in wanted:
        record = by_partition.get((asked.topic, asked.partition))
        is_pending = (asked.topic, asked.partition) in unstable
        if coordinator.protocol.is_unstable(request.require_stable, is_pending):
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


def handle_offset_delete(coordinator: Coordinator, group: Group, request: OffsetDeleteRequest, now: Instant) -> GroupStep:
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


def on_offsets_expiry(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
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
        and _is_expired(coordinator, group, record, now.timestamp)
    )
    records: tuple[GroupRecord, ...] = tuple(
        OffsetTombstone(record.group_id, record.topic, record.partition) for record in expired
    )
    forgotten = group.state == GroupState.EMPTY and not pending and len(expired) == len(group.offsets)
    if forgotten:
        step = _store(group, (*records, *forgetting(group)))
        return Step(absent(group.group_id), step.effects)
    return _store(group, records)


def _is_expired(coordinator: Coordinator, group: Group, record: OffsetCommitRecord, now: TimestampMs) -> bool:
    """Whether a committed offset has been kept long enough (KIP-211).

    The time runs from the end of the group's last member; for topics that the members no longer read, for consumers that are
    in no group, and in a consumer group, from the commit. Whether the group must be stable for that depends on the release.

    **Kafka:** `ClassicGroup.offsetExpirationCondition`, `OffsetExpirationConditionImpl`.
    """
    empty = group.state == GroupState.EMPTY
    knows_topics = group.protocol_type == CONSUMER and group.subscribed is not None
    reads_others = coordinator.protocol.expires_with_members(group.state == GroupState.STABLE, knows_topics)
    if group.consumer is None and group.protocol_type is not None and not empty and not reads_others:
        return False
    if record.expires_at_ms is not None:
        return now >= record.expires_at_ms
    begins = record.committed_at_ms
    if group.protocol_type is not None and empty and group.state_since_ms is not None:
        begins = group.state_since_ms
    return now - begins >= coordinator.settings.offsets_retention_ms


def on_topic_deleted(coordinator: Coordinator, group: Group, topic: str, topic_id: TopicId, now: Instant) -> GroupStep:
    """A topic is deleted, and the group's offsets in it with it. **Kafka:** `OffsetMetadataManager.onTopicsDeleted`."""
    commits = (*group.offsets, *(pending.commit for pending in group.pending_offsets))
    gone = {commit.partition for commit in commits if commit.topic == topic and commit.topic_id in (NO_TOPIC_ID, topic_id)}
    return _store(group, tuple(OffsetTombstone(group.group_id, topic, partition) for partition in sorted(gone)))
