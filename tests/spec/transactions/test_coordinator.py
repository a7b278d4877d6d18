"""The transaction coordinator: producers get epochs, transactions begin, grow and end, and markers are sent."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.transactions.appending import complete_if_written, on_appended
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.loading import check_coordinates, load_transaction, transaction_partition
from kspec.spec.transactions.markers import on_partitions_deleted
from kspec.spec.transactions.metadata import TransactionState
from kspec.spec.transactions.refusals import answer_for_append, check_added
from kspec.spec.values import Epoch, Error, ProducerEpoch, ProducerId, TransactionalId
from tests.spec.transactions.driver import ID, TIMEOUT_MS, A, B, TransactionDriver
from tests.times import at_ms

LARGEST = 2**15 - 1
S = TransactionState


def ongoing(release: str = "4.4", level: int = 2, cluster_level: int | None = None) -> TransactionDriver:
    """A coordinator whose producer has begun a transaction in partition A."""
    driver = TransactionDriver(release, level, level if cluster_level is None else cluster_level)
    driver.initialise()
    driver.add(A)
    return driver


# ---- InitProducerId


def test_a_new_producer_gets_an_id_and_epoch_0_and_the_next_one_the_next_epoch() -> None:
    driver = TransactionDriver()
    first, second = driver.initialise(), driver.initialise()
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert first.producer_id == second.producer_id == 11


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": TransactionalId("")}, Error.INVALID_REQUEST),
        ({"producer_id": ProducerId(1)}, Error.INVALID_REQUEST),
        ({"timeout_ms": 0}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 15 * TIMEOUT_MS + 1}, Error.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_a_request_that_cannot_be_granted(fields: dict[str, Any], error: Error) -> None:
    assert TransactionDriver().initialise(**fields).error == error


def test_a_producer_that_says_who_it_is_gets_the_next_epoch_once() -> None:
    driver = TransactionDriver()
    mine = driver.initialise()
    named = {"producer_id": mine.producer_id, "producer_epoch": mine.producer_epoch}
    assert driver.initialise(**named).producer_epoch == 1
    assert driver.initialise(**named).producer_epoch == 1  # its answer was lost
    driver.initialise()  # another one
    assert driver.initialise(**named).error == Error.PRODUCER_FENCED
    assert driver.initialise(producer_id=ProducerId(99), producer_epoch=ProducerEpoch(0)).error == Error.PRODUCER_FENCED
    assert driver.initialise(**named, knows_fenced=False).error == Error.INVALID_PRODUCER_EPOCH


def test_before_2_5_nobody_is_known_by_its_epoch() -> None:
    driver = TransactionDriver("0.11")
    driver.initialise()
    assert driver.initialise(producer_id=ProducerId(99), producer_epoch=ProducerEpoch(7)).producer_epoch == 1


def test_a_repeated_request_is_not_known_after_the_coordinator_has_moved() -> None:
    driver = TransactionDriver()
    mine = driver.initialise()
    named = {"producer_id": mine.producer_id, "producer_epoch": mine.producer_epoch}
    driver.initialise(**named)
    driver.move()
    assert driver.initialise(**named).error == Error.PRODUCER_FENCED


def test_a_producer_whose_epochs_are_used_up_gets_another_id() -> None:
    driver = TransactionDriver()
    mine = driver.initialise()
    driver.force(producer_epoch=ProducerEpoch(LARGEST - 1))
    named = {"producer_id": mine.producer_id, "producer_epoch": ProducerEpoch(LARGEST - 1)}
    other = driver.initialise(**named)
    assert (other.producer_id != mine.producer_id, other.producer_epoch) == (True, 0)
    assert driver.initialise(**named).producer_id == other.producer_id  # it repeats
    driver.force(producer_epoch=ProducerEpoch(LARGEST - 1))
    assert driver.initialise().producer_epoch == 0
    assert driver.metadata.last_producer_epoch == -1


def test_an_open_transaction_is_aborted_first() -> None:
    driver = ongoing()
    assert driver.initialise().error == Error.CONCURRENT_TRANSACTIONS
    assert (driver.phase, driver.epoch) == (S.PREPARE_ABORT, 1)
    assert driver.initialise().error == Error.CONCURRENT_TRANSACTIONS
    driver.written()
    assert driver.initialise().producer_epoch == 2
    driver.commits = False
    driver.initialise()
    driver.initialise()
    assert driver.answer().error == Error.CONCURRENT_TRANSACTIONS


def test_one_whose_end_is_decided_is_waited_for() -> None:
    driver = ongoing()
    driver.end(committed=True)
    driver.force(pending=None)
    assert driver.initialise().error == Error.CONCURRENT_TRANSACTIONS


# ---- AddPartitionsToTxn


def test_partitions_are_added_once() -> None:
    driver = ongoing()
    driver.add(B)
    records = len(driver.log)
    driver.add(A, B)
    assert (driver.error(), len(driver.log)) == (Error.NONE, records)
    assert driver.metadata.partitions == {A, B}
    driver.add_offsets("group")
    assert driver.answer().error == Error.NONE
    assert len(driver.metadata.partitions) == 3


def test_who_may_not_add() -> None:
    driver = TransactionDriver()
    driver.add(A)
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING
    driver.initialise()
    driver.add(A, transactional_id=TransactionalId(""))
    assert driver.error() == Error.INVALID_REQUEST
    driver.add(A, producer_id=ProducerId(1))
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING
    driver.add(A, producer_epoch=ProducerEpoch(1))
    assert driver.error() == Error.PRODUCER_FENCED
    driver.add(A)
    driver.end(committed=True)
    driver.force(pending=None)
    driver.add(A)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("release", "error"), [("3.8", Error.INVALID_PRODUCER_ID_MAPPING), ("4.0", Error.CONCURRENT_TRANSACTIONS)]
)
def test_a_step_that_is_being_written_is_waited_for(release: str, error: Error) -> None:
    driver = ongoing(release)
    driver.commits = False
    driver.add(B)
    driver.add(B, producer_id=ProducerId(1))
    assert driver.error() == error
    driver.add(B)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(("release", "error"), [("3.6", Error.INVALID_TXN_STATE), ("4.4", Error.TRANSACTION_ABORTABLE)])
def test_a_leader_asks_what_belongs_to_the_transaction(release: str, error: Error) -> None:
    driver = TransactionDriver(release, 0, 0)
    driver.add(A, verify_only=True)
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING
    driver.add(A, verify_only=True, transactional_id=TransactionalId(""))
    assert driver.error() == Error.INVALID_REQUEST
    driver.initialise()
    driver.add(A)
    driver.commits = False
    driver.add(B)  # which is being written
    driver.add(A, B, verify_only=True)
    assert driver.answer().partitions == ((A, Error.NONE), (B, error))
    driver.add(A, verify_only=True, producer_epoch=ProducerEpoch(9))
    assert driver.error() == Error.PRODUCER_FENCED
    driver.commit()
    driver.commits = True
    driver.end(committed=False)
    driver.add(A, verify_only=True)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


def test_one_partition_that_is_refused_refuses_all() -> None:
    refused = frozenset({(B, Error.UNKNOWN_TOPIC_OR_PARTITION)})
    assert check_added(frozenset({A, B}), refused) == (
        (A, Error.OPERATION_NOT_ATTEMPTED),
        (B, Error.UNKNOWN_TOPIC_OR_PARTITION),
    )
    assert check_added(frozenset({A}), frozenset()) == ((A, Error.NONE),)


# ---- EndTxn


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("level", [0, 2])
def test_a_transaction_ends(committed: bool, level: int) -> None:
    driver = ongoing(level=level)
    driver.end(committed)
    assert driver.error() == Error.NONE
    assert (driver.phase in (S.PREPARE_COMMIT, S.PREPARE_ABORT), driver.markers[0].committed) == (True, committed)
    assert driver.answer().producer_epoch == (1 if level else 0)
    driver.written()
    assert driver.phase == (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT)
    assert driver.metadata.partitions == frozenset()


LATE = {"producer_epoch": ProducerEpoch(0)}
"""The epoch of the first transaction."""


def test_version_2_tells_a_repeated_end_from_that_of_the_next_transaction() -> None:
    driver = ongoing()
    driver.end(committed=True)
    driver.end(committed=True, **LATE)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS
    driver.written()
    driver.end(committed=True, **LATE)
    assert (driver.error(), driver.answer().producer_epoch) == (Error.NONE, 1)
    driver.add(A)
    driver.end(committed=True, **LATE)
    assert driver.error() == Error.PRODUCER_FENCED
    assert driver.phase == S.ONGOING


def test_before_version_2_a_late_end_ends_the_next_transaction() -> None:
    driver = ongoing(level=0)
    driver.end(committed=True)
    driver.end(committed=True)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS
    driver.written()
    driver.end(committed=True)
    assert driver.error() == Error.NONE
    driver.add(B)
    driver.end(committed=True)  # a copy of the first
    assert (driver.error(), driver.phase) == (Error.NONE, S.PREPARE_COMMIT)
    driver.end(committed=False)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS
    driver.written()
    driver.end(committed=False)
    assert driver.error() == Error.INVALID_TXN_STATE


def test_who_may_not_end_before_version_2() -> None:
    driver = TransactionDriver(level=0, cluster_level=0)
    driver.end(committed=True)
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING
    driver.end(committed=True, transactional_id=TransactionalId(""))
    assert driver.error() == Error.INVALID_REQUEST
    driver.initialise()
    driver.end(committed=True)
    assert driver.error() == Error.INVALID_TXN_STATE
    driver.end(committed=True, producer_id=ProducerId(1))
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING
    driver.end(committed=True, producer_epoch=ProducerEpoch(1))
    assert driver.error() == Error.PRODUCER_FENCED
    driver.commits = False
    driver.add(A)
    driver.end(committed=True)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


def test_up_to_2_5_a_larger_epoch_ends_a_transaction() -> None:
    driver = ongoing("2.5", 0)
    driver.end(committed=True, producer_epoch=ProducerEpoch(1))
    assert driver.error() == Error.NONE


@pytest.mark.parametrize(
    ("phase", "epoch", "committed", "expected"),
    [
        (S.EMPTY, 0, False, Error.PRODUCER_FENCED),
        (S.EMPTY, 1, True, Error.INVALID_TXN_STATE),
        (S.EMPTY, 1, False, "bump"),
        (S.COMPLETE_ABORT, 0, False, Error.NONE),
        (S.COMPLETE_ABORT, 1, False, "bump"),
        (S.COMPLETE_ABORT, 0, True, Error.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, 1, True, Error.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, 0, False, Error.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, 1, False, "bump"),
        (S.COMPLETE_COMMIT, 0, True, Error.NONE),
        (S.COMPLETE_COMMIT, 1, True, Error.INVALID_TXN_STATE),
        (S.PREPARE_COMMIT, 0, True, Error.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, 0, False, Error.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, 0, False, Error.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, 0, True, Error.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, 1, False, Error.PRODUCER_FENCED),
        (S.ONGOING, 0, True, Error.PRODUCER_FENCED),
        (S.ONGOING, 2, True, Error.PRODUCER_FENCED),
    ],
)
def test_the_answers_of_version_2(phase: TransactionState, epoch: int, committed: bool, expected: Any) -> None:
    driver = TransactionDriver("4.3")
    driver.initialise()
    driver.force(state=phase, producer_epoch=ProducerEpoch(1))
    driver.end(committed, producer_epoch=ProducerEpoch(epoch))
    if expected == "bump":
        assert (driver.error(), driver.phase, driver.epoch) == (Error.NONE, S.COMPLETE_ABORT, 2)
    else:
        assert (driver.error(), driver.epoch) == (expected, 1)


def test_who_commits_what_the_coordinator_has_aborted() -> None:
    driver = ongoing("next")
    driver.now = TIMEOUT_MS + 1
    driver.time_out()
    driver.force(pending=None)
    driver.end(committed=True, producer_epoch=ProducerEpoch(0))
    assert driver.error() == Error.PRODUCER_FENCED
    driver.end(committed=True, producer_id=ProducerId(5))
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING


def test_a_pending_step_is_looked_at_first_in_version_2() -> None:
    driver = ongoing()
    driver.commits = False
    driver.add(B)
    driver.end(committed=True, producer_id=ProducerId(5))
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


def test_without_that_its_own_end_is_told_to_wait_as_well() -> None:
    driver = ongoing("3.8")
    driver.commits = False
    driver.add(B)
    driver.end(committed=True, client_level=2)
    assert driver.error() == Error.CONCURRENT_TRANSACTIONS


def test_an_end_with_the_last_epoch_brings_another_id() -> None:
    driver = ongoing()
    mine = driver.metadata.producer_id
    driver.force(producer_epoch=ProducerEpoch(LARGEST - 1))
    driver.end(committed=True)
    answer = driver.answer()
    assert (answer.producer_id != mine, answer.producer_epoch) == (True, 0)
    assert (driver.markers[0].producer_id, driver.markers[0].producer_epoch) == (mine, LARGEST)
    driver.written()
    assert driver.metadata.producer_id == answer.producer_id
    driver.end(committed=True, producer_id=mine, producer_epoch=ProducerEpoch(LARGEST - 1))
    assert driver.answer() == answer


# ---- fences and time-outs


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    for level in (0, 2):
        driver = ongoing(level=level)
        driver.now = TIMEOUT_MS
        driver.time_out()
        assert driver.phase == S.ONGOING
        driver.now += 1
        driver.time_out()
        assert (driver.phase, driver.epoch) == (S.PREPARE_ABORT, 1)
        driver.time_out()
        driver.written()
        assert driver.phase == S.COMPLETE_ABORT
    nobody = TransactionDriver()
    nobody.time_out()
    assert nobody.state.metadata is None


@pytest.mark.parametrize(("release", "epochs"), [("2.5", [1, 2]), ("2.6", [1, 1]), ("4.4", [1, 1])])
def test_a_fence_that_the_log_refuses(release: str, epochs: list[int]) -> None:
    driver = ongoing(release, 0)
    found = []
    for _ in range(2):
        driver.refuses = Error.NOT_ENOUGH_REPLICAS
        assert driver.initialise().error == Error.COORDINATOR_NOT_AVAILABLE
        found.append(driver.epoch)
    assert found == epochs
    assert driver.phase == S.ONGOING
    driver.initialise()
    driver.written()
    assert not driver.metadata.failed_fence


def test_in_version_2_a_fence_that_is_refused_changes_nothing() -> None:
    driver = ongoing()
    driver.refuses = Error.NOT_LEADER_OR_FOLLOWER
    assert driver.initialise().error == Error.NOT_COORDINATOR
    assert (driver.epoch, driver.metadata.failed_fence) == (0, False)


@pytest.mark.parametrize(("release", "epoch"), [("4.0", 2), ("4.1", 1)])
def test_a_fence_in_version_2_raises_the_epoch(release: str, epoch: int) -> None:
    driver = ongoing(release)
    driver.initialise()
    assert driver.epoch == epoch


@pytest.mark.parametrize(("release", "rotated"), [("4.2", False), ("4.3", True)])
def test_a_fence_of_the_last_epoch(release: str, rotated: bool) -> None:
    driver = ongoing(release)
    mine = driver.metadata.producer_id
    driver.force(producer_epoch=ProducerEpoch(LARGEST - 1))
    driver.initialise()
    driver.written()
    assert (driver.metadata.producer_id != mine, driver.epoch == 0) == (rotated, rotated)


def test_the_largest_epoch_stays_when_it_is_aborted() -> None:
    driver = ongoing()
    driver.force(producer_epoch=ProducerEpoch(LARGEST))
    driver.initialise()
    assert driver.epoch == LARGEST
    plain = ongoing(level=0)
    plain.force(producer_epoch=ProducerEpoch(LARGEST))
    plain.initialise()
    assert plain.epoch == LARGEST


# ---- the log


def test_nothing_counts_that_the_log_refuses() -> None:
    driver = ongoing()
    driver.refuses = Error.MESSAGE_TOO_LARGE
    driver.add(B)
    assert (driver.error(), set(driver.metadata.partitions), driver.metadata.pending) == (
        Error.UNKNOWN_SERVER_ERROR,
        {A},
        None,
    )
    assert answer_for_append(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND) == Error.COORDINATOR_NOT_AVAILABLE


def test_a_record_of_an_earlier_coordinator_epoch_does_not_count() -> None:
    driver = ongoing()
    driver.commits = False
    driver.add(B)
    append = driver.waiting[0]
    driver.move()
    before = driver.state
    step = on_appended(driver.coordinator, before, append, Error.NONE, at_ms(0))
    assert step.state == before
    driver.take(step)
    assert driver.error() == Error.NOT_COORDINATOR
    gone = on_appended(driver.coordinator, before._replace(metadata=None), append, Error.NONE, at_ms(0))
    assert gone.state.metadata is None


def test_the_record_that_completes_is_tried_until_it_is_in_the_log() -> None:
    driver = ongoing()
    driver.end(committed=True)
    driver.refuses = Error.REQUEST_TIMED_OUT
    driver.written()
    assert driver.phase == S.COMPLETE_COMMIT


def test_without_version_1_records_have_no_tags() -> None:
    driver = ongoing(level=0, cluster_level=0)
    record = driver.log[-1]
    assert record is not None
    assert record.previous_producer_id == -1
    known = ongoing().log[-1]
    assert known is not None
    assert known.previous_producer_id == known.producer_id


# ---- markers


def test_markers_are_sent_until_all_are_written() -> None:
    driver = ongoing()
    driver.add(B)
    driver.end(committed=True)
    driver.written(Error.NOT_LEADER_OR_FOLLOWER)
    assert len(driver.markers) == 2
    driver.lose_markers()
    assert driver.markers[2] == driver.markers[1]
    driver.written(marker=replace(driver.markers[2], partitions=frozenset({A})))
    assert (driver.phase, set(driver.metadata.partitions)) == (S.PREPARE_COMMIT, {B})
    driver.written(marker=replace(driver.markers[2], partitions=frozenset({B})))
    assert driver.phase == S.COMPLETE_COMMIT
    driver.written()  # a late answer
    assert driver.phase == S.COMPLETE_COMMIT


def test_a_partition_that_is_deleted_needs_no_marker() -> None:
    driver = ongoing()
    driver.take(on_partitions_deleted(driver.state, frozenset({A})))
    assert driver.phase == S.ONGOING
    driver.end(committed=False)
    driver.take(on_partitions_deleted(driver.state, frozenset({A})))
    assert driver.phase == S.COMPLETE_ABORT


def test_a_coordinator_that_is_fenced_gives_up() -> None:
    driver = ongoing()
    driver.end(committed=True)
    driver.written(Error.TRANSACTION_COORDINATOR_FENCED)
    assert (driver.phase, driver.state.completion) == (S.PREPARE_COMMIT, None)
    driver.written(Error.INVALID_PRODUCER_EPOCH)
    assert driver.phase == S.PREPARE_COMMIT
    driver.move()
    driver.written()
    assert driver.phase == S.COMPLETE_COMMIT


@pytest.mark.parametrize(("release", "is_stuck"), [("3.6", True), ("3.8", False)])
def test_a_late_answer_of_an_earlier_coordinator_epoch(release: str, is_stuck: bool) -> None:
    driver = ongoing(release, 0)
    driver.end(committed=True)
    late = driver.markers[0]
    driver.move()
    driver.written(marker=late)
    driver.written()
    assert (driver.phase == S.PREPARE_COMMIT) == is_stuck


def test_a_connection_of_an_earlier_coordinator_epoch_breaks() -> None:
    driver = ongoing()
    driver.end(committed=True)
    driver.state = driver.state._replace(coordinator_epoch=Epoch(5))
    sent = len(driver.markers)
    driver.lose_markers()
    assert (len(driver.markers), driver.state.completion) == (sent, None)


def test_nothing_is_completed_that_is_not_known() -> None:
    unknown = CoordinatedTransaction(ID, Epoch(0))
    assert complete_if_written(unknown).effects == ()


# ---- loading and expiry


def test_a_coordinator_that_takes_over_ends_what_was_decided() -> None:
    for committed in (True, False):
        driver = ongoing()
        driver.end(committed)
        driver.move()
        assert [one.coordinator_epoch for one in driver.markers] == [0, 1]
        driver.written()
        assert driver.phase == (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT)
    begun = ongoing()
    begun.move()
    assert (begun.phase, begun.markers) == (S.ONGOING, [])
    assert load_transaction(ID, None, Epoch(1), at_ms(0)).state.metadata is None


def test_an_end_that_is_not_in_the_log_when_the_coordinator_moves_has_not_happened() -> None:
    driver = ongoing()
    driver.commits = False
    driver.end(committed=True)
    driver.move()
    assert driver.phase == S.ONGOING


def test_who_coordinates() -> None:
    assert check_coordinates(is_loading=True, is_loaded=False) == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert check_coordinates(is_loading=False, is_loaded=False) == Error.NOT_COORDINATOR
    assert check_coordinates(is_loading=False, is_loaded=True) == Error.NONE
    assert 0 <= transaction_partition(ID, 50) < 50


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    driver = TransactionDriver()
    driver.expire()
    assert driver.state.metadata is None
    driver.initialise()
    driver.expire()
    assert driver.state.metadata is not None
    driver.now = 8 * 24 * 3_600_000
    driver.refuses = Error.NOT_ENOUGH_REPLICAS
    driver.expire()
    assert driver.metadata.pending is None
    driver.expire()
    assert (driver.state.metadata, driver.log[-1]) == (None, None)
    driver.add(A)
    assert driver.error() == Error.INVALID_PRODUCER_ID_MAPPING


# ---- releases


def test_releases_follow_one_another() -> None:
    names = [release.name for release in TRANSACTION_RELEASES]
    assert names == ["0.11", "2.5", "2.6", "3.6", "3.8", "4.0", "4.1", "4.2", "4.3", "next"]
