"""Followers fetch, one record at a time; in KIP-320's first draft they truncate when a fetch is refused."""

from collections.abc import Callable
from functools import partial

from model_check.model import REFUSED, Message, Refusal, then, when
from model_check.models.gustafson.board import Board, Role
from model_check.models.gustafson.exchange import ask, truncated
from model_check.models.gustafson.settings import TRUNCATION
from spec.fetch import apply_fetch_response, fetch_request, handle_fetch
from spec.log import RecordLog
from spec.replica import leads
from spec.truncation import keep_whole_log, truncate_to_common_epoch
from spec.values import BrokerId, Error, Offset

MAX_RECORDS_PER_FETCH = 1


def add_follower(board: Board) -> None:
    """Add fetching, and in the first draft of KIP-320 truncation on demand."""
    slots = board.slots
    for leader, follower in board.pairs():
        guards = [board.is_leader[leader], when(partial(leads, leader), slots.role[follower])]
        own = (slots.role[follower], slots.log[follower])
        asked = (slots.role[leader], slots.log[leader])
        written = (slots.log[follower], slots.high_watermark[follower])
        board.model.action(
            board.names.fetch,
            {"follower": follower, "leader": leader},
            events=[Message(follower, leader, "Fetch"), Message(leader, follower, "one record, and the high watermark")],
            guards=guards,
            effects=[
                then(written, _fetch_once(board, leader), *own, *asked, slots.high_watermark[leader]),
            ],
        )
        if board.rules.truncation == keep_whole_log:
            board.model.action(
                board.names.truncate,
                {"follower": follower, "leader": leader},
                events=[
                    Message(follower, leader, "Fetch"),
                    Message(leader, follower, "LOG_TRUNCATION"),
                    Message(follower, leader, "OffsetForLeaderEpoch: where does my last epoch end?"),
                    Message(leader, follower, "its end in the leader's log"),
                ],
                guards=guards,
                effects=[
                    then(written, _truncate_when_refused(board, leader), *own, *asked, slots.high_watermark[follower]),
                ],
            )


def _fetch_once(board: Board, leader: BrokerId) -> Callable[..., tuple[RecordLog, Offset] | Refusal]:
    fencing = board.rules.fetch_fencing

    def fetch(
        own_role: Role, own_log: RecordLog, role: Role, log: RecordLog, high_watermark: Offset
    ) -> tuple[RecordLog, Offset] | Refusal:
        request = fetch_request(own_role, own_log, own_log.end_offset)
        verdict = fencing(role, log, request)
        response = handle_fetch(leader, role, log, high_watermark, request, MAX_RECORDS_PER_FETCH, verdict)
        if response.error != Error.NONE or not response.records:
            return REFUSED
        return apply_fetch_response(own_log, response)

    return fetch


def _truncate_when_refused(board: Board, leader: BrokerId) -> Callable[..., tuple[RecordLog, Offset] | Refusal]:
    fencing = board.rules.fetch_fencing
    agreement = board.parameters[TRUNCATION.name] == "agreement"

    def truncate(
        own_role: Role, own_log: RecordLog, role: Role, log: RecordLog, own_high_watermark: Offset
    ) -> tuple[RecordLog, Offset] | Refusal:
        if fencing(role, log, fetch_request(own_role, own_log, own_log.end_offset)) != Error.LOG_TRUNCATION:
            return REFUSED
        if agreement:
            return truncated(own_log, own_high_watermark, own_log.agreement_end(log))
        offset = truncate_to_common_epoch(own_log, own_high_watermark, ask(board.rules, log))
        return truncated(own_log, own_high_watermark, offset)

    return truncate
