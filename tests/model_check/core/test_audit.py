"""The audit finds actions that depend on, or change, more than they declare."""

from typing import Any

import pytest

from kspec.model_check.core.audit import AuditReport, audit, reachable_states
from kspec.model_check.core.model import Effect, Local, Model, then, when
from kspec.model_check.models import MODELS
from tests.limits.marks import marked
from tests.model_check.toy import counters

ROOMY: dict[str, dict[str, Any]] = {
    "transactions": {"late_requests": 1},
    "delivery": {"commits": "before", "rebalances": 1, "leader_changes": 1},
}
"""The bounds of models that have too few states without any."""


@pytest.mark.parametrize("name", marked(MODELS, slow=["kafka", "messages", "controller"], nightly=[]))
def test_every_model_reads_and_writes_what_it_declares(name: str) -> None:
    report = audit(MODELS[name].build(ROOMY.get(name, {})), most=150, unused=False)
    assert report.findings == []
    assert report.states == 150
    assert report.evaluations > (2_000 if name in ("shutdown", "transactions") else 5_000)


class UndeclaredReader(Local):
    """A function that looks at the whole state although it declares less, as a model could by mistake."""

    def bind(self):  # type: ignore[no-untyped-def]
        return lambda state: self.function(*state)


def test_a_guard_that_reads_another_slot_is_found() -> None:
    model = counters()
    first, _ = model.slots
    guard = UndeclaredReader(lambda a, b: b == 0, (first,))
    model.action("Cheat", {}, [guard], [then(first, lambda count: min(count + 1, 3), first)])
    (finding,) = audit(model, most=50).findings
    assert finding == "Cheat(): depends on count[2], which it does not declare"


def test_an_effect_that_reads_another_slot_is_found() -> None:
    model = counters()
    first, _ = model.slots
    model.action("Cheat", {}, [], [Effect(UndeclaredReader(lambda a, b: min(a + b, 3), (first,)), (first,))])
    (finding,) = audit(model, most=50).findings
    assert "count[1] depends on count[2]" in finding


def test_an_effect_with_a_memory_is_found() -> None:
    model = counters()
    first, _ = model.slots
    calls: list[int] = []

    def remembers(count: int) -> int:
        calls.append(count)
        return len(calls) % 3

    model.action("Cheat", {}, [], [then(first, remembers, first)])
    assert "Cheat(): two evaluations on the same state differ" in audit(model, most=50).findings


def test_a_read_that_never_matters_is_told() -> None:
    model = counters()
    first, second = model.slots
    model.action("Wide", {}, [when(lambda a, b: a == 0, first, second)], [then(first, lambda a: a, first)])
    report = audit(model, most=50)
    assert report.findings == []
    assert report.unused_reads == ["Wide(), guard 0: count[2] is declared and never matters"]


def test_an_action_may_not_write_a_slot_twice() -> None:
    model = Model("twice", {})
    slot = model.slot("value", 0)
    with pytest.raises(AssertionError, match="writes a slot twice"):
        model.action("Twice", {}, [], [then(slot, lambda value: 1, slot), then(slot, lambda value: 2, slot)])


def test_the_sample_is_reachable_and_reproducible() -> None:
    model = counters(limit=5)
    states = reachable_states(model, 15, seed=3)
    assert states == reachable_states(model, 15, seed=3)
    assert len(set(states)) == 15
    assert all(0 <= second <= first <= 5 for first, second in states)


def test_rules_need_not_be_defined_where_another_one_forbids_the_action() -> None:
    model = Model("partial", {})
    slot = model.slot("x", 0)
    guards = [when(lambda x: 6 // (2 - x) > 0, slot), when(lambda x: x < 2, slot)]
    model.action("Step", {}, guards, [then(slot, lambda x: x + 6 // (2 - x) // 3, slot)])
    assert audit(model) == AuditReport(3, audit(model).evaluations)
