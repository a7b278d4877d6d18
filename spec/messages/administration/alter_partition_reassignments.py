"""AlterPartitionReassignments (KIP-455): move a partition to other replicas."""

from dataclasses import dataclass

from kspec.spec.values import BrokerId, PartitionId


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsRequest:
    """Move a partition to other replicas; `None`: cancel the move under way. Kafka: `AlterPartitionReassignmentsRequest`."""

    partition_id: PartitionId
    replicas: tuple[BrokerId, ...] | None = None
