"""Bytes that count for a fetch that waits, and fetches that do not wait."""

from kspec.spec.broker.rules.reading import counted_bytes, ends_waiting, has_enough
from kspec.spec.values import Offset


def test_bytes_for_which_there_is_no_room_are_not_waited_for() -> None:
    next_offset, end = Offset(2), Offset(3)
    assert counted_bytes(70, 100, end, end) == 70
    assert [counted_bytes(sent, 100, next_offset, end) for sent in (0, 70, 500)] == [100, 100, 500]
    assert has_enough(100, 6_000, 100)
    assert not has_enough(99, 6_000, 100)
    assert has_enough(50, 50, 100)


def test_a_fetch_behind_the_end_or_in_an_older_segment_does_not_wait() -> None:
    assert ends_waiting(Offset(5), Offset(4), False)
    assert not ends_waiting(Offset(5), Offset(5), True)
    assert not ends_waiting(Offset(5), Offset(6), False)
    assert ends_waiting(Offset(5), Offset(6), True)
