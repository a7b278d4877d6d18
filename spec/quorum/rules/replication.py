"""Replication of the metadata log: what is committed, where logs part, what is written through to the disk.

The log is that of partitions, and so is the rule by which a leader finds that a follower's log has parted from its own
(`spec.broker.rules.divergence`, asked by `spec.quorum.rules.snapshots`). The two protocols part in the high watermark: here
it is what a majority has, whoever that is; there what each member of the ISR has. So here nothing is committed of an earlier
epoch before a record of the present one is.
"""

from kspec.spec.log.algebra import Log
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.quorum.rules.snapshots import end_of_epoch
from kspec.spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, EpochEndOffset, Offset

FIRST_EPOCH = Epoch(0)
"""The epoch of a replica that knows of no election. No record is of it: the first leader has the next one."""


def last_epoch_of(log: Log) -> Epoch:
    """The epoch of a log's last record, `FIRST_EPOCH` if it has none. **Kafka:** `KafkaRaftLog.lastFetchedEpoch`."""
    return FIRST_EPOCH if log.latest_epoch == NO_EPOCH else log.latest_epoch


def truncation_offset(log: Log, snapshot: SnapshotId, end: EpochEndOffset) -> Offset:
    """The offset up to which a follower truncates when the leader's log has this largest epoch up to the one fetched.

    If it has that epoch, too, the earlier of the two ends counts. If not, its largest epoch before that one ends there, and
    it asks again.

    **Kafka:** `RaftLog.truncateToEndOffset`; for partitions `AbstractFetcherThread.getOffsetTruncationState`, where an epoch
    above all of one's own means the leader's end.
    """
    if end.leader_epoch == FIRST_EPOCH:
        return min(end.end_offset, log.end_offset)
    own = end_of_epoch(log, snapshot, end.leader_epoch)
    return min(own.end_offset, end.end_offset) if own.leader_epoch == end.leader_epoch else own.end_offset


def may_truncate(offset: Offset, high_watermark: Offset) -> bool:
    """Whether a follower truncates to an offset: never below what it knows to be committed (KAFKA-12460).

    **Kafka:** `KafkaRaftClient.handleFetchResponse`, `KafkaRaftLog.truncateTo`.
    """
    return offset >= high_watermark


# ---- the high watermark


def majority_offset(offsets: tuple[Offset, ...]) -> Offset:
    """The offset up to which a majority has the log, by the end of each voter's log; unknown ends are `UNKNOWN_OFFSET`.

    **Kafka:** `LeaderState.maybeUpdateHighWatermark`.
    """
    return sorted(offsets, reverse=True)[len(offsets) // 2]


def may_be_answered(offset: Offset, high_watermark: Offset) -> bool:
    """Whether an answer that rests on the log before an offset may leave: once all of that is committed.

    **Kafka:** `DeferredEventQueue.completeUpTo`, `QuorumController.ControllerWriteEvent`.
    """
    return offset <= high_watermark


def commits_own_epoch(offset: Offset, epoch_start: Offset) -> bool:
    """Whether a leader commits up to an offset that a majority has: only if a record of its own epoch is below it.

    A record of an earlier epoch that a majority has can still be replaced, by a leader whose last record is of a later one.

    **Kafka:** `LeaderState.maybeUpdateHighWatermark` (KAFKA-12619).
    """
    return offset > epoch_start


def unknown_at_first(high_watermark: Offset) -> Offset:
    """The high watermark of a new leader: unknown until a record of its epoch is committed.

    **Kafka:** `QuorumState.transitionToLeader`.
    """
    return UNKNOWN_OFFSET


def is_counted_if_voter(is_voter: bool) -> bool:
    """Whether a leader's own log counts for the high watermark: if it is a voter.

    **Kafka:** `LeaderState.updateLocalState`.
    """
    return is_voter


# ---- the disk


def flushes_if_voter(may_be_voter: bool) -> bool:
    """Whether a follower writes what it has fetched through to the disk, before it fetches again and so acknowledges it.

    **Kafka:** `KafkaRaftClient.appendAsFollower` (KAFKA-13884, KAFKA-17332).
    """
    return may_be_voter
