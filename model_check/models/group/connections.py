"""Requests on a consumer's connections: they are sent, lost with their connection, or arrive late."""

from collections.abc import Callable
from typing import Any, TypeAlias

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Effect, Local, Note, Slot, then, when
from kspec.model_check.models.group.board import Board
from kspec.model_check.models.group.values import (
    FormerCoordinator,
    GroupExchange,
    Lane,
    LateRequest,
    connection_of,
    number_of,
)
from kspec.spec.coordinator.runtime import CoordinatedGroup
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.values import Error

Ask: TypeAlias = Callable[[Any], tuple[Any, GroupExchange | None] | None]
"""Consumer and exchange after it asks something; the exchange is `None` if it has nothing to ask after all."""


def add_request(
    board: Board, consumer: int, lane: Lane, name: str, arguments: dict[str, Any], what: str, ask: Ask, *budget: Slot
) -> None:
    """Add an action by which a consumer sends a request, if it waits for no answer on that connection."""
    own, exchange = board.slots.consumer[consumer], board.slots.exchange[connection_of(consumer, lane)]
    moves = board.moves
    known = tuple(board.slots.acknowledged.values()) if board.former and name == "OffsetFetch" else ()

    def effect(state: Any, under_way: GroupExchange | None, *others: int) -> object:
        found = None if under_way is not None else ask(state)
        budgets = others[len(moves) + len(known) :]
        if found is None or 0 in budgets:
            return REFUSED
        after, request = found
        offsets = others[len(moves) : len(moves) + len(known)]
        sent = None if request is None else request._replace(moves=board.moved(others[: len(moves)]), known=offsets)
        return (after, sent, *(left - 1 for left in budgets))

    board.model.action(
        name,
        {"consumer": consumer, **arguments},
        guards=[when(lambda under_way: under_way is None, exchange)],
        effects=[then([own, exchange, *budget], effect, own, exchange, *moves, *known, *budget)],
        events=[Arrow(consumer, COORDINATOR, what)],
    )


def acknowledging(board: Board, exchange: Slot) -> Effect:
    """The effect that a consumer knows of offsets that are committed, by the answer on a connection."""
    acknowledged = list(board.slots.acknowledged.values())

    def acknowledge(found: GroupExchange | None, *known: int) -> object:
        assert found is not None
        after = list(known)
        match found.request, found.answer:
            case OffsetCommitRequest(), OffsetCommitResponse(partitions):
                for one, committed in zip(partitions, found.request.offsets, strict=True):
                    if one.error == Error.NONE:
                        after[one.partition] = max(after[one.partition], int(committed.offset))
            case OffsetFetchRequest(), OffsetFetchResponse(Error.NONE, _, fetched):
                for read in fetched:
                    after[read.partition] = max(after[read.partition], int(read.offset))
        return tuple(after) if len(after) > 1 else after[0]

    return then(acknowledged, acknowledge, exchange, *acknowledged)


def add_disconnect(board: Board, consumer: int, lane: Lane, on_lost: Callable[[Any], Any]) -> None:
    """A connection breaks: its request is not handled, or its answer is lost. `on_lost` gives the consumer then."""
    name = "Disconnect" if lane == Lane.MEMBERSHIP else "DisconnectOffsets"
    is_used = when(lambda found: found is not None, board.slots.exchange[connection_of(consumer, lane)])
    left = board.slots.left["disconnects"]
    _add_loss(board, consumer, lane, name, "loses its connection", left, on_lost, is_used)


def add_restart(board: Board, consumer: int, restarted: Callable[[Any], Any]) -> None:
    """A consumer's process ends without a word, and its connection with it. `restarted` gives the next process."""
    own = board.slots.consumer[consumer]
    is_known = when(lambda state: restarted(state) != state, own)
    left = board.slots.left["leaves"]
    _add_loss(board, consumer, Lane.MEMBERSHIP, "Restart", "starts again as another process", left, restarted, is_known)


def noticing_old_reads(board: Board, exchange: Slot) -> list[Effect]:
    """The effect that an answer has an offset below one that was acknowledged before it was asked for."""
    old_read = board.slots.old_read

    def notice(before: bool, found: GroupExchange | None) -> object:
        if found is None or not found.known:
            return before
        match found.answer:
            case OffsetFetchResponse(Error.NONE, _, fetched):
                return before or any(max(int(one.offset), 0) < found.known[one.partition] for one in fetched)
        return before

    return [] if old_read is None else [then(old_read, notice, old_read, exchange)]


def _add_loss(
    board: Board,
    consumer: int,
    lane: Lane,
    name: str,
    what: str,
    left: Slot,
    on_lost: Callable[[Any], Any],
    *guards: Local,
) -> None:
    own, exchange = board.slots.consumer[consumer], board.slots.exchange[connection_of(consumer, lane)]
    group, former = board.slots.group, board.former

    def effect(state: Any, coordinated: CoordinatedGroup, number: int, *known: FormerCoordinator | None) -> object:
        if not number:
            return REFUSED
        others = (one and one._replace(state=broken(one.state, consumer, lane)) for one in known)
        return (on_lost(state), None, broken(coordinated, consumer, lane), number - 1, *others)

    board.model.action(
        name,
        {"consumer": consumer},
        guards=guards,
        effects=[then([own, exchange, group, left, *former], effect, own, group, left, *former)],
        events=[Note(consumer, what)],
    )


def broken(state: CoordinatedGroup, consumer: int, lane: Lane = Lane.MEMBERSHIP) -> CoordinatedGroup:
    """The coordinator's state when a consumer's connection is gone: answers to it will go nowhere."""
    live, dead = number_of(consumer, lane), number_of(consumer, lane, is_broken=True)
    members = tuple(
        one._replace(
            join_request=dead if one.join_request == live else one.join_request,
            sync_request=dead if one.sync_request == live else one.sync_request,
        )
        for one in state.latest.members
    )
    waiting = tuple(one._replace(number=dead) if one.number == live else one for one in state.waiting)
    return state._replace(latest=state.latest._replace(members=members), waiting=waiting)


def add_delay(board: Board, consumer: int, lane: Lane, on_lost: Callable[[Any], Any]) -> None:
    """The connection breaks, and the request on it arrives later, or never."""
    own, exchange = board.slots.consumer[consumer], board.slots.exchange[connection_of(consumer, lane)]
    late, left = board.slots.late[consumer], board.slots.left["late_requests"]

    def effect(state: Any, found: GroupExchange | None, before: LateRequest | None, number: int) -> object:
        if found is None or found.is_taken or before is not None or number == 0:
            return REFUSED
        return on_lost(state), None, LateRequest(found.request, found.moves), number - 1

    board.model.action(
        "Delay" if lane == Lane.MEMBERSHIP else "DelayOffsets",
        {"consumer": consumer},
        guards=[when(lambda found: found is not None and not found.is_taken, exchange)],
        effects=[then([own, exchange, late, left], effect, own, exchange, late, left)],
        events=[Note(consumer, "gives up its connection, on which the request is still under way")],
    )
