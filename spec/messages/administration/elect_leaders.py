"""ElectLeaders: elect the preferred leader, or any."""

from dataclasses import dataclass

from kspec.spec.values import PartitionId


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    """Elect the preferred leader, or with `unclean` any replica if the partition has no leader.

    Kafka: `ElectLeadersRequest`.
    """

    partition_id: PartitionId
    unclean: bool = False
