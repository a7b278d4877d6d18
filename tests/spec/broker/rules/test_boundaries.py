"""Rules at the value where their answer changes, as Apache Kafka has them there."""

import pytest

from kspec.spec.broker.rules.divergence import AGREES, OUT_OF_RANGE, diverges_within_log
from kspec.spec.broker.rules.epoch_lookup import look_up_end_only, offset_for_leader_epoch_without_log
from kspec.spec.broker.rules.fetcher import FetchState, FetchStatus, failed, needs_no_answer
from kspec.spec.broker.rules.followers import Follower, FollowerState, keep_offsets, keep_offsets_as_if_fetched_now
from kspec.spec.broker.rules.high_watermark import stays_when_granted
from kspec.spec.broker.rules.isr.membership import has_reached_epoch_start, out_of_sync, out_of_sync_by_time
from kspec.spec.broker.rules.offsets import low_watermark
from kspec.spec.broker.rules.produce import AppendedRecords, expiry
from kspec.spec.broker.rules.throttling import Quota, count, is_exceeded
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.produce import NO_DEADLINE
from kspec.spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
)
from tests.spec.broker_driver import ALL_UP, OTHER, SELF, THIRD, log_of

LAG = 30_000
FIRST = BrokerEpoch(7)


def follower(broker: BrokerId, end: int, start: int, caught_up: int) -> Follower:
    state = FollowerState(Offset(end), Offset(start), Offset(9), MonotonicMs(caught_up), MonotonicMs(caught_up), FIRST)
    return Follower(broker, state)


@pytest.mark.parametrize(("now", "out"), [(LAG, False), (LAG + 1, True)])
def test_a_member_is_out_of_sync_once_more_than_the_lag_has_passed(now: int, out: bool) -> None:
    """`Replica.isCaughtUp`: `currentTimeMs - lastCaughtUpTimeMs <= replicaMaxLagMs`."""
    lagging = (follower(OTHER, end=4, start=0, caught_up=0),)
    for rule in (out_of_sync, out_of_sync_by_time):
        found = rule(frozenset({SELF, OTHER}), SELF, lagging, Offset(5), MonotonicMs(now), LAG)
        assert found == (frozenset({OTHER}) if out else frozenset())


@pytest.mark.parametrize(("end", "reached"), [(4, False), (5, True), (6, True)])
def test_a_replica_joins_from_the_start_of_the_leaders_epoch_on(end: int, reached: bool) -> None:
    """`Partition.isFollowerInSync`: `leaderEpochStartOffsetOpt.exists(followerEndOffset >= _)`."""
    assert has_reached_epoch_start(Offset(end), Offset(2), Offset(5)) == reached


@pytest.mark.parametrize("lowest", [0, 1])
def test_each_live_follower_holds_the_low_watermark(lowest: int) -> None:
    starts = [3, 3]
    starts[lowest] = 1
    known = (follower(OTHER, 5, starts[0], 0), follower(THIRD, 5, starts[1], 0))
    assert low_watermark(Offset(4), known, ALL_UP) == 1


def test_the_high_watermark_stays_when_an_isr_is_granted_in_earlier_releases() -> None:
    assert stays_when_granted(Offset(3), Offset(5)) == 3


@pytest.mark.parametrize("rule", [keep_offsets, keep_offsets_as_if_fetched_now])
@pytest.mark.parametrize("in_isr", [True, False])
def test_a_follower_that_is_kept_is_asked_for_the_leaders_end(rule: object, in_isr: bool) -> None:
    """`Replica.resetReplicaState(leaderEndOffset)` is the end that the next fetch has to reach."""
    kept = rule(follower(OTHER, 4, 1, 20).state, MonotonicMs(50), in_isr, Offset(8))  # type: ignore[operator]
    assert (kept.end_offset, kept.start_offset, kept.leader_end_offset, kept.broker_epoch) == (4, 1, 8, FIRST)
    assert kept.caught_up_time == (50 if in_isr else 0)


@pytest.mark.parametrize(
    ("known", "error"), [(True, Error.NOT_LEADER_OR_FOLLOWER), (False, Error.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_who_has_no_log_says_whether_the_topic_is_known(known: bool, error: Error) -> None:
    answer = offset_for_leader_epoch_without_log(known)
    assert (answer.error, answer.end) == (error, UNDEFINED_EPOCH_END)


def test_a_log_with_epochs_has_no_end_for_who_names_none() -> None:
    """KAFKA-6857 is about logs without epochs only."""
    assert look_up_end_only(log_of(), NO_EPOCH).end_offset == 0
    assert look_up_end_only(log_of(0), NO_EPOCH).end_offset == UNDEFINED_EPOCH_END.end_offset
    assert look_up_end_only(log_of(0, 0), Epoch(0)).end_offset == 2


@pytest.mark.parametrize(("epochs", "none"), [((), True), ((0,), False), ((1,), False)])
def test_a_log_of_epoch_0_can_be_asked_about(epochs: tuple[int, ...], none: bool) -> None:
    truncating = FetchState(FetchStatus.TRUNCATING, OTHER, Epoch(2))
    assert needs_no_answer(truncating, log_of(*epochs)) == none


def test_a_failed_fetcher_knows_nothing_any_more() -> None:
    """`markPartitionFailed` removes the partition; only new metadata brings it back."""
    fetching = FetchState(FetchStatus.FETCHING, OTHER, Epoch(2), Offset(5), Epoch(1))
    assert failed(fetching) == failed(FetchState(FetchStatus.TRUNCATING, THIRD, Epoch(3)))
    assert failed(fetching).status == FetchStatus.FAILED


@pytest.mark.parametrize(
    ("current", "last", "found"),
    [(3, -1, AGREES), (-1, -1, AGREES), (3, 1, OUT_OF_RANGE), (-1, 1, OUT_OF_RANGE)],
)
def test_before_the_logs_start_only_a_named_epoch_is_out_of_range(current: int, last: int, found: object) -> None:
    """`Partition.readRecords` looks at `lastFetchedEpoch`, whatever the current leader epoch is."""
    log = log_of(1, 1, 2).start_at(Offset(2))
    assert diverges_within_log(log, FetchPosition(Epoch(current), Offset(1), Epoch(last))) == found


@pytest.mark.parametrize(
    ("answer", "offset", "complete"),
    [
        ((5, 2), 2, True),  # later than all own epochs: unknown here
        ((5, 9), 4, True),
        ((3, 9), 4, True),
        ((3, 3), 3, True),
        ((2, 3), 2, False),
        ((0, 9), 0, True),  # earlier than all own epochs: it ends where the first of them starts
        ((0, 1), 0, True),
        ((-1, 3), 3, True),
        ((-1, 9), 4, True),
        ((-1, -1), 1, True),
    ],
)
def test_a_truncation_ends_at_the_smallest_end(answer: tuple[int, int], offset: int, complete: bool) -> None:
    """`AbstractFetcherThread.getOffsetTruncationState`, of a log with records in epochs 1, 1, 3, 3 and high watermark 1."""
    step = truncation_step(log_of(1, 1, 3, 3), Offset(1), EpochEndOffset(Epoch(answer[0]), Offset(answer[1])))
    assert (step.offset, step.complete) == (offset, complete)


def test_what_is_over_is_not_measured() -> None:
    """`SampledStat.purgeObsoleteSamples`: the rate is that of the samples that still count, by the oldest of them."""
    quota = Quota(rate=1_000, window_ms=1_000, windows=2)
    samples = count(quota, (), 10_000, MonotonicMs(0))
    assert is_exceeded(quota, samples, MonotonicMs(1_999))
    assert not is_exceeded(quota, samples, MonotonicMs(2_000))
    two = count(quota, samples, 1_001, MonotonicMs(1_500))
    assert is_exceeded(quota, two, MonotonicMs(2_400))
    assert not is_exceeded(quota, two, MonotonicMs(2_501))


def test_no_deadline_is_never_over() -> None:
    waiting = AppendedRecords(Offset(0), Offset(1), NO_DEADLINE)
    assert not expiry(waiting, MonotonicMs(10**12))
