"""The keys and values of `__transaction_state` in bytes, in versions 0 and 1.

Kafka: `TransactionLog`, and the messages `TransactionLogKey` and `TransactionLogValue`.
"""

from itertools import groupby

from kspec.impl.coordinator.fields import (
    FieldReader,
    UnreadableRecordError,
    compact_string,
    int8,
    int16,
    int32,
    int64,
    string,
    tags,
    unsigned_varint,
)
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.metadata import TransactionState
from kspec.spec.transactions.records import WITH_TAGS, TransactionRecord
from kspec.spec.values import NO_PRODUCER_ID, ProducerEpoch, ProducerId, TimestampMs, TransactionalId

KEY_VERSION = 0
NEWEST_VERSION = FIRST_FLEXIBLE_VERSION = 1
PREVIOUS_ID_TAG, NEXT_ID_TAG, CLIENT_LEVEL_TAG = 0, 1, 2

STATES = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
)
"""The states in the order of their ids. Kafka: `TransactionState.id`."""


def encode_key(transactional_id: TransactionalId) -> bytes:
    """The key of all records of a transactional id; with no value it is a tombstone."""
    return int16(KEY_VERSION) + string(transactional_id)


def encode_value(record: TransactionRecord, cluster_level: int) -> bytes:
    """A record's value, in the version that a cluster of this transaction version writes.

    Kafka: `TransactionLog.valueToBytes`, `TransactionVersion.transactionLogValueVersion`.
    """
    flexible = cluster_level >= WITH_TAGS
    told = {
        tag: data
        for tag, data, is_told in (
            (PREVIOUS_ID_TAG, int64(record.previous_producer_id), record.previous_producer_id != NO_PRODUCER_ID),
            (NEXT_ID_TAG, int64(record.next_producer_id), record.next_producer_id != NO_PRODUCER_ID),
            (CLIENT_LEVEL_TAG, int16(record.client_level), record.client_level != 0),
        )
        if is_told
    }
    return b"".join(
        (
            int16(FIRST_FLEXIBLE_VERSION if flexible else 0),
            int64(record.producer_id),
            int16(record.producer_epoch),
            int32(record.timeout_ms),
            int8(STATES.index(record.state)),
            _partitions(record, flexible),
            int64(record.updated_ms),
            int64(record.start_ms),
            tags(told) if flexible else b"",
        )
    )


def _partitions(record: TransactionRecord, flexible: bool) -> bytes:
    """The partitions by topic, in order; an empty transaction has none, which is written as null."""
    if record.state == TransactionState.EMPTY:
        return unsigned_varint(0) if flexible else int32(-1)
    topics = []
    for name, group in groupby(sorted(record.partitions), key=lambda one: one.topic):
        numbers = [int32(one.partition) for one in group]
        indexes = _count(len(numbers), flexible) + b"".join(numbers)
        topics.append((compact_string(name) if flexible else string(name)) + indexes + (tags({}) if flexible else b""))
    return _count(len(topics), flexible) + b"".join(topics)


def _count(size: int, flexible: bool) -> bytes:
    return unsigned_varint(size + 1) if flexible else int32(size)


def decode_key(key: bytes) -> TransactionalId | None:
    """The transactional id of a key, `None` for a kind of key that is not known: a later release's, which says how to go on
    without it. Raises `UnreadableRecordError` for bytes that are none.

    Kafka: `TransactionLog.readTxnRecordKey`.
    """
    reader = FieldReader(key)
    return TransactionalId(reader.string()) if reader.int16() == KEY_VERSION else None


def decode_value(transactional_id: TransactionalId, value: bytes) -> TransactionRecord:
    """The record of a value. Raises `UnreadableRecordError` for bytes that are none, or of a version that is not known.

    Kafka: `TransactionLog.readTxnRecordValue`.
    """
    reader = FieldReader(value)
    version = reader.int16()
    if not 0 <= version <= NEWEST_VERSION:
        known = f"where 0 to {NEWEST_VERSION} are known"
        raise UnreadableRecordError(f"version {version} of the value of {transactional_id!r}, {known}")
    reader.flexible = version >= FIRST_FLEXIBLE_VERSION
    producer_id, epoch = ProducerId(reader.int64()), ProducerEpoch(reader.int16())
    timeout_ms, state = reader.int32(), reader.int8()
    if not 0 <= state < len(STATES):
        raise UnreadableRecordError(f"state {state} of {transactional_id!r}, where 0 to {len(STATES) - 1} are known")
    partitions = _read_partitions(reader)
    updated_ms, start_ms = TimestampMs(reader.int64()), TimestampMs(reader.int64())
    told = reader.tags()
    return TransactionRecord(
        transactional_id,
        producer_id,
        epoch,
        timeout_ms,
        STATES[state],
        partitions,
        updated_ms,
        start_ms,
        ProducerId(_tagged(told, PREVIOUS_ID_TAG, NO_PRODUCER_ID)),
        ProducerId(_tagged(told, NEXT_ID_TAG, NO_PRODUCER_ID)),
        _tagged(told, CLIENT_LEVEL_TAG, 0),
    )


def _tagged(told: dict[int, bytes], tag: int, default: int) -> int:
    return int.from_bytes(told[tag], "big", signed=True) if tag in told else default


def _read_partitions(reader: FieldReader) -> frozenset[TopicPartition]:
    found = []
    for _ in range(reader.count()):
        topic = reader.string()
        found += [TopicPartition(topic, reader.int32()) for _ in range(reader.count())]
        reader.tags()
    return frozenset(found)
