"""The rules of the KRaft controller in which Kafka's releases differ, and its settings."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from kspec.spec.controller.rules.brokers import BrokerSession, IncarnationChange
from kspec.spec.controller.rules.partition_change import Election, ElectionOutcome, PartitionTarget
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import BrokerRegistration, MetadataImage, PartitionChangeRecord, PartitionRegistration
from kspec.spec.values import BrokerEpoch, BrokerId, Error, MonotonicMs, Offset, PartitionId


class PartitionSettings(NamedTuple):
    """The settings of a partition whose topic sets them itself. Kafka: `ConfigurationControlManager.getTopicConfig`."""

    partition_id: PartitionId
    min_isr: int
    unclean_election: bool


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The configuration of a cluster; a model sets a topic's and the cluster's settings together."""

    min_isr: int = 1
    """`min.insync.replicas`, in replicas."""

    unclean_election: bool = False
    """`unclean.leader.election.enable`."""

    eligible_leader_replicas: bool = False
    """The feature `eligible.leader.replicas.version`."""

    last_known_leader: bool = True
    """Whether only the last leader is remembered, and not all that were eligible; a constant in Kafka
    (`useLastKnownLeaderInBalancedRecovery`)."""

    session_timeout_ms: int = 9000
    """`broker.session.timeout.ms`."""

    of_topics: tuple[PartitionSettings, ...] = ()
    """Partitions whose topics set `min.insync.replicas` or `unclean.leader.election.enable`, in order of their ids."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of a node that concern topics. Kafka: `QuorumController.Builder`, `KafkaConfig`."""

    default_partitions: int = 1
    """`num.partitions`."""

    default_replication_factor: int = 1
    """`default.replication.factor`."""

    node: tuple[tuple[str, str], ...] = ()
    """Settings in `server.properties`, by name."""

    node_defaults: tuple[tuple[str, str], ...] = ()
    """The defaults of a broker's settings, by name, as far as there are any."""

    node_id: int = 0
    """`node.id`: of the broker that describes its settings."""


@dataclass(frozen=True, slots=True)
class ControllerProtocol:
    """The rules in which Kafka's KRaft controllers differ."""

    name: str
    may_lead: Callable[[tuple[BrokerRegistration, ...], BrokerId], bool]
    """Whether a broker may be elected, by its registration."""

    elr_enabled: Callable[[ControllerSettings], bool]
    """Whether eligible leader replicas are in use."""

    eligible_leaders: Callable[[PartitionRegistration, PartitionTarget, int, frozenset[BrokerId]], PartitionTarget]
    """The eligible leader replicas, where they are in use."""

    complete_reassignment: Callable[[PartitionTarget], PartitionTarget]
    """The target after the end of a reassignment, if it is over."""

    elect: Callable[[PartitionRegistration, PartitionTarget, frozenset[BrokerId], Election, bool], ElectionOutcome]
    """The election of a leader."""

    last_known_leader: Callable[[PartitionRegistration, PartitionTarget, frozenset[BrokerId], bool], bool]
    """Whether the last leader may be elected."""

    remembers_leader: Callable[[PartitionRegistration, PartitionChangeRecord], PartitionChangeRecord]
    """The last known leader in a change of the partition, where that is remembered."""

    marks_recovering: Callable[[PartitionRegistration], bool]
    """Whether an unclean election sets the partition's recovery state."""

    opens_epoch: Callable[[PartitionRegistration, PartitionTarget], bool]
    """Whether a change that keeps the leader opens a new leader epoch."""

    check_controller_ahead: Callable[[PartitionRegistration, AlterPartitionRequest], Error]
    """The answer to a proposal with epochs above the controller's."""

    check_proposer: Callable[[PartitionRegistration, AlterPartitionRequest], Error]
    """Whether a proposal comes from the leader, in its epoch, and is based on the present state."""

    eligible_for_isr: Callable[[tuple[BrokerRegistration, ...], IsrMember], bool]
    """Whether a proposed member may be in the ISR."""

    ends_refused: Callable[[Error], bool]
    """Whether a refusal of a proposal is written to the partition, so that no other copy of it can be granted."""

    moved_away: Callable[[AlterPartitionRequest], Error]
    """The answer to a leader that loses the leadership by its own proposal."""

    register_again: Callable[[BrokerRegistration, BrokerRegistrationRequest, BrokerEpoch], BrokerRegistration]
    """The registration after a second one of the same incarnation."""

    valid_session: Callable[[BrokerSession, bool, MonotonicMs, int], bool]
    """Whether a registered broker, by its session and whether it is fenced, keeps another incarnation from registering."""

    heard_at_registration: Callable[[BrokerSession | None, bool, MonotonicMs], MonotonicMs]
    """The time of the last contact with a broker that registers."""

    departure: Callable[[BrokerRegistration | None, BrokerRegistrationRequest, bool], IncarnationChange]
    """The change by a new incarnation to the partitions that list the incarnation before."""

    caught_up: Callable[[MetadataImage, BrokerRegistration, Offset], bool]
    """Whether a broker has replayed enough to be unfenced."""

    may_unfence: Callable[[BrokerRegistration], bool]
    """Whether a fenced broker may be unfenced, by its registration."""

    marks_shutdown: Callable[[BrokerRegistration], bool]
    """Whether the beginning of a controlled shutdown goes into the metadata."""

    shutdown_offset: Callable[[Offset, Offset], Offset]
    """The offset that the others must replay before a broker stops: by the one before, and the end of the log."""

    # ---- Traits of these rules, for models that are built on them

    awaits_all_metadata: bool
    """Whether a broker is unfenced only once it has replayed all of the metadata, see `caught_up`."""


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller as its handlers know it: the rules of its release, and its settings."""

    protocol: ControllerProtocol
    settings: ControllerSettings = ControllerSettings()
    topics: TopicSettings = TopicSettings()


def settings_of(settings: ControllerSettings, partition_id: PartitionId) -> ControllerSettings:
    """The settings as they are for one partition: what its topic sets itself stands before what the cluster has.

    **Kafka:** `ReplicationControlManager.getTopicEffectiveMinIsr`, `uncleanLeaderElectionEnabledForTopic`.
    """
    place = bisect_left(settings.of_topics, partition_id, key=lambda own: own.partition_id)
    found = settings.of_topics[place : place + 1]
    if not found or found[0].partition_id != partition_id:
        return settings
    return replace(settings, min_isr=found[0].min_isr, unclean_election=found[0].unclean_election, of_topics=())


def without_eligible_leaders(settings: ControllerSettings) -> bool:
    """There are no eligible leader replicas. **Kafka:** up to 3.9."""
    return False


def eligible_leaders_as_configured(settings: ControllerSettings) -> bool:
    """Eligible leader replicas are a setting. **Kafka:** `ReplicationControlManager.isElrEnabled`, since 4.0 (KIP-966)."""
    return settings.eligible_leader_replicas
