"""Truncation in the published models: up to where a new follower keeps its log, in one step.

Each rule is the follower's side: it gets its own log and high watermark, and `ask`, which sends the leader "where does
this epoch end in your log?" (OffsetForLeaderEpoch) and returns the answer. The leader's side is
`answer_offset_for_leader_epoch`, behind one of three fences.
"""

from collections.abc import Callable
from typing import TypeAlias

from spec.broker.rules.fencing import check_leader_epoch
from spec.broker.rules.truncation import truncation_step
from spec.log.algebra import Log
from spec.values import NO_EPOCH, UNKNOWN_OFFSET, BrokerId, Epoch, EpochEndOffset, Error, LeaderAndIsr, Offset

Ask: TypeAlias = Callable[[Epoch], EpochEndOffset]
"""One OffsetForLeaderEpoch round trip: a leader epoch to its end in the leader's log."""


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
