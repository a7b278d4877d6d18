"""The rules of the KRaft controller in which Kafka's releases differ, and its settings."""

from collections.abc import Callable
from dataclasses import dataclass

from spec.controller.rules.brokers import Departure
from spec.controller.rules.partition_change import Elected, Election, Target
from spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.metadata import BrokerRegistration, MetadataImage, PartitionRegistration
from spec.values import BrokerEpoch, BrokerId, Error, Offset


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The configuration of a cluster; a model sets a topic's and the cluster's settings together.

    - `min_isr`: `min.insync.replicas`, in replicas;
    - `unclean_election`: `unclean.leader.election.enable`;
    - `eligible_leader_replicas`: the feature `eligible.leader.replicas.version`;
    - `last_known_leader`: whether only the last leader is remembered, and not all that were eligible; a constant in Kafka
      (`useLastKnownLeaderInBalancedRecovery`);
    - `session_timeout_ms`: `broker.session.timeout.ms`.
    """

    min_isr: int = 1
    unclean_election: bool = False
    eligible_leader_replicas: bool = False
    last_known_leader: bool = True
    session_timeout_ms: int = 9000


@dataclass(frozen=True, slots=True)
class ControllerProtocol:
    """The rules in which Kafka's KRaft controllers differ.

    - `may_lead`: whether a broker may be elected, by its registration;
    - `elr_enabled`: whether eligible leader replicas are in use;
    - `eligible_leaders`: which replicas are eligible leader replicas, where they are in use;
    - `complete_reassignment`: when a reassignment is over;
    - `elect`: which replica leads;
    - `last_known_leader`: whether the last leader may be elected;
    - `marks_recovering`: whether an unclean election sets the partition's recovery state;
    - `opens_epoch`: whether a change that keeps the leader opens a new leader epoch;
    - `check_controller_ahead`: the answer to a proposal with epochs above the controller's;
    - `check_proposer`: whether a proposal comes from the leader, in its epoch, and is based on the present state;
    - `eligible_for_isr`: whether a proposed member may be in the ISR;
    - `moved_away`: the answer to a leader that loses the leadership by its own proposal;
    - `register_again`: what a second registration of the same incarnation does;
    - `departure`: how a new incarnation changes the partitions that list the incarnation before;
    - `caught_up`: what a broker must have replayed before it is unfenced;
    - `marks_shutdown`: whether the beginning of a controlled shutdown goes into the metadata.

    Traits of these rules, for models that are built on them:

    - `awaits_all_metadata`: whether a broker is unfenced only once it has replayed all of the metadata, see `caught_up`.
    """

    name: str
    may_lead: Callable[[tuple[BrokerRegistration, ...], BrokerId], bool]
    elr_enabled: Callable[[ControllerSettings], bool]
    eligible_leaders: Callable[[PartitionRegistration, Target, int, frozenset[BrokerId]], Target]
    complete_reassignment: Callable[[Target], Target]
    elect: Callable[[PartitionRegistration, Target, frozenset[BrokerId], Election, bool], Elected]
    last_known_leader: Callable[[PartitionRegistration, Target, frozenset[BrokerId], bool], bool]
    marks_recovering: Callable[[PartitionRegistration], bool]
    opens_epoch: Callable[[PartitionRegistration, Target], bool]
    check_controller_ahead: Callable[[PartitionRegistration, AlterPartitionRequest], Error]
    check_proposer: Callable[[PartitionRegistration, AlterPartitionRequest], Error]
    eligible_for_isr: Callable[[tuple[BrokerRegistration, ...], IsrMember], bool]
    moved_away: Callable[[AlterPartitionRequest], Error]
    register_again: Callable[[BrokerRegistration, BrokerRegistrationRequest, BrokerEpoch], BrokerRegistration]
    departure: Callable[[BrokerRegistration | None, BrokerRegistrationRequest, bool], Departure]
    caught_up: Callable[[MetadataImage, BrokerRegistration, Offset], bool]
    marks_shutdown: Callable[[BrokerRegistration], bool]
    awaits_all_metadata: bool


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller as its handlers know it: the rules of its release, and its settings."""

    protocol: ControllerProtocol
    settings: ControllerSettings = ControllerSettings()


def without_eligible_leaders(settings: ControllerSettings) -> bool:
    """There are no eligible leader replicas. **Kafka:** up to 3.9."""
    return False


def eligible_leaders_as_configured(settings: ControllerSettings) -> bool:
    """Eligible leader replicas are a setting. **Kafka:** `ReplicationControlManager.isElrEnabled`, since 4.0 (KIP-966)."""
    return settings.eligible_leader_replicas
