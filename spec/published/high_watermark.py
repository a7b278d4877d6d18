"""When a published model's leader believes that a follower has replicated up to an offset.

Three answers mark the way to KIP-320. The leader answers from what it remembers of the
follower's last fetch, never from the follower's log.
"""

from spec.log.algebra import Log
from spec.messages.fetch import FetchPosition
from spec.values import BrokerId, LeaderAndIsr, Offset


def replicated_by_offset(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
    """Whether a follower's last fetch shows that it holds the leader's log up to `offset`: by the fetch offset alone.

    Parameters: the leader's `role` and `log`; the follower's last `fetch`; an exclusive end `offset`.

    **Kafka:** `Partition.maybeIncrementLeaderHW` before KIP-320, up to 2.0.
    """
    return fetch.fetch_offset >= offset


def replicated_by_last_epoch(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
    """As `replicated_by_offset`, and the record before `offset` must have the same leader epoch in both logs.

    **Kafka:** the first draft of KIP-320, never released.
    """
    if fetch.fetch_offset < offset:
        return False
    return offset == log.start_offset or fetch.last_fetched_epoch == log.epoch_at(Offset(offset - 1))


def replicated_by_leader_epoch(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
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


def has_record_to_commit(log: Log, high_watermark: Offset) -> bool:
    """Whether the leader's log holds a record at its high watermark. **Kafka:** `UnifiedLog.maybeIncrementHighWatermark`."""
    return high_watermark < log.end_offset
