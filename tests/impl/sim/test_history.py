"""What clients are told, held against what they were told before."""

import pytest

from impl.sim.history import PROMISES, BrokenPromiseError, PartitionHistory
from spec.values import Offset


def test_the_latest_offset_is_held_against_what_was_read_from_earlier_leaders() -> None:
    history = PartitionHistory()
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
    history = PartitionHistory()
    history.see_end(Offset(5), 3, Offset(5), 3)
    with pytest.raises(BrokenPromiseError) as caught:
        history.see_end(Offset(5), 3, Offset(end_offset), end_epoch)
    assert caught.value.name == "NoTruncation"
    assert caught.value.name in PROMISES
