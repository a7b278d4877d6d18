"""Refusals of a producer's record batches, from the batches' headers alone. For their records, see `records`."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kspec.spec.broker.rules.produce import check_required_acks
from kspec.spec.values import NO_PRODUCER_ID, UNKNOWN_OFFSET, Error, Offset, ProducerEpoch, ProducerId

MAGIC = 2
"""The only format of batches that producers may send. Kafka: `RecordBatch.MAGIC_VALUE_V2`."""

LEAST_LENGTH = 14
"""The least value of a batch's length field, in bytes. Kafka: `LegacyRecord.RECORD_OVERHEAD_V0`."""

ZSTD = 4
CODECS = 5
"""Codecs are numbered from 0 (none) to 4 (zstd). Kafka: `CompressionType`."""

FIRST_VERSION_WITH_ZSTD = 7


class ReceivedBatch(NamedTuple):
    """The first batch in the records of a produce request, as its header says.

    `record_count` and `last_offset_delta` both say how many records there are. `more`: another batch follows. Sizes are
    in bytes, times in ms. `intact`: its checksum is right. `stamped`: it says that its timestamps are those of its append.
    `behind` is the error of bytes behind it that are no batch. Kafka: `DefaultRecordBatch`.
    """

    size: int
    magic: int
    base_offset: int
    last_offset_delta: int
    record_count: int
    codec: int
    control: bool
    transactional: bool
    producer_id: ProducerId
    base_sequence: int
    max_timestamp: int
    intact: bool
    more: bool
    stamped: bool = False
    behind: Error = Error.NONE


class ProduceTerms(NamedTuple):
    """Fields of a produce request for all its batches: its version, its acks, and whether it names a transactional id."""

    version: int
    acks: int
    has_transactional_id: bool


class BatchLimits(NamedTuple):
    """Limits of a topic: the size of a batch in bytes, and how old and how far ahead a timestamp may be in ms.

    `create_time`: whether timestamps are the producer's; those that the broker sets are not checked. `compacted`: whether
    records need keys. `stored_codec`: the codec of stored batches, none for the producer's. `segment_size`: of a file of the
    log, in bytes. `max_decompressed`: of a record that was compressed, in bytes. **Kafka:** `max.message.bytes`,
    `message.timestamp.before.max.ms`, `message.timestamp.after.max.ms`, `message.timestamp.type`, `cleanup.policy`,
    `compression.type`, `segment.bytes`, `max.decompressed.message.bytes`.
    """

    max_size: int
    before_max: int
    after_max: int
    create_time: bool = True
    compacted: bool = False
    stored_codec: int | None = None
    segment_size: int = 2**31 - 1
    max_decompressed: int = 2**31 - 9


class Framing(NamedTuple):
    """The beginning of a partition's records in a produce request.

    `length`: the first batch's length field in bytes, `None` if there are too few bytes to have one. `whole`: whether the
    records have as many bytes as it says. `transactional`: what the batch's attributes say.
    """

    length: int | None
    magic: int
    whole: bool
    transactional: bool


LARGEST_LENGTH = 2**31 - 1 - 12
"""The largest length (bytes) with which the size of a batch is still a 32-bit number."""

LEAST_HEADER = 51
"""The bytes of a batch up to its producer id, which a broker reads before it looks at the size."""


def check_all_framings(framings: Iterable[Framing], has_transactional_id: bool) -> Error:
    """The error of a whole produce request, for all its partitions, from how their records begin, in their order.

    A broker looks for a transactional batch first, and so meets bytes that are no batch at all; those behind the first
    transactional batch are not looked at.

    Errors: `CORRUPT_MESSAGE`; `UNKNOWN_SERVER_ERROR` for a length that is no size; `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`
    for a transactional batch in a request without a transactional id.

    **Kafka:** `RequestUtils.hasTransactionalRecords`, asked first by `KafkaApis.handleProduceRequest`.
    """
    for framing in framings:
        error = check_begin(framing.length, framing.magic)
        if error != Error.NONE:
            return error
        if framing.transactional and framing.whole and framing.magic == MAGIC:
            return Error.NONE if has_transactional_id else Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return Error.NONE


def check_begin(length: int | None, magic: int) -> Error:
    """Whether the bytes of a batch's length and magic are those of a batch. Too few bytes to say are no error.

    Errors: `CORRUPT_MESSAGE` for a length that no batch has, and for a magic that never was; `UNKNOWN_SERVER_ERROR` for a
    length that is no size.

    **Kafka:** `ByteBufferLogInputStream.nextBatch`, `nextBatchSize`.
    """
    if length is None:
        return Error.NONE
    if length < LEAST_LENGTH or not 0 <= magic <= MAGIC:
        return Error.CORRUPT_MESSAGE
    return Error.UNKNOWN_SERVER_ERROR if length > LARGEST_LENGTH else Error.NONE


def check_framing(length: int | None, magic: int, whole: bool) -> Error:
    """Whether the records of a produce request begin with a whole batch of the right format.

    Parameters: the batch's length field in bytes, `None` if the records are too short to have one; its magic; whether the
    records have as many bytes as it says.

    Errors: `CORRUPT_MESSAGE` for a length that no batch has, and for a magic that never was; `INVALID_RECORD` for an
    incomplete batch, for none at all, and for one of an old format.

    **Kafka:** `ByteBufferLogInputStream.nextBatchSize`, `ProduceRequest.validateRecords`.
    """
    if length is None:
        return Error.INVALID_RECORD
    if length < LEAST_LENGTH or not 0 <= magic <= MAGIC:
        return Error.CORRUPT_MESSAGE
    return Error.INVALID_RECORD if not whole or magic != MAGIC else Error.NONE


def check_request_records(version_number: int, batch: ReceivedBatch) -> Error:
    """Whether a produce request of this version may carry this batch: exactly one, and zstd only since version 7.

    Errors: `UNSUPPORTED_COMPRESSION_TYPE`; `INVALID_RECORD` for a second batch; `CORRUPT_MESSAGE` for bytes behind the batch
    that are none, unless they are too few to say. `UNKNOWN_SERVER_ERROR` for an unknown codec is the whole request's.

    **Kafka:** `ProduceRequest.validateRecords`.
    """
    if version_number < FIRST_VERSION_WITH_ZSTD and batch.codec >= CODECS:
        return Error.UNKNOWN_SERVER_ERROR
    if version_number < FIRST_VERSION_WITH_ZSTD and batch.codec == ZSTD:
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    if batch.behind != Error.NONE:
        return batch.behind
    return Error.INVALID_RECORD if batch.more else Error.NONE


def fails_as_a_whole(version_number: int, batch: ReceivedBatch) -> bool:
    """Whether a batch makes its whole request fail, with `UNKNOWN_SERVER_ERROR` for all partitions.

    An old version of the request looks at the codec, and there is none of this number; or a size behind the batch is none;
    or the batch ends before its producer id.

    **Kafka:** `ProduceRequest.validateRecords`, `ReplicaManager.handleProduceAppend`, where exceptions are thrown that
    `KafkaApis.handleError` answers.
    """
    error = check_request_records(version_number, batch)
    return error == Error.UNKNOWN_SERVER_ERROR or (error == Error.NONE and batch.size < LEAST_HEADER)


def of_copies(errors: Sequence[Error]) -> tuple[int | None, Error]:
    """The outcome of several batches for one partition in a request, from the error of each before any log is asked.

    The last one that has no error is appended: its place, none if all have errors. The answer is the last error, if there is
    one, although another batch may be appended.

    **Kafka:** `KafkaApis.handleProduceRequest`, which keeps both in maps by partition.
    """
    right = [place for place, error in enumerate(errors) if error == Error.NONE]
    wrong = [error for error in errors if error != Error.NONE]
    return right[-1] if right else None, wrong[-1] if wrong else Error.NONE


def check_received_batch(batch: ReceivedBatch, max_size: int) -> Error:
    """Whether a leader takes a producer's batch, as far as its header says; the first error that applies.

    A batch begins at offset 0, is not larger than `max.message.bytes`, and its checksum is right; its codec is known; both
    counts of records agree; it is no control batch; an idempotent producer numbers its records.

    Errors: `INVALID_RECORD`, `MESSAGE_TOO_LARGE`, `CORRUPT_MESSAGE`, `UNKNOWN_SERVER_ERROR`.

    **Kafka:** `UnifiedLog.analyzeAndValidateRecords`, `LogValidator.validateBatch`. The records themselves: `check_records`.
    """
    if batch.base_offset != 0:
        return Error.INVALID_RECORD
    if batch.size > max_size:
        return Error.MESSAGE_TOO_LARGE
    if not batch.intact:
        return Error.CORRUPT_MESSAGE
    if batch.codec >= CODECS:
        return Error.UNKNOWN_SERVER_ERROR
    if batch.last_offset_delta < 0 or batch.record_count <= 0 or batch.record_count != batch.last_offset_delta + 1:
        return Error.INVALID_RECORD
    unnumbered = batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0
    return Error.INVALID_RECORD if batch.control or unnumbered else Error.NONE


def check_batch_of_request(terms: ProduceTerms, batch: ReceivedBatch, internal: bool) -> Error:
    """The first error of a batch before any log is asked. `internal`: whether the topic is one that only brokers write to.

    Errors: those of `check_request_records`, `check_transactional`, `check_required_acks`; `INVALID_TOPIC_EXCEPTION`.

    **Kafka:** `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`, `ReplicaManager.appendToLocalLog`.
    """
    error = check_request_records(terms.version, batch)
    if error == Error.NONE:
        error = check_transactional(batch.transactional, terms.has_transactional_id)
    if error == Error.NONE:
        error = check_required_acks(terms.acks)
    return Error.INVALID_TOPIC_EXCEPTION if error == Error.NONE and internal else error


WITHOUT_LOG_START = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.INVALID_REQUIRED_ACKS,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.CORRUPT_MESSAGE,
        Error.KAFKA_STORAGE_ERROR,
    }
)


def answered_log_start(error: Error, log_start: Offset) -> Offset:
    """The log start (offset) in a producer's answer: given as well with most errors that come from the log.

    **Kafka:** `ReplicaManager.appendToLocalLog`.
    """
    return UNKNOWN_OFFSET if error in WITHOUT_LOG_START else log_start


def check_transactional(transactional: bool, has_transactional_id: bool) -> Error:
    """Whether a batch may be part of a transaction: if the request says of which.

    Parameters: whether the batch is transactional; whether the request names a transactional id.

    Errors: `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`.

    **Kafka:** `KafkaApis.handleProduceRequest`.
    """
    fails = transactional and not has_transactional_id
    return Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if fails else Error.NONE


def check_one_producer(producers: AbstractSet[tuple[ProducerId, ProducerEpoch]]) -> Error:
    """Whether all transactional batches of a request are of one producer; the whole request fails if not.

    Errors: `INVALID_PRODUCER_ID_MAPPING`.

    **Kafka:** `ReplicaManager.handleProduceAppend`.
    """
    return Error.INVALID_PRODUCER_ID_MAPPING if len(producers) > 1 else Error.NONE
