"""Shrinking leaves out what is not needed, and stops when nothing more can be left out."""

import pytest

from kspec.model_check.search.shrinking import Shrinker


def shrunk(needed: set[int], length: int, longest: int = 1, overlapping: bool = False) -> tuple[list[int], int]:
    """The numbers that are left, and the number of attempts, where it fails with all that is needed."""
    shrinking, attempts = Shrinker(list(range(length)), longest, overlapping), 0
    for begin, end in shrinking.ranges():
        attempts += 1
        left = [*shrinking.best[:begin], *shrinking.best[end:]]
        assert len(left) == len(shrinking.best) - (end - begin), "a range lies within the best sequence"
        if needed <= set(left):
            shrinking.best = left
    return list(shrinking.best), attempts


@pytest.mark.parametrize("needed", [set[int](), {0}, {99}, {0, 50, 99}, set(range(0, 100, 7))])
@pytest.mark.parametrize(("longest", "overlapping"), [(1, False), (1, True), (5, True)])
def test_what_is_needed_is_left_and_nothing_else(needed: set[int], longest: int, overlapping: bool) -> None:
    assert shrunk(needed, 100, longest, overlapping)[0] == sorted(needed)


def test_halves_come_first_so_few_attempts_are_needed() -> None:
    assert shrunk({3}, 1_024)[1] < 64


@pytest.mark.parametrize(("longest", "left"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 5])])
def test_items_that_only_go_together_need_a_range_of_their_length(longest: int, left: list[int]) -> None:
    """It fails with 0 and 5, and with 1 and 2, or 3 and 4, only if both are there or neither is."""
    shrinking = Shrinker([0, 1, 2, 3, 4, 5], longest, overlapping=True)
    for begin, end in shrinking.ranges():
        found = [*shrinking.best[:begin], *shrinking.best[end:]]
        if {0, 5} <= set(found) and (1 in found) == (2 in found) and (3 in found) == (4 in found):
            shrinking.best = found
    assert shrinking.best == left


def test_of_nothing_nothing_is_left_out() -> None:
    assert list(Shrinker([]).ranges()) == []
