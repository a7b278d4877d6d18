"""A replica's log together with its high watermark: the operations that keep both consistent.

Always: log start offset <= high watermark <= log end offset. Kafka: `UnifiedLog`.
"""

from typing import Generic, NamedTuple

from kspec.spec.log.algebra import Log, LogT
from kspec.spec.log.batch import Batches, count_records
from kspec.spec.values import Error, Offset


class LocalLog(NamedTuple, Generic[LogT]):
    """A log and the high watermark (offset) that its broker knows. Kafka: `UnifiedLog`."""

    log: LogT
    high_watermark: Offset = Offset(0)


class AppendOutcome(NamedTuple, Generic[LogT]):
    """The outcome of an append: an error and the log as it was, or the log with the batches.

    `restarted_at`: the offset at which the log had to be emptied and restarted first, if `restarted`.
    """

    error: Error
    local: LocalLog[LogT]
    restarted: bool = False


def append_in_order(local: LocalLog[LogT], base_offset: Offset, batches: Batches) -> AppendOutcome[LogT]:
    """The log with batches that a leader sent, the first of which lies at `base_offset`, not before the log's end.

    A gap before them is allowed, because the leader's log may have been compacted.

    Errors: `UNEXPECTED_APPEND_OFFSET`.

    **Kafka:** `UnifiedLog.appendAsFollower`.
    """
    if not batches:
        return AppendOutcome(Error.NONE, local)
    if base_offset < local.log.end_offset:
        return AppendOutcome(Error.UNEXPECTED_APPEND_OFFSET, local)
    return AppendOutcome(Error.NONE, LocalLog(local.log.append_at(base_offset, batches), local.high_watermark))


def append_fetched(local: LocalLog[LogT], base_offset: Offset, batches: Batches) -> AppendOutcome[LogT]:
    """A follower's log with the batches that its leader sent.

    As `append_in_order`, except when the follower's log is empty and its end lies within the batches. Then the log restarts
    with them, *before* its old start: a leader sends whole batches, and its log may start inside one.

    Errors: `UNEXPECTED_APPEND_OFFSET` if it has some of the records already.

    **Kafka:** `Partition.appendRecordsToFollowerOrFutureReplica`, since 2.0 (KAFKA-6975); before, `append_in_order` alone.
    """
    appended, log = append_in_order(local, base_offset, batches), local.log
    is_empty = log.start_offset == log.end_offset
    if appended.error == Error.NONE or not is_empty or base_offset + count_records(batches) <= log.end_offset:
        return appended
    return AppendOutcome(Error.NONE, LocalLog(log.restart_at(base_offset).append(batches), base_offset), restarted=True)


def truncate(local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
    """The log up to `offset`, and without an opened epoch that has no record, even if it ends there already.

    The offset may be below the log start, and below the high watermark, which then goes back to it.

    **Kafka:** `UnifiedLog.truncateTo` (KAFKA-10706, since 2.6.1 and 2.7).
    """
    log = local.log.truncate_to(offset)
    return LocalLog(log, high_watermark_after_truncation(local.high_watermark, log.end_offset))


def truncate_if_longer(local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
    """The log up to `offset`; a log that ends there or before keeps even an opened epoch that has no record.

    The follower then asks about that epoch for ever, and never truncates anything.

    **Kafka:** `Log.truncateTo` up to 2.6.0.
    """
    return local if offset >= local.log.end_offset else truncate(local, offset)


def restart(local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
    """An empty log from `offset` on; the high watermark becomes `offset`, even if it was lower.

    **Kafka:** `UnifiedLog.truncateFullyAndStartAt`, since 2.4.1 and 2.5 (KAFKA-9491).
    """
    return LocalLog(local.log.restart_at(offset), offset)


def restart_below_start(local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
    """An empty log from `offset` on; the high watermark stays where it was, below the log's start, until the next fetch.

    **Kafka:** `Log.truncateFullyAndStartAt` up to 2.4.0. **Leaves out:** up to 2.3 it stays even above the log's end.
    """
    return LocalLog(local.log.restart_at(offset), high_watermark_after_truncation(local.high_watermark, offset))


class LogStartOutcome(NamedTuple, Generic[LogT]):
    """The outcome of moving the log start: an error and the log as it was, or the log from the new start on."""

    error: Error
    local: LocalLog[LogT]


def move_start(local: LocalLog[LogT], offset: Offset) -> LogStartOutcome[LogT]:
    """The log without the records before `offset`; unchanged if it starts there or later.

    Errors: `OFFSET_OUT_OF_RANGE` for an offset above the high watermark: only committed records are deleted.

    **Kafka:** `UnifiedLog.maybeIncrementLogStartOffset`.
    """
    if offset > local.high_watermark:
        return LogStartOutcome(Error.OFFSET_OUT_OF_RANGE, local)
    if offset <= local.log.start_offset:
        return LogStartOutcome(Error.NONE, local)
    return LogStartOutcome(Error.NONE, local._replace(log=local.log.start_at(offset)))


def raise_high_watermark(local: LocalLog[LogT], high_watermark: Offset) -> LocalLog[LogT]:
    """The log with a leader's new high watermark, never a lower one. **Kafka:** `UnifiedLog.maybeIncrementHighWatermark`."""
    assert high_watermark <= local.log.end_offset, f"high watermark {high_watermark} beyond the end {local.log.end_offset}"
    return LocalLog(local.log, max(local.high_watermark, high_watermark))


def set_high_watermark(local: LocalLog[LogT], high_watermark: Offset) -> LocalLog[LogT]:
    """The log with another high watermark, kept within the log; it may be lower than before.

    **Kafka:** `UnifiedLog.updateHighWatermark`, `maybeUpdateHighWatermark`.
    """
    return local._replace(high_watermark=follower_high_watermark(local.log, high_watermark))


class ReadOutcome(NamedTuple):
    """The outcome of a read: an error, or the visible records from the offset on, in batches."""

    error: Error
    records: Batches = ()


def read(log: Log, offset: Offset, visible_end: Offset, max_records: int) -> ReadOutcome:
    """At most `max_records` records from `offset` on that lie before `visible_end`; none if `offset` is not before it.

    Errors: `OFFSET_OUT_OF_RANGE` outside the log.

    **Kafka:** `LocalLog.read`.
    """
    error = check_fetch_offset(log, offset)
    if error != Error.NONE or offset >= visible_end:
        return ReadOutcome(error)
    return ReadOutcome(error, log.read(offset, min(max_records, visible_end - offset)))


def retention_offset(local: LocalLog[LogT], wanted: Offset) -> Offset:
    """The offset up to which retention deletes when time or size would allow `wanted`: only committed records are deleted.

    **Kafka:** `UnifiedLog.deletableSegments`. **Leaves out:** that Kafka deletes whole segments, the active one
    only when all of it may go.
    """
    return max(local.log.start_offset, min(wanted, local.high_watermark))


def check_fetch_offset(log: Log, fetch_offset: Offset) -> Error:
    """Whether a log can be read from an offset on: an offset from its start to its end, where a read gives no records.

    Errors: `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `LocalLog.read`.
    """
    return Error.NONE if log.start_offset <= fetch_offset <= log.end_offset else Error.OFFSET_OUT_OF_RANGE


def follower_high_watermark(log: Log, high_watermark: Offset) -> Offset:
    """A follower's high watermark: that of its leader, kept between its own log's start and end (offsets).

    **Kafka:** `ReplicaFetcherThread.processPartitionData`, `UnifiedLog.maybeUpdateHighWatermark`.
    """
    return max(log.start_offset, min(high_watermark, log.end_offset))


def high_watermark_after_truncation(high_watermark: Offset, end_offset: Offset) -> Offset:
    """The high watermark never exceeds the log end (offsets). **Kafka:** `UnifiedLog.truncateTo`."""
    return min(high_watermark, end_offset)


def high_watermark_from_checkpoint(log: Log, checkpointed: Offset) -> Offset:
    """The high watermark of a replica that has just opened its log: the checkpointed one, kept within the log.

    A replica that is not in the file counts as 0.

    **Kafka:** `Partition.createLog`, `UnifiedLog.updateHighWatermark`.
    """
    return follower_high_watermark(log, checkpointed)
