"""What the controller's rules for topics read, and the records that they decide.

`Cluster` is what a rule may ask. `TopicsImage` answers it from plain values; a broker may answer it from its own tables.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from spec.controller.topics.names import may_collide, unified
from spec.messages.topics.alter_configs import ConfigResource, ResourceType
from spec.metadata import BrokerRegistration, PartitionRegistration
from spec.values import BrokerEpoch, BrokerId, Error, ProducerId, TopicId

NOT_STORED = Error.UNKNOWN_SERVER_ERROR
"""What a client is told of a change that was decided, and that the metadata log could not take.

**Kafka:** `EventHandlerExceptionInfo.fromInternal`; the fault handler then ends the process.
"""

# ---- records


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic exists. Kafka: `TopicRecord`."""

    name: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class TopicPartitionRecord:
    """A new partition of a topic, by its index. Kafka: `PartitionRecord`; `spec.metadata` has it by a number."""

    topic_id: TopicId
    index: int
    registration: PartitionRegistration


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic is deleted, with its partitions and settings. Kafka: `RemoveTopicRecord`."""

    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A resource's own setting; `None` takes it away. Kafka: `ConfigRecord`."""

    resource: ConfigResource
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """A block of producer ids is given out: `following` is the first after it. Kafka: `ProducerIdsRecord`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    following: ProducerId


TopicsRecord: TypeAlias = TopicRecord | TopicPartitionRecord | RemoveTopicRecord | ConfigRecord | ProducerIdsRecord

AnswerT = TypeVar("AnswerT")


class Decision(NamedTuple, Generic[AnswerT]):
    """What the controller decides: records for the metadata log, and the answer for when they are committed."""

    records: tuple[TopicsRecord, ...]
    answer: AnswerT


# ---- what a rule may ask


class Topic(NamedTuple):
    """A topic: its name and id, how many partitions it has, and how many replicas the first of them."""

    name: str
    topic_id: TopicId
    partitions: int
    replication_factor: int


class Cluster(Protocol):
    """What the controller knows of topics, settings and brokers."""

    def brokers(self) -> tuple[BrokerRegistration, ...]:
        """The registered brokers, in order of their ids."""

    def rack_of(self, broker: BrokerId) -> str | None:
        """The rack that a broker has named. Kafka: `BrokerRegistration.rack`."""

    def topic(self, name: str) -> Topic | None:
        """The topic of this name."""

    def topic_by_id(self, topic_id: TopicId) -> Topic | None:
        """The topic with this id."""

    def look_alike(self, name: str) -> str | None:
        """A topic, this one included, whose name is the same but for '.' and '_', one of which it has."""

    def configs(self, resource: ConfigResource) -> tuple[tuple[str, str], ...]:
        """The settings that a resource has of its own, in order of their names."""

    def next_producer_id(self) -> ProducerId:
        """The first producer id that has not been given out."""


class TopicsImage(NamedTuple):
    """The fold of the records, and brokers and racks as given.

    Kafka: `TopicsImage`, `ConfigurationsImage`, `ProducerIdsImage`.
    """

    registered: tuple[BrokerRegistration, ...] = ()
    racks: tuple[tuple[BrokerId, str], ...] = ()
    topics: tuple[Topic, ...] = ()
    settings: tuple[tuple[ConfigResource, str, str], ...] = ()
    following_producer_id: ProducerId = ProducerId(0)

    def brokers(self) -> tuple[BrokerRegistration, ...]:
        """See `Cluster`."""
        return self.registered

    def rack_of(self, broker: BrokerId) -> str | None:
        """See `Cluster`."""
        return next((rack for one, rack in self.racks if one == broker), None)

    def topic(self, name: str) -> Topic | None:
        """See `Cluster`."""
        return next((topic for topic in self.topics if topic.name == name), None)

    def topic_by_id(self, topic_id: TopicId) -> Topic | None:
        """See `Cluster`."""
        return next((topic for topic in self.topics if topic.topic_id == topic_id), None)

    def look_alike(self, name: str) -> str | None:
        """See `Cluster`."""
        alike = (topic.name for topic in self.topics if may_collide(topic.name) and unified(topic.name) == unified(name))
        return next(alike, None)

    def configs(self, resource: ConfigResource) -> tuple[tuple[str, str], ...]:
        """See `Cluster`."""
        return tuple((name, value) for owner, name, value in self.settings if owner == resource)

    def next_producer_id(self) -> ProducerId:
        """See `Cluster`."""
        return self.following_producer_id


def replay(image: TopicsImage, record: TopicsRecord) -> TopicsImage:
    """The image after one more record. **Kafka:** `TopicsDelta.replay`, `ConfigurationsDelta.replay`, `ProducerIdsDelta`."""
    match record:
        case TopicRecord(name, topic_id):
            return image._replace(topics=(*image.topics, Topic(name, topic_id, 0, 0)))
        case TopicPartitionRecord(topic_id, index, registration):
            return image._replace(topics=tuple(_grown(topic, topic_id, index, registration) for topic in image.topics))
        case RemoveTopicRecord(topic_id):
            gone = next(topic for topic in image.topics if topic.topic_id == topic_id)
            resource = ConfigResource(ResourceType.TOPIC, gone.name)
            return image._replace(
                topics=tuple(topic for topic in image.topics if topic != gone),
                settings=tuple(setting for setting in image.settings if setting[0] != resource),
            )
        case ConfigRecord(resource, name, value):
            others = [setting for setting in image.settings if setting[:2] != (resource, name)]
            changed = others if value is None else [*others, (resource, name, value)]
            return image._replace(settings=tuple(sorted(changed, key=lambda setting: setting[1])))
        case _:
            return image._replace(following_producer_id=record.following)


def _grown(topic: Topic, topic_id: TopicId, index: int, registration: PartitionRegistration) -> Topic:
    if topic.topic_id != topic_id:
        return topic
    factor = len(registration.replicas) if index == 0 else topic.replication_factor
    return topic._replace(partitions=max(topic.partitions, index + 1), replication_factor=factor)


def replay_all(image: TopicsImage, records: tuple[TopicsRecord, ...]) -> TopicsImage:
    """The image after several records."""
    return reduce(replay, records, image)
