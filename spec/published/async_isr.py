"""The rules of the published model of KIP-497 that differ from a broker's."""

from kspec.spec.broker.rules.high_watermark import lowest_end_offset
from kspec.spec.broker.rules.isr.membership import has_reached_high_watermark
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.values import BrokerId, Offset, next_partition_epoch

EPOCH_START = Offset(0)
"""The log end of the only leader when its epoch began: its log was empty."""


def high_watermark_of(self_id: BrokerId, end_offsets: dict[BrokerId, Offset], counted: frozenset[BrokerId]) -> Offset:
    """The smallest log end offset among the leader's own and those of the replicas that count as in sync.

    **Kafka:** `Partition.maybeIncrementLeaderHW`.

    **Departs:** it is not stored but computed from the present log ends, so it may go back; a broker's never does.
    """
    awaited = tuple(end_offsets[replica] for replica in counted if replica != self_id)
    return lowest_end_offset(end_offsets[self_id], awaited)


def may_propose_shrink(leader: LeaderIsr, self_id: BrokerId, replica: BrokerId) -> bool:
    """Whether the leader may ask to drop `replica`: a member, not itself. **Kafka:** `Partition.maybeShrinkIsr`.

    **Departs:** a broker drops only a follower that has not been caught up for `replica.lag.time.max.ms`, and has at most
    one proposal under way; here there is no time, and any member may be dropped at any moment.
    """
    return replica in leader.isr and replica != self_id


def may_propose_expand(leader: LeaderIsr, replica: BrokerId, end_offset: Offset, high_watermark: Offset) -> bool:
    """Whether the leader may ask to admit `replica`: it is not a member, and its log reaches the high watermark (offsets).

    **Kafka:** `Partition.maybeExpandIsr`, `isFollowerInSync`.

    **Departs:** a broker asks right after a fetch, about brokers that are eligible, and has at most one proposal under way;
    here it may ask at any moment.
    """
    return replica not in leader.isr and has_reached_high_watermark(end_offset, high_watermark, EPOCH_START)


def change_isr(partition: PartitionIsr, isr: frozenset[BrokerId]) -> PartitionIsr:
    """The partition with another ISR, in the next partition epoch. **Kafka:** `PartitionRegistration.merge`.

    **Departs:** Kafka's controller also checks whether the leader, the reassignment and the recovery state have to change
    with the ISR; here a partition has nothing else.
    """
    return PartitionIsr(isr, next_partition_epoch(partition.partition_epoch))
