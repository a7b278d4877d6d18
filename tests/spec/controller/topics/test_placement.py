"""Placement of replicas. The expected values are what Apache Kafka 4.4's `StripedReplicaPlacer` and Java's `Random` give."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.controller.topics.chance import chance_of, draw, shuffled
from kspec.spec.controller.topics.placement import UsableBroker, place, wrong_with_placement
from kspec.spec.values import BrokerId


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> tuple[UsableBroker, ...]:
    return tuple(UsableBroker(BrokerId(number), rack, number in fenced) for number, rack in enumerate(racks))


def test_chance_is_javas() -> None:
    chance, drawn = chance_of(42), []
    for below in (3, 8, 10, 1000, 2**30 + 1, 2):
        chance, number = draw(chance, below)
        drawn.append(number)
    assert drawn == [2, 0, 8, 884, 662969970, 1]
    assert shuffled(chance_of(7), tuple(range(7)))[1] == (5, 6, 1, 4, 0, 2, 3)


def test_a_number_that_would_favour_some_is_drawn_again() -> None:
    """Half of all draws below 2³⁰ + 1 are too large to be fair; the mean is that of a fair draw all the same."""
    below, total, chance = 2**30 + 1, 0, chance_of(1)
    for _ in range(2000):
        chance, number = draw(chance, below)
        assert 0 <= number < below
        total += number
    assert 0.45 < total / 2000 / below < 0.55


@pytest.mark.parametrize(
    ("seed", "placed"),
    [
        (0, "120 201 012 120 201 012 120"),
        (1, "120 201 012 201 012 120 120"),
        (42, "012 120 201 102 021 210 210"),
    ],
)
def test_replicas_are_placed_as_kafka_places_them(seed: int, placed: str) -> None:
    found = place(brokers(None, None, None, None, fenced=(3,)), 7, 3, seed)
    assert " ".join("".join(map(str, replicas)) for replicas in found) == placed


def test_racks_take_turns_as_in_kafka() -> None:
    found = place(brokers("1", "1", "2", "2", "2", fenced=(0,)), 9, 3, 5)
    assert " ".join("".join(map(str, replicas)) for replicas in found) == "412 120 314 140 130 214 140 312 130"
    found = place(brokers("0", "1", "2", fenced=(0, 1)), 4, 3, 5)
    assert " ".join("".join(map(str, replicas)) for replicas in found) == "201 201 210 201"


@pytest.mark.parametrize(
    ("usable", "replicas", "fits"),
    [
        (brokers(None, None), 2, True),
        (brokers(None, None), 3, False),
        (brokers(None, None), 0, False),
        (brokers(None, None, fenced=(0, 1)), 1, False),
        (brokers(None, None, fenced=(0,)), 2, True),
        ((), 1, False),
    ],
)
def test_replicas_must_fit(usable: tuple[UsableBroker, ...], replicas: int, fits: bool) -> None:
    assert (wrong_with_placement(usable, replicas) is None) == fits


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=7),
    fenced=st.sets(st.integers(0, 6)),
    partitions=st.integers(1, 12),
    seed=st.integers(0, 2**48 - 1),
    data=st.data(),
)
def test_any_placement_is_a_good_one(
    racks: list[str | None], fenced: set[int], partitions: int, seed: int, data: st.DataObject
) -> None:
    usable = brokers(*racks, fenced=tuple(fenced))
    replicas = data.draw(st.integers(1, len(usable)))
    if wrong_with_placement(usable, replicas) is not None:
        assert all(broker.fenced for broker in usable)
        return
    by_id = {broker.broker: broker for broker in usable}
    placed = place(usable, partitions, replicas, seed)
    assert len(placed) == partitions
    for chosen in placed:
        assert len(set(chosen)) == len(chosen) == replicas
        assert not by_id[chosen[0]].fenced


def test_leaders_are_spread_evenly() -> None:
    placed = place(brokers(*[None] * 5), 100, 3, 9)
    leaders = Counter(chosen[0] for chosen in placed)
    assert set(leaders.values()) == {20}
