"""The claims about groups, as properties of the model."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

from kspec.model_check.core.model import LivenessProperty, PropertyCase, when
from kspec.model_check.core.temporal import weak
from kspec.model_check.models.group.board import Board, offsets_of
from kspec.model_check.models.group.heartbeating import is_in_place
from kspec.model_check.models.group.values import ConsumerState, GroupExchange, HeartbeatingState, connection_of
from kspec.model_check.models.group.values import consumer_of as client_of
from kspec.spec.claims import claim
from kspec.spec.consumer.membership import MembershipState
from kspec.spec.coordinator.group import GroupState, member_of
from kspec.spec.coordinator.loading import plain_record, replay_all
from kspec.spec.coordinator.modern.state import ConsumerGroup, MemberState, consumer_of, places, target_of
from kspec.spec.coordinator.runtime import CoordinatedGroup
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.values import Error


def add_properties(board: Board) -> None:
    """Add all properties, and what shows that their premises can be met."""
    model, slots, partitions = board.model, board.slots, board.partitions
    acknowledged = tuple(slots.acknowledged.values())

    def own_nothing_in_common(one: ConsumerState | HeartbeatingState, other: ConsumerState | HeartbeatingState) -> bool:
        return not one.membership.owned & other.membership.owned

    pairs = combinations(board.consumers, 2)
    model.always(
        "ExclusiveOwnership",
        [when(own_nothing_in_common, slots.consumer[one], slots.consumer[other]) for one, other in pairs],
        claim("ExclusiveOwnership", "group"),
        "SomebodyOwns",
    )

    protocol = board.coordinator.protocol
    unheard = () if slots.is_unheard is None else (slots.is_unheard,)

    def keeps(state: CoordinatedGroup, *values: int) -> bool:
        known, waits = values[: len(partitions)], any(values[len(partitions) :]) and not protocol.reads_at_once(False, True)
        stored = offsets_of(state.latest if waits else protocol.reads(state.latest, state.committed), partitions)
        return all(offset >= wanted for offset, wanted in zip(stored, known, strict=True))

    model.always(
        "AcknowledgedCommitsKept",
        [when(keeps, slots.group, *acknowledged, *unheard)],
        claim("AcknowledgedCommitsKept", "group"),
        "CommitIsAcknowledged",
    )
    model.always(
        "OnlyMembersCommit",
        [when(lambda stray: not stray, slots.stray)],
        claim("OnlyMembersCommit", "group"),
        "CommitIsAcknowledged",
    )

    def is_log(state: CoordinatedGroup) -> bool:
        entries = (plain_record(entry) for write in state.writes for entry in write.entries)
        replayed = replay_all(state.committed, [record for record in entries if record is not None])
        return offsets_of(replayed, partitions) == offsets_of(state.latest, partitions)

    model.always("StateIsThatOfLog", [when(is_log, slots.group)], claim("StateIsThatOfLog", "group"), "CommitIsAcknowledged")

    if slots.old_read is not None:
        model.always(
            "ReadsAreOfNow",
            [when(lambda is_old: not is_old, slots.old_read)],
            claim("ReadsAreOfNow", "group"),
            "CommitIsAcknowledged",
        )
    if board.is_modern:
        _add_those_of_consumer_groups(board)
    else:
        _add_those_of_generations(board)
    model.sometimes(
        "SomebodyOwns",
        [when(lambda state: bool(state.membership.owned), slots.consumer[one]) for one in board.consumers],
        claim("SomebodyOwns", "group"),
    )
    model.sometimes(
        "CommitIsAcknowledged",
        [when(lambda offset: offset > 0, slot) for slot in acknowledged],
        claim("CommitIsAcknowledged", "group"),
    )


def _add_those_of_generations(board: Board) -> None:
    model, slots = board.model, board.slots

    def owns_assigned(state: ConsumerState, coordinated: CoordinatedGroup) -> bool:
        member, group = state.membership, coordinated.latest
        known = member_of(group, member.generation.member_id)
        in_sync = group.state == GroupState.STABLE and group.generation == member.generation.generation
        if known is None or not in_sync or member.state != MembershipState.STABLE or member.rejoin_needed:
            return True
        return member.owned == frozenset(known.assignment)

    model.always(
        "OwnsWhatIsAssigned",
        [when(owns_assigned, slots.consumer[one], slots.group) for one in board.consumers],
        claim("OwnsWhatIsAssigned", "group"),
        "SomebodyOwns",
    )

    def is_in(state: ConsumerState, coordinated: CoordinatedGroup) -> bool:
        member, group = state.membership, coordinated.latest
        is_stable = group.state == GroupState.STABLE and member.state == MembershipState.STABLE
        return is_stable and member.generation.generation == group.generation and not member.rejoin_needed

    _add_progress(
        board,
        is_in,
        ("JoinGroup", "Heartbeat", "Receive", "Assign", "Deliver"),
        ("EndSession", "EndJoining", "EndSyncing", "Commit"),
    )


def _add_progress(
    board: Board, is_in: Callable[[Any, CoordinatedGroup], bool], of_each: tuple[str, ...], of_all: tuple[str, ...]
) -> None:
    """A rebalance ends: if all go on, everybody is in the group as it is then, and nobody is to join again."""
    model, slots = board.model, board.slots
    model.fairness += [*(weak(name, of=("consumer",)) for name in of_each), *(weak(name) for name in of_all)]
    goal = tuple(when(is_in, slots.consumer[one], slots.group) for one in board.consumers)
    always = when(lambda state: True, slots.group)
    model.liveness.append(
        LivenessProperty(
            "RebalanceEnds",
            "leads-to",
            (PropertyCase("the group", ((always,),), (goal,)),),
            claim("RebalanceEnds", "group"),
        )
    )


# ---- consumer groups (KIP-848)


def _add_those_of_consumer_groups(board: Board) -> None:
    model, slots = board.model, board.slots
    model.always(
        "ExclusiveAssignment",
        [when(lambda state: has_one_owner_each(state.latest.consumer), slots.group)],
        claim("ExclusiveAssignment", "group"),
        "SomebodyOwns",
    )
    model.always(
        "EpochsInOrder",
        [when(lambda state: has_epochs_in_order(state.latest.consumer), slots.group)],
        claim("EpochsInOrder", "group"),
        "SomebodyOwns",
    )
    model.always(
        "OwnsOnlyWhatIsAssigned",
        [when(owns_only_what_is_assigned, slots.consumer[one], slots.group) for one in board.consumers],
        claim("OwnsOnlyWhatIsAssigned", "group"),
        "SomebodyOwns",
    )
    model.always(
        "OneMemberEach",
        [when(lambda state: is_one_member_each(state.latest.consumer), slots.group)],
        claim("OneMemberEach", "group"),
        "SomebodyOwns",
    )
    exchanges = [slots.exchange[connection_of(one)] for one in board.consumers]
    model.always(
        "WhoJoinsIsLetIn",
        [when(is_not_fenced_at_joining, exchange) for exchange in exchanges],
        claim("WhoJoinsIsLetIn", "group"),
        "SomebodyOwns",
    )
    _add_progress(
        board,
        has_come_to_target,
        ("Join", "Heartbeat", "Revoke", "TakeUp", "Deliver", "Receive"),
        ("EndSession", "Commit"),
    )


def has_one_owner_each(group: ConsumerGroup | None) -> bool:
    """Whether no partition is assigned to, or to be given up by, two members; and the group knows which have owners."""
    if group is None:
        return True
    has = [one.place for member in group.members for one in (*member.assigned, *member.pending)]
    return len(set(has)) == len(has) and set(has) == {one.place for one in group.owners}


def is_one_member_each(group: ConsumerGroup | None) -> bool:
    """Whether no consumer is in the group as two members."""
    clients = [] if group is None else [client_of(member.member_id) for member in group.members]
    return len(set(clients)) == len(clients)


def is_not_fenced_at_joining(found: GroupExchange | None) -> bool:
    """Whether a heartbeat that joins is not answered with `FENCED_MEMBER_EPOCH`."""
    match found:
        case GroupExchange(
            ConsumerGroupHeartbeatRequest(member_epoch=epoch), answer=ConsumerGroupHeartbeatResponse(error=error)
        ):
            return epoch != JOIN_EPOCH or error != Error.FENCED_MEMBER_EPOCH
    return True


def has_epochs_in_order(group: ConsumerGroup | None) -> bool:
    """Whether no member is ahead of the targets, which are not ahead of the group."""
    if group is None:
        return True
    return all(member.epoch <= group.assignment_epoch for member in group.members) and group.assignment_epoch <= group.epoch


def owns_only_what_is_assigned(state: HeartbeatingState, coordinated: CoordinatedGroup) -> bool:
    """Whether a consumer that is in the group, in its epoch, reads no more than what it has there."""
    member, group = state.membership, coordinated.latest.consumer
    known = None if group is None else consumer_of(group, member.member_id)
    if known is None or known.epoch != member.epoch:
        return True
    return member.owned <= {place.partition for place in places(known.assigned) | places(known.pending)}


def has_come_to_target(state: HeartbeatingState, coordinated: CoordinatedGroup) -> bool:
    """Whether a consumer reads its target of the group's epoch, and nothing has to be told on either side."""
    member, group = state.membership, coordinated.latest.consumer
    known = None if group is None else consumer_of(group, member.member_id)
    if group is None or known is None or not is_in_place(member):
        return False
    is_settled = known.state == MemberState.STABLE and member.epoch == known.epoch == group.epoch == group.assignment_epoch
    target = {place.partition for place in target_of(group, member.member_id)}
    return is_settled and member.owned == target == {place.partition for place in places(known.assigned)}
