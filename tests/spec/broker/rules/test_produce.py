"""Producing: what a leader accepts, and when the producer hears of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.produce import check_produce
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from kspec.spec.published.produce import acknowledged_on_append, acknowledged_on_commit, append_as_leader
from kspec.spec.values import BrokerId, Epoch, Error, LeaderAndIsr, Offset, Record
from tests.spec.strategies import epochs, record_logs, roles

VALID_ACKS = (ACKS_ALL, ACKS_NONE, ACKS_LEADER)


def with_isr(size: int) -> LeaderAndIsr:
    return LeaderAndIsr(BrokerId(1), Epoch(5), frozenset(BrokerId(replica) for replica in range(1, size + 1)))


def test_acks_are_kafkas_numbers() -> None:
    assert VALID_ACKS == (-1, 0, 1)


@pytest.mark.parametrize("acks", [-2, 2, 3, 100])
def test_other_acks_are_invalid_whatever_the_isr(acks: int) -> None:
    assert check_produce(with_isr(3), acks, 1) == Error.INVALID_REQUIRED_ACKS
    assert check_produce(with_isr(1), acks, 2) == Error.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize(
    ("isr_size", "error"),
    [(1, Error.NOT_ENOUGH_REPLICAS), (2, Error.NONE), (3, Error.NONE)],
)
def test_acks_all_needs_as_many_in_sync_as_configured(isr_size: int, error: Error) -> None:
    assert check_produce(with_isr(isr_size), ACKS_ALL, min_isr=2) == error


@given(roles(), st.sampled_from([ACKS_NONE, ACKS_LEADER]), st.integers(0, 5))
def test_other_valid_acks_are_accepted_with_any_isr(role: LeaderAndIsr, acks: int, min_isr: int) -> None:
    assert check_produce(role, acks, min_isr) == Error.NONE


@given(record_logs(), epochs, st.integers(0, 9))
def test_a_record_gets_the_leaders_epoch_and_the_next_offset(log: RecordLog, epoch: Epoch, value: int) -> None:
    appended = append_as_leader(log, epoch, value)
    assert appended.read(log.end_offset, 9) == (Record(value, epoch),)
    assert appended.end_offset == log.end_offset + 1
    assert appended.records[:-1] == log.records


def test_acknowledgement_on_append_is_for_acks_1() -> None:
    assert {acks: acknowledged_on_append(acks) for acks in VALID_ACKS} == {-1: False, 0: False, 1: True}


@pytest.mark.parametrize(("isr_size", "acknowledged"), [(1, False), (2, True), (3, True)])
def test_acknowledgement_on_commit_is_for_acks_all_with_enough_in_sync(isr_size: int, acknowledged: bool) -> None:
    assert acknowledged_on_commit(with_isr(isr_size), ACKS_ALL, Offset(3), min_isr=2) is acknowledged
    assert not acknowledged_on_commit(with_isr(isr_size), ACKS_LEADER, Offset(3), min_isr=2)
    assert not acknowledged_on_commit(with_isr(isr_size), ACKS_NONE, Offset(3), min_isr=2)


@given(roles(), st.sampled_from(VALID_ACKS), st.integers(0, 4))
def test_a_producer_is_acknowledged_at_most_once_and_never_with_acks_0(role: LeaderAndIsr, acks: int, min_isr: int) -> None:
    acknowledgements = [acknowledged_on_append(acks), acknowledged_on_commit(role, acks, Offset(1), min_isr)]
    assert acknowledgements.count(True) <= (acks != ACKS_NONE)
