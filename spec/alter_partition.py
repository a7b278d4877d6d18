"""ISR changes by request to the controller (KIP-497): between proposal and answer the leader does not know its ISR.

The leader must then count every replica that *may* be in sync: the ISR it knows of, and the one it has proposed.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from spec.values import BrokerId, Epoch, Error, Offset, PartitionEpoch

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


def isr_with(leader: LeaderIsr, replica: BrokerId) -> frozenset[BrokerId]:
    """The ISR that a leader proposes in order to admit `replica`. **Kafka:** `Partition.prepareIsrExpand`."""
    return leader.isr | {replica}


def isr_without(leader: LeaderIsr, replicas: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """The ISR that a leader proposes in order to drop `replicas`. **Kafka:** `Partition.prepareIsrShrink`."""
    return leader.isr - replicas


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


def takes_later_leader_epoch(leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch) -> bool:
    """Whether a replica takes an announcement of the partition: only one of a later leader epoch.

    Parameters: the replica's leader epoch and ISR state; the announced leader and partition epoch.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`, up to 3.2.
    """
    return epoch > leader_epoch


def takes_no_older_partition_epoch(
    leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch
) -> bool:
    """Whether a replica takes an announcement of the partition: any that is not older than what it knows.

    The same partition epoch is taken too, since the answer to the leader's own proposal may come first.

    **Kafka:** `Partition.makeLeader`, `makeFollower` (since 3.3).
    """
    return partition_epoch >= leader.partition_epoch


def is_newer_partition(leader: LeaderIsr, announced: PartitionIsr) -> bool:
    """Whether the leader takes an announcement: only of a later partition epoch.

    **Kafka:** `Partition.makeLeader`, which takes an equal one too, since the answer to its own request may come first.
    """
    return announced.partition_epoch > leader.partition_epoch


def apply_partition(leader: LeaderIsr, announced: PartitionIsr) -> LeaderIsr:
    """The leader's state as announced by the controller; nothing is pending any more. **Kafka:** `Partition.makeLeader`."""
    return LeaderIsr(announced.isr, announced.partition_epoch, frozenset(), NO_PARTITION_EPOCH)


def apply_news(leader: LeaderIsr, announced: PartitionIsr) -> LeaderIsr:
    """As `apply_partition`, but what the leader knows already changes nothing: a proposal made since then stays pending.

    The answer to a proposal tells the new state, often before the metadata do. If the leader has proposed again by then,
    the late announcement must not make it forget that: the controller may grant the second proposal, and whom it admits
    would not be waited for.

    **Kafka:** no release; the repair of `apply_partition` in `Partition.makeLeader`.
    """
    return apply_partition(leader, announced) if is_newer_partition(leader, announced) else leader


# ---- the answer


class AfterError(Enum):
    """What a leader does with its proposal when it was not granted."""

    ROLL_BACK = "roll back"
    """The proposal was certainly not applied and never will be: back to the ISR last confirmed."""

    AWAIT_METADATA = "await metadata"
    """What the leader knows is out of date, or may be: everybody who may be in sync counts until it learns more."""

    RETRY = "retry"
    """The same proposal again."""


OnIsrError: TypeAlias = Callable[[Error], AfterError]

OUT_OF_DATE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION)


def roll_back_always(error: Error) -> AfterError:
    """A write to ZooKeeper that was refused was not done.

    Not so if it had been done, its confirmation was lost, and the controller has written since: then the refusal is of the
    second attempt. The leader believes in an ISR that is no longer in force, and may commit without a member.

    **Kafka:** `Partition.updateIsr` up to 2.6.
    """
    return AfterError.ROLL_BACK


def never_roll_back(error: Error) -> AfterError:
    """No error proves that a proposal was not applied. **Kafka:** `Partition.handleAlterIsrResponse`, 2.7 to 3.0."""
    return AfterError.AWAIT_METADATA if error in OUT_OF_DATE else AfterError.RETRY


def roll_back_if_not_attempted(error: Error) -> AfterError:
    """As `never_roll_back`, but `OPERATION_NOT_ATTEMPTED` says that the proposal was not looked at.

    **Kafka:** `Partition.handleAlterPartitionError`, 3.1.
    """
    return AfterError.ROLL_BACK if error == Error.OPERATION_NOT_ATTEMPTED else never_roll_back(error)


def give_up_if_invalid(error: Error) -> AfterError:
    """As `roll_back_if_not_attempted`, but an invalid proposal is not sent again.

    **Kafka:** `Partition.handleAlterPartitionError`, 3.2.
    """
    return AfterError.AWAIT_METADATA if error == Error.INVALID_REQUEST else roll_back_if_not_attempted(error)


def roll_back_if_ineligible(error: Error) -> AfterError:
    """As `give_up_if_invalid`; an ineligible replica proves it too. `NEW_LEADER_ELECTED` says that it *was* applied.

    **Kafka:** `Partition.handleAlterPartitionError` (KIP-841, since 3.3).
    """
    if error == Error.INELIGIBLE_REPLICA:
        return AfterError.ROLL_BACK
    return AfterError.AWAIT_METADATA if error == Error.NEW_LEADER_ELECTED else give_up_if_invalid(error)


def roll_back(leader: LeaderIsr) -> LeaderIsr:
    """The leader's state without its proposal. **Kafka:** `PendingPartitionChange.lastCommittedState`."""
    return LeaderIsr(leader.isr, leader.partition_epoch, frozenset(), NO_PARTITION_EPOCH)


def is_pending(leader: LeaderIsr, request: PartitionIsr) -> bool:
    """Whether an answer to `request` still matters: the leader's proposal is that very one.

    **Kafka:** `Partition.submitAlterPartition`, which compares the state that it sent with the state that it has.
    """
    return leader.pending_epoch == request.partition_epoch and leader.pending_isr == request.isr


def may_take_granted(leader: LeaderIsr, leader_epoch: Epoch, granted: PartitionIsr, granted_in: Epoch) -> bool:
    """Whether a leader takes the partition as the controller's answer has it: of its leader epoch, and not an older state.

    The same partition epoch is taken too. Parameters: the leader's state and leader epoch; the answer's.

    **Kafka:** `Partition.handleAlterPartitionUpdate`.
    """
    return granted_in == leader_epoch and granted.partition_epoch >= leader.partition_epoch
