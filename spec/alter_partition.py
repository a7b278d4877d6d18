"""ISR changes by request to the controller (KIP-497): between proposal and answer the leader does not know its ISR.

The leader must then count every replica that *may* be in sync: the ISR it knows of, and the one it has proposed.
"""

from typing import NamedTuple

from spec.values import BrokerId, Error, Offset, PartitionEpoch

NO_PARTITION_EPOCH = PartitionEpoch(-1)


class PartitionIsr(NamedTuple):
    """An ISR and the partition epoch it belongs to: the controller's state, a request, and an announcement.

    A request carries the partition epoch that its sender knew. Kafka: `PartitionRegistration`, `AlterPartitionRequest`.
    """

    isr: frozenset[BrokerId]
    partition_epoch: PartitionEpoch


class LeaderIsr(NamedTuple):
    """The leader's side: the ISR it knows to be committed, and what it has proposed on top of that (empty if nothing).

    Kafka: `PartitionState`: `CommittedPartitionState`, `PendingExpandIsr`, `PendingShrinkIsr`.
    """

    isr: frozenset[BrokerId]
    partition_epoch: PartitionEpoch
    pending_isr: frozenset[BrokerId]
    pending_epoch: PartitionEpoch


class Proposal(NamedTuple):
    """A leader's state after proposing, and the AlterPartition request that it sends."""

    leader: LeaderIsr
    request: PartitionIsr


def maximal_isr(leader: LeaderIsr) -> frozenset[BrokerId]:
    """Every replica that may be in sync, whichever way a pending proposal ends. **Kafka:** `PartitionState.maximalIsr`."""
    return leader.isr | leader.pending_isr


def committed_isr(leader: LeaderIsr) -> frozenset[BrokerId]:
    """The ISR last confirmed by the controller. **Kafka:** `PartitionState.isr`."""
    return leader.isr


def high_watermark_of(end_offsets: dict[BrokerId, Offset], isr: frozenset[BrokerId]) -> Offset:
    """The smallest log end offset among `isr`, as its leader knows them. **Kafka:** `Partition.maybeIncrementLeaderHW`."""
    return min(end_offsets[replica] for replica in isr)


def propose(leader: LeaderIsr, isr: frozenset[BrokerId]) -> Proposal:
    """Ask the controller for `isr`; until it answers, all of it counts as possibly in sync.

    **Kafka:** `Partition.prepareIsrExpand`, `prepareIsrShrink`.
    """
    pending = LeaderIsr(leader.isr, leader.partition_epoch, leader.pending_isr | isr, leader.partition_epoch)
    return Proposal(pending, PartitionIsr(isr, leader.partition_epoch))


def propose_as_if_granted(leader: LeaderIsr, isr: frozenset[BrokerId]) -> Proposal:
    """Ask the controller for `isr`, and behave as if it had agreed. **Kafka:** no release does; see KIP-497."""
    assumed = LeaderIsr(isr, leader.partition_epoch, leader.pending_isr, leader.pending_epoch)
    return Proposal(assumed, PartitionIsr(isr, leader.partition_epoch))


def may_propose_shrink(leader: LeaderIsr, self_id: BrokerId, replica: BrokerId) -> bool:
    """Whether the leader may ask to drop `replica`: a member, not itself. **Kafka:** `Partition.maybeShrinkIsr`."""
    return replica in leader.isr and replica != self_id


def may_propose_expand(leader: LeaderIsr, replica: BrokerId, end_offset: Offset, high_watermark: Offset) -> bool:
    """Whether the leader may ask to admit `replica`: no member, and its log reaches the high watermark (offsets).

    **Kafka:** `Partition.maybeExpandIsr`, `isFollowerInSync`.
    """
    return replica not in leader.isr and end_offset >= high_watermark


def nothing_pending(leader: LeaderIsr) -> bool:
    """Whether no proposal of the leader is unanswered. **Kafka:** `PartitionState.isInflight`, asked before proposing."""
    return leader.pending_epoch == NO_PARTITION_EPOCH


def check_alter_partition(partition: PartitionIsr, request: PartitionIsr) -> Error:
    """Whether the controller takes the ISR of `request`: only if it was proposed on top of the present state.

    Errors: `INVALID_UPDATE_VERSION`.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`. **Leaves out:** that a partition epoch ahead of the
    controller's is answered with `NOT_CONTROLLER`, and all other checks.
    """
    return Error.NONE if request.partition_epoch == partition.partition_epoch else Error.INVALID_UPDATE_VERSION


def next_partition_epoch(partition_epoch: PartitionEpoch) -> PartitionEpoch:
    """The partition epoch after this one. **Kafka:** `PartitionRegistration.merge`; in ZooKeeper the node's version."""
    return PartitionEpoch(partition_epoch + 1)


def change_isr(partition: PartitionIsr, isr: frozenset[BrokerId]) -> PartitionIsr:
    """The partition with another ISR, in the next partition epoch. **Kafka:** `PartitionRegistration.merge`."""
    return PartitionIsr(isr, next_partition_epoch(partition.partition_epoch))


def is_newer_partition(leader: LeaderIsr, announced: PartitionIsr) -> bool:
    """Whether the leader takes an announcement: only of a later partition epoch.

    **Kafka:** `Partition.makeLeader`, which takes an equal one too, since the answer to its own request may come first.
    """
    return announced.partition_epoch > leader.partition_epoch


def apply_partition(leader: LeaderIsr, announced: PartitionIsr) -> LeaderIsr:
    """The leader's state as announced by the controller; nothing is pending any more. **Kafka:** `Partition.makeLeader`."""
    return LeaderIsr(announced.isr, announced.partition_epoch, frozenset(), NO_PARTITION_EPOCH)
