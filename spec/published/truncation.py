"""Truncation in the published models: the offset up to which a new follower keeps its log, in one step.

Each rule is the follower's side: it gets its own log and high watermark, and `ask`, which sends the leader "where does
this epoch end in your log?" (OffsetForLeaderEpoch) and returns the answer. The leader's side is a broker's:
`answer_offset_for_leader_epoch`, behind `check_serves` or, in the published models up to KIP-279, behind no fence at all.
"""

from collections.abc import Callable
from typing import TypeAlias

from kspec.spec.broker.rules.fetcher import start_at_high_watermark
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.log.algebra import Log
from kspec.spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    LeaderAndIsr,
    Offset,
)

Ask: TypeAlias = Callable[[Epoch], EpochEndOffset]
"""One OffsetForLeaderEpoch round trip: a leader epoch to its end in the leader's log."""


def truncate_to_high_watermark(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep the log below the follower's high watermark; ask no other broker.

    It loses committed records above the follower's high watermark, and keeps records that another leader has since replaced.

    **Kafka:** `ReplicaManager.makeFollowers` before KIP-101, up to 0.10.

    **Departs:** in form only: a broker's rule (`start_at_high_watermark`) also says from where the follower fetches on.
    """
    return start_at_high_watermark(log, high_watermark).kept_end


def truncate_to_epoch_end(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep the log up to the end that its latest epoch has in the leader's log.

    Truncate to the high watermark if the log has no epoch to ask about, or if the leader does not know it.

    **Kafka:** `ReplicaFetcherThread.maybeTruncate` after KIP-101, 0.11 to 1.1.

    **Departs:** asking and truncating are one step. The answer may lie beyond the follower's end; Kafka truncates to the
    smaller of both (`truncation_step` with an answer that names no epoch).
    """
    if log.latest_epoch == NO_EPOCH:
        return high_watermark
    answer = ask(log.latest_epoch)
    return high_watermark if answer.end_offset == UNKNOWN_OFFSET else answer.end_offset


def truncate_to_common_epoch(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep the part that follower and leader share: ask epoch by epoch, backwards, until both know one.

    **Kafka:** `AbstractFetcherThread.truncateToEpochEndOffsets`, asked again until complete (KIP-279, since 2.0).

    **Departs:** all rounds are one step, in which the leader's log does not change; a broker's fetcher makes one round with
    each answer (`truncation_by_answer`), and may have to follow another leader in between.
    """
    remaining = log
    while remaining.latest_epoch != NO_EPOCH:
        step = truncation_step(remaining, high_watermark, ask(remaining.latest_epoch))
        if step.complete:
            return step.offset
        remaining = remaining.truncate_to(step.offset)
    return remaining.end_offset


def look_up_in_records(log: Log, epoch: Epoch) -> EpochEndOffset:
    """The end of `epoch` in a leader's log, found in the epochs of its records; the answer names no epoch.

    It is the log's end if the last record has the epoch, else the smallest offset of a record of a larger epoch. Without
    such a record it is undefined.

    **Kafka:** none; the lookup of `Kip101.tla`. Kafka 0.11 asks its epoch history (`LeaderEpochFileCache.endOffsetFor`).

    **Departs:** without a fence the epochs of a log may go back (0, 2, 1). The records still have all of them. Kafka's
    history does not: 0.11 ignores an epoch that is smaller than its latest; since 2.1, as in our history, such an epoch
    removes the larger ones. Also, the history of 0.11 does not place an epoch below all of the log's (`look_up_end_only`).
    """
    if log.latest_epoch == NO_EPOCH:
        return UNDEFINED_EPOCH_END
    if epoch == log.latest_epoch:
        return EpochEndOffset(NO_EPOCH, log.end_offset)
    end = log.first_above(epoch)
    is_in_log = end < log.end_offset or log.latest_epoch > epoch
    return EpochEndOffset(NO_EPOCH, end) if is_in_log else UNDEFINED_EPOCH_END


def clamped(offset: Offset, log: Log) -> Offset:
    """A truncation offset (of a log that may end before it). **Kafka:** `AbstractFetcherThread.getOffsetTruncationState`.

    **Departs:** a separate step, which repairs `truncate_to_epoch_end`; it is part of a broker's `truncation_step`.
    """
    return min(offset, log.end_offset)


def answer_anyone(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch, leader_only: bool) -> Error:
    """Answer OffsetForLeaderEpoch in any role and epoch, as in the published models up to KIP-279.

    **Kafka:** no release does.

    **Departs:** a broker answers only while it believes to lead (`check_serves_unfenced`).
    """
    return Error.NONE
