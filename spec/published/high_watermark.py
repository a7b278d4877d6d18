"""Belief of a published model's leader that a follower has replicated up to an offset.

There are three such rules, the last of them KIP-320's. Each uses the follower's last fetch as the leader remembers it, never
the follower's log. The same rule serves for the high watermark, for leaving the ISR and for joining it.
"""

from kspec.spec.broker.rules.high_watermark import awaited_if_in_isr
from kspec.spec.log.algebra import Log
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import BrokerId, LeaderAndIsr, Offset


def replicated_by_offset(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
    """Whether a follower's last fetch shows that it holds the leader's log up to `offset`: by the fetch offset alone.

    Parameters: the leader's `role` and `log`; the follower's last `fetch`; an exclusive end `offset`.

    **Kafka:** `Partition.maybeIncrementLeaderHW` before KIP-320, up to 2.0.

    **Departs:** a broker remembers the fetch offset as the follower's log end (`FollowerState.end_offset`) and forgets it
    when it becomes leader again; here a fetch that was made to another leader counts.
    """
    return fetch.fetch_offset >= offset


def replicated_by_last_epoch(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
    """As `replicated_by_offset`, and the record before `offset` must have the same leader epoch in both logs.

    **Kafka:** the first draft of KIP-320, never released.

    **Departs:** no broker compares epochs of records here.
    """
    if fetch.fetch_offset < offset:
        return False
    return offset == log.start_offset or fetch.last_fetched_epoch == log.epoch_at(Offset(offset - 1))


def replicated_by_leader_epoch(role: LeaderAndIsr, log: Log, fetch: FetchPosition, offset: Offset) -> bool:
    """As `replicated_by_offset`, and the fetch must have been made in the leader's current epoch.

    In an older epoch the follower may still have to truncate records that it has acknowledged.

    **Kafka:** `Partition.updateFollowerFetchState` behind the epoch check of KIP-320, since 2.1.

    **Departs:** a broker checks a fetch's epoch when the fetch arrives (`check_leader_epoch`), and accepts one without an
    epoch; here the epoch is remembered with the fetch, and one without an epoch never counts.
    """
    return fetch.current_leader_epoch == role.leader_epoch and fetch.fetch_offset >= offset


def holds_back_high_watermark(role: LeaderAndIsr, follower: BrokerId, has_replicated: bool) -> bool:
    """Whether `follower` keeps its leader from committing the record at the high watermark.

    An in-sync replica does until the leader knows that it has replicated that record; so the high watermark is the
    smallest log end offset among the in-sync replicas.

    Parameters: the leader's `role`; the follower's id; whether it has replicated the offset after that record.

    **Kafka:** `Partition.maybeIncrementLeaderHW`.

    **Departs:** the high watermark moves one record in each step; a broker moves it as far as it may go
    (`leader_high_watermark`). Here it waits for the ISR in every version, as in Kafka up to 0.10.1: without time no other
    replica counts as caught up.
    """
    return awaited_if_in_isr(follower in role.isr, caught_up=False, eligible=False) and not has_replicated


def has_record_to_commit(log: Log, high_watermark: Offset) -> bool:
    """Whether the leader's log holds a record at its high watermark. **Kafka:** `UnifiedLog.maybeIncrementHighWatermark`.

    **Departs:** as `holds_back_high_watermark`; in a broker the leader's own log end is one of those that count.
    """
    return high_watermark < log.end_offset
