"""Where a follower's log parts from its leader's, as a fetch shows it (KIP-595)."""

from typing import NamedTuple

from spec.broker.rules.epoch_lookup import look_up_as_released
from spec.log.algebra import Log
from spec.messages.fetch import FetchPosition, FetchResponse
from spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, EpochEndOffset, Error


class Divergence(NamedTuple):
    """Whether a follower's last record is in the leader's log: an error, or where they part (undefined if they do not)."""

    error: Error = Error.NONE
    end: EpochEndOffset = UNDEFINED_EPOCH_END


AGREES = Divergence()

OUT_OF_RANGE = Divergence(Error.OFFSET_OUT_OF_RANGE)


def no_divergence_check(log: Log, request: FetchPosition) -> Divergence:
    """Whatever the follower holds before the fetch offset. **Kafka:** `Partition.readRecords` up to 2.6."""
    return AGREES


def diverges(log: Log, request: FetchPosition) -> Divergence:
    """Where a follower's log parts from the leader's, by the epoch of its last record; nothing is said without one.

    Errors: `OFFSET_OUT_OF_RANGE` if the leader cannot place that epoch.

    **Kafka:** `Partition.readRecords` (KIP-595), 2.7.0 to 2.8.0.
    """
    if request.last_fetched_epoch == NO_EPOCH:
        return AGREES
    end = look_up_as_released(log, request.last_fetched_epoch)
    if end == UNDEFINED_EPOCH_END:
        return OUT_OF_RANGE
    parted = end.leader_epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset
    return Divergence(Error.NONE, end) if parted else AGREES


def diverges_within_log(log: Log, request: FetchPosition) -> Divergence:
    """As `diverges`, but a fetch from before the log's start is out of range even if the logs part.

    Otherwise the follower would be told offsets that it takes for corrupt, and give up.

    **Kafka:** `Partition.readRecords` (KAFKA-12996, since 2.8.1 and 3.0).
    """
    found = diverges(log, request)
    before_start = request.fetch_offset < log.start_offset
    return OUT_OF_RANGE if request.last_fetched_epoch != NO_EPOCH and before_start else found


def is_diverging(answer: FetchResponse) -> bool:
    """Whether an answer tells the follower to truncate. **Kafka:** `FetchResponse.isDivergingEpoch`."""
    return answer.diverging != UNDEFINED_EPOCH_END


def count_every_fetch(diverging: bool) -> bool:
    """The leader takes every fetch offset for the end of the follower's log, even one that is about to be truncated.

    **Kafka:** `ReplicaManager.updateFollowerFetchState`, 2.7 and 2.8.0.
    """
    return True


def count_unless_diverging(diverging: bool) -> bool:
    """The leader takes a fetch offset for the end of the follower's log unless the logs part before it.

    **Kafka:** `Partition.fetchRecords` (KAFKA-13141, since 2.8.1 and 3.0).
    """
    return not diverging
