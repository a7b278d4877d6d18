"""CreateTopics: create a partition with given replicas."""

from dataclasses import dataclass

from spec.values import BrokerId, PartitionId


@dataclass(frozen=True, slots=True)
class CreatePartitionRequest:
    """Create a partition with these replicas, in order of preference. Kafka: `CreateTopicsRequest`, with assignment."""

    partition: PartitionId
    replicas: tuple[BrokerId, ...]
