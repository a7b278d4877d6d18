"""Actions of consumers of a consumer group (KIP-848): heartbeats, reconciling, offsets.

Heartbeats and offsets go over two connections, so neither waits for the other: what one connection would order is a run as
well in which they overtake each other.
"""

from typing import Any

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Note, then, when
from kspec.model_check.models.group.board import Board
from kspec.model_check.models.group.connections import (
    acknowledging,
    add_delay,
    add_disconnect,
    add_request,
    noticing_old_reads,
)
from kspec.model_check.models.group.values import (
    NO_POSITION,
    GroupExchange,
    HeartbeatingState,
    Lane,
    connection_of,
    life_of,
    member_id,
    positions_in,
)
from kspec.spec.consumer.membership import AskCoordinator
from kspec.spec.consumer.modern.handlers import (
    commit_in_epoch,
    fetch_in_epoch,
    handle_consumer_heartbeat_response,
    on_heartbeat_due,
    on_leave_of_consumer,
    on_no_heartbeat_answer,
    on_reconciliation,
    on_revoked,
    on_subscribe,
)
from kspec.spec.consumer.modern.membership import ConsumerMembership, ConsumerMemberState, ConsumerStep
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.offset_fetch import OffsetFetchResponse
from kspec.spec.values import Error, Offset


def add_heartbeating_consumers(board: Board) -> None:
    """Add all that consumers of a consumer group do."""
    for consumer in board.consumers:
        _add_heartbeats(board, consumer)
        _add_reconciliation(board, consumer)
        _add_offset_fetch(board, consumer)
        for partition in board.partitions:
            _add_commit(board, consumer, partition)
        _add_receipts(board, consumer)

        def lost(state: HeartbeatingState) -> HeartbeatingState:
            return _after(state, on_no_heartbeat_answer(board.heartbeating, state.membership))

        if board.parameters["disconnects"]:
            add_disconnect(board, consumer, Lane.MEMBERSHIP, lost)
            add_disconnect(board, consumer, Lane.OFFSETS, lambda state: state)
        if board.parameters["late_requests"]:
            add_delay(board, consumer, Lane.MEMBERSHIP, lost)
            add_delay(board, consumer, Lane.OFFSETS, lambda state: state)


def _after(state: HeartbeatingState, step: ConsumerStep) -> HeartbeatingState:
    """The consumer after a step: it has no position in what it does not own."""
    return HeartbeatingState(step.state, positions_in(step.state.owned, state.positions))


def _asked(state: HeartbeatingState, step: ConsumerStep) -> tuple[HeartbeatingState, GroupExchange | None] | None:
    for effect in step.effects:
        match effect:
            case AskCoordinator(ConsumerGroupHeartbeatRequest() as request):
                return _after(state, step), GroupExchange(request)
    return None


# ---- heartbeats


def _add_heartbeats(board: Board, consumer: int) -> None:
    member = board.heartbeating_as(consumer)

    def join(state: HeartbeatingState) -> tuple[HeartbeatingState, GroupExchange | None] | None:
        if state.membership.state != ConsumerMemberState.UNSUBSCRIBED:
            return None
        return _asked(state, on_heartbeat_due(member, on_subscribe(state.membership).state))

    def live(state: HeartbeatingState) -> tuple[HeartbeatingState, GroupExchange | None] | None:
        return _asked(state, on_heartbeat_due(member, state.membership))

    def leave(state: HeartbeatingState) -> tuple[HeartbeatingState, GroupExchange | None] | None:
        found = _asked(state, on_leave_of_consumer(member, state.membership))
        if found is None or not board.is_static:
            return found
        after, request = found
        again = member_id(consumer, life_of(after.membership.member_id) + 1)
        return after._replace(membership=after.membership._replace(member_id=again)), request

    add_request(board, consumer, Lane.MEMBERSHIP, "Join", {}, "ConsumerGroupHeartbeat, joining", join)
    add_request(board, consumer, Lane.MEMBERSHIP, "Heartbeat", {}, "ConsumerGroupHeartbeat", live)
    if board.parameters["leaves"]:
        left = board.slots.left["leaves"]
        add_request(board, consumer, Lane.MEMBERSHIP, "Leave", {}, "ConsumerGroupHeartbeat, leaving", leave, left)


def _add_reconciliation(board: Board, consumer: int) -> None:
    own = board.slots.consumer[consumer]
    steps = (
        ("Revoke", on_reconciliation, "gives up what its assignment does not have"),
        ("TakeUp", on_revoked, "begins to read what its assignment has"),
    )
    for name, rule, what in steps:

        def effect(state: HeartbeatingState, rule: Any = rule) -> object:
            after = _after(state, rule(state.membership))
            return REFUSED if after == state else after

        board.model.action(name, {"consumer": consumer}, [], [then(own, effect, own)], events=[Note(consumer, what)])


# ---- offsets


def _add_offset_fetch(board: Board, consumer: int) -> None:
    def ask(state: HeartbeatingState) -> tuple[HeartbeatingState, GroupExchange | None] | None:
        unknown = tuple(one for one in sorted(state.membership.owned) if state.positions[one] == NO_POSITION)
        stable = not board.parameters["unstable_reads"]
        request = fetch_in_epoch(board.heartbeating, state.membership, unknown, stable) if unknown else None
        return None if request is None else (state, GroupExchange(request))

    add_request(board, consumer, Lane.OFFSETS, "OffsetFetch", {}, "OffsetFetch", ask)


def _add_commit(board: Board, consumer: int, partition: int) -> None:
    def ask(state: HeartbeatingState) -> tuple[HeartbeatingState, GroupExchange | None] | None:
        position = state.positions[partition]
        if not NO_POSITION < position < board.parameters["records"]:
            return None
        request = commit_in_epoch(board.heartbeating, state.membership, partition, Offset(position + 1))
        positions = (*state.positions[:partition], position + 1, *state.positions[partition + 1 :])
        return None if request is None else (state._replace(positions=positions), GroupExchange(request))

    what = f"OffsetCommit of partition {partition}"
    add_request(board, consumer, Lane.OFFSETS, "OffsetCommit", {"partition": partition}, what, ask)


# ---- answers


def _add_receipts(board: Board, consumer: int) -> None:
    own = board.slots.consumer[consumer]
    exchange = board.slots.exchange[connection_of(consumer)]
    offsets = board.slots.exchange[connection_of(consumer, Lane.OFFSETS)]

    def take(state: HeartbeatingState, found: GroupExchange | None) -> object:
        match found:
            case GroupExchange(answer=ConsumerGroupHeartbeatResponse() as answer):
                return _after(state, handle_consumer_heartbeat_response(board.heartbeating, state.membership, answer)), None
        return REFUSED

    def take_offsets(state: HeartbeatingState, found: GroupExchange | None) -> object:
        positions = state.positions
        match found:
            case GroupExchange(answer=OffsetFetchResponse(Error.NONE, _, partitions)):
                for one in partitions:
                    if one.error == Error.NONE:
                        positions = (*positions[: one.partition], max(int(one.offset), 0), *positions[one.partition + 1 :])
        return HeartbeatingState(state.membership, positions_in(state.membership.owned, positions)), None

    answered = when(lambda found: found is not None and found.answer is not None, exchange)
    told = when(lambda found: found is not None and found.answer is not None, offsets)
    event = [Arrow(COORDINATOR, consumer, "the answer")]
    arguments = {"consumer": consumer}
    board.model.action("Receive", arguments, [answered], [then([own, exchange], take, own, exchange)], event)
    taken = then([own, offsets], take_offsets, own, offsets)
    board.model.action(
        "ReceiveOffsets",
        arguments,
        [told],
        [taken, acknowledging(board, offsets), *noticing_old_reads(board, offsets)],
        event,
    )


def is_in_place(state: ConsumerMembership) -> bool:
    """Whether a consumer has come to its newest assignment, and has said so."""
    return state.state == ConsumerMemberState.STABLE and state.is_told and state.is_acknowledged
