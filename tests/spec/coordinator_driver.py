"""A coordinator of one group for tests: it keeps the log, the time and the answers, and carries out effects in order."""

from collections.abc import Iterable
from typing import Any

from spec.coordinator.administration import handle_delete_groups, handle_describe_groups, handle_list_groups
from spec.coordinator.deadlines import next_deadline, on_deadline
from spec.coordinator.effects import AnswerMember, PersistRecords
from spec.coordinator.group import Group, GroupState, GroupStep, Member, absent, member_of
from spec.coordinator.joining import handle_join_group
from spec.coordinator.members import handle_heartbeat, handle_leave_group, handle_sync_group
from spec.coordinator.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from spec.coordinator.protocol import Coordinator, CoordinatorSettings
from spec.coordinator.records import GroupRecord
from spec.messages.groups.delete_groups import DeleteGroupsRequest
from spec.messages.groups.describe_groups import DescribeGroupsRequest
from spec.messages.groups.heartbeat import HeartbeatRequest
from spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from spec.messages.groups.list_groups import ListGroupsRequest
from spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from spec.messages.groups.offset_delete import OffsetDeleteRequest
from spec.messages.groups.offset_fetch import OffsetFetchRequest, TopicPartition
from spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from spec.step import Reply
from spec.values import NO_GENERATION, NO_MEMBER_ID, Error, Generation, GroupId, MemberId, Offset

GROUP = GroupId("group")
SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 30_000, 3_000


def subscription(*topics: str) -> bytes:
    """What a consumer of these topics says of itself, as Kafka's clients write it."""
    encoded = [topic.encode() for topic in topics]
    names = b"".join(len(topic).to_bytes(2, "big") + topic for topic in encoded)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def offers(*names: str, topic: str = "topic") -> tuple[GroupProtocol, ...]:
    """Protocols of these names, for one topic."""
    return tuple(GroupProtocol(name, subscription(topic)) for name in names)


RANGE = offers("range")


class Driver:
    """Sends requests, moves the time, and remembers what was answered and stored."""

    def __init__(self, **settings: int) -> None:
        self.coordinator = Coordinator(CoordinatorSettings(**settings))
        self.group: Group = absent(GROUP)
        self.now = 0
        self.log: list[GroupRecord] = []
        self.answers: dict[int, JoinGroupResponse | SyncGroupResponse] = {}
        self.requests = 0
        self.ids = 0

    def carry_out(self, step: GroupStep) -> Any:
        """Take the step: store, answer; the reply, if there is one."""
        self.group, reply = step.state, None
        for effect in step.effects:
            match effect:
                case PersistRecords(records):
                    assert effect is step.effects[0]
                    self.log += records
                case AnswerMember(request, response):
                    assert request not in self.answers, "answered twice"
                    self.answers[request] = response
                case Reply(message):
                    reply = message
        return reply

    def join(self, member_id: str = NO_MEMBER_ID, instance_id: str | None = None, **changes: Any) -> int:
        """Send a JoinGroup; its number."""
        self.requests += 1
        self.ids += 1
        given: dict[str, Any] = {
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "new_member_id": MemberId(f"m{self.ids}"),
            "group_id": GROUP,
        }
        request = JoinGroupRequest(
            request=self.requests, member_id=MemberId(member_id), instance_id=instance_id, **{**given, **changes}
        )
        self.carry_out(handle_join_group(self.coordinator, self.group, request, self.now))
        return self.requests

    def sync(self, member_id: str, assignments: dict[str, bytes] | None = None, **changes: Any) -> int:
        """Send a SyncGroup; its number."""
        self.requests += 1
        given: dict[str, Any] = {"generation": self.group.generation, "group_id": GROUP}
        request = SyncGroupRequest(
            request=self.requests,
            member_id=MemberId(member_id),
            assignments=tuple(MemberAssignment(MemberId(one), data) for one, data in (assignments or {}).items()),
            **{**given, **changes},
        )
        self.carry_out(handle_sync_group(self.coordinator, self.group, request, self.now))
        return self.requests

    def heartbeat(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> Error:
        """Send a Heartbeat; its error."""
        at = self.group.generation if generation is None else Generation(generation)
        request = HeartbeatRequest(GROUP, at, MemberId(member_id), instance_id)
        error = self.carry_out(handle_heartbeat(self.coordinator, self.group, request, self.now)).error
        assert isinstance(error, Error)
        return error

    def leave(self, *members: str | MemberIdentity) -> LeaveGroupResponse:
        """Send a LeaveGroup; its answer."""
        identities = tuple(one if isinstance(one, MemberIdentity) else MemberIdentity(MemberId(one)) for one in members)
        request = LeaveGroupRequest(GROUP, identities)
        response = self.carry_out(handle_leave_group(self.coordinator, self.group, request, self.now))
        assert isinstance(response, LeaveGroupResponse)
        return response

    def commit(self, *offsets: OffsetToCommit, member_id: str = NO_MEMBER_ID, **changes: Any) -> list[Error]:
        """Send an OffsetCommit; the errors of its partitions."""
        given: dict[str, Any] = {"generation": NO_GENERATION, **changes}
        request = OffsetCommitRequest(GROUP, offsets or (at("topic", 0, 5),), member_id=MemberId(member_id), **given)
        response = self.carry_out(handle_offset_commit(self.coordinator, self.group, request, self.now))
        return [partition.error for partition in response.partitions]

    def fetch(self, *partitions: TopicPartition, require_stable: bool = False) -> Any:
        """Send an OffsetFetch, of all partitions if none is named; its answer."""
        request = OffsetFetchRequest(GROUP, partitions or None, require_stable)
        return self.carry_out(handle_offset_fetch(self.coordinator, self.group, request, self.now))

    def delete_offsets(self, *partitions: TopicPartition, group_id: str = GROUP) -> Any:
        """Send an OffsetDelete; its answer."""
        request = OffsetDeleteRequest(GroupId(group_id), partitions)
        return self.carry_out(handle_offset_delete(self.coordinator, self.group, request, self.now))

    def describe(self, reports_missing_group: bool = False) -> Any:
        """Send a DescribeGroups; its answer."""
        request = DescribeGroupsRequest(GROUP, reports_missing_group)
        return self.carry_out(handle_describe_groups(self.coordinator, self.group, request, self.now))

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Any:
        """Send a ListGroups; the groups."""
        request = ListGroupsRequest(tuple(states), tuple(types))
        return self.carry_out(handle_list_groups(self.coordinator, self.group, request, self.now)).groups

    def delete(self) -> Error:
        """Send a DeleteGroups; its error."""
        error = self.carry_out(
            handle_delete_groups(self.coordinator, self.group, DeleteGroupsRequest(GROUP), self.now)
        ).error
        assert isinstance(error, Error)
        return error

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass; everything that is due happens when it is due."""
        end = self.now + milliseconds
        due = next_deadline(self.group)
        while due is not None and due <= end:
            self.now = max(due, self.now)
            self.carry_out(on_deadline(self.coordinator, self.group, self.now))
            due = next_deadline(self.group)
        self.now = end

    # ---- what tests ask

    def joined(self, request: int) -> JoinGroupResponse:
        """The answer to a JoinGroup."""
        response = self.answers[request]
        assert isinstance(response, JoinGroupResponse)
        return response

    def synced(self, request: int) -> SyncGroupResponse:
        """The answer to a SyncGroup."""
        response = self.answers[request]
        assert isinstance(response, SyncGroupResponse)
        return response

    def member(self, member_id: str) -> Member:
        """A member of the group."""
        member = member_of(self.group, MemberId(member_id))
        assert member is not None
        return member

    @property
    def state(self) -> GroupState:
        """The state of the group."""
        return self.group.state

    def stable(self, *instances: str | None) -> list[MemberId]:
        """Bring so many members, static where an instance id is given, into a stable group; their ids, the leader first."""
        numbers = [self.join(instance_id=instance) for instance in instances or (None,)]
        self.pass_time(DELAY_MS * 2 + 1)
        members = [self.joined(number).member_id for number in numbers]
        for member in reversed(members):
            self.sync(member, {one: f"for {one}".encode() for one in members})
        assert self.state == GroupState.STABLE
        return members


def at(topic: str, partition: int, offset: int, **changes: Any) -> OffsetToCommit:
    """An offset to commit."""
    return OffsetToCommit(topic, partition, Offset(offset), **changes)
