"""The party that may change a partition's ISR: its leader, in its epoch, based on the present state."""

from kspec.spec.values import BrokerId, Epoch, Error, LeaderAndIsr, PartitionEpoch


def check_writer(partition: LeaderAndIsr, broker: BrokerId, leader_epoch: Epoch) -> Error:
    """Whether a new ISR comes from the partition's leader, in its epoch; the epoch is checked first.

    Parameters: the true state of the partition; the sender of the new ISR, and the leader epoch in which it believes to
    lead.

    Errors: `FENCED_LEADER_EPOCH`, `INVALID_REQUEST`.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`.
    """
    if leader_epoch != partition.leader_epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.NONE if broker == partition.leader else Error.INVALID_REQUEST


def check_partition_epoch(present: PartitionEpoch, known: PartitionEpoch) -> Error:
    """Whether a change is based on the present state: its sender must know the present partition epoch.

    Errors: `INVALID_UPDATE_VERSION`.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`; in ZooKeeper a node's version (`BadVersion`).
    """
    return Error.NONE if known == present else Error.INVALID_UPDATE_VERSION
