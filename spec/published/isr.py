"""The in-sync replicas in the published models: which replicas leave, and which join."""

from kspec.spec.broker.rules.isr.proposal import isr_with, isr_without
from kspec.spec.log.algebra import Log
from kspec.spec.values import BrokerId, LeaderAndIsr, Offset


def may_leave_isr(role: LeaderAndIsr, follower: BrokerId, has_replicated_all: bool) -> bool:
    """Whether the leader may drop `follower` from the in-sync replicas: it is one of them and does not keep up.

    Parameters: the leader's `role`; whether the follower has replicated up to the leader's log end offset.

    **Kafka:** `Partition.maybeShrinkIsr`, `getOutOfSyncReplicas`.

    **Departs:** a broker drops every follower that has not been caught up for `replica.lag.time.max.ms`, all of them at
    once; here a lag of any length is enough, and one follower leaves in a step.
    """
    return follower in role.isr and not has_replicated_all


def join_at_high_watermark(role: LeaderAndIsr, log: Log, high_watermark: Offset) -> bool:
    """A follower that has reached the leader's high watermark may join, even if the high watermark is old.

    A new leader's high watermark may be below its predecessor's, so this is too early (KAFKA-7128).

    **Kafka:** `Partition.maybeExpandIsr` up to 2.0.

    **Departs:** only in form. A broker's `has_reached_high_watermark` includes the check of `may_join_isr`.
    """
    return True


def join_after_epoch_start(role: LeaderAndIsr, log: Log, high_watermark: Offset) -> bool:
    """A follower that has reached the leader's high watermark may join once that has reached the leader's epoch.

    All records that an earlier leader can have committed lie before the records of this leader's epoch.

    Parameters: the leader's role, log and high watermark (offset).

    **Kafka:** `Partition.isFollowerInSync` (KAFKA-7128, since 2.1).

    **Departs:** in Kafka it is the follower's log end that has to reach the start of the leader's epoch, which may be
    beyond the high watermark (`has_reached_epoch_start`); here it is the high watermark, so no follower joins before the
    leader's own records, or all records, are committed.
    """
    return high_watermark == log.end_offset or log.epoch_at(high_watermark) == role.leader_epoch


def may_join_isr(role: LeaderAndIsr, follower: BrokerId, has_replicated_committed: bool) -> bool:
    """Whether the leader may add `follower` to the in-sync replicas.

    Parameters: the leader's `role`; whether the follower has replicated up to the leader's high watermark.

    **Kafka:** `Partition.maybeExpandIsr`.

    **Departs:** a broker checks right after a fetch, and also whether the follower is eligible and no proposal is under way;
    here an ISR change is one step, and no broker is known to be down.
    """
    return follower not in role.isr and has_replicated_committed


def without_replica(role: LeaderAndIsr, replica: BrokerId) -> LeaderAndIsr:
    """The state that a leader proposes in order to drop `replica`. **Kafka:** `Partition.shrinkIsr`.

    **Departs:** the leader's whole state is proposed and takes effect at once; a broker proposes the ISR (`isr_without`),
    and takes it when the controller has granted it.
    """
    return role._replace(isr=isr_without(role.isr, frozenset({replica})))


def with_replica(role: LeaderAndIsr, replica: BrokerId) -> LeaderAndIsr:
    """The state that a leader proposes in order to admit `replica`. **Kafka:** `Partition.expandIsr`.

    **Departs:** as `without_replica`; a broker proposes `isr_with`.
    """
    return role._replace(isr=isr_with(role.isr, replica))
