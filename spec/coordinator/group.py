"""A group as its coordinator knows it: its members, its state, its offsets."""

from collections import Counter
from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.spec.coordinator.effects import GroupEffect
from kspec.spec.coordinator.modern.state import ConsumerGroup, is_reconciled, topics_of_group
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.coordinator.rules.hashing import in_java_order
from kspec.spec.coordinator.rules.subscription import subscribed_topics
from kspec.spec.messages.groups.join_group import CONSUMER, GroupProtocol
from kspec.spec.step import Step
from kspec.spec.values import (
    Error,
    Generation,
    GroupId,
    Instant,
    MemberId,
    MonotonicMs,
    ProducerId,
    RequestNumber,
    TimestampMs,
)


class GroupState(Enum):
    """The state of a group. A group that does not exist is `DEAD`.

    A consumer group (KIP-848) is `ASSIGNING` and `RECONCILING` in place of the two rebalances. Kafka: `ClassicGroupState`,
    `ConsumerGroup.ConsumerGroupState`.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_REBALANCE = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})
"""The states from which a rebalance can start. Kafka: `ClassicGroup.canRebalance`."""


class Member(NamedTuple):
    """A member of a group; time-outs and deadlines are in milliseconds.

    `instance_id` is that of a static member (`group.instance.id`). `protocols` are in the member's order of preference.
    `join_request` and `sync_request` are the numbers of the requests that it waits to be answered. A member that is new has
    not been in a generation. `session_deadline_ms`: when it counts as gone, `None` after that has been looked at in vain.
    Kafka: `ClassicGroupMember`, and the timer of `classicGroupHeartbeatKey`.
    """

    member_id: MemberId
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    assignment: bytes = b""
    join_request: RequestNumber | None = None
    sync_request: RequestNumber | None = None
    is_new: bool = False
    session_deadline_ms: MonotonicMs | None = None


class PendingMember(NamedTuple):
    """A member that has been told its id and has yet to join with it. Kafka: `ClassicGroup.pendingJoinMembers`."""

    member_id: MemberId
    session_deadline_ms: MonotonicMs


class PendingOffset(NamedTuple):
    """An offset that is committed once its transaction is. Kafka: `OffsetMetadataManager.pendingTransactionalOffsets`.

    `is_overtaken`: another offset of the same partition has been committed since, and stays when the transaction ends.
    """

    producer_id: ProducerId
    commit: OffsetCommitRecord
    is_overtaken: bool = False


class InitialDelay(NamedTuple):
    """The wait of an empty group for further members: the delay under way, and what may be added, in milliseconds."""

    delay_ms: int
    remaining_ms: int


class Group(NamedTuple):
    """A group of consumers and its offsets. Kafka: `ClassicGroup`, and its part of `OffsetMetadataManager`.

    `previous` is the state before this one. `members` are in the order in which they joined. `pending_sync` are those who
    have not asked for their assignment. `subscribed`: the topics of all members, `None` if unknown.
    `join_deadline_ms` and `sync_deadline_ms`: when the present step of a rebalance ends (milliseconds). `offsets` are in
    order of topic and partition, `pending_offsets` in that of the log. `consumer`: what the group is if it is a consumer
    group (KIP-848), with no `members` of the classic protocol then. **Leaves out:** share and streams groups.
    """

    group_id: GroupId
    state: GroupState
    previous: GroupState = GroupState.DEAD
    state_since_ms: TimestampMs | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    generation: Generation = Generation(0)
    leader: MemberId | None = None
    members: tuple[Member, ...] = ()
    pending: tuple[PendingMember, ...] = ()
    pending_sync: frozenset[MemberId] = frozenset()
    subscribed: frozenset[str] | None = None
    new_member_added: bool = False
    initial_delay: InitialDelay | None = None
    join_deadline_ms: MonotonicMs | None = None
    sync_deadline_ms: MonotonicMs | None = None
    offsets: tuple[OffsetCommitRecord, ...] = ()
    pending_offsets: tuple[PendingOffset, ...] = ()
    consumer: ConsumerGroup | None = None


GroupStep: TypeAlias = Step[Group, GroupEffect]


def absent(group_id: GroupId) -> Group:
    """The group of an id that no group has."""
    return Group(group_id, GroupState.DEAD)


def exists(group: Group) -> bool:
    """Whether there is such a group. **Kafka:** `GroupMetadataManager.group`, which throws `GroupIdNotFoundException`."""
    return group.state != GroupState.DEAD


def new_group(group_id: GroupId, now: TimestampMs) -> Group:
    """A group that has just been created. **Kafka:** `GroupMetadataManager.getOrMaybeCreateClassicGroup`."""
    return Group(group_id, GroupState.EMPTY, state_since_ms=now)


def created(group: Group, now: TimestampMs) -> Group:
    """The group of an id that no group has had until now. Offsets that were left for it are its own.

    **Kafka:** `GroupMetadataManager.getOrMaybeCreateClassicGroup`, beside the offsets of `OffsetMetadataManager`.
    """
    return new_group(group.group_id, now)._replace(offsets=group.offsets, pending_offsets=group.pending_offsets)


def transition(group: Group, state: GroupState, now: Instant) -> Group:
    """The group in another state from now on. **Kafka:** `ClassicGroup.transitionTo`."""
    return group._replace(state=state, previous=group.state, state_since_ms=now.timestamp)


# ---- members


def member_of(group: Group, member_id: MemberId) -> Member | None:
    """The member with this id. **Kafka:** `ClassicGroup.member`."""
    return next((member for member in group.members if member.member_id == member_id), None)


def static_member(group: Group, instance_id: str | None) -> Member | None:
    """The static member with this instance id. **Kafka:** `ClassicGroup.staticMemberId`."""
    return next((member for member in group.members if instance_id is not None and member.instance_id == instance_id), None)


def is_pending(group: Group, member_id: MemberId) -> bool:
    """Whether the id has been given to a member that has yet to join. **Kafka:** `ClassicGroup.isPendingMember`."""
    return any(pending.member_id == member_id for pending in group.pending)


def check_member(group: Group, member_id: MemberId, instance_id: str | None) -> Error:
    """Whether a request comes from a member; a static member is fenced by a later one with its instance id.

    Errors: `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`.

    **Kafka:** `ClassicGroup.validateMember`.
    """
    if instance_id is not None:
        current = static_member(group, instance_id)
        if current is None:
            return Error.UNKNOWN_MEMBER_ID
        if current.member_id != member_id:
            return Error.FENCED_INSTANCE_ID
    return Error.UNKNOWN_MEMBER_ID if member_of(group, member_id) is None else Error.NONE


def with_member(group: Group, changed: Member) -> Group:
    """The group with this member in place of the one with its id."""
    replaced = (changed if member.member_id == changed.member_id else member for member in group.members)
    return group._replace(members=tuple(replaced))


def touched(group: Group, member_id: MemberId, now: Instant) -> Group:
    """The group after a sign of life of a member. **Kafka:** `rescheduleClassicGroupMemberHeartbeat`."""
    members = (
        member._replace(session_deadline_ms=now.after(member.session_timeout_ms))
        if member.member_id == member_id
        else member
        for member in group.members
    )
    return group._replace(members=tuple(members))


def without(group: Group, gone: frozenset[MemberId]) -> Group:
    """The group without these members, pending ones included; if the leader is gone, the first that is left leads.

    **Kafka:** `ClassicGroup.remove`. **Leaves out:** which one that is; Kafka takes the first in the order of a hash table.
    """
    members = tuple(member for member in group.members if member.member_id not in gone)
    first = members[0].member_id if members else None
    return group._replace(
        members=members,
        leader=first if group.leader in gone else group.leader,
        pending=tuple(pending for pending in group.pending if pending.member_id not in gone),
        pending_sync=group.pending_sync - gone,
    )


def all_joined(group: Group) -> bool:
    """Whether every member waits for the next generation, and nobody is expected. **Kafka:** `hasAllMembersJoined`."""
    return not group.pending and all(member.join_request is not None for member in group.members)


def rebalance_timeout_ms(group: Group) -> int:
    """The longest of the members' time-outs (milliseconds). **Kafka:** `ClassicGroup.rebalanceTimeoutMs`."""
    return max((member.rebalance_timeout_ms for member in group.members), default=0)


# ---- protocols


def metadata_for(member: Member, protocol_name: str | None) -> bytes:
    """The metadata of a member under a protocol that it supports. **Kafka:** `ClassicGroupMember.metadata`."""
    return next((offered.metadata for offered in member.protocols if offered.name == protocol_name), b"")


def supports(group: Group, protocol_type: str, protocols: tuple[GroupProtocol, ...]) -> bool:
    """Whether a member with these protocols can be in the group: one of them is every member's.

    A group whose members have all left while they joined keeps its type until the joining ends.

    **Kafka:** `ClassicGroup.supportsProtocols`.
    """
    if group.state == GroupState.EMPTY:
        return protocol_type != "" and len(protocols) > 0
    common = _common_protocols(group)
    legal = any(not group.members or offered.name in common for offered in protocols)
    return group.protocol_type == protocol_type and legal


def select_protocol(group: Group) -> str | None:
    """The protocol with the most votes: each member votes for the first that it prefers among those of all.

    Of several with as many votes, the first in the order of Java's hash table is taken.

    **Kafka:** `ClassicGroup.selectProtocol`, `ClassicGroupMember.vote`.
    """
    common = _common_protocols(group)
    votes = Counter(
        next(offered.name for offered in member.protocols if offered.name in common) for member in group.members if common
    )
    return max(in_java_order(tuple(votes)), key=lambda name: votes[name], default=None)


def _common_protocols(group: Group) -> frozenset[str]:
    """The protocols of all members. One that a member names twice does not count, unless there is no other.

    **Kafka:** `ClassicGroup.candidateProtocols`. **Leaves out:** that a group without any other is stuck there.
    """
    mentions = Counter(offered.name for member in group.members for offered in member.protocols)
    members = Counter(name for member in group.members for name in {offered.name for offered in member.protocols})
    of_all = frozenset(name for name, count in members.items() if count == len(group.members))
    return frozenset(name for name in of_all if mentions[name] == len(group.members)) or of_all


def topics_of_members(group: Group) -> frozenset[str] | None:
    """The topics that any member subscribes to; `None` for other than consumers, or if a subscription cannot be read.

    **Kafka:** `ClassicGroup.computeSubscribedTopics`.
    """
    if group.protocol_type != CONSUMER:
        return None
    if not group.members:
        return frozenset()
    topics: frozenset[str] = frozenset()
    for member in group.members:
        subscribed = subscribed_topics(metadata_for(member, group.protocol_name))
        if subscribed is None:
            return None
        topics |= subscribed
    return topics


def is_subscribed(group: Group, topic: str) -> bool:
    """Whether a topic is in use by the group; consumers whose topics are unknown may use any.

    **Kafka:** `ClassicGroup.isSubscribedToTopic`.
    """
    return group.protocol_type == CONSUMER if group.subscribed is None else topic in group.subscribed


# ---- consumer groups


def state_of_consumers(consumer: ConsumerGroup) -> GroupState:
    """The state of a consumer group. **Kafka:** `ConsumerGroup.maybeUpdateGroupState`."""
    if not consumer.members:
        return GroupState.EMPTY
    if consumer.epoch > consumer.assignment_epoch:
        return GroupState.ASSIGNING
    done = all(is_reconciled(consumer, member) for member in consumer.members)
    return GroupState.STABLE if done else GroupState.RECONCILING


def as_consumer_group(group: Group, consumer: ConsumerGroup | None) -> Group:
    """The group as this consumer group, `None` for none; its offsets stay. **Kafka:** `GroupMetadataManager.groups`."""
    gone = absent(group.group_id)._replace(offsets=group.offsets, pending_offsets=group.pending_offsets)
    if consumer is None:
        return gone
    return gone._replace(
        state=state_of_consumers(consumer),
        protocol_type=CONSUMER,
        subscribed=topics_of_group(consumer),
        consumer=consumer,
    )
