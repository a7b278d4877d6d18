"""The assignors of the coordinator, by the names that members prefer them by."""

from kspec.spec.assignors.subscribers import Assignment, PartitionCounts, Subscriber
from kspec.spec.assignors.turns import assign_ranges
from kspec.spec.assignors.uniform import assign_uniformly

RANGE = "range"
"""The name of the assignor that assigns ranges. Kafka: `RangeAssignor.name`; any other name is that of `uniform`."""


def assign_by_name(name: str, members: tuple[Subscriber[bytes], ...], counts: PartitionCounts[bytes]) -> Assignment[bytes]:
    """The assignment that the assignor of this name makes. **Kafka:** `GroupMetadataManager.consumerGroupAssignors`."""
    return assign_ranges(members, counts) if name == RANGE else assign_uniformly(members, counts)
