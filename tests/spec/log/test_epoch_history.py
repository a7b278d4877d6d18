"""The epoch history, beside a naive model of it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.log.epoch_history import NO_ENTRY, EpochEntry, EpochHistory
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Offset

EMPTY = EpochHistory()


def history(*entries: tuple[int, int]) -> EpochHistory:
    return EpochHistory(tuple(EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in entries))


# ---- a naive model: the set of (epoch, start offset) pairs


@dataclass(frozen=True)
class Pairs:
    """A history as an unordered set; every question is answered by looking at all of it."""

    pairs: frozenset[tuple[int, int]] = frozenset()

    @property
    def latest(self) -> int:
        return max((epoch for epoch, _ in self.pairs), default=-1)

    def only(self, keep: Callable[[int, int], bool]) -> "Pairs":
        return Pairs(frozenset(pair for pair in self.pairs if keep(*pair)))

    def assign(self, epoch: int, start: int) -> "Pairs":
        if any(start >= known_start for known, known_start in self.pairs if known == epoch == self.latest):
            return self
        return Pairs(self.only(lambda known, known_start: known < epoch and known_start < start).pairs | {(epoch, start)})

    def truncate_from_end(self, end: int) -> "Pairs":
        return self.only(lambda epoch, start: end < 0 or start < end)

    def truncate_from_start(self, new_start: int) -> "Pairs":
        in_force = self.only(lambda epoch, start: start <= new_start).latest
        later = self.only(lambda epoch, start: start > new_start).pairs
        return Pairs(later | {(in_force, new_start)}) if in_force >= 0 else self

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        higher = [start for known, start in self.pairs if known > epoch]
        lower = [known for known, _ in self.pairs if known <= epoch]
        if epoch >= 0 and epoch == self.latest:
            return epoch, log_end_offset
        if epoch < 0 or not higher:
            return -1, -1
        return max(lower, default=epoch), min(higher)

    def largest_epoch_up_to(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        ends = [start for known, start in self.pairs if known > epoch]
        return max((known for known, _ in self.pairs if known <= epoch), default=-1), min(ends, default=log_end_offset)

    def epoch_at(self, offset: int) -> int:
        return self.only(lambda epoch, start: start <= offset).latest


numbers = st.integers(0, 8)
Operation = tuple[str, tuple[int, ...]]
operations: st.SearchStrategy[list[Operation]] = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.tuples(numbers, numbers)),
        st.tuples(st.sampled_from(["truncate_from_end", "truncate_from_start"]), st.tuples(st.integers(-1, 9))),
    ),
    max_size=8,
)


def after(start: EpochHistory | Pairs, sequence: list[Operation]) -> EpochHistory | Pairs:
    """The history, or its model, after these operations."""
    for name, arguments in sequence:
        start = getattr(start, name)(*arguments)
    return start


@st.composite
def histories(draw: st.DrawFn) -> EpochHistory:
    epochs = sorted(draw(st.sets(numbers, max_size=5)))
    starts = sorted(draw(st.sets(numbers, min_size=len(epochs), max_size=len(epochs))))
    return history(*zip(epochs, starts, strict=True))


def pairs_of(known: EpochHistory) -> Pairs:
    return Pairs(frozenset(known.pairs))


# ---- laws


@given(operations)
def test_entries_grow_in_both_fields_after_any_operations(sequence: list[Operation]) -> None:
    result = after(EMPTY, sequence)
    assert isinstance(result, EpochHistory)
    epochs = [entry.leader_epoch for entry in result.entries]
    starts = [entry.start_offset for entry in result.entries]
    assert epochs == sorted(set(epochs))
    assert starts == sorted(set(starts))


@given(operations)
def test_entries_are_those_of_the_model_after_any_operations(sequence: list[Operation]) -> None:
    result = after(EMPTY, sequence)
    assert isinstance(result, EpochHistory)
    assert pairs_of(result) == after(Pairs(), sequence)


@given(histories(), numbers, numbers)
def test_assign_does_what_the_model_does(known: EpochHistory, epoch: int, start: int) -> None:
    assert pairs_of(known.assign(Epoch(epoch), Offset(start))) == pairs_of(known).assign(epoch, start)


@given(histories(), numbers, numbers)
def test_assign_decides_from_its_start_offset_on(known: EpochHistory, epoch: int, start: int) -> None:
    """The latest write wins: the epoch assigned is the latest, and in force where it starts."""
    assigned = known.assign(Epoch(epoch), Offset(start))
    assert assigned.latest_epoch == epoch
    assert assigned.epoch_at(Offset(start)) == epoch
    assert all(assigned.epoch_at(Offset(before)) < epoch or assigned == known for before in range(start))


@given(histories(), numbers, numbers)
def test_assigning_again_changes_nothing(known: EpochHistory, epoch: int, start: int) -> None:
    assigned = known.assign(Epoch(epoch), Offset(start))
    assert assigned.assign(Epoch(epoch), Offset(start)) == assigned
    assert assigned.assign(Epoch(epoch), Offset(start + 1)) == assigned


@given(histories(), st.integers(-1, 9), st.integers(0, 12))
def test_answers_are_those_of_the_model(known: EpochHistory, epoch: int, log_end_offset: int) -> None:
    model, asked, end = pairs_of(known), Epoch(epoch), Offset(log_end_offset)
    assert known.end_offset_for(asked, end) == model.end_offset_for(epoch, log_end_offset)
    assert known.largest_epoch_up_to(asked, end) == model.largest_epoch_up_to(epoch, log_end_offset)
    assert known.epoch_at(Offset(log_end_offset)) == model.epoch_at(log_end_offset)
    assert known.latest_epoch == model.latest


@given(histories(), st.integers(-1, 9))
def test_end_is_undefined_in_exactly_three_cases(known: EpochHistory, epoch: int) -> None:
    undefined = known.end_offset_for(Epoch(epoch), Offset(20)) == UNDEFINED_EPOCH_END
    none_asked, nothing_known, above_the_latest = epoch == NO_EPOCH, known == EMPTY, epoch > known.latest_epoch
    assert undefined == (none_asked or nothing_known or above_the_latest)


@given(histories(), st.integers(-1, 9))
def test_truncations_do_what_the_model_does(known: EpochHistory, offset: int) -> None:
    model = pairs_of(known)
    assert pairs_of(known.truncate_from_end(Offset(offset))) == model.truncate_from_end(offset)
    assert pairs_of(known.truncate_from_start(Offset(offset))) == model.truncate_from_start(offset)


@given(histories(), st.integers(-1, 9), st.integers(-1, 9))
def test_truncations_do_not_change_the_epochs_of_what_is_left(known: EpochHistory, offset: int, at: int) -> None:
    truncated_end, truncated_start = known.truncate_from_end(Offset(offset)), known.truncate_from_start(Offset(offset))
    if at < offset:
        assert truncated_end.epoch_at(Offset(at)) == known.epoch_at(Offset(at))
    else:
        assert truncated_start.epoch_at(Offset(at)) == known.epoch_at(Offset(at))


@given(histories(), st.integers(-1, 9))
def test_a_truncation_that_changes_nothing_gives_the_same_history(known: EpochHistory, offset: int) -> None:
    truncated = known.truncate_from_end(Offset(offset))
    assert (truncated is known) == (truncated == known)


@given(histories(), st.integers(-1, 9))
def test_neighbours_of_an_epoch(known: EpochHistory, epoch: int) -> None:
    epochs = sorted(epoch for epoch, _ in known.pairs)
    assert known.epoch_after(Epoch(epoch)) == min((other for other in epochs if other > epoch), default=NO_EPOCH)
    assert known.entry_before(Epoch(epoch)).leader_epoch == max((o for o in epochs if o < epoch), default=NO_EPOCH)
    assert known.previous_epoch == (epochs[-2] if len(epochs) > 1 else NO_EPOCH)
    entry = known.entry_of(Epoch(epoch))
    assert entry in known.entries if epoch in epochs else entry == NO_ENTRY


# ---- examples

KNOWN = history((2, 6), (3, 8), (5, 11))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        pytest.param(-1, UNDEFINED_EPOCH_END, id="no epoch"),
        pytest.param(0, (0, 6), id="below all known: the epoch asked, up to the first known"),
        pytest.param(2, (2, 8), id="a known epoch ends where the next starts"),
        pytest.param(3, (3, 11), id="the last but one"),
        pytest.param(4, (3, 11), id="between: the largest smaller one"),
        pytest.param(5, (5, 14), id="the latest ends with the log"),
        pytest.param(6, UNDEFINED_EPOCH_END, id="above the latest"),
    ],
)
def test_end_offset_of_an_epoch(asked: int, answer: EpochEndOffset) -> None:
    assert KNOWN.end_offset_for(Epoch(asked), Offset(14)) == answer


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        pytest.param(-1, (-1, 6), id="no epoch: what lies before the first"),
        pytest.param(1, (-1, 6), id="below all known: no epoch, up to the first known"),
        pytest.param(2, (2, 8), id="a known epoch"),
        pytest.param(4, (3, 11), id="between: the largest smaller one"),
        pytest.param(5, (5, 14), id="the latest"),
        pytest.param(9, (5, 14), id="above the latest: the latest"),
    ],
)
def test_largest_epoch_up_to_one(asked: int, answer: EpochEndOffset) -> None:
    assert KNOWN.largest_epoch_up_to(Epoch(asked), Offset(14)) == answer


def test_an_empty_history_answers_nothing() -> None:
    assert EMPTY.end_offset_for(Epoch(0), Offset(3)) == UNDEFINED_EPOCH_END
    assert EMPTY.end_offset_for(NO_EPOCH, Offset(3)) == UNDEFINED_EPOCH_END
    assert EMPTY.largest_epoch_up_to(Epoch(0), Offset(3)) == (NO_EPOCH, 3)
    assert (EMPTY.latest_epoch, EMPTY.previous_epoch) == (NO_EPOCH, NO_EPOCH)
    assert EMPTY.entry_of(Epoch(0)) == EMPTY.entry_before(Epoch(9)) == NO_ENTRY
    assert EMPTY.epoch_after(NO_EPOCH) == NO_EPOCH


@pytest.mark.parametrize(
    ("epoch", "start", "entries"),
    [
        pytest.param(5, 11, ((2, 6), (3, 8), (5, 11)), id="the latest again"),
        pytest.param(5, 12, ((2, 6), (3, 8), (5, 11)), id="the latest, later: its first start counts"),
        pytest.param(5, 9, ((2, 6), (3, 8), (5, 9)), id="the latest, earlier"),
        pytest.param(6, 11, ((2, 6), (3, 8), (6, 11)), id="a new one where the latest starts, which had no record"),
        pytest.param(6, 12, ((2, 6), (3, 8), (5, 11), (6, 12)), id="a new one"),
        pytest.param(6, 8, ((2, 6), (6, 8)), id="a new one from an earlier offset on"),
        pytest.param(3, 20, ((2, 6), (3, 20)), id="a lower one erases the later ones, and its own older entry"),
        pytest.param(4, 20, ((2, 6), (3, 8), (4, 20)), id="a lower one that was not known"),
        pytest.param(0, 0, ((0, 0),), id="the lowest from the start"),
    ],
)
def test_assign(epoch: int, start: int, entries: tuple[tuple[int, int], ...]) -> None:
    assert KNOWN.assign(Epoch(epoch), Offset(start)).pairs == entries


def test_assign_without_a_change_gives_the_same_history() -> None:
    assert KNOWN.assign(Epoch(5), Offset(11)) is KNOWN


@pytest.mark.parametrize(
    ("offset", "entries"),
    [(-1, KNOWN.pairs), (0, ()), (6, ()), (7, ((2, 6),)), (8, ((2, 6),)), (9, ((2, 6), (3, 8))), (12, KNOWN.pairs)],
)
def test_truncate_from_end(offset: int, entries: tuple[tuple[int, int], ...]) -> None:
    assert KNOWN.truncate_from_end(Offset(offset)).pairs == entries


@pytest.mark.parametrize(
    ("offset", "entries"),
    [
        (-1, KNOWN.pairs),
        (5, KNOWN.pairs),
        (6, KNOWN.pairs),
        (7, ((2, 7), (3, 8), (5, 11))),
        (8, ((3, 8), (5, 11))),
        (11, ((5, 11),)),
        (20, ((5, 20),)),
    ],
)
def test_truncate_from_start(offset: int, entries: tuple[tuple[int, int], ...]) -> None:
    assert KNOWN.truncate_from_start(Offset(offset)).pairs == entries


def test_epochs_in_force() -> None:
    assert [KNOWN.epoch_at(Offset(offset)) for offset in (5, 6, 7, 8, 10, 11, 99)] == [NO_EPOCH, 2, 2, 3, 3, 5, 5]


def test_neighbours() -> None:
    assert (KNOWN.latest_epoch, KNOWN.previous_epoch) == (5, 3)
    assert history((4, 0)).previous_epoch == NO_EPOCH
    assert KNOWN.entry_of(Epoch(3)) == EpochEntry(Epoch(3), Offset(8))
    assert KNOWN.entry_of(Epoch(4)) == NO_ENTRY
    assert KNOWN.entry_before(Epoch(5)) == EpochEntry(Epoch(3), Offset(8))
    assert KNOWN.entry_before(Epoch(2)) == NO_ENTRY
    assert (KNOWN.epoch_after(Epoch(2)), KNOWN.epoch_after(Epoch(5))) == (3, NO_EPOCH)
