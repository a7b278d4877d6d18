"""The in-sync replicas: who leaves, who joins, and who may say so."""

from spec.log.algebra import Log
from spec.values import BrokerId, Error, LeaderAndIsr, Offset


def may_leave_isr(role: LeaderAndIsr, follower: BrokerId, has_replicated_all: bool) -> bool:
    """Whether the leader may drop `follower` from the in-sync replicas: it is one of them and does not keep up.

    Parameters: the leader's `role`; whether the follower has replicated up to the leader's log end offset.

    **Kafka:** `Partition.maybeShrinkIsr`, `getOutOfSyncReplicas`. **Leaves out:** `replica.lag.time.max.ms`; a lag of
    any length may end a follower's membership.
    """
    return follower in role.isr and not has_replicated_all


def join_at_high_watermark(role: LeaderAndIsr, log: Log, high_watermark: Offset) -> bool:
    """A follower that has reached the leader's high watermark may join, whatever the high watermark is.

    A new leader's high watermark lags behind what its predecessor has committed, so this is too early (KAFKA-7128).

    **Kafka:** `Partition.maybeExpandIsr` up to 2.0.
    """
    return True


def join_after_epoch_start(role: LeaderAndIsr, log: Log, high_watermark: Offset) -> bool:
    """A follower that has reached the leader's high watermark may join once that has reached the leader's epoch.

    Everything that an earlier leader can have committed lies before the records of this leader's epoch.

    Parameters: the leader's role, log and high watermark (offset).

    **Kafka:** `Partition.isFollowerInSync` (KAFKA-7128, since 2.1), there a condition on the follower's log end offset
    and the leader-epoch start offset.
    """
    return high_watermark == log.end_offset or log.epoch_at(high_watermark) == role.leader_epoch


def may_join_isr(role: LeaderAndIsr, follower: BrokerId, has_replicated_committed: bool) -> bool:
    """Whether the leader may add `follower` to the in-sync replicas.

    Parameters: the leader's `role`; whether the follower has replicated up to the leader's high watermark.

    **Kafka:** `Partition.maybeExpandIsr`.
    """
    return follower not in role.isr and has_replicated_committed


def without_replica(role: LeaderAndIsr, replica: BrokerId) -> LeaderAndIsr:
    """The ISR that a leader proposes in order to drop `replica`. **Kafka:** `Partition.shrinkIsr`."""
    return role._replace(isr=role.isr - {replica})


def with_replica(role: LeaderAndIsr, replica: BrokerId) -> LeaderAndIsr:
    """The ISR that a leader proposes in order to admit `replica`. **Kafka:** `Partition.expandIsr`."""
    return role._replace(isr=role.isr | {replica})


def check_isr_update(partition: LeaderAndIsr, proposed: LeaderAndIsr) -> Error:
    """Whether the keeper of the partition's state takes a new ISR from this leader: only from the true one.

    Parameters: the true state of the partition; the state that a leader proposes, in its own epoch.

    Errors: `FENCED_LEADER_EPOCH` if the proposer is not the leader, or not in the current epoch.

    **Kafka:** the conditional ZooKeeper write of `Partition.updateIsr`; `ReplicationControlManager.alterPartition`.
    **Leaves out:** the distinct errors of the latter for an epoch ahead (`NOT_CONTROLLER`) and a proposer that does not
    lead (`INVALID_REQUEST`).
    """
    same = proposed.leader == partition.leader and proposed.leader_epoch == partition.leader_epoch
    return Error.NONE if same else Error.FENCED_LEADER_EPOCH
