"""Replicas become leader or follower, and a new follower truncates its log."""

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Effect, Event, Local, Note, Refusal, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.published.board import NOT_ANNOUNCED, Board
from kspec.model_check.models.published.exchange import ask, truncated
from kspec.model_check.models.published.settings import TRUNCATION
from kspec.spec.broker.rules.leadership import start_leading
from kspec.spec.published.truncation import (
    clamped,
    truncate_to_common_epoch,
    truncate_to_epoch_end,
    truncate_to_high_watermark,
)
from kspec.spec.published.versions import TruncationRule
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error, Offset


def add_roles(board: Board) -> None:
    """Add becoming leader and becoming follower."""
    _become_leader(board)
    _become_follower(board)


def _become_leader(board: Board) -> None:
    slots = board.slots
    for epoch in board.epochs:
        announced = slots.announcement[epoch]
        for leader in board.replicas:
            board.model.action(
                "BecomeLeader",
                {"leader": leader, "epoch": epoch},
                events=[Arrow(CONTROLLER, leader, f"LeaderAndIsr: lead in epoch {epoch}")],
                guards=[
                    board.is_announced[leader, epoch],
                    board.has_not_seen[leader, epoch],
                ],
                effects=[
                    then(slots.role[leader], lambda request: request, announced),
                    *_start_leading(board, leader, epoch),
                ],
            )


def _start_leading(board: Board, leader: BrokerId, epoch: Epoch) -> list[Effect]:
    """The log of a new leader; one rule leaves it unchanged."""
    start = board.rules.start_leading
    if start == start_leading:
        return []
    return [then(board.slots.log[leader], lambda log: start(log, epoch), board.slots.log[leader])]


def _become_follower(board: Board) -> None:
    slots = board.slots
    for epoch in board.epochs:
        announced = slots.announcement[epoch]
        for leader, follower in board.pairs():
            board.model.action(
                board.names.become_follower,
                {"follower": follower, "leader": leader, "epoch": epoch},
                events=[
                    Arrow(CONTROLLER, follower, f"LeaderAndIsr: follow broker {leader} in epoch {epoch}"),
                    *_truncation_events(board, leader, follower),
                ],
                guards=[
                    board.is_announced[leader, epoch],
                    board.has_not_seen[follower, epoch],
                    *_leader_answers(board, leader, epoch),
                ],
                effects=[
                    then(slots.role[follower], lambda request: request, announced),
                    *_truncation(board, leader, follower),
                ],
            )
        if "leaderless-followers" in board.repairs:
            _become_follower_of_none(board, epoch)


def _become_follower_of_none(board: Board, epoch: Epoch) -> None:
    slots = board.slots
    announced = slots.announcement[epoch]
    for replica in board.replicas:
        board.model.action(
            board.names.become_follower,
            {"follower": replica, "leader": NO_LEADER, "epoch": epoch},
            events=[Arrow(CONTROLLER, replica, f"LeaderAndIsr: nobody leads in epoch {epoch}")],
            guards=[
                when(lambda request: request != NOT_ANNOUNCED and request.leader == NO_LEADER, announced),
                board.has_not_seen[replica, epoch],
            ],
            effects=[then(slots.role[replica], lambda request: request, announced)],
        )


def _truncation_events(board: Board, leader: BrokerId, follower: BrokerId) -> list[Event]:
    asking: list[Event] = [
        Arrow(follower, leader, "OffsetForLeaderEpoch: where does my last epoch end?"),
        Arrow(leader, follower, "its end in the leader's log"),
    ]
    events: dict[TruncationRule | None, list[Event]] = {
        None: [],
        truncate_to_high_watermark: [Note(follower, "truncates its log to its own high watermark")],
        truncate_to_epoch_end: asking,
        truncate_to_common_epoch: asking,
    }
    return events[board.rules.truncation]


def _leader_answers(board: Board, leader: BrokerId, epoch: Epoch) -> list[Local]:
    """The follower asks in its new epoch; where the fence refuses, it cannot truncate yet and tries again later."""
    if board.rules.truncation is None:
        return []
    fence = board.rules.truncation_fencing
    return [when(lambda role: fence(leader, role, epoch, True) == Error.NONE, board.slots.role[leader])]


def _truncation(board: Board, leader: BrokerId, follower: BrokerId) -> list[Effect]:
    """Truncation of a new follower's log: all questions and answers in one step."""
    rule = board.rules.truncation
    if rule is None:
        return []
    if TRUNCATION.name in board.parameters:
        return [_truncate_to_common_part(board, rule, leader, follower)]
    log, high_watermark = board.slots.log, board.slots.high_watermark
    clamp = "clamp-truncation" in board.repairs

    def truncate(own: ModelLog, own_high_watermark: Offset, leader_log: ModelLog) -> tuple[ModelLog, Offset] | Refusal:
        offset = rule(own, own_high_watermark, ask(board.rules, leader_log))
        if clamp:
            offset = clamped(offset, own)
        return truncated(own, own_high_watermark, offset) if offset <= own.end_offset else REFUSED

    reads = (log[follower], high_watermark[follower], log[leader])
    return [then((log[follower], high_watermark[follower]), truncate, *reads)]


def _truncate_to_common_part(board: Board, rule: TruncationRule, leader: BrokerId, follower: BrokerId) -> Effect:
    """The rule with the end of the common part found at once, as published, where `rule` looks for that."""
    log, high_watermark = board.slots.log, board.slots.high_watermark
    agreement = board.parameters[TRUNCATION.name] == "agreement"

    def truncate(own: ModelLog, own_high_watermark: Offset, leader_log: ModelLog) -> tuple[ModelLog, Offset]:
        if agreement:
            return truncated(own, own_high_watermark, own.agreement_end(leader_log))
        return truncated(own, own_high_watermark, rule(own, own_high_watermark, ask(board.rules, leader_log)))

    reads = (log[follower], high_watermark[follower], log[leader])
    return then((log[follower], high_watermark[follower]), truncate, *reads)
