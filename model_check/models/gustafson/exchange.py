"""What the models compose in one step: a request, its handling, and what the answer changes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from spec.fetch import fetch_request
from spec.high_watermark import high_watermark_after_truncation
from spec.log import EMPTY_LOG, RecordLog
from spec.protocol import Protocol
from spec.replica import NO_ROLE, leads
from spec.truncation import handle_offset_for_leader_epoch
from spec.values import NO_FETCH, BrokerId, Epoch, EpochEndOffset, Error, FetchRequest, LeaderAndIsr, Offset

if TYPE_CHECKING:
    from model_check.models.gustafson.board import Board

Role = LeaderAndIsr
"""A replica's role is the last announcement that it has accepted."""


def ask(rules: Protocol, leader_log: RecordLog) -> Callable[[Epoch], EpochEndOffset]:
    """The round trip of one OffsetForLeaderEpoch request, to a leader whose fence has let the follower through."""
    return lambda epoch: handle_offset_for_leader_epoch(Error.NONE, rules.epoch_lookup(leader_log, epoch)).end


def truncated(log: RecordLog, high_watermark: Offset, offset: Offset) -> tuple[RecordLog, Offset]:
    """A log cut at `offset`, and the high watermark that it then has."""
    remaining = log.truncate_to(offset)
    return remaining, high_watermark_after_truncation(high_watermark, remaining.end_offset)


class Leading(NamedTuple):
    """What a leader decides from: its own state."""

    role: Role
    log: RecordLog
    high_watermark: Offset


NOT_LEADING = Leading(NO_ROLE, EMPTY_LOG, Offset(0))


Fetches = tuple[FetchRequest, ...]
"""What a leader may learn of a replica: its fetches to this leader at every offset of its log.

The last is the one that it would send now; the others are those that it may have sent on the way there.
"""

NOT_FOLLOWING: Fetches = (NO_FETCH,)


def leading(replica: BrokerId, role: Role, log: RecordLog, high_watermark: Offset) -> Leading:
    """The state of a replica that presumes to lead; the same for all others."""
    return Leading(role, log, high_watermark) if leads(replica, role) else NOT_LEADING


def fetches_to(leader: BrokerId, role: Role, log: RecordLog) -> Fetches:
    """The fetches of a replica to this leader; the same for all that follow nobody or another."""
    if not leads(leader, role):
        return NOT_FOLLOWING
    return tuple(fetch_request(role, log, Offset(end)) for end in range(log.end_offset + 1))


def committed(log: RecordLog, high_watermark: Offset) -> RecordLog:
    """The records that a replica knows to be committed."""
    return log.truncate_to(high_watermark)


def has_replicated(board: "Board", own: Leading, fetches: Fetches, offset: Offset) -> bool:
    """Whether the leader may believe that a replica has its log up to `offset`, if the replica fetches just now.

    It remembers the replica's fetch nearest to `offset`, and nothing of a replica that does not follow it.
    """
    return board.rules.has_replicated(own.role, own.log, fetches[min(offset, len(fetches) - 1)], offset)
