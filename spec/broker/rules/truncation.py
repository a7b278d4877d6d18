"""Truncation: what one answer about epochs tells a follower."""

from typing import NamedTuple

from spec.log.algebra import Log
from spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, EpochEndOffset, Offset


class TruncationStep(NamedTuple):
    """Truncate to `offset`; `complete` says that the log then agrees with the leader's."""

    offset: Offset
    complete: bool


def truncation_step(log: Log, high_watermark: Offset, answer: EpochEndOffset) -> TruncationStep:
    """What one answer tells a follower whose leader names the largest epoch up to the one asked.

    Undefined end: fall back to the high watermark, and be done. Otherwise look the *answered* epoch up in the own log:
    unknown there: the end offset counts. Its floor there is another epoch: truncate to that epoch's end, and ask again.
    The same epoch: both ends bound the common part, and that is all.

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
