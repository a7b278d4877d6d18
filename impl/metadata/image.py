"""The image of the metadata log: `spec`'s, and beside it what no rule of `spec` looks at.

The number of a partition is given when its record is read or decided; it is not stored.
"""

from collections.abc import Iterable

from kspec.impl.metadata.records import LogRecord, from_spec, to_spec, with_directories, with_introduction
from kspec.impl.wire.values import Message
from kspec.spec.metadata import (
    EMPTY_IMAGE,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataImage,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    partition_record,
    rack_of,
    replay_all,
)
from kspec.spec.topics import TopicIdPartition, TopicImage
from kspec.spec.values import NO_BROKER_EPOCH, NO_LEADER, BrokerId, Offset, PartitionId, TopicId

OF_PARTITIONS = {"PartitionRecord", "PartitionChangeRecord"}
"""The records that are about a partition."""


class ClusterImage:
    """The fold of the metadata log. Records are replayed into it in their order, and nothing else changes it.

    `before`: the image that this one takes the place of, so that partitions keep their numbers.
    """

    def __init__(self, before: "ClusterImage | None" = None) -> None:
        self._numbers: dict[TopicIdPartition, PartitionId] = {} if before is None else before._numbers
        self.spec: MetadataImage = EMPTY_IMAGE._replace(following_partition=PartitionId(len(self._numbers)))
        self.registered: dict[int, Message] = {}
        """The last registration record of each broker, with what no rule of `spec` looks at."""
        self.endpoints: dict[int, Message] = {}
        self.directories: dict[PartitionId, tuple[bytes, ...]] = {}
        """The log directory of each replica, in the order of the replicas."""
        self.kraft_version = 0
        """The level of `kraft.version`, which is in no record of features."""
        self._topics: dict[str, TopicImage] = {}
        self._topics_by_id: dict[bytes, TopicImage] = {}
        self._topics_of: object = None

    # ---- what it says

    @property
    def topics(self) -> dict[str, TopicImage]:
        """The topics by their names."""
        self._look_up_topics()
        return self._topics

    @property
    def topics_by_id(self) -> dict[bytes, TopicImage]:
        """The topics by their ids."""
        self._look_up_topics()
        return self._topics_by_id

    def _look_up_topics(self) -> None:
        topics = self.spec.topics
        if self._topics_of is not topics:
            self._topics = {topic.name: topic for topic in topics.by_name}
            self._topics_by_id = {topic.topic_id: topic for topic in topics.by_name}
            self._topics_of = topics

    @property
    def features(self) -> dict[str, int]:
        """The features that are in use, with their levels."""
        return dict(self.spec.features)

    def partition_id(self, key: TopicIdPartition) -> PartitionId | None:
        """The number of a partition, if there is one."""
        topic = self.topics_by_id.get(key.topic_id)
        there = topic is not None and 0 <= key.partition < len(topic.partitions)
        return topic.partitions[key.partition] if topic is not None and there else None

    def key_of(self, partition_id: PartitionId) -> TopicIdPartition:
        """The partition with this number."""
        return key_of(self.spec, partition_id)

    # ---- what changes it

    def go_to(self, offset: Offset) -> None:
        """The next record has this offset: not all records of the log are replayed."""
        if self.spec.end_offset != offset:
            self.spec = self.spec._replace(end_offset=offset)

    def replay(self, record: LogRecord) -> None:
        """Take one more record of the log."""
        self.replay_all([record])

    def replay_all(self, records: Iterable[LogRecord]) -> None:
        """Take several records of the log, together where that is quicker. One record is one step of the end offset."""
        together: list[MetadataRecord] = []
        for record in records:
            found = to_spec(record, self._number_of(record) if record.name in OF_PARTITIONS else None)
            self._note(record)
            if found is None:
                self._replay_together(together)
                self.go_to(Offset(self.spec.end_offset + 1))
            else:
                together.append(found)
        self._replay_together(together)

    def _replay_together(self, records: list[MetadataRecord]) -> None:
        self._become(replay_all(self.spec, tuple(records)))
        records.clear()

    def _become(self, spec: MetadataImage) -> None:
        """The image of `spec` is another; the directories of partitions that are gone go with them."""
        if spec.topics is not self.spec.topics and self.directories:
            there = {record.partition_id for record in spec.partitions}
            for gone in [partition_id for partition_id in self.directories if partition_id not in there]:
                del self.directories[gone]
        self.spec = spec

    def decided(self, spec: MetadataImage, records: Iterable[LogRecord]) -> None:
        """Take records that this process has decided, and the image of `spec` that has come of them."""
        for record in records:
            if record.name in OF_PARTITIONS:
                self._number_of(record)
            self._note(record)
        self._become(spec)

    def restore(self, records: Iterable[LogRecord], end_offset: Offset) -> None:
        """Take the records of a snapshot, which has everything before an offset."""
        self.replay_all(records)
        registered_at = Offset(end_offset - 1)
        brokers = tuple(broker._replace(registered_at=registered_at) for broker in self.spec.brokers)
        self.spec = self.spec._replace(end_offset=end_offset, brokers=brokers)

    def _number_of(self, record: LogRecord) -> PartitionId:
        """The number of the partition that a record is about, and which may be new."""
        message = record.message
        key = TopicIdPartition(TopicId(bytes(message.topic_id)), message.partition_id)
        partition_id = self._numbers.setdefault(key, PartitionId(len(self._numbers)))
        directories = message.__dict__.get("directories")
        if directories:
            self.directories[partition_id] = tuple(map(bytes, directories))
        return partition_id

    def _note(self, record: LogRecord) -> None:
        """Note what no rule of `spec` looks at."""
        message = record.message
        match record.name:
            case "RegisterBrokerRecord":
                self.registered[message.broker_id] = message
                if message.end_points:
                    self.endpoints[message.broker_id] = message.end_points[0]
            case "UnregisterBrokerRecord":
                self.registered.pop(message.broker_id, None)
                self.endpoints.pop(message.broker_id, None)

    # ---- as records again

    def records(self) -> list[LogRecord]:
        """Records from which the same image comes. **Kafka:** `MetadataImage.write`."""
        spec = self.spec
        found = [from_spec(FeatureLevelRecord(name, level)) for name, level in spec.features]
        for broker in spec.brokers:
            record = from_spec(RegisterBrokerRecord(broker, rack_of(spec, broker.broker)))
            found.append(with_introduction(record, self.registered[broker.broker]))
        partitions = {record.partition_id: record for record in spec.partitions}
        for topic in spec.topics.by_name:
            found.append(from_spec(TopicRecord(topic.name, topic.topic_id)))
            found += [with_directories(from_spec(partitions[one]), self.directories.get(one)) for one in topic.partitions]
        for resource, values in spec.configs:
            found += [from_spec(ConfigRecord(resource, name, value)) for name, value in values]
        return [*found, from_spec(ProducerIdsRecord(BrokerId(NO_LEADER), NO_BROKER_EPOCH, spec.following_producer_id))]


def key_of(image: MetadataImage, partition_id: PartitionId) -> TopicIdPartition:
    """The partition with this number, by its topic's id and its index."""
    record = partition_record(image, partition_id)
    assert record is not None, f"there is no partition {partition_id}"
    return record.place
