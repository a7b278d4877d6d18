"""Symmetry: one state of each orbit, the same verdicts, real traces; what tells brokers apart is refused."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import Property, when
from kspec.model_check.core.symmetry import AsymmetryError, Symmetry, UnknownTypeError, rename_rule
from kspec.model_check.engines import compiled
from kspec.model_check.engines.reference import explore
from kspec.model_check.models import MODELS
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.algebra import Log
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.values import BrokerId, Epoch, LeaderAndIsr, PartitionEpoch
from tests.model_check.engines.comparison import numbers_of
from tests.model_check.engines.test_reference import replays

CASES: list[tuple[str, dict[str, Any]]] = [
    ("truncate-to-hw", {"replicas": 2, "power_losses": 1}),
    ("kip-101", {"replicas": 2}),
    ("kip-279", {"replicas": 3, "max_epoch": 1, "log_size": 1}),
    ("kip-320-first-try", {"replicas": 2, "unclean": True}),
    ("kip-320", {"replicas": 3, "max_epoch": 1, "log_size": 1}),
    ("kip-320", {"replicas": 2, "acks": "all", "restarts": 1}),
    ("async-isr", {"replicas": 3, "max_partition_epoch": 2}),
    ("async-isr", {"replicas": 4, "max_partition_epoch": 1, "max_offset": 1}),
    ("messages", {"fetches": 2, "max_epoch": 0, "max_partition_epoch": 0}),
    ("kip-279", {"replicas": 3, "max_epoch": 0, "log_size": 1}),
    ("kip-320-first-try", {"replicas": 2, "max_epoch": 1, "unclean": True}),
    ("kip-320", {"replicas": 3, "max_epoch": 0, "log_size": 1}),
    ("truncate-to-hw", {"replicas": 2, "max_epoch": 1, "power_losses": 1}),
    ("kip-320", {"replicas": 2, "max_epoch": 1, "acks": "all", "restarts": 1}),
]
LONG = (0, 2, 3, 4, 5)
"""Those that take longest: by night, and by day with fewer epochs."""
SOME = [pytest.param(*case, marks=[pytest.mark.nightly] if number in LONG else []) for number, case in enumerate(CASES)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), SOME)
def test_the_compiled_engine_counts_the_same_orbits(name: str, parameters: dict[str, Any]) -> None:
    model = MODELS[name].build(parameters)
    symmetry, limits = Symmetry(model), Limits(stop_at_first=False)
    expected = numbers_of(explore(model, model.properties, limits, symmetry))
    for workers in (1, 2):
        found = compiled.explore(model, model.properties, limits, workers, symmetry=symmetry)
        assert numbers_of(found) == expected
        assert found.represented == compiled.explore(model, [], limits, workers).distinct_states
        for verdict in found.verdicts:
            if verdict.trace:
                assert replays(model, verdict.trace)
                assert verdict.prop.bind()(verdict.trace[-1].state) != (verdict.prop.kind == "always")


@pytest.mark.parametrize(("name", "parameters"), SOME)
def test_states_are_orbits_and_verdicts_are_the_same(name: str, parameters: dict[str, Any]) -> None:
    model = MODELS[name].build(parameters)
    symmetry = Symmetry(model)
    reached: set[Any] = set()

    def note(*values: Any) -> bool:
        reached.add(values)
        return True

    model.always("Reached", [when(note, *model.slots)], "collects every state", None)
    full = explore(model, model.properties, Limits(stop_at_first=False))
    properties = [prop for prop in model.properties if prop.name != "Reached"]
    reduced = explore(model, properties, Limits(stop_at_first=False), symmetry)
    assert len(reached) == full.distinct_states
    assert reduced.distinct_states == len({symmetry.canonical(state) for state in reached})
    assert reduced.represented == full.distinct_states
    assert reduced.depth == full.depth
    for with_all, with_orbits in zip(full.verdicts, reduced.verdicts, strict=False):
        assert with_orbits.holds == with_all.holds, with_all.prop.name
        assert len(with_orbits.trace or ()) == len(with_all.trace or ()), with_all.prop.name
        if with_orbits.trace:
            assert replays(model, with_orbits.trace)
            assert with_orbits.prop.bind()(with_orbits.trace[-1].state) != (with_orbits.prop.kind == "always")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_the_models_and_their_properties_tell_no_brokers_apart(name: str, parameters: dict[str, Any]) -> None:
    model = MODELS[name].build(parameters)
    Symmetry(model).check(model.properties)


def test_a_property_that_names_a_broker_is_refused() -> None:
    model = MODELS["kip-320"].build({"replicas": 2, "max_epoch": 1})
    partition = next(slot for slot in model.slots if slot.name == "partition")
    favourite = Property("FirstNeverLeads", "always", (when(lambda state: state.leader != 1, partition),), "")
    with pytest.raises(AsymmetryError, match="property FirstNeverLeads tells brokers apart"):
        Symmetry(model).check([favourite])


def test_a_model_that_treats_brokers_differently_is_refused() -> None:
    model = MODELS["kip-320"].build({"replicas": 2, "max_epoch": 1})
    model.actions = [action for action in model.actions if action.args.get("leader") != 2]
    with pytest.raises(AsymmetryError, match="model kip-320 tells brokers apart"):
        Symmetry(model).check([])


def test_renaming_follows_the_types_of_fields() -> None:
    renaming = {1: 2, 2: 1}
    one, two = BrokerId(1), BrokerId(2)
    role_rule, isr_rule = rename_rule(LeaderAndIsr), rename_rule(LeaderIsr)
    assert role_rule is not None
    assert isr_rule is not None
    role = LeaderAndIsr(one, Epoch(2), frozenset({one, BrokerId(3)}))
    assert role_rule(role, renaming) == LeaderAndIsr(two, Epoch(2), frozenset({two, BrokerId(3)}))
    pending = LeaderIsr(frozenset({one}), PartitionEpoch(1), frozenset({two}), PartitionEpoch(1))
    assert isr_rule(pending, renaming) == LeaderIsr(frozenset({two}), PartitionEpoch(1), frozenset({one}), PartitionEpoch(1))
    nested = rename_rule(frozenset[frozenset[BrokerId]])
    assert nested is not None
    assert nested(frozenset({frozenset({one})}), renaming) == frozenset({frozenset({two})})
    assert rename_rule(RecordLog) is None
    assert rename_rule(int) is None


class NamedBroker(NamedTuple):
    broker: BrokerId
    epoch: Epoch


@dataclass(frozen=True)
class HolderSet:
    named: NamedBroker | None
    count: int


SHARED = TypeVar("SHARED")


@dataclass(frozen=True)
class SharedBox(Generic[SHARED]):
    inside: SHARED


class Colour(Enum):
    RED = 1


ONE, TWO = BrokerId(1), BrokerId(2)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (HolderSet, HolderSet(NamedBroker(ONE, Epoch(1)), 1), HolderSet(NamedBroker(TWO, Epoch(1)), 1)),
        (HolderSet, HolderSet(None, 1), HolderSet(None, 1)),
        (NamedBroker | None, NamedBroker(TWO, Epoch(2)), NamedBroker(ONE, Epoch(2))),
        (BrokerId | None, None, None),
        (BrokerId | None, ONE, TWO),
        (frozenset[BrokerId] | str, "nobody", "nobody"),
        (frozenset[BrokerId] | str, frozenset({ONE}), frozenset({TWO})),
        (tuple[Epoch, BrokerId], (Epoch(1), ONE), (Epoch(1), TWO)),
        (tuple[BrokerId, ...], (ONE, TWO, ONE), (TWO, ONE, TWO)),
        (SharedBox[NamedBroker], SharedBox(NamedBroker(ONE, Epoch(1))), SharedBox(NamedBroker(TWO, Epoch(1)))),
        (SharedBox, SharedBox(7), SharedBox(7)),
        (LocalLog[RecordLog], LocalLog(EMPTY_LOG), LocalLog(EMPTY_LOG)),
    ],
)
def test_brokers_are_renamed_wherever_a_type_says_so(annotation: Any, value: Any, expected: Any) -> None:
    rule = rename_rule(annotation)
    assert rule is not None
    assert rule(value, {1: 2, 2: 1}) == expected


@pytest.mark.parametrize("annotation", [int, Epoch, str, bool, Colour, tuple[Epoch, int], Epoch | None])
def test_types_without_brokers_need_no_rule(annotation: Any) -> None:
    assert rename_rule(annotation) is None


@pytest.mark.parametrize("annotation", [frozenset, tuple, dict, list[BrokerId], object, Any, BrokerId | Epoch, float, Log])
def test_a_type_of_which_nothing_is_known_is_refused(annotation: Any) -> None:
    with pytest.raises(UnknownTypeError):
        rename_rule(annotation)


@pytest.mark.slow
def test_three_replicas_need_nearly_six_times_fewer_states() -> None:
    model = MODELS["kip-320"].build({"max_epoch": 1})
    reduced = explore(model, [], Limits(), Symmetry(model))
    assert reduced.distinct_states == 6_713  # of 39,619
