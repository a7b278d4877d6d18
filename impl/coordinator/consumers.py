"""The records of consumer groups (KIP-848) in bytes: the keys begin with the kind, the values with version 0.

Kafka: the messages `ConsumerGroup…Key` and `ConsumerGroup…Value`. Members and partitions are written in order.
"""

from collections.abc import Iterable
from itertools import groupby

from kspec.impl.coordinator.fields import (
    FieldReader,
    UnreadableRecordError,
    compact_data,
    compact_nullable_string,
    compact_string,
    int8,
    int16,
    int32,
    int64,
    string,
    tags,
    unsigned_varint,
)
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    RegularExpressionRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import (
    AssignedPartition,
    AssignedPartitions,
    ClassicMetadata,
    MemberState,
)
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import GroupEpoch, GroupId, MemberId, TimestampMs, TopicId

VERSION = 0
"""The version of all values."""

KINDS = {kind.value: kind for kind in ConsumerRecordKind}
NAMED = frozenset(
    {
        ConsumerRecordKind.MEMBER,
        ConsumerRecordKind.TARGET,
        ConsumerRecordKind.CURRENT,
        ConsumerRecordKind.REGULAR_EXPRESSION,
    }
)
"""Kinds whose key names a member, or an expression, beside the group."""

UNNAMED = ClassicMetadata(0, ())
"""The metadata of a member whose record says nothing of them: where there are none, Kafka says so."""

STATES = {state.value: state for state in MemberState}

FIRST_TAG = 0
"""The tag of the one field that a value may have besides."""


def encode_consumer_record(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    """A record's key and value; the value of a tombstone is `None`."""
    match record:
        case ConsumerTombstone(group_id, kind, name):
            return _key(kind, group_id, name if kind in NAMED else None), None
        case ConsumerGroupEpochRecord():
            value = int32(record.epoch) + _tagged(record.metadata_hash)
            return _key(ConsumerRecordKind.GROUP, record.group_id), int16(VERSION) + value
        case ConsumerGroupMemberRecord():
            return _key(ConsumerRecordKind.MEMBER, record.group_id, record.member_id), _member(record)
        case TargetEpochRecord():
            value = int32(record.epoch) + _tagged(record.assigned_at_ms)
            return _key(ConsumerRecordKind.TARGET_EPOCH, record.group_id), int16(VERSION) + value
        case TargetRecord():
            held = tuple(AssignedPartition(place, GroupEpoch(0)) for place in sorted(record.places))
            value = int16(VERSION) + _partitions(held, with_epochs=False) + tags({})
            return _key(ConsumerRecordKind.TARGET, record.group_id, record.member_id), value
        case CurrentAssignmentRecord():
            return _key(ConsumerRecordKind.CURRENT, record.group_id, record.member_id), _current(record)
    value = _strings(sorted(record.topics)) + int64(record.metadata_offset) + int64(record.resolved_at_ms) + tags({})
    return _key(ConsumerRecordKind.REGULAR_EXPRESSION, record.group_id, record.regex), int16(VERSION) + value


def decode_consumer_record(kind_value: int, key: FieldReader, value: bytes | None) -> ConsumerRecord | None:
    """The record of a key behind its kind, and of a value; `None` for a kind that is not of consumer groups.

    Raises `UnreadableRecordError` for bytes that are none. What 4.0 wrote about topics is read over.
    """
    kind = KINDS.get(kind_value)
    if kind is None:
        return None
    group_id = GroupId(key.string())
    name = key.string() if kind in NAMED else ""
    if value is None:
        return ConsumerTombstone(group_id, kind, name)
    reader = FieldReader(value)
    version = reader.int16()
    if version != VERSION:
        raise UnreadableRecordError(f"version {version} of a value, where {VERSION} is known")
    reader.flexible = True
    match kind:
        case ConsumerRecordKind.GROUP:
            epoch = GroupEpoch(reader.int32())
            return ConsumerGroupEpochRecord(group_id, epoch, _read_tagged(reader))
        case ConsumerRecordKind.MEMBER:
            return _read_member(group_id, MemberId(name), reader)
        case ConsumerRecordKind.TARGET_EPOCH:
            epoch = GroupEpoch(reader.int32())
            return TargetEpochRecord(group_id, epoch, TimestampMs(_read_tagged(reader)))
        case ConsumerRecordKind.TARGET:
            held = _read_partitions(reader, GroupEpoch(0))
            reader.tags()
            return TargetRecord(group_id, MemberId(name), frozenset(one.place for one in held))
        case ConsumerRecordKind.CURRENT:
            return _read_current(group_id, MemberId(name), reader)
        case ConsumerRecordKind.REGULAR_EXPRESSION:
            topics, metadata_offset = frozenset(_read_strings(reader)), reader.int64()
            resolved_at_ms = TimestampMs(reader.int64())
            reader.tags()
            return RegularExpressionRecord(group_id, name, topics, metadata_offset, resolved_at_ms)
    return None


def _key(kind: ConsumerRecordKind, group_id: GroupId, name: str | None = None) -> bytes:
    return int16(kind.value) + string(group_id) + (b"" if name is None else string(name))


def _tagged(number: int) -> bytes:
    return tags({FIRST_TAG: int64(number)} if number else {})


def _read_tagged(reader: FieldReader) -> int:
    found = reader.tags().get(FIRST_TAG)
    return 0 if found is None else FieldReader(found).int64()


def _strings(texts: Iterable[str]) -> bytes:
    listed = list(texts)
    return unsigned_varint(len(listed) + 1) + b"".join(compact_string(text) for text in listed)


def _read_strings(reader: FieldReader) -> list[str]:
    return [reader.string() for _ in range(reader.count())]


def _member(record: ConsumerGroupMemberRecord) -> bytes:
    classic = record.classic
    told = {FIRST_TAG: unsigned_varint(0) if classic is None else unsigned_varint(1) + _classic(classic)}
    if classic == UNNAMED:
        told = {}
    return b"".join(
        (
            int16(VERSION),
            compact_nullable_string(record.instance_id),
            compact_nullable_string(record.rack_id),
            compact_string(record.client_id),
            compact_string(record.client_host),
            _strings(sorted(record.topics)),
            compact_nullable_string(record.regex),
            int32(record.rebalance_timeout_ms),
            compact_nullable_string(record.assignor),
            tags(told),
        )
    )


def _classic(classic: ClassicMetadata) -> bytes:
    protocols = (compact_string(one.name) + compact_data(one.metadata) + tags({}) for one in classic.protocols)
    counted = unsigned_varint(len(classic.protocols) + 1) + b"".join(protocols)
    return int32(classic.session_timeout_ms) + counted + tags({})


def _read_member(group_id: GroupId, member_id: MemberId, reader: FieldReader) -> ConsumerGroupMemberRecord:
    instance_id, rack_id = reader.nullable_string(), reader.nullable_string()
    client_id, client_host = reader.string(), reader.string()
    topics, regex = frozenset(_read_strings(reader)), reader.nullable_string()
    rebalance_timeout_ms, assignor = reader.int32(), reader.nullable_string()
    classic = _read_classic(reader.tags().get(FIRST_TAG))
    return ConsumerGroupMemberRecord(
        group_id,
        member_id,
        instance_id,
        rack_id,
        client_id,
        client_host,
        topics,
        regex,
        rebalance_timeout_ms,
        assignor,
        classic,
    )


def _read_classic(data: bytes | None) -> ClassicMetadata | None:
    if data is None:
        return UNNAMED
    reader = FieldReader(data)
    reader.flexible = True
    if reader.unsigned_varint() == 0:
        return None
    timeout_ms = reader.int32()
    protocols = []
    for _ in range(reader.count()):
        protocols.append(GroupProtocol(reader.string(), reader.data()))
        reader.tags()
    reader.tags()
    return ClassicMetadata(timeout_ms, tuple(protocols))


def _current(record: CurrentAssignmentRecord) -> bytes:
    return b"".join(
        (
            int16(VERSION),
            int32(record.epoch),
            int32(record.previous_epoch),
            int8(record.state.value),
            _partitions(record.assigned, with_epochs=True),
            _partitions(record.pending, with_epochs=True),
            tags({}),
        )
    )


def _read_current(group_id: GroupId, member_id: MemberId, reader: FieldReader) -> CurrentAssignmentRecord:
    epoch, previous = GroupEpoch(reader.int32()), GroupEpoch(reader.int32())
    state = STATES.get(reader.int8(), MemberState.UNKNOWN)
    assigned, pending = _read_partitions(reader, epoch), _read_partitions(reader, epoch)
    reader.tags()
    return CurrentAssignmentRecord(group_id, member_id, epoch, previous, state, assigned, pending)


def _partitions(held: AssignedPartitions, with_epochs: bool) -> bytes:
    written = []
    for topic_id, group in groupby(sorted(held), key=lambda one: one.place.topic_id):
        listed = list(group)
        count = unsigned_varint(len(listed) + 1)
        indexes = count + b"".join(int32(one.place.partition) for one in listed)
        epochs = {FIRST_TAG: count + b"".join(int32(one.epoch) for one in listed)} if with_epochs else {}
        written.append(topic_id + indexes + tags(epochs))
    return unsigned_varint(len(written) + 1) + b"".join(written)


def _read_partitions(reader: FieldReader, epoch: GroupEpoch) -> AssignedPartitions:
    """Partitions with their epochs; those that have none are of the member's epoch."""
    found: list[AssignedPartition] = []
    for _ in range(reader.count()):
        topic_id = TopicId(reader.uuid())
        indexes = [reader.int32() for _ in range(reader.count())]
        data = reader.tags().get(FIRST_TAG)
        epochs = [epoch] * len(indexes) if data is None else _read_epochs(data)
        if len(epochs) != len(indexes):
            raise UnreadableRecordError(f"{len(epochs)} epochs of {len(indexes)} partitions")
        places = (TopicIdPartition(topic_id, index) for index in indexes)
        found += (AssignedPartition(place, one) for place, one in zip(places, epochs, strict=True))
    return tuple(sorted(found))


def _read_epochs(data: bytes) -> list[GroupEpoch]:
    reader = FieldReader(data)
    reader.flexible = True
    return [GroupEpoch(reader.int32()) for _ in range(reader.count())]
