"""Changes of a partition by the controller: leader, ISR, eligible leader replicas, epochs.

The controller first sets the `PartitionTarget` of the change, then elects a leader, then writes the difference as one
record. Each step is a small rule here; `spec.controller.decisions` calls them in Kafka's order. A rule reads the partition,
the target, and `acceptable`: the brokers that may lead by the controller's knowledge of them.
"""

from enum import Enum
from typing import NamedTuple

from kspec.spec.metadata import NO_LEADER_CHANGE, NOBODY, LeaderRecoveryState, PartitionChangeRecord, PartitionRegistration
from kspec.spec.values import NO_LEADER, BrokerId


class Election(Enum):
    """The kind of an election. Kafka: `PartitionChangeBuilder.Election`."""

    PREFERRED = "the first replica if it is in sync"
    ONLINE = "any in-sync replica, preferably who leads"
    UNCLEAN = "an in-sync replica, else any"


class PartitionTarget(NamedTuple):
    """The decided parts of a partition's next state. Kafka: the target fields of `PartitionChangeBuilder`."""

    replicas: tuple[BrokerId, ...]
    isr: frozenset[BrokerId]
    adding: frozenset[BrokerId]
    removing: frozenset[BrokerId]
    recovery: LeaderRecoveryState
    elr: frozenset[BrokerId]
    last_known_elr: frozenset[BrokerId]


class ElectionOutcome(NamedTuple):
    """The outcome of an election: the leader (`NO_LEADER` if no replica can lead), and whether records may be lost."""

    leader: BrokerId
    unclean: bool = False


NOBODY_ELECTED = ElectionOutcome(NO_LEADER)


def unchanged(partition: PartitionRegistration) -> PartitionTarget:
    """The target that changes nothing. **Kafka:** the constructor of `PartitionChangeBuilder`."""
    return PartitionTarget(
        partition.replicas,
        partition.isr,
        partition.adding,
        partition.removing,
        partition.recovery,
        partition.elr,
        partition.last_known_elr,
    )


# ---- reassignment


def is_reassigning(adding: frozenset[BrokerId], removing: frozenset[BrokerId]) -> bool:
    """Whether a reassignment is under way. **Kafka:** `PartitionReassignmentReplicas.isReassignmentInProgress`."""
    return adding != NOBODY or removing != NOBODY


def without_removed(target: PartitionTarget) -> PartitionTarget:
    """The target after its reassignment: the removed replicas are gone, and none is being added or removed."""
    return target._replace(
        replicas=tuple(replica for replica in target.replicas if replica not in target.removing),
        isr=target.isr - target.removing,
        adding=NOBODY,
        removing=NOBODY,
    )


def complete_when_added_are_in_sync(target: PartitionTarget) -> PartitionTarget:
    """A reassignment is over as soon as all *added* replicas are in sync, and at least one of the replicas that stay.

    **Kafka:** `PartitionReassignmentReplicas.maybeCompleteReassignment`, before 3.5 `PartitionChangeBuilder`; up to 3.7.
    """
    over = without_removed(target)
    remains = target.removing == NOBODY or (over.isr != NOBODY and over.replicas != ())
    return over if is_reassigning(target.adding, target.removing) and remains and target.adding <= over.isr else target


def complete_when_all_are_in_sync(target: PartitionTarget) -> PartitionTarget:
    """A reassignment is over as soon as *all* replicas that stay are in sync.

    **Kafka:** `PartitionReassignmentReplicas.maybeCompleteReassignment` since 3.8.
    """
    over = without_removed(target)
    remains = target.removing == NOBODY or (over.isr != NOBODY and over.replicas != ())
    in_sync = frozenset(over.replicas) <= over.isr
    return over if is_reassigning(target.adding, target.removing) and remains and in_sync else target


def complete_when_added_are_in_sync_unless_fewer_stay(target: PartitionTarget) -> PartitionTarget:
    """A reassignment is over as soon as all *added* replicas are in sync; if it adds fewer than it removes, all that stay.

    A replica that was being added and is to be removed again counts as added, but cannot be in sync among those that stay:
    such a reassignment is never over.

    **Kafka:** `PartitionReassignmentReplicas.maybeCompleteReassignment` since 4.3 (KAFKA-19975); executed on 4.4.0.
    """
    if is_reassigning(target.adding, target.removing) and not target.adding <= without_removed(target).isr:
        return target
    fewer = len(target.adding) < len(target.removing)
    return complete_when_all_are_in_sync(target) if fewer else complete_when_added_are_in_sync(target)


def complete_when_added_that_stay_are_in_sync(target: PartitionTarget) -> PartitionTarget:
    """As `complete_when_added_are_in_sync_unless_fewer_stay`, but an added replica that is to be removed again is not waited
    for.

    **Kafka:** no release.
    """
    taken_back = target.adding & target.removing
    if taken_back == NOBODY:
        return complete_when_added_are_in_sync_unless_fewer_stay(target)
    after = complete_when_added_are_in_sync_unless_fewer_stay(target._replace(adding=target.adding - taken_back))
    return target if is_reassigning(after.adding, after.removing) else after


# ---- eligible leader replicas (KIP-966)


def with_eligible_leaders(
    partition: PartitionRegistration, target: PartitionTarget, min_isr: int, unclean_shutdown: frozenset[BrokerId]
) -> PartitionTarget:
    """The target with its eligible leader replicas: those that leave the ISR while fewer than `min_isr` are left in it.

    They hold all committed records, because nothing is committed below `min_isr`. A replica that has lost records in an
    unclean shutdown is not eligible. With `min_isr` replicas in sync again both lists become empty. A replica that is no
    longer eligible is remembered as last known.

    **Kafka:** `PartitionChangeBuilder.maybePopulateTargetElr`.
    """
    if len(target.isr) >= min_isr:
        return target._replace(elr=NOBODY, last_known_elr=NOBODY)
    candidates = target.elr | partition.isr
    elr = candidates - target.isr - unclean_shutdown
    return target._replace(elr=elr, last_known_elr=(candidates | target.last_known_elr) - target.isr - elr)


def with_assigned_eligible_leaders(
    partition: PartitionRegistration, target: PartitionTarget, min_isr: int, unclean_shutdown: frozenset[BrokerId]
) -> PartitionTarget:
    """As `with_eligible_leaders`, and a broker that is no longer a replica of the partition is neither eligible nor
    remembered.

    A replica that a reassignment removes deletes its records. If it is assigned again, it starts empty, and must not be
    elected for records that it once held.

    **Kafka:** no release does so.
    """
    listed = with_eligible_leaders(partition, target, min_isr, unclean_shutdown)
    assigned = frozenset(target.replicas)
    return listed._replace(elr=listed.elr & assigned, last_known_elr=listed.last_known_elr & assigned)


# ---- elections


def is_valid_leader(target: PartitionTarget, acceptable: frozenset[BrokerId], replica: BrokerId) -> bool:
    """Whether `replica` may lead without risk: acceptable, and in sync, or eligible while the ISR is empty.

    **Kafka:** `PartitionChangeBuilder.isValidNewLeader`.
    """
    eligible = replica in target.isr or (target.isr == NOBODY and replica in target.elr)
    return eligible and replica in acceptable


def last_known_leader_never(
    partition: PartitionRegistration, target: PartitionTarget, acceptable: frozenset[BrokerId], enabled: bool
) -> bool:
    """The last leader is not remembered. **Kafka:** up to 3.9 (without eligible leader replicas)."""
    return False


def last_known_leader_up_or_down(
    partition: PartitionRegistration, target: PartitionTarget, acceptable: frozenset[BrokerId], enabled: bool
) -> bool:
    """Whether the last leader may lead again: no replica is in sync or eligible, and exactly one is remembered.

    It is not checked whether that broker is up (KAFKA-19522).

    Parameters: `enabled`: eligible leader replicas and the last known leader are both in use.

    **Kafka:** `PartitionChangeBuilder.canElectLastKnownLeader` in 4.0; read from kafka-metadata 4.0.0, 4.0.1 and 4.0.2.
    """
    return enabled and target.elr == NOBODY and target.isr == NOBODY and len(partition.last_known_elr) == 1


def last_known_leader_if_up(
    partition: PartitionRegistration, target: PartitionTarget, acceptable: frozenset[BrokerId], enabled: bool
) -> bool:
    """As `last_known_leader_up_or_down`, and that broker is acceptable.

    **Kafka:** `PartitionChangeBuilder.canElectLastKnownLeader` since 4.1 (KAFKA-19522); read from kafka-metadata 4.1.0.
    """
    remembered = last_known_leader_up_or_down(partition, target, acceptable, enabled)
    return remembered and partition.last_known_elr <= acceptable


def last_known_leader_if_assigned(
    partition: PartitionRegistration, target: PartitionTarget, acceptable: frozenset[BrokerId], enabled: bool
) -> bool:
    """As `last_known_leader_if_up`, and that broker is a replica. **Kafka:** no release."""
    remembered = last_known_leader_if_up(partition, target, acceptable, enabled)
    return remembered and partition.last_known_elr <= frozenset(target.replicas)


def elect(
    partition: PartitionRegistration,
    target: PartitionTarget,
    acceptable: frozenset[BrokerId],
    election: Election,
    last_known: bool,
) -> ElectionOutcome:
    """The leader by an election of this kind; `last_known`: the last leader may be elected if there is no other candidate.

    **Kafka:** `PartitionChangeBuilder.electLeader`, `electPreferredLeader`, `electAnyLeader`; since 3.2.
    """
    preferred = target.replicas[:1] if election == Election.PREFERRED else ()
    for candidate in (*preferred, partition.leader, *target.replicas):
        if is_valid_leader(target, acceptable, candidate):
            return ElectionOutcome(candidate)
    if last_known:
        return ElectionOutcome(min(partition.last_known_elr), unclean=True)
    if election == Election.UNCLEAN:
        return elect_any(target, acceptable)
    return NOBODY_ELECTED


def elect_first_in_sync(
    partition: PartitionRegistration,
    target: PartitionTarget,
    acceptable: frozenset[BrokerId],
    election: Election,
    last_known: bool,
) -> ElectionOutcome:
    """The leader stays if it is in the target's ISR, acceptable or not; otherwise the first valid replica leads, or an
    unclean one.

    Only a preferred election takes the leadership from a leader in sync.

    **Kafka:** `PartitionChangeBuilder.shouldTryElection`, `BestLeader` in 3.0 and 3.1.
    """
    prefers_another = election == Election.PREFERRED and partition.leader != partition.replicas[0]
    if partition.leader in target.isr and not prefers_another:
        return ElectionOutcome(partition.leader)
    for candidate in target.replicas:
        if is_valid_leader(target, acceptable, candidate):
            return ElectionOutcome(candidate)
    return elect_any(target, acceptable) if election == Election.UNCLEAN else NOBODY_ELECTED


def elect_any(target: PartitionTarget, acceptable: frozenset[BrokerId]) -> ElectionOutcome:
    """The first acceptable replica, in sync or not: committed records may be lost.

    **Kafka:** the last resort of `PartitionChangeBuilder.electAnyLeader`.
    """
    return next(
        (ElectionOutcome(replica, unclean=True) for replica in target.replicas if replica in acceptable), NOBODY_ELECTED
    )


def take_from_eligible(target: PartitionTarget, leader: BrokerId) -> PartitionTarget:
    """The target when an eligible leader replica has been elected: it alone is in sync now, and no longer eligible.

    **Kafka:** `PartitionChangeBuilder.tryElection`.
    """
    if leader not in target.elr:
        return target
    return target._replace(isr=frozenset({leader}), elr=target.elr - {leader})


def never_recovering(partition: PartitionRegistration) -> bool:
    """An unclean election does not change the recovery state. **Kafka:** up to 3.1."""
    return False


def recovering_unless_already(partition: PartitionRegistration) -> bool:
    """An unclean election makes the partition `RECOVERING`, unless it is already. **Kafka:** `tryElection`, since 3.2."""
    return partition.recovery != LeaderRecoveryState.RECOVERING


# ---- epochs


def removes_replica(partition: PartitionRegistration, target: PartitionTarget) -> bool:
    """Whether a replica leaves the partition; the leader epoch then grows even if the leader stays.

    **Kafka:** `PartitionChangeBuilder.triggerLeaderEpochBumpForReplicaReassignmentIfNeeded`; alone since 3.6 (KAFKA-15021).
    """
    return not frozenset(partition.replicas) <= frozenset(target.replicas)


def removes_replica_or_shrinks_isr(partition: PartitionRegistration, target: PartitionTarget) -> bool:
    """Whether a replica leaves the partition or the ISR; either makes the leader epoch grow.

    **Kafka:** `PartitionChangeBuilder.triggerLeaderEpochBumpIfNeeded` up to 3.5.
    """
    return removes_replica(partition, target) or not partition.isr <= target.isr


# ---- the record


def leads_after(partition: PartitionRegistration, record: PartitionChangeRecord) -> bool:
    """Whether the partition has a leader once `record` is applied."""
    leader = partition.leader if record.leader == NO_LEADER_CHANGE else record.leader
    return leader != NO_LEADER


def record_last_known_leader(partition: PartitionRegistration, record: PartitionChangeRecord) -> PartitionChangeRecord:
    """The record with the last known leader: set when the ISR becomes empty, cleared when there is a leader.

    **Kafka:** `PartitionChangeBuilder.maybeUpdateLastKnownLeader` in 4.0.0 to 4.1.0.
    """
    if record.isr == NOBODY and partition.last_known_elr != {partition.leader}:
        return record._replace(last_known_elr=frozenset({partition.leader}))
    if leads_after(partition, record) and partition.last_known_elr != NOBODY:
        return record._replace(last_known_elr=NOBODY)
    return record


def record_last_known_leader_once(partition: PartitionRegistration, record: PartitionChangeRecord) -> PartitionChangeRecord:
    """The record with the last known leader: set when the partition loses its leader, if none is remembered; cleared when a
    leader is elected.

    **Kafka:** `PartitionChangeBuilder.maybeUpdateLastKnownLeader` since 4.1.1; read from kafka-metadata 4.1.1 and 4.2.0.
    """
    if record.leader == NO_LEADER and partition.last_known_elr == NOBODY:
        return record._replace(last_known_elr=frozenset({partition.leader}))
    if record.leader not in (NO_LEADER, NO_LEADER_CHANGE) and partition.last_known_elr != NOBODY:
        return record._replace(last_known_elr=NOBODY)
    return record


def record_eligible_leaders(
    partition: PartitionRegistration,
    record: PartitionChangeRecord,
    elr: frozenset[BrokerId],
    last_known_elr: frozenset[BrokerId],
    last_known_leader: bool,
) -> PartitionChangeRecord:
    """The record with the lists of eligible and last known eligible leaders, as far as they change.

    `last_known_leader`: the second list holds the last leader instead (`record_last_known_leader`).

    **Kafka:** `PartitionChangeBuilder.maybeUpdateRecordElr`.
    """
    if elr != partition.elr:
        record = record._replace(elr=elr)
    if not last_known_leader and last_known_elr != partition.last_known_elr:
        record = record._replace(last_known_elr=last_known_elr)
    return record


def record_assignment(
    partition: PartitionRegistration, target: PartitionTarget, record: PartitionChangeRecord
) -> PartitionChangeRecord:
    """The record with the replicas, and with the added and removed ones, as far as they change.

    **Kafka:** `PartitionChangeBuilder.setAssignmentChanges`.
    """
    return record._replace(
        replicas=target.replicas if target.replicas != partition.replicas else None,
        removing=target.removing if target.removing != partition.removing else None,
        adding=target.adding if target.adding != partition.adding else None,
    )
