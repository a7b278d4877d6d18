"""The keys and values of `__consumer_offsets` in bytes, in the versions that Kafka 4.4 writes; all versions are read.

A key begins with the kind of record, a value with its version. Kafka: `CoordinatorRecordSerde`, and the messages
`OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue` and `LegacyOffsetCommitKey`.
"""

from kspec.impl.coordinator.consumers import decode_consumer_record, encode_consumer_record
from kspec.impl.coordinator.fields import (
    FieldReader,
    UnreadableRecordError,
    compact_string,
    data,
    int16,
    int32,
    int64,
    string,
    tags,
)
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from kspec.spec.values import (
    NO_EPOCH,
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    Epoch,
    Generation,
    GroupId,
    MemberId,
    Offset,
    ProducerId,
    TimestampMs,
    TopicId,
)

LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2
"""Kinds of key. Kafka: `CoordinatorRecordType`; those above are in `consumers`, or about groups of other protocols."""

KIND_SIZE = 2
KINDS_OF_OFFSETS = tuple(kind.to_bytes(KIND_SIZE, "big") for kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT))
"""The bytes with which the key of a committed offset begins."""

ABORT_MARKER, COMMIT_MARKER = 0, 1
"""Kinds of marker that end a transaction. Kafka: `ControlRecordType`."""

GROUP_VALUE_VERSION = 3
OFFSET_VALUE_VERSION = 4
EXPIRING_OFFSET_VALUE_VERSION = 1
"""An offset for which the client named a retention. Kafka: `GroupCoordinatorRecordHelpers.offsetCommitValueVersion`."""

NEWEST_VERSION = FIRST_FLEXIBLE_VERSION = 4
TOPIC_ID_TAG = 0


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """A record's key and value; the value of a tombstone is `None`."""
    match record:
        case GroupMetadataRecord():
            return _group_key(record.group_id), _group_value(record)
        case GroupTombstone():
            return _group_key(record.group_id), None
        case OffsetCommitRecord():
            return _offset_key(record), _offset_value(record)
        case OffsetTombstone():
            return _offset_key(record), None
        case _:
            return encode_consumer_record(record)


def decode(key: bytes, value: bytes | None) -> GroupRecord | None:
    """The record of a key and a value, `None` if it is about a group that is neither classic nor a consumer group.

    Raises `UnreadableRecordError` for bytes that are none.
    """
    reader = FieldReader(key)
    kind = reader.int16()
    if kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
        group_id, topic, partition = GroupId(reader.string()), reader.string(), reader.int32()
        if value is None:
            return OffsetTombstone(group_id, topic, partition)
        return _read_offset(group_id, topic, partition, FieldReader(value))
    if kind == GROUP_METADATA:
        group_id = GroupId(reader.string())
        return GroupTombstone(group_id) if value is None else _read_group(group_id, FieldReader(value))
    return decode_consumer_record(kind, reader, value)


def end_of_transaction(producer_id: ProducerId, key: bytes) -> EndOfTransaction | None:
    """The content of the marker in a control batch, `None` for one that is about something else.

    Kafka: `ControlRecordType.parse`, `EndTransactionMarker`.
    """
    reader = FieldReader(key)
    reader.int16()
    kind = reader.int16()
    return EndOfTransaction(producer_id, kind == COMMIT_MARKER) if kind in (ABORT_MARKER, COMMIT_MARKER) else None


def _group_key(group_id: GroupId) -> bytes:
    return int16(GROUP_METADATA) + string(group_id)


def _offset_key(record: OffsetCommitRecord | OffsetTombstone) -> bytes:
    return int16(OFFSET_COMMIT) + string(record.group_id) + string(record.topic) + int32(record.partition)


def _group_value(record: GroupMetadataRecord) -> bytes:
    return b"".join(
        (
            int16(GROUP_VALUE_VERSION),
            string(record.protocol_type),
            int32(record.generation),
            string(record.protocol_name),
            string(record.leader),
            int64(-1 if record.state_since_ms is None else record.state_since_ms),
            int32(len(record.members)),
            *(_member(member) for member in record.members),
        )
    )


def _member(member: MemberRecord) -> bytes:
    return b"".join(
        (
            string(member.member_id),
            string(member.instance_id),
            string(member.client_id),
            string(member.client_host),
            int32(member.rebalance_timeout_ms),
            int32(member.session_timeout_ms),
            data(member.subscription),
            data(member.assignment),
        )
    )


def _offset_value(record: OffsetCommitRecord) -> bytes:
    if record.expires_at_ms is not None:
        return b"".join(
            (
                int16(EXPIRING_OFFSET_VALUE_VERSION),
                int64(record.offset),
                string(record.metadata),
                int64(record.committed_at_ms),
                int64(record.expires_at_ms),
            )
        )
    return b"".join(
        (
            int16(OFFSET_VALUE_VERSION),
            int64(record.offset),
            int32(record.leader_epoch),
            compact_string(record.metadata),
            int64(record.committed_at_ms),
            tags({} if record.topic_id == NO_TOPIC_ID else {TOPIC_ID_TAG: record.topic_id}),
        )
    )


def _version(reader: FieldReader) -> int:
    version = reader.int16()
    if not 0 <= version <= NEWEST_VERSION:
        raise UnreadableRecordError(f"version {version} of a value, where 0 to {NEWEST_VERSION} are known")
    reader.flexible = version >= FIRST_FLEXIBLE_VERSION
    return version


def _read_offset(group_id: GroupId, topic: str, partition: int, reader: FieldReader) -> OffsetCommitRecord:
    version = _version(reader)
    offset = Offset(reader.int64())
    leader_epoch = Epoch(reader.int32()) if version >= 3 else NO_EPOCH
    metadata, committed_at_ms = reader.string(), TimestampMs(reader.int64())
    expires_at_ms = TimestampMs(reader.int64()) if version == 1 else NO_TIMESTAMP
    topic_id = TopicId(reader.tags().get(TOPIC_ID_TAG, NO_TOPIC_ID))
    return OffsetCommitRecord(
        group_id,
        topic,
        partition,
        offset,
        leader_epoch,
        metadata,
        committed_at_ms,
        None if expires_at_ms == NO_TIMESTAMP else expires_at_ms,
        topic_id,
    )


def _read_group(group_id: GroupId, reader: FieldReader) -> GroupMetadataRecord:
    version = _version(reader)
    protocol_type, generation = reader.string(), Generation(reader.int32())
    protocol_name, leader = reader.nullable_string(), reader.nullable_string()
    state_since_ms = TimestampMs(reader.int64()) if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(version, reader) for _ in range(reader.count()))
    reader.tags()
    return GroupMetadataRecord(
        group_id,
        protocol_type,
        generation,
        protocol_name,
        None if leader is None else MemberId(leader),
        None if state_since_ms == NO_TIMESTAMP else state_since_ms,
        members,
    )


def _read_member(version: int, reader: FieldReader) -> MemberRecord:
    member_id = MemberId(reader.string())
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.data(), reader.data()
    reader.tags()
    return MemberRecord(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
