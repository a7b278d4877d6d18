"""The membership of a consumer: its state, and what it wants done."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.join_group import JoinGroupRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.step import Step
from kspec.spec.values import NO_GENERATION, NO_MEMBER_ID, Error, Generation, MemberId


class MembershipState(Enum):
    """The state of a consumer in its group. Kafka: `AbstractCoordinator.MemberState`."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class MemberGeneration(NamedTuple):
    """The generation that a consumer is in, and as which member. Kafka: `AbstractCoordinator.Generation`."""

    generation: Generation = NO_GENERATION
    member_id: MemberId = NO_MEMBER_ID
    protocol_name: str | None = None


class GroupMembership(NamedTuple):
    """A consumer in its group.

    `owned` are the partitions that it reads. `rejoin_needed`: it joins (again) when it next polls. `is_prepared`: it has
    given up already what it does not keep while it joins. `is_joining`: it waits for the answer to a JoinGroup or SyncGroup.

    Kafka: the fields of `AbstractCoordinator`: `state`, `generation`, `rejoinNeeded`, `needsJoinPrepare`, `joinFuture`; and
    `SubscriptionState.assignedPartitions`.
    """

    state: MembershipState = MembershipState.UNJOINED
    generation: MemberGeneration = MemberGeneration()
    owned: frozenset[int] = frozenset()
    rejoin_needed: bool = True
    is_prepared: bool = False
    is_joining: bool = False


@dataclass(frozen=True, slots=True)
class AskCoordinator:
    """Send a request to the group's coordinator, and remember the generation that it is sent in.

    The number of a JoinGroup or SyncGroup is the connection's to give.
    """

    request: (
        JoinGroupRequest
        | SyncGroupRequest
        | HeartbeatRequest
        | LeaveGroupRequest
        | OffsetCommitRequest
        | ConsumerGroupHeartbeatRequest
    )


@dataclass(frozen=True, slots=True)
class RevokePartitions:
    """Stop reading these partitions; offsets may still be committed. Kafka: `onPartitionsRevoked`."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class LosePartitions:
    """Stop reading these partitions, which somebody else may read already. Kafka: `onPartitionsLost`."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Begin to read these partitions, at the offsets that the group has committed. Kafka: `onPartitionsAssigned`."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """The broker that was asked is not the coordinator (any more): find it anew. Kafka: `markCoordinatorUnknown`."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The consumer cannot be in the group: its user gets the error."""

    error: Error


MemberEffect: TypeAlias = AskCoordinator | RevokePartitions | LosePartitions | AddPartitions | ForgetCoordinator | Fail
MemberStep: TypeAlias = Step[GroupMembership, MemberEffect]
