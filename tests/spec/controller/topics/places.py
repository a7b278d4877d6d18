"""Clusters for the tests of topics."""

from spec.controller.topics.cluster import TopicRecord, TopicsImage, replay_all
from spec.controller.topics.creation import handle_create_topics
from spec.controller.topics.settings import TopicSettings
from spec.messages.topics.alter_configs import ConfigResource, ResourceType
from spec.messages.topics.create_topics import CreatedTopic, CreateTopicsRequest, NewTopic
from spec.metadata import BrokerRegistration
from spec.values import BrokerEpoch, BrokerId, Incarnation, TopicId

SETTINGS = TopicSettings()


def broker(number: int, fenced: bool = False, leaving: bool = False) -> BrokerRegistration:
    return BrokerRegistration(BrokerId(number), BrokerEpoch(number * 10), Incarnation(0), fenced, leaving)


def cluster(*brokers: BrokerRegistration) -> TopicsImage:
    """A cluster of these brokers, of 1, 2 and 3 if none is named."""
    return TopicsImage(brokers or (broker(1), broker(2), broker(3)))


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def new(name: str, partitions: int = -1, factor: int = -1, number: int = 1, **more: object) -> NewTopic:
    return NewTopic(name, topic_id(number), partitions, factor, **more)  # type: ignore[arg-type]


def create(
    image: TopicsImage, *topics: NewTopic, settings: TopicSettings = SETTINGS
) -> tuple[TopicsImage, list[CreatedTopic]]:
    """The cluster after a CreateTopics, and the answers."""
    decision = handle_create_topics(settings, image, CreateTopicsRequest(topics), 0)
    return replay_all(image, decision.records), list(decision.answer.topics)


def with_topic(name: str = "topic", partitions: int = 2, factor: int = 2) -> TopicsImage:
    """A cluster of three brokers that has a topic."""
    image, (answer,) = create(cluster(), new(name, partitions, factor))
    assert image.topics, answer
    return image


def named(name: str, number: int = 9) -> TopicRecord:
    return TopicRecord(name, topic_id(number))


def of_topic(name: str = "topic") -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name)


def of_broker(name: str = "") -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, name)
