"""The compiled engine gives the reference engine's numbers, for every model, setting and number of workers."""

from functools import cache
from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Model
from kspec.model_check.engines import reference
from kspec.model_check.engines.compiled import explore, search, tables
from kspec.spec.published.mutants import ISR_MUTANTS, MUTANTS
from tests.model_check.engines.comparison import SMALL_MODELS, assert_replays, model_of, numbers_of

EVERYTHING = Limits(stop_at_first=False)


Parameters = tuple[tuple[str, Any], ...]


@cache
def numbers_by_reference(name: str, parameters: Parameters) -> dict[str, Any]:
    model = model_of(name, dict(parameters))
    return numbers_of(reference.explore(model, model.properties, EVERYTHING))


def assert_like_reference(model: Model, workers: int = 1, expected: dict[str, Any] | None = None) -> Exploration:
    expected = expected or numbers_of(reference.explore(model, model.properties, EVERYTHING))
    found = explore(model, model.properties, EVERYTHING, workers)
    assert numbers_of(found) == expected
    for trace in [verdict.trace for verdict in found.verdicts] + [found.deadlock_trace]:
        if trace is not None:
            assert_replays(model, trace)
    for verdict in found.verdicts:
        if verdict.trace is not None:
            always = verdict.prop.kind == "always"
            assert verdict.prop.bind()(verdict.trace[-1].state) != always
    return found


@pytest.mark.parametrize(("name", "parameters"), SMALL_MODELS)
def test_small_models(name: str, parameters: dict[str, Any]) -> None:
    found = assert_like_reference(model_of(name, parameters))
    assert found.engine == "compiled"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_make_no_difference(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHUNK", 64)
    monkeypatch.setattr(search, "BLOCK", 512)
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 2})
    alone = explore(model, model.properties, EVERYTHING, 1)
    together = assert_like_reference(model, workers)
    assert numbers_of(together) == numbers_of(alone)
    assert [verdict.trace for verdict in together.verdicts] == [verdict.trace for verdict in alone.verdicts]
    assert together.deadlock_trace == alone.deadlock_trace


@pytest.mark.parametrize("mutant", [mutant.name for mutant in MUTANTS])
def test_mutants(mutant: str) -> None:
    assert_like_reference(model_of("kip-320", {"replicas": 2, "max_epoch": 1, "mutant": mutant}))


@pytest.mark.parametrize("mutant", [mutant.name for mutant in ISR_MUTANTS])
def test_isr_mutants(mutant: str) -> None:
    assert_like_reference(model_of("async-isr", {"replicas": 2, "max_partition_epoch": 2, "mutant": mutant}))


@pytest.mark.slow
@pytest.mark.xdist_group("settings of the compiled engine")  # the reference engine's numbers are found once
@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (search, "WIDE_UNTIL", 1),
        (search, "WIDE_UNTIL", 10**9),
        (search, "CHUNK", 7),
        (search, "CHUNK_OUTPUT", 1),
        (search, "MISSES", 1),
        (search, "SPARSE_BELOW", 0),
        (tables, "DENSE_BITS", 0),
        (tables, "DENSE_BITS", 24),
        (tables, "KEY_BITS", 15),
        (search, "LOOSE_UNTIL", 1 << 13),
    ],
)
def test_settings_change_only_speed(where: Any, name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, value)
    for model, parameters, workers in (
        ("kip-101", {"replicas": 2, "max_epoch": 2}, 2),
        ("async-isr", {"replicas": 2, "max_partition_epoch": 2}, 1),
    ):
        expected = numbers_by_reference(model, tuple(parameters.items()))
        assert_like_reference(model_of(model, parameters), workers, expected)


@pytest.mark.parametrize("chosen", ["StrongIsr", "LeaderHasCommittedWithOthers"])
def test_one_property(chosen: str) -> None:
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 2})
    properties = [prop for prop in model.properties if prop.name == chosen]
    expected = reference.explore(model, properties, EVERYTHING)
    assert numbers_of(explore(model, properties, EVERYTHING, 1)) == numbers_of(expected)


def test_no_property() -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 1})
    assert numbers_of(explore(model, [], EVERYTHING, 1)) == numbers_of(reference.explore(model, [], EVERYTHING))


# ---- counts known from TLC and a hand-written search

LARGE_GOLDEN = [
    ("truncate-to-hw", 3, 2, 2, 1_988_158, 7_491_588, 28),
    ("kip-101", 3, 2, 2, 1_613_089, 5_796_837, 26),
    ("kip-279", 3, 2, 2, 1_616_461, 6_057_363, 26),
    ("kip-320-first-try", 3, 2, 2, 1_437_076, 4_966_920, 28),
    ("kip-320", 3, 2, 2, 737_794, 1_929_153, 26),
    ("kip-320", 3, 3, 2, 4_093_531, 11_444_787, 31),
]
BY_DAY = LARGE_GOLDEN[4]
"""The row that any number of workers explores by day, too. All are among the golden rows of the engines."""


def assert_golden(row: tuple[str, int, int, int, int, int, int], workers: int) -> None:
    name, replicas, size, epochs, distinct, transitions, depth = row
    model = model_of(name, {"replicas": replicas, "log_size": size, "max_records": size, "max_epoch": epochs})
    found = explore(model, model.properties, EVERYTHING, workers)
    assert (found.distinct_states, found.transitions, found.depth) == (distinct, transitions, depth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "workers"),
    [
        pytest.param(row, workers, marks=[] if row is BY_DAY else [pytest.mark.nightly], id=name)
        for row in LARGE_GOLDEN
        for workers in (1, 2, 3)
        for name in ["-".join(map(str, (*row[:4], workers)))]
    ],
)
def test_large_golden_counts(row: tuple[str, int, int, int, int, int, int], workers: int) -> None:
    assert_golden(row, workers)


GOLDEN_TRACES = [
    ("truncate-to-hw", "WeakIsr", 9),
    ("truncate-to-hw", "StrongIsr", 9),
    ("kip-101", "StrongIsr", 12),
    ("kip-279", "StrongIsr", 12),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prop", "length"), GOLDEN_TRACES)
def test_golden_traces(name: str, prop: str, length: int) -> None:
    model = model_of(name, {"replicas": 3, "max_epoch": 1})
    found = explore(model, [entry for entry in model.properties if entry.name == prop], EVERYTHING, 2)
    (verdict,) = found.verdicts
    assert verdict.holds is False
    assert verdict.trace is not None
    assert len(verdict.trace) == length
    assert_replays(model, verdict.trace)


@pytest.mark.parametrize(
    ("parameters", "distinct", "transitions", "depth"),
    [
        ({"replicas": 3, "max_offset": 2, "max_partition_epoch": 2}, 4_088, 15_596, 17),
        ({"replicas": 3, "max_offset": 2, "max_partition_epoch": 3}, 22_456, 86_988, 21),
    ],
)
def test_golden_async_isr(parameters: dict[str, Any], distinct: int, transitions: int, depth: int) -> None:
    model = model_of("async-isr", parameters)
    found = explore(model, model.properties, EVERYTHING, 2)
    assert (found.distinct_states, found.transitions, found.depth) == (distinct, transitions, depth)
