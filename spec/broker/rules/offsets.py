"""Offsets that a replica answers with: the latest, one found by timestamp, and the low watermark of deletions."""

from collections.abc import Sequence
from typing import NamedTuple

from kspec.spec.broker.rules.followers import Brokers, Follower
from kspec.spec.broker.rules.reading import visible_end
from kspec.spec.log.algebra import Log
from kspec.spec.messages.delete_records import TO_HIGH_WATERMARK, DeleteRecordsResponse
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import ListOffsetsResponse
from kspec.spec.metadata import is_unfenced
from kspec.spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Error, Offset


class DatedRecord(NamedTuple):
    """A record's offset and timestamp (ms)."""

    offset: Offset
    timestamp: int


def lags_behind_epoch_start(isolation: Isolation, high_watermark: Offset, epoch_start: Offset) -> Error:
    """Whether a new leader's high watermark is still below its epoch start: a client could then see offsets go back.

    Followers are not affected. Errors: `OFFSET_NOT_AVAILABLE`; before version 5 of the request `LEADER_NOT_AVAILABLE`.

    **Kafka:** `Partition.fetchOffsetForTimestamp` (KIP-207, since 2.2).
    """
    lags = isolation != Isolation.LOG_END and epoch_start > high_watermark
    return Error.OFFSET_NOT_AVAILABLE if lags else Error.NONE


def never_lags(isolation: Isolation, high_watermark: Offset, epoch_start: Offset) -> Error:
    """The latest offset is the high watermark, even of a new leader.

    **Kafka:** `Partition.fetchOffsetForTimestamp` up to 2.1.
    """
    return Error.NONE


def earliest_offset(log: Log) -> ListOffsetsResponse:
    """The start of the log, with the leader epoch in force there: of the first record, or of the next one if there is none.

    **Kafka:** `UnifiedLog.fetchOffsetByTimestamp` for the earliest timestamp, `LeaderEpochFileCache.earliestEntry`.
    """
    start, end = log.start_offset, log.end_offset
    return ListOffsetsResponse(Error.NONE, start, log.epoch_at(start) if start < end else log.latest_epoch)


def latest_offset(
    isolation: Isolation, log_end: Offset, high_watermark: Offset, last_stable: Offset, leader_epoch: Epoch, lag: Error
) -> ListOffsetsResponse:
    """The latest offset that the sender may see. `lag` is the verdict of `lags_behind_epoch_start`.

    **Kafka:** `Partition.fetchOffsetForTimestamp` for the latest timestamp.
    """
    if lag != Error.NONE:
        return ListOffsetsResponse(lag)
    return ListOffsetsResponse(Error.NONE, visible_end(isolation, log_end, high_watermark, last_stable), leader_epoch)


def first_from(records: Sequence[DatedRecord], timestamp: int) -> DatedRecord | None:
    """The first record, in order of offsets, whose timestamp (ms) is at least this; timestamps may go back in a log.

    A broker need not look at all records; it finds this one by the index of its segments.

    **Kafka:** `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`.
    """
    return next((record for record in records if record.timestamp >= timestamp), None)


def with_largest_timestamp(records: Sequence[DatedRecord]) -> DatedRecord | None:
    """The first record with the largest timestamp (KIP-734).

    **Kafka:** `UnifiedLog.fetchOffsetByTimestamp` with `MAX_TIMESTAMP`, `RecordBatch.offsetOfMaxTimestamp`.
    """
    return max(records, key=lambda record: (record.timestamp, -record.offset), default=None)


def offset_found(found: ListOffsetsResponse, fetchable_end: Offset, lag: Error) -> ListOffsetsResponse:
    """The offset of the first record at or after a timestamp, if the sender may see it; otherwise none, or the lag as an
    error.

    Parameters: the offset `found` in the whole log (`UNKNOWN_OFFSET`: none); the offset before which the sender sees
    records; the verdict of `lags_behind_epoch_start`.

    **Kafka:** `Partition.fetchOffsetForTimestamp` for any other timestamp.
    """
    if found.offset != UNKNOWN_OFFSET and found.offset < fetchable_end:
        return found
    return ListOffsetsResponse(lag)


def tells_leader_epoch(answer: ListOffsetsResponse) -> ListOffsetsResponse:
    """The answer about an offset has the leader epoch there.

    **Kafka:** `KafkaApis.handleListOffsetRequestV1AndAbove`, since 2.2 (KIP-320).
    """
    return answer


def tells_no_leader_epoch(answer: ListOffsetsResponse) -> ListOffsetsResponse:
    """The answer about an offset has no leader epoch. **Kafka:** `KafkaApis.handleListOffsetRequestV1AndAbove` up to 2.1."""
    return answer._replace(leader_epoch=NO_EPOCH)


def is_deleted(deletion: DeleteRecordsResponse, low_watermark: Offset) -> bool:
    """Whether no live replica has the deleted records any more. **Kafka:** `DelayedDeleteRecords.tryComplete`."""
    return low_watermark >= deletion.offset


def deletion_offset(requested: Offset, high_watermark: Offset) -> Offset:
    """The offset before which a client wants to delete. **Kafka:** `Partition.deleteRecordsOnLeader`."""
    return high_watermark if requested == TO_HIGH_WATERMARK else requested


def may_delete_by_policy(deletes: bool, compacts: bool) -> bool:
    """Whether clients may delete records: if `cleanup.policy` has "delete". **Kafka:** `Partition.deleteRecordsOnLeader`
    up to 4.1."""
    return deletes


def may_delete_unless_compacted(deletes: bool, compacts: bool) -> bool:
    """Whether clients may delete records: not if `cleanup.policy` is "compact" alone; the policy may be empty.

    **Kafka:** `Partition.deleteRecordsOnLeader`, since 4.2.
    """
    return deletes or not compacts


def check_deletion(leads: bool, deletion_enabled: bool, offset: Offset, high_watermark: Offset) -> Error:
    """Whether a leader deletes the records before `offset`: only committed ones, and only if the topic allows deletion.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `POLICY_VIOLATION` (`cleanup.policy`), `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `Partition.deleteRecordsOnLeader`, `UnifiedLog.maybeIncrementLogStartOffset`, since 1.1.
    """
    if not leads:
        return Error.NOT_LEADER_OR_FOLLOWER
    if not deletion_enabled:
        return Error.POLICY_VIOLATION
    return Error.NONE if 0 <= offset <= high_watermark else Error.OFFSET_OUT_OF_RANGE


def check_deletion_by_offset_first(leads: bool, deletion_enabled: bool, offset: Offset, high_watermark: Offset) -> Error:
    """As `check_deletion`, but the offset is looked at before the policy.

    **Kafka:** `Partition.deleteRecordsOnLeader`, 0.11 and 1.0.
    """
    error = check_deletion(leads, True, offset, high_watermark)
    return error if error != Error.NONE else check_deletion(leads, deletion_enabled, offset, high_watermark)


def deletes_if_allowed(error: Error) -> bool:
    """Whether records are deleted, by the answer that the client gets.

    **Kafka:** `Partition.deleteRecordsOnLeader`, since 1.1.
    """
    return error == Error.NONE


def deletes_before_asking(error: Error) -> bool:
    """As `deletes_if_allowed`, but also where the policy forbids it: the client is refused, and the records are gone.

    **Kafka:** `Partition.deleteRecordsOnLeader`, 0.11 and 1.0.
    """
    return error in (Error.NONE, Error.POLICY_VIOLATION)


def low_watermark(start_offset: Offset, followers: tuple[Follower, ...], brokers: Brokers) -> Offset:
    """The low watermark: no live replica has records below it; a deletion is answered once it reaches the requested offset.

    A live follower whose log start is unknown holds it at `UNKNOWN_OFFSET`.

    **Kafka:** `Partition.lowWatermarkIfLeader`, `DelayedDeleteRecords.tryComplete`.
    """
    live = [follower.state.start_offset for follower in followers if is_unfenced(brokers, follower.broker)]
    return min((start_offset, *live))
