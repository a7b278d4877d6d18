"""The handlers of a consumer for its membership: it joins, takes answers, and leaves."""

from collections.abc import Callable
from typing import TypeAlias

from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    GroupMembership,
    LosePartitions,
    MemberEffect,
    MemberGeneration,
    MembershipState,
    MemberStep,
    RevokePartitions,
)
from kspec.spec.consumer.protocol import GroupConsumer
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import CONSUMER, GroupProtocol, JoinedMember, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import NO_GENERATION, NO_MEMBER_ID, Error, Offset, RequestNumber

ASK_AGAIN = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
"""Errors of a broker that is not the coordinator."""

NOT_A_MEMBER = frozenset({Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID})
"""Errors that say that a consumer is not in the generation that it names."""

RETRIED = frozenset(
    {
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.REBALANCE_IN_PROGRESS,
        Error.MEMBER_ID_REQUIRED,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        *ASK_AGAIN,
    }
)
"""Errors after which a consumer joins again by itself."""

Assign: TypeAlias = Callable[[tuple[JoinedMember, ...]], tuple[MemberAssignment, ...]]
"""An assignor: the assignment to each member, as the leader makes it."""

ReadAssignment: TypeAlias = Callable[[bytes], frozenset[int]]
"""The partitions that an assignment has, from its bytes."""


# ---- joining


def on_poll(
    consumer: GroupConsumer, member: GroupMembership, protocols: tuple[GroupProtocol, ...], number: RequestNumber
) -> MemberStep:
    """Join if that is needed and not under way: give up what is not kept meanwhile, then ask.

    `protocols` are offered in order of preference, with what the leader is to know; `number` is the connection's.

    **Kafka:** `AbstractCoordinator.joinGroupIfNeeded`, `ConsumerCoordinator.onJoinPrepare`, `sendJoinGroupRequest`.
    """
    if not member.rejoin_needed or member.is_joining:
        return Step(member)
    prepared = Step[GroupMembership, MemberEffect](member) if member.is_prepared else _prepare(consumer, member)
    joining = prepared.state._replace(state=MembershipState.PREPARING_REBALANCE, is_prepared=True, is_joining=True)
    request = JoinGroupRequest(
        number,
        consumer.group_id,
        member.generation.member_id,
        consumer.instance_id,
        "",
        "",
        consumer.session_timeout_ms,
        consumer.rebalance_timeout_ms,
        CONSUMER,
        protocols,
        skips_assignment=True,
    )
    return Step(joining, (*prepared.effects, AskCoordinator(request)))


def _prepare(consumer: GroupConsumer, member: GroupMembership) -> MemberStep:
    """Give up what a member does not keep while it joins. **Kafka:** `ConsumerCoordinator.onJoinPrepare`."""
    if _is_out(member.generation):
        kept = consumer.protocol.keeps_when_out(member.owned)
        lost = member.owned - kept
        return Step(member._replace(owned=kept), (LosePartitions(lost),) if lost else ())
    kept = consumer.protocol.keeps_while_joining(member.owned)
    revoked = member.owned - kept
    return Step(member._replace(owned=kept), (RevokePartitions(revoked),) if revoked else ())


def _is_out(generation: MemberGeneration) -> bool:
    return generation.generation == NO_GENERATION or generation.member_id == NO_MEMBER_ID


def handle_join_group_response(
    consumer: GroupConsumer,
    member: GroupMembership,
    sent_in: MemberGeneration,
    response: JoinGroupResponse,
    assign: Assign,
    number: RequestNumber,
) -> MemberStep:
    """A generation begins: ask for the assignment, as its leader with everybody's. Or not: join again, or fail.

    `sent_in` is the generation that the request was sent in; `number` is that of the SyncGroup.

    **Kafka:** `JoinGroupResponseHandler.handle`, `onLeaderElected`, `onJoinFollower`.
    """
    error = response.error
    if error == Error.NONE:
        if member.state != MembershipState.PREPARING_REBALANCE:
            return Step(_not_joined(member))
        generation = MemberGeneration(response.generation, response.member_id, response.protocol_name)
        joined = member._replace(state=MembershipState.COMPLETING_REBALANCE, generation=generation)
        leads = response.leader == response.member_id and not response.skip_assignment
        assignments = assign(response.members) if leads else ()
        request = SyncGroupRequest(
            number,
            consumer.group_id,
            generation.generation,
            generation.member_id,
            consumer.instance_id,
            CONSUMER,
            generation.protocol_name,
            assignments,
        )
        return Step(joined, (AskCoordinator(request),))
    if error == Error.UNKNOWN_MEMBER_ID and _is_present(consumer, member, sent_in):
        return Step(_not_joined(_reset(consumer, member, error)))
    if error == Error.MEMBER_ID_REQUIRED:
        return Step(_not_joined(member._replace(generation=MemberGeneration(NO_GENERATION, response.member_id))))
    return _failed(member, error)


def handle_sync_group_response(
    consumer: GroupConsumer,
    member: GroupMembership,
    sent_in: MemberGeneration,
    response: SyncGroupResponse,
    read_assignment: ReadAssignment,
) -> MemberStep:
    """The consumer has its assignment: it gives up what that takes away, and begins to read what is new.

    What it has to give up it gives up before it joins once more, so that another member may have it then.

    **Kafka:** `SyncGroupResponseHandler.handle`, `ConsumerCoordinator.onJoinComplete`. **Leaves out:** that a heartbeat's
    answer may come between the two.
    """
    error = response.error
    if error == Error.NONE:
        if _is_out(member.generation) or member.state != MembershipState.COMPLETING_REBALANCE:
            return Step(_not_joined(member))
        return _begin(consumer, member, read_assignment(response.assignment))
    if error in NOT_A_MEMBER and error != Error.FENCED_INSTANCE_ID and _is_present(consumer, member, sent_in):
        return Step(_not_joined(_reset(consumer, member, error)))
    return _failed(member, error)


def _begin(consumer: GroupConsumer, member: GroupMembership, assigned: frozenset[int]) -> MemberStep:
    given_up = consumer.protocol.gives_up_by_assignment(member.owned, assigned)
    added = assigned - member.owned
    stable = member._replace(
        state=MembershipState.STABLE,
        owned=(member.owned - given_up) | added,
        rejoin_needed=bool(given_up),
        is_prepared=False,
        is_joining=False,
    )
    effects: tuple[MemberEffect, ...] = (RevokePartitions(given_up),) if given_up else ()
    return Step(stable, (*effects, AddPartitions(added)) if added else effects)


def on_no_answer(member: GroupMembership) -> MemberStep:
    """The connection is lost, and with it the answer to what was asked. The consumer joins again if it was joining.

    **Kafka:** `CoordinatorResponseHandler.onFailure`, `AbstractCoordinator.joinGroupIfNeeded`.
    """
    return Step(_not_joined(member) if member.is_joining else member, (ForgetCoordinator(),))


def _not_joined(member: GroupMembership) -> GroupMembership:
    return member._replace(rejoin_needed=True, is_joining=False)


def _failed(member: GroupMembership, error: Error) -> MemberStep:
    if error in ASK_AGAIN:
        return Step(_not_joined(member), (ForgetCoordinator(),))
    return Step(_not_joined(member), () if error in RETRIED else (Fail(error),))


def _is_present(consumer: GroupConsumer, member: GroupMembership, sent_in: MemberGeneration) -> bool:
    return consumer.protocol.is_answer_to_present(sent_in == member.generation)


def _reset(consumer: GroupConsumer, member: GroupMembership, error: Error) -> GroupMembership:
    """A consumer that is in no generation any more. What it owns it gives up when it next polls.

    **Kafka:** `AbstractCoordinator.resetStateOnResponseError`.
    """
    keeps_id = consumer.protocol.keeps_member_id(error == Error.ILLEGAL_GENERATION)
    member_id = member.generation.member_id if keeps_id else NO_MEMBER_ID
    return member._replace(
        state=MembershipState.UNJOINED,
        generation=MemberGeneration(NO_GENERATION, member_id),
        rejoin_needed=True,
        is_prepared=False,
    )


# ---- in a generation


def heartbeat_of(consumer: GroupConsumer, member: GroupMembership) -> HeartbeatRequest | None:
    """The heartbeat that is due, `None` for a consumer that joins or is in no generation.

    **Kafka:** `AbstractCoordinator.sendHeartbeatRequest`, `MemberState.hasNotJoinedGroup`.
    """
    if member.state not in (MembershipState.COMPLETING_REBALANCE, MembershipState.STABLE):
        return None
    generation = member.generation
    return HeartbeatRequest(consumer.group_id, generation.generation, generation.member_id, consumer.instance_id)


def handle_heartbeat_response(
    consumer: GroupConsumer, member: GroupMembership, sent_in: MemberGeneration, response: HeartbeatResponse
) -> MemberStep:
    """The group is as it was, or rebalances, or the consumer is out of it; a static one for good, if it is fenced.

    **Kafka:** `HeartbeatResponseHandler.handle`, `HeartbeatThread.failed`.
    """
    error = response.error
    if error in ASK_AGAIN:
        return Step(member, (ForgetCoordinator(),))
    if error == Error.REBALANCE_IN_PROGRESS and member.state == MembershipState.STABLE:
        return Step(member._replace(rejoin_needed=True))
    if error in NOT_A_MEMBER and _is_present(consumer, member, sent_in):
        fails = error == Error.FENCED_INSTANCE_ID
        return Step(_reset(consumer, member, error), (Fail(error),) if fails else ())
    return Step(member)


def commit_of(
    consumer: GroupConsumer, member: GroupMembership, partition: int, offset: Offset
) -> OffsetCommitRequest | None:
    """The request that commits an offset of a partition, `None` for a consumer that rebalances or is in no generation.

    **Kafka:** `ConsumerCoordinator.sendOffsetCommitRequest`, `generationIfStable`.
    """
    if member.state != MembershipState.STABLE:
        return None
    generation = member.generation
    committed = (OffsetToCommit(consumer.topic, partition, offset),)
    return OffsetCommitRequest(
        consumer.group_id,
        committed,
        generation.generation,
        generation.member_id,
        consumer.instance_id,
        reports_missing_group=True,
    )


def handle_offset_commit_response(
    consumer: GroupConsumer, member: GroupMembership, sent_in: MemberGeneration, response: OffsetCommitResponse
) -> MemberStep:
    """The offset is committed, or not; and then the consumer may have to join again.

    **Kafka:** `OffsetCommitResponseHandler.handle`.
    """
    error = next((one.error for one in response.partitions if one.error != Error.NONE), Error.NONE)
    if error in ASK_AGAIN or error == Error.REQUEST_TIMED_OUT:
        return Step(member, (ForgetCoordinator(),))
    if error == Error.REBALANCE_IN_PROGRESS:
        return Step(member._replace(rejoin_needed=True))
    if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
        joins = member.state == MembershipState.PREPARING_REBALANCE
        if _is_present(consumer, member, sent_in) or not joins:
            return Step(_reset(consumer, member, error))
    if error == Error.FENCED_INSTANCE_ID and _is_present(consumer, member, sent_in):
        return Step(member, (Fail(error),))
    return Step(member)


def on_leave(consumer: GroupConsumer, member: GroupMembership) -> MemberStep:
    """The consumer leaves its group: it stops reading, and tells the coordinator if that knows it. No answer is awaited.

    A static member says nothing: it may come back before its session ends.

    **Kafka:** `ConsumerCoordinator.onLeavePrepare`, `AbstractCoordinator.maybeLeaveGroup`.
    """
    is_known = member.state != MembershipState.UNJOINED and member.generation.member_id != NO_MEMBER_ID
    rebalances = member.state in (MembershipState.PREPARING_REBALANCE, MembershipState.COMPLETING_REBALANCE)
    gone = LosePartitions if rebalances or _is_out(member.generation) else RevokePartitions
    effects: tuple[MemberEffect, ...] = (gone(member.owned),) if member.owned else ()
    if is_known and consumer.instance_id is None:
        request = LeaveGroupRequest(consumer.group_id, (MemberIdentity(member.generation.member_id),))
        effects = (*effects, AskCoordinator(request))
    return Step(GroupMembership(), effects)
