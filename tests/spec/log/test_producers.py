"""Producers that have been silent for too long."""

from spec.log.producers import ProducerBatch, forget, is_expired, rebuilt_from
from spec.values import Offset, ProducerEpoch, ProducerId


def test_a_producer_expires_when_it_has_been_silent_for_the_whole_time() -> None:
    assert not is_expired(1_000, False, 1_999, 1_000)
    assert is_expired(1_000, False, 2_000, 1_000)
    assert not is_expired(1_000, True, 9_000, 1_000), "its transaction is open"


def test_a_producer_that_is_forgotten_leaves_the_others() -> None:
    known = rebuilt_from(tuple(ProducerBatch(ProducerId(one), ProducerEpoch(0), 0, 1, Offset(one)) for one in (1, 2, 3)))
    assert [entry.producer_id for entry in forget(known, (ProducerId(2), ProducerId(9)))] == [1, 3]
    assert forget(known, ()) == known
