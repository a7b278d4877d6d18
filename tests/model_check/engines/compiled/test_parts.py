"""Corners of the compiled engine that the published models do not reach, and the invariants of its parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import REFUSED, Model, then, when
from kspec.model_check.engines import reference
from kspec.model_check.engines.compiled import explore, tables
from kspec.model_check.engines.compiled.layout import bits_for, compact_fields, wide_fields
from tests.model_check.engines.comparison import assert_replays, numbers_of

EVERYTHING = Limits(stop_at_first=False)


def assert_like_reference(model: Model) -> None:
    found = explore(model, model.properties, EVERYTHING, 1)
    assert numbers_of(found) == numbers_of(reference.explore(model, model.properties, EVERYTHING))
    if found.deadlock_trace is not None:
        assert_replays(model, found.deadlock_trace)


def counters(number: int, most: int) -> Model:
    """Independent counters: (most + 1) ** number states."""
    model = Model("counters", {})
    for key in range(number):
        slot = model.slot("counter", 0, key)
        model.action(
            "count", {"counter": key}, [when(lambda value: value < most, slot)], [then(slot, lambda v: v + 1, slot)]
        )
    return model


def test_no_actions() -> None:
    model = Model("still", {})
    model.slot("only", "value")
    assert_like_reference(model)


def test_an_action_that_reads_nothing() -> None:
    model = Model("constant", {})
    slot = model.slot("slot", "before")
    model.slot("other", 0)
    model.action("always", {}, [when(lambda: True)], [then(slot, lambda: "after")])
    model.action("never", {}, [when(lambda: False)], [then(slot, lambda: "elsewhere")])
    assert_like_reference(model)


def test_an_action_without_effects() -> None:
    model = counters(2, 2)
    model.action("look", {}, [when(lambda value: value == 1, model.slots[0])], [])
    assert_like_reference(model)


@pytest.mark.slow
@pytest.mark.parametrize("number", [63, 64, 65, 128, 129, 200])
def test_many_actions(number: int) -> None:
    model = Model("many", {})
    slots = [model.slot("slot", 0, key) for key in range(3)]
    for key in range(number):
        slot = slots[key % 3]
        model.action(
            f"to {key}",
            {},
            [when(lambda value, key=key: value in (0, key + 1) and key % 2 == 0, slot)],
            [then(slot, lambda key=key: key + 1)],
        )
    assert_like_reference(model)


def test_more_values_than_the_first_layouts_hold() -> None:
    model = Model("tree", {})
    slot = model.slot("node", 1)
    for child in range(2):
        effect = then(slot, lambda value, child=child: 2 * value + child, slot)
        model.action("descend", {"child": child}, [when(lambda value: value < 1 << 16, slot)], [effect])
    found = explore(model, [], EVERYTHING, 1)
    assert (found.distinct_states, found.depth, found.deadlocks) == ((1 << 17) - 1, 17, 1 << 16)


def test_states_of_many_words() -> None:
    model = counters(40, 1)
    ready = model.slots[0]
    for key in range(2, 40):
        model.actions[key] = model.actions[key].__class__(
            "count",
            {"counter": key},
            (*model.actions[key].guards, when(lambda value: value == 9, ready)),
            model.actions[key].effects,
        )
    wide = [model.slot("wide", 0, key) for key in range(40)]
    model.action(
        "fill",
        {},
        [when(lambda v: v == 0, ready)],
        [then(slot, lambda key=key: f"value {key}") for key, slot in enumerate(wide)],
    )
    assert_like_reference(model)


def test_a_guard_that_is_undefined_where_another_fails() -> None:
    model = Model("partial", {})
    number, other = model.slot("number", 0), model.slot("other", 3)
    model.action("step", {}, [when(lambda value: value < 4, number)], [then(number, lambda value: value + 1, number)])
    model.action(
        "divide",
        {},
        [
            when(lambda value: value != 0, number),
            when(lambda value: 6 // value > 1, number),
            when(lambda value, rest: 6 // value > rest, number, other),
        ],
        [then(other, lambda value, rest: 6 // value - rest, number, other)],
    )
    assert_like_reference(model)


def test_an_error_in_a_rule_is_raised() -> None:
    model = Model("faulty", {})
    number, other = model.slot("number", 3), model.slot("other", 0)
    effect = then(number, lambda value: value - 1, number)
    model.action("step", {}, [when(lambda value, rest: 6 // value > rest, number, other)], [effect])
    with pytest.raises(ZeroDivisionError):
        explore(model, [], EVERYTHING, 1)


def test_effects_may_refuse() -> None:
    model = counters(2, 3)
    first, second = model.slots
    model.action("swap", {}, [], [then((first, second), lambda a, b: (b, a) if a > b else REFUSED, first, second)])
    assert_like_reference(model)


def test_a_constraint_of_several_slots() -> None:
    model = counters(3, 5)
    model.constraint.append(when(lambda *values: sum(values) < 7, *model.slots))
    model.constraint.append(when(lambda value: value != 4, model.slots[1]))
    model.always("small", [when(lambda a, b: a + b < 6, *model.slots[:2])], "the first two are small", None)
    assert_like_reference(model)


def views_of_counters(number: int, most: int) -> Model:
    """Counters that are only looked at through views: of one slot, of two, and of all."""
    model = counters(number, most)
    slots = model.slots
    parity = [model.view("parity", lambda value: value % 2, slot, key=slot.key) for slot in slots]
    low = model.view("lower of the first two", min, *slots[:2])
    total = model.view("total", lambda *values: sum(values), *slots)
    model.action("reset", {}, [when(lambda value: value == 1, total)], [then(slots[0], lambda value: value * 0, low)])
    model.action(
        "jump",
        {},
        [when(lambda first, second: first == second == 1, *parity[:2]), when(lambda value: value > 0, low)],
        [then((slots[0], slots[1]), lambda lower, value: (lower, min(value, most)), low, total)],
    )
    model.constraint.append(when(lambda value: value < number * most, total))
    model.always("odd or low", [when(lambda value, sums: value == 1 or sums < 5, parity[-1], total)], "of views", None)
    model.sometimes("all odd", [when(lambda *values: all(values), *parity)], "of many views")
    return model


@pytest.mark.parametrize(("number", "most"), [(2, 3), (3, 3), (4, 2)])
def test_views(number: int, most: int) -> None:
    assert_like_reference(views_of_counters(number, most))


@pytest.mark.parametrize("dense_bits", [0, 24])
def test_views_whatever_the_kind_of_table(dense_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "DENSE_BITS", dense_bits)
    assert_like_reference(views_of_counters(3, 3))


def test_a_view_that_raises_is_seen() -> None:
    model = counters(2, 3)
    view = model.view("reciprocal", lambda value: 1 // (2 - value), model.slots[0])
    model.action("look", {}, [when(lambda value: value >= 0, view)], [])
    with pytest.raises(ZeroDivisionError):
        explore(model, [], EVERYTHING, 1)


@given(st.lists(st.integers(1, 1 << 20), min_size=1, max_size=40))
def test_fields_do_not_overlap_and_have_room(counts: list[int]) -> None:
    for fields in (wide_fields(counts), compact_fields(counts), compact_fields(counts, spare=0)):
        used = [0] * fields.words
        for slot, width in enumerate(fields.widths):
            assert width >= bits_for(counts[slot])
            field = ((1 << width) - 1) << int(fields.arrays.shift[slot])
            assert field < 1 << 64
            assert not used[int(fields.arrays.word[slot])] & field
            used[int(fields.arrays.word[slot])] |= field
        assert fields.has_room(counts)
