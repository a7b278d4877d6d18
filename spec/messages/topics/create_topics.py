"""CreateTopics, as clients send it: topics by name, with numbers or with given replicas, and their settings."""

from dataclasses import dataclass

from kspec.spec.values import NO_TOPIC_ID, BrokerId, Error, TopicId

DEFAULT = -1
"""A number that the cluster's settings give. Kafka: `CreateTopicsRequest.NO_NUM_PARTITIONS`, `NO_REPLICATION_FACTOR`."""


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The replicas that a client wants for a partition. Kafka: `CreatableReplicaAssignment`."""

    partition: int
    replicas: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. `topic_id` is the id that it gets. Kafka: `CreateTopicsRequestData.CreatableTopic`."""

    name: str
    topic_id: TopicId
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest:
    """Create topics, or only say what would come of it. `seed` is the chance in placing replicas.

    Kafka: `CreateTopicsRequestData`.
    """

    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The outcome for one topic, and its properties; a message says what was wrong. Kafka: `CreatableTopicResult`."""

    name: str
    error: Error
    message: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """The outcome for each topic, each once, in the order asked. Kafka: `CreateTopicsResponseData`."""

    topics: tuple[CreatedTopic, ...]
