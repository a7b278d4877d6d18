"""The relation that symbolic evaluation gives of a rule, or of a model's action, is what Python does, and nothing else."""

import random
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getmembers, isfunction, signature
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kspec.model_check.core.audit import reachable_states
from kspec.model_check.core.model import Model
from kspec.model_check.models import MODELS
from kspec.model_check.models.published.async_isr import LEADER
from kspec.proofs.refutation.finite import spelled_out
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.paths import Path, explore
from kspec.proofs.symbolic.relation import SymbolicStep, step
from kspec.proofs.symbolic.shapes import RecordShape, Shape, in_model, plain, shape_of
from kspec.proofs.symbolic.state import SymbolicState, shapes_of, unknown_state
from kspec.spec.log.algebra import Log
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.values import BrokerId, Offset, Record
from tests.limits.marks import is_night
from tests.spec import strategies

RULES = (
    "broker.rules.epoch_lookup",
    "broker.rules.fencing",
    "broker.rules.high_watermark",
    "broker.rules.isr.announcement",
    "broker.rules.isr.errors",
    "broker.rules.isr.proposal",
    "broker.rules.leadership",
    "broker.rules.produce",
    "broker.rules.truncation",
    "controller.rules.isr_writer",
    "published.async_isr",
    "published.election",
    "published.fetch",
    "published.high_watermark",
    "published.isr",
    "published.produce",
    "published.replica",
    "published.truncation",
    "zookeeper.decisions",
)
BROKERS = Brokers([1, 2, 3, 4])
BEYOND = range(-1, 9)
"""Offsets and epochs that cover every log drawn here."""

NOT_ALONE = {
    "truncate_to_high_watermark": "asks a leader",
    "truncate_to_epoch_end": "asks a leader; see the action of kip-101 below",
    "truncate_to_common_epoch": "asks a leader, in a loop; see proofs.induction.exchange",
    "high_watermark_of": "reads a dictionary by broker; see the properties of async-isr",
    "offset_for_leader_epoch_without_log": "has a truth as its only parameter",
    "accept_any_replica_epoch": "gets a table of brokers",
    "check_replica_epoch": "reads a table of brokers; see the actions of the message-passing models",
    "is_unassigned": "reads a table of followers; see the actions of the message-passing models",
}
"""Rules that cannot be evaluated on their own arguments alone, and why."""


def rules() -> Iterator[Callable[..., Any]]:
    for name in RULES:
        module = import_module(f"kspec.spec.{name}")
        for rule_name, rule in getmembers(module, isfunction):
            if rule.__module__ == module.__name__ and rule_name not in NOT_ALONE:
                yield rule


def shapes(rule: Callable[..., Any]) -> dict[str, Shape]:
    """The shape of each parameter; every kind of log is a record log here."""
    found = {}
    for name, hint in typing.get_type_hints(rule).items():
        kind = RecordLog if hint is Log or isinstance(hint, typing.TypeVar) else hint
        if name not in ("return", "max_records") and hint is not BrokerId:
            found[name] = FIXED_LENGTHS[hint]() if hint in FIXED_LENGTHS else shape_of(kind, BROKERS)
    return found


class TupleShape(Shape):
    """So many values of one shape, one after the other: lengths are not symbolic."""

    def __init__(self, inner: Shape, length: int) -> None:
        self.inner, self.length = inner, length

    def unknown(self, name: str, keys: int) -> Any:
        columns = [self.inner.unknown(f"{name}.{position}", keys) for position in range(self.length)]
        return lambda *key: tuple(column(*key) for column in columns)

    def is_value(self, unknown: Any, value: Any) -> z3.BoolRef:
        return z3.And(*(self.inner.is_value(*pair) for pair in zip(unknown, value, strict=True)))


def responses() -> Shape:
    one_record = TupleShape(shape_of(Record, BROKERS), 1)
    hints = typing.get_type_hints(FetchResponse)
    fields = {name: one_record if name == "records" else shape_of(hint, BROKERS) for name, hint in hints.items()}
    return RecordShape(FetchResponse, fields)


FIXED_LENGTHS: dict[Any, Callable[[], Shape]] = {
    FetchResponse: responses,
    tuple[Offset, ...]: lambda: TupleShape(shape_of(Offset, BROKERS), 2),
}
"""Types with tuples in them."""


@st.composite
def values(draw: st.DrawFn, shape: Shape) -> Any:
    """Any value of a shape, small so that comparisons go both ways."""
    match type(shape).__name__:
        case "Shape":
            return draw(st.integers(-1, 6))
        case "TruthShape":
            return draw(st.booleans())
        case "EnumShape":
            return draw(st.sampled_from(shape.members))  # type: ignore[attr-defined]
        case "SetShape":
            return draw(strategies.isrs)
        case "LogShape":
            return draw(strategies.record_logs(in_order=True))
        case "TupleShape":
            return tuple(draw(values(shape.inner)) for _ in range(shape.length))  # type: ignore[attr-defined]
        case "RecordShape":
            fields = shape.fields  # type: ignore[attr-defined]
            return shape.cls(**{name: draw(values(field)) for name, field in fields.items()})  # type: ignore[attr-defined]
    raise AssertionError(type(shape))


def results(paths: list[Path], known: list[z3.BoolRef]) -> Iterator[Any]:
    """Results of a relation for known arguments: on each path that they can take, its value; it must be the only one."""
    solver = z3.Solver()
    solver.add(*known)
    for path in paths:
        solver.push()
        solver.add(path.condition, path.facts)
        if solver.check() == z3.sat:
            found = in_model(path.value, solver.model())
            yield found
        solver.pop()


RELATIONS: dict[str, tuple[dict[str, Any], list[Path]]] = {}


QUICK = ("change_isr", "elect_uncleanly", "leader_high_watermark", "fetch_without_fencing")
"""Rules that are tried when only quick tests run; the others are tried with the slow ones."""

MARKS: dict[str, Any] = {
    **dict.fromkeys(QUICK, ()),
    "apply_fetch_response": (pytest.mark.slow, pytest.mark.nightly),  # the rule with most ways
}


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=MARKS.get(rule.__name__, pytest.mark.slow)) for rule in rules()],
    ids=lambda rule: rule.__name__,
)
@settings(max_examples=20 if is_night() else 5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_rules_relation_is_the_rule(rule: Callable[..., Any], data: st.DataObject) -> None:
    of_parameters = shapes(rule)
    fixed = {"max_records": 1} if "max_records" in signature(rule).parameters else {}
    brokers = [name for name, hint in typing.get_type_hints(rule).items() if hint is BrokerId and name != "return"]
    fixed |= {name: data.draw(st.sampled_from([1, 2, 4]), label=name) for name in brokers}
    key = f"{rule.__name__} {fixed}"
    if key not in RELATIONS:
        unknown = {name: shape.unknown(name, 0)() for name, shape in of_parameters.items()}
        found = explore(lambda: rule(**{name: plain(value) for name, value in unknown.items()}, **fixed))
        RELATIONS[key] = (
            unknown,
            [
                path._replace(learned=tuple((count, spelled_out(fact, BEYOND)) for count, fact in path.learned))
                for path in found
            ],
        )
    unknown, paths = RELATIONS[key]
    arguments = {name: data.draw(values(shape), label=name) for name, shape in of_parameters.items()}
    known = [shape.is_value(unknown[name], arguments[name]) for name, shape in of_parameters.items()]
    assert list(results(paths, known)) == [rule(**arguments, **fixed)]


def test_the_exceptions_are_rules() -> None:
    known = {name for module in RULES for name, _ in getmembers(import_module(f"kspec.spec.{module}"), isfunction)}
    assert NOT_ALONE.keys() <= known
    assert len(list(rules())) > 40


# ---- actions of models


def relation(model: Model) -> tuple[dict[str, Shape], SymbolicState, list[SymbolicStep]]:
    brokers = Brokers(range(1, model.parameters["replicas"] + 1))
    of_slots = shapes_of(model, brokers)
    before = unknown_state(model, of_slots)
    solver = z3.Solver()
    if "leaderIsr" in of_slots:
        solver.add(before.at("leaderIsr").isr.has(LEADER))  # its rules are not asked about an ISR without any member
    steps = [step(action, before, solver) for action in model.actions]
    return of_slots, before, [taken._replace(facts=spelled_out(taken.facts, BEYOND)) for taken in steps]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("kip-320", {"replicas": 2, "max_epoch": 1, "truncation": "agreement"}),
        ("kip-101", {"replicas": 2, "max_epoch": 1}),
        ("truncate-to-hw", {"replicas": 2, "max_epoch": 1}),
        ("async-isr", {"replicas": 2, "max_partition_epoch": 2}),
    ],
)
def test_an_actions_relation_is_the_action(name: str, parameters: dict[str, Any]) -> None:
    model = MODELS[name].build(parameters)
    of_slots, before, steps = relation(model)
    fire = [action.bind() for action in model.actions]
    states = reachable_states(model, 60, seed=3)
    enabled = 0
    for state in random.Random(1).sample(states, 40):
        solver = z3.Solver()
        for slot, value in zip(model.slots, state, strict=True):
            solver.add(of_slots[slot.name].is_value(before.at(slot.name, slot.key), value))
        for taken, function in zip(steps, fire, strict=True):
            after = function(state)
            solver.push()
            solver.add(taken.enabled, taken.facts)
            assert (solver.check() == z3.sat) == (after is not None), taken.action.label
            if after is not None:
                enabled += 1
                differs = [
                    z3.Not(of_slots[slot.name].is_value(taken.after.at(slot.name, slot.key), value))
                    for slot, value in zip(model.slots, after, strict=True)
                ]
                solver.add(z3.Or(*differs))
                assert solver.check() == z3.unsat, taken.action.label
            solver.pop()
    assert enabled > 40
