"""Committed offsets as clients saw them: a history is wrong if no order of commits and readings explains it."""

from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.trials.history.commits import NO_OFFSET, CommittedOffset, GroupHistory


@dataclass(frozen=True)
class Operation:
    """A commit (its value is new) or a reading, from its begin to its end; a commit without end is never answered."""

    begin: int
    end: int | None
    value: int
    is_commit: bool


def explained(operations: list[Operation]) -> bool:
    """Whether an order explains the operations, by trying all: what ends before another begins is before it."""
    answered = [one for one in operations if one.end is not None]
    open_commits = [one for one in operations if one.end is None]
    for mask in range(2 ** len(open_commits)):
        chosen = answered + [one for place, one in enumerate(open_commits) if mask >> place & 1]
        for order in permutations(chosen):
            if _keeps_time(order) and _reads_what_is_there(order):
                return True
    return False


def _keeps_time(order: tuple[Operation, ...]) -> bool:
    return not any(
        later.end is not None and later.end < earlier.begin
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def _reads_what_is_there(order: tuple[Operation, ...]) -> bool:
    value = NO_OFFSET
    for one in order:
        if one.is_commit:
            value = one.value
        elif one.value != value:
            return False
    return True


def verdict(operations: list[Operation]) -> bool:
    """Whether the register has no complaint about the same history."""
    register = CommittedOffset()
    events = [(one.begin, 0, one) for one in operations] + [(one.end, 1, one) for one in operations if one.end is not None]
    begun: dict[int, object] = {}
    for _, ends, one in sorted(events, key=lambda event: event[0]):
        if not ends:
            begun[id(one)] = register.send(one.value) if one.is_commit else register.begin_to_read()
        elif one.is_commit:
            register.acknowledge(begun[id(one)])  # type: ignore[arg-type]
        elif register.read(begun[id(one)], one.value) is not None:  # type: ignore[arg-type]
            return False
    return register.look_at_all() is None


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to three commits and three readings, which begin and end in any order."""
    commits, reads = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    ends = draw(st.permutations([place for place in range(commits + reads) for _ in range(2)]))
    found = []
    for number in range(commits + reads):
        begin = ends.index(number)
        end: int | None = begin + 1 + ends[begin + 1 :].index(number)
        is_commit = number < commits
        if is_commit and draw(st.integers(0, 3)) == 0:
            end = None
        value = number if is_commit else draw(st.sampled_from([NO_OFFSET, *range(commits)]))
        found.append(Operation(begin, end, value, is_commit))
    return found


@pytest.mark.slow
@given(histories())
@settings(max_examples=1500, deadline=None)
def test_a_history_is_wrong_if_no_order_explains_it(history: list[Operation]) -> None:
    begins = {one.value: one.begin for one in history if one.is_commit}
    if any(
        not one.is_commit and one.value in begins and one.end is not None and one.end < begins[one.value] for one in history
    ):
        return  # nobody reads what nobody has sent: `read` says so by itself
    assert verdict(history) == explained(history)


def test_an_acknowledged_commit_that_is_not_read_is_lost() -> None:
    register = CommittedOffset()
    register.acknowledge(register.send(7))
    assert register.read(register.begin_to_read(), NO_OFFSET) is not None


def test_a_commit_without_an_answer_may_be_read_at_any_time_later() -> None:
    register = CommittedOffset()
    register.send(1)
    register.acknowledge(register.send(2))
    assert register.read(register.begin_to_read(), 2) is None
    assert register.read(register.begin_to_read(), 1) is None
    assert register.read(register.begin_to_read(), 2) is None
    assert register.look_at_all() == "offset 2 is read again after offset 1"


def test_what_was_refused_or_never_sent_is_not_read() -> None:
    register = CommittedOffset()
    register.refuse(register.send(1))
    assert register.read(register.begin_to_read(), 1) == "offset 1 is committed, and its commit was refused"
    assert register.read(register.begin_to_read(), 5) == "offset 5 is committed, and nobody has sent it"


@pytest.mark.parametrize(("member_id", "generation", "is_fenced"), [("a", 1, True), ("a", 2, False), ("b", 2, True)])
def test_commits_of_replaced_members_are_fenced(member_id: str, generation: int, *, is_fenced: bool) -> None:
    group = GroupHistory("group", 1)
    assert group.assign(2, "first") is None
    group.replace("b")
    commit = group.send(0, member_id, generation)
    assert (group.offsets_of(commit).acknowledge(commit) is not None) == is_fenced


def test_one_generation_has_the_assignment_of_one_leader() -> None:
    group = GroupHistory("group", 1)
    assert group.assign(1, "one") is None
    assert group.assign(1, "one") is None
    assert group.assign(1, "other") == "members of generation 1 have assignments of one and of other"
