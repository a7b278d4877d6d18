"""Which replicas may join the in-sync replicas, and which drop out."""

from spec.broker.rules.followers import Brokers, Follower, FollowerState, is_caught_up
from spec.metadata import broker_of, is_active
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Offset


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
    now: int,
    max_lag: int,
) -> frozenset[BrokerId]:
    """The members of the ISR to drop: not caught up for `max_lag` milliseconds, or unknown to the leader.

    **Kafka:** `Partition.getOutOfSyncReplicas`, asked every half of `replica.lag.time.max.ms`.
    """
    caught_up = {follower.broker for follower in followers if is_caught_up(follower.state, leader_end, now, max_lag)}
    return frozenset(replica for replica in isr if replica != self_id and replica not in caught_up)
