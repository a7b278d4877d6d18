"""The records of the controller's decisions: a partition's next state, and the changes when a broker comes or goes.

The rules are in `spec.controller.rules.partition_change`; this file has their order. Every decision is a function of the
image.
"""

from kspec.spec.controller.protocol import Controller, ControllerSettings, settings_of
from kspec.spec.controller.rules.brokers import ControlState, IncarnationChange, is_fenced_state
from kspec.spec.controller.rules.partition_change import (
    Election,
    ElectionOutcome,
    PartitionTarget,
    record_assignment,
    record_eligible_leaders,
    take_from_eligible,
    unchanged,
)
from kspec.spec.metadata import (
    NOBODY,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    LeaderRecoveryState,
    MetadataImage,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    has_leader,
)
from kspec.spec.values import BrokerId

# ---- a partition


def acceptable_leaders(
    controller: Controller,
    brokers: tuple[BrokerRegistration, ...],
    without: frozenset[BrokerId],
    including: frozenset[BrokerId],
) -> frozenset[BrokerId]:
    """The brokers that may be elected: by their registrations, without the leaving brokers, with the arriving ones.

    **Kafka:** `ReplicationControlManager.generateLeaderAndIsrUpdates`, `LeaderAcceptor`.
    """
    by_registration = {entry.broker for entry in brokers if controller.protocol.may_lead(brokers, entry.broker)}
    return (frozenset(by_registration) | including) - without


def effective_min_isr(settings: ControllerSettings, partition: PartitionRegistration) -> int:
    """`min.insync.replicas`, at most the number of replicas.

    **Kafka:** `ReplicationControlManager.getTopicEffectiveMinIsr`. **Leaves out:** that Kafka counts the replicas of the
    topic's first partition, whichever partition is asked about.
    """
    return min(settings.min_isr, len(partition.replicas))


def election_allowed(settings: ControllerSettings) -> Election:
    """The kind of election that gives a partition a leader again. **Kafka:** `uncleanLeaderElectionEnabledForTopic`."""
    return Election.UNCLEAN if settings.unclean_election else Election.ONLINE


def change_partition(
    controller: Controller,
    before: PartitionRecord,
    target: PartitionTarget,
    acceptable: frozenset[BrokerId],
    election: Election,
    unclean_shutdown: frozenset[BrokerId] = NOBODY,
) -> PartitionChangeRecord | None:
    """The record that changes a partition to its target, with the leader that it then has; `None` if nothing changes.

    Parameters: the present partition; the `target`; the brokers that may lead; the kind of election; the brokers that have
    lost records.

    **Kafka:** `PartitionChangeBuilder.build`. **Leaves out:** log directories; that the order of an ISR can change; that in
    3.0 a target ISR takes precedence over the one of an unclean election.
    """
    partition = before.registration
    target = _complete(controller, before, target, unclean_shutdown)
    last_known = controller.protocol.last_known_leader(partition, target, acceptable, _remembers_leader(controller))
    elected = controller.protocol.elect(partition, target, acceptable, election, last_known)
    if elected.leader != partition.leader:
        target = take_from_eligible(target, elected.leader)
    record = _record_election(controller, before, target, elected)
    record = _record_lists(controller, partition, target, record)
    record = _record_isr(controller, partition, target, record)
    if _remembers_leader(controller):
        record = controller.protocol.remembers_leader(partition, record)
    record = record_assignment(partition, target, record)
    if target.recovery != partition.recovery:
        record = record._replace(recovery=target.recovery)
    return None if record == PartitionChangeRecord(before.partition_id) else record


def _remembers_leader(controller: Controller) -> bool:
    """Whether the list of last known eligible leaders holds only the last leader, and not all that were eligible."""
    return controller.protocol.elr_enabled(controller.settings) and controller.settings.last_known_leader


def _complete(
    controller: Controller, before: PartitionRecord, target: PartitionTarget, unclean_shutdown: frozenset[BrokerId]
) -> PartitionTarget:
    """The target with a finished reassignment completed, and with its eligible leader replicas, where they are in use."""
    completed = controller.protocol.complete_reassignment(target)
    if not controller.protocol.elr_enabled(controller.settings):
        return completed
    min_isr = effective_min_isr(settings_of(controller.settings, before.partition_id), before.registration)
    return controller.protocol.eligible_leaders(before.registration, completed, min_isr, unclean_shutdown)


def _record_election(
    controller: Controller, before: PartitionRecord, target: PartitionTarget, elected: ElectionOutcome
) -> PartitionChangeRecord:
    """The record with the leader, if the leader or the leader epoch changes, and with the ISR of an unclean election."""
    partition = before.registration
    record = PartitionChangeRecord(before.partition_id)
    if elected.leader == partition.leader:
        return record._replace(leader=partition.leader) if controller.protocol.opens_epoch(partition, target) else record
    record = record._replace(leader=elected.leader)
    if elected.unclean:
        record = record._replace(isr=frozenset({elected.leader}))
        if controller.protocol.marks_recovering(partition):
            record = record._replace(recovery=LeaderRecoveryState.RECOVERING)
    return record


def _record_lists(
    controller: Controller, partition: PartitionRegistration, target: PartitionTarget, record: PartitionChangeRecord
) -> PartitionChangeRecord:
    """The record with the eligible leader replicas. An unclean election has set the ISR, and ends both lists."""
    kept = controller.protocol.elr_enabled(controller.settings) and record.isr is None
    elr, last_known_elr = (target.elr, target.last_known_elr) if kept else (NOBODY, NOBODY)
    return record_eligible_leaders(partition, record, elr, last_known_elr, controller.settings.last_known_leader)


def _record_isr(
    controller: Controller, partition: PartitionRegistration, target: PartitionTarget, record: PartitionChangeRecord
) -> PartitionChangeRecord:
    """The record with the target's ISR, unless an unclean election has set it; an empty ISR needs eligible leader
    replicas."""
    may_be_empty = controller.protocol.elr_enabled(controller.settings)
    keeps = record.isr is not None or target.isr == partition.isr or (target.isr == NOBODY and not may_be_empty)
    return record if keeps else record._replace(isr=target.isr)


def update_leader_and_isr(
    controller: Controller,
    image: MetadataImage,
    partitions: tuple[PartitionRecord, ...],
    leaving: frozenset[BrokerId] = NOBODY,
    arriving: frozenset[BrokerId] = NOBODY,
    unclean_shutdown: frozenset[BrokerId] = NOBODY,
) -> tuple[PartitionChangeRecord, ...]:
    """The records that take a broker out of partitions, or let it lead partitions again.

    Parameters: the `partitions` that may change; the brokers that are about to leave or arrive, which the image does not
    show yet; the brokers that have lost records.

    **Kafka:** `ReplicationControlManager.generateLeaderAndIsrUpdates`.
    """
    gone = leaving | unclean_shutdown
    acceptable = acceptable_leaders(controller, image.brokers, gone, arriving - gone)
    changes = []
    for before in partitions:
        target = unchanged(before.registration)._replace(isr=before.registration.isr - gone)
        election = election_allowed(settings_of(controller.settings, before.partition_id))
        changes.append(change_partition(controller, before, target, acceptable, election, unclean_shutdown))
    return tuple(change for change in changes if change is not None)


def partitions_in_sync(image: MetadataImage, broker: BrokerId) -> tuple[PartitionRecord, ...]:
    """The partitions whose ISR has `broker`. **Kafka:** `BrokersToIsrs.partitionsWithBrokerInIsr`."""
    return tuple(record for record in image.partitions if broker in record.registration.isr)


def partitions_eligible(image: MetadataImage, broker: BrokerId) -> tuple[PartitionRecord, ...]:
    """The partitions in whose ELR `broker` is. **Kafka:** `BrokersToElrs.partitionsWithBrokerInElr`."""
    return tuple(record for record in image.partitions if broker in record.registration.elr)


def partitions_without_leader(image: MetadataImage) -> tuple[PartitionRecord, ...]:
    """The partitions without a leader. **Kafka:** `BrokersToIsrs.partitionsWithNoLeader`."""
    return tuple(record for record in image.partitions if not has_leader(record.registration))


def leads_any(image: MetadataImage, broker: BrokerId) -> bool:
    """Whether `broker` leads a partition. **Kafka:** `BrokersToIsrs.hasLeaderships`."""
    return any(record.registration.leader == broker for record in image.partitions)


def elect_leader(
    controller: Controller,
    image: MetadataImage,
    before: PartitionRecord,
    election: Election,
) -> PartitionChangeRecord | None:
    """The record of an election in an otherwise unchanged partition. **Kafka:** `ReplicationControlManager.electLeader`."""
    acceptable = acceptable_leaders(controller, image.brokers, NOBODY, NOBODY)
    return change_partition(controller, before, unchanged(before.registration), acceptable, election)


# ---- records for a broker that comes or goes


def records_of_fencing(
    controller: Controller, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """The records that fence a broker: it leaves every ISR, then it is fenced.

    **Kafka:** `ReplicationControlManager.handleBrokerFenced`.
    """
    broker = registration.broker
    in_sync = partitions_in_sync(image, broker)
    updates = update_leader_and_isr(controller, image, in_sync, leaving=frozenset({broker}))
    return (*updates, BrokerRegistrationChangeRecord(broker, registration.broker_epoch, fenced=True))


def records_of_unfencing(
    controller: Controller, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """The records that unfence a broker: then it may lead partitions without a leader.

    **Kafka:** `ReplicationControlManager.handleBrokerUnfenced`.
    """
    broker = registration.broker
    leaderless = partitions_without_leader(image)
    updates = update_leader_and_isr(controller, image, leaderless, arriving=frozenset({broker}))
    return (BrokerRegistrationChangeRecord(broker, registration.broker_epoch, fenced=False), *updates)


def records_of_controlled_shutdown(
    controller: Controller, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """The records for the beginning of a controlled shutdown: since 3.3 one that says so; then the broker leaves every ISR,
    and other brokers lead its partitions.

    **Kafka:** `ReplicationControlManager.handleBrokerInControlledShutdown`.
    """
    broker = registration.broker
    in_sync = partitions_in_sync(image, broker)
    updates = update_leader_and_isr(controller, image, in_sync, leaving=frozenset({broker}))
    if not controller.protocol.marks_shutdown(registration):
        return updates
    return (BrokerRegistrationChangeRecord(broker, registration.broker_epoch, in_controlled_shutdown=True), *updates)


def records_of_departure(
    controller: Controller,
    image: MetadataImage,
    broker: BrokerId,
    departure: IncarnationChange,
) -> tuple[MetadataRecord, ...]:
    """The records for the partitions that list an earlier incarnation of a broker.

    **Kafka:** `ReplicationControlManager.handleBrokerUncleanShutdown`, `handleBrokerShutdown`.
    """
    if departure == IncarnationChange.IGNORED:
        return ()
    gone = frozenset({broker})
    in_sync = partitions_in_sync(image, broker)
    if departure == IncarnationChange.LIKE_FENCING:
        return update_leader_and_isr(controller, image, in_sync, leaving=gone)
    listed = (*in_sync, *partitions_eligible(image, broker))
    return update_leader_and_isr(controller, image, listed, unclean_shutdown=gone)


def records_of_control(
    controller: Controller,
    image: MetadataImage,
    registration: BrokerRegistration,
    current: ControlState,
    following: ControlState,
) -> tuple[MetadataRecord, ...]:
    """The records for a broker's change of state; none if its state stays.

    A fenced broker that shuts down is fenced once more. **Kafka:** `ReplicationControlManager.processBrokerHeartbeat`.
    """
    if current == following:
        return ()
    if is_fenced_state(following):
        return records_of_fencing(controller, image, registration)
    if following == ControlState.UNFENCED:
        return records_of_unfencing(controller, image, registration)
    return records_of_controlled_shutdown(controller, image, registration)
