"""What is answered when a coordinator cannot serve a group, or the log has refused its records."""

from typing import TypeAlias

from spec.coordinator.effects import AnswerMember, GroupAnswer
from spec.coordinator.group import Group, GroupStep
from spec.coordinator.offsets import commit_refused
from spec.coordinator.protocol import Coordinator
from spec.coordinator.rebalance import prepare_rebalance, reset_assignment, then
from spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from spec.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from spec.messages.groups.offset_commit import OffsetCommitRequest
from spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from spec.step import Reply, Step
from spec.values import NO_MEMBER_ID, Error

GroupRequest: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
)

NOT_AVAILABLE = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_ENOUGH_REPLICAS, Error.REQUEST_TIMED_OUT})
NOT_COORDINATOR = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR})
TOO_LARGE = frozenset({Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE})


def answer_for_append(error: Error) -> Error:
    """What a client is told when the log refuses records with this error.

    **Kafka:** `GroupMetadataManager.appendGroupMetadataErrorToResponseError`,
    `CoordinatorOperationExceptionHelper.handleOperationException`.
    """
    if error in NOT_AVAILABLE:
        return Error.COORDINATOR_NOT_AVAILABLE
    if error in NOT_COORDINATOR:
        return Error.NOT_COORDINATOR
    return Error.UNKNOWN_SERVER_ERROR if error in TOO_LARGE else error


def on_records_refused(coordinator: Coordinator, group: Group, request: GroupRequest, error: Error, now: int) -> GroupStep:
    """The log has refused the records of this request with `error`; `group` is as before the request.

    The client gets `answer_for_append(error)`. If a leader's assignment could not be stored, everybody who waits for it gets
    the error as well, and the members join again.

    **Kafka:** the `appendFuture`s of `classicGroupJoinToClassicGroup`, `classicGroupSyncToClassicGroup` and
    `updateStaticMemberThenRebalanceOrCompleteJoin`.
    """
    refusal = refuse(request, answer_for_append(error))
    match request:
        case SyncGroupRequest():
            reset = reset_assignment(group, answer_for_append(error), now)
            step = Step(reset.state, (refusal, *reset.effects))
            return then(step, lambda after: prepare_rebalance(coordinator, after, now))
    return Step(group, (refusal,))


def refuse(request: GroupRequest, error: Error) -> AnswerMember | Reply[GroupAnswer]:
    """The answer of a broker that does not coordinate the group, is still loading it, or has failed.

    Errors: any; `COORDINATOR_LOAD_IN_PROGRESS`, `NOT_COORDINATOR` and `COORDINATOR_NOT_AVAILABLE` before a handler is asked.
    A heartbeat during the load succeeds, so that members wait for its end.

    **Kafka:** the `exceptionally` clauses of `GroupCoordinatorService`.
    """
    match request:
        case JoinGroupRequest():
            return AnswerMember(request.request, JoinGroupResponse(error, NO_MEMBER_ID))
        case SyncGroupRequest():
            return AnswerMember(request.request, SyncGroupResponse(error))
        case HeartbeatRequest():
            loading = error == Error.COORDINATOR_LOAD_IN_PROGRESS
            return Reply(HeartbeatResponse(Error.NONE if loading else error))
        case LeaveGroupRequest():
            return Reply(LeaveGroupResponse(error))
        case OffsetCommitRequest():
            return Reply(commit_refused(request, error))
        case OffsetFetchRequest(group_id=group_id):
            return Reply(OffsetFetchResponse(error, group_id))
        case OffsetDeleteRequest():
            return Reply(OffsetDeleteResponse(error))
        case DescribeGroupsRequest(group_id=group_id):
            return Reply(DescribeGroupsResponse(error, group_id))
        case ListGroupsRequest():
            return Reply(ListGroupsResponse(error))
        case _:
            return Reply(DeleteGroupsResponse(error, request.group_id))
