"""Break one thing that the compiled engine has learned, and its numbers must no longer be the reference engine's."""

from collections.abc import Callable
from typing import Any

import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import Effect, Local, Model, Slot
from kspec.model_check.engines import reference
from kspec.model_check.engines.compiled import explore, rulebook, tables
from kspec.model_check.engines.compiled.interning import Domain
from kspec.model_check.engines.compiled.kernels import DISABLED, FIRST_ROW, HOLDS
from tests.model_check.engines.comparison import model_of, numbers_of

EVERYTHING = Limits(stop_at_first=False)
CodesFor = Callable[[Any, Any], list[int]]


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of("kip-101", {"replicas": 2, "max_epoch": 1})


@pytest.fixture(scope="module")
def expected(model: Model) -> dict[str, Any]:
    return numbers_of(reference.explore(model, model.properties, EVERYTHING))


def differs(model: Model, expected: dict[str, Any]) -> bool:
    """Whether the engine is wrong in a way that shows: other numbers, or no numbers."""
    try:
        return numbers_of(explore(model, model.properties, EVERYTHING, 1)) != expected
    except (KeyError, IndexError, AssertionError, TypeError):
        return True


class Nth:
    """Changes the n-th learned entry that it is given to change, and remembers whether there was one."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.changed = False

    def change(self, codes: list[int], changeable: Callable[[int], bool], new: Callable[[int], int]) -> list[int]:
        for place, code in enumerate(codes):
            if changeable(code):
                self.left -= 1
                if self.left == -1:
                    self.changed = True
                    codes[place] = new(code)
        return codes


def test_nothing_broken(model: Model, expected: dict[str, Any]) -> None:
    assert not differs(model, expected)


def broken_entry(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[tables.Table],
    number: int,
    changeable: Callable[[int], bool],
    new: Callable[[int], int],
) -> Nth:
    original: CodesFor = kind.codes_for
    nth = Nth(number)
    monkeypatch.setattr(kind, "codes_for", lambda self, asked: nth.change(original(self, asked), changeable, new))
    return nth


@pytest.mark.slow
@pytest.mark.parametrize("number", [*range(0, 60, 4), 97, 151, 202])
def test_an_effect_that_is_not_taken(
    number: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nth = broken_entry(monkeypatch, tables.ActionTable, number, lambda code: code >= FIRST_ROW, lambda code: DISABLED)
    assert differs(model, expected)
    assert nth.changed


@pytest.mark.parametrize("number", range(1, 60, 4))
def test_an_effect_with_the_outcome_of_another(
    number: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nth = broken_entry(monkeypatch, tables.ActionTable, number, lambda code: code > FIRST_ROW, lambda code: FIRST_ROW)
    assert differs(model, expected)
    assert nth.changed


A_FEW_TIMES_AS_MANY = 4
"""An action that is wrongly possible may lead on for ever."""


def wrong_guard_is_seen(model: Model, expected: dict[str, Any]) -> bool:
    limits = Limits(stop_at_first=False, max_states=A_FEW_TIMES_AS_MANY * expected["distinct"])
    try:
        return numbers_of(explore(model, model.properties, limits, 1)) != expected
    except (KeyError, IndexError, AssertionError, TypeError):
        return True


def test_guards_of_one_slot_that_wrongly_hold(model: Model, expected: dict[str, Any]) -> None:
    """For one value of a slot, all guards of this slot hold.

    A few do not matter: wherever they fail, another guard of the same actions fails too.
    """
    original: Callable[[Any, Any, Any], int] = rulebook.ActionMasks.mask_of
    seen = []
    for number in range(0, 40, 5):
        nth = Nth(number)

        def mask_of(self: Any, guards: Any, value: Any, nth: Nth = nth) -> int:
            everything = self.all_actions
            (mask,) = nth.change([original(self, guards, value)], lambda mask: mask != everything, lambda mask: everything)
            return mask

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rulebook.ActionMasks, "mask_of", mask_of)
            seen.append(wrong_guard_is_seen(model, expected))
        assert nth.changed
    assert sum(seen) > 0.7 * len(seen)


def test_guards_of_two_slots_that_wrongly_hold(model: Model, expected: dict[str, Any]) -> None:
    """For one pair of values of two slots, all guards of these slots hold."""
    original: CodesFor = tables.GuardTable.codes_for
    seen = []
    for number in range(0, 30, 5):
        nth = Nth(number)

        def codes_for(self: Any, asked: Any, nth: Nth = nth) -> list[int]:
            everything = FIRST_ROW + self.masks.setdefault(0, len(self.masks))
            return nth.change(original(self, asked), lambda code: code != everything, lambda code: everything)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables.GuardTable, "codes_for", codes_for)
            seen.append(wrong_guard_is_seen(model, expected))
        assert nth.changed
    assert sum(seen) > 0.7 * len(seen)


@pytest.mark.parametrize("number", range(8))
def test_a_mask_that_rules_everything_out(
    number: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original: CodesFor = tables.GuardTable.codes_for
    seen = Nth(number)

    def codes_for(self: Any, asked: Any) -> list[int]:
        everything = FIRST_ROW + self.masks.setdefault(self.actions, len(self.masks))
        nothing = FIRST_ROW + self.masks.setdefault(0, len(self.masks))
        return seen.change(original(self, asked), lambda code: code == nothing, lambda code: everything)

    monkeypatch.setattr(tables.GuardTable, "codes_for", codes_for)
    assert differs(model, expected)
    assert seen.changed


@pytest.mark.parametrize("number", range(0, 200, 20))
def test_a_term_that_wrongly_decides(
    number: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original: CodesFor = tables.TermTable.codes_for
    nth = Nth(number)

    def codes_for(self: Any, asked: Any) -> list[int]:
        if not all(always for _, always, _ in self.terms):
            return original(self, asked)
        wrong = FIRST_ROW + self.decisions.setdefault(1 << self.terms[0][0], len(self.decisions))
        return nth.change(original(self, asked), lambda code: code == HOLDS, lambda code: wrong)

    monkeypatch.setattr(tables.TermTable, "codes_for", codes_for)
    assert differs(model, expected)
    assert nth.changed


@pytest.mark.parametrize("dropped", [0, 1, -1])
def test_a_read_set_without_one_slot(
    dropped: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[[Any, Any], tuple[int, ...]] = tables.Columns.of_all

    def columns(self: Any, reads: Any) -> tuple[int, ...]:
        found = original(self, reads)
        return tuple(column for column in found if column != found[dropped]) if len(found) > 1 else found

    monkeypatch.setattr(tables.Columns, "of_all", columns)
    assert differs(model, expected)


def test_a_rule_that_reads_a_slot_which_it_does_not_declare() -> None:
    model, expected = undeclared_read(declared=True)
    assert not differs(model, expected)
    model, expected = undeclared_read(declared=False)
    assert differs(model, expected)


def undeclared_read(declared: bool) -> tuple[Model, dict[str, Any]]:
    """A model whose action looks at a second slot, declared or through the back door; and its right numbers."""
    model = Model("toy", {})
    first, second = model.slot("first", 0), model.slot("second", 0)
    peeked = [0]

    def step(slot: Slot, other: Slot) -> None:
        def may(value: int, seen: int | None = None) -> bool:
            return value < 3 and (peeked[0] if seen is None else seen) != 1

        reads = (slot, other) if declared else (slot,)
        model.action(f"step {slot.name}", {}, [Local(may, reads)], [Effect(Local(_next, (slot,)), (slot,))])

    step(first, second)
    step(second, first)
    right = undeclared_read(declared=True)[1] if not declared else numbers_of(reference.explore(model, [], EVERYTHING))
    return model, right


def _next(value: int) -> int:
    return value + 1


@pytest.mark.parametrize("merged", [1, 2, 3, 5])
def test_two_values_with_one_number(
    merged: int, model: Model, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Domain.number
    left = [merged]

    def number(self: Domain, value: Any) -> int:
        if value not in self.numbers and len(self):
            left[0] -= 1
            if left[0] == 0:
                self.numbers[value] = 0
                return 0
        return original(self, value)

    monkeypatch.setattr(Domain, "number", number)
    assert differs(model, expected)
    assert left[0] <= 0
