"""State counts, depths, action counts and shortest traces of the published models, as TLC, SPIN, Rumur and others agree.

`tests/data/golden.json` holds the facts: one row for each model and parameter set, with who confirmed it. A trace
length of `null` says that the invariant holds. `published.cpp` is `benchmarks/peers/published.cpp`, written from the TLA+
text alone.
"""

import json
from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from tests.places import DATA

ROWS = json.loads((DATA / "golden.json").read_text())
FAST, LARGE, LARGEST = 70_000, 100_000, 12_000_000
FAST_FOR = {"compiled": FAST, "reference": 20_000}
"""Up to how many states each engine takes a second or two. The reference engine leaves out those beyond `LARGE`."""


BY_DAY_IN_PYTHON = ("async-isr-3-2-3", "kip-320-2-3-3-2")
BY_DAY_IN_LOOPS = ("kip-101-3-2-2-2", "kip-320-3-2-2-2")
"""Large rows that the reference engine, and the compiled one, explore by day, too."""


def row_name(row: dict[str, Any]) -> str:
    return f"{row['model']}-{'-'.join(str(value) for value in row['parameters'].values())}"


def within(most: int, least: int = 0, by_day: tuple[str, ...] | None = None) -> list[Any]:
    """The rows with so many states; by day all of them, or only those that are named."""
    rows = {row_name(row): row for row in ROWS if least < row["distinct_states"] <= most}
    chosen = rows.keys() if by_day is None else set(by_day)
    assert rows.keys() >= chosen
    return [pytest.param(row, id=name, marks=[] if name in chosen else [pytest.mark.nightly]) for name, row in rows.items()]


def assert_matches(row: dict[str, Any], engine: str) -> None:
    model = MODELS[row["model"]].build(row["parameters"])
    assert_is_row(explorer(engine)(model, model.properties, Limits(stop_at_first=False)), row)


def assert_is_row(result: Exploration, row: dict[str, Any]) -> None:
    assert result.complete
    assert result.distinct_states == row["distinct_states"]
    assert result.depth == row["depth"]
    assert result.transitions == row["transitions"]
    if row["levels"] is not None:
        assert result.levels == row["levels"]
    if row["actions"] is not None:
        assert result.actions == row["actions"]
    verdicts = {verdict.prop.name: verdict for verdict in result.verdicts}
    for name, length in row["trace_lengths"].items():
        trace = verdicts[name].trace
        assert verdicts[name].holds is (length is None), name
        assert (len(trace) if trace else None) == length, name
    assert verdicts["TypeOk"].holds


@pytest.mark.parametrize("row", within(FAST_FOR["compiled"]))
def test_numbers_equal_those_of_other_checkers(row: dict[str, Any]) -> None:
    assert_matches(row, "compiled")


@pytest.mark.slow
@pytest.mark.parametrize("row", within(FAST_FOR["reference"]))
def test_the_reference_engine_gives_the_numbers_of_other_checkers(row: dict[str, Any]) -> None:
    assert_matches(row, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("row", within(LARGE, FAST_FOR["reference"], by_day=BY_DAY_IN_PYTHON))
def test_numbers_of_large_models_equal_those_of_other_checkers(row: dict[str, Any]) -> None:
    assert_matches(row, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("row", within(LARGEST, FAST, by_day=BY_DAY_IN_LOOPS))
def test_the_compiled_engine_gives_the_numbers_of_large_models(row: dict[str, Any]) -> None:
    assert_matches(row, "compiled")


@pytest.mark.parametrize(
    ("parameters", "distinct_states", "transitions"),
    [
        ((2, 1, 1, 2), 1_365, 2_482),
        ((3, 3, 1, 1), 6_787, 15_897),
        ((2, 4, 4, 2), 69_001, 149_666),
        pytest.param((3, 1, 2, 2), 173_779, 427_476, marks=pytest.mark.slow),
        pytest.param((4, 1, 1, 1), 155_041, 490_800, marks=pytest.mark.slow),
    ],
)
def test_kip_320_agrees_with_rumur_beyond_the_golden_rows(
    parameters: tuple[int, int, int, int], distinct_states: int, transitions: int
) -> None:
    """Rumur counted these from a Murphi model of the same protocol: replicas, log size, records, highest epoch."""
    names = ("replicas", "log_size", "max_records", "max_epoch")
    model = MODELS["kip-320"].build(dict(zip(names, parameters, strict=True)))
    result = explorer()(model, [prop for prop in model.properties if prop.by_default], Limits())
    assert (result.distinct_states, result.transitions) == (distinct_states, transitions)
    assert result.complete


@pytest.mark.parametrize("name", ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"])
@pytest.mark.parametrize("parameters", [{"log_size": 0}, {"max_records": 0}, {"max_epoch": 0}, {"replicas": 1}])
def test_smallest_bounds_are_explored_without_a_violation(name: str, parameters: dict[str, int]) -> None:
    model = MODELS[name].build({"replicas": 2, "max_epoch": 1, **parameters})
    result = explorer()(model, [prop for prop in model.properties if prop.by_default], Limits())
    assert result.complete
    assert result.distinct_states > 1
