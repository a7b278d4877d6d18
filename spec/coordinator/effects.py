"""What a coordinator's handlers ask to be done: store, and answer."""

from dataclasses import dataclass
from typing import TypeAlias

from spec.coordinator.records import GroupRecord
from spec.messages.groups.delete_groups import DeleteGroupsResponse
from spec.messages.groups.describe_groups import DescribeGroupsResponse
from spec.messages.groups.heartbeat import HeartbeatResponse
from spec.messages.groups.join_group import JoinGroupResponse
from spec.messages.groups.leave_group import LeaveGroupResponse
from spec.messages.groups.list_groups import ListGroupsResponse
from spec.messages.groups.offset_commit import OffsetCommitResponse
from spec.messages.groups.offset_delete import OffsetDeleteResponse
from spec.messages.groups.offset_fetch import OffsetFetchResponse
from spec.messages.groups.sync_group import SyncGroupResponse
from spec.step import Reply


@dataclass(frozen=True, slots=True)
class PersistRecords:
    """Append these records to the group's partition of `__consumer_offsets`, before any later effect.

    It is the first effect of a step. If the log refuses the records of a request, none of the step happens: the group stays
    as it was, and `spec.coordinator.refusals.on_records_refused` says what to do. If it refuses those of an event, the rest
    of the step happens all the same. Kafka: `CoordinatorResult.records`.
    """

    records: tuple[GroupRecord, ...]


@dataclass(frozen=True, slots=True)
class AnswerMember:
    """Answer a member's JoinGroup or SyncGroup by the number of the request: this one or an earlier one."""

    request: int
    response: JoinGroupResponse | SyncGroupResponse


GroupAnswer: TypeAlias = (
    HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
)

GroupEffect: TypeAlias = PersistRecords | AnswerMember | Reply[GroupAnswer]
