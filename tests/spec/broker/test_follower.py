"""A follower's handlers, by release where they differ: rules T3-T13, H6, H8, H9, R3 of docs/rules.md."""

import pytest

from kspec.spec.broker.effects import BatchesAppended, LogRestarted, LogStartMoved, LogTruncated, Persist, RebuildProducers
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
    truncate_by,
)
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchStatus, PendingFetch
from kspec.spec.log.local_log import LocalLog, append_in_order, restart, truncate, truncate_if_longer
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.releases.broker import (
    BROKER_2_0,
    BROKER_2_6,
    BROKER_2_7,
    BROKER_2_8,
    BROKER_3_6,
    BROKER_3_9_1,
    BROKER_4_0,
    BROKER_4_0_1,
    BROKER_NEXT,
)
from kspec.spec.step import Send
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
    Record,
)
from tests.spec.broker_driver import EPOCH, NOW, OTHER, SELF, broker, follower, log_of, run_of


def answer(
    base: int, *epochs: int, high_watermark: int = 0, start: int = 0, diverging: EpochEndOffset = UNDEFINED_EPOCH_END
) -> FetchResponse:
    records = tuple(Record(base + position, Epoch(epoch)) for position, epoch in enumerate(epochs))
    watermark = Offset(high_watermark)
    return FetchResponse(Error.NONE, Offset(base), records, watermark, Offset(start), watermark, diverging)


def parted(epoch: int, end: int, high_watermark: int = 0) -> FetchResponse:
    return answer(0, high_watermark=high_watermark, diverging=EpochEndOffset(Epoch(epoch), Offset(end)))


def truncating(log: RecordLog, high_watermark: int = 0) -> Partition[RecordLog]:
    partition = follower(log, high_watermark, FetchStatus.TRUNCATING)
    return partition._replace(fetcher=partition.fetcher._replace(fetch_offset=Offset(high_watermark)))


# ---- asking


@pytest.mark.parametrize(
    ("protocol", "fetch", "run"),
    [
        (BROKER_2_0, FetchPosition(NO_EPOCH, Offset(2), NO_EPOCH), NO_BROKER_EPOCH),
        (BROKER_2_7, FetchPosition(EPOCH, Offset(2), NO_EPOCH), NO_BROKER_EPOCH),
        (BROKER_2_8, FetchPosition(EPOCH, Offset(2), Epoch(4)), NO_BROKER_EPOCH),
        (BROKER_4_0, FetchPosition(EPOCH, Offset(2), Epoch(4)), run_of(SELF)),
    ],
)
def test_what_a_fetch_carries_by_release(protocol: object, fetch: FetchPosition, run: int) -> None:
    partition = follower(log_of(3, 4).start_at(Offset(1)))
    step = fetch_or_truncate(broker(protocol), partition, NOW)  # type: ignore[arg-type]
    assert step == (partition, (Send(OTHER, FetchRequest(SELF, fetch, run, Offset(1))),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (FetchStatus.TRUNCATING, OffsetForLeaderEpochRequest(EPOCH, Epoch(4))),
        (FetchStatus.FINDING_END, ListOffsetsRequest(OffsetSpec.LATEST, EPOCH)),
        (FetchStatus.FINDING_START, ListOffsetsRequest(OffsetSpec.EARLIEST, EPOCH)),
    ],
)
def test_what_else_a_follower_asks(status: FetchStatus, request_: object) -> None:
    step = fetch_or_truncate(broker(), follower(log_of(3, 4), status=status), NOW)
    assert step.effects == (Send(OTHER, request_),)


@pytest.mark.parametrize("status", [FetchStatus.NOT_FETCHING, FetchStatus.FAILED])
def test_who_does_not_follow_asks_nothing(status: FetchStatus) -> None:
    partition = follower(log_of(4), status=status)
    assert fetch_or_truncate(broker(), partition, NOW) == (partition, ())


def test_a_follower_that_backs_off_asks_later() -> None:
    waits = on_no_answer(broker(), follower(log_of(4)), NOW).state
    assert fetch_or_truncate(broker(), waits, MonotonicMs(NOW + 999)).effects == ()
    later = fetch_or_truncate(broker(), waits, MonotonicMs(NOW + 1000))
    assert (len(later.effects), later.state) == (1, follower(log_of(4)))


def test_without_any_epoch_it_truncates_to_the_high_watermark_at_once() -> None:
    step = fetch_or_truncate(broker(), truncating(log_of()), NOW)
    assert (step.state.fetcher.status, step.effects) == (FetchStatus.FETCHING, ())


# ---- truncating by questions: T3-T5, T12, T13


def test_the_answer_cuts_the_log_and_what_depends_on_it() -> None:
    partition = truncating(log_of(3, 4, 4), 2)
    response = OffsetForLeaderEpochResponse(Error.NONE, EpochEndOffset(Epoch(3), Offset(1)))
    step = handle_offset_for_leader_epoch_response(broker(), partition, PendingFetch(EPOCH), response, NOW)
    assert (step.state.local.log, step.state.local.high_watermark) == (log_of(3), 1)
    assert step.effects == (Persist(LogTruncated(Offset(1))), RebuildProducers())
    fetcher = step.state.fetcher
    assert (fetcher.status, fetcher.fetch_offset, fetcher.last_fetched_epoch) == (FetchStatus.FETCHING, 1, 3)


def test_a_follower_of_before_2_8_asks_on_until_an_epoch_is_common() -> None:
    response = OffsetForLeaderEpochResponse(Error.NONE, EpochEndOffset(Epoch(3), Offset(2)))
    statuses = {
        protocol.name: handle_offset_for_leader_epoch_response(
            broker(protocol), truncating(log_of(2, 4, 4)), PendingFetch(EPOCH), response, NOW
        ).state.fetcher.status
        for protocol in (BROKER_2_7, BROKER_2_8)
    }
    assert statuses == {"2.7": FetchStatus.TRUNCATING, "2.8": FetchStatus.FETCHING}


def test_an_answer_to_a_question_of_another_epoch_is_ignored() -> None:
    partition = truncating(log_of(3, 4, 4))
    response = OffsetForLeaderEpochResponse(Error.NONE, EpochEndOffset(Epoch(3), Offset(1)))
    assert handle_offset_for_leader_epoch_response(broker(), partition, PendingFetch(Epoch(4)), response, NOW) == (
        partition,
        (),
    )


@pytest.mark.parametrize(
    ("error", "status", "delayed"),
    [(Error.FENCED_LEADER_EPOCH, FetchStatus.FAILED, False), (Error.UNKNOWN_LEADER_EPOCH, FetchStatus.TRUNCATING, True)],
)
def test_a_refused_question(error: Error, status: FetchStatus, delayed: bool) -> None:
    response = OffsetForLeaderEpochResponse(error, UNDEFINED_EPOCH_END)
    fetcher = handle_offset_for_leader_epoch_response(
        broker(), truncating(log_of(4)), PendingFetch(EPOCH), response, NOW
    ).state.fetcher
    assert (fetcher.status, fetcher.delayed_until > NOW) == (status, delayed)


def test_an_epoch_opened_in_vain_is_taken_back_since_2_7() -> None:
    """KAFKA-10706: a deposed leader without a record of its epoch asked about that epoch for ever."""
    partition = truncating(log_of(3, 3).open_epoch(Epoch(4)), 2)
    response = OffsetForLeaderEpochResponse(Error.NONE, EpochEndOffset(Epoch(3), Offset(2)))
    epochs = {
        protocol.name: handle_offset_for_leader_epoch_response(
            broker(protocol), partition, PendingFetch(EPOCH), response, NOW
        ).state.local.log.latest_epoch
        for protocol in (BROKER_2_6, BROKER_2_7)
    }
    assert epochs == {"2.6": 4, "2.7": 3}


def test_a_cut_below_the_start_moves_the_start() -> None:
    local = LocalLog(log_of(3, 4, 4).start_at(Offset(2)), Offset(2))
    assert truncate(local, Offset(1)) == LocalLog(log_of().restart_at(Offset(1)), Offset(1))
    assert truncate_if_longer(local, Offset(9)) is local
    assert truncate_if_longer(local, Offset(1)) == truncate(local, Offset(1))
    assert restart(local, Offset(7)) == LocalLog(log_of().restart_at(Offset(7)), Offset(7))


# ---- taking records: T6-T9, H6, R3


def test_records_are_appended_then_the_watermark_and_the_start_follow() -> None:
    partition = follower(log_of(4, 4), 1)
    step = handle_fetch_response(
        broker(), partition, PendingFetch(EPOCH, Offset(2)), answer(2, 4, 5, high_watermark=3, start=1), NOW
    )
    after = step.state
    assert (after.local.log.end_offset, after.local.high_watermark, after.local.log.start_offset) == (4, 3, 1)
    assert (after.fetcher.fetch_offset, after.fetcher.last_fetched_epoch, after.fetcher.answered) == (4, 5, True)
    records = (Record(2, Epoch(4)), Record(3, EPOCH))
    assert step.effects == (Persist(BatchesAppended(Offset(2), records)), Persist(LogStartMoved(Offset(1))))


@pytest.mark.parametrize(("leaders", "own"), [(0, 0), (1, 1), (9, 2)])
def test_the_followers_watermark_is_the_leaders_within_its_log_and_may_go_back(leaders: int, own: int) -> None:
    partition = follower(log_of(4, 4), 2)
    step = handle_fetch_response(broker(), partition, PendingFetch(EPOCH, Offset(2)), answer(2, high_watermark=leaders), NOW)
    assert (step.state.local.high_watermark, step.effects) == (own, ())


def test_an_answer_to_a_fetch_from_elsewhere_is_ignored() -> None:
    partition = follower(log_of(4, 4))
    assert handle_fetch_response(broker(), partition, PendingFetch(EPOCH, Offset(1)), answer(1, 5), NOW) == (partition, ())


def test_a_late_answer_of_another_epoch_cuts_what_is_committed() -> None:
    """KAFKA-18991: the offset matches, and the answer says where an old leader's log parted."""
    partition = follower(log_of(1, 3, 3), 3, status=FetchStatus.FETCHING)
    late = parted(1, 1)
    cut = handle_fetch_response(broker(), partition, PendingFetch(Epoch(1), Offset(3)), late, NOW)
    assert (cut.state.local.log.end_offset, cut.state.local.high_watermark) == (1, 1)
    assert handle_fetch_response(broker(BROKER_NEXT), partition, PendingFetch(Epoch(1), Offset(3)), late, NOW) == (
        partition,
        (),
    )


def test_a_follower_that_is_told_to_truncate_takes_nothing_else() -> None:
    partition = follower(log_of(1, 2, 4), 1)
    step = handle_fetch_response(broker(), partition, PendingFetch(EPOCH, Offset(3)), parted(2, 2, high_watermark=3), NOW)
    assert (step.state.local.log.end_offset, step.state.local.high_watermark) == (2, 1)
    assert step.effects == (Persist(LogTruncated(Offset(2))), RebuildProducers())


def test_2_8_took_the_leaders_watermark_before_it_truncated() -> None:
    """KAFKA-14704: what lies below the watermark is not what the leader has committed."""
    partition = follower(log_of(1, 2, 4, 4), 1)
    told = parted(2, 3, high_watermark=3)
    marks = {
        protocol.name: handle_fetch_response(
            broker(protocol), partition, PendingFetch(EPOCH, Offset(4)), told, NOW
        ).state.local
        for protocol in (BROKER_2_8, BROKER_4_0)
    }
    assert {name: (local.log.end_offset, local.high_watermark) for name, local in marks.items()} == {
        "2.8": (2, 2),
        "4.0": (2, 1),
    }


def test_records_of_a_later_epoch_are_not_taken_since_4_0_1() -> None:
    """KAFKA-18723: the sender was deposed while its answer was being read from the file."""
    before = follower(log_of(4))
    late = answer(1, 5, 6)
    ends = {
        protocol.name: handle_fetch_response(
            broker(protocol), before, PendingFetch(EPOCH, Offset(1)), late, NOW
        ).state.local.log.end_offset
        for protocol in (BROKER_3_9_1, BROKER_4_0, BROKER_4_0_1)
    }
    assert ends == {"3.9.1": 2, "4.0": 3, "4.0.1": 2}


def test_3_6_forgets_its_last_epoch_after_a_first_empty_answer() -> None:
    """KAFKA-15510: the next fetch names no epoch, so the leader cannot see that the logs part."""
    after = handle_fetch_response(
        broker(BROKER_3_6), follower(log_of(4)), PendingFetch(EPOCH, Offset(1)), answer(1), NOW
    ).state
    (sent,) = fetch_or_truncate(broker(BROKER_3_6), after, NOW).effects
    assert isinstance(sent, Send)
    assert isinstance(sent.message, FetchRequest)
    assert sent.message.fetch.last_fetched_epoch == NO_EPOCH


def test_records_that_the_follower_has_make_it_give_up() -> None:
    step = handle_fetch_response(broker(), follower(log_of(4, 4)), PendingFetch(EPOCH, Offset(2)), answer(1, 5, 5), NOW)
    assert (step.state.fetcher.status, step.effects) == (FetchStatus.FAILED, ())


def test_a_fetcher_that_is_not_at_the_end_of_its_log_gives_up() -> None:
    partition = follower(log_of(4, 4))
    elsewhere = partition._replace(fetcher=partition.fetcher._replace(fetch_offset=Offset(1)))
    step = handle_fetch_response(broker(), elsewhere, PendingFetch(EPOCH, Offset(1)), answer(1, 5), NOW)
    assert step.state.fetcher.status == FetchStatus.FAILED


def test_a_start_above_the_watermark_makes_it_give_up() -> None:
    step = handle_fetch_response(
        broker(), follower(log_of(4, 4)), PendingFetch(EPOCH, Offset(2)), answer(2, 5, high_watermark=1, start=2), NOW
    )
    assert (step.state.fetcher.status, step.state.local.log.end_offset) == (FetchStatus.FAILED, 3)


def test_an_empty_log_starts_with_the_batch_in_which_it_ends() -> None:
    empty = follower(log_of().restart_at(Offset(3)), 3)
    step = handle_fetch_response(broker(), empty, PendingFetch(EPOCH, Offset(3)), answer(2, 4, 4, high_watermark=3), NOW)
    assert (step.state.local.log.start_offset, step.state.local.log.end_offset) == (2, 4)
    assert step.effects[0] == Persist(LogRestarted(Offset(2)))
    before = handle_fetch_response(broker(), empty, PendingFetch(EPOCH, Offset(3)), answer(1, 4, 4), NOW)
    assert before.state.fetcher.status == FetchStatus.FAILED


def test_a_gap_is_fine_but_what_is_there_is_not_written_again() -> None:
    local = LocalLog(log_of(4, 4))
    assert append_in_order(local, Offset(4), (Record(1, EPOCH),)).local.log.end_offset == 5
    assert append_in_order(local, Offset(0), ()).error == Error.NONE
    assert append_in_order(local, Offset(1), (Record(1, EPOCH),)).error == Error.UNEXPECTED_APPEND_OFFSET


def test_a_truncation_of_a_partition_that_is_gone_is_ignored() -> None:
    partition = follower(log_of(4, 4))._replace(fetcher=NOT_FETCHING)
    assert truncate_by(broker(), partition, EpochEndOffset(Epoch(4), Offset(0))) == (partition, ())
    assert on_no_answer(broker(), partition, NOW) == (partition, ())


# ---- errors: T10


@pytest.mark.parametrize(
    ("error", "asked_in", "status", "delayed"),
    [
        (Error.FENCED_LEADER_EPOCH, 5, FetchStatus.FAILED, False),
        (Error.UNKNOWN_LEADER_EPOCH, 5, FetchStatus.FETCHING, True),
        (Error.NOT_LEADER_OR_FOLLOWER, 5, FetchStatus.FETCHING, True),
        (Error.FENCED_LEADER_EPOCH, 4, FetchStatus.FETCHING, True),
        (Error.OFFSET_OUT_OF_RANGE, 5, FetchStatus.FINDING_END, False),
    ],
)
def test_a_refused_fetch(error: Error, asked_in: int, status: FetchStatus, delayed: bool) -> None:
    step = handle_fetch_response(
        broker(), follower(log_of(4)), PendingFetch(Epoch(asked_in), Offset(1)), FetchResponse(error), NOW
    )
    assert (step.state.fetcher.status, step.state.fetcher.delayed_until > NOW) == (status, delayed)


# ---- out of range: T11


def finding(status: FetchStatus, log: RecordLog) -> Partition[RecordLog]:
    return follower(log, 2, status)


def test_a_shorter_leader_cuts_the_log() -> None:
    partition = finding(FetchStatus.FINDING_END, log_of(4, 4, 4))
    step = handle_list_offsets_response(
        broker(), partition, PendingFetch(EPOCH), ListOffsetsResponse(Error.NONE, Offset(1)), NOW
    )
    assert (step.state.local.log.end_offset, step.state.local.high_watermark, step.state.fetcher.fetch_offset) == (1, 1, 1)
    assert step.effects == (Persist(LogTruncated(Offset(1))), RebuildProducers())


def test_otherwise_it_asks_where_the_leader_starts() -> None:
    partition = finding(FetchStatus.FINDING_END, log_of(4))
    asked = handle_list_offsets_response(
        broker(), partition, PendingFetch(EPOCH), ListOffsetsResponse(Error.NONE, Offset(9)), NOW
    )
    assert (asked.state.fetcher.status, asked.effects) == (FetchStatus.FINDING_START, ())
    step = handle_list_offsets_response(
        broker(), asked.state, PendingFetch(EPOCH), ListOffsetsResponse(Error.NONE, Offset(7)), NOW
    )
    assert step.effects == (Persist(LogRestarted(Offset(7))), RebuildProducers())
    assert (step.state.local.log.start_offset, step.state.local.high_watermark, step.state.fetcher.fetch_offset) == (7, 7, 7)
    on = handle_list_offsets_response(
        broker(), asked.state, PendingFetch(EPOCH), ListOffsetsResponse(Error.NONE, Offset(0)), NOW
    )
    assert (on.state.fetcher.status, on.state.fetcher.fetch_offset, on.effects) == (FetchStatus.FETCHING, 1, ())


@pytest.mark.parametrize(
    ("error", "status"),
    [(Error.FENCED_LEADER_EPOCH, FetchStatus.FAILED), (Error.UNKNOWN_LEADER_EPOCH, FetchStatus.FETCHING)],
)
def test_when_the_leader_refuses_to_tell(error: Error, status: FetchStatus) -> None:
    partition = finding(FetchStatus.FINDING_START, log_of(4))
    step = handle_list_offsets_response(broker(), partition, PendingFetch(EPOCH), ListOffsetsResponse(error), NOW)
    assert step.state.fetcher.status == status


def test_an_offset_asked_for_in_another_epoch_or_by_nobody_is_ignored() -> None:
    partition = finding(FetchStatus.FINDING_END, log_of(4, 4))
    told = ListOffsetsResponse(Error.NONE, Offset(1))
    assert handle_list_offsets_response(broker(), partition, PendingFetch(Epoch(4)), told, NOW) == (partition, ())
    fetching = follower(log_of(4, 4))
    assert handle_list_offsets_response(broker(), fetching, PendingFetch(EPOCH), told, NOW) == (fetching, ())
