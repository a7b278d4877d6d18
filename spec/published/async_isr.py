"""The published model of KIP-497: what it does and a broker does otherwise."""

from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from spec.values import BrokerId, Error, Offset, next_partition_epoch


def high_watermark_of(end_offsets: dict[BrokerId, Offset], isr: frozenset[BrokerId]) -> Offset:
    """The smallest log end offset among `isr`, as its leader knows them. **Kafka:** `Partition.maybeIncrementLeaderHW`."""
    return min(end_offsets[replica] for replica in isr)


def may_propose_shrink(leader: LeaderIsr, self_id: BrokerId, replica: BrokerId) -> bool:
    """Whether the leader may ask to drop `replica`: a member, not itself. **Kafka:** `Partition.maybeShrinkIsr`."""
    return replica in leader.isr and replica != self_id


def may_propose_expand(leader: LeaderIsr, replica: BrokerId, end_offset: Offset, high_watermark: Offset) -> bool:
    """Whether the leader may ask to admit `replica`: no member, and its log reaches the high watermark (offsets).

    **Kafka:** `Partition.maybeExpandIsr`, `isFollowerInSync`.
    """
    return replica not in leader.isr and end_offset >= high_watermark


def check_alter_partition(partition: PartitionIsr, request: PartitionIsr) -> Error:
    """Whether the controller takes the ISR of `request`: only if it was proposed on top of the present state.

    Errors: `INVALID_UPDATE_VERSION`.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`. **Leaves out:** that a partition epoch ahead of the
    controller's is answered with `NOT_CONTROLLER`, and all other checks.
    """
    return Error.NONE if request.partition_epoch == partition.partition_epoch else Error.INVALID_UPDATE_VERSION


def change_isr(partition: PartitionIsr, isr: frozenset[BrokerId]) -> PartitionIsr:
    """The partition with another ISR, in the next partition epoch. **Kafka:** `PartitionRegistration.merge`."""
    return PartitionIsr(isr, next_partition_epoch(partition.partition_epoch))
