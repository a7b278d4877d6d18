"""Topics and settings as the metadata log has them: names beside the numbers of partitions.

The images are sorted, so that a look-up takes few steps however many topics there are.
"""

from bisect import bisect_left
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from kspec.spec.values import NO_TOPIC_ID, PartitionId, TopicId


class ResourceType(Enum):
    """A kind of resource that has settings. Kafka: `ConfigResource.Type`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic by its name, a broker by its id as text, all brokers by the empty name. Kafka: `ConfigResource`."""

    kind: ResourceType
    name: str


class TopicPartition(NamedTuple):
    """A partition by its topic's name and its index there. Kafka: `TopicPartition`."""

    topic: str
    partition: int


class TopicIdPartition(NamedTuple):
    """A partition's place: its topic's id and its index there. Kafka: `TopicIdPartition`."""

    topic_id: TopicId
    partition: int


NO_PLACE = TopicIdPartition(NO_TOPIC_ID, 0)
"""The place of a partition whose topic nobody asks for."""


class TopicImage(NamedTuple):
    """A topic, and the number of each of its partitions in the order of their indexes. Kafka: `TopicImage`."""

    name: str
    topic_id: TopicId
    partitions: tuple[PartitionId, ...] = ()


class TopicsImage(NamedTuple):
    """All topics, in order of their names and of their ids. Kafka: `TopicsImage`."""

    by_name: tuple[TopicImage, ...] = ()
    by_id: tuple[TopicImage, ...] = ()


NO_TOPICS = TopicsImage()


def topic_named(topics: TopicsImage, name: str) -> TopicImage | None:
    """The topic of this name, `None` if there is none. **Kafka:** `TopicsImage.getTopic`."""
    place = bisect_left(topics.by_name, name, key=attrgetter("name"))
    there = topics.by_name[place : place + 1]
    return there[0] if there and there[0].name == name else None


def topic_with_id(topics: TopicsImage, topic_id: TopicId) -> TopicImage | None:
    """The topic with this id, `None` if there is none. **Kafka:** `TopicsImage.getTopic`."""
    place = bisect_left(topics.by_id, topic_id, key=attrgetter("topic_id"))
    there = topics.by_id[place : place + 1]
    return there[0] if there and there[0].topic_id == topic_id else None


def with_topic(topics: TopicsImage, topic: TopicImage) -> TopicsImage:
    """The topics with a new one, or with another state of one that is there. **Kafka:** `TopicsDelta.apply`."""
    return TopicsImage(_put(topics.by_name, topic, "name"), _put(topics.by_id, topic, "topic_id"))


def without_topics(topics: TopicsImage, names: AbstractSet[str]) -> TopicsImage:
    """The topics without those of these names. **Kafka:** `TopicsDelta.replay` of `RemoveTopicRecord`."""
    by_name, by_id = topics
    return TopicsImage(
        tuple(one for one in by_name if one.name not in names), tuple(one for one in by_id if one.name not in names)
    )


def with_partitions(topics: TopicsImage, topic_id: TopicId, added: dict[int, PartitionId]) -> TopicsImage:
    """The topics with more partitions of one of them, by their indexes; those that it has stay.

    **Kafka:** `TopicDelta.replay` of `PartitionRecord`.
    """
    topic = topic_with_id(topics, topic_id)
    if topic is None:
        return topics
    have = len(topic.partitions)
    new = tuple(number for index, number in sorted(added.items()) if index >= have)
    return with_topic(topics, topic._replace(partitions=(*topic.partitions, *new))) if new else topics


def _put(sorted_topics: tuple[TopicImage, ...], topic: TopicImage, by: str) -> tuple[TopicImage, ...]:
    place = bisect_left(sorted_topics, getattr(topic, by), key=attrgetter(by))
    there = sorted_topics[place : place + 1]
    known = bool(there) and getattr(there[0], by) == getattr(topic, by)
    return (*sorted_topics[:place], topic, *sorted_topics[place + known :])


# ---- settings


class ConfigurationImage(NamedTuple):
    """The settings that a resource has of its own, in order of their names. Kafka: `ConfigurationImage`."""

    resource: ConfigResource
    values: tuple[tuple[str, str], ...]


ConfigurationsImage: TypeAlias = tuple[ConfigurationImage, ...]
"""All resources that have settings of their own, in order. Kafka: `ConfigurationsImage`."""


def configs_of(configs: ConfigurationsImage, resource: ConfigResource) -> tuple[tuple[str, str], ...]:
    """The settings that a resource has of its own. **Kafka:** `ConfigurationsImage.configMapForResource`."""
    place = bisect_left(configs, _order_of(resource), key=_place_of)
    there = configs[place : place + 1]
    return there[0].values if there and there[0].resource == resource else ()


def with_config(configs: ConfigurationsImage, resource: ConfigResource, name: str, value: str | None) -> ConfigurationsImage:
    """The settings after a change of one; `None` takes it away. **Kafka:** `ConfigurationDelta.replay`."""
    others = tuple(one for one in configs_of(configs, resource) if one[0] != name)
    values = others if value is None else tuple(sorted((*others, (name, value))))
    new = (ConfigurationImage(resource, values),) if values else ()
    place = bisect_left(configs, _order_of(resource), key=_place_of)
    known = bool(configs[place : place + 1]) and configs[place].resource == resource
    return (*configs[:place], *new, *configs[place + known :])


def _order_of(resource: ConfigResource) -> tuple[Any, ...]:
    return resource.kind.value, resource.name


def _place_of(known: ConfigurationImage) -> tuple[Any, ...]:
    return _order_of(known.resource)
