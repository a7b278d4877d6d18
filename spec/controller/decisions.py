"""What the controller writes down when it decides: a partition's next state, and what a broker's coming or going entails.

The rules are in `spec.partition_change`; here is the order in which they apply. Everything is a function of the image.
"""

from spec.controller.protocol import ControllerProtocol, ControllerSettings
from spec.controller.rules.brokers import ControlState, Departure, is_fenced_state
from spec.controller.rules.partition_change import (
    Elected,
    Election,
    Target,
    record_assignment,
    record_eligible_leaders,
    record_last_known_leader,
    take_from_eligible,
    unchanged,
)
from spec.metadata import (
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
from spec.values import BrokerId

# ---- a partition


def acceptable_leaders(
    rules: ControllerProtocol,
    brokers: tuple[BrokerRegistration, ...],
    without: frozenset[BrokerId],
    including: frozenset[BrokerId],
) -> frozenset[BrokerId]:
    """Who may lead: by registration, except who is on the way out, and with who is on the way in.

    **Kafka:** `ReplicationControlManager.generateLeaderAndIsrUpdates`, `LeaderAcceptor`.
    """
    by_registration = {entry.broker for entry in brokers if rules.may_lead(brokers, entry.broker)}
    return (frozenset(by_registration) | including) - without


def effective_min_isr(settings: ControllerSettings, partition: PartitionRegistration) -> int:
    """`min.insync.replicas`, at most the number of replicas.

    **Kafka:** `ReplicationControlManager.getTopicEffectiveMinIsr`. **Leaves out:** that Kafka counts the replicas of the
    topic's first partition, whichever partition is asked about.
    """
    return min(settings.min_isr, len(partition.replicas))


def election_allowed(settings: ControllerSettings) -> Election:
    """What kind of election repairs a partition. **Kafka:** `uncleanLeaderElectionEnabledForTopic`."""
    return Election.UNCLEAN if settings.unclean_election else Election.ONLINE


def change_partition(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    before: PartitionRecord,
    target: Target,
    acceptable: frozenset[BrokerId],
    election: Election,
    unclean_shutdown: frozenset[BrokerId] = NOBODY,
) -> PartitionChangeRecord | None:
    """The record that makes a partition what it is to become, with the leader that it then has; `None` if nothing changes.

    Parameters: the partition as it is; the `target`; who may lead; the kind of election; who has lost records.

    **Kafka:** `PartitionChangeBuilder.build`. **Leaves out:** log directories; that the order of an ISR can change; that in
    3.0 a target ISR takes precedence over the one of an unclean election.
    """
    partition = before.registration
    elr_enabled = rules.elr_enabled(settings)
    remembers_leader = elr_enabled and settings.last_known_leader
    target = rules.complete_reassignment(target)
    if elr_enabled:
        target = rules.eligible_leaders(partition, target, effective_min_isr(settings, partition), unclean_shutdown)
    last_known = rules.last_known_leader(partition, target, acceptable, remembers_leader)
    elected = rules.elect(partition, target, acceptable, election, last_known)
    if elected.leader != partition.leader:
        target = take_from_eligible(target, elected.leader)
    record = _record_election(rules, before, target, elected)
    keeps_lists = elr_enabled and record.isr is None
    record = record_eligible_leaders(
        partition,
        record,
        target.elr if keeps_lists else NOBODY,
        target.last_known_elr if keeps_lists else NOBODY,
        settings.last_known_leader,
    )
    may_write_isr = record.isr is None and (elr_enabled or target.isr != NOBODY)
    if may_write_isr and target.isr != partition.isr:
        record = record._replace(isr=target.isr)
    if remembers_leader:
        record = record_last_known_leader(partition, record)
    record = record_assignment(partition, target, record)
    if target.recovery != partition.recovery:
        record = record._replace(recovery=target.recovery)
    return None if record == PartitionChangeRecord(before.partition_id) else record


def _record_election(
    rules: ControllerProtocol, before: PartitionRecord, target: Target, elected: Elected
) -> PartitionChangeRecord:
    """The record with the leader, if it changes or its epoch must, and with the ISR of an unclean election."""
    partition = before.registration
    record = PartitionChangeRecord(before.partition_id)
    if elected.leader == partition.leader:
        return record._replace(leader=partition.leader) if rules.opens_epoch(partition, target) else record
    record = record._replace(leader=elected.leader)
    if elected.unclean:
        record = record._replace(isr=frozenset({elected.leader}))
        if rules.marks_recovering(partition):
            record = record._replace(recovery=LeaderRecoveryState.RECOVERING)
    return record


def update_leader_and_isr(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    image: MetadataImage,
    partitions: tuple[PartitionRecord, ...],
    leaving: frozenset[BrokerId] = NOBODY,
    arriving: frozenset[BrokerId] = NOBODY,
    unclean_shutdown: frozenset[BrokerId] = NOBODY,
) -> tuple[PartitionChangeRecord, ...]:
    """The records by which partitions do without a broker, or are led by one again.

    Parameters: the `partitions` to look at; brokers that are about to leave or arrive, which the image does not tell yet;
    brokers that have lost records.

    **Kafka:** `ReplicationControlManager.generateLeaderAndIsrUpdates`.
    """
    gone = leaving | unclean_shutdown
    acceptable = acceptable_leaders(rules, image.brokers, gone, arriving - gone)
    changes = []
    for before in partitions:
        target = unchanged(before.registration)._replace(isr=before.registration.isr - gone)
        election = election_allowed(settings)
        changes.append(change_partition(rules, settings, before, target, acceptable, election, unclean_shutdown))
    return tuple(change for change in changes if change is not None)


def partitions_in_sync(image: MetadataImage, broker: BrokerId) -> tuple[PartitionRecord, ...]:
    """The partitions whose ISR has `broker`. **Kafka:** `BrokersToIsrs.partitionsWithBrokerInIsr`."""
    return tuple(record for record in image.partitions if broker in record.registration.isr)


def partitions_eligible(image: MetadataImage, broker: BrokerId) -> tuple[PartitionRecord, ...]:
    """The partitions in whose ELR `broker` is. **Kafka:** `BrokersToElrs.partitionsWithBrokerInElr`."""
    return tuple(record for record in image.partitions if broker in record.registration.elr)


def partitions_without_leader(image: MetadataImage) -> tuple[PartitionRecord, ...]:
    """The partitions that nobody leads. **Kafka:** `BrokersToIsrs.partitionsWithNoLeader`."""
    return tuple(record for record in image.partitions if not has_leader(record.registration))


def leads_any(image: MetadataImage, broker: BrokerId) -> bool:
    """Whether `broker` leads a partition. **Kafka:** `BrokersToIsrs.hasLeaderships`."""
    return any(record.registration.leader == broker for record in image.partitions)


def elect_leader(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    image: MetadataImage,
    before: PartitionRecord,
    election: Election,
) -> PartitionChangeRecord | None:
    """The record of an election in an otherwise unchanged partition. **Kafka:** `ReplicationControlManager.electLeader`."""
    acceptable = acceptable_leaders(rules, image.brokers, NOBODY, NOBODY)
    return change_partition(rules, settings, before, unchanged(before.registration), acceptable, election)


# ---- records for a broker that comes or goes


def records_of_fencing(
    rules: ControllerProtocol, settings: ControllerSettings, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """A broker is fenced: first it leaves every ISR, then it is fenced.

    **Kafka:** `ReplicationControlManager.handleBrokerFenced`.
    """
    broker = registration.broker
    in_sync = partitions_in_sync(image, broker)
    updates = update_leader_and_isr(rules, settings, image, in_sync, leaving=frozenset({broker}))
    return (*updates, BrokerRegistrationChangeRecord(broker, registration.broker_epoch, fenced=True))


def records_of_unfencing(
    rules: ControllerProtocol, settings: ControllerSettings, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """A broker is unfenced: then it may lead what nobody leads.

    **Kafka:** `ReplicationControlManager.handleBrokerUnfenced`.
    """
    broker = registration.broker
    leaderless = partitions_without_leader(image)
    updates = update_leader_and_isr(rules, settings, image, leaderless, arriving=frozenset({broker}))
    return (BrokerRegistrationChangeRecord(broker, registration.broker_epoch, fenced=False), *updates)


def records_of_controlled_shutdown(
    rules: ControllerProtocol, settings: ControllerSettings, image: MetadataImage, registration: BrokerRegistration
) -> tuple[MetadataRecord, ...]:
    """A broker begins to shut down: that is noted (since 3.3), then it leaves every ISR, and others lead for it.

    **Kafka:** `ReplicationControlManager.handleBrokerInControlledShutdown`.
    """
    broker = registration.broker
    in_sync = partitions_in_sync(image, broker)
    updates = update_leader_and_isr(rules, settings, image, in_sync, leaving=frozenset({broker}))
    if not rules.marks_shutdown(registration):
        return updates
    return (BrokerRegistrationChangeRecord(broker, registration.broker_epoch, in_controlled_shutdown=True), *updates)


def records_of_departure(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    image: MetadataImage,
    broker: BrokerId,
    departure: Departure,
) -> tuple[MetadataRecord, ...]:
    """What a new incarnation of a broker does to the partitions that list the incarnation before.

    **Kafka:** `ReplicationControlManager.handleBrokerUncleanShutdown`, `handleBrokerShutdown`.
    """
    if departure == Departure.IGNORED:
        return ()
    gone = frozenset({broker})
    in_sync = partitions_in_sync(image, broker)
    if departure == Departure.LIKE_FENCING:
        return update_leader_and_isr(rules, settings, image, in_sync, leaving=gone)
    listed = (*in_sync, *partitions_eligible(image, broker))
    return update_leader_and_isr(rules, settings, image, listed, unclean_shutdown=gone)


def records_of_control(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    image: MetadataImage,
    registration: BrokerRegistration,
    current: ControlState,
    following: ControlState,
) -> tuple[MetadataRecord, ...]:
    """What goes into the metadata when a broker takes a step on its way in or out; nothing if it stays where it is.

    A fenced broker that shuts down is fenced once more. **Kafka:** `ReplicationControlManager.processBrokerHeartbeat`.
    """
    if current == following:
        return ()
    if is_fenced_state(following):
        return records_of_fencing(rules, settings, image, registration)
    if following == ControlState.UNFENCED:
        return records_of_unfencing(rules, settings, image, registration)
    return records_of_controlled_shutdown(rules, settings, image, registration)
