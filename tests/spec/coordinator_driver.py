"""A coordinator of one group for tests: it keeps the log, the time and the answers, and carries out effects in order."""

from collections.abc import Iterable
from typing import Any

from kspec.spec.coordinator.effects import AnswerMember, AnswerRequest, PersistRecords, PersistTransactionalOffsets
from kspec.spec.coordinator.group import Group, GroupState, Member, member_of
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorSettings
from kspec.spec.coordinator.records import EndOfTransaction
from kspec.spec.coordinator.runtime import (
    LogPosition,
    RuntimeStep,
    end_transaction,
    handle_group_request,
    next_due,
    on_append_refused,
    on_committed,
    on_due,
    on_event_refused,
    unknown_group,
)
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kspec.spec.messages.groups.list_groups import ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.releases.names import NEWEST_RELEASE, coordinator_of
from kspec.spec.step import Reply, Step
from kspec.spec.values import (
    NO_GENERATION,
    NO_MEMBER_ID,
    Error,
    Generation,
    GroupId,
    MemberId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestNumber,
    TransactionalId,
)
from tests.limits.turns import Turns
from tests.times import at_ms

GROUP = GroupId("group")
SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 30_000, 3_000


def subscription(*topics: str) -> bytes:
    """The subscription of a consumer of these topics, as Kafka's clients write it."""
    encoded = [topic.encode() for topic in topics]
    names = b"".join(len(topic).to_bytes(2, "big") + topic for topic in encoded)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def offers(*names: str, topic: str = "topic") -> tuple[GroupProtocol, ...]:
    """Protocols of these names, for one topic."""
    return tuple(GroupProtocol(name, subscription(topic)) for name in names)


RANGE = offers("range")


class CoordinatorDriver:
    """Sends requests, moves the time, and remembers what was answered and stored."""

    def __init__(self, release: str = NEWEST_RELEASE, **settings: Any) -> None:
        self.coordinator = Coordinator(coordinator_of(release), CoordinatorSettings(**settings))
        self.state_of_group = unknown_group(GROUP)
        self.now = 0
        self.log: list[Any] = []
        self.ends: list[int] = [0]
        """The end of each batch of the log."""
        self.answers: dict[int, JoinGroupResponse | SyncGroupResponse] = {}
        self.replies: dict[int, Any] = {}
        self.committed = 0
        self.commits_at_once = True
        """Whether the followers have each record as soon as it is in the log."""
        self.refuses = Error.NONE
        """The error with which the log refuses what is to be appended next."""
        self.requests = 0
        self.ids = 0

    @property
    def group(self) -> Group:
        """The group, with all that is in the log."""
        return self.state_of_group.latest

    @group.setter
    def group(self, group: Group) -> None:
        self.state_of_group = self.state_of_group._replace(latest=group, committed=group)

    @property
    def position(self) -> LogPosition:
        """The log's end, and its committed end."""
        return LogPosition(Offset(len(self.log)), Offset(self.committed))

    def carry_out(self, step: Step[Any, Any]) -> Any:
        """Take the step: store, answer; the reply, if there is one."""
        if isinstance(step.state, Group):
            self.state_of_group = self.state_of_group._replace(latest=step.state)
        else:
            self.state_of_group = step.state
        reply = None
        for effect in step.effects:
            match effect:
                case PersistRecords(records) | PersistTransactionalOffsets(commits=records):
                    assert effect is step.effects[0]
                    self.log += records
                    self.ends.append(len(self.log))
                case AnswerMember(request, response):
                    assert request not in self.answers, "answered twice"
                    self.answers[request] = response
                case AnswerRequest(request, response):
                    assert request not in self.replies, "answered twice"
                    self.replies[request] = reply = response
                case Reply(message):
                    reply = message
        return reply

    def send(self, request: Any) -> Any:
        """Hand a request to the group; the answer, if it comes as soon as the records of the step are committed."""
        number = request.request if isinstance(request, (JoinGroupRequest, SyncGroupRequest)) else self.new_number()
        self.hand_in(number, request)
        self.commit_if_at_once()
        return self.replies.get(number)

    def hand_in(self, number: int, request: Any) -> None:
        """Hand a request to the group under a number; the log may refuse what it asks for."""
        before, now = self.state_of_group, at_ms(self.now)
        step = handle_group_request(self.coordinator, before, RequestNumber(number), request, self.position, now)
        if self.refuses != Error.NONE and _stores(step):
            step = on_append_refused(self.coordinator, before, RequestNumber(number), request, self.refuses, now)
            self.refuses = Error.NONE
        self.carry_out(step)

    def happen(self, step: RuntimeStep) -> None:
        """Take the step of an event; the log may refuse what it asks for."""
        if self.refuses != Error.NONE and _stores(step):
            others = tuple(effect for effect in step.effects if not isinstance(effect, PersistRecords))
            step = Step(on_event_refused(self.coordinator, self.state_of_group, step.state, at_ms(self.now)), others)
            self.refuses = Error.NONE
        self.carry_out(step)
        self.commit_if_at_once()

    def new_number(self) -> int:
        """The number of the next request."""
        self.requests += 1
        return self.requests

    def commit_if_at_once(self) -> None:
        """The followers have what is in the log."""
        if self.commits_at_once:
            self.commit_up_to(len(self.log))

    def commit_up_to(self, offset: int) -> None:
        """The followers have what is in the log before an offset."""
        self.committed = offset
        self.carry_out(on_committed(self.coordinator, self.state_of_group, Offset(offset), at_ms(self.now)))

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
            request=RequestNumber(self.requests),
            member_id=MemberId(member_id),
            instance_id=instance_id,
            **{**given, **changes},
        )
        self.send(request)
        return self.requests

    def sync(self, member_id: str, assignments: dict[str, bytes] | None = None, **changes: Any) -> int:
        """Send a SyncGroup; its number."""
        self.requests += 1
        given: dict[str, Any] = {"generation": self.group.generation, "group_id": GROUP}
        request = SyncGroupRequest(
            request=RequestNumber(self.requests),
            member_id=MemberId(member_id),
            assignments=tuple(MemberAssignment(MemberId(one), data) for one, data in (assignments or {}).items()),
            **{**given, **changes},
        )
        self.send(request)
        return self.requests

    def heartbeat(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> Error:
        """Send a Heartbeat; its error."""
        at = self.group.generation if generation is None else Generation(generation)
        request = HeartbeatRequest(GROUP, at, MemberId(member_id), instance_id)
        error = self.send(request).error
        assert isinstance(error, Error)
        return error

    def leave(self, *members: str | MemberIdentity) -> LeaveGroupResponse:
        """Send a LeaveGroup; its answer."""
        identities = tuple(one if isinstance(one, MemberIdentity) else MemberIdentity(MemberId(one)) for one in members)
        request = LeaveGroupRequest(GROUP, identities)
        response = self.send(request)
        assert isinstance(response, LeaveGroupResponse)
        return response

    def commit(self, *offsets: OffsetToCommit, member_id: str = NO_MEMBER_ID, **changes: Any) -> list[Error]:
        """Send an OffsetCommit; the errors of its partitions."""
        given: dict[str, Any] = {"generation": NO_GENERATION, **changes}
        request = OffsetCommitRequest(GROUP, offsets or (at("topic", 0, 5),), member_id=MemberId(member_id), **given)
        response = self.send(request)
        return [partition.error for partition in response.partitions]

    def commit_in_transaction(self, producer: int, *offsets: OffsetToCommit, **changes: Any) -> list[Error]:
        """Send a TxnOffsetCommit that is verified; the errors of its partitions."""
        named = (TransactionalId("id"), GROUP, ProducerId(producer), ProducerEpoch(0))
        response = self.send(TxnOffsetCommitRequest(*named, offsets or (at("topic", 0, 5),), **changes))
        return [partition.error for partition in response.partitions]

    def end_transaction(self, producer: int, committed: bool) -> None:
        """Append the marker of a producer, and tell the group of it."""
        ended = EndOfTransaction(ProducerId(producer), committed)
        self.log.append(ended)
        self.ends.append(len(self.log))
        self.happen(end_transaction(self.coordinator, self.state_of_group, ended, self.position, at_ms(self.now)))

    def fetch(self, *partitions: OffsetFetchPartition, require_stable: bool = False) -> Any:
        """Send an OffsetFetch, of all partitions if none is named; its answer."""
        request = OffsetFetchRequest(GROUP, partitions or None, require_stable)
        return self.send(request)

    def delete_offsets(self, *partitions: OffsetFetchPartition, group_id: str = GROUP) -> Any:
        """Send an OffsetDelete; its answer."""
        request = OffsetDeleteRequest(GroupId(group_id), partitions)
        return self.send(request)

    def describe(self, reports_missing_group: bool = False) -> Any:
        """Send a DescribeGroups; its answer."""
        request = DescribeGroupsRequest(GROUP, reports_missing_group)
        return self.send(request)

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Any:
        """Send a ListGroups; the groups."""
        request = ListGroupsRequest(tuple(states), tuple(types))
        return self.send(request).groups

    def delete(self) -> Error:
        """Send a DeleteGroups; its error."""
        error = self.send(DeleteGroupsRequest(GROUP)).error
        assert isinstance(error, Error)
        return error

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass; everything that is due happens when it is due."""
        end = self.now + milliseconds
        due = next_due(self.state_of_group)
        turns = Turns(10_000)
        while due is not None and due <= end:
            turns.go()
            self.now = max(due, self.now)
            self.happen(on_due(self.coordinator, self.state_of_group, self.position, at_ms(self.now)))
            due = next_due(self.state_of_group)
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


def _stores(step: RuntimeStep) -> bool:
    return any(isinstance(effect, (PersistRecords, PersistTransactionalOffsets)) for effect in step.effects)


def at(topic: str, partition: int, offset: int, **changes: Any) -> OffsetToCommit:
    """An offset to commit."""
    return OffsetToCommit(topic, partition, Offset(offset), **changes)
