"""The room in an answer, bytes that count for a fetch that waits, and fetches that do not wait."""

from kspec.spec.broker.rules.reading import (
    AnswerRoom,
    counted_bytes,
    ends_waiting,
    gives_first_batch,
    has_enough,
    most_of_partition,
    room_after,
    room_in_answer,
)
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


def test_the_room_of_an_answer_ends_with_what_its_partitions_add() -> None:
    room = room_in_answer(100, 0)
    assert room == AnswerRoom(100, True)
    assert [most_of_partition(room, most) for most in (99, 100, 101)] == [99, 100, 100]
    assert room_after(room, 0) == room
    assert room_after(room, 30) == AnswerRoom(70, False)
    assert room_after(room_after(room, 30), 0) == AnswerRoom(70, False)
    assert room_after(room, 130) == AnswerRoom(0, False)
    assert room_in_answer(100, 30) == AnswerRoom(70, False)
    assert room_in_answer(100, 130) == AnswerRoom(0, False)


def test_only_before_anything_is_in_an_answer_a_batch_may_be_larger_than_its_limits() -> None:
    assert gives_first_batch(room_in_answer(1, 0))
    assert not gives_first_batch(room_in_answer(1, 1))
    assert not gives_first_batch(room_after(room_in_answer(1, 0), 1))
