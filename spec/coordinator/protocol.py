"""A group coordinator as its handlers know it: its settings."""

from dataclasses import dataclass

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """The configuration of a broker that coordinates groups; times in milliseconds. Kafka: `GroupCoordinatorConfig`."""

    min_session_timeout_ms: int = 6_000
    """`group.min.session.timeout.ms`."""

    max_session_timeout_ms: int = 30 * MINUTE_MS
    """`group.max.session.timeout.ms`."""

    initial_rebalance_delay_ms: int = 3_000
    """`group.initial.rebalance.delay.ms`: how long an empty group waits for further members."""

    max_size: int = 2**31 - 1
    """`group.max.size`, in members."""

    new_member_timeout_ms: int = 5 * MINUTE_MS
    """How long a new member may wait for its first generation; a constant in Kafka
    (`CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`)."""

    max_metadata_size: int = 4096
    """`offset.metadata.max.bytes`, counted in Java's characters (UTF-16 units)."""

    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    """`offsets.retention.minutes`."""

    retention_check_interval_ms: int = 10 * MINUTE_MS
    """`offsets.retention.check.interval.ms`: how often `on_offsets_expiry` is due."""

    offsets_partitions: int = 50
    """`offsets.topic.num.partitions`, of `__consumer_offsets`."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """A group coordinator: its settings. (Kafka's releases do not differ in rules that are stated here.)"""

    settings: CoordinatorSettings = CoordinatorSettings()
