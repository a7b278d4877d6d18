"""Answers when a coordinator cannot serve a group, or the log has refused its records."""

from typing import TypeAlias

from kspec.spec.coordinator.effects import AnswerMember, GroupAnswer
from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.members import awaits_assignment
from kspec.spec.coordinator.offsets import commit_refused, txn_commit_refused
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import prepare_rebalance, reset_assignment, then
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kspec.spec.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, Error, Instant

GroupRequest: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | ConsumerGroupHeartbeatRequest
    | ConsumerGroupDescribeRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
    | TxnOffsetCommitRequest
)

NOT_AVAILABLE = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_ENOUGH_REPLICAS, Error.REQUEST_TIMED_OUT})
NOT_COORDINATOR = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR})
TOO_LARGE = frozenset({Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE})


def answer_for_append(error: Error) -> Error:
    """The error in the answer when the log refuses records with this error.

    **Kafka:** `GroupMetadataManager.appendGroupMetadataErrorToResponseError`,
    `CoordinatorOperationExceptionHelper.handleOperationException`.
    """
    if error in NOT_AVAILABLE:
        return Error.COORDINATOR_NOT_AVAILABLE
    if error in NOT_COORDINATOR:
        return Error.NOT_COORDINATOR
    return Error.UNKNOWN_SERVER_ERROR if error in TOO_LARGE else error


def answer_for_verification(error: Error, knows_abortable: bool) -> Error:
    """The error of a TxnOffsetCommit of whose transaction the coordinator of transactions has said this.

    Parameters: whether the client knows `TRANSACTION_ABORTABLE` (v4 and later). A coordinator that was not reached is asked
    again, without looking for another one of the group.

    **Kafka:** `AddPartitionsToTxnManager`, `CoordinatorOperationExceptionHelper.handleOperationException`.
    """
    if error == Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error == Error.TRANSACTION_ABORTABLE and not knows_abortable:
        return Error.INVALID_TXN_STATE
    return Error.COORDINATOR_LOAD_IN_PROGRESS if error == Error.NETWORK_EXCEPTION else answer_for_append(error)


def on_records_refused(
    coordinator: Coordinator, group: Group, request: GroupRequest, error: Error, now: Instant
) -> GroupStep:
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


def answer_for_late_append(request: GroupRequest, error: Error) -> Error:
    """The error in the answer when records were appended and are not committed, because of this error.

    Older consumers that fetch offsets do not expect a time-out, nor that the coordinator is not available.

    **Kafka:** `CoordinatorOperationExceptionHelper.handleOperationException`,
    `GroupCoordinatorService.handleOffsetFetchException`.
    """
    match request:
        case OffsetFetchRequest() if error in NOT_AVAILABLE:
            return Error.NOT_COORDINATOR
    return answer_for_append(error)


def on_assignment_not_committed(
    coordinator: Coordinator, group: Group, request: SyncGroupRequest, error: Error, now: Instant
) -> GroupStep:
    """The assignment that a leader has brought is in the log, and is not committed in time. Clients are told `error`.

    Everybody who waits for it gets the error, and the members join again. Nothing happens if the group has gone on
    meanwhile.

    **Kafka:** the `appendFuture` of `classicGroupSyncToClassicGroup`.
    """
    if not awaits_assignment(group, request):
        return Step(group)
    reset = reset_assignment(group, error, now)
    return then(reset, lambda after: prepare_rebalance(coordinator, after, now))


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
        case ConsumerGroupHeartbeatRequest():
            return Reply(ConsumerGroupHeartbeatResponse(error))
        case ConsumerGroupDescribeRequest(group_id=group_id):
            return Reply(ConsumerGroupDescribeResponse(error, group_id))
        case LeaveGroupRequest():
            return Reply(LeaveGroupResponse(error))
        case OffsetCommitRequest():
            return Reply(commit_refused(request, error))
        case TxnOffsetCommitRequest():
            return Reply(txn_commit_refused(request, error))
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
