"""Effects of a coordinator's handlers: store, and answer."""

from dataclasses import dataclass
from typing import TypeAlias

from kspec.spec.coordinator.records import GroupRecord, TransactionalCommit
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeResponse
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kspec.spec.messages.groups.delete_groups import DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribeGroupsResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatResponse
from kspec.spec.messages.groups.join_group import JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupResponse
from kspec.spec.messages.groups.list_groups import ListGroupsResponse
from kspec.spec.messages.groups.offset_commit import OffsetCommitResponse
from kspec.spec.messages.groups.offset_delete import OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from kspec.spec.step import Reply
from kspec.spec.values import ProducerEpoch, RequestNumber


@dataclass(frozen=True, slots=True)
class PersistRecords:
    """Append these records to the group's partition of `__consumer_offsets`, as one batch and before any later effect.

    It is the first effect of a step. The step counts at once; what it answers to its own request waits until the records are
    committed. If the log refuses the records of a request, none of the step happens. If it refuses those of an event, the
    group's offsets stay as they were, and the rest of the step happens all the same (`spec.coordinator.runtime`).
    Kafka: `CoordinatorResult.records`.
    """

    records: tuple[GroupRecord, ...]


@dataclass(frozen=True, slots=True)
class PersistTransactionalOffsets:
    """Append these offsets as one batch of a producer's transaction, verified and without a sequence number.

    They count when the producer's marker commits them (`spec.coordinator.loading.replay_end_of_transaction`). Otherwise they
    are like `PersistRecords` of a request. Kafka: `CoordinatorRuntime.scheduleTransactionalWriteOperation`.
    """

    producer_epoch: ProducerEpoch
    commits: tuple[TransactionalCommit, ...]


@dataclass(frozen=True, slots=True)
class AnswerMember:
    """Answer a member's JoinGroup or SyncGroup by the number of the request: this one or an earlier one.

    `when_committed`: not before the records of the same step are committed. Kafka: `CoordinatorResult.appendFuture`.
    """

    request: RequestNumber
    response: JoinGroupResponse | SyncGroupResponse
    when_committed: bool = False


GroupAnswer: TypeAlias = (
    HeartbeatResponse
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
    | TxnOffsetCommitResponse
)

GroupEffect: TypeAlias = PersistRecords | PersistTransactionalOffsets | AnswerMember | Reply[GroupAnswer]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Answer a request by the number under which it was handed to the group, now or when its records are committed."""

    request: RequestNumber
    response: GroupAnswer


RuntimeEffect: TypeAlias = PersistRecords | PersistTransactionalOffsets | AnswerMember | AnswerRequest
