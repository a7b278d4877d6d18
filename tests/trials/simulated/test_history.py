"""Answers to clients, held against earlier ones."""

import pytest

from kspec.spec.values import Offset
from kspec.trials.simulated.history import PROMISES, BrokenPromiseError, ClientPartitionHistory, Value


def test_the_latest_offset_is_held_against_what_was_read_from_earlier_leaders() -> None:
    history = ClientPartitionHistory()
    history.read_to(Offset(5), 2)
    history.read_to(Offset(3), 2)
    history.read_to(Offset(9), 4)
    assert [history.end_of_read(epoch) for epoch in (1, 2, 3, 4)] == [0, 5, 5, 9]
    history.see_latest(Offset(5), Offset(5))
    with pytest.raises(BrokenPromiseError, match="LatestOffset"):
        history.see_latest(Offset(5), Offset(4))


@pytest.mark.parametrize(("end_offset", "end_epoch"), [(4, 3), (7, 2), (-1, -1)])
def test_a_consumer_is_not_told_that_what_it_has_read_is_gone(end_offset: int, end_epoch: int) -> None:
    """It has read up to 5, last in epoch 3: an end before 5, or in an earlier epoch, means that records are gone."""
    history = ClientPartitionHistory()
    history.see_end(Offset(5), 3, Offset(5), 3)
    with pytest.raises(BrokenPromiseError) as caught:
        history.see_end(Offset(5), 3, Offset(end_offset), end_epoch)
    assert caught.value.name == "NoTruncation"
    assert caught.value.name in PROMISES


def history_of_copies(log_start: int, deletes: bool = True) -> ClientPartitionHistory:
    """A leader whose log starts here has appended at the offsets 5 and 6."""
    history = ClientPartitionHistory(deletes=deletes)
    history.append(Offset(5), Offset(7), Offset(log_start))
    return history


@pytest.mark.parametrize("offsets", [(2, 6), (6, 2), (2, 6, 2, 6)])
def test_a_record_that_was_deleted_may_be_appended_again(offsets: tuple[int, ...]) -> None:
    """A leader that has read its log anew knows nothing of what lies below the log start, and takes a retry for new."""
    history = history_of_copies(log_start=3)
    for offset in offsets:
        history.see(Offset(offset), Value(1, 0))


@pytest.mark.parametrize(
    ("log_start", "first", "second", "deletes"),
    [
        (2, 2, 6, True),  # the first copy was in the log
        (3, 2, 7, True),  # nobody was seen to append there
        (3, 2, 4, True),
        (3, 2, 6, False),
    ],
)
def test_a_record_that_was_in_the_log_may_not(log_start: int, first: int, second: int, deletes: bool) -> None:
    for one, other in ((first, second), (second, first)):
        history = history_of_copies(log_start, deletes)
        history.see(Offset(one), Value(1, 0))
        with pytest.raises(BrokenPromiseError, match="Duplicate"):
            history.see(Offset(other), Value(1, 0))


def test_a_later_append_with_an_earlier_log_start_changes_nothing() -> None:
    """A leader that has deleted less may have appended there, too; one of both was cut."""
    history = history_of_copies(log_start=3)
    history.append(Offset(6), Offset(8), Offset(1))
    history.see(Offset(2), Value(1, 0))
    history.see(Offset(6), Value(1, 0))
    history.see(Offset(0), Value(1, 1))
    history.see(Offset(7), Value(1, 1))
