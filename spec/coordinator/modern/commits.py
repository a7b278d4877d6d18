"""Offsets of a consumer group: who may commit them, and read them, by the member's epoch (KIP-848, KIP-1251)."""

from kspec.spec.coordinator.modern.state import ConsumerGroup, ConsumerGroupMember, consumer_of
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorProtocol
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest
from kspec.spec.topics import topic_named
from kspec.spec.values import NO_TOPIC_ID, Error


def check_commit_of_consumer(protocol: CoordinatorProtocol, group: ConsumerGroup, request: OffsetCommitRequest) -> Error:
    """Whether a member may commit: in its epoch any partition, whoever owns it. A group without members is not asked here.

    An older epoch is looked at for each partition where the release does so (`commits_partition`).

    Errors: `UNKNOWN_MEMBER_ID`, `UNSUPPORTED_VERSION` (before v9), `STALE_MEMBER_EPOCH`, or of a member that speaks the
    classic protocol `ILLEGAL_GENERATION`.

    **Kafka:** `ConsumerGroup.validateOffsetCommit`; of TxnOffsetCommit `check_txn_commit`.
    """
    member = consumer_of(group, request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if member.classic is None and not request.reports_missing_group:
        return Error.UNSUPPORTED_VERSION
    by_partition = protocol.commits_of_old_epoch(member.epoch, member.epoch)
    if int(request.generation) == member.epoch or (request.generation < member.epoch and by_partition):
        return Error.NONE
    return _stale(member)


def commits_partition(
    coordinator: Coordinator, group: ConsumerGroup, request: OffsetCommitRequest, offset: OffsetToCommit
) -> Error:
    """Whether a member may commit this partition: in its epoch, or in an older one if it has had the partition since then.

    Errors: `STALE_MEMBER_EPOCH`, or `ILLEGAL_GENERATION` of a member that speaks the classic protocol.

    **Kafka:** `ConsumerGroup.createAssignmentEpochValidator`, from 4.3 on; before, only the first.
    """
    member = consumer_of(group, request.member_id)
    if member is None or int(request.generation) == member.epoch:
        return Error.NONE
    topic = topic_named(coordinator.topics, offset.topic)
    topic_id = topic.topic_id if topic is not None and offset.topic_id == NO_TOPIC_ID else offset.topic_id
    held = (one for one in (*member.assigned, *member.pending) if one.place == (topic_id, offset.partition))
    since = next((one.epoch for one in held), None)
    allowed = coordinator.protocol.commits_of_old_epoch(request.generation, since)
    return Error.NONE if allowed else _stale(member)


def check_fetch_of_consumer(group: ConsumerGroup, request: OffsetFetchRequest) -> Error:
    """Whether offsets may be read: by who names no member, or by a member in its epoch, no older one.

    Errors: `UNKNOWN_MEMBER_ID`, `STALE_MEMBER_EPOCH`, or `ILLEGAL_GENERATION` of a member that speaks the classic protocol.

    **Kafka:** `ConsumerGroup.validateOffsetFetch`.
    """
    if request.member_id is None and request.member_epoch < 0:
        return Error.NONE
    member = None if request.member_id is None else consumer_of(group, request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if request.member_epoch == member.epoch else _stale(member)


def _stale(member: ConsumerGroupMember) -> Error:
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION
