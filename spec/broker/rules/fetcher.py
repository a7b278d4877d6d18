"""A follower's fetcher: its fetch offset, its truncation, and its reaction to each answer.

One fetcher follows one partition's leader in one leader epoch. It either looks for the end of the history that it shares
with its leader (`TRUNCATING`, by OffsetForLeaderEpoch), or fetches. Since 2.8 the answer to a fetch says when to truncate.
At most one request is under way. Its answer may come when the fetcher already follows another leader.
"""

from enum import Enum
from typing import NamedTuple

from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.log.algebra import Log, LogT
from kspec.spec.log.batch import Batches
from kspec.spec.log.local_log import follower_high_watermark
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import (
    NO_EPOCH,
    NO_LEADER,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
)

NOT_DELAYED = MonotonicMs(0)


class FetchStatus(Enum):
    """The state of a fetcher. Kafka: `ReplicaState` in the fetcher, and whether the partition is in it."""

    NOT_FETCHING = "not fetching"
    FAILED = "failed"
    """Removed after an error that only new metadata can resolve. Kafka: `FailedPartitions`."""
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    FINDING_END = "finding the leader's end"
    FINDING_START = "finding the leader's start"


class FetchState(NamedTuple):
    """The fetcher of one partition. Kafka: `PartitionFetchState`.

    `leader_epoch`: the epoch in which it follows. `last_fetched_epoch`: the epoch of the record before `fetch_offset`, if it
    is known and used. `answered`: it has had a successful answer since it was started. `delayed_until`: it backs off until
    then (milliseconds).
    """

    status: FetchStatus = FetchStatus.NOT_FETCHING
    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    fetch_offset: Offset = UNKNOWN_OFFSET
    last_fetched_epoch: Epoch = NO_EPOCH
    answered: bool = False
    delayed_until: MonotonicMs = NOT_DELAYED


NOT_FETCHING = FetchState()


def is_fetching(fetcher: FetchState) -> bool:
    """Whether the fetcher has the partition. **Kafka:** `AbstractFetcherThread.fetchState` is defined."""
    return fetcher.status not in (FetchStatus.NOT_FETCHING, FetchStatus.FAILED)


# ---- starting


class Start(NamedTuple):
    """The start of a new follower: the offset to which it truncates at once, then the first state of its fetcher."""

    kept_end: Offset
    status: FetchStatus
    fetch_offset: Offset
    last_fetched_epoch: Epoch = NO_EPOCH


def start_at_high_watermark(log: Log, high_watermark: Offset) -> Start:
    """Keep the log below the high watermark, and fetch on from there. **Kafka:** `makeFollowers` up to 0.10."""
    kept = min(high_watermark, log.end_offset)
    return Start(kept, FetchStatus.FETCHING, kept)


def start_by_asking(log: Log, high_watermark: Offset) -> Start:
    """Keep everything, and ask where the last epoch ends; without an answer truncate to the high watermark.

    **Kafka:** `AbstractFetcherThread.addPartitions`, `isTruncatingLog` (KIP-101), 0.11 to 2.7.
    """
    return Start(log.end_offset, FetchStatus.TRUNCATING, high_watermark)


def start_by_fetching(log: Log, high_watermark: Offset) -> Start:
    """Keep everything and fetch from the end, naming the last epoch; as `start_by_asking` if there is none.

    **Kafka:** `ReplicaManager.initialFetchOffset`, `AbstractFetcherThread.partitionFetchState` (KIP-595, since 2.8).
    """
    if log.latest_epoch == NO_EPOCH:
        return start_by_asking(log, high_watermark)
    return Start(log.end_offset, FetchStatus.FETCHING, log.end_offset, log.latest_epoch)


def restarts_with_leader(leader_before: BrokerId, epoch_before: Epoch, leader: BrokerId, epoch: Epoch) -> bool:
    """Whether a follower restarts its fetcher: only if another broker leads, in any epoch.

    If the leader was deposed and elected again in between, it may have lost records that the follower holds.

    **Kafka:** `Partition.makeFollower` up to 2.0.
    """
    return leader != leader_before


def restarts_with_epoch(leader_before: BrokerId, epoch_before: Epoch, leader: BrokerId, epoch: Epoch) -> bool:
    """Whether a follower restarts its fetcher: in every new leader epoch, even of the same leader.

    **Kafka:** `Partition.makeFollower` (KAFKA-7395, since 2.1).
    """
    return epoch > epoch_before


def started(fetcher: FetchState, leader: BrokerId, leader_epoch: Epoch, start: Start) -> FetchState:
    """The fetcher after an announcement that `leader` leads; unchanged if it follows in that epoch already.

    **Kafka:** `AbstractFetcherThread.addPartitions`, `partitionFetchState`.
    """
    if is_fetching(fetcher) and fetcher.leader_epoch == leader_epoch:
        return fetcher
    return FetchState(start.status, leader, leader_epoch, start.fetch_offset, start.last_fetched_epoch)


# ---- what it asks


def name_no_epoch(fetcher: FetchState) -> FetchPosition:
    """A fetch by offset alone. **Kafka:** `ReplicaFetcherThread.buildFetchRequest` up to 2.0."""
    return FetchPosition(NO_EPOCH, fetcher.fetch_offset, NO_EPOCH)


def name_leader_epoch(fetcher: FetchState) -> FetchPosition:
    """A fetch that names the epoch in which the follower follows. **Kafka:** KIP-320, 2.1 to 2.7."""
    return FetchPosition(fetcher.leader_epoch, fetcher.fetch_offset, NO_EPOCH)


def name_both_epochs(fetcher: FetchState) -> FetchPosition:
    """A fetch that also names the epoch of the follower's last record. **Kafka:** KIP-595, since 2.8."""
    return FetchPosition(fetcher.leader_epoch, fetcher.fetch_offset, fetcher.last_fetched_epoch)


# ---- truncating


def needs_no_answer(fetcher: FetchState, log: Log) -> bool:
    """Whether a truncating follower cannot ask: its log has no epoch, so it truncates to the high watermark.

    **Kafka:** `AbstractFetcherThread.fetchTruncatingPartitions`, `truncateToHighWatermark`, since 2.1 (KAFKA-6859).
    """
    return fetcher.status == FetchStatus.TRUNCATING and log.latest_epoch == NO_EPOCH


def always_needs_answer(fetcher: FetchState, log: Log) -> bool:
    """A truncating follower asks its leader even if its log has no epoch: about the epoch -1.

    **Kafka:** `ReplicaFetcherThread.buildLeaderEpochRequest` up to 2.0.
    """
    return False


class Truncation(NamedTuple):
    """Truncate to `offset`; then the fetcher is in this status, with the latest epoch of the truncated log."""

    offset: Offset
    status: FetchStatus


def truncation_by_answer(fetcher: FetchState, log: Log, end: EpochEndOffset) -> Truncation:
    """The truncation of a follower that asks, by an epoch's end in its leader's log: it asks until it has found the end.

    **Kafka:** `AbstractFetcherThread.getOffsetTruncationState`, `updateFetchOffsetAndMaybeMarkTruncationComplete`.
    """
    step = truncation_step(log, fetcher.fetch_offset, end)
    return Truncation(step.offset, FetchStatus.FETCHING if step.complete else FetchStatus.TRUNCATING)


def truncation_and_fetch(fetcher: FetchState, log: Log, end: EpochEndOffset) -> Truncation:
    """As `truncation_by_answer`, except that the next fetch will show whether more has to be truncated.

    **Kafka:** `updateFetchOffsetAndMaybeMarkTruncationComplete` with `isTruncationOnFetchSupported`, since 2.8.
    """
    return Truncation(truncation_step(log, fetcher.fetch_offset, end).offset, FetchStatus.FETCHING)


def after_truncation(fetcher: FetchState, truncation: Truncation, log: Log) -> FetchState:
    """The fetcher after its log has been truncated to `log`.

    **Kafka:** `AbstractFetcherThread.updateFetchOffsetAndMaybeMarkTruncationComplete`.
    """
    return fetcher._replace(status=truncation.status, fetch_offset=truncation.offset, last_fetched_epoch=log.latest_epoch)


class PendingFetch(NamedTuple):
    """The leader epoch and fetch offset of a request under way."""

    leader_epoch: Epoch
    fetch_offset: Offset = UNKNOWN_OFFSET


def may_truncate_by(fetcher: FetchState, asked_in: Epoch) -> bool:
    """Whether an answer about the end of an epoch still counts: the fetcher follows in the epoch in which it asked.

    **Kafka:** `AbstractFetcherThread.truncateToEpochEndOffsets`, since 2.2 (KAFKA-7786).
    """
    return may_truncate_by_any(fetcher, asked_in) and fetcher.leader_epoch == asked_in


def may_truncate_by_any(fetcher: FetchState, asked_in: Epoch) -> bool:
    """Whether an answer about the end of an epoch still counts: also one that was asked for in an earlier epoch.

    It may be the answer of an earlier leader.

    **Kafka:** `AbstractFetcherThread.maybeTruncate` up to 2.1.
    """
    return fetcher.status == FetchStatus.TRUNCATING


# ---- fetching: which answers count


def takes_same_offset(fetcher: FetchState, offset: Offset, asked_in: Epoch) -> bool:
    """Whether an answer to a fetch counts: the fetcher is still at the offset of the request, truncating or fetching.

    **Kafka:** `AbstractFetcherThread.processFetchRequest` up to 1.0.
    """
    return is_fetching(fetcher) and fetcher.fetch_offset == offset


def takes_same_offset_when_ready(fetcher: FetchState, offset: Offset, asked_in: Epoch) -> bool:
    """As `takes_same_offset`, and it is fetching; the epoch of the request does not matter (KAFKA-18991).

    **Kafka:** `AbstractFetcherThread.processFetchRequest`, 1.1 to 3.9.0, and 4.0.0.
    """
    return fetcher.status == FetchStatus.FETCHING and fetcher.fetch_offset == offset


def takes_same_epoch(fetcher: FetchState, offset: Offset, asked_in: Epoch) -> bool:
    """As `takes_same_offset_when_ready`, and it follows in the epoch in which it asked.

    **Kafka:** `AbstractFetcherThread.processFetchRequest` (KAFKA-18991, in 3.9.1, and since 4.0.1).
    """
    return takes_same_offset_when_ready(fetcher, offset, asked_in) and fetcher.leader_epoch == asked_in


# ---- fetching: what is taken from an answer


def take_all(records: Batches, leader_epoch: Epoch) -> Batches:
    """All records of an answer. **Kafka:** `UnifiedLog.appendAsFollower` up to 3.9.0."""
    return records


def take_up_to_epoch(records: Batches, leader_epoch: Epoch) -> Batches:
    """The batches of an answer before the first of a later epoch than the follower's.

    The sender may have lost its leadership before the answer's records were read from the log file.

    **Kafka:** `UnifiedLog.appendAsFollower`, `hasHigherPartitionLeaderEpoch` (KAFKA-18723, in 3.9.1, and since 4.0.1).
    """
    later = [position for position, batch in enumerate(records) if batch.leader_epoch > leader_epoch]
    return records[: later[0]] if later else records


def keep_last_epoch_if_empty(fetcher: FetchState, records: Batches) -> Epoch:
    """The last fetched epoch after an answer: the epoch of its last record, or as before if it has none.

    **Kafka:** `AbstractFetcherThread.processFetchRequest` up to 3.5, and since 3.7 (KAFKA-15510).
    """
    return records[-1].leader_epoch if records else fetcher.last_fetched_epoch


def forget_last_epoch_if_first_is_empty(fetcher: FetchState, records: Batches) -> Epoch:
    """As `keep_last_epoch_if_empty`, except that a first answer without records clears it.

    The next fetch then names no epoch, and a divergence stays unseen (KAFKA-15510).

    **Kafka:** `AbstractFetcherThread.processFetchRequest`, 3.6.0.
    """
    return NO_EPOCH if not records and not fetcher.answered else keep_last_epoch_if_empty(fetcher, records)


def after_records(fetcher: FetchState, end_offset: Offset, last_fetched_epoch: Epoch) -> FetchState:
    """The fetcher after the records of an answer have been appended to the log, which now ends at `end_offset`.

    **Kafka:** `AbstractFetcherThread.processFetchRequest`.
    """
    return fetcher._replace(fetch_offset=end_offset, last_fetched_epoch=last_fetched_epoch, answered=True)


def keep_high_watermark(log: LogT, high_watermark: Offset, leaders_high_watermark: Offset) -> Offset:
    """The high watermark of a follower that is told to truncate: as it was. **Kafka:** KAFKA-14704, since 3.5."""
    return high_watermark


def take_high_watermark_first(log: LogT, high_watermark: Offset, leaders_high_watermark: Offset) -> Offset:
    """The high watermark of a follower that is told to truncate: its leader's, even over records that the leader does not
    have.

    **Kafka:** `ReplicaFetcherThread.processPartitionData` before the truncation, 2.8 to 3.4.
    """
    return follower_high_watermark(log, leaders_high_watermark)


# ---- errors


class OnError(Enum):
    """Reaction of a fetcher to an error."""

    FAIL = "fail"
    """Drop the partition until new metadata adds it again."""

    BACK_OFF = "back off"
    """Try again after `replica.fetch.backoff.ms`."""

    FIND_OFFSET = "find offset"
    """Ask the leader where its log ends and starts."""


def on_fetch_error(fetcher: FetchState, error: Error, asked_in: Epoch) -> OnError:
    """The reaction to a refused fetch, or to a refused question about epochs or offsets.

    If the fetcher is fenced in the epoch in which it still follows, only new metadata can help. Otherwise one of the two
    brokers lags behind.

    **Kafka:** `AbstractFetcherThread.processFetchRequest`, `onPartitionFenced`.
    """
    if error == Error.OFFSET_OUT_OF_RANGE:
        return OnError.FIND_OFFSET
    fenced = error == Error.FENCED_LEADER_EPOCH and asked_in == fetcher.leader_epoch
    return OnError.FAIL if fenced else OnError.BACK_OFF


def failed(fetcher: FetchState) -> FetchState:
    """The fetcher without the partition, until new metadata adds it. **Kafka:** `markPartitionFailed`."""
    return NOT_FETCHING._replace(status=FetchStatus.FAILED)


def backing_off(fetcher: FetchState, until: MonotonicMs) -> FetchState:
    """The fetcher with a back-off; a running back-off is not extended.

    **Kafka:** `AbstractFetcherThread.delayPartitions`.
    """
    return fetcher if fetcher.delayed_until != NOT_DELAYED else fetcher._replace(delayed_until=until)


def awake(fetcher: FetchState, now: MonotonicMs) -> FetchState:
    """The fetcher at time `now`, without a back-off that is over. **Kafka:** `PartitionFetchState.isDelayed`."""
    if fetcher.delayed_until == NOT_DELAYED:
        return fetcher
    return fetcher._replace(delayed_until=NOT_DELAYED) if fetcher.delayed_until <= now else fetcher


# ---- fetch offset out of the leader's range


class Reset(NamedTuple):
    """The next step of a fetcher whose fetch offset was outside its leader's log.

    It truncates the log to `offset`; or, with `restarted`, deletes all of it and starts at `offset`; or asks where the
    leader's log starts (`finding_start`).
    """

    offset: Offset
    restarted: bool = False
    finding_start: bool = False


def reset_by_leader_end(log: Log, leader_end: Offset) -> Reset:
    """If the leader's log is shorter, truncate to its end, without comparing epochs; otherwise ask where it starts.

    After an unclean election the two may hold different records below that offset.

    **Kafka:** `AbstractFetcherThread.fetchOffsetAndTruncate`.
    """
    return Reset(leader_end) if leader_end < log.end_offset else Reset(log.end_offset, finding_start=True)


def reset_by_leader_start(log: Log, leader_start: Offset) -> Reset:
    """If the leader's log starts after the follower's end, restart the log there; otherwise fetch on from the end.

    **Kafka:** `AbstractFetcherThread.fetchOffsetAndTruncate`.
    """
    lost = leader_start > log.end_offset
    return Reset(max(leader_start, log.end_offset), restarted=lost)


def after_reset(fetcher: FetchState, reset: Reset, log: Log) -> FetchState:
    """The fetcher after its log has been changed as `reset` says.

    **Kafka:** `AbstractFetcherThread.handleOutOfRangeError`.
    """
    if reset.finding_start:
        return fetcher._replace(status=FetchStatus.FINDING_START)
    return fetcher._replace(
        status=FetchStatus.FETCHING, fetch_offset=reset.offset, last_fetched_epoch=log.latest_epoch, answered=True
    )
