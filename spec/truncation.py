"""Truncation: up to where a new follower keeps its log.

Each rule is the follower's side: it gets its own log and high watermark, and `ask`, which sends the leader "where does
this epoch end in your log?" (OffsetForLeaderEpoch) and returns the answer. The leader's side is
`handle_offset_for_leader_epoch`, behind one of three fences.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from spec.fetch import check_leader_epoch
from spec.log import Log
from spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    EpochEndOffsetResponse,
    Error,
    LeaderAndIsr,
    Offset,
)

Ask: TypeAlias = Callable[[Epoch], EpochEndOffset]
"""One OffsetForLeaderEpoch round trip: a leader epoch to its end in the leader's log."""


class TruncationStep(NamedTuple):
    """Truncate to `offset`; `complete` says that the log then agrees with the leader's."""

    offset: Offset
    complete: bool


def truncate_to_high_watermark(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep what the follower knows to be committed; ask nobody.

    Loses records that are committed but that the follower does not yet know to be, and keeps records that another
    leader has since replaced.

    **Kafka:** `ReplicaManager.makeFollowers` before KIP-101, up to 0.10.
    """
    return high_watermark


def truncate_to_epoch_end(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep what lies before the end, in the leader's log, of the epoch in which the follower's log ends.

    Fall back to the high watermark if the log has no epoch to ask about, or if the leader does not know it. The answer
    may lie beyond the follower's end; Kafka truncates to the smaller of both (`clamped`).

    **Kafka:** `ReplicaFetcherThread.maybeTruncate` after KIP-101, 0.11 to 1.1.
    """
    if log.latest_epoch == NO_EPOCH:
        return high_watermark
    answer = ask(log.latest_epoch)
    return high_watermark if answer.end_offset == UNKNOWN_OFFSET else answer.end_offset


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


def truncate_to_common_epoch(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep the part that follower and leader share: ask epoch by epoch, backwards, until one is known to both.

    **Kafka:** `AbstractFetcherThread.truncateToEpochEndOffsets`, asked again until complete (KIP-279, since 2.0).
    """
    remaining = log
    while remaining.latest_epoch != NO_EPOCH:
        step = truncation_step(remaining, high_watermark, ask(remaining.latest_epoch))
        if step.complete:
            return step.offset
        remaining = remaining.truncate_to(step.offset)
    return remaining.end_offset


def keep_whole_log(log: Log, high_watermark: Offset, ask: Ask) -> Offset:
    """Keep everything on becoming a follower; truncate only when a fetch is refused with `LOG_TRUNCATION`.

    **Kafka:** the first draft of KIP-320, never released.
    """
    return log.end_offset


def clamped(offset: Offset, log: Log) -> Offset:
    """A truncation offset (of a log that may end before it). **Kafka:** `AbstractFetcherThread.getOffsetTruncationState`."""
    return min(offset, log.end_offset)


def answer_anyone(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> Error:
    """Answer OffsetForLeaderEpoch whatever this replica's role and epoch: the published models up to KIP-279 do.

    **Kafka:** no release does; see `answer_as_leader`.
    """
    return Error.NONE


def answer_as_leader(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> Error:
    """Answer OffsetForLeaderEpoch only while believing to lead, in whatever epoch.

    Errors: `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `ReplicaManager.lastOffsetForLeaderEpoch` before KIP-320, up to 2.0.
    """
    return Error.NONE if role.leader == self_id else Error.NOT_LEADER_OR_FOLLOWER


def answer_in_epoch(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> Error:
    """Answer OffsetForLeaderEpoch only as the leader, and only to who is in the same epoch.

    The epoch is looked at first, then the role, as in Kafka.

    Errors: `FENCED_LEADER_EPOCH`, `UNKNOWN_LEADER_EPOCH`, `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.checkCurrentLeaderEpoch`, then the role, in `lastOffsetForLeaderEpoch` (KIP-320, since 2.1).
    """
    error = check_leader_epoch(role, claimed)
    return error if error != Error.NONE else answer_as_leader(self_id, role, claimed)


def look_up_as_released(log: Log, epoch: Epoch) -> EpochEndOffset:
    """Where `epoch` ends in a leader's log, undefined (-1, -1) for an epoch above all that the log knows.

    **Kafka:** `UnifiedLog.endOffsetForEpoch`.
    """
    return log.end_offset_for_epoch(epoch)


def look_up_within_history(log: Log, epoch: Epoch) -> EpochEndOffset:
    """As `look_up_as_released`, but undefined also for an epoch below all that the log knows.

    The follower then truncates to its high watermark, though the leader's log starts later.

    **Kafka:** `LeaderEpochFileCache.endOffsetFor`, 2.0.
    """
    end = log.end_offset_for_epoch(epoch)
    has_it = epoch == log.latest_epoch or log.epoch_at(Offset(end.end_offset - 1)) == epoch
    asked_below_all = end.leader_epoch == epoch and not has_it
    return UNDEFINED_EPOCH_END if asked_below_all else end


def look_up_end_only(log: Log, epoch: Epoch) -> EpochEndOffset:
    """As `look_up_within_history`, but the answer does not say which epoch it is that ends there.

    **Kafka:** `LeaderEpochFileCache.endOffsetFor` (KIP-101), 0.11 to 1.1.
    """
    return EpochEndOffset(NO_EPOCH, look_up_within_history(log, epoch).end_offset)


def look_up_as_designed(log: Log, epoch: Epoch) -> EpochEndOffset:
    """Where the largest epoch up to `epoch` ends in a leader's log; always defined.

    **Kafka:** the text of KIP-279. The released lookup gives the same truncation offsets once a leader notes the start
    of its own epoch (`start_leading_with_epoch_entry`).
    """
    return log.largest_epoch_up_to(epoch)


def handle_offset_for_leader_epoch(verdict: Error, end: EpochEndOffset) -> EpochEndOffsetResponse:
    """A leader's answer to "where does this epoch end in your log?".

    Parameters: the `verdict` of the protocol version's fence; the `end` that its lookup gives. An epoch that the log
    cannot place is no error: the end is then undefined.

    **Kafka:** `Partition.lastOffsetForLeaderEpoch`.
    """
    return EpochEndOffsetResponse(verdict, end if verdict == Error.NONE else UNDEFINED_EPOCH_END)


def offset_for_leader_epoch_without_log(known_topic: bool) -> EpochEndOffsetResponse:
    """The answer of a broker that has no log of the partition.

    Errors: `NOT_LEADER_OR_FOLLOWER` for a partition in its metadata (the client should look for the leader again), else
    `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `ReplicaManager.lastOffsetForLeaderEpoch`.
    """
    error = Error.NOT_LEADER_OR_FOLLOWER if known_topic else Error.UNKNOWN_TOPIC_OR_PARTITION
    return EpochEndOffsetResponse(error, UNDEFINED_EPOCH_END)
