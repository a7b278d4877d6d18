"""What the metadata log says: the fold of its records.

`spec`'s own image has the brokers and the partitions, by numbers. Beside it stand the names, ids and settings of topics, and
the next producer id. The number of a partition is given when its record is read; it is not stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from impl.metadata.records import LogRecord, PartitionKey, from_spec, to_spec, with_directories, with_introduction
from impl.wire.values import Message
from spec.metadata import EMPTY_IMAGE, MetadataImage, RegisterBrokerRecord, replay, replay_all
from spec.values import Offset, PartitionId

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Kafka: `ConfigResource.Type`."""

OF_PARTITIONS = {"PartitionRecord", "PartitionChangeRecord"}
"""The records that are about a partition."""


@dataclass(slots=True)
class Topic:
    """A topic: its name, its id (16 bytes), and the numbers of its partitions in order."""

    name: str
    topic_id: bytes
    partitions: list[PartitionId] = field(default_factory=list)


class ClusterImage:
    """The fold of the metadata log. Records are replayed into it in their order, and nothing else changes it.

    `before`: the image that this one takes the place of, so that partitions keep their numbers.
    """

    def __init__(self, before: "ClusterImage | None" = None) -> None:
        self.spec: MetadataImage = EMPTY_IMAGE
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.keys: dict[PartitionId, PartitionKey] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.endpoints: dict[int, Message] = {}
        self.racks: dict[int, str] = {}
        self.registered: dict[int, Message] = {}
        """The last registration record of each broker, with what no rule of `spec` looks at."""
        self.directories: dict[PartitionId, tuple[bytes, ...]] = {}
        """The log directory of each replica, in the order of the replicas."""
        self.next_producer_id = 0
        self.settings_changes = 0
        """How often `configs` has changed."""
        self._numbers: dict[PartitionKey, PartitionId] = {} if before is None else before._numbers

    def partition_id(self, key: PartitionKey) -> PartitionId | None:
        """The number of a partition, if there is one."""
        topic = self.topics_by_id.get(key.topic_id)
        return topic.partitions[key.partition] if topic is not None and key.partition < len(topic.partitions) else None

    def key_of(self, partition_id: PartitionId) -> PartitionKey:
        """The partition with this number."""
        return self.keys[partition_id]

    def new_partition_id(self) -> PartitionId:
        """The number that the next new partition will get."""
        return PartitionId(len(self._numbers))

    def go_to(self, offset: Offset) -> None:
        """The next record has this offset: not all records of the log are replayed."""
        if self.spec.end_offset != offset:
            self.spec = self.spec._replace(end_offset=offset)

    def replay(self, record: LogRecord) -> None:
        """Take one more record of the log. One record of the log is one step of `spec`'s end offset."""
        for_spec = to_spec(record, self._number_of(record) if record.name in OF_PARTITIONS else None)
        if for_spec is not None:
            self.spec = replay(self.spec, for_spec)
        else:
            self.spec = self.spec._replace(end_offset=Offset(self.spec.end_offset + 1))
        self._replay_other(record.name, record.message)

    def replay_all(self, records: Iterable[LogRecord]) -> None:
        """Take several records, those of partitions that follow each other together, which is quicker."""
        for of_partitions, run in groupby(records, key=lambda record: record.name in OF_PARTITIONS):
            if of_partitions:
                self._replay_partitions(run)
            else:
                for record in run:
                    self.replay(record)

    def _replay_partitions(self, records: Iterable[LogRecord]) -> None:
        for_spec = [to_spec(record, self._number_of(record)) for record in records]
        self.spec = replay_all(self.spec, tuple(filter(None, for_spec)))

    def _number_of(self, record: LogRecord) -> PartitionId:
        """The number of the partition that a record is about, and which may be new."""
        message = record.message
        topic_id, number = bytes(message.topic_id), message.partition_id
        known = self.topics_by_id[topic_id].partitions
        partition_id = known[number] if number < len(known) else self._new_partition(PartitionKey(topic_id, number))
        if message.directories:
            self.directories[partition_id] = tuple(map(bytes, message.directories))
        return partition_id

    def restore(self, records: Iterable[LogRecord], end_offset: Offset) -> None:
        """Take the records of a snapshot, which has everything before an offset."""
        for of_partitions, run in groupby(records, key=lambda record: record.name in OF_PARTITIONS):
            if of_partitions:
                self._replay_partitions(run)
                continue
            for record in run:
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
            record = from_spec(RegisterBrokerRecord(broker), None, None, self.racks.get(broker.broker))
            found.append(with_introduction(record, self.registered[broker.broker]))
        known = {record.partition_id: record for record in self.spec.partitions}
        for topic in self.topics.values():
            found.append(LogRecord("TopicRecord", Message(name=topic.name, topic_id=topic.topic_id)))
            found += [
                with_directories(from_spec(known[one], self.keys[one]), self.directories.get(one))
                for one in topic.partitions
            ]
        for (kind, resource), settings in self.configs.items():
            fields = {"resource_type": kind, "resource_name": resource}
            found += [
                LogRecord("ConfigRecord", Message(**fields, name=name, value=value)) for name, value in settings.items()
            ]
        fields = {"broker_id": -1, "broker_epoch": -1, "next_producer_id": self.next_producer_id}
        return [*found, LogRecord("ProducerIdsRecord", Message(**fields))]

    def _new_partition(self, key: PartitionKey) -> PartitionId:
        partition_id = self._numbers.setdefault(key, self.new_partition_id())
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
                if not message.feature_level:
                    del self.features[message.name]
            case "RegisterBrokerRecord":
                self._register(message)
            case "UnregisterBrokerRecord":
                for known in (self.registered, self.endpoints, self.racks):
                    known.pop(message.broker_id, None)

    def _register(self, message: Message) -> None:
        self.registered[message.broker_id] = message
        self.racks.pop(message.broker_id, None)
        if message.rack is not None:
            self.racks[message.broker_id] = message.rack
        if message.end_points:
            self.endpoints[message.broker_id] = message.end_points[0]

    def _remove(self, topic: Topic) -> None:
        del self.topics[topic.name]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        self.settings_changes += 1
        gone = set(topic.partitions)
        for partition_id in gone:
            del self.keys[partition_id]
            self.directories.pop(partition_id, None)
        kept = tuple(record for record in self.spec.partitions if record.partition_id not in gone)
        self.spec = self.spec._replace(partitions=kept)

    def _configure(self, message: Message) -> None:
        self.settings_changes += 1
        settings = self.configs.setdefault((message.resource_type, message.resource_name), {})
        if message.value is None:
            settings.pop(message.name, None)
        else:
            settings[message.name] = message.value
