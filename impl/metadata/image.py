"""What the metadata log says: the fold of its records.

`spec`'s own image has the brokers and the partitions, by numbers. Beside it stand the names, ids and settings of topics, and
the next producer id. The number of a partition is given when its record is read; it is not stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from impl.metadata.records import LogRecord, PartitionKey, from_spec, to_spec
from impl.wire.values import Message
from spec.metadata import EMPTY_IMAGE, MetadataImage, RegisterBrokerRecord, replay
from spec.values import Offset, PartitionId

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Kafka: `ConfigResource.Type`."""


@dataclass(slots=True)
class Topic:
    """A topic: its name, its id (16 bytes), and the numbers of its partitions in order."""

    name: str
    topic_id: bytes
    partitions: list[PartitionId] = field(default_factory=list)


class ClusterImage:
    """The fold of the metadata log. Records are replayed into it in their order, and nothing else changes it."""

    def __init__(self) -> None:
        self.spec: MetadataImage = EMPTY_IMAGE
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.keys: dict[PartitionId, PartitionKey] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.endpoints: dict[int, Message] = {}
        self.racks: dict[int, str] = {}
        self.next_producer_id = 0
        self._partitions = 0

    def partition_id(self, key: PartitionKey) -> PartitionId | None:
        """The number of a partition, if there is one."""
        topic = self.topics_by_id.get(key.topic_id)
        return topic.partitions[key.partition] if topic is not None and key.partition < len(topic.partitions) else None

    def key_of(self, partition_id: PartitionId) -> PartitionKey:
        """The partition with this number."""
        return self.keys[partition_id]

    def new_partition_id(self) -> PartitionId:
        """The number that the next new partition will get."""
        return PartitionId(self._partitions)

    def replay(self, record: LogRecord) -> None:
        """Take one more record of the log. One record of the log is one step of `spec`'s end offset."""
        message = record.message
        partition_id = None
        if record.name in {"PartitionRecord", "PartitionChangeRecord"}:
            key = PartitionKey(bytes(message.topic_id), message.partition_id)
            partition_id = self.partition_id(key)
            if partition_id is None:
                partition_id = self._new_partition(key)
        for_spec = to_spec(record, partition_id)
        if for_spec is not None:
            self.spec = replay(self.spec, for_spec)
        else:
            self.spec = self.spec._replace(end_offset=Offset(self.spec.end_offset + 1))
        self._replay_other(record.name, message)

    def restore(self, records: Iterable[LogRecord], end_offset: Offset) -> None:
        """Take the records of a snapshot, which has everything before an offset."""
        for record in records:
            self.spec = self.spec._replace(end_offset=Offset(end_offset - 1))
            self.replay(record)
        self.spec = self.spec._replace(end_offset=end_offset)

    def records(self) -> list[LogRecord]:
        """Records from which the same image comes. **Kafka:** `MetadataImage.write`."""
        found = [
            LogRecord("FeatureLevelRecord", Message(name=name, feature_level=level))
            for name, level in sorted(self.features.items())
        ]
        for broker in self.spec.brokers:
            endpoint, rack = self.endpoints.get(broker.broker), self.racks.get(broker.broker)
            found.append(from_spec(RegisterBrokerRecord(broker), None, endpoint, rack))
        known = {record.partition_id: record for record in self.spec.partitions}
        for topic in self.topics.values():
            found.append(LogRecord("TopicRecord", Message(name=topic.name, topic_id=topic.topic_id)))
            found += [from_spec(known[one], self.keys[one]) for one in topic.partitions]
        for (kind, resource), settings in self.configs.items():
            fields = {"resource_type": kind, "resource_name": resource}
            found += [
                LogRecord("ConfigRecord", Message(**fields, name=name, value=value)) for name, value in settings.items()
            ]
        fields = {"broker_id": -1, "broker_epoch": -1, "next_producer_id": self.next_producer_id}
        return [*found, LogRecord("ProducerIdsRecord", Message(**fields))]

    def _new_partition(self, key: PartitionKey) -> PartitionId:
        partition_id = self.new_partition_id()
        self._partitions += 1
        self.topics_by_id[key.topic_id].partitions.append(partition_id)
        self.keys[partition_id] = key
        return partition_id

    def _replay_other(self, name: str, message: Message) -> None:
        match name:
            case "TopicRecord":
                topic = Topic(message.name, bytes(message.topic_id))
                self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
            case "RemoveTopicRecord":
                self._remove(self.topics_by_id.pop(bytes(message.topic_id)))
            case "ConfigRecord":
                self._configure(message)
            case "ProducerIdsRecord":
                self.next_producer_id = message.next_producer_id
            case "FeatureLevelRecord":
                self.features[message.name] = message.feature_level
            case "RegisterBrokerRecord" if message.end_points:
                self.endpoints[message.broker_id] = message.end_points[0]
                self.racks.pop(message.broker_id, None)
                if message.rack is not None:
                    self.racks[message.broker_id] = message.rack

    def _remove(self, topic: Topic) -> None:
        del self.topics[topic.name]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        gone = set(topic.partitions)
        for partition_id in gone:
            del self.keys[partition_id]
        kept = tuple(record for record in self.spec.partitions if record.partition_id not in gone)
        self.spec = self.spec._replace(partitions=kept)

    def _configure(self, message: Message) -> None:
        settings = self.configs.setdefault((message.resource_type, message.resource_name), {})
        if message.value is None:
            settings.pop(message.name, None)
        else:
            settings[message.name] = message.value
