"""Leadership, and the change to it."""

from hypothesis import given

from kspec.spec.broker.rules.leadership import is_leader, start_leading, start_leading_with_epoch_entry
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset, Record
from tests.spec.strategies import epochs, record_logs

ROLE = LeaderAndIsr(BrokerId(1), Epoch(5), frozenset({BrokerId(1), BrokerId(2)}))
NOBODY_LEADS = LeaderAndIsr(NO_LEADER, NO_EPOCH, frozenset())


def test_who_is_named_leads() -> None:
    assert is_leader(BrokerId(1), ROLE)
    assert not is_leader(BrokerId(2), ROLE)
    assert not is_leader(BrokerId(1), NOBODY_LEADS)


@given(record_logs(), epochs)
def test_before_kafka_7415_a_new_leader_leaves_its_log_alone(log: RecordLog, epoch: Epoch) -> None:
    assert start_leading(log, epoch) == log


def test_a_new_leader_notes_where_its_epoch_starts() -> None:
    log = EMPTY_LOG.append((Record(0, Epoch(1)), Record(0, Epoch(1))))
    leading = start_leading_with_epoch_entry(log, Epoch(3))
    assert (leading.latest_epoch, leading.end_offset, leading.records) == (3, 2, log.records)
    assert leading.end_offset_for_epoch(Epoch(2)) == (1, 2)
    assert leading.end_offset_for_epoch(Epoch(3)) == (3, 2)
    assert leading.append((Record(0, Epoch(3)),)).epoch_history.pairs == ((1, 0), (3, 2))


def test_a_new_leader_of_an_empty_log_notes_it_too() -> None:
    assert start_leading_with_epoch_entry(EMPTY_LOG, Epoch(0)).end_offset_for_epoch(Epoch(0)) == (0, Offset(0))
