"""Partitions that need no look: a fetch would be answered as before, and no follower can fall behind."""

import pytest

from kspec.spec.broker.leader.fetch import concerns_others, handle_fetch, repeats
from kspec.spec.broker.leader.isr import consider_shrinking, may_fall_behind
from kspec.spec.broker.partition import Partition, with_producers
from kspec.spec.log.producers import ProducerBatch, rebuilt_from
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.step import Reply
from kspec.spec.transactions.log.partition import OpenTransaction
from kspec.spec.values import Error, Offset, ProducerEpoch, ProducerId
from tests.spec.broker_driver import LATE, NOW, OTHER, SELF, THIRD, broker, fetch_of, fetched, leader, log_of, run_of


def with_follower(end: int, isr: tuple[int, ...] = (SELF, OTHER)) -> Partition[RecordLog]:
    """A log that ends at 3; broker 2 has fetched up to an offset."""
    return leader(log_of(4, 4, 5), 1, isr=isr, follower_ends={OTHER: fetched(end, broker_epoch=run_of(OTHER))})  # type: ignore[arg-type]


def after_fetch(offset: int, isr: tuple[int, ...] = (SELF, OTHER)) -> tuple[Partition[RecordLog], FetchResponse]:
    step = handle_fetch(broker(), with_follower(offset, isr), fetch_of(OTHER, offset), NOW)
    (answer,) = [one.message for one in step.effects if isinstance(one, Reply)]
    assert isinstance(answer, FetchResponse)
    return step.state, answer


def test_a_fetch_repeats_if_there_is_nothing_to_read_and_the_follower_is_in_the_isr() -> None:
    state, answer = after_fetch(3)
    assert repeats(state, fetch_of(OTHER, 3), answer)
    assert not repeats(state, fetch_of(THIRD, 3), answer), "a follower outside the ISR may be admitted by its next fetch"
    assert not repeats(state, fetch_of(OTHER, 3), answer._replace(error=Error.NOT_LEADER_OR_FOLLOWER))
    state, answer = after_fetch(2)
    assert not repeats(state, fetch_of(OTHER, 2), answer), "there is a record to read"


def test_what_is_noted_of_fetches_concerns_nobody_else() -> None:
    before = with_follower(2)
    state, _ = after_fetch(3)
    assert not concerns_others(before, before._replace(followers=state.followers))
    producers = rebuilt_from((ProducerBatch(ProducerId(1), ProducerEpoch(0), 0, 1),))
    assert not concerns_others(before, with_producers(before, producers))
    opened = before.transactions._replace(ongoing=(OpenTransaction(Offset(1), ProducerId(1)),))
    assert concerns_others(before, before._replace(transactions=opened)), "less of it is stable"
    assert concerns_others(before, before._replace(local=before.local._replace(high_watermark=Offset(2))))


@pytest.mark.parametrize(("end", "may"), [(2, True), (3, False)])
def test_who_has_all_records_does_not_fall_behind(end: int, may: bool) -> None:
    partition = with_follower(end)
    assert may_fall_behind(broker(), partition) == may
    assert (consider_shrinking(broker(), partition, LATE).state != partition) == may


def test_who_does_not_lead_drops_nobody() -> None:
    assert not may_fall_behind(broker(), with_follower(2)._replace(leader=OTHER))


def test_a_proposal_that_waits_is_looked_at_again() -> None:
    assert may_fall_behind(broker(), with_follower(3)._replace(request_in_flight=True))
