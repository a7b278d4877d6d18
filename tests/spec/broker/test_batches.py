"""Handling of batches costs the same however many records they have, and no handler looks into them."""

from typing import Any

import pytest

from benchmarks.batches import replicate
from kspec.spec.broker.effects import BatchesAppended, LogRestarted, Persist
from kspec.spec.broker.follower import handle_fetch_response
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.broker.rules.reading import answers_at_once, leaving_now
from kspec.spec.log.batch import Batch, Batches, count_records
from kspec.spec.log.epoch_history import EpochEntry
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, ProducerEntry
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.messages.produce import ACKS_LEADER, ProduceRequest
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.transactions.log.partition import PartitionTransactions, with_batches
from kspec.spec.values import NO_EPOCH, NO_VALUE, Epoch, Error, Offset, ProducerEpoch, ProducerId, Record
from tests.spec.broker_driver import EPOCH, NOW, OTHER, broker, fetch_of, follower, leader

MANY = 2**29
"""A step for each of so many records would take longer than anybody waits."""


class Unread(int):
    """A payload that nobody may compare or test."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a rule compares payloads")

    def __lt__(self, other: object) -> bool:
        raise AssertionError("a rule orders payloads")

    def __hash__(self) -> int:
        raise AssertionError("a rule hashes payloads")

    def __bool__(self) -> bool:
        raise AssertionError("a rule tests a payload")


def over(log: EpochLog, partition: Partition[Any]) -> Partition[EpochLog]:
    """The same partition with a broker's log."""
    fetcher = partition.fetcher._replace(fetch_offset=log.end_offset, last_fetched_epoch=log.latest_epoch)
    return partition._replace(local=LocalLog(log, partition.local.high_watermark), fetcher=fetcher)


def produced_by(producer: int, first_sequence: int, record_count: int = 1, epoch: int = NO_EPOCH) -> Batch:
    return Batch(record_count, Epoch(epoch), NO_VALUE, ProducerId(producer), ProducerEpoch(0), first_sequence)


LOG = EMPTY_EPOCH_LOG.append((Batch(MANY, Epoch(4)),))


def leading() -> Partition[EpochLog]:
    return over(LOG, leader(EMPTY_LOG))


def following() -> Partition[EpochLog]:
    return over(LOG, follower(EMPTY_LOG))


def answered(base_offset: int, batches: Batches) -> FetchResponse:
    return FetchResponse(Error.NONE, Offset(base_offset), batches, Offset(0), Offset(0))


def test_a_leader_stores_a_batch_of_any_size_as_it_came() -> None:
    batch = Batch(MANY, payload=Unread())
    step = handle_produce(broker(), leading(), ProduceRequest(9, ACKS_LEADER, batch), NOW)
    assert step.state.local.log == EMPTY_EPOCH_LOG.append((Batch(MANY, Epoch(4)), Batch(MANY, EPOCH)))
    stored = step.effects[0]
    assert isinstance(stored, Persist)
    assert isinstance(stored.change, BatchesAppended)
    assert (stored.change.base_offset, len(stored.change.batches)) == (MANY, 1)
    kept = stored.change.batches[0]
    assert isinstance(kept, Batch)
    assert (kept.record_count, kept.leader_epoch, kept.payload is batch.payload) == (MANY, EPOCH, True)


def test_a_leader_answers_with_the_stretches_of_its_log() -> None:
    log = LOG.append((Batch(MANY, EPOCH), Batch(MANY, EPOCH)))
    answer = read_partition(broker(), over(log, leading()), fetch_of(OTHER, MANY - 2, last_epoch=4))
    assert answer.records == (Batch(2, Epoch(4)), Batch(2 * MANY, EPOCH))
    within_an_epoch = fetch_of(OTHER, MANY, last_epoch=4, max_records=MANY)
    assert read_partition(broker(), over(log, leading()), within_an_epoch).records == (Batch(MANY, EPOCH),)


def test_a_follower_notes_the_epoch_of_each_batch() -> None:
    batches = (Batch(MANY, Epoch(4), Unread()), Batch(MANY, EPOCH, Unread()), Batch(1, EPOCH, Unread()))
    step = handle_fetch_response(broker(), following(), PendingFetch(EPOCH, Offset(MANY)), answered(MANY, batches), NOW)
    log = step.state.local.log
    entries = (EpochEntry(Epoch(4), Offset(0)), EpochEntry(EPOCH, Offset(2 * MANY)))
    assert (log.epoch_history.entries, log.end_offset) == (entries, 3 * MANY + 1)
    assert (step.state.fetcher.fetch_offset, step.state.fetcher.last_fetched_epoch) == (3 * MANY + 1, EPOCH)


def test_a_follower_notes_the_producers_of_its_leaders_batches() -> None:
    batches = (produced_by(4, 7, 3, EPOCH), Record(1, EPOCH), produced_by(2, 0, 1, EPOCH))
    step = handle_fetch_response(broker(), following(), PendingFetch(EPOCH, Offset(MANY)), answered(MANY, batches), NOW)
    noted = {entry.producer_id: [batch.base_offset for batch in entry.batches] for entry in step.state.producers}
    assert noted == {2: [MANY + 4], 4: [MANY]}
    assert [entry.producer_id for entry in step.state.producers] == [2, 4]


def test_a_follower_whose_log_starts_anew_forgets_its_producers() -> None:
    """Its leader's log starts inside a batch, and the whole batch is sent."""
    known = with_batches(TRANSACTIONS_NEXT, PartitionTransactions(), Offset(0), (produced_by(1, 0),))
    empty = over(EMPTY_EPOCH_LOG.restart_at(Offset(3)), follower(EMPTY_LOG))._replace(transactions=known)
    batches = (produced_by(4, 7, 5, EPOCH),)
    step = handle_fetch_response(broker(), empty, PendingFetch(EPOCH, Offset(3)), answered(1, batches), NOW)
    assert step.effects == (Persist(LogRestarted(Offset(1))), Persist(BatchesAppended(Offset(1), batches)))
    assert [entry.producer_id for entry in step.state.producers] == [4]


def test_what_an_answer_carries_is_counted_in_records() -> None:
    answer = answered(0, (Batch(2, Epoch(4)), Batch(3, EPOCH)))
    assert answers_at_once(answer, 5, may_wait=True, has_preferred_replica=False)
    assert not answers_at_once(answer, 6, may_wait=True, has_preferred_replica=False)
    assert leaving_now(answer, EMPTY_EPOCH_LOG.append((Batch(4, Epoch(4)),))) is None
    grown_again = EMPTY_EPOCH_LOG.append((Batch(2, Epoch(4)), Batch(9, Epoch(6))))
    assert leaving_now(answer, grown_again) == answer._replace(records=(Batch(2, Epoch(4)), Batch(3, Epoch(6))))


def test_producers_stay_in_order_and_are_found_among_many() -> None:
    batches = tuple(produced_by(producer, 0) for producer in (5, 1, 9, 5, 3))
    producers = with_batches(TRANSACTIONS_NEXT, PartitionTransactions(), Offset(0), batches).producers
    assert [entry.producer_id for entry in producers] == [1, 3, 5, 9]
    first, second = (ProducerBatch(ProducerId(5), ProducerEpoch(0), 0, 1, Offset(offset)) for offset in (0, 3))
    assert producers[2] == ProducerEntry(ProducerId(5), ProducerEpoch(0), (first, second))


@pytest.mark.parametrize("records", [1, 1_000, 100_000_000])
def test_leader_and_follower_end_with_the_same_log_and_producers(records: int) -> None:
    spent = replicate(12, records)
    assert (len(spent.produce), len(spent.fetch)) == (12, 12)


def test_records_are_counted_batch_by_batch() -> None:
    assert count_records((Batch(MANY), Record(1, EPOCH), Batch(2))) == MANY + 3
