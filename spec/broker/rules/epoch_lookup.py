"""The end of a leader epoch in a replica's log: the answer to OffsetForLeaderEpoch."""

from kspec.spec.log.algebra import Log
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Error, Offset


def look_up_as_released(log: Log, epoch: Epoch) -> EpochEndOffset:
    """The end of `epoch` in a leader's log; undefined (-1, -1) for an epoch above all epochs of the log.

    **Kafka:** `UnifiedLog.endOffsetForEpoch`.
    """
    return log.end_offset_for_epoch(epoch)


def look_up_within_history(log: Log, epoch: Epoch) -> EpochEndOffset:
    """As `look_up_as_released`, but also undefined for an epoch below all epochs of the log.

    The follower then truncates to its high watermark, although the leader's log starts later.

    **Kafka:** `LeaderEpochFileCache.endOffsetFor`, 2.0.
    """
    end = log.end_offset_for_epoch(epoch)
    has_it = epoch == log.latest_epoch or log.epoch_at(Offset(end.end_offset - 1)) == epoch
    asked_below_all = end.leader_epoch == epoch and not has_it
    return UNDEFINED_EPOCH_END if asked_below_all else end


def look_up_end_only(log: Log, epoch: Epoch) -> EpochEndOffset:
    """As `look_up_within_history`, but the answer does not name the epoch that ends there.

    A log without epochs answers with its end to one who names none (KAFKA-6857).

    **Kafka:** `LeaderEpochFileCache.endOffsetFor` (KIP-101), 0.11 to 1.1.
    """
    names_none = epoch == NO_EPOCH and log.latest_epoch == NO_EPOCH
    return EpochEndOffset(NO_EPOCH, log.end_offset if names_none else look_up_within_history(log, epoch).end_offset)


def look_up_as_designed(log: Log, epoch: Epoch) -> EpochEndOffset:
    """The end of the largest epoch up to `epoch` in a leader's log; always defined.

    **Kafka:** the text of KIP-279. The released lookup gives the same truncation offsets once a leader notes the start
    of its own epoch (`start_leading_with_epoch_entry`).
    """
    return log.largest_epoch_up_to(epoch)


def answer_offset_for_leader_epoch(verdict: Error, end: EpochEndOffset) -> OffsetForLeaderEpochResponse:
    """A leader's answer to "where does this epoch end in your log?".

    Parameters: the `verdict` of the release's fence; the `end` that its lookup gives. An epoch that the log cannot place is
    no error: the end is then undefined.

    **Kafka:** `Partition.lastOffsetForLeaderEpoch`.
    """
    return OffsetForLeaderEpochResponse(verdict, end if verdict == Error.NONE else UNDEFINED_EPOCH_END)


def offset_for_leader_epoch_without_log(known_topic: bool) -> OffsetForLeaderEpochResponse:
    """The answer of a broker that has no log of the partition.

    Errors: `NOT_LEADER_OR_FOLLOWER` for a partition in its metadata (the client should look for the leader again), else
    `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `ReplicaManager.lastOffsetForLeaderEpoch`.
    """
    error = Error.NOT_LEADER_OR_FOLLOWER if known_topic else Error.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetForLeaderEpochResponse(error, UNDEFINED_EPOCH_END)
