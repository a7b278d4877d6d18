"""Refusals of a producer's batches because of the records in them, and the form in which other batches are stored.

The header of a batch is judged in `batches`. A reader goes through the records and says what it has found; nothing else
about records is asked here.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from kspec.spec.broker.clients.batches import BatchLimits, ReceivedBatch
from kspec.spec.log.found_records import FoundRecord, ReaderEnding, RecordsFound
from kspec.spec.values import NO_TIMESTAMP, Error, TimestampMs

UNCOMPRESSED = 0

MOST_REWRITTEN = 1 << 18
"""The most records of a batch that is written anew. Only one that becomes far larger than it was sent has more."""


class RecordFault(Enum):
    """Fault of a record: it needs a key, its timestamp is too far off, or its producer set the broker's kind of it."""

    NO_KEY = "no key"
    TIMESTAMP_OUT_OF_RANGE = "timestamp out of range"
    STAMPED_BY_PRODUCER = "stamped by its producer"


def stored_codec(codec: int, wanted: int | None) -> int:
    """The codec that a batch is stored in. `wanted`: that of the topic, none for the producer's.

    **Kafka:** `compression.type`, `BrokerCompressionType.targetCompression`.
    """
    return codec if wanted is None else wanted


def is_skimmed(codec: int, wanted: int | None) -> bool:
    """Whether a broker passes over the keys, values and headers of the records, and over the lengths of the records.

    It does so where records are compressed and stay as they are.

    **Kafka:** `LogValidator.validateMessagesAndAssignOffsetsCompressed`, `DefaultRecordBatch.skipKeyValueIterator`.
    """
    return codec != UNCOMPRESSED and stored_codec(codec, wanted) == codec


def _stamped_as_one(batch: ReceivedBatch, found: RecordsFound) -> RecordsFound:
    """The records of a batch that says they all have the time of its header. **Kafka:** `RecordIterator.logAppendTime`."""
    if not batch.stamped:
        return found
    without = found.record_count if batch.max_timestamp == NO_TIMESTAMP else 0
    return found._replace(without_time=without, oldest=batch.max_timestamp, newest=batch.max_timestamp)


def check_reading(found: RecordsFound) -> Error:
    """Whether the records of a batch could be read to their end.

    Errors: `INVALID_RECORD` for what is malformed, `UNKNOWN_SERVER_ERROR` for what is unreadable.

    **Kafka:** `DefaultRecordBatch.RecordIterator.next`, `DefaultRecord.readFrom`, `readPartiallyFrom`, whose
    `InvalidRecordException` is an answer, and whose other exceptions are none.
    """
    if found.reading == ReaderEnding.MALFORMED:
        return Error.INVALID_RECORD
    return Error.UNKNOWN_SERVER_ERROR if found.reading == ReaderEnding.UNREADABLE else Error.NONE


def check_record_lengths(found: RecordsFound, limits: BatchLimits) -> Error:
    """Whether the records of a compressed batch say that they are as long as the topic allows (bytes).

    What a record says is not compared with what it is, where the records are skimmed.

    Errors: `INVALID_RECORD`.

    **Kafka:** `max.decompressed.message.bytes`, `DefaultRecord.readFrom`, `readPartiallyFrom`, since 4.4.
    """
    return Error.NONE if 0 <= found.shortest <= found.longest <= limits.max_decompressed else Error.INVALID_RECORD


def may_have_faults(batch: ReceivedBatch, found: RecordsFound, limits: BatchLimits, now: TimestampMs) -> bool:
    """Whether a record of a batch may be refused by `record_fault`: if not, nobody has to look at them one by one.

    A batch that says its timestamps are the broker's is always looked at; no client sends one.

    `now`: the broker's time in ms.
    """
    if (limits.compacted and found.without_key) or batch.stamped:
        return True
    return limits.create_time and (_is_too_far(found.oldest, limits, now) or _is_too_far(found.newest, limits, now))


def _is_too_far(timestamp: int, limits: BatchLimits, now: TimestampMs) -> bool:
    if timestamp == NO_TIMESTAMP:
        return False
    return now - timestamp > limits.before_max or timestamp - now > limits.after_max


def record_fault(batch: ReceivedBatch, record: FoundRecord, limits: BatchLimits, now: TimestampMs) -> RecordFault | None:
    """The reason to refuse a record; none if it is not refused. A missing key counts before a timestamp.

    `now`: the broker's time in ms. A record without a timestamp passes, and so does one of a topic whose broker sets the
    timestamps.

    **Kafka:** `LogValidator.validateRecord`, `validateKey`, `validateTimestamp`. **Leaves out:** that Java's difference of
    times wraps at 64 bits, so that one timestamp of 2^64 passes there.
    """
    if limits.compacted and not record.has_key:
        return RecordFault.NO_KEY
    timestamp = batch.max_timestamp if batch.stamped else record.timestamp
    if limits.create_time and timestamp != NO_TIMESTAMP:
        return RecordFault.TIMESTAMP_OUT_OF_RANGE if _is_too_far(timestamp, limits, now) else None
    return RecordFault.STAMPED_BY_PRODUCER if batch.stamped else None


def error_of_faults(faults: Iterable[RecordFault]) -> Error:
    """The error of a batch in which records are refused; none is stored, and the answer names all of them.

    Errors: `INVALID_TIMESTAMP` if one is refused for its timestamp, else `INVALID_RECORD`.

    **Kafka:** `LogValidator.processRecordErrors`.
    """
    kinds = set(faults)
    if not kinds:
        return Error.NONE
    return Error.INVALID_RECORD if kinds == {RecordFault.NO_KEY} else Error.INVALID_TIMESTAMP


class RecordsChecked(NamedTuple):
    """Whether the records of a batch are taken, and those that are refused, each with its fault."""

    error: Error
    refused: tuple[tuple[FoundRecord, RecordFault], ...] = ()


def check_records(
    batch: ReceivedBatch,
    found: RecordsFound,
    limits: BatchLimits,
    now: TimestampMs,
    records: Callable[[], Iterable[FoundRecord]],
) -> RecordsChecked:
    """Whether a leader takes a batch whose header is right, from what is in it.

    Parameters: what a reader found in it; the broker's time in ms; `records` gives the records one by one, and is asked only
    if one of them may be refused.

    Errors: those of `check_reading`, `check_record_lengths`, `error_of_faults`, `check_rewriting`, in this order.

    **Kafka:** `LogValidator.validateMessagesAndAssignOffsets`.
    """
    error = check_reading(found)
    if error == Error.NONE and batch.codec != UNCOMPRESSED:
        error = check_record_lengths(found, limits)
    if error != Error.NONE:
        return RecordsChecked(error)
    if may_have_faults(batch, found, limits, now):
        judged = ((record, record_fault(batch, record, limits, now)) for record in records())
        refused = tuple((record, fault) for record, fault in judged if fault is not None)
        if refused:
            return RecordsChecked(error_of_faults(fault for _, fault in refused), refused)
    return RecordsChecked(check_rewriting(batch, found, limits))


def check_rewriting(batch: ReceivedBatch, found: RecordsFound, limits: BatchLimits) -> Error:
    """Whether a batch can be stored: as it is, or its records written anew in the topic's codec.

    Compressed records whose offsets do not count from 0 would have to be written anew, but a broker has passed over what is
    in them (`is_skimmed`). A timestamp below -1 cannot be written. The offsets of records that are not compressed do not
    matter. **Leaves out:** that Kafka writes more than `MOST_REWRITTEN` records anew, as far as its memory goes.

    Errors: `UNKNOWN_SERVER_ERROR`.

    **Kafka:** `LogValidator.buildRecordsAndAssignOffsets`, for which `PartialDefaultRecord.key` and
    `MemoryRecordsBuilder.appendWithOffset` throw what is no answer.
    """
    if is_rewritten(batch, limits):
        too_old = _stamped_as_one(batch, found).oldest < NO_TIMESTAMP
        return Error.UNKNOWN_SERVER_ERROR if too_old or found.record_count > MOST_REWRITTEN else Error.NONE
    skimmed = batch.codec != UNCOMPRESSED
    return Error.UNKNOWN_SERVER_ERROR if skimmed and not found.consecutive else Error.NONE


def is_rewritten(batch: ReceivedBatch, limits: BatchLimits) -> bool:
    """Whether the records are written anew, with offsets that count from 0, in the topic's codec.

    **Kafka:** `LogValidator.validateMessagesAndAssignOffsetsCompressed`, where `inPlaceAssignment` is false.
    """
    return stored_codec(batch.codec, limits.stored_codec) != batch.codec


def check_stored_size(size: int, rewritten: bool, limits: BatchLimits) -> Error:
    """Whether a batch as it will be stored is small enough (bytes): the topic's limit once more, if it was written anew.

    Errors: `MESSAGE_TOO_LARGE`; `RECORD_LIST_TOO_LARGE` for more than a segment has room for.

    **Kafka:** `UnifiedLog.append`.
    """
    if rewritten and size > limits.max_size:
        return Error.MESSAGE_TOO_LARGE
    return Error.RECORD_LIST_TOO_LARGE if size > limits.segment_size else Error.NONE


class StoredTimes(NamedTuple):
    """The times in the header of a stored batch: whether the broker has set them, and the newest one (ms)."""

    stamped: bool
    max_timestamp: int


def stored_times(batch: ReceivedBatch, found: RecordsFound, limits: BatchLimits, now: TimestampMs) -> StoredTimes:
    """The times that a batch is stored with: those of its records, whatever its header said, or the broker's (`now`, ms).

    **Kafka:** `DefaultRecordBatch.setMaxTimestamp`, called by `LogValidator`.
    """
    if not limits.create_time:
        return StoredTimes(True, now)
    return StoredTimes(False, max(_stamped_as_one(batch, found).newest, NO_TIMESTAMP))
