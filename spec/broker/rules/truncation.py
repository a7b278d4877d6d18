"""Truncation: the step that a follower takes after one answer about epochs."""

from typing import NamedTuple

from kspec.spec.log.algebra import Log
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, EpochEndOffset, Offset


class TruncationStep(NamedTuple):
    """Truncate to `offset`; `complete` says that the log then agrees with the leader's."""

    offset: Offset
    complete: bool


def truncation_step(log: Log, high_watermark: Offset, answer: EpochEndOffset) -> TruncationStep:
    """The truncation after one answer, when the leader names the largest epoch up to the one asked.

    If the end is undefined, the follower truncates to the high watermark, and is done. Otherwise it looks up the *answered*
    epoch in its own log. If it is unknown there, the end offset counts. If the largest own epoch up to it is another one,
    the follower truncates to that epoch's end, and asks again. If it is the same epoch, the smaller of both ends counts, and
    the follower is done.

    **Kafka:** `AbstractFetcherThread.getOffsetTruncationState` (KIP-279).
    """
    if answer.end_offset == UNKNOWN_OFFSET:
        return TruncationStep(min(high_watermark, log.end_offset), complete=True)
    if answer.leader_epoch == NO_EPOCH:
        return TruncationStep(min(answer.end_offset, log.end_offset), complete=True)
    own = log.end_offset_for_epoch(answer.leader_epoch)
    if own == UNDEFINED_EPOCH_END:
        return TruncationStep(min(answer.end_offset, log.end_offset), complete=True)
    if own.leader_epoch != answer.leader_epoch:
        return TruncationStep(min(own.end_offset, log.end_offset), complete=False)
    return TruncationStep(min(own.end_offset, answer.end_offset, log.end_offset), complete=True)
