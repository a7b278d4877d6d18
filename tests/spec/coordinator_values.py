"""A value of every class of the coordinator, for `test_purity`."""

from typing import Any

from spec.coordinator.effects import AnswerMember, PersistRecords
from spec.coordinator.group import InitialDelay, Member, PendingMember, PendingOffset, new_group
from spec.coordinator.protocol import Coordinator, CoordinatorSettings
from spec.coordinator.records import (
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from spec.messages.groups.describe_groups import DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from spec.messages.groups.join_group import GroupProtocol, JoinedMember, JoinGroupRequest, JoinGroupResponse
from spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember, MemberIdentity
from spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from spec.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)
from spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from spec.messages.groups.offset_fetch import FetchedOffset, OffsetFetchRequest, OffsetFetchResponse, TopicPartition
from spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from spec.values import Error, Generation, GroupId, MemberId, Offset, ProducerId

G, M, ONE, OK = GroupId("g"), MemberId("m"), Generation(1), Error.NONE
COMMIT = OffsetCommitRecord(G, "t", 0, Offset(1))

COORDINATOR_VALUES: tuple[Any, ...] = (
    AnswerMember(1, SyncGroupResponse(OK)),
    COMMIT,
    Coordinator(),
    CoordinatorSettings(),
    DeleteGroupsRequest(G),
    DeleteGroupsResponse(OK, G),
    DescribeGroupsRequest(G),
    DescribeGroupsResponse(OK, G),
    DescribedMember(M, None, "c", "h", b"", b""),
    FetchedOffset("t", 0),
    FindCoordinatorRequest(G),
    FindCoordinatorResponse(OK, G),
    GroupMetadataRecord(G, "", ONE, None, None, None, ()),
    GroupProtocol("range", b""),
    GroupTombstone(G),
    HeartbeatRequest(G, ONE, M),
    HeartbeatResponse(OK),
    InitialDelay(1, 2),
    JoinGroupRequest(1, G, M, None, "c", "h", 1, 2, "consumer", ()),
    JoinGroupResponse(OK),
    JoinedMember(M, None, b""),
    LeaveGroupRequest(G, ()),
    LeaveGroupResponse(OK),
    LeftMember(OK, M),
    ListGroupsRequest(),
    ListGroupsResponse(OK),
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
    PendingMember(M, 1),
    PendingOffset(ProducerId(1), COMMIT),
    PersistRecords((COMMIT,)),
    SyncGroupRequest(1, G, ONE, M),
    SyncGroupResponse(OK),
    TopicPartition("t", 0),
    new_group(G, 0),
)
