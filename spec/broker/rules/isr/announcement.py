"""What a replica takes of an announced partition state, and what that makes of a pending proposal."""

from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from spec.values import NO_PARTITION_EPOCH, Epoch, PartitionEpoch


def is_later_leader_epoch(known: Epoch, announced: Epoch) -> bool:
    """Whether an announced leader epoch is later than the one that a replica goes by.

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


def may_take_granted(leader: LeaderIsr, leader_epoch: Epoch, granted: PartitionIsr, granted_in: Epoch) -> bool:
    """Whether a leader takes the partition as the controller's answer has it: of its leader epoch, and not an older state.

    The same partition epoch is taken too. Parameters: the leader's state and leader epoch; the answer's.

    **Kafka:** `Partition.handleAlterPartitionUpdate`.
    """
    return granted_in == leader_epoch and granted.partition_epoch >= leader.partition_epoch
