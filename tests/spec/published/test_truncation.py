"""Truncation: up to where a new follower keeps its log, and who tells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.epoch_lookup import (
    answer_offset_for_leader_epoch,
    look_up_as_designed,
    look_up_as_released,
    offset_for_leader_epoch_without_log,
)
from kspec.spec.broker.rules.fencing import check_serves, check_serves_unfenced
from kspec.spec.broker.rules.truncation import TruncationStep, truncation_step
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.published.truncation import (
    answer_anyone,
    clamped,
    truncate_to_common_epoch,
    truncate_to_epoch_end,
    truncate_to_high_watermark,
)
from kspec.spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    LeaderAndIsr,
    Offset,
    Record,
)
from tests.spec.strategies import brokers, epochs, epochs_or_none, offsets, record_logs, roles


def log_of(*leader_epochs: int) -> RecordLog:
    """A log with a record of each of these epochs; its value is the epoch too, as the epoch's only leader wrote it."""
    return RecordLog(tuple(Record(epoch, Epoch(epoch)) for epoch in leader_epochs))


def end(leader_epoch: int, end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(Epoch(leader_epoch), Offset(end_offset))


def nobody(epoch: Epoch) -> EpochEndOffset:
    raise AssertionError(f"nobody should be asked about epoch {epoch}")


class Leader:
    """Answers from its log as designed, and remembers what it was asked."""

    def __init__(self, log: RecordLog) -> None:
        self.log = log
        self.asked: list[int] = []

    def __call__(self, epoch: Epoch) -> EpochEndOffset:
        self.asked.append(epoch)
        return look_up_as_designed(self.log, epoch)


# ---- up to 0.10: to the high watermark


@given(record_logs(), offsets)
def test_up_to_0_10_the_high_watermark_counts_and_nobody_is_asked(log: RecordLog, high_watermark: Offset) -> None:
    assert truncate_to_high_watermark(log, high_watermark, nobody) == min(high_watermark, log.end_offset)


# ---- 0.11: to the end of the last epoch (KIP-101)


def test_the_end_of_the_followers_last_epoch_in_the_leaders_log_counts() -> None:
    leader = Leader(log_of(0, 1, 1, 2))
    assert truncate_to_epoch_end(log_of(0, 1, 1, 1), Offset(1), leader) == 3
    assert leader.asked == [1]


def test_the_answer_may_lie_beyond_the_followers_end_and_is_clamped() -> None:
    follower, leader = log_of(0, 1), Leader(log_of(0, 1, 1, 1))
    offset = truncate_to_epoch_end(follower, Offset(0), leader)
    assert offset == 4
    assert clamped(offset, follower) == 2


def test_an_epoch_that_the_leader_does_not_know_falls_back_to_the_high_watermark() -> None:
    assert truncate_to_epoch_end(log_of(0, 1), Offset(1), lambda epoch: UNDEFINED_EPOCH_END) == 1


def test_a_follower_without_epochs_keeps_its_empty_log_and_asks_nobody() -> None:
    empty = RecordLog(start_offset=Offset(7))
    assert truncate_to_epoch_end(empty, Offset(7), nobody) == 7
    assert truncate_to_common_epoch(empty, Offset(7), nobody) == 7


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (2, 2), (3, 3), (4, 3)])
def test_clamped(offset: int, kept: int) -> None:
    assert clamped(Offset(offset), log_of(0, 0, 1)) == kept


# ---- since 2.0: to the largest common epoch (KIP-279)

FOLLOWER = log_of(0, 1, 1, 3, 3)


@pytest.mark.parametrize(
    ("answer", "offset", "complete"),
    [
        pytest.param(UNDEFINED_EPOCH_END, 2, True, id="undefined: the high watermark"),
        pytest.param(end(3, -1), 2, True, id="undefined end of a known epoch: the high watermark"),
        pytest.param(end(-1, 4), 4, True, id="no epoch: the end offset"),
        pytest.param(end(-1, 9), 5, True, id="no epoch: the end offset, but at most the own end"),
        pytest.param(end(4, 4), 4, True, id="an epoch above the own latest: the end offset"),
        pytest.param(end(4, 9), 5, True, id="an epoch above the own latest: the end offset, but at most the own end"),
        pytest.param(end(2, 4), 3, False, id="an epoch that is not in the own log: the end of the largest smaller one"),
        pytest.param(end(1, 2), 2, True, id="a common epoch that ends earlier at the leader"),
        pytest.param(end(1, 3), 3, True, id="a common epoch that ends alike"),
        pytest.param(end(1, 4), 3, True, id="a common epoch that ends earlier here"),
        pytest.param(end(3, 4), 4, True, id="the own latest epoch"),
        pytest.param(end(3, 9), 5, True, id="the own latest epoch, which goes on at the leader"),
    ],
)
def test_what_an_answer_tells(answer: EpochEndOffset, offset: int, complete: bool) -> None:
    assert truncation_step(FOLLOWER, Offset(2), answer) == (offset, complete)


def test_an_epoch_opened_but_never_written_ends_where_it_starts() -> None:
    opened = log_of(0, 1).open_epoch(Epoch(4))
    assert truncation_step(opened, Offset(0), end(2, 9)) == (2, False)
    assert truncation_step(opened, Offset(0), end(4, 9)) == (2, True)


def test_a_follower_asks_backwards_until_an_epoch_is_common() -> None:
    leader = Leader(log_of(0, 2, 2, 4))
    assert truncate_to_common_epoch(FOLLOWER, Offset(0), leader) == 1
    assert leader.asked == [3, 1]


def test_a_follower_asks_once_where_the_leader_has_its_last_epoch() -> None:
    leader = Leader(log_of(0, 1, 1, 3, 5))
    assert truncate_to_common_epoch(FOLLOWER, Offset(0), leader) == 4
    assert leader.asked == [3]


def test_a_follower_with_nothing_in_common_truncates_to_the_start() -> None:
    assert truncate_to_common_epoch(log_of(1, 1), Offset(0), Leader(log_of(0, 2, 2))) == 0
    assert truncate_to_common_epoch(log_of(1, 1), Offset(0), Leader(EMPTY_LOG)) == 0


def test_an_undefined_answer_ends_the_exchange_at_the_high_watermark() -> None:
    assert truncate_to_common_epoch(FOLLOWER, Offset(2), lambda epoch: UNDEFINED_EPOCH_END) == 2


any_answers = st.dictionaries(epochs, st.builds(EpochEndOffset, epochs_or_none, st.one_of(st.just(UNKNOWN_OFFSET), offsets)))


@given(record_logs(), offsets, any_answers)
def test_the_exchange_ends_within_the_log_whatever_is_answered(
    log: RecordLog, high_watermark: Offset, answers: dict[Epoch, EpochEndOffset]
) -> None:
    within = min(high_watermark, log.end_offset)
    asked = []

    def ask(epoch: Epoch) -> EpochEndOffset:
        asked.append(epoch)
        assert len(asked) <= len(log.records) + 1
        return answers.get(epoch, UNDEFINED_EPOCH_END)

    assert 0 <= truncate_to_common_epoch(log, within, ask) <= log.end_offset


# ---- the scenarios for which the rules were made


def test_truncating_to_the_high_watermark_loses_a_committed_record() -> None:
    """KIP-101, first scenario: the follower has the record, but does not yet know that it is committed."""
    follower, leader = log_of(0, 0), Leader(log_of(0, 0))
    assert truncate_to_high_watermark(follower, Offset(1), leader) == 1
    assert truncate_to_epoch_end(follower, Offset(1), leader) == 2


def test_truncating_to_the_high_watermark_keeps_a_replaced_record() -> None:
    """KIP-101, second scenario: after losing a record in a crash the other replica led, and wrote another there."""
    follower, leader = log_of(0, 0), Leader(log_of(0, 2))
    assert truncate_to_high_watermark(follower, Offset(2), leader) == 2
    assert truncate_to_epoch_end(follower, Offset(2), leader) == 1


def test_asking_for_one_epoch_keeps_a_replaced_record_after_fast_leader_changes() -> None:
    """KIP-279: the leader never heard of the follower's epoch 1, in which offset 0 was written differently."""
    follower, leader = log_of(1), Leader(log_of(0, 2))
    assert truncate_to_epoch_end(follower, Offset(0), leader) == 1
    assert truncate_to_common_epoch(follower, Offset(0), leader) == 0


# ---- who answers

SELF = BrokerId(1)


@given(brokers, roles(), epochs_or_none)
def test_up_to_kip_279_the_published_models_ask_any_replica(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> None:
    assert answer_anyone(self_id, role, claimed, True) == Error.NONE


@given(brokers, roles(), epochs_or_none)
def test_before_kip_320_a_leader_answers_in_whatever_epoch(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> None:
    expected = Error.NONE if self_id == role.leader else Error.NOT_LEADER_OR_FOLLOWER
    assert check_serves_unfenced(self_id, role, claimed, leader_only=True) == expected


@pytest.mark.parametrize(
    ("leader", "claimed", "error"),
    [
        pytest.param(1, 5, Error.NONE, id="the leader, in the same epoch"),
        pytest.param(1, -1, Error.NONE, id="the leader, asked without an epoch"),
        pytest.param(1, 4, Error.FENCED_LEADER_EPOCH, id="the leader, asked from an older epoch"),
        pytest.param(1, 6, Error.UNKNOWN_LEADER_EPOCH, id="a leader that has not heard of its follower's epoch"),
        pytest.param(2, 5, Error.NOT_LEADER_OR_FOLLOWER, id="a follower, in the same epoch"),
        pytest.param(2, -1, Error.NOT_LEADER_OR_FOLLOWER, id="a follower, asked without an epoch"),
        pytest.param(2, 4, Error.FENCED_LEADER_EPOCH, id="a follower: the epoch is looked at first"),
        pytest.param(2, 6, Error.UNKNOWN_LEADER_EPOCH, id="a follower, asked from a newer epoch"),
    ],
)
def test_since_kip_320_only_the_leader_of_the_same_epoch_answers(leader: int, claimed: int, error: Error) -> None:
    role = LeaderAndIsr(BrokerId(leader), Epoch(5), frozenset())
    assert check_serves(SELF, role, Epoch(claimed), leader_only=True) == error


# ---- what is answered


@pytest.mark.parametrize(
    ("asked", "released", "designed"),
    [
        pytest.param(-1, UNDEFINED_EPOCH_END, end(-1, 0), id="no epoch"),
        pytest.param(0, end(0, 0), end(-1, 0), id="below all known"),
        pytest.param(1, end(1, 2), end(1, 2), id="a known epoch"),
        pytest.param(2, end(1, 2), end(1, 2), id="between"),
        pytest.param(3, end(3, 3), end(3, 3), id="the latest"),
        pytest.param(4, UNDEFINED_EPOCH_END, end(3, 3), id="above the latest"),
    ],
)
def test_lookups(asked: int, released: EpochEndOffset, designed: EpochEndOffset) -> None:
    assert look_up_as_released(log_of(1, 1, 3), Epoch(asked)) == released
    assert look_up_as_designed(log_of(1, 1, 3), Epoch(asked)) == designed


@pytest.mark.parametrize("answer", [end(3, 7), UNDEFINED_EPOCH_END])
def test_whoever_passes_the_fence_gets_the_answer(answer: EpochEndOffset) -> None:
    assert answer_offset_for_leader_epoch(Error.NONE, answer) == (Error.NONE, answer)


@pytest.mark.parametrize("verdict", [error for error in Error if error != Error.NONE])
def test_whoever_is_fenced_gets_the_error_only(verdict: Error) -> None:
    assert answer_offset_for_leader_epoch(verdict, end(3, 7)) == (verdict, (NO_EPOCH, UNKNOWN_OFFSET))


@pytest.mark.parametrize(
    ("known_topic", "error"), [(True, Error.NOT_LEADER_OR_FOLLOWER), (False, Error.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_a_broker_without_the_partition(known_topic: bool, error: Error) -> None:
    assert offset_for_leader_epoch_without_log(known_topic) == (error, UNDEFINED_EPOCH_END)


def test_an_undefined_answer_never_reaches_beyond_what_earlier_answers_have_left() -> None:
    cut = RecordLog((Record(0, Epoch(0)), Record(1, Epoch(1))))
    assert truncation_step(cut, Offset(5), UNDEFINED_EPOCH_END) == TruncationStep(Offset(2), complete=True)


def test_a_log_without_epochs_is_cut_at_the_high_watermark() -> None:
    def ask_nobody(epoch: Epoch) -> EpochEndOffset:
        raise AssertionError("there is no epoch to ask about")

    assert truncate_to_epoch_end(EMPTY_LOG, Offset(0), ask_nobody) == 0
