"""The cluster's topics as the controller's rules ask for them, answered from the image of the metadata log."""

from impl.metadata.image import ClusterImage
from impl.metadata.image import Topic as ImageTopic
from impl.metadata.records import LogRecord, PartitionKey, from_spec
from impl.wire.values import Message
from spec.controller.topics.cluster import (
    ConfigRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    Topic,
    TopicPartitionRecord,
    TopicRecord,
    TopicsImage,
    TopicsRecord,
)
from spec.controller.topics.names import may_collide, unified
from spec.messages.topics.alter_configs import ConfigResource, ResourceType
from spec.metadata import BrokerRegistration, PartitionRecord, partition_of
from spec.values import BrokerId, PartitionId, ProducerId, TopicId


class TopicsView:
    """Implements `spec.controller.topics.cluster.Cluster`."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    def as_values(self) -> TopicsImage:
        """The same as plain values: what a recorded decision has read."""
        image = self._image
        topics = tuple(topic for topic in map(self._seen, image.topics.values()) if topic is not None)
        settings = [
            (ConfigResource(RESOURCES.get(kind, ResourceType.UNKNOWN), resource), name, value)
            for (kind, resource), values in image.configs.items()
            for name, value in values.items()
        ]
        return TopicsImage(
            image.spec.brokers,
            tuple((BrokerId(broker), rack) for broker, rack in image.racks.items()),
            topics,
            tuple(sorted(settings, key=lambda setting: setting[1])),
            ProducerId(image.next_producer_id),
        )

    def brokers(self) -> tuple[BrokerRegistration, ...]:
        """The registered brokers."""
        return self._image.spec.brokers

    def rack_of(self, broker: BrokerId) -> str | None:
        """The rack that a broker has named."""
        return self._image.racks.get(broker)

    def topic(self, name: str) -> Topic | None:
        """The topic of this name."""
        return self._seen(self._image.topics.get(name))

    def topic_by_id(self, topic_id: TopicId) -> Topic | None:
        """The topic with this id."""
        return self._seen(self._image.topics_by_id.get(topic_id))

    def _seen(self, topic: ImageTopic | None) -> Topic | None:
        if topic is None:
            return None
        first = partition_of(self._image.spec, topic.partitions[0]) if topic.partitions else None
        factor = len(first.replicas) if first is not None else 0
        return Topic(topic.name, TopicId(topic.topic_id), len(topic.partitions), factor)

    def look_alike(self, name: str) -> str | None:
        """A topic whose name looks the same in metrics."""
        return next((one for one in self._image.topics if may_collide(one) and unified(one) == unified(name)), None)

    def configs(self, resource: ConfigResource) -> tuple[tuple[str, str], ...]:
        """The settings that a resource has of its own."""
        return tuple(sorted(self._image.configs.get((resource.kind.value, resource.name), {}).items()))

    def next_producer_id(self) -> ProducerId:
        """The first producer id that has not been given out."""
        return ProducerId(self._image.next_producer_id)


def as_logged(record: TopicsRecord) -> LogRecord:
    """A record that the rules for topics have decided, as the metadata log has it."""
    match record:
        case TopicRecord(name, topic_id):
            return LogRecord("TopicRecord", Message(name=name, topic_id=topic_id))
        case TopicPartitionRecord(topic_id, index, registration):
            return from_spec(PartitionRecord(PartitionId(0), registration), PartitionKey(topic_id, index))
        case RemoveTopicRecord(topic_id):
            return LogRecord("RemoveTopicRecord", Message(topic_id=topic_id))
        case ConfigRecord(resource, name, value):
            fields = {"resource_type": resource.kind.value, "resource_name": resource.name}
            return LogRecord("ConfigRecord", Message(**fields, name=name, value=value))
        case ProducerIdsRecord(broker, broker_epoch, following):
            fields = {"broker_id": broker, "broker_epoch": broker_epoch}
            return LogRecord("ProducerIdsRecord", Message(**fields, next_producer_id=following))


RESOURCES = {kind.value: kind for kind in ResourceType}
