"""Moving a partition to other replicas, and taking that back."""

from spec.controller.rules.partition_change import Target, is_reassigning, unchanged
from spec.metadata import NOBODY, BrokerRegistration, PartitionRegistration, broker_of
from spec.values import BrokerId, Error


def check_assignment(brokers: tuple[BrokerRegistration, ...], replicas: tuple[BrokerId, ...]) -> Error:
    """Whether replicas may be asked for: some, each registered, none twice.

    Errors: `INVALID_REPLICA_ASSIGNMENT`.

    **Kafka:** `ReplicationControlManager.validateManualPartitionAssignment`.
    """
    known = all(broker_of(brokers, replica) is not None for replica in replicas)
    good = replicas != () and known and len(frozenset(replicas)) == len(replicas)
    return Error.NONE if good else Error.INVALID_REPLICA_ASSIGNMENT


def reassigned(partition: PartitionRegistration, replicas: tuple[BrokerId, ...]) -> Target:
    """The partition on its way to other replicas: those first, then the ones that will go.

    What an earlier reassignment was still adding or removing is kept unless this one says something of its own.

    **Kafka:** `ReplicationControlManager.changePartitionReassignment`, `PartitionReassignmentReplicas`.
    """
    removing = frozenset(partition.replicas) - frozenset(replicas)
    adding = frozenset(replicas) - frozenset(partition.replicas)
    return unchanged(partition)._replace(
        replicas=(*replicas, *sorted(removing)),
        removing=removing if removing != NOBODY else partition.removing,
        adding=adding if adding != NOBODY else partition.adding,
    )


def reverted(partition: PartitionRegistration) -> Target:
    """The partition when a reassignment is cancelled: what it was adding is gone, what it was removing stays.

    If only added replicas were in sync, the first of the others is put into the ISR, in sync or not.

    **Kafka:** `PartitionReassignmentRevert`.
    """
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = partition.isr - partition.adding
    return unchanged(partition)._replace(
        replicas=replicas, isr=isr if isr != NOBODY else frozenset(replicas[:1]), adding=NOBODY, removing=NOBODY
    )


def check_reassignment(
    unclean_election: bool,
    brokers: tuple[BrokerRegistration, ...],
    partition: PartitionRegistration | None,
    replicas: tuple[BrokerId, ...] | None,
) -> Error:
    """Whether a reassignment may begin, or the one under way be cancelled (`replicas` is `None`).

    `unclean_election`: whether the topic allows unclean elections.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`; `NO_REASSIGNMENT_IN_PROGRESS`; `INVALID_REPLICA_ASSIGNMENT`, also for a
    cancellation that would be an unclean election where none is allowed.

    **Kafka:** `ReplicationControlManager.alterPartitionReassignment`, `cancelPartitionReassignment`.
    """
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if replicas is not None:
        return check_assignment(brokers, replicas)
    if not is_reassigning(partition.adding, partition.removing):
        return Error.NO_REASSIGNMENT_IN_PROGRESS
    unclean = partition.isr <= partition.adding
    return Error.INVALID_REPLICA_ASSIGNMENT if unclean and not unclean_election else Error.NONE
