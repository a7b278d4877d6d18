"""Announcements of the partition that a replica takes, and their effect on a pending proposal."""

from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.values import NO_LEADER, NO_PARTITION_EPOCH, BrokerId, Epoch, PartitionEpoch


def is_later_leader_epoch(known: Epoch, announced: Epoch) -> bool:
    """Whether an announced leader epoch is later than the replica's own.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`.
    """
    return announced > known


def takes_later_leader_epoch(leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch) -> bool:
    """Whether a replica takes an announcement of the partition: only one of a later leader epoch.

    Parameters: the replica's leader epoch and ISR state; the announced leader and partition epoch.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`, up to 2.8.
    """
    return is_later_leader_epoch(leader_epoch, epoch)


def takes_every_announcement(leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch) -> bool:
    """A replica takes every announcement of the partition, also one that is older than the answer to its own proposal.

    The leader's partition epoch then goes back, and a proposal that is pending is forgotten.

    **Kafka:** `ReplicaManager.applyLocalLeadersDelta`, `Partition.makeLeader`, `TopicDelta.localChanges` with KRaft, 3.0 to
    3.2 (KAFKA-13790).
    """
    return True


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

    **Kafka:** `Partition.handleAlterPartitionUpdate`, since 2.8.1 and 3.0 (KAFKA-12751).
    """
    return granted_in == leader_epoch and granted.partition_epoch >= leader.partition_epoch


def takes_later_grant(leader: LeaderIsr, leader_epoch: Epoch, granted: PartitionIsr, granted_in: Epoch) -> bool:
    """As `may_take_granted`, but of a later partition epoch only.

    An answer that finds nothing to change has the same one: the proposal then stays pending, and the leader never proposes
    again in this epoch.

    **Kafka:** `Partition.handleAlterIsrResponse` in 2.7 and 2.8.0.
    """
    return granted_in == leader_epoch and is_newer_partition(leader, granted)


# ---- what an announcement does


def begins_epoch_once(known: Epoch, announced: Epoch) -> bool:
    """Whether an announcement begins the leader's epoch: only if its leader epoch is later than the known one.

    **Kafka:** `Partition.makeLeader`, `isNewLeaderEpoch`, since 3.3; up to 2.8 no other announcement comes so far.
    """
    return is_later_leader_epoch(known, announced)


def begins_epoch_again(known: Epoch, announced: Epoch) -> bool:
    """Every announcement begins the leader's epoch, the one in which it leads already, too.

    Its epoch then starts at its log end of now: a follower must reach that to join, and clients are told that the latest
    offset is not available until the high watermark has.

    **Kafka:** `Partition.makeLeader` with KRaft, 3.0 to 3.2 (KAFKA-13790).
    """
    return True


def hears_of_lost_leader(leader: BrokerId) -> bool:
    """A replica that is told of no leader follows nobody, and no longer leads.

    **Kafka:** `ReplicaManager.applyLocalFollowersDelta`, since 3.3 (KAFKA-13790).
    """
    return True


def ignores_lost_leader(leader: BrokerId) -> bool:
    """Whether a replica takes an announcement that it does not lead: not if nobody does. It goes on as before.

    **Kafka:** `ReplicaManager.applyLocalFollowersDelta`, 3.0 to 3.2, which looks for the leader among the brokers; up to 2.8
    `ReplicaManager.makeFollowers`.
    """
    return leader != NO_LEADER


def stops_fetching_to_stop(shutting_down: bool, in_isr: bool) -> bool:
    """Whether a follower in controlled shutdown stops fetching: once it is out of the ISR, for fetching would bring it back.

    **Kafka:** `ReplicaManager.applyLocalFollowersDelta`, `isInControlledShutdown`, since 3.3 (KAFKA-13916).
    """
    return shutting_down and not in_isr


def fetches_until_it_stops(shutting_down: bool, in_isr: bool) -> bool:
    """A follower in controlled shutdown fetches on, and may join the ISR again. **Kafka:** up to 3.2."""
    return False
