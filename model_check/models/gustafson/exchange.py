"""What the models compose in one step: a request, its handling, and what the answer changes."""

from collections.abc import Callable

from model_check.models.gustafson.board import Board, Role
from spec.fetch import fetch_request
from spec.high_watermark import high_watermark_after_truncation
from spec.log import RecordLog
from spec.protocol import Protocol
from spec.replica import leads
from spec.truncation import handle_offset_for_leader_epoch
from spec.values import NO_FETCH, BrokerId, Epoch, EpochEndOffset, Error, FetchRequest, Offset


def ask(rules: Protocol, leader_log: RecordLog) -> Callable[[Epoch], EpochEndOffset]:
    """The round trip of one OffsetForLeaderEpoch request, to a leader whose fence has let the follower through."""
    return lambda epoch: handle_offset_for_leader_epoch(Error.NONE, rules.epoch_lookup(leader_log, epoch)).end


def truncated(log: RecordLog, high_watermark: Offset, offset: Offset) -> tuple[RecordLog, Offset]:
    """A log cut at `offset`, and the high watermark that it then has."""
    remaining = log.truncate_to(offset)
    return remaining, high_watermark_after_truncation(high_watermark, remaining.end_offset)


def last_fetch(leader: BrokerId, role: Role, log: RecordLog, offset: Offset) -> FetchRequest:
    """What `leader` remembers of a replica that has fetched whatever it could, of the fetch nearest to `offset`."""
    if not leads(leader, role):
        return NO_FETCH
    return fetch_request(role, log, min(offset, log.end_offset))


def has_replicated(
    board: Board, leader: BrokerId, role: Role, log: RecordLog, follower_role: Role, follower_log: RecordLog, offset: Offset
) -> bool:
    """Whether the leader may believe that a replica has its log up to `offset`, if the replica fetches just now."""
    fetch = last_fetch(leader, follower_role, follower_log, offset)
    return board.rules.has_replicated(role, log, fetch, offset)
