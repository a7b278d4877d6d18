"""The controller as the rules for topics know it: its settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of a controller that concern topics. Kafka: `QuorumController.Builder`, `KafkaConfig`."""

    default_partitions: int = 1
    """`num.partitions`."""

    default_replication_factor: int = 1
    """`default.replication.factor`."""

    eligible_leader_replicas: bool = False
    """The feature `eligible.leader.replicas.version`."""

    node: tuple[tuple[str, str], ...] = ()
    """What `server.properties` sets, by name."""

    node_defaults: tuple[tuple[str, str], ...] = ()
    """The defaults of a broker's settings, by name, as far as there are any."""

    node_id: int = 0
    """`node.id`: of the broker that describes its settings."""


MOST_PARTITIONS = 10_000
"""The partitions that one request may create. Kafka: `ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`."""
