"""Actions of consumers: they join, read and commit, leave, take answers, and give up connections."""

from dataclasses import replace
from itertools import product
from typing import Any

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Effect, Local, Slot, then, when
from kspec.model_check.models.group.board import GROUP, NOW, TOPIC, Board, position_of, settled
from kspec.model_check.models.group.connections import (
    acknowledging,
    add_delay,
    add_disconnect,
    add_request,
    add_restart,
    noticing_old_reads,
)
from kspec.model_check.models.group.values import (
    NO_POSITION,
    ConsumerState,
    GroupExchange,
    Lane,
    connection_of,
    consumer_of,
    number_of,
    positions_in,
)
from kspec.spec.assignors.subscribers import Subscriber
from kspec.spec.consumer.handlers import (
    commit_of,
    handle_heartbeat_response,
    handle_join_group_response,
    handle_offset_commit_response,
    handle_sync_group_response,
    heartbeat_of,
    on_leave,
    on_no_answer,
    on_poll,
)
from kspec.spec.consumer.membership import AskCoordinator, Fail, GroupMembership, MemberEffect
from kspec.spec.consumer.protocol import GroupConsumer
from kspec.spec.coordinator.effects import AnswerRequest
from kspec.spec.coordinator.runtime import CoordinatedGroup, handle_group_request
from kspec.spec.messages.groups.heartbeat import HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinedMember, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.offset_commit import OffsetCommitResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import Error, Offset


def add_consumers(board: Board) -> None:
    """Add all that consumers do."""
    for consumer in board.consumers:
        _add_poll(board, consumer)
        _add_heartbeat(board, consumer)
        _add_offset_fetch(board, consumer)
        for partition in board.partitions:
            _add_commit(board, consumer, partition)
        if board.parameters["leaves"] and not board.is_static:
            _add_leave(board, consumer)
        if board.parameters["leaves"] and board.is_static:
            add_restart(board, consumer, lambda state: _new_process(board))
        _add_receipt(board, consumer)
        for given_to in product(board.consumers, repeat=len(board.partitions)):
            _add_assignment(board, consumer, given_to)
        if board.parameters["disconnects"]:
            add_disconnect(board, consumer, Lane.MEMBERSHIP, _lost)
        if board.parameters["late_requests"]:
            add_delay(board, consumer, Lane.MEMBERSHIP, _lost)


def written_partitions(partitions: frozenset[int]) -> bytes:
    """An assignment, or what a member owns, in the bytes of this model: an index each."""
    return bytes(sorted(partitions))


def read_partitions(data: bytes) -> frozenset[int]:
    """The partitions of `written_partitions`."""
    return frozenset(data)


# ---- what every action has


def _asks(board: Board, consumer: int, name: str, arguments: dict[str, Any], what: str, ask: Any, *budget: Slot) -> None:
    """Add an action by which a consumer sends a request. `ask` gives the consumer after it and the request, or `None`."""

    def exchange(state: ConsumerState) -> tuple[ConsumerState, GroupExchange | None] | None:
        found = ask(state)
        if found is None:
            return None
        after, request = found
        return after, None if request is None else GroupExchange(request, state.membership.generation)

    add_request(board, consumer, Lane.MEMBERSHIP, name, arguments, what, exchange, *budget)


def _requests(effects: tuple[MemberEffect, ...]) -> list[Any]:
    found = []
    for effect in effects:
        match effect:
            case AskCoordinator(request):
                found.append(request)
    return found


def _after(state: ConsumerState, membership: GroupMembership) -> ConsumerState:
    """The consumer after a step: it has no position in what it does not own."""
    return ConsumerState(membership, positions_in(membership.owned, state.positions))


def _lost(state: ConsumerState) -> ConsumerState:
    return _after(state, on_no_answer(state.membership).state)


def _new_process(board: Board) -> ConsumerState:
    """A consumer that has just begun, or was started again after it had failed."""
    return ConsumerState(positions=tuple(NO_POSITION for _ in board.partitions))


def _has_failed(effects: tuple[MemberEffect, ...]) -> bool:
    for effect in effects:
        match effect:
            case Fail():
                return True
    return False


# ---- requests


def _add_poll(board: Board, consumer: int) -> None:
    def ask(state: ConsumerState) -> object:
        offered = (GroupProtocol(board.consumer.protocol.name, b""),)
        step = on_poll(board.consumer_as(consumer), state.membership, offered, number_of(consumer))
        requests = _requests(step.effects)
        if not requests:
            return None
        (request,) = requests
        owned = written_partitions(step.state.owned)
        protocols = (GroupProtocol(board.consumer.protocol.name, owned),)
        id_first = board.parameters["member_id_first"]
        return _after(state, step.state), replace(request, protocols=protocols, requires_member_id=id_first)

    _asks(board, consumer, "JoinGroup", {}, "JoinGroup", ask)


def _add_offset_fetch(board: Board, consumer: int) -> None:
    def ask(state: ConsumerState) -> object:
        unknown = [one for one in sorted(state.membership.owned) if state.positions[one] == NO_POSITION]
        if not unknown:
            return None
        wanted = tuple(OffsetFetchPartition(TOPIC, partition) for partition in unknown)
        return state, OffsetFetchRequest(GROUP, wanted, require_stable=not board.parameters["unstable_reads"])

    _asks(board, consumer, "OffsetFetch", {}, "OffsetFetch", ask)


def _add_commit(board: Board, consumer: int, partition: int) -> None:
    def ask(state: ConsumerState) -> object:
        position = state.positions[partition]
        if not NO_POSITION < position < board.parameters["records"]:
            return None
        request = commit_of(board.consumer_as(consumer), state.membership, partition, Offset(position + 1))
        positions = (*state.positions[:partition], position + 1, *state.positions[partition + 1 :])
        return None if request is None else (state._replace(positions=positions), request)

    _asks(board, consumer, "OffsetCommit", {"partition": partition}, f"OffsetCommit of partition {partition}", ask)


def _add_leave(board: Board, consumer: int) -> None:
    def ask(state: ConsumerState) -> object:
        step = on_leave(board.consumer_as(consumer), state.membership)
        requests = _requests(step.effects)
        return (_after(state, step.state), requests[0]) if requests else None

    _asks(board, consumer, "LeaveGroup", {}, "LeaveGroup", ask, board.slots.left["leaves"])


def _add_heartbeat(board: Board, consumer: int) -> None:
    """A heartbeat and its answer, in one step: it waits for nothing, and where it is late it changes nothing."""
    own, exchange, group = board.slots.consumer[consumer], board.slots.exchange[connection_of(consumer)], board.slots.group

    def effect(state: ConsumerState, coordinated: CoordinatedGroup) -> object:
        request = heartbeat_of(board.consumer_as(consumer), state.membership)
        if request is None:
            return REFUSED
        step = handle_group_request(
            board.coordinator, coordinated, number_of(consumer), request, position_of(coordinated), NOW
        )
        after = settled(step.state)
        for answer in step.effects:
            match answer:
                case AnswerRequest(_, HeartbeatResponse() as response):
                    taken = handle_heartbeat_response(
                        board.consumer, state.membership, state.membership.generation, response
                    )
                    member = _new_process(board) if _has_failed(taken.effects) else _after(state, taken.state)
                    return REFUSED if (member, after) == (state, coordinated) else (member, after)
        return REFUSED

    board.model.action(
        "Heartbeat",
        {"consumer": consumer},
        guards=[when(lambda under_way: under_way is None, exchange)],
        effects=[then([own, group], effect, own, group)],
        events=[Arrow(consumer, COORDINATOR, "Heartbeat"), Arrow(COORDINATOR, consumer, "its answer")],
    )


# ---- answers


def _receive(
    board: Board, consumer: GroupConsumer, state: ConsumerState, found: GroupExchange, assign: Any = None
) -> tuple[ConsumerState, Any]:
    """The consumer after it has the answer, and what it asks at once."""
    member, answer = state.membership, found.answer
    step: Step[GroupMembership, MemberEffect] = Step(member)
    positions = state.positions
    match answer:
        case JoinGroupResponse():
            number = _number(found.request)
            step = handle_join_group_response(consumer, member, found.sent_in, answer, assign, number)
        case SyncGroupResponse():
            step = handle_sync_group_response(consumer, member, found.sent_in, answer, read_partitions)
        case OffsetCommitResponse():
            step = handle_offset_commit_response(consumer, member, found.sent_in, answer)
        case OffsetFetchResponse(Error.NONE):
            for one in answer.partitions:
                if one.error == Error.NONE:
                    positions = (*positions[: one.partition], max(int(one.offset), 0), *positions[one.partition + 1 :])
    if _has_failed(step.effects):
        return _new_process(board), None
    requests = _requests(step.effects)
    return _after(state._replace(positions=positions), step.state), requests[0] if requests else None


def _number(request: Any) -> Any:
    match request:
        case JoinGroupRequest():
            return request.request
    raise AssertionError(f"{request} has no number")


def _leads(found: GroupExchange | None) -> bool:
    """Whether an answer asks for an assignment."""
    if found is None:
        return False
    match found.answer:
        case JoinGroupResponse(error=Error.NONE) as answer:
            return answer.leader == answer.member_id and not answer.skip_assignment
    return False


def _receipt_of(
    board: Board, consumer: int, name: str, arguments: dict[str, Any], assign: Any, leads: bool, *guards: Local
) -> None:
    own, exchange = board.slots.consumer[consumer], board.slots.exchange[connection_of(consumer)]
    moves = board.moves

    def effect(state: ConsumerState, found: GroupExchange | None, *left: int) -> object:
        assert found is not None
        after, request = _receive(board, board.consumer_as(consumer), state, found, assign)
        asked = None if request is None else GroupExchange(request, after.membership.generation, board.moved(left))
        return after, asked

    effects: list[Effect] = [then([own, exchange], effect, own, exchange, *moves)]
    if not leads:
        effects += [acknowledging(board, exchange), *noticing_old_reads(board, exchange)]

    def has_answer(found: GroupExchange | None) -> bool:
        return found is not None and found.answer is not None and _leads(found) == leads

    board.model.action(
        name,
        {"consumer": consumer, **arguments},
        guards=[when(has_answer, exchange), *guards],
        effects=effects,
        events=[Arrow(COORDINATOR, consumer, "the answer")],
    )


def _add_receipt(board: Board, consumer: int) -> None:
    _receipt_of(board, consumer, "Receive", {}, None, leads=False)


def _add_assignment(board: Board, consumer: int, given_to: tuple[int, ...]) -> None:
    """The leader of a generation assigns each partition to a consumer, to any that is in the generation."""

    def assign(members: tuple[JoinedMember, ...]) -> tuple[MemberAssignment, ...]:
        return assignments_of(board.consumer, members, given_to)

    def can(found: GroupExchange | None) -> bool:
        assert found is not None
        match found.answer:
            case JoinGroupResponse(members=members):
                return set(given_to) <= {consumer_of(one.member_id) for one in members}
        return False

    arguments = {"to": tuple(map(int, given_to))}
    _receipt_of(board, consumer, "Assign", arguments, assign, True, when(can, board.slots.exchange[connection_of(consumer)]))


def assignments_of(
    consumer: GroupConsumer, members: tuple[JoinedMember, ...], given_to: tuple[int, ...]
) -> tuple[MemberAssignment, ...]:
    """The assignment of each partition to the last member that is one of a consumer's, as far as it is handed out."""
    latest = {consumer_of(one.member_id): one.member_id for one in members}
    subscribers = tuple(Subscriber(one.member_id, frozenset({TOPIC}), named_partitions(one.metadata)) for one in members)
    wanted = {
        one.member_id: frozenset(
            (TOPIC, place) for place, receiver in enumerate(given_to) if latest[receiver] == one.member_id
        )
        for one in members
    }
    handed_out = consumer.protocol.hands_out(subscribers, wanted)
    return tuple(
        MemberAssignment(member, written_partitions(frozenset(place for _, place in has)))
        for member, has in handed_out.items()
    )


def named_partitions(data: bytes) -> frozenset[tuple[str, int]]:
    """The partitions of `written_partitions`, as assignors name them."""
    return frozenset((TOPIC, place) for place in data)
