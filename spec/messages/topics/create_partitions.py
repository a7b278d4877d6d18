"""CreatePartitions: a topic gets more partitions."""

from dataclasses import dataclass

from kspec.spec.values import BrokerId, Error


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic, how many partitions it is to have, and the replicas of the new ones if the client chooses them.

    Kafka: `CreatePartitionsTopic`.
    """

    name: str
    count: int
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest:
    """Add partitions, or only say what would come of it. `seed` is the chance in placing replicas.

    Kafka: `CreatePartitionsRequestData`.
    """

    topics: tuple[MorePartitions, ...]
    validate_only: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PartitionsCreated:
    """The outcome for one topic. Kafka: `CreatePartitionsTopicResult`."""

    name: str
    error: Error
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse:
    """The outcome for each topic. Kafka: `CreatePartitionsResponseData`."""

    topics: tuple[PartitionsCreated, ...]
