"""CreateTopics: create a partition with given replicas."""

from dataclasses import dataclass

from spec.values import BrokerId, PartitionId


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest:
    """Create a partition with these replicas, in order of preference. Kafka: `CreateTopicsRequest`, with assignment."""

    partition_id: PartitionId
    replicas: tuple[BrokerId, ...]
