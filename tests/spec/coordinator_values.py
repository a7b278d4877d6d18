"""A value of every class of the coordinator, for `test_purity`."""

from typing import Any

from kspec.spec.assignors.subscribers import Subscriber
from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    GroupMembership,
    LosePartitions,
    MemberGeneration,
    RevokePartitions,
)
from kspec.spec.consumer.modern.membership import ConsumerMembership
from kspec.spec.consumer.modern.protocol import HEARTBEATS, HeartbeatingConsumer
from kspec.spec.consumer.protocol import GroupConsumer
from kspec.spec.consumer.rules import EAGER
from kspec.spec.coordinator.effects import AnswerMember, AnswerRequest, PersistRecords
from kspec.spec.coordinator.group import InitialDelay, Member, PendingMember, PendingOffset, new_group
from kspec.spec.coordinator.modern.heartbeat import HeartbeatSender
from kspec.spec.coordinator.modern.reconciliation import Goal, ReconciledMember
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    RegularExpressionRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import (
    AssignedPartition,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    ResolvedRegularExpression,
    TargetAssignment,
)
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorSettings
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
    TransactionalCommit,
)
from kspec.spec.coordinator.rules.consumer_protocol import AssignmentInBytes, SubscriptionInBytes, TopicsInBytes
from kspec.spec.coordinator.runtime import (
    LoadedGroups,
    LoggedEntry,
    LogPosition,
    UncommittedWrite,
    WaitingAnswer,
    unknown_group,
)
from kspec.spec.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumer,
)
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinedMember, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember, MemberIdentity
from kspec.spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kspec.spec.messages.groups.offset_commit import (
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
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.releases.coordinator import COORDINATOR_3_4
from kspec.spec.topics import NO_PLACE
from kspec.spec.values import (
    Error,
    Generation,
    GroupEpoch,
    GroupId,
    MemberId,
    MonotonicMs,
    Offset,
    ProducerId,
    RequestNumber,
    TimestampMs,
)

G, M, R, ONE, OK = GroupId("g"), MemberId("m"), RequestNumber(1), Generation(1), Error.NONE
COMMIT = OffsetCommitRecord(G, "t", 0, Offset(1))

E, NOBODY = GroupEpoch(1), ConsumerGroupMember(M)

COORDINATOR_VALUES: tuple[Any, ...] = (
    AskCoordinator(HeartbeatRequest(G, ONE, M)),
    RevokePartitions(frozenset({1})),
    LosePartitions(frozenset({1})),
    AddPartitions(frozenset({1})),
    ForgetCoordinator(),
    Fail(OK),
    GroupMembership(),
    MemberGeneration(),
    EAGER,
    GroupConsumer(EAGER, G, "t"),
    ConsumerMembership(),
    HEARTBEATS,
    HeartbeatingConsumer(HEARTBEATS, G, "t"),
    AssignedPartition(NO_PLACE, E),
    AssignmentInBytes(frozenset(), b""),
    ClassicMetadata(1, ()),
    ConsumerGroup(),
    ConsumerGroupDescribeRequest(G),
    ConsumerGroupDescribeResponse(OK, G),
    ConsumerGroupEpochRecord(G, E),
    ConsumerGroupHeartbeatRequest(G, M, E),
    ConsumerGroupHeartbeatResponse(OK),
    ConsumerGroupMemberRecord(G, M, None, None, "c", "h", frozenset(), None, 1, None, None),
    ConsumerTombstone(G, ConsumerRecordKind.GROUP),
    CurrentAssignmentRecord(G, M, E, E, MemberState.STABLE, (), ()),
    DescribedConsumer(M, None, None, E, "c", "h", (), "", (), (), False),
    Goal(E, frozenset(), frozenset(), frozenset()),
    HeartbeatSender(OK, NOBODY),
    NOBODY,
    ReconciledMember(OK, NOBODY),
    RegularExpressionRecord(G, "a", frozenset(), 1, TimestampMs(1)),
    ResolvedRegularExpression("a", frozenset()),
    SubscriptionInBytes(1, frozenset(), frozenset()),
    TargetAssignment(M, frozenset()),
    TargetEpochRecord(G, E, TimestampMs(1)),
    TargetRecord(G, M, frozenset()),
    TopicsInBytes((), 1),
    AnswerMember(R, SyncGroupResponse(OK)),
    AnswerRequest(R, HeartbeatResponse(OK)),
    COMMIT,
    unknown_group(G),
    Coordinator(COORDINATOR_3_4),
    COORDINATOR_3_4,
    CoordinatorSettings(),
    DeleteGroupsRequest(G),
    DeleteGroupsResponse(OK, G),
    DescribeGroupsRequest(G),
    DescribeGroupsResponse(OK, G),
    DescribedMember(M, None, "c", "h", b"", b""),
    EndOfTransaction(ProducerId(1), committed=True),
    FetchedOffset("t", 0),
    FindCoordinatorRequest(G),
    FindCoordinatorResponse(OK, G),
    GroupMetadataRecord(G, "", ONE, None, None, None, ()),
    GroupProtocol("range", b""),
    GroupTombstone(G),
    HeartbeatRequest(G, ONE, M),
    HeartbeatResponse(OK),
    InitialDelay(1, 2),
    JoinGroupRequest(R, G, M, None, "c", "h", 1, 2, "consumer", ()),
    JoinGroupResponse(OK),
    JoinedMember(M, None, b""),
    LeaveGroupRequest(G, ()),
    LeaveGroupResponse(OK),
    LeftMember(OK, M),
    ListGroupsRequest(),
    ListGroupsResponse(OK),
    LoggedEntry(Offset(1), COMMIT),
    LogPosition(Offset(2), Offset(1)),
    ListedGroup(G, "", "Empty", "classic"),
    Member(M, None, "c", "h", 1, 2, "consumer", ()),
    MemberAssignment(M, b""),
    MemberIdentity(M),
    MemberRecord(M, None, "c", "h", 1, 2, b"", b""),
    OffsetCommitRequest(G, ()),
    OffsetCommitResponse(()),
    OffsetDeleteRequest(G, ()),
    OffsetDeleteResponse(OK),
    OffsetFetchRequest(G, None),
    OffsetFetchResponse(OK, G),
    OffsetToCommit("t", 0, Offset(1)),
    OffsetTombstone(G, "t", 0),
    PartitionError("t", 0, OK),
    PendingMember(M, MonotonicMs(1)),
    PendingOffset(ProducerId(1), COMMIT),
    PersistRecords((COMMIT,)),
    Subscriber(M, frozenset({"t"})),
    SyncGroupRequest(R, G, ONE, M),
    SyncGroupResponse(OK),
    OffsetFetchPartition("t", 0),
    TransactionalCommit(ProducerId(1), COMMIT),
    UncommittedWrite(Offset(1), (COMMIT,)),
    LoadedGroups(Offset(1), (unknown_group(G),)),
    WaitingAnswer(R, HeartbeatRequest(G, ONE, M), Offset(1), MonotonicMs(2)),
    new_group(G, TimestampMs(0)),
)
