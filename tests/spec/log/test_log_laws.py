"""Every carrier obeys every law of the log algebra that it claims."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, find, given, settings
from hypothesis import strategies as st

from kspec.proofs.laws import LAWS, Carrier, Law, LogT, written_by_one_series_of_leaders
from kspec.spec.log.algebra import Log
from kspec.spec.log.batch import AnyBatch, Batch, Batches, records_of
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.log.stored_log import EMPTY_STORED_LOG, StoredLog
from kspec.spec.published.truncation import truncate_to_common_epoch
from kspec.spec.values import NO_EPOCH, NO_PRODUCER_ID, NO_VALUE, Epoch, Offset, Record
from tests.spec import strategies
from tests.spec.strategies import ReplicaLog


def record_log(pairs: Sequence[tuple[int, int]], start_offset: int) -> RecordLog:
    return RecordLog(tuple(Record(value, Epoch(epoch)) for epoch, value in pairs), Offset(start_offset))


RECORD_LOG = Carrier("RecordLog", record_log, keeps_any_order=True, compares_logs=True)


def epoch_log(pairs: Sequence[tuple[int, int]], start_offset: int) -> EpochLog:
    return EMPTY_EPOCH_LOG.restart_at(Offset(start_offset)).append(record_log(pairs, 0).records)


EPOCH_LOG = Carrier("EpochLog", epoch_log, compares_logs=True, keeps_values=False)


def stored_log(pairs: Sequence[tuple[int, int]], start_offset: int) -> StoredLog:
    return EMPTY_STORED_LOG.restart_at(Offset(start_offset)).append(record_log(pairs, 0).records)


STORED_LOG = Carrier("StoredLog", stored_log, compares_logs=True)
CARRIERS: tuple[Carrier[Any], ...] = (RECORD_LOG, EPOCH_LOG, STORED_LOG)


def made(carrier: Carrier[LogT], made_of: ReplicaLog) -> Log:
    log = carrier.log(made_of.pairs, made_of.start_offset)
    return log if made_of.opened_epoch == NO_EPOCH else log.open_epoch(Epoch(made_of.opened_epoch))


@st.composite
def arguments(draw: st.DrawFn, carrier: Carrier[LogT], law: Law) -> dict[str, Any]:
    """Something for each parameter of a law; only what it has, for the sake of time."""
    wanted = law.parameters
    drawn: dict[str, Any] = {}
    if "leader" in wanted:
        follower, leader = draw(strategies.replica_logs())
        return {"follower": made(carrier, follower), "leader": made(carrier, leader)}
    in_order = law.in_order or not carrier.keeps_any_order or draw(st.booleans())
    first = draw(strategies.any_log(in_order))
    drawn["log"] = log = made(carrier, first)
    if "other" in wanted:
        drawn["other"] = made(carrier, draw(strategies.another_log(first, in_order)))
    latest_epoch = log.latest_epoch
    for name in ("batches", "more"):
        if name in wanted:
            drawn[name] = batches = draw(batches_after(latest_epoch, in_order, carrier.keeps_values))
            latest_epoch = batches[-1].leader_epoch if batches else latest_epoch
    for name in ("batch", "next_batch"):
        if name in wanted:
            drawn[name] = batch = draw(batch_after(latest_epoch, in_order, carrier.keeps_values))
            latest_epoch = batch.leader_epoch
    if "part" in wanted:
        assume(drawn["batch"].record_count > 1)
        drawn["part"] = draw(st.integers(1, drawn["batch"].record_count - 1))
    beyond = st.integers(max(log.start_offset - 1, 0), log.end_offset + 2).map(Offset)
    numbers = {
        "offset": beyond,
        "position": beyond,
        "epoch": st.integers(NO_EPOCH, log.latest_epoch + 2).map(Epoch),
        "later": st.integers(log.latest_epoch, log.latest_epoch + 4).map(Epoch),
        "limit": st.integers(0, strategies.MAX_RECORDS),
    }
    return drawn | {name: draw(numbers[name]) for name in sorted(wanted & numbers.keys())}


@st.composite
def batch_after(draw: st.DrawFn, latest_epoch: Epoch, in_order: bool, with_payload: bool) -> Batch:
    """A batch that may follow in a log of this latest epoch."""
    lowest = max(latest_epoch, 0) if in_order else 0
    epoch = draw(st.integers(lowest, lowest + strategies.MAX_EPOCH).map(Epoch))
    return Batch(draw(st.integers(1, 4)), epoch, draw(st.integers(0, 1)) if with_payload else NO_VALUE)


@st.composite
def batches_after(draw: st.DrawFn, latest_epoch: Epoch, in_order: bool, with_payloads: bool) -> Batches:
    """Batches that may follow in a log of this latest epoch; a batch of one is also drawn as a record."""
    pairs = draw(strategies.appendable(latest_epoch, in_order))
    batches: list[AnyBatch] = []
    for epoch, value in pairs:
        record = Record(value if with_payloads else NO_VALUE, Epoch(epoch))
        count = draw(st.integers(0, 3))
        batches.append(Batch(count, record.leader_epoch, record.value) if count else record)
    return tuple(batches)


CLAIMED = [(carrier, law) for carrier in CARRIERS for law in LAWS if carrier.compares_logs or not law.compares_logs]


@pytest.mark.parametrize(("carrier", "law"), CLAIMED, ids=[f"{carrier.name}-{law.name}" for carrier, law in CLAIMED])
@settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_law(carrier: Carrier[Any], law: Law, data: st.DataObject) -> None:
    drawn = data.draw(arguments(carrier, law))
    assume(law.applies_to(drawn))
    assert law.holds_for(drawn), law.statement


def test_laws_have_different_names() -> None:
    assert len({law.name for law in LAWS}) == len(LAWS)


# ---- the premise of the exchange of epochs


@given(strategies.replica_logs())
def test_leaders_histories_give_logs_as_the_exchange_needs_them(pair: tuple[ReplicaLog, ReplicaLog]) -> None:
    assert written_by_one_series_of_leaders(made(RECORD_LOG, pair[0]), made(RECORD_LOG, pair[1]))


def test_leaders_histories_give_logs_that_part_in_the_middle() -> None:
    def parted(pair: tuple[ReplicaLog, ReplicaLog]) -> bool:
        one, other = made(RECORD_LOG, pair[0]), made(RECORD_LOG, pair[1])
        return one.start_offset < one.agreement_end(other) < min(one.end_offset, other.end_offset)

    assert parted(find(strategies.replica_logs(), parted, settings=settings(phases=[Phase.generate])))


def exchanged(follower: Log, leader: Log) -> Offset:
    return truncate_to_common_epoch(follower, Offset(0), leader.largest_epoch_up_to)


def test_exchange_misses_agreement_where_epochs_go_back() -> None:
    """A follower fetched from a deposed leader (epoch 1) after it had a record of epoch 2: fetches were not fenced.

    An epoch history cannot say so: the later entry of the lower epoch erases the higher one.
    """
    shorter = EMPTY_LOG.append((Record(0, Epoch(2)),))
    longer = shorter.append((Record(1, Epoch(1)),))
    assert longer.agreement_end(shorter) == 1
    assert exchanged(longer, shorter) == 0
    assert exchanged(shorter, longer) == 0
    assert not written_by_one_series_of_leaders(longer, shorter)


def test_exchange_misses_a_difference_within_one_epoch() -> None:
    """Two leaders in one epoch would write different records at one offset; epochs alone do not show it."""
    one, other = EMPTY_LOG.append((Record(0, Epoch(0)),)), EMPTY_LOG.append((Record(1, Epoch(0)),))
    assert one.agreement_end(other) == 0
    assert exchanged(one, other) == 1
    assert not written_by_one_series_of_leaders(one, other)


def test_released_answers_need_the_leaders_own_epoch_entry() -> None:
    """KAFKA-7415: a leader that has no record of an epoch as late as the follower's gives no answer about it."""
    leader = EMPTY_LOG.append((Record(0, Epoch(0)), Record(1, Epoch(0))))
    follower = EMPTY_LOG.append((Record(0, Epoch(0)), Record(1, Epoch(0)), Record(2, Epoch(1))))
    behind = Offset(1)
    assert follower.agreement_end(leader) == 2
    assert truncate_to_common_epoch(follower, behind, leader.end_offset_for_epoch) == behind
    assert truncate_to_common_epoch(follower, behind, leader.open_epoch(Epoch(2)).end_offset_for_epoch) == 2


# ---- RecordLog by example


LOG = RecordLog((Record(7, Epoch(1)), Record(8, Epoch(1)), Record(9, Epoch(3))), Offset(10))


def test_a_log_with_three_records() -> None:
    assert (LOG.start_offset, LOG.end_offset, LOG.latest_epoch) == (10, 13, 3)
    assert [LOG.epoch_at(Offset(offset)) for offset in range(9, 14)] == [NO_EPOCH, 1, 1, 3, NO_EPOCH]
    assert LOG.read(Offset(11), 5) == (Record(8, Epoch(1)), Record(9, Epoch(3)))
    assert LOG.epoch_history.pairs == ((1, 10), (3, 12))


def test_truncation_at_the_end_is_the_same_log() -> None:
    assert LOG.truncate_to(LOG.end_offset) is LOG
    assert LOG.truncate_to(Offset(99)) is LOG


def test_truncation_below_the_start_starts_there() -> None:
    assert LOG.truncate_to(Offset(4)) == RecordLog((), Offset(4))


def test_an_opened_epoch_is_in_the_history_before_its_first_record() -> None:
    assert LOG.open_epoch(Epoch(5)).epoch_history.pairs == ((1, 10), (3, 12), (5, 13))
    assert LOG.open_epoch(Epoch(5)).truncate_to(Offset(13)) == LOG


def test_history_of_epochs_that_go_back_keeps_the_later_records() -> None:
    log = EMPTY_LOG.append((Record(0, Epoch(0)), Record(0, Epoch(2)), Record(0, Epoch(1))))
    assert log.epoch_history.pairs == ((0, 0), (1, 2))


def test_logs_agree_after_a_difference() -> None:
    """The agreement ends after the *last* common record: it looks at no earlier one."""
    other = RecordLog((Record(0, Epoch(1)), *LOG.records[1:]), Offset(10))
    assert LOG.agreement_end(other) == 13


def test_logs_without_a_common_offset_agree_up_to_the_lower_start() -> None:
    assert LOG.agreement_end(RecordLog((Record(7, Epoch(1)),), Offset(3))) == 3


# ---- EpochLog


def test_records_after_a_gap_leave_the_start_where_it_was() -> None:
    log = EMPTY_EPOCH_LOG.append_at(Offset(27), (Batch(2, Epoch(19)),))
    assert (log.start_offset, log.end_offset, log.epoch_history.pairs) == (0, 29, ((19, 27),))
    assert EMPTY_LOG.append_at(Offset(27), (Batch(2, Epoch(19)),)).epoch_history == log.epoch_history


def test_a_read_says_which_stretch_of_each_epoch_to_send() -> None:
    log = EMPTY_EPOCH_LOG.append((Batch(3, Epoch(1)), Batch(2, Epoch(1)), Batch(4, Epoch(3)), Record(7, Epoch(4))))
    assert log.read(Offset(0), 99) == (Batch(5, Epoch(1)), Batch(4, Epoch(3)), Batch(1, Epoch(4)))
    assert log.read(Offset(4), 3) == (Batch(1, Epoch(1)), Batch(2, Epoch(3)))
    assert log.read(Offset(5), 4) == (Batch(4, Epoch(3)),)
    assert log.read(Offset(5), 0) == log.read(Offset(10), 1) == ()


def test_a_read_below_the_first_epoch_gives_a_batch_without_epoch() -> None:
    log = EMPTY_EPOCH_LOG.append_at(Offset(2), (Batch(2, Epoch(1)),))
    assert log.read(Offset(0), 99) == (Batch(2, NO_EPOCH), Batch(2, Epoch(1)))


def test_batches_without_an_epoch_leave_no_history() -> None:
    assert EMPTY_EPOCH_LOG.append((Batch(2), Batch(1))) == EpochLog(end_offset=Offset(3))


def test_an_epoch_that_was_noted_beyond_the_end_starts_with_its_first_batch() -> None:
    """Kafka's test assigns it there; a broker does not."""
    noted = EMPTY_EPOCH_LOG._replace(epoch_history=EMPTY_EPOCH_LOG.epoch_history.assign(Epoch(7), Offset(5)))
    assert noted.append((Batch(1, Epoch(7)),)).epoch_history.pairs == ((7, 0),)


def test_no_operation_of_a_broker_costs_more_for_more_records() -> None:
    """A step for each record would take longer than anybody waits."""
    many = 2**60
    log = EMPTY_EPOCH_LOG.append((Batch(many, Epoch(0)), Batch(many, Epoch(2))))
    longer = log.append_at(Offset(3 * many), (Batch(many, Epoch(2)),))
    assert longer.end_offset == 4 * many
    assert longer.read(Offset(many - 1), 2 * many) == (Batch(1, Epoch(0)), Batch(2 * many - 1, Epoch(2)))
    assert longer.truncate_to(Offset(2 * many)) == log
    assert longer.start_at(Offset(many)).end_offset_for_epoch(Epoch(1)) == (1, many)


@settings(max_examples=200)
@given(strategies.any_log(in_order=True), st.data())
def test_both_carriers_hold_the_same_history(made_of: ReplicaLog, data: st.DataObject) -> None:
    """Answers to what a rule may ask of a log are the same in both carriers, after any operations."""
    logs: tuple[Log, Log] = made(RECORD_LOG, made_of), made(EPOCH_LOG, made_of)
    for _ in range(data.draw(st.integers(0, 4))):
        within = st.integers(logs[0].start_offset, logs[0].end_offset).map(Offset)
        match data.draw(st.sampled_from(["append", "gap", "truncate", "start", "restart", "open"])):
            case "append":
                batches = data.draw(batches_after(logs[0].latest_epoch, in_order=True, with_payloads=True))
                logs = (logs[0].append(batches), logs[1].append(batches))
            case "gap":
                base = Offset(logs[0].end_offset + data.draw(st.integers(0, 2)))
                batch = (data.draw(batch_after(logs[0].latest_epoch, in_order=True, with_payload=True)),)
                logs = (logs[0].append_at(base, batch), logs[1].append_at(base, batch))
            case "truncate":
                offset = Offset(data.draw(st.integers(0, logs[0].end_offset + 1)))
                logs = (logs[0].truncate_to(offset), logs[1].truncate_to(offset))
            case "start":
                offset = data.draw(within)
                logs = (logs[0].start_at(offset), logs[1].start_at(offset))
            case "restart":
                offset = data.draw(within)
                logs = (logs[0].restart_at(offset), logs[1].restart_at(offset))
            case "open":
                epoch = Epoch(logs[0].latest_epoch + 1)
                logs = (logs[0].open_epoch(epoch), logs[1].open_epoch(epoch))
    answers = [
        (
            (log.start_offset, log.end_offset, log.latest_epoch),
            [log.epoch_at(Offset(offset)) for offset in range(log.end_offset + 1)],
            [record.leader_epoch for record in records_of(log.read(log.start_offset, log.end_offset))],
            [log.end_offset_for_epoch(Epoch(epoch)) for epoch in range(-1, log.latest_epoch + 2)],
            [log.largest_epoch_up_to(Epoch(epoch)) for epoch in range(-1, log.latest_epoch + 2)],
        )
        for log in logs
    ]
    assert answers[0] == answers[1]


def test_a_record_as_a_batch_is_of_no_transaction() -> None:
    record = Record(0, Epoch(0))
    assert (record.producer_id, record.is_transactional, record.marker) == (NO_PRODUCER_ID, False, None)
