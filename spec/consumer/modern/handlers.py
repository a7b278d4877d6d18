"""The handlers of a consumer for its membership in a consumer group: it joins, heartbeats, reconciles and leaves."""

from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    LosePartitions,
    RevokePartitions,
)
from kspec.spec.consumer.modern.membership import ConsumerEffect, ConsumerMembership, ConsumerMemberState, ConsumerStep
from kspec.spec.consumer.modern.protocol import HeartbeatingConsumer
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED_MS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.step import Step
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, Offset

NOT_IN_GROUP = frozenset({ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.FATAL})
"""States in which no heartbeat is sent."""

ASK_ANOTHER = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
"""Errors of a broker that is not the coordinator."""

FENCED = frozenset({Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID})
"""Errors after which a consumer gives up what it owns, and joins again."""


def on_subscribe(member: ConsumerMembership) -> ConsumerStep:
    """The consumer is to be in the group, if it is not. **Kafka:** `AbstractMembershipManager.onConsumerPoll`."""
    return Step(_joining(member) if member.state == ConsumerMemberState.UNSUBSCRIBED else member)


def _joining(member: ConsumerMembership) -> ConsumerMembership:
    """**Kafka:** `AbstractMembershipManager.transitionToJoining`, `clearAssignment`."""
    return ConsumerMembership(ConsumerMemberState.JOINING, member.member_id, owned=member.owned)


def on_heartbeat_due(consumer: HeartbeatingConsumer, member: ConsumerMembership) -> ConsumerStep:
    """Send a heartbeat: all that there is to tell if the consumer joins or an answer is missing, else what is new.

    **Kafka:** `ConsumerHeartbeatRequestManager.HeartbeatState.buildRequestData`, `onHeartbeatRequestGenerated`.
    """
    if member.state in NOT_IN_GROUP:
        return Step(member)
    tells_all = member.state == ConsumerMemberState.JOINING or not member.is_told
    nothing: frozenset[int] = frozenset()
    to_come = (member.assigned or nothing) | (member.in_progress or nothing)
    owned = consumer.protocol.says_it_owns(member.reconciled or nothing, to_come)
    request = ConsumerGroupHeartbeatRequest(
        consumer.group_id,
        member.member_id,
        member.epoch,
        consumer.instance_id,
        rebalance_timeout_ms=consumer.rebalance_timeout_ms if tells_all else UNCHANGED_MS,
        topics=frozenset({consumer.topic}) if tells_all else None,
        owned=places_of(consumer, owned) if tells_all or not member.is_acknowledged else None,
        requires_member_id=member.member_id != NO_MEMBER_ID,
    )
    state = member.state
    if state == ConsumerMemberState.ACKNOWLEDGING:
        state = ConsumerMemberState.STABLE if is_reconciled(member) else ConsumerMemberState.RECONCILING
    return Step(member._replace(state=state, is_told=True, is_acknowledged=True), (AskCoordinator(request),))


def places_of(consumer: HeartbeatingConsumer, partitions: frozenset[int]) -> frozenset[TopicIdPartition]:
    """Partitions of the consumer's topic by the topic's id."""
    return frozenset(TopicIdPartition(consumer.topic_id, partition) for partition in partitions)


def is_reconciled(member: ConsumerMembership) -> bool:
    """Whether the newest assignment is the one that the consumer has come to, and nothing is in progress.

    **Kafka:** `AbstractMembershipManager.targetAssignmentReconciled`. **Leaves out:** that Kafka numbers assignments, and
    comes to one anew that has changed and changed back meanwhile.
    """
    return member.in_progress is None and member.assigned == member.reconciled


def handle_consumer_heartbeat_response(
    consumer: HeartbeatingConsumer, member: ConsumerMembership, response: ConsumerGroupHeartbeatResponse
) -> ConsumerStep:
    """The consumer takes over its epoch and its assignment; or it is fenced, and joins again; or it has to ask once more.

    **Kafka:** `ConsumerMembershipManager.onHeartbeatSuccess`, `AbstractHeartbeatRequestManager.onErrorResponse`.
    """
    if member.state in NOT_IN_GROUP:
        return Step(member)
    error = response.error
    if error == Error.NONE:
        member_id = member.member_id or response.member_id
        return Step(_assigned(member._replace(epoch=response.member_epoch, member_id=member_id), response))
    told = _untold(consumer, member, is_refused=True)
    if error in FENCED:
        kept = consumer.protocol.keeps_when_fenced(member.owned)
        lost = member.owned - kept
        return Step(_joining(member._replace(owned=kept)), (LosePartitions(lost),) if lost else ())
    if error in ASK_ANOTHER:
        return Step(told, (ForgetCoordinator(),))
    if error == Error.COORDINATOR_LOAD_IN_PROGRESS:
        return Step(told)
    lost = member.owned
    effects: tuple[ConsumerEffect, ...] = (LosePartitions(lost),) if lost else ()
    return Step(ConsumerMembership(ConsumerMemberState.FATAL, member.member_id), (*effects, Fail(error)))


def _assigned(member: ConsumerMembership, response: ConsumerGroupHeartbeatResponse) -> ConsumerMembership:
    """**Kafka:** `AbstractMembershipManager.processAssignmentReceived`."""
    if response.assignment is None:
        return member
    taken = member._replace(assigned=frozenset(place.partition for place in response.assignment))
    if not is_reconciled(taken):
        return taken._replace(state=ConsumerMemberState.RECONCILING)
    settles = member.state in (ConsumerMemberState.RECONCILING, ConsumerMemberState.JOINING)
    return taken._replace(state=ConsumerMemberState.STABLE) if settles else taken


def _untold(consumer: HeartbeatingConsumer, member: ConsumerMembership, is_refused: bool) -> ConsumerMembership:
    again = consumer.protocol.tells_all_again(is_refused)
    return member._replace(is_told=False, is_acknowledged=False) if again else member


def on_no_heartbeat_answer(consumer: HeartbeatingConsumer, member: ConsumerMembership) -> ConsumerStep:
    """The connection is lost, and with it the answer to a heartbeat: the next one tells all.

    **Kafka:** `AbstractHeartbeatRequestManager.onFailure`.
    """
    return Step(_untold(consumer, member, is_refused=False), (ForgetCoordinator(),))


# ---- reconciling


def on_reconciliation(member: ConsumerMembership) -> ConsumerStep:
    """Begin to come to the newest assignment: stop reading what it does not have.

    **Kafka:** `AbstractMembershipManager.maybeReconcile`, `revokePartitions`. **Leaves out:** the commit before, which any
    consumer may make until then.
    """
    assigned = member.assigned
    if member.state != ConsumerMemberState.RECONCILING or member.in_progress is not None or assigned is None:
        return Step(member)
    if is_reconciled(member):
        return Step(member)
    revoked = member.owned - assigned
    begun = member._replace(owned=member.owned & assigned, in_progress=assigned)
    return Step(begun, (RevokePartitions(revoked),) if revoked else ())


def on_revoked(member: ConsumerMembership) -> ConsumerStep:
    """All that is to be given up is given up: begin to read what is new, and tell the coordinator.

    **Kafka:** `AbstractMembershipManager.revokeAndAssign`, `assignPartitions`.
    """
    if member.in_progress is None:
        return Step(member)
    added = member.in_progress - member.owned
    done = member._replace(
        state=ConsumerMemberState.ACKNOWLEDGING,
        owned=member.in_progress,
        reconciled=member.in_progress,
        in_progress=None,
        is_acknowledged=False,
    )
    return Step(done, (AddPartitions(added),) if added else ())


# ---- leaving, and offsets


def on_leave_of_consumer(consumer: HeartbeatingConsumer, member: ConsumerMembership) -> ConsumerStep:
    """The consumer leaves: it stops reading, and says so, a static one that it may come back. No answer is awaited.

    Its id is its own, and so the same when it comes back (KIP-1082).

    **Kafka:** `AbstractMembershipManager.leaveGroup`, `ConsumerMembershipManager.leaveGroupEpoch`.
    """
    if member.state in NOT_IN_GROUP:
        return Step(member)
    epoch = LEAVE_EPOCH if consumer.instance_id is None else STATIC_LEAVE_EPOCH
    request = ConsumerGroupHeartbeatRequest(
        consumer.group_id, member.member_id, epoch, consumer.instance_id, requires_member_id=True
    )
    effects: tuple[ConsumerEffect, ...] = (RevokePartitions(member.owned),) if member.owned else ()
    return Step(ConsumerMembership(member_id=member.member_id), (*effects, AskCoordinator(request)))


def commit_in_epoch(
    consumer: HeartbeatingConsumer, member: ConsumerMembership, partition: int, offset: Offset
) -> OffsetCommitRequest | None:
    """The request that commits an offset of a partition in the consumer's epoch, `None` if it is in none.

    **Kafka:** `CommitRequestManager.OffsetCommitRequestState.toUnsentRequest`.
    """
    if member.state in NOT_IN_GROUP or member.epoch == JOIN_EPOCH:
        return None
    committed = (OffsetToCommit(consumer.topic, partition, offset),)
    generation = Generation(member.epoch)
    return OffsetCommitRequest(consumer.group_id, committed, generation, member.member_id, reports_missing_group=True)


def fetch_in_epoch(
    consumer: HeartbeatingConsumer, member: ConsumerMembership, partitions: tuple[int, ...], require_stable: bool
) -> OffsetFetchRequest | None:
    """The request for the committed offsets of these partitions, `None` for a consumer that is in no epoch.

    **Kafka:** `CommitRequestManager.OffsetFetchRequestState.toUnsentRequest`.
    """
    if member.state in NOT_IN_GROUP or member.epoch == JOIN_EPOCH:
        return None
    wanted = tuple(OffsetFetchPartition(consumer.topic, partition) for partition in partitions)
    return OffsetFetchRequest(consumer.group_id, wanted, require_stable, member.member_id, member.epoch)
