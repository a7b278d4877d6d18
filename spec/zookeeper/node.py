"""Partition state in ZooKeeper, and the conditional writes that change it (Kafka up to 3.9, before the metadata log).

ZooKeeper keeps a version with each node, and writes a node only if the writer names its present version. That is the
partition epoch (formerly `zkVersion`). The controller writes leaders; up to 2.6 a partition's leader writes its ISR itself.
"""

from typing import NamedTuple

from kspec.spec.controller.rules.isr_writer import check_partition_epoch
from kspec.spec.values import NO_EPOCH, Epoch, Error, LeaderAndIsr, PartitionEpoch, PartitionId, next_partition_epoch


class PartitionNode(NamedTuple):
    """A partition's node in ZooKeeper, with its version, and the epoch of the controller that decided it.

    Kafka: `LeaderIsrAndControllerEpoch`, at `/brokers/topics/TOPIC/partitions/N/state`.
    """

    state: LeaderAndIsr
    controller_epoch: Epoch
    partition_epoch: PartitionEpoch


class ConditionalWrite(NamedTuple):
    """Write a partition's node if its version is the one given. If it is not, no later effect happens.

    `checked_controller_epoch`: write only while this is the epoch of the current controller (`NO_EPOCH`: not checked).
    Kafka: `KafkaZkClient.updateLeaderAndIsr`, `conditionalUpdatePath`.
    """

    partition_id: PartitionId
    state: LeaderAndIsr
    controller_epoch: Epoch
    expected_partition_epoch: PartitionEpoch
    checked_controller_epoch: Epoch = NO_EPOCH


class NodeCreation(NamedTuple):
    """Write the first node of a new partition. Kafka: `KafkaZkClient.createTopicPartitionStatesRaw`."""

    partition_id: PartitionId
    node: PartitionNode


class WriteResult(NamedTuple):
    """Whether a node was written, and its present state."""

    error: Error
    node: PartitionNode


def write_partition(node: PartitionNode, current_controller_epoch: Epoch, write: ConditionalWrite) -> WriteResult:
    """ZooKeeper's side of a conditional write.

    Errors: `STALE_CONTROLLER_EPOCH` (in Kafka `ControllerMovedException`), `INVALID_UPDATE_VERSION` (`BadVersion`).

    **Kafka:** `KafkaZkClient.setTopicPartitionStatesRaw`, a transaction that also checks `/controller_epoch`.
    """
    if write.checked_controller_epoch not in (NO_EPOCH, current_controller_epoch):
        return WriteResult(Error.STALE_CONTROLLER_EPOCH, node)
    error = check_partition_epoch(node.partition_epoch, write.expected_partition_epoch)
    return WriteResult(error, written_node(write) if error == Error.NONE else node)


def written_node(write: ConditionalWrite) -> PartitionNode:
    """The node after a successful write. **Kafka:** `LeaderAndIsr.withZkVersion`, the next version."""
    return PartitionNode(write.state, write.controller_epoch, next_partition_epoch(write.expected_partition_epoch))


def was_written(node: PartitionNode, write: ConditionalWrite) -> bool:
    """Whether an apparently refused write had succeeded, and only its confirmation was lost.

    **Kafka:** `ReplicationUtils.checkLeaderAndIsrZkData`.
    """
    return node.state == write.state and node.controller_epoch == write.controller_epoch


def isr_write(
    partition_id: PartitionId, role: LeaderAndIsr, controller_epoch: Epoch, partition_epoch: PartitionEpoch
) -> ConditionalWrite:
    """A leader's own write of its ISR: with the epoch of the controller that made it leader, and the version that it knows.

    Parameters: `role` with the new ISR.

    **Kafka:** `Partition.updateIsr`, `ReplicationUtils.updateLeaderAndIsr`, up to 2.6.
    """
    return ConditionalWrite(partition_id, role, controller_epoch, partition_epoch)
