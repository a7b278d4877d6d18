"""A group coordinator as its handlers know it: the rules of its release, and its settings."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kspec.spec.assignors.by_name import assign_by_name
from kspec.spec.assignors.subscribers import Assignment, PartitionCounts, Subscriber
from kspec.spec.coordinator.modern.replaying import OwnersAfter, owners_after
from kspec.spec.coordinator.rules import consumers, generations, runtime, transactional
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.coordinator.rules.transactional import CountsOffset
from kspec.spec.topics import NO_TOPICS, TopicsImage
from kspec.spec.values import Error, GroupEpoch, TimestampMs, TopicId

MINUTE_MS = 60_000


class MigrationPolicy(Enum):
    """The groups with members that may change to the other protocol. Kafka: `ConsumerGroupMigrationPolicy`."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"


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
    """The longest wait (ms) of a new member for its first generation; a constant in Kafka
    (`CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`)."""

    max_metadata_size: int = 4096
    """`offset.metadata.max.bytes`, counted in Java's characters (UTF-16 units)."""

    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    """`offsets.retention.minutes`."""

    retention_check_interval_ms: int = 10 * MINUTE_MS
    """`offsets.retention.check.interval.ms`: how often `on_offsets_expiry` is due."""

    commit_timeout_ms: int = 5_000
    """`offsets.commit.timeout.ms`: how long an answer waits until records are committed."""

    consumer_session_timeout_ms: int = 45_000
    """`group.consumer.session.timeout.ms`."""

    consumer_heartbeat_interval_ms: int = 5_000
    """`group.consumer.heartbeat.interval.ms`."""

    consumer_max_size: int = 2**31 - 1
    """`group.consumer.max.size`, in members."""

    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """`group.consumer.assignors`, by name; the first is the default."""

    consumer_assignment_interval_ms: int = 1_000
    """`group.consumer.assignment.interval.ms`: how long after a target the next one is computed (4.3)."""

    consumer_retry_ms: int = 500
    """The time (ms) that an event waits which the log has refused; a constant in Kafka (`CoordinatorTimerImpl`)."""

    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`."""


@dataclass(frozen=True, slots=True)
class CoordinatorProtocol:
    """The rules in which the group coordinators of Kafka's releases differ (`spec.releases.coordinator`)."""

    name: str

    expires_with_members: Callable[[bool, bool], bool]
    """Whether offsets of topics that no member reads expire: if the group is stable or not, its topics known or not."""

    renewed_timeout: Callable[[int, int], int]
    """A time-out of a member that joins again (milliseconds): of that which it has, and that which it asks for."""

    commits_while_empty: Callable[[bool], bool]
    """Whether an empty group takes a commit without a generation: if it names a member or an instance, or not."""

    stays_stable: Callable[[bool, bool], bool]
    """Whether a static member that starts again leaves a stable group as it is: if the protocol stays, if its topics do."""

    is_released: Callable[[bool, bool], bool]
    """Whether a consumer may take the place of a static one: if that has left, and if it has the same member id."""

    first_epoch: GroupEpoch
    """The group epoch of a consumer group before anything has changed in it."""

    knows_epoch: Callable[[int, int, int, Places | None, Places], bool]
    """Whether a consumer's heartbeat is let in: its epoch; the member's, and the one before; what it owns, and may own."""

    epoch_after_revocation: Callable[[GroupEpoch], GroupEpoch]
    """The epoch of a consumer that has given up what it had to, and has to give up more."""

    free_partitions: Callable[[Places, Places, Places], Places]
    """Of partitions that a consumer is to have, those it may have: all that have owners, and its own pending ones."""

    target_of_member: Callable[[Places, frozenset[TopicId]], Places]
    """A consumer's target, of that which was computed, and the topics it subscribes to."""

    shrinks: Callable[[bool], bool]
    """Whether a consumer gives up at once what it no longer subscribes to: if its subscription has changed or not."""

    previous_after_shrinking: Callable[[GroupEpoch, GroupEpoch], GroupEpoch]
    """The previous epoch of a consumer that has so given up something, of its previous and its present epoch."""

    may_assign: Callable[[TimestampMs, int, TimestampMs], bool]
    """Whether a target may be computed: when the last one was (0: never), the interval (ms), the time now."""

    commits_of_old_epoch: Callable[[int, int | None], bool]
    """Whether a commit with an older epoch counts for a partition: that epoch, and in which it was assigned, if it is."""

    assigns_anew: Callable[[str, str], bool]
    """Whether a change of the preferred assignor is a reason for a new target."""

    owned_at: Callable[[int, Places | None], Places | None]
    """The partitions that a consumer counts as owning: by the epoch of its request, and what that says."""

    previous_after_moving: Callable[[GroupEpoch, GroupEpoch, GroupEpoch], GroupEpoch]
    """The previous epoch of a consumer that goes on to its target: by its previous epoch, its own, and the next."""

    described: Callable[[Places, Places], Places]
    """The partitions that a consumer is described with: of those it may own, and those it has to give up."""

    is_behind: Callable[[GroupEpoch, GroupEpoch, GroupEpoch], bool]
    """Whether a member of the classic protocol has to join a consumer group again: its epoch, the group's, the targets'."""

    targets_follow: Callable[[int], bool]
    """Whether targets are those of the group epoch without being computed, after members are out: how many are left."""

    has_place: Callable[[bool, bool], bool]
    """Whether a full consumer group lets a member in: if its id is known, and if its instance id is."""

    malformed_subscription: Error
    """The answer to a JoinGroup to a consumer group whose subscription cannot be read."""

    assignment_waits: bool
    """Whether a member of a stable group waits for an assignment that was loaded, and is not committed."""

    taken_on: Callable[[Any, Any], Any] = runtime.newest
    """The state of a group on which a step is taken, of the latest and the committed one."""

    reads: Callable[[Any, Any], Any] = runtime.what_is_committed
    """The state of a group that a read of offsets sees, of the latest and the committed one."""

    reads_at_once: Callable[[bool, bool], bool] = runtime.unless_stable_or_loaded
    """Whether a read of offsets is answered at once: if it wants stable ones, if records are loaded and not committed."""

    is_answered: Callable[[int, int], bool] = runtime.is_committed
    """Whether an answer is given that depends on the log up to an offset, when it is committed up to another."""

    is_present_generation: Callable[[int, int], bool] = generations.is_present_generation
    """Whether the generation that a request names is the group's."""

    following_generation: Callable[[int], int] = generations.following_generation
    """The number of the generation after one."""

    is_left_behind: Callable[[bool, bool], bool] = generations.is_left_behind
    """Whether a member is out when the joining ends: if it has joined or not, is static or not."""

    is_heard: Callable[[bool, bool], bool] = generations.is_heard
    """Whether a member stays whose session ends: if it waits for an answer or not, is new or not."""

    may_commit: Callable[[bool], bool] = generations.may_commit
    """Whether a member may commit offsets, if its generation awaits its assignment or not."""

    checks_when_written: bool = True
    """Whether offsets of a transaction are checked when they are written, and not before the transaction is verified."""

    counts_at_end: CountsOffset = transactional.counts_if_latest
    """Whether an offset counts when its transaction ends: if that is committed, and if a later offset has been."""

    is_unstable: Callable[[bool, bool], bool] = transactional.is_unstable
    """Whether an OffsetFetch is told that an offset is open: if it wants stable ones, if a transaction is to commit one."""

    still_owns: Callable[[Places | None, Places], bool] = consumers.still_owns
    """Whether a consumer that owns so much (`None`: it says nothing) has yet to give up some of these partitions."""

    owners_after: OwnersAfter = owners_after
    """The owners of partitions when a member has others: of the owners before, and the member before and after."""

    assigns: Callable[[str, tuple[Subscriber[bytes], ...], PartitionCounts[bytes]], Assignment[bytes]] = assign_by_name
    """The targets that the assignor of a name makes for members, by how many partitions topics have."""

    assigns_before_downgrade: bool = True
    """Whether targets are computed before a group becomes classic because its last consumer joins by JoinGroup."""

    downgrade_rebalances: Callable[[bool, bool], bool] = consumers.stable_when_classic
    """Whether such a group rebalances when it is classic: if the member reads other topics, if the targets are old."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """A group coordinator: the rules of its release, its settings, and the topics that it knows."""

    protocol: CoordinatorProtocol
    settings: CoordinatorSettings = CoordinatorSettings()
    topics: TopicsImage = NO_TOPICS
    """The topics as far as this broker has read the metadata. Kafka: `GroupMetadataManager.metadataImage`."""
