"""Moving a partition to other replicas, and cancelling a move."""

from kspec.spec.controller.rules.partition_change import PartitionTarget, is_reassigning, unchanged
from kspec.spec.metadata import NOBODY, BrokerRegistration, PartitionRegistration, broker_of
from kspec.spec.values import BrokerId, Error


def wrong_with_assignment(
    brokers: tuple[BrokerRegistration, ...], replicas: tuple[BrokerId, ...], factor: int | None = None
) -> str | None:
    """The reason why these cannot be a partition's replicas, `None` if they can: there are some, each once and registered.

    `factor`: how many they have to be, if that is given.

    **Kafka:** `ReplicationControlManager.validateManualPartitionAssignment`.
    """
    if not replicas:
        return "a partition has no replica"
    if len(frozenset(replicas)) < len(replicas):
        return f"a broker is twice among the replicas {replicas}"
    unknown = [replica for replica in replicas if broker_of(brokers, replica) is None]
    if unknown:
        return f"broker {unknown[0]} is not registered"
    if factor is not None and len(replicas) != factor:
        return f"a partition has {len(replicas)} replicas, and another {factor}"
    return None


def reassigned(partition: PartitionRegistration, replicas: tuple[BrokerId, ...]) -> PartitionTarget:
    """The partition at the start of a reassignment: the target replicas first, then the ones that will be removed.

    The added or removed replicas of an earlier reassignment are kept unless this one sets its own.

    **Kafka:** `ReplicationControlManager.changePartitionReassignment`, `PartitionReassignmentReplicas`.
    """
    removing = frozenset(partition.replicas) - frozenset(replicas)
    adding = frozenset(replicas) - frozenset(partition.replicas)
    return unchanged(partition)._replace(
        replicas=(*replicas, *sorted(removing)),
        removing=removing if removing != NOBODY else partition.removing,
        adding=adding if adding != NOBODY else partition.adding,
    )


def reverted(partition: PartitionRegistration) -> PartitionTarget:
    """The partition after a cancelled reassignment: added replicas are gone, and replicas that were being removed stay.

    If only added replicas were in sync, the first other replica is put into the ISR, in sync or not.

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
    """Whether a reassignment may begin, or may be cancelled (`replicas` is `None`).

    `unclean_election`: whether the topic allows unclean elections.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`; `NO_REASSIGNMENT_IN_PROGRESS`; `INVALID_REPLICA_ASSIGNMENT`, also for a
    cancellation that would need an unclean election where none is allowed.

    **Kafka:** `ReplicationControlManager.alterPartitionReassignment`, `cancelPartitionReassignment`.
    """
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if replicas is not None:
        return Error.NONE if wrong_with_assignment(brokers, replicas) is None else Error.INVALID_REPLICA_ASSIGNMENT
    if not is_reassigning(partition.adding, partition.removing):
        return Error.NO_REASSIGNMENT_IN_PROGRESS
    unclean = partition.isr <= partition.adding
    return Error.INVALID_REPLICA_ASSIGNMENT if unclean and not unclean_election else Error.NONE


def check_replication_factor(
    allows_change: bool, partition: PartitionRegistration | None, replicas: tuple[BrokerId, ...] | None
) -> Error:
    """Whether a reassignment may change the number of replicas, of those that stay when it is over (KIP-860).

    Errors: `INVALID_REPLICATION_FACTOR`.

    **Kafka:** `ReplicationControlManager.alterPartitionReassignment`, `validatePartitionReplicationFactorUnchanged`; since
    4.1.
    """
    if allows_change or partition is None or replicas is None:
        return Error.NONE
    stay = (frozenset(partition.replicas) | partition.adding) - partition.removing
    return Error.NONE if len(replicas) == len(stay) else Error.INVALID_REPLICATION_FACTOR
