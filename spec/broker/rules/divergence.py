"""Divergence of a follower's log from its leader's, found from the follower's fetch (KIP-595)."""

from typing import NamedTuple

from kspec.spec.broker.rules.epoch_lookup import look_up_as_released
from kspec.spec.log.algebra import Log
from kspec.spec.messages.fetch import FetchPosition, FetchResponse
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, EpochEndOffset, Error


class Divergence(NamedTuple):
    """Whether a follower's log diverges from the leader's: an error, or the offset to truncate to (undefined if it does
    not).
    """

    error: Error = Error.NONE
    end: EpochEndOffset = UNDEFINED_EPOCH_END


AGREES = Divergence()

OUT_OF_RANGE = Divergence(Error.OFFSET_OUT_OF_RANGE)


def no_divergence_check(log: Log, request: FetchPosition) -> Divergence:
    """The leader never looks for divergence before the fetch offset. **Kafka:** `Partition.readRecords` up to 2.6."""
    return AGREES


def diverges(log: Log, request: FetchPosition) -> Divergence:
    """The point where a follower's log diverges, by the epoch of its last record; undefined if the fetch names no epoch.

    Errors: `OFFSET_OUT_OF_RANGE` if the leader cannot place that epoch.

    **Kafka:** `Partition.readRecords` (KIP-595), 2.7.0 to 2.8.0.
    """
    if request.last_fetched_epoch == NO_EPOCH:
        return AGREES
    end = look_up_as_released(log, request.last_fetched_epoch)
    if end == UNDEFINED_EPOCH_END:
        return OUT_OF_RANGE
    return Divergence(Error.NONE, end) if has_parted(end, request) else AGREES


def has_parted(end: EpochEndOffset, request: FetchPosition) -> bool:
    """Whether a follower's log holds something that the leader's does not, before the offset that it fetches from.

    Parameters: the `end`, in the leader's log, of the largest epoch up to that of the follower's last record. Followers of
    partitions and of the metadata log have this rule in common.

    **Kafka:** `Partition.readRecords` (KIP-595), `RaftLog.validateOffsetAndEpoch`.
    """
    return end.leader_epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset


def diverges_within_log(log: Log, request: FetchPosition) -> Divergence:
    """As `diverges`, but a fetch from before the log's start is out of range even if the logs diverge.

    Otherwise the answer would have offsets that the follower takes for corrupt, and it would drop the partition.

    **Kafka:** `Partition.readRecords` (KAFKA-12996, since 2.8.1 and 3.0).
    """
    found = diverges(log, request)
    before_start = request.fetch_offset < log.start_offset
    return OUT_OF_RANGE if request.last_fetched_epoch != NO_EPOCH and before_start else found


def is_diverging(answer: FetchResponse) -> bool:
    """Whether an answer asks the follower to truncate. **Kafka:** `FetchResponse.isDivergingEpoch`."""
    return answer.diverging != UNDEFINED_EPOCH_END


def count_every_fetch(diverging: bool) -> bool:
    """The leader takes every fetch offset for the follower's log end, even if the follower is about to truncate.

    **Kafka:** `ReplicaManager.updateFollowerFetchState`, 2.7 and 2.8.0.
    """
    return True


def count_unless_diverging(diverging: bool) -> bool:
    """The leader takes a fetch offset for the follower's log end unless the logs diverge before it.

    **Kafka:** `Partition.fetchRecords` (KAFKA-13141, since 2.8.1 and 3.0).
    """
    return not diverging
