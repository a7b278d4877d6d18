"""Which announcements of the partition a replica takes, and their effect on a pending proposal."""

from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from spec.values import NO_PARTITION_EPOCH, Epoch, PartitionEpoch


def is_later_leader_epoch(known: Epoch, announced: Epoch) -> bool:
    """Whether an announced leader epoch is later than the replica's own.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`.
    """
    return announced > known


def takes_later_leader_epoch(leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch) -> bool:
    """Whether a replica takes an announcement of the partition: only one of a later leader epoch.

    Parameters: the replica's leader epoch and ISR state; the announced leader and partition epoch.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`, up to 3.2.
    """
    return is_later_leader_epoch(leader_epoch, epoch)


def takes_no_older_partition_epoch(
    leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch
) -> bool:
    """Whether a replica takes an announcement of the partition: one that is not older than its own state.

    It takes one of the same partition epoch, too, because the answer to the leader's own proposal may come first.

    **Kafka:** `Partition.makeLeader`, `makeFollower` (since 3.3).
    """
    return partition_epoch >= leader.partition_epoch


def is_newer_partition(leader: LeaderIsr, announced: PartitionIsr) -> bool:
    """Whether the leader takes an announcement: only of a later partition epoch.

    **Kafka:** `Partition.makeLeader`, which takes an equal one too, since the answer to its own request may come first.
    """
    return announced.partition_epoch > leader.partition_epoch


def apply_partition(leader: LeaderIsr, announced: PartitionIsr) -> LeaderIsr:
    """The leader's state as announced by the controller, without a pending proposal. **Kafka:** `Partition.makeLeader`."""
    return LeaderIsr(announced.isr, announced.partition_epoch, frozenset(), NO_PARTITION_EPOCH)


def apply_news(leader: LeaderIsr, announced: PartitionIsr) -> LeaderIsr:
    """As `apply_partition`, but an announcement of the leader's present state changes nothing: a later proposal stays
    pending.

    The answer to a proposal has the new state, often before the metadata. If the leader has then proposed again, the late
    announcement must not drop the second proposal. The controller may grant it, and the leader would not wait for the new
    member.

    **Kafka:** no release; the repair of `apply_partition` in `Partition.makeLeader`.
    """
    return apply_partition(leader, announced) if is_newer_partition(leader, announced) else leader


def may_take_granted(leader: LeaderIsr, leader_epoch: Epoch, granted: PartitionIsr, granted_in: Epoch) -> bool:
    """Whether a leader takes the partition of the controller's answer: of its leader epoch, and not older than its state.

    It takes the same partition epoch, too. Parameters: the leader's state and leader epoch; the answer's.

    **Kafka:** `Partition.handleAlterPartitionUpdate`.
    """
    return granted_in == leader_epoch and granted.partition_epoch >= leader.partition_epoch
