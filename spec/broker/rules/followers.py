"""A leader's state of a follower, and whether the follower is caught up.

The state comes from the follower's own fetches. Times are milliseconds of the leader's clock, and are arguments.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, MonotonicMs, Offset

LONG_AGO = MonotonicMs(0)
"""The time when a follower that is not in sync was caught up: the clock counts from long before the leader began."""

NEVER_FETCHED = BrokerEpoch(-2)
"""The broker epoch of a follower that has not fetched yet. Kafka has no value there; -1 means a fetch that carried none."""


class FollowerState(NamedTuple):
    """A follower as its leader knows it. Kafka: `ReplicaState`."""

    end_offset: Offset = UNKNOWN_OFFSET
    """The offset of its last fetch, so its log end at that time."""

    start_offset: Offset = UNKNOWN_OFFSET
    """Its log start at its last fetch."""

    leader_end_offset: Offset = Offset(0)
    """The largest log end offset that the leader had at any of its fetches."""

    fetch_time: MonotonicMs = LONG_AGO
    """The time of its last fetch, in milliseconds."""

    caught_up_time: MonotonicMs = LONG_AGO
    """The last time at which it had all of the leader's records, as far as the leader knows, in milliseconds."""

    broker_epoch: BrokerEpoch = NEVER_FETCHED
    """The broker epoch in its last fetch."""


class FollowerFetch(NamedTuple):
    """A follower's fetch as its leader sees it."""

    time: MonotonicMs
    """The time when the leader handles it, in milliseconds."""

    end_offset: Offset
    """The offset fetched, so the follower's log end."""

    start_offset: Offset
    """The follower's log start, as the request says."""

    leader_end: Offset
    """The leader's log end at this fetch."""

    broker_epoch: BrokerEpoch
    """The broker epoch in the request."""


UNKNOWN_FOLLOWER = FollowerState()
"""A replica that has just been assigned."""


class Follower(NamedTuple):
    """A follower's id with its leader's state of it. Kafka: `Replica`."""

    broker: BrokerId
    state: FollowerState = UNKNOWN_FOLLOWER


Brokers: TypeAlias = tuple[BrokerRegistration, ...]
"""All brokers in a broker's metadata, fenced ones included."""


def after_fetch(follower: FollowerState, fetch: FollowerFetch) -> FollowerState:
    """The state of a follower after a fetch.

    A fetch from the leader's end shows that the follower is caught up now. A fetch from the leader's end at an *earlier*
    fetch shows that it was caught up at that time. The end offset may also go down, because a follower may have truncated.

    **Kafka:** `Replica.updateFetchStateOrThrow`, since 3.3 (before 3.7 `updateFetchState`).
    """
    noted = after_fetch_at_its_end(follower, fetch)
    return noted._replace(leader_end_offset=max(fetch.leader_end, follower.leader_end_offset))


def after_fetch_at_its_end(follower: FollowerState, fetch: FollowerFetch) -> FollowerState:
    """As `after_fetch`, but the end of the leader's log is that of this fetch, even if an earlier one saw a later end.

    **Kafka:** `Replica.updateLogReadResult`, 0.10.2 to 2.3; `Replica.updateFetchState`, 2.4 to 3.2.
    """
    caught_up_time = follower.caught_up_time
    if fetch.end_offset >= fetch.leader_end:
        caught_up_time = max(caught_up_time, fetch.time)
    elif fetch.end_offset >= follower.leader_end_offset:
        caught_up_time = max(caught_up_time, follower.fetch_time)
    return follower._replace(
        end_offset=fetch.end_offset,
        start_offset=fetch.start_offset,
        leader_end_offset=fetch.leader_end,
        fetch_time=fetch.time,
        caught_up_time=caught_up_time,
        broker_epoch=fetch.broker_epoch,
    )


def after_fetch_from_end(follower: FollowerState, fetch: FollowerFetch) -> FollowerState:
    """As `after_fetch_at_its_end`, but only a fetch from the leader's end shows that the follower was caught up.

    A leader that is written to all the time may not see one, and drops the follower (KAFKA-4485).

    **Kafka:** `Replica.updateLogReadResult`, `LogReadResult.isReadFromLogEnd`, 0.10.0 and 0.10.1.
    """
    is_at_end = fetch.end_offset >= fetch.leader_end
    noted = after_fetch_at_its_end(follower, fetch)
    return noted._replace(caught_up_time=fetch.time if is_at_end else follower.caught_up_time)


def after_failed_fetch(follower: FollowerState) -> FollowerState:
    """The state of a follower after a fetch that was refused: as it was. **Kafka:** since 2.4 (KAFKA-8400)."""
    return follower


def end_unknown_after_failed_fetch(follower: FollowerState) -> FollowerState:
    """The state of a follower after a fetch that was refused: its log end is unknown until the next one that is not.

    The high watermark stands still meanwhile, if it waits for the follower.

    **Kafka:** `ReplicaManager.updateFollowerLogReadResults` with `LogReadResult` of -1 in each field, up to 2.3.
    """
    return follower._replace(
        end_offset=UNKNOWN_OFFSET, start_offset=UNKNOWN_OFFSET, leader_end_offset=UNKNOWN_OFFSET, fetch_time=MonotonicMs(-1)
    )


def is_caught_up(follower: FollowerState, leader_end: Offset, now: MonotonicMs, max_lag: int) -> bool:
    """Whether a follower is not behind, or has not been for longer than `max_lag` milliseconds.

    A follower with all of the leader's records counts as caught up however old its last fetch is.

    **Kafka:** `Partition.getOutOfSyncReplicas`, since 2.1 (KAFKA-7152); `ReplicaState.isCaughtUp`; `max_lag` is
    `replica.lag.time.max.ms`.
    """
    return follower.end_offset == leader_end or was_caught_up_lately(follower, leader_end, now, max_lag)


def was_caught_up_lately(follower: FollowerState, leader_end: Offset, now: MonotonicMs, max_lag: int) -> bool:
    """Whether a follower has not been behind for longer than `max_lag` milliseconds, whether or not it is now.

    So a member of the ISR with all records is dropped when it has not fetched for so long.

    **Kafka:** `Partition.getOutOfSyncReplicas` up to 2.0.
    """
    return now - follower.caught_up_time <= max_lag


# ---- when the leader epoch grows


def forget(follower: FollowerState, now: MonotonicMs, in_isr: bool) -> FollowerState:
    """A new leader's state of a follower: none, except that a member of the ISR gets the whole `max_lag` for its first
    fetch.

    **Kafka:** `Replica.resetReplicaState` with `isNewLeader`.
    """
    return FollowerState(leader_end_offset=UNKNOWN_OFFSET, caught_up_time=now if in_isr else LONG_AGO)


def keep_offsets(follower: FollowerState, now: MonotonicMs, in_isr: bool, leader_end: Offset) -> FollowerState:
    """The state of a follower when the leader goes on leading in the next epoch: the offsets and the broker epoch of earlier
    fetches stay, and nothing else.

    **Kafka:** `Replica.resetReplicaState` without `isNewLeader`, since 3.3.
    """
    time = now if in_isr else LONG_AGO
    return FollowerState(follower.end_offset, follower.start_offset, leader_end, time, time, follower.broker_epoch)


def keep_offsets_as_if_fetched_now(
    follower: FollowerState, now: MonotonicMs, in_isr: bool, leader_end: Offset
) -> FollowerState:
    """As `keep_offsets`, but the last fetch counts as made now, also that of a replica outside the ISR.

    Its next fetch from the end of this moment shows that it was caught up at this moment.

    **Kafka:** `Replica.resetLastCaughtUpTime`, 0.10.2 to 3.2.
    """
    return keep_offsets(follower, now, in_isr, leader_end)._replace(fetch_time=now)


def keep_everything(follower: FollowerState, now: MonotonicMs, in_isr: bool, leader_end: Offset) -> FollowerState:
    """The state of a follower when the leader goes on leading in the next epoch: as it was.

    **Kafka:** `Partition.makeLeader`, 0.10.0 and 0.10.1.
    """
    return follower


def knows_followers_if_it_led(led_before: bool, epoch_before: Epoch, epoch: Epoch) -> bool:
    """Whether a leader of `epoch` keeps its state of the followers: if it led by the last announcement that it took.

    It may have missed epochs in which other brokers led, and in which its followers have truncated.

    **Kafka:** `Partition.makeLeader`, `isNewLeader` (from 0.9 to 4.4, KAFKA-2721).
    """
    return led_before


def knows_followers_if_no_epoch_was_missed(led_before: bool, epoch_before: Epoch, epoch: Epoch) -> bool:
    """Whether a leader of `epoch` keeps its state of the followers: if it led in the epoch just before.

    **Kafka:** no release; the repair of `knows_followers_if_it_led`.
    """
    return led_before and epoch == epoch_before + 1


def reset_follower(
    follower: FollowerState,
    now: MonotonicMs,
    in_isr: bool,
    leader_end: Offset,
    knows_followers: bool,
    keeps: Callable[[FollowerState, MonotonicMs, bool, Offset], FollowerState] = keep_offsets,
) -> FollowerState:
    """The state of a follower when the leader epoch has grown and the leader's log ends at `leader_end`.

    `keeps`: what the release keeps of it where it keeps something.

    **Kafka:** `Replica.resetReplicaState`. **Leaves out:** in 0.10.0 and 0.10.1 a new leader forgets no time.
    """
    return keeps(follower, now, in_isr, leader_end) if knows_followers else forget(follower, now, in_isr)


# ---- the set of followers


def follower_of(followers: tuple[Follower, ...], replica: BrokerId) -> FollowerState | None:
    """The leader's state of `replica`, `None` unless it is assigned. **Kafka:** `Partition.getReplica`."""
    for follower in followers:
        if follower.broker == replica:
            return follower.state
    return None


def with_follower(followers: tuple[Follower, ...], replica: BrokerId, state: FollowerState) -> tuple[Follower, ...]:
    """The followers with a new state of one of them."""
    return tuple(Follower(replica, state) if follower.broker == replica else follower for follower in followers)


def assign(followers: tuple[Follower, ...], self_id: BrokerId, replicas: tuple[BrokerId, ...]) -> tuple[Follower, ...]:
    """The followers after a change of the assignment, in order of their ids: states are kept, added, or removed.

    **Kafka:** `Partition.updateAssignmentAndIsr`.
    """
    known = {follower.broker: follower for follower in followers}
    return tuple(known.get(replica, Follower(replica)) for replica in sorted(replicas) if replica != self_id)
