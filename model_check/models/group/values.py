"""The values of the model's slots: a consumer, and what is under way between it and the coordinator.

The coordinator's own values are those of `spec`. Member ids and numbers of requests are made such that they say whose they
are, so symmetry can rename them.
"""

from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from kspec.model_check.core.symmetry import RENAMED, Renaming
from kspec.spec.consumer.membership import GroupMembership, MemberGeneration
from kspec.spec.consumer.modern.membership import ConsumerMembership
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.modern.records import ConsumerRecordKind, ConsumerTombstone
from kspec.spec.coordinator.records import LogEntry
from kspec.spec.coordinator.runtime import CoordinatedGroup
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kspec.spec.values import MemberId, RequestNumber

Request: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | ConsumerGroupHeartbeatRequest
)
Response: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | ConsumerGroupHeartbeatResponse
)

NO_POSITION = -1
"""The position of a consumer in a partition that it does not read, or does not know yet where to read."""


class ConsumerState(NamedTuple):
    """A consumer: its membership, and for each partition the offset of the next record that it reads."""

    membership: GroupMembership = GroupMembership()
    positions: tuple[int, ...] = ()


class HeartbeatingState(NamedTuple):
    """A consumer of a consumer group: its membership, and its positions, as those of `ConsumerState`."""

    membership: ConsumerMembership = ConsumerMembership()
    positions: tuple[int, ...] = ()


def positions_in(owned: frozenset[int], positions: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of a consumer that reads no other partitions than these."""
    return tuple(position if partition in owned else NO_POSITION for partition, position in enumerate(positions))


class Lane(IntEnum):
    """The connections of a consumer by what goes over them; in the classic protocol all goes over the first."""

    MEMBERSHIP = 0
    OFFSETS = 1


class GroupExchange(NamedTuple):
    """A request of a consumer on its connection, and its answer.

    `sent_in`: the consumer's generation when it asked. `moves`: how often the coordinator had moved when the
    connection to it was made. `is_taken`: the coordinator has it. `known`: the offsets of which some consumer knew that
    they are committed when it asked for offsets; kept only where a former coordinator may answer.
    """

    request: Request
    sent_in: MemberGeneration = MemberGeneration()
    moves: int = 0
    is_taken: bool = False
    answer: Response | None = None
    known: tuple[int, ...] = ()


class FormerCoordinator(NamedTuple):
    """A coordinator that does not know that there is another one. `moves`: how often it had moved when this one began."""

    state: CoordinatedGroup
    moves: int


class LastCommitted(NamedTuple):
    """The entries of the last committed write, and the group without them, as a load of the log before them gives it."""

    base: Group
    entries: tuple[LogEntry, ...]


class LateRequest(NamedTuple):
    """A request on a connection that its consumer has given up; it may still arrive, and its answer goes nowhere."""

    request: Request
    moves: int = 0


class Answer(NamedTuple):
    """An answer to the request on a connection."""

    connection: int
    response: Any


def member_id(consumer: int, life: int) -> MemberId:
    """The id that a consumer gets as a new member for the `life`-th time."""
    return MemberId(f"{consumer}.{life}")


def consumer_of(member: MemberId) -> int:
    """The consumer that got this id."""
    return int(member.split(".", maxsplit=1)[0])


def life_of(member: MemberId) -> int:
    """The number of the life in which a consumer got this id."""
    return int(member.rsplit(".", maxsplit=1)[1])


def connection_of(consumer: int, lane: Lane = Lane.MEMBERSHIP) -> int:
    """The number of a consumer's connection."""
    return 2 * consumer + lane


def number_of(consumer: int, lane: Lane = Lane.MEMBERSHIP, is_broken: bool = False) -> RequestNumber:
    """The number of the request on a consumer's connection, or on one that is broken."""
    return RequestNumber(2 * connection_of(consumer, lane) + is_broken)


def _rename_member(value: MemberId, renaming: Renaming) -> MemberId:
    if not value:
        return value
    consumer, life = value.split(".")
    return MemberId(f"{renaming.get(int(consumer), int(consumer))}.{life}")


def _rename_number(value: RequestNumber, renaming: Renaming) -> RequestNumber:
    consumer = value // 4
    return RequestNumber(4 * renaming.get(consumer, consumer) + value % 4)


OF_MEMBERS = (ConsumerRecordKind.CURRENT, ConsumerRecordKind.TARGET, ConsumerRecordKind.MEMBER)


def _rename_tombstone(value: ConsumerTombstone, renaming: Renaming) -> ConsumerTombstone:
    return replace(value, name=_rename_member(MemberId(value.name), renaming)) if value.kind in OF_MEMBERS else value


RENAMED[ConsumerTombstone] = _rename_tombstone
RENAMED[MemberId] = _rename_member
RENAMED[RequestNumber] = _rename_number
