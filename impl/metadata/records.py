"""The records of the metadata log: Kafka's, as bytes and back, and those of `spec` among them.

**Kafka:** `MetadataRecordSerde`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kspec.impl.wire.reading import read_message, read_unsigned_varint
from kspec.impl.wire.schema import names, schema
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import unsigned_varint, write_message
from kspec.spec.metadata import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderRecoveryState,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kspec.spec.topics import ConfigResource, ResourceType, TopicIdPartition
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Incarnation, PartitionEpoch, PartitionId, ProducerId, TopicId

FRAME_VERSION = 1
RECORD_NAMES = {schema(name).key: name for name in names() if name.endswith("Record")}
VERSIONS = {
    "TopicRecord": 0,
    "RemoveTopicRecord": 0,
    "PartitionRecord": 2,
    "PartitionChangeRecord": 2,
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
    "UnregisterBrokerRecord": 0,
    "ConfigRecord": 0,
    "ProducerIdsRecord": 0,
    "FeatureLevelRecord": 0,
}
"""The records that are written here, with the versions that are written: those of metadata.version 4.0."""


FENCING = {True: 1, None: 0, False: -1}
"""Whether a broker is fenced from now on, in a record that changes its registration. Kafka:
`BrokerRegistrationFencingChange`.
"""

FENCED = {number: fenced for fenced, number in FENCING.items()}


class LogRecord(NamedTuple):
    """A record of the metadata log: the name of its kind, and its fields."""

    name: str
    message: Message


def encode_record(record: LogRecord) -> bytes:
    """The value of a record in a batch."""
    version = VERSIONS[record.name]
    head = unsigned_varint(FRAME_VERSION) + unsigned_varint(schema(record.name).key) + unsigned_varint(version)
    return head + write_message(record.name, version, record.message)


def decode_record(value: memoryview) -> LogRecord:
    """The record with this value in a batch. Raises: `DecodeError`."""
    try:
        frame, position = read_unsigned_varint(value, 0)
        key, position = read_unsigned_varint(value, position)
        version, position = read_unsigned_varint(value, position)
    except IndexError:
        raise DecodeError("a metadata record without a kind") from None
    if frame != FRAME_VERSION or key not in RECORD_NAMES:
        raise DecodeError(f"a metadata record of frame version {frame} and kind {key} is not known")
    name = RECORD_NAMES[key]
    return LogRecord(name, read_message(name, version, value, position)[0])


# ---- spec's records


def encode_incarnation(incarnation: Incarnation) -> bytes:
    """The UUID of an incarnation, which is a number in `spec`."""
    return int(incarnation).to_bytes(16, "big")


RESOURCES = {kind.value: kind for kind in ResourceType}


def from_spec(record: MetadataRecord, key: TopicIdPartition | None = None) -> LogRecord:
    """A record that `spec` has decided. `key` names the partition that a change is about."""
    match record:
        case PartitionRecord():
            return LogRecord("PartitionRecord", _partition(record))
        case PartitionChangeRecord():
            assert key is not None
            return LogRecord("PartitionChangeRecord", _change(key, record))
        case RegisterBrokerRecord(registration, rack):
            return LogRecord("RegisterBrokerRecord", _registration(registration, rack))
        case BrokerRegistrationChangeRecord():
            return LogRecord("BrokerRegistrationChangeRecord", _registration_change(record))
        case UnregisterBrokerRecord(broker, broker_epoch):
            return LogRecord("UnregisterBrokerRecord", Message(broker_id=broker, broker_epoch=broker_epoch))
        case TopicRecord(name, topic_id):
            return LogRecord("TopicRecord", Message(name=name, topic_id=topic_id))
        case RemoveTopicRecord(topic_id):
            return LogRecord("RemoveTopicRecord", Message(topic_id=topic_id))
        case ConfigRecord(resource, name, value):
            fields = {"resource_type": resource.kind.value, "resource_name": resource.name}
            return LogRecord("ConfigRecord", Message(**fields, name=name, value=value))
        case ProducerIdsRecord(broker, broker_epoch, following):
            ids = {"broker_id": broker, "broker_epoch": broker_epoch}
            return LogRecord("ProducerIdsRecord", Message(**ids, next_producer_id=following))
        case FeatureLevelRecord(name, level):
            return LogRecord("FeatureLevelRecord", Message(name=name, feature_level=level))


INTRODUCTION = ("end_points", "features", "log_dirs")
"""Fields of a registration that no rule of `spec` reads."""


def with_introduction(record: LogRecord, message: Message) -> LogRecord:
    """A registration record with what another one, or a request, says of the broker."""
    fields = {**record.message.__dict__, **{name: getattr(message, name) for name in INTRODUCTION}}
    return LogRecord(record.name, Message(**fields))


def with_directories(record: LogRecord, directories: Sequence[bytes] | None) -> LogRecord:
    """A partition's record with the log directories of its replicas, in their order; as it is if none are given."""
    if directories is None:
        return record
    return LogRecord(record.name, Message(**{**record.message.__dict__, "directories": list(directories)}))


def _partition(record: PartitionRecord) -> Message:
    registration = record.registration
    return Message(
        partition_id=record.place.partition,
        topic_id=record.place.topic_id,
        replicas=list(registration.replicas),
        isr=sorted(registration.isr),
        removing_replicas=sorted(registration.removing),
        adding_replicas=sorted(registration.adding),
        leader=registration.leader,
        leader_recovery_state=registration.recovery.value,
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        directories=[bytes(16)] * len(registration.replicas),
        eligible_leader_replicas=sorted(registration.elr) or None,
        last_known_elr=sorted(registration.last_known_elr) or None,
    )


def _change(key: TopicIdPartition, record: PartitionChangeRecord) -> Message:
    message = Message(partition_id=key.partition, topic_id=key.topic_id, leader=record.leader)
    listed = {
        "isr": record.isr,
        "removing_replicas": record.removing,
        "adding_replicas": record.adding,
        "eligible_leader_replicas": record.elr,
        "last_known_elr": record.last_known_elr,
    }
    message.__dict__.update({name: sorted(members) for name, members in listed.items() if members is not None})
    if record.replicas is not None:
        message.__dict__["replicas"] = list(record.replicas)
    if record.recovery is not None:
        message.__dict__["leader_recovery_state"] = record.recovery.value
    return message


def _registration(broker: BrokerRegistration, rack: str | None) -> Message:
    return Message(
        broker_id=broker.broker,
        incarnation_id=encode_incarnation(broker.incarnation),
        broker_epoch=broker.broker_epoch,
        end_points=[],
        features=[],
        log_dirs=[],
        rack=rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )


def _registration_change(record: BrokerRegistrationChangeRecord) -> Message:
    return Message(
        broker_id=record.broker,
        broker_epoch=record.broker_epoch,
        fenced=FENCING[record.fenced],
        in_controlled_shutdown=1 if record.in_controlled_shutdown else 0,
    )


def to_spec(record: LogRecord, partition_id: PartitionId | None) -> MetadataRecord | None:
    """The record as `spec` has it; none for a kind that `spec` leaves out, such as one that says nothing.

    `partition_id`: the number of the partition that it is about.
    """
    message = record.message
    match record.name:
        case "PartitionRecord":
            assert partition_id is not None
            place = TopicIdPartition(TopicId(bytes(message.topic_id)), message.partition_id)
            return PartitionRecord(partition_id, _spec_partition(message), place)
        case "PartitionChangeRecord":
            assert partition_id is not None
            return _spec_change(partition_id, message)
        case "RegisterBrokerRecord":
            return RegisterBrokerRecord(
                BrokerRegistration(
                    BrokerId(message.broker_id),
                    BrokerEpoch(message.broker_epoch),
                    Incarnation(int.from_bytes(message.incarnation_id, "big")),
                    message.fenced,
                    message.in_controlled_shutdown,
                ),
                message.rack,
            )
        case "BrokerRegistrationChangeRecord":
            return BrokerRegistrationChangeRecord(
                BrokerId(message.broker_id),
                BrokerEpoch(message.broker_epoch),
                FENCED[message.fenced],
                True if message.in_controlled_shutdown == 1 else None,
            )
        case "UnregisterBrokerRecord":
            return UnregisterBrokerRecord(BrokerId(message.broker_id), BrokerEpoch(message.broker_epoch))
        case "TopicRecord":
            return TopicRecord(message.name, TopicId(bytes(message.topic_id)))
        case "RemoveTopicRecord":
            return RemoveTopicRecord(TopicId(bytes(message.topic_id)))
        case "ConfigRecord":
            kind = RESOURCES.get(message.resource_type, ResourceType.UNKNOWN)
            return ConfigRecord(ConfigResource(kind, message.resource_name), message.name, message.value)
        case "ProducerIdsRecord":
            broker, broker_epoch = BrokerId(message.broker_id), BrokerEpoch(message.broker_epoch)
            return ProducerIdsRecord(broker, broker_epoch, ProducerId(message.next_producer_id))
        case "FeatureLevelRecord":
            return FeatureLevelRecord(message.name, message.feature_level)
    return None


def _brokers(ids: list[BrokerId] | None) -> frozenset[BrokerId]:
    return frozenset(ids or ())


def _spec_partition(message: Message) -> PartitionRegistration:
    return PartitionRegistration(
        tuple(message.replicas),
        _brokers(message.isr),
        BrokerId(message.leader),
        Epoch(message.leader_epoch),
        PartitionEpoch(message.partition_epoch),
        LeaderRecoveryState(message.leader_recovery_state),
        _brokers(message.eligible_leader_replicas),
        _brokers(message.last_known_elr),
        _brokers(message.adding_replicas),
        _brokers(message.removing_replicas),
    )


def _spec_change(partition_id: PartitionId, message: Message) -> PartitionChangeRecord:
    state = message.leader_recovery_state
    elr, last_known_elr = message.eligible_leader_replicas, message.last_known_elr
    removing, adding = message.removing_replicas, message.adding_replicas
    return PartitionChangeRecord(
        partition_id,
        None if message.isr is None else frozenset(message.isr),
        BrokerId(message.leader),
        None if message.replicas is None else tuple(message.replicas),
        None if removing is None else frozenset(removing),
        None if adding is None else frozenset(adding),
        None if state < 0 else LeaderRecoveryState(state),
        None if elr is None else frozenset(elr),
        None if last_known_elr is None else frozenset(last_known_elr),
    )
