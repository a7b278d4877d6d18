"""Which record batches of a producer a broker refuses, from the batches' headers alone."""

from typing import NamedTuple

from spec.broker.rules.produce import check_required_acks
from spec.values import NO_PRODUCER_ID, UNKNOWN_OFFSET, Error, Offset, ProducerId

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
    in bytes, times in ms. `intact`: its checksum is right. Kafka: `DefaultRecordBatch`.
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


class ProduceTerms(NamedTuple):
    """What a produce request says of all its batches: its version, its acks, and whether it names a transactional id."""

    version: int
    acks: int
    has_transactional_id: bool


class BatchLimits(NamedTuple):
    """What a topic allows: the size of a batch in bytes, and how old and how far ahead a timestamp may be in ms.

    `create_time`: whether timestamps are the producer's; those that the broker sets are not checked. **Kafka:**
    `max.message.bytes`, `message.timestamp.before.max.ms`, `message.timestamp.after.max.ms`, `message.timestamp.type`.
    """

    max_size: int
    before_max: int
    after_max: int
    create_time: bool = True


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

    Errors: `UNSUPPORTED_COMPRESSION_TYPE`, `INVALID_RECORD`.

    **Kafka:** `ProduceRequest.validateRecords`.
    """
    if version_number < FIRST_VERSION_WITH_ZSTD and batch.codec >= CODECS:
        return Error.UNKNOWN_SERVER_ERROR
    if version_number < FIRST_VERSION_WITH_ZSTD and batch.codec == ZSTD:
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    return Error.INVALID_RECORD if batch.more else Error.NONE


def check_received_batch(batch: ReceivedBatch, max_size: int) -> Error:
    """Whether a leader takes a producer's batch, as far as its header says; the first error that applies.

    A batch begins at offset 0, is not larger than `max.message.bytes`, and its checksum is right; its codec is known; both
    counts of records agree; it is no control batch; an idempotent producer numbers its records.

    Errors: `INVALID_RECORD`, `MESSAGE_TOO_LARGE`, `CORRUPT_MESSAGE`, `UNKNOWN_SERVER_ERROR`.

    **Kafka:** `UnifiedLog.analyzeAndValidateRecords`, `LogValidator.validateBatch`. **Leaves out:** the records themselves,
    which a broker does not read.
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
    unnumbered = batch.producer_id != NO_PRODUCER_ID and batch.base_sequence < 0
    return Error.INVALID_RECORD if batch.control or unnumbered else Error.NONE


def check_batch_of_request(terms: ProduceTerms, batch: ReceivedBatch, internal: bool) -> Error:
    """The first error of a batch before any log is asked. `internal`: whether the topic is one that only brokers write to.

    Errors: those of `check_request_records`, `check_transactional`, `check_required_acks`; `INVALID_TOPIC_EXCEPTION`.

    **Kafka:** `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`, `ReplicaManager.appendToLocalLog`.
    """
    error = check_request_records(terms.version, batch)
    if error == Error.NONE:
        error = check_transactional(batch.transactional, terms.has_transactional_id, False)
    if error == Error.NONE:
        error = check_required_acks(terms.acks)
    return Error.INVALID_TOPIC_EXCEPTION if error == Error.NONE and internal else error


def check_batch_for_log(batch: ReceivedBatch, limits: BatchLimits, now: int) -> Error:
    """The first error of a batch that a leader is about to append. `now`: the broker's time in ms.

    Errors: those of `check_received_batch`, then `INVALID_TIMESTAMP`.

    **Kafka:** `UnifiedLog.append`, `LogValidator.validateMessagesAndAssignOffsets`.
    """
    error = check_received_batch(batch, limits.max_size)
    if error == Error.NONE and limits.create_time:
        error = check_timestamp(batch.max_timestamp, now, limits.before_max, limits.after_max)
    return error


WITHOUT_LOG_START = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.INVALID_REQUIRED_ACKS,
        Error.MESSAGE_TOO_LARGE,
        Error.CORRUPT_MESSAGE,
        Error.KAFKA_STORAGE_ERROR,
    }
)


def answered_log_start(error: Error, log_start: Offset) -> Offset:
    """The log start (offset) in a producer's answer: given as well with most errors that come from the log.

    **Kafka:** `ReplicaManager.appendToLocalLog`.
    """
    return UNKNOWN_OFFSET if error in WITHOUT_LOG_START else log_start


def check_timestamp(timestamp: int, now: int, before_max: int, after_max: int) -> Error:
    """Whether the newest timestamp of a batch (ms) is near enough to the broker's time.

    Parameters: `message.timestamp.before.max.ms`, `message.timestamp.after.max.ms`. A batch without timestamp (-1) passes.

    Errors: `INVALID_TIMESTAMP`.

    **Kafka:** `LogValidator.validateTimestamp`, for each record.
    """
    if timestamp < 0:
        return Error.NONE
    return Error.INVALID_TIMESTAMP if now - timestamp > before_max or timestamp - now > after_max else Error.NONE


def check_transactional(transactional: bool, has_transactional_id: bool, in_transaction: bool) -> Error:
    """Whether a batch may be part of a transaction.

    Parameters: whether the batch is transactional; whether the request names a transactional id; whether the partition is
    in an open transaction of it.

    Errors: `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`, `INVALID_TXN_STATE`.

    **Kafka:** `KafkaApis.handleProduceRequest`, `UnifiedLog.analyzeAndValidateProducerState`.
    """
    if not transactional:
        return Error.NONE
    if not has_transactional_id:
        return Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return Error.NONE if in_transaction else Error.INVALID_TXN_STATE
