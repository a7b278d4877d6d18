"""Membership of the ISR: the replicas that may join, and those that drop out."""

from kspec.spec.broker.rules.followers import (
    Brokers,
    Follower,
    FollowerState,
    follower_of,
    is_caught_up,
    was_caught_up_lately,
)
from kspec.spec.metadata import broker_of, is_active
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, MonotonicMs, Offset


def any_replica_is_eligible(brokers: Brokers, replica: BrokerId, broker_epoch: BrokerEpoch) -> bool:
    """Every replica may be in sync, alive or not. **Kafka:** `Partition.maybeExpandIsr` up to 3.2."""
    return True


def eligible_while_active(brokers: Brokers, replica: BrokerId, broker_epoch: BrokerEpoch) -> bool:
    """A replica may be in sync unless its broker is fenced or shutting down.

    **Kafka:** `Partition.isReplicaIsrEligible` (KIP-841, since 3.3).
    """
    return is_active(brokers, replica)


def eligible_in_its_broker_epoch(brokers: Brokers, replica: BrokerId, broker_epoch: BrokerEpoch) -> bool:
    """A replica may be in sync if its broker is active, and the broker's present incarnation has fetched.

    **Kafka:** `Partition.isReplicaIsrEligible`, `isBrokerEpochIsrEligible` (KIP-903, since 3.5).
    """
    registration = broker_of(brokers, replica)
    if registration is None or not is_active(brokers, replica):
        return False
    return broker_epoch in (NO_BROKER_EPOCH, registration.broker_epoch)


def has_reached_high_watermark(end_offset: Offset, high_watermark: Offset, epoch_start: Offset) -> bool:
    """Whether a follower has all records that its leader knows to be committed.

    Parameters: the follower's log end, as the leader knows it; the leader's high watermark; the leader's log end when its
    epoch began (offsets).

    **Kafka:** `Partition.maybeExpandIsr` up to 2.0.
    """
    return end_offset >= high_watermark


def has_reached_epoch_start(end_offset: Offset, high_watermark: Offset, epoch_start: Offset) -> bool:
    """As `has_reached_high_watermark`, and the follower has all records that an earlier leader can have committed.

    These lie before `epoch_start`. Lag in time does not matter.

    **Kafka:** `Partition.isFollowerInSync` (KAFKA-7128, since 2.1).
    """
    return has_reached_high_watermark(end_offset, high_watermark, epoch_start) and end_offset >= epoch_start


def joins_at_any_isr_size(follower: FollowerState, caught_up: bool, under_min_isr: bool) -> bool:
    """A follower that has reached the high watermark may join, with any lag and any size of the ISR.

    Parameters: the leader's state of the follower; whether the follower counts as caught up; whether the ISR is below min
    ISR.

    Below min ISR the high watermark stands still, so a follower joins and drops out again and again (KAFKA-19996).

    **Kafka:** `Partition.maybeExpandIsr`, up to 4.4.
    """
    return True


def joins_under_min_isr_if_caught_up(follower: FollowerState, caught_up: bool, under_min_isr: bool) -> bool:
    """Below min ISR a follower joins only if it also counts as caught up.

    **Kafka:** no release; proposed for KAFKA-19996.
    """
    return caught_up or not under_min_isr


def out_of_sync(
    isr: frozenset[BrokerId],
    self_id: BrokerId,
    followers: tuple[Follower, ...],
    leader_end: Offset,
    now: MonotonicMs,
    max_lag: int,
) -> frozenset[BrokerId]:
    """The members of the ISR to drop: not caught up for `max_lag` milliseconds, or unknown to the leader.

    **Kafka:** `Partition.getOutOfSyncReplicas`, asked every half of `replica.lag.time.max.ms`; 2.1 to 2.3, and since 3.0
    (KAFKA-9672).
    """
    caught_up = {follower.broker for follower in followers if is_caught_up(follower.state, leader_end, now, max_lag)}
    return frozenset(replica for replica in isr if replica != self_id and replica not in caught_up)


def out_of_sync_if_all_are_assigned(
    isr: frozenset[BrokerId],
    self_id: BrokerId,
    followers: tuple[Follower, ...],
    leader_end: Offset,
    now: MonotonicMs,
    max_lag: int,
) -> frozenset[BrokerId]:
    """As `out_of_sync`, but nobody is dropped while the ISR has a member that is not assigned: the leader fails over it.

    **Kafka:** `Partition.isFollowerOutOfSync`, `getReplicaOrException`, 2.4 to 2.8 (KAFKA-9672).
    """
    if any(replica != self_id and follower_of(followers, replica) is None for replica in isr):
        return frozenset()
    return out_of_sync(isr, self_id, followers, leader_end, now, max_lag)


def out_of_sync_by_time(
    isr: frozenset[BrokerId],
    self_id: BrokerId,
    followers: tuple[Follower, ...],
    leader_end: Offset,
    now: MonotonicMs,
    max_lag: int,
) -> frozenset[BrokerId]:
    """As `out_of_sync`, but a member that has all records is dropped, too, if it has not fetched for so long.

    **Kafka:** `Partition.getOutOfSyncReplicas` up to 2.0 (KAFKA-7152).
    """
    lately = {follower.broker for follower in followers if was_caught_up_lately(follower.state, leader_end, now, max_lag)}
    return frozenset(replica for replica in isr if replica != self_id and replica not in lately)
