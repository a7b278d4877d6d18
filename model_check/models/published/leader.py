"""The leader writes, commits, and changes the in-sync replicas."""

from collections.abc import Callable
from functools import partial

from kspec.model_check.core.model import CONTROLLER, PRODUCER, Arrow, Effect, Local, Note, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.published.board import AcknowledgedRecord, Board
from kspec.model_check.models.published.exchange import (
    LeaderState,
    Role,
    VisibleReplica,
    following,
    has_replicated,
    is_in_office,
)
from kspec.spec.broker.rules.produce import check_produce
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER
from kspec.spec.published.high_watermark import has_record_to_commit, holds_back_high_watermark
from kspec.spec.published.isr import may_join_isr, may_leave_isr, with_replica, without_replica
from kspec.spec.published.produce import acknowledged_on_append, acknowledged_on_commit, append_as_leader
from kspec.spec.values import BrokerId, Error, Offset, Record


def add_leader(board: Board) -> None:
    """Add writes, commits and ISR changes."""
    _write(board)
    _advance_high_watermark(board)
    _change_isr(board)


def _write(board: Board) -> None:
    slots, parameters = board.slots, board.parameters
    acks = board.acks
    for leader in board.replicas:
        log, role = slots.log[leader], slots.role[leader]
        effects = [
            then(
                log,
                lambda log, role, value: append_as_leader(log, role.leader_epoch, value),
                log,
                role,
                slots.next_record,
            ),
            then(slots.next_record, lambda value: value + 1, slots.next_record),
        ]
        guards = [
            board.is_leader[leader],
            when(lambda value: value < parameters["max_records"], slots.next_record),
            when(lambda log: log.end_offset < parameters["log_size"], log),
        ]
        if acks is not None:
            guards.append(when(lambda role: check_produce(role, acks, board.min_isr) == Error.NONE, role))
        if slots.acknowledged and acks is not None and acknowledged_on_append(acks):
            effects.append(
                then(
                    slots.acknowledged,
                    lambda acked, log, role, value: (
                        acked | {AcknowledgedRecord(log.end_offset, Record(value, role.leader_epoch))}
                    ),
                    slots.acknowledged,
                    log,
                    role,
                    slots.next_record,
                )
            )
        events = [Arrow(PRODUCER, leader, "write a record")]
        if acks == ACKS_LEADER:
            events.append(Arrow(leader, PRODUCER, "acknowledged (acks=1)"))
        board.model.action("LeaderWrite", {"leader": leader}, guards, effects, events)


def _advance_high_watermark(board: Board) -> None:
    slots = board.slots
    for leader in board.replicas:
        log, role, high_watermark = slots.log[leader], slots.role[leader], slots.high_watermark[leader]
        effects = [then(high_watermark, lambda offset: Offset(offset + 1), high_watermark)]
        if slots.acknowledged and board.acks == ACKS_ALL:
            effects.append(
                then(slots.acknowledged, partial(_acknowledge, board), slots.acknowledged, log, role, high_watermark)
            )
        board.model.action(
            board.names.advance_high_watermark,
            {"leader": leader},
            events=[Note(leader, "every in-sync replica has the next record: it is committed")],
            guards=[
                board.is_leader[leader],
                when(lambda own: has_record_to_commit(own.log, own.high_watermark), board.views.leading[leader]),
                *(_does_not_hold_back(board, leader, replica) for replica in board.replicas),
            ],
            effects=effects,
        )


def _acknowledge(
    board: Board, acknowledged: frozenset[AcknowledgedRecord], log: ModelLog, role: Role, offset: Offset
) -> frozenset[AcknowledgedRecord]:
    if not acknowledged_on_commit(role, ACKS_ALL, Offset(offset + 1), board.min_isr):
        return acknowledged
    return acknowledged | {AcknowledgedRecord(offset, log.read(offset, 1)[0])}


def _does_not_hold_back(board: Board, leader: BrokerId, replica: BrokerId) -> Local:
    def free_to_advance(own: LeaderState, other: VisibleReplica) -> bool:
        reached = has_replicated(board.rules, leader, own, other, Offset(own.high_watermark + 1))
        return not holds_back_high_watermark(own.role, replica, reached)

    if replica == leader:
        return when(lambda own: free_to_advance(own, following(leader, own.role, own.log)), board.views.leading[leader])
    return when(free_to_advance, board.views.leading[leader], board.views.following[leader, replica])


def _change_isr(board: Board) -> None:
    slots = board.slots
    for leader, follower in board.pairs():
        args = {"leader": leader, "follower": follower}
        partition, role = slots.partition, slots.role[leader]
        leading, both = board.views.leading[leader], (board.views.leading[leader], board.views.following[leader, follower])
        is_true_leader = when(is_in_office, partition, role)
        board.model.action(
            board.names.shrink_isr,
            args,
            events=[Arrow(leader, CONTROLLER, f"ISR without broker {follower}")],
            guards=[board.is_leader[leader], is_true_leader, when(_may_leave(board, leader, follower), *both)],
            effects=_update_isr(board, leader, partial(_without, follower)),
        )
        board.model.action(
            board.names.expand_isr,
            args,
            events=[Arrow(leader, CONTROLLER, f"ISR with broker {follower}")],
            guards=[
                board.is_leader[leader],
                is_true_leader,
                when(lambda own: board.rules.may_join(own.role, own.log, own.high_watermark), leading),
                when(_may_join(board, leader, follower), *both),
            ],
            effects=_update_isr(board, leader, partial(_with, follower)),
        )


def _may_leave(board: Board, leader: BrokerId, follower: BrokerId) -> Callable[[LeaderState, VisibleReplica], bool]:
    def may_leave(own: LeaderState, other: VisibleReplica) -> bool:
        return may_leave_isr(own.role, follower, has_replicated(board.rules, leader, own, other, own.log.end_offset))

    return may_leave


def _may_join(board: Board, leader: BrokerId, follower: BrokerId) -> Callable[[LeaderState, VisibleReplica], bool]:
    def may_join(own: LeaderState, other: VisibleReplica) -> bool:
        return may_join_isr(own.role, follower, has_replicated(board.rules, leader, own, other, own.high_watermark))

    return may_join


def _update_isr(board: Board, leader: BrokerId, change: Callable[[Role], Role]) -> list[Effect]:
    """Proposal, conditional write and confirmation of an ISR change, in one step."""
    partition, role = board.slots.partition, board.slots.role[leader]
    return [then(partition, change, role), then(role, change, role)]


def _with(replica: BrokerId, role: Role) -> Role:
    return with_replica(role, replica)


def _without(replica: BrokerId, role: Role) -> Role:
    return without_replica(role, replica)
