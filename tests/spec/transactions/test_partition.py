"""Transactions in the log of a partition: verification, batches, markers, the last stable offset, what consumers return."""

import pytest

from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.log.partition import (
    NO_GUARD,
    LoggedBatch,
    LoggedMarker,
    PartitionTransactions,
    TransactionalEntry,
    append_batch,
    check_marked_partition,
    check_marker,
    error_after_verification,
    rebuilt_transactions,
    replaces_waiting,
    start_verification,
    with_marker,
)
from kspec.spec.transactions.log.reading import aborted_between, committed_batches, last_stable_offset, on_high_watermark
from kspec.spec.values import Epoch, Error, Offset, ProducerEpoch, ProducerId

ONE, TWO = 1, 2
START = Offset(0)


def batch(producer: int, sequence: int, epoch: int = 0, transactional: bool = True) -> LoggedBatch:
    return LoggedBatch(ProducerBatch(ProducerId(producer), ProducerEpoch(epoch), sequence, 1), transactional)


class Leader:
    """A leader of a log of which every record is committed at once."""

    def __init__(self, release: str = "4.3", level: int = 2) -> None:
        (self.protocol,) = (one for one in TRANSACTION_RELEASES if one.name == release)
        self.level = level
        self.state = PartitionTransactions()
        self.log: list[TransactionalEntry] = []
        self.guard = NO_GUARD

    @property
    def end(self) -> Offset:
        return Offset(len(self.log))

    def verify(self, one: LoggedBatch) -> int:
        started = start_verification(self.protocol, self.state, one.batch, self.level == 2)
        self.state = started.state
        assert started.error == Error.NONE
        return started.guard

    def append(self, one: LoggedBatch, guard: int = NO_GUARD, is_sequenced: bool = True) -> Error:
        placed = LoggedBatch(one.batch._replace(base_offset=self.end), one.is_transactional)
        outcome = append_batch(self.protocol, self.state, placed, guard, is_sequenced)
        self.state = outcome.state
        if outcome.error == Error.NONE and outcome.duplicate is None:
            self.log.append(placed)
        return outcome.error

    def write(self, one: LoggedBatch) -> Error:
        return self.append(one, self.verify(one))

    def mark(self, producer: int, committed: bool, epoch: int = 0, coordinator: int = 0) -> Error:
        places = frozenset({TopicPartition("t", 0)})
        marker = TransactionMarker(
            ProducerId(producer), ProducerEpoch(epoch), Epoch(coordinator), committed, places, self.level
        )
        error = check_marker(self.protocol, self.state, marker)
        if error == Error.NONE:
            written = LoggedMarker(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, committed, self.end)
            self.state = with_marker(self.protocol, self.state, written)
            self.log.append(written)
        return error

    def stable(self) -> int:
        return last_stable_offset(self.protocol, self.state, START, self.end)

    def read(self) -> list[int]:
        """The offsets of the batches that a consumer returns that reads from the start what is committed."""
        bound = Offset(self.stable())
        aborted = aborted_between(self.protocol, self.state.aborted, START, bound)
        return [one.batch.base_offset for one in committed_batches(tuple(self.log[:bound]), aborted)]


def test_a_transaction_is_read_once_it_is_committed() -> None:
    leader = Leader()
    assert leader.write(batch(ONE, 0)) == leader.write(batch(ONE, 1)) == Error.NONE
    assert (leader.stable(), leader.read()) == (0, [])
    assert leader.mark(ONE, committed=True, epoch=1) == Error.NONE
    leader.state = on_high_watermark(leader.state, leader.end)
    assert (leader.stable(), leader.read()) == (3, [0, 1])


def test_an_aborted_one_is_left_out_and_others_are_not() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    leader.write(batch(TWO, 0))
    leader.append(batch(3, 0, transactional=False))
    leader.mark(ONE, committed=False, epoch=1)
    leader.state = on_high_watermark(leader.state, leader.end)
    assert (leader.stable(), leader.read()) == (1, [])
    assert leader.state.aborted[0].last_stable_offset == 1
    leader.mark(TWO, committed=True, epoch=1)
    leader.write(batch(ONE, 0, epoch=1))
    leader.mark(ONE, committed=True, epoch=2)
    leader.state = on_high_watermark(leader.state, leader.end)
    assert leader.read() == [1, 2, 5]


def test_only_the_index_up_to_the_bound_is_searched() -> None:
    leader = Leader()
    for number in range(3):
        leader.write(batch(ONE, 0, epoch=number))
        leader.mark(ONE, committed=False, epoch=number + 1)
    assert len(aborted_between(leader.protocol, leader.state.aborted, START, Offset(2))) == 1
    assert len(aborted_between(leader.protocol, leader.state.aborted, Offset(2), Offset(6))) == 2
    leader.state = on_high_watermark(leader.state, leader.end)
    assert (leader.stable(), leader.read()) == (6, [])


def test_a_marker_counts_for_consumers_when_it_is_committed() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    leader.mark(ONE, committed=True, epoch=1)
    assert leader.stable() == 0
    leader.state = on_high_watermark(leader.state, Offset(1))
    assert leader.stable() == 0
    assert last_stable_offset(leader.protocol, leader.state, Offset(1), Offset(2)) == 1


# ---- verification


def test_a_batch_that_begins_a_transaction_is_verified() -> None:
    leader = Leader()
    first = batch(ONE, 0)
    assert leader.append(first) == Error.INVALID_TXN_STATE
    guard = leader.verify(first)
    assert guard == leader.verify(first)
    assert leader.append(first, guard) == Error.NONE
    assert leader.append(first, NO_GUARD) == Error.NONE  # a duplicate
    assert len(leader.log) == 1
    assert leader.verify(batch(ONE, 1)) == NO_GUARD
    assert leader.append(batch(ONE, 1)) == Error.NONE


def test_a_guard_does_not_outlive_the_end_of_its_transaction() -> None:
    leader = Leader(level=0)
    late = leader.verify(batch(ONE, 0))
    leader.mark(ONE, committed=False)
    assert leader.append(batch(ONE, 0), late) == Error.INVALID_TXN_STATE
    other = leader.verify(batch(ONE, 0))
    assert other != late
    assert leader.append(batch(ONE, 0), late) == Error.INVALID_TXN_STATE
    assert leader.append(batch(ONE, 0), other) == Error.NONE


def test_in_version_2_it_outlives_the_marker_of_the_transaction_before() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    guard = leader.verify(batch(ONE, 0, epoch=1))
    leader.mark(ONE, committed=True, epoch=1)
    assert leader.append(batch(ONE, 0, epoch=1), guard) == Error.NONE


def test_before_3_6_nothing_is_verified() -> None:
    leader = Leader("2.6", 0)
    leader.write(batch(ONE, 0))
    leader.mark(ONE, committed=False)
    assert leader.append(batch(ONE, 1)) == Error.NONE
    assert leader.stable() == 0


def test_the_lowest_sequence_number_comes_first() -> None:
    leader = Leader()
    guard = leader.verify(batch(ONE, 1))
    assert leader.verify(batch(ONE, 0)) == guard
    assert leader.append(batch(ONE, 1), guard) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.append(batch(ONE, 0), guard) == Error.NONE
    plain = Leader(level=0)
    guard = plain.verify(batch(ONE, 4))
    assert plain.append(batch(ONE, 4), guard) == Error.NONE
    later = Leader(level=0)
    guard = later.verify(batch(ONE, 0))
    assert later.append(batch(ONE, 1), guard) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert later.verify(batch(ONE, 2, epoch=1)) == guard
    assert later.append(batch(ONE, 2, epoch=1), guard) == Error.NONE


@pytest.mark.parametrize(("release", "error"), [("4.1", Error.INVALID_TXN_STATE), ("4.2", Error.INVALID_PRODUCER_EPOCH)])
def test_a_batch_of_an_earlier_epoch(release: str, error: Error) -> None:
    leader = Leader(release)
    leader.write(batch(ONE, 0))
    leader.mark(ONE, committed=True, epoch=1)
    assert leader.append(batch(ONE, 1)) == error
    started = start_verification(leader.protocol, leader.state, batch(ONE, 1).batch, bumps=True)
    assert started.error == Error.INVALID_PRODUCER_EPOCH
    assert leader.append(batch(ONE, 1, transactional=False)) == Error.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("error", "bumps", "knows_abortable", "told"),
    [
        (Error.CONCURRENT_TRANSACTIONS, False, True, Error.NOT_ENOUGH_REPLICAS),
        (Error.CONCURRENT_TRANSACTIONS, True, True, Error.CONCURRENT_TRANSACTIONS),
        (Error.NOT_COORDINATOR, True, True, Error.NOT_ENOUGH_REPLICAS),
        (Error.PRODUCER_FENCED, True, True, Error.INVALID_PRODUCER_EPOCH),
        (Error.TRANSACTION_ABORTABLE, False, False, Error.INVALID_TXN_STATE),
        (Error.TRANSACTION_ABORTABLE, False, True, Error.TRANSACTION_ABORTABLE),
    ],
)
def test_the_producer_is_told_in_its_words(error: Error, bumps: bool, knows_abortable: bool, told: Error) -> None:
    assert error_after_verification(error, bumps, knows_abortable) == told


@pytest.mark.parametrize(
    ("same", "waiting", "epoch", "error"),
    [
        (True, 0, 1, Error.INVALID_PRODUCER_EPOCH),
        (True, 1, 1, Error.NETWORK_EXCEPTION),
        (True, 1, 0, Error.NONE),
        (False, 1, 0, Error.NETWORK_EXCEPTION),
    ],
)
def test_of_two_questions_about_one_id_one_waits(same: bool, waiting: int, epoch: int, error: Error) -> None:
    assert replaces_waiting(same, ProducerEpoch(waiting), ProducerEpoch(epoch)) == error


# ---- batches and markers


def test_whatever_is_wrong_with_a_partition_its_coordinator_looks_for_it() -> None:
    assert check_marked_partition(Error.NONE) == Error.NONE
    assert check_marked_partition(Error.KAFKA_STORAGE_ERROR) == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_outside_of_a_transaction_while_one_is_open() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    assert leader.append(batch(ONE, 1, transactional=False)) == Error.INVALID_TXN_STATE


def test_offsets_of_a_group_have_no_sequence_numbers() -> None:
    leader = Leader()
    offsets = batch(ONE, -1)
    guard = leader.verify(offsets)
    assert leader.append(offsets, guard, is_sequenced=False) == Error.NONE
    assert leader.append(offsets, is_sequenced=False) == Error.NONE
    assert len(leader.log) == 2
    assert leader.append(batch(ONE, -1, epoch=-1), is_sequenced=False) == Error.INVALID_PRODUCER_EPOCH


def test_a_marker_of_the_transaction_before_ends_nothing_in_version_2() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    leader.mark(ONE, committed=True, epoch=1)
    assert leader.mark(ONE, committed=True, epoch=1) == Error.NONE  # it is repeated
    leader.write(batch(ONE, 0, epoch=1))
    assert leader.mark(ONE, committed=True, epoch=1) == Error.INVALID_PRODUCER_EPOCH
    plain = Leader(level=0)
    plain.write(batch(ONE, 0))
    assert plain.mark(ONE, committed=True) == Error.NONE
    plain.write(batch(ONE, 1))
    assert plain.mark(ONE, committed=True) == Error.NONE


def test_a_marker_of_an_earlier_coordinator_is_refused() -> None:
    leader = Leader(level=0)
    assert leader.mark(ONE, committed=True, coordinator=2) == Error.NONE
    assert leader.mark(ONE, committed=True, coordinator=1) == Error.TRANSACTION_COORDINATOR_FENCED


def test_who_reads_the_log_has_the_state_but_for_verifications() -> None:
    leader = Leader()
    leader.write(batch(ONE, 0))
    leader.write(batch(TWO, 0))
    leader.append(batch(3, 0, transactional=False))
    leader.mark(ONE, committed=False, epoch=1)
    read = rebuilt_transactions(leader.protocol, tuple(leader.log))
    assert read == leader.state._replace(guards=0)
