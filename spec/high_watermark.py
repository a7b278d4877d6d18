"""The high watermark: up to which offset records are committed, that is, on every in-sync replica.

Three answers to the question "has this follower replicated up to this offset?" mark the way to KIP-320. The leader
answers from what it remembers of the follower's last fetch, never from the follower's log.
"""

from spec.log import Log
from spec.values import UNKNOWN_OFFSET, BrokerId, FetchRequest, LeaderAndIsr, Offset


def replicated_by_offset(role: LeaderAndIsr, log: Log, fetch: FetchRequest, offset: Offset) -> bool:
    """Whether a follower's last fetch shows that it holds the leader's log up to `offset`: by the fetch offset alone.

    Parameters: the leader's `role` and `log`; the follower's last `fetch`; an exclusive end `offset`.

    **Kafka:** `Partition.maybeIncrementLeaderHW` before KIP-320, up to 2.0.
    """
    return fetch.fetch_offset >= offset


def replicated_by_last_epoch(role: LeaderAndIsr, log: Log, fetch: FetchRequest, offset: Offset) -> bool:
    """As `replicated_by_offset`, and the record before `offset` must have the same leader epoch in both logs.

    **Kafka:** the first draft of KIP-320, never released.
    """
    if fetch.fetch_offset < offset:
        return False
    return offset == log.start_offset or fetch.last_fetched_epoch == log.epoch_at(Offset(offset - 1))


def replicated_by_leader_epoch(role: LeaderAndIsr, log: Log, fetch: FetchRequest, offset: Offset) -> bool:
    """As `replicated_by_offset`, and the fetch must have been made in the leader's current epoch.

    In an older epoch the follower may still have to truncate what it has acknowledged.

    **Kafka:** `Partition.updateFollowerFetchState` behind the epoch check of KIP-320, since 2.1.
    """
    return fetch.current_leader_epoch == role.leader_epoch and fetch.fetch_offset >= offset


def holds_back_high_watermark(role: LeaderAndIsr, follower: BrokerId, has_replicated: bool) -> bool:
    """Whether `follower` keeps its leader from committing the record at the high watermark.

    An in-sync replica does until the leader knows that it has replicated that record; so the high watermark is the
    smallest log end offset among the in-sync replicas.

    Parameters: the leader's `role`; the follower's id; whether it has replicated the offset after that record.

    **Kafka:** `Partition.maybeIncrementLeaderHW`.
    """
    return follower in role.isr and not has_replicated


def awaited_if_in_isr(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """Whether a leader waits for a follower before it moves its high watermark: for members of the (maximal) ISR.

    **Kafka:** `Partition.maybeIncrementLeaderHW` up to 0.10.1.
    """
    return in_isr


def awaited_if_caught_up(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """As `awaited_if_in_isr`, and for whoever is caught up, so that it is not overtaken while it joins.

    It also waits for a replica that may not join, as long as that counts as caught up (KAFKA-15021).

    **Kafka:** `Partition.maybeIncrementLeaderHW` from 0.10.2 (KAFKA-4485) to 3.5.
    """
    return in_isr or caught_up


def awaited_if_about_to_join(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """As `awaited_if_in_isr`, and for whoever is caught up and may join.

    **Kafka:** `Partition.maybeIncrementLeaderHW` (KAFKA-15021, since 3.6).
    """
    return in_isr or (caught_up and eligible)


def advance_at_any_isr_size(isr_size: int, min_isr: int) -> bool:
    """A leader moves its high watermark however few replicas are in sync.

    Records of acks 0 and 1 thus become readable that one failure may lose.

    **Kafka:** `Partition.maybeIncrementLeaderHW` up to 3.6.
    """
    return True


def advance_at_min_isr(isr_size: int, min_isr: int) -> bool:
    """A leader moves its high watermark only while enough replicas are in sync, by the committed ISR.

    **Kafka:** `Partition.maybeIncrementLeaderHW`, `isUnderMinIsr` (KIP-966, KAFKA-15583, since 3.7).
    """
    return isr_size >= min_isr


def leader_high_watermark(
    high_watermark: Offset, end_offset: Offset, awaited: tuple[Offset, ...], may_advance: bool
) -> Offset:
    """A leader's high watermark: the smallest log end offset among itself and the followers that it waits for.

    It never goes back, and a follower of which nothing is known yet (`UNKNOWN_OFFSET`) holds it where it is.

    Parameters: the high watermark so far; the leader's log end offset; those of the followers `awaited`; whether it may
    advance at all.

    **Kafka:** `Partition.maybeIncrementLeaderHW`, `UnifiedLog.maybeIncrementHighWatermark`.
    """
    return max(high_watermark, min((end_offset, *awaited))) if may_advance else high_watermark


def last_stable_offset(high_watermark: Offset, first_unstable_offset: Offset) -> Offset:
    """Up to where a consumer that reads committed transactions may read.

    Parameters: the high watermark; the first offset of a transaction that is still open, `UNKNOWN_OFFSET` if none is.

    **Kafka:** `UnifiedLog.lastStableOffset`.
    """
    none_below = first_unstable_offset == UNKNOWN_OFFSET or first_unstable_offset >= high_watermark
    return high_watermark if none_below else first_unstable_offset


def has_record_to_commit(log: Log, high_watermark: Offset) -> bool:
    """Whether the leader's log holds a record at its high watermark. **Kafka:** `UnifiedLog.maybeIncrementHighWatermark`."""
    return high_watermark < log.end_offset


def follower_high_watermark(log: Log, leader_high_watermark: Offset) -> Offset:
    """A follower's high watermark: the leader's, as far as its own log goes in both directions (offsets).

    **Kafka:** `ReplicaFetcherThread.processPartitionData`, `UnifiedLog.maybeUpdateHighWatermark`.
    """
    return max(log.start_offset, min(leader_high_watermark, log.end_offset))


def high_watermark_after_truncation(high_watermark: Offset, end_offset: Offset) -> Offset:
    """The high watermark never exceeds the log end (offsets). **Kafka:** `UnifiedLog.truncateTo`."""
    return min(high_watermark, end_offset)


def high_watermark_from_checkpoint(log: Log, checkpointed: Offset) -> Offset:
    """The high watermark of a replica that has just opened its log: what the checkpoint file says, within the log.

    A replica that is not in the file counts as 0.

    **Kafka:** `Partition.createLog`, `UnifiedLog.updateHighWatermark`.
    """
    return follower_high_watermark(log, checkpointed)
