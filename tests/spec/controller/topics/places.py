"""Clusters for the tests of topics."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.spec.controller.protocol import Controller, ControllerSettings, TopicSettings
from kspec.spec.controller.state import AppendRecords, ControllerState, ControllerStep
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.topics.create_topics import CreatedTopic, CreateTopicsRequest, NewTopic
from kspec.spec.metadata import BrokerRegistration, MetadataImage, MetadataRecord, TopicRecord
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.step import Reply
from kspec.spec.topics import ConfigResource, ResourceType
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Incarnation, MonotonicMs, TopicId

SETTINGS = TopicSettings()


def broker(number: int, fenced: bool = False, leaving: bool = False) -> BrokerRegistration:
    return BrokerRegistration(BrokerId(number), BrokerEpoch(number * 10), Incarnation(0), fenced, leaving)


def cluster(*brokers: BrokerRegistration) -> MetadataImage:
    """A cluster of these brokers, of 1, 2 and 3 if none is named."""
    return MetadataImage(brokers=brokers or (broker(1), broker(2), broker(3)))


class TopicDecision(NamedTuple):
    """A decision of the controller: its records, its answer, and the image with the records."""

    records: tuple[MetadataRecord, ...]
    answer: Any
    image: MetadataImage


def decided(
    handler: Callable[..., ControllerStep],
    image: MetadataImage,
    request: Any,
    settings: TopicSettings = SETTINGS,
    elr: bool = False,
) -> TopicDecision:
    """The decision of a controller that has this image."""
    controller = Controller(KRAFT_NEXT, ControllerSettings(eligible_leader_replicas=elr), settings)
    step = handler(controller, ControllerState(Epoch(1), image), request, MonotonicMs(0))
    appended = [effect.records for effect in step.effects if isinstance(effect, AppendRecords)]
    (answer,) = (effect.message for effect in step.effects if isinstance(effect, Reply))
    return TopicDecision(appended[0] if appended else (), answer, step.state.image)


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def new(name: str, partitions: int = -1, factor: int = -1, number: int = 1, **more: object) -> NewTopic:
    return NewTopic(name, topic_id(number), partitions, factor, **more)  # type: ignore[arg-type]


def create(
    image: MetadataImage, *topics: NewTopic, settings: TopicSettings = SETTINGS
) -> tuple[MetadataImage, list[CreatedTopic]]:
    """The cluster after a CreateTopics, and the answers."""
    decision = decided(handle_create_topics, image, CreateTopicsRequest(topics), settings)
    return decision.image, list(decision.answer.topics)


def with_topic(name: str = "topic", partitions: int = 2, factor: int = 2) -> MetadataImage:
    """A cluster of three brokers that has a topic."""
    image, (answer,) = create(cluster(), new(name, partitions, factor))
    assert image.topics.by_name, answer
    return image


def named(name: str, number: int = 9) -> TopicRecord:
    return TopicRecord(name, topic_id(number))


def of_topic(name: str = "topic") -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name)


def of_broker(name: str = "") -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, name)
