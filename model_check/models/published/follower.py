"""Followers fetch, one record at a time; in KIP-320's first draft they truncate when a fetch is refused."""

from collections.abc import Callable
from functools import partial

from kspec.model_check.core.model import Arrow, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.published.board import Board
from kspec.model_check.models.published.exchange import LeaderState, VisibleReplica, ask, truncated
from kspec.model_check.models.published.settings import TRUNCATION
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.published.fetch import answer_fetch, apply_fetch_response
from kspec.spec.published.versions import TruncationRule
from kspec.spec.values import BrokerId, Error, Offset

MAX_RECORDS_PER_FETCH = 1


def add_follower(board: Board) -> None:
    """Add fetching, and in the first draft of KIP-320 truncation on demand."""
    slots, views = board.slots, board.views
    for leader, follower in board.pairs():
        log = slots.log[follower]
        guards = [board.is_leader[leader], when(partial(is_leader, leader), slots.role[follower])]
        both = (views.leading[leader], views.following[leader, follower])
        written = (log, slots.high_watermark[follower])
        answer = _answer(board, leader)
        board.model.action(
            board.names.fetch,
            {"follower": follower, "leader": leader},
            events=[Arrow(follower, leader, "Fetch"), Arrow(leader, follower, "one record, and the high watermark")],
            guards=[*guards, when(partial(_brings_records, answer), *both)],
            effects=[then(written, partial(_append, answer), log, *both)],
        )
        if board.rules.truncation_when_refused is not None:
            truncate = _truncate(board, board.rules.truncation_when_refused)
            board.model.action(
                board.names.truncate,
                {"follower": follower, "leader": leader},
                events=[
                    Arrow(follower, leader, "Fetch"),
                    Arrow(leader, follower, "LOG_TRUNCATION"),
                    Arrow(follower, leader, "OffsetForLeaderEpoch: where does my last epoch end?"),
                    Arrow(leader, follower, "its end in the leader's log"),
                ],
                guards=[*guards, when(partial(_demands_truncation, answer), *both)],
                effects=[
                    then(written, truncate, log, slots.high_watermark[follower], slots.log[leader]),
                ],
            )


Answer = Callable[[LeaderState, VisibleReplica], FetchResponse]


def _answer(board: Board, leader: BrokerId) -> Answer:
    """A leader's answer to the fetch that a follower sends now."""
    fencing = board.rules.fetch_fencing

    def answer(own: LeaderState, other: VisibleReplica) -> FetchResponse:
        request = other.fetch()
        verdict = fencing(own.role, own.log, request)
        return answer_fetch(leader, own.role, own.log, own.high_watermark, request, MAX_RECORDS_PER_FETCH, verdict)

    return answer


def _brings_records(answer: Answer, own: LeaderState, other: VisibleReplica) -> bool:
    response = answer(own, other)
    return response.error == Error.NONE and len(response.records) > 0


def _demands_truncation(answer: Answer, own: LeaderState, other: VisibleReplica) -> bool:
    return answer(own, other).error == Error.LOG_TRUNCATION


def _append(answer: Answer, log: ModelLog, own: LeaderState, other: VisibleReplica) -> tuple[ModelLog, Offset]:
    return apply_fetch_response(log, answer(own, other))


def _truncate(board: Board, rule: TruncationRule) -> Callable[[ModelLog, Offset, ModelLog], tuple[ModelLog, Offset]]:
    agreement = board.parameters[TRUNCATION.name] == "agreement"

    def truncate(log: ModelLog, high_watermark: Offset, leader_log: ModelLog) -> tuple[ModelLog, Offset]:
        if agreement:
            return truncated(log, high_watermark, log.agreement_end(leader_log))
        return truncated(log, high_watermark, rule(log, high_watermark, ask(board.rules, leader_log)))

    return truncate
