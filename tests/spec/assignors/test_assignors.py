"""Assignors: the vectors of Kafka's own tests, and what any assignment keeps to."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.assignors.sticky import assign_cooperatively, assign_sticky
from kspec.spec.assignors.subscribers import Assignment, Subscriber, in_order
from kspec.spec.assignors.turns import assign_in_turn, assign_ranges
from kspec.spec.assignors.uniform import assign_uniformly
from kspec.spec.values import NO_GENERATION, Generation, MemberId

Assignor = Callable[[tuple[Subscriber[str], ...], dict[str, int]], Assignment[str]]

ASSIGNORS: dict[str, Assignor] = {
    "range": assign_ranges,
    "round-robin": assign_in_turn,
    "sticky": assign_sticky,
    "uniform": assign_uniformly,
}


def partitions(text: str) -> frozenset[tuple[str, int]]:
    """`a:0,2 b:1` as partitions."""
    pairs = (one.split(":") for one in text.split())
    return frozenset((topic, int(index)) for topic, indexes in pairs for index in indexes.split(","))


def member(
    name: str, topics: str, owned: str = "", generation: int = NO_GENERATION, instance: str | None = None
) -> Subscriber[str]:
    return Subscriber(MemberId(name), frozenset(topics.split()), partitions(owned), Generation(generation), instance)


def counted(text: str) -> dict[str, int]:
    """`a3 b2` as the numbers of partitions of topics."""
    return {one[0]: int(one[1:]) for one in text.split()}


VECTORS = [
    # ten partitions, three members
    ("range", "t10", [member("1", "t"), member("2", "t"), member("3", "t")], ["t:0,1,2,3", "t:4,5,6", "t:7,8,9"]),
    ("round-robin", "t10", [member("1", "t"), member("2", "t"), member("3", "t")], ["t:0,3,6,9", "t:1,4,7", "t:2,5,8"]),
    ("sticky", "t10", [member("1", "t"), member("2", "t"), member("3", "t")], ["t:0,3,6,9", "t:1,4,7", "t:2,5,8"]),
    ("uniform", "t10", [member("1", "t"), member("2", "t"), member("3", "t")], ["t:0,1,2,3", "t:4,5,6", "t:7,8,9"]),
    # one of two topics more each: range gives the first member both
    ("range", "a3 b3", [member("1", "a b"), member("2", "a b")], ["a:0,1 b:0,1", "a:2 b:2"]),
    # RangeAssignorTest.testMultipleConsumersMixedTopics
    ("range", "a3 b2", [member("1", "a"), member("2", "a b"), member("3", "a")], ["a:0", "a:1 b:0,1", "a:2"]),
    # RangeAssignorTest.testStaticMemberRangeAssignmentPersistent, -DynamicMembers
    ("range", "a2", [member("1", "a", instance="z"), member("2", "a", instance="y"), member("0", "a")], ["a:1", "a:0", ""]),
    # RoundRobinAssignorTest.testMultipleConsumersMixedTopics, testTwoConsumersTwoTopicsSixPartitions
    ("round-robin", "a3 b2", [member("1", "a"), member("2", "a b"), member("3", "a")], ["a:0", "a:1 b:0,1", "a:2"]),
    ("round-robin", "a3 b3", [member("1", "a b"), member("2", "a b")], ["a:0,2 b:1", "a:1 b:0,2"]),
    # StickyAssignorTest, of what AbstractStickyAssignorTest has
    ("sticky", "a3", [member("1", "a")], ["a:0,1,2"]),
    ("sticky", "a1", [member("1", "a"), member("2", "a")], ["a:0", ""]),
    ("sticky", "a3 b2", [member("1", "a"), member("2", "a b"), member("3", "a")], ["a:0,2", "b:0,1", "a:1"]),
    ("sticky", "a3 b3", [member("1", "a b"), member("2", "a b")], ["a:0,2 b:1", "a:1 b:0,2"]),
    (  # testConsumerOwningMinQuotaExpectedMaxQuota
        "sticky",
        "a2 b3",
        [member("1", "a b", "a:0 b:1", 1), member("2", "a b", "a:1 b:2", 1)],
        ["a:0 b:0,1", "a:1 b:2"],
    ),
    (  # testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers
        "sticky",
        "a2 b2",
        [member("1", "a b", "a:0 b:0", 1), member("2", "a b", "a:1 b:1", 1), member("3", "a b", "", 1)],
        ["a:0 b:0", "a:1", "b:1"],
    ),
    (  # testAllConsumersAreUnderMinQuota
        "sticky",
        "a2 b3",
        [member("1", "a b", "a:0", 1), member("2", "a b", "a:1", 1), member("3", "a b", "", 1)],
        ["a:0 b:1", "a:1 b:2", "b:0"],
    ),
    ("sticky", "a3", [member("1", "a", "a:0,1,2", 1), member("2", "a", "", 1)], ["a:0,1", "a:2"]),
    # testAssignmentWithMultipleGenerations: the later generation is believed, and nobody of two in the same
    (
        "sticky",
        "a6",
        [member("1", "a", "a:0,1", 2), member("2", "a", "a:2,3", 2), member("3", "a", "a:2,4", 1)],
        ["a:0,1", "a:2,3", "a:4,5"],
    ),
    ("sticky", "a2", [member("1", "a", "a:0,1", 1), member("2", "a", "a:0,1", 1)], ["a:0", "a:1"]),
    # a member gives up a topic; another, of which less is known, has had it earlier
    ("sticky", "a2 b2", [member("1", "a", "a:0 b:0", 1), member("2", "a b", "a:1 b:1", 1)], ["a:0,1", "b:0,1"]),
    # what went one way and has to come back does so
    (
        "uniform",
        "a2 b2",
        [member("1", "a b", "a:0,1 b:0,1"), member("2", "b"), member("3", "a", "b:0")],
        ["b:0", "b:1", "a:0,1"],
    ),
    ("uniform", "a4", [member("1", "a", "a:0,1,2,3"), member("2", "a", "b:1")], ["a:0,1", "a:2,3"]),
    ("uniform", "", [], []),
    ("sticky", "", [], []),
    ("uniform", "a1", [member("1", "b"), member("2", "b")], ["", ""]),
]


@pytest.mark.parametrize(("name", "counts", "members", "expected"), VECTORS)
def test_vector(name: str, counts: str, members: list[Subscriber[str]], expected: list[str]) -> None:
    found = ASSIGNORS[name](tuple(members), counted(counts))
    assert [found[one.member_id] for one in members] == [partitions(text) for text in expected]


def test_a_partition_changes_hands_in_two_rebalances() -> None:
    """`CooperativeStickyAssignorTest.testAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumers…`."""
    first = member("1", "a", "a:0,1,2,3", 1)
    found = assign_cooperatively((first, member("2", "a")), {"a": 4})
    assert found == {"1": partitions("a:0,1"), "2": frozenset()}
    after = assign_cooperatively((member("1", "a", "a:0,1", 2), member("2", "a", "", 2)), {"a": 4})
    assert after == {"1": partitions("a:0,1"), "2": partitions("a:2,3")}


def test_who_had_a_partition_earlier_gets_it_back() -> None:
    """`AbstractStickyAssignorTest.testAssignmentWithConflictingPreviousGenerations`, with different subscriptions."""
    one = member("1", "a", "a:0,1,2", 2)
    new, late = member("3", "a b"), member("4", "a", "a:0", 1)
    found = assign_sticky((one, new, late), {"a": 3})
    assert found == {"1": partitions("a:2"), "3": partitions("a:1"), "4": partitions("a:0")}
    found = assign_sticky((one, new, late._replace(owned=frozenset())), {"a": 3})
    assert found == {"1": partitions("a:2"), "3": partitions("a:0"), "4": partitions("a:1")}


def test_static_members_come_first() -> None:
    mixed = (member("b", "a"), member("a", "a"), member("z", "a", instance="i"), member("y", "a", instance="h"))
    assert [one.member_id for one in in_order(mixed)] == ["y", "z", "a", "b"]


TOPICS = ("a", "b", "c")


@st.composite
def groups(draw: st.DrawFn, same: bool = False) -> tuple[tuple[Subscriber[str], ...], dict[str, int]]:
    counts = {topic: draw(st.integers(1, 6)) for topic in draw(st.sets(st.sampled_from(TOPICS)))}
    subscribed = st.frozensets(st.sampled_from(TOPICS), min_size=1)
    of_all = draw(subscribed)
    found = []
    free = [(topic, index) for topic in sorted(counts) for index in range(counts[topic])]
    for name in "123456"[: draw(st.integers(1, 6))]:
        owned = draw(st.frozensets(st.sampled_from(free))) if free else frozenset()
        free = [one for one in free if one not in owned]
        topics = of_all if same else draw(subscribed)
        generation = Generation(draw(st.integers(1, 2)))
        found.append(Subscriber(MemberId(name), topics, owned, generation))
    return tuple(found), counts


def check(members: tuple[Subscriber[str], ...], counts: dict[str, int], found: Assignment[str]) -> None:
    """Every partition that anybody subscribes to has one owner, who subscribes to it."""
    wanted = {topic for one in members for topic in one.topics}
    given = sorted(partition for mine in found.values() for partition in mine)
    assert given == sorted((topic, index) for topic in counts if topic in wanted for index in range(counts[topic]))
    for one in members:
        assert {topic for topic, _ in found[one.member_id]} <= one.topics


@given(groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_everything_has_one_owner_who_subscribes(
    group: tuple[tuple[Subscriber[str], ...], dict[str, int]], name: str
) -> None:
    check(*group, ASSIGNORS[name](*group))


@given(groups(same=True), st.sampled_from(["round-robin", "sticky", "uniform"]))
def test_shares_differ_by_one_at_most(group: tuple[tuple[Subscriber[str], ...], dict[str, int]], name: str) -> None:
    sizes = [len(mine) for mine in ASSIGNORS[name](*group).values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups(), st.sampled_from(["sticky", "uniform"]))
def test_nothing_moves_without_need(group: tuple[tuple[Subscriber[str], ...], dict[str, int]], name: str) -> None:
    members, counts = group
    found = ASSIGNORS[name](members, counts)
    again = tuple(one._replace(owned=found[one.member_id], generation=Generation(3)) for one in members)
    assert ASSIGNORS[name](again, counts) == found


@given(groups())
def test_nobody_gets_what_another_has_yet_to_give_up(group: tuple[tuple[Subscriber[str], ...], dict[str, int]]) -> None:
    members, counts = group
    found = assign_cooperatively(members, counts)
    for one in members:
        for other in members:
            if one.member_id != other.member_id:
                assert not found[one.member_id] & other.owned


@given(groups(same=True))
def test_ranges_follow_each_other(group: tuple[tuple[Subscriber[str], ...], dict[str, int]]) -> None:
    members, counts = group
    found = assign_ranges(members, counts)
    for topic in counts:
        shares = [sorted(index for of, index in found[one.member_id] if of == topic) for one in in_order(members)]
        flat = [index for share in shares for index in share]
        assert flat == sorted(flat)
        assert all(len(one) >= len(other) for one, other in pairwise(shares))
