"""A leader's ISR, and its proposals for another (KIP-497).

Between proposal and answer the leader does not know its ISR. It then counts every replica that *may* be in sync: the last
confirmed ISR, and the proposed one.
"""

from typing import NamedTuple

from kspec.spec.values import NO_PARTITION_EPOCH, BrokerId, PartitionEpoch


class PartitionIsr(NamedTuple):
    """An ISR with its partition epoch: in the controller's state, in a request, and in an announcement.

    A request carries the partition epoch that its sender knew. Kafka: `PartitionRegistration`, `AlterPartitionRequest`.
    """

    isr: frozenset[BrokerId]
    partition_epoch: PartitionEpoch


class LeaderIsr(NamedTuple):
    """The leader's side: the last confirmed ISR, and the ISR of its pending proposal (empty if there is none).

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
    """Every replica that may be in sync, by either outcome of a pending proposal. **Kafka:** `PartitionState.maximalIsr`."""
    return leader.isr | leader.pending_isr


def committed_isr(leader: LeaderIsr) -> frozenset[BrokerId]:
    """The ISR last confirmed by the controller. **Kafka:** `PartitionState.isr`."""
    return leader.isr


def propose(leader: LeaderIsr, isr: frozenset[BrokerId]) -> Proposal:
    """Ask the controller for `isr`; until it answers, all of it counts as possibly in sync.

    **Kafka:** `Partition.prepareIsrExpand`, `prepareIsrShrink`.
    """
    pending = LeaderIsr(leader.isr, leader.partition_epoch, leader.pending_isr | isr, leader.partition_epoch)
    return Proposal(pending, PartitionIsr(isr, leader.partition_epoch))


def propose_as_if_granted(leader: LeaderIsr, isr: frozenset[BrokerId]) -> Proposal:
    """Ask the controller for `isr`, and behave as if it had granted it. **Kafka:** no release does; see KIP-497."""
    assumed = LeaderIsr(isr, leader.partition_epoch, leader.pending_isr, leader.pending_epoch)
    return Proposal(assumed, PartitionIsr(isr, leader.partition_epoch))


def isr_with(isr: frozenset[BrokerId], replica: BrokerId) -> frozenset[BrokerId]:
    """The ISR that a leader proposes in order to admit `replica`. **Kafka:** `Partition.prepareIsrExpand`."""
    return isr | {replica}


def isr_without(isr: frozenset[BrokerId], replicas: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """The ISR that a leader proposes in order to drop `replicas`. **Kafka:** `Partition.prepareIsrShrink`."""
    return isr - replicas


def nothing_pending(leader: LeaderIsr) -> bool:
    """Whether no proposal of the leader is unanswered. **Kafka:** `PartitionState.isInflight`, asked before proposing."""
    return leader.pending_epoch == NO_PARTITION_EPOCH


def roll_back(leader: LeaderIsr) -> LeaderIsr:
    """The leader's state without its proposal. **Kafka:** `PendingPartitionChange.lastCommittedState`."""
    return LeaderIsr(leader.isr, leader.partition_epoch, frozenset(), NO_PARTITION_EPOCH)


def is_pending(leader: LeaderIsr, request: PartitionIsr) -> bool:
    """Whether an answer to `request` still matters: it is the leader's pending proposal.

    **Kafka:** `Partition.submitAlterPartition`, which compares the state that it sent with the state that it has.
    """
    return leader.pending_epoch == request.partition_epoch and leader.pending_isr == request.isr
