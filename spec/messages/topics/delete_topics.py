"""DeleteTopics: topics are deleted, by name or by id."""

from dataclasses import dataclass

from kspec.spec.values import NO_TOPIC_ID, Error, TopicId


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest:
    """Delete topics: each has a name, or else an id. Kafka: `DeleteTopicsRequestData`."""

    topics: tuple["TopicName", ...]


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic by its name or by its id. Kafka: `DeleteTopicState`."""

    name: str | None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """The outcome for one topic. Kafka: `DeletableTopicResult`."""

    name: str | None
    topic_id: TopicId
    error: Error
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """The outcome for each topic, each once. Kafka: `DeleteTopicsResponseData`."""

    topics: tuple[DeletedTopic, ...]
