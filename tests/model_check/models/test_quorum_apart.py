"""The model `quorum` beside a program that was written apart from it: the same states, depths and verdicts."""

from pathlib import Path
from typing import Any

import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.models import MODELS
from kspec.model_check.reports.catalogues.quorum import HUNTS
from tests.limits.marks import marked, marked_pairs
from tests.model_check.models import quorum_apart
from tests.model_check.models.quorum_apart import Apart, Bounds

COUNTS: list[tuple[Bounds, int, int]] = [
    (Bounds(servers=2, max_epoch=2, records=1), 169, 8),
    (Bounds(servers=2, max_epoch=2, pre_vote=True), 122, 9),
    (Bounds(), 413, 9),
    (Bounds(pre_vote=True), 3_992, 14),
    (Bounds(max_epoch=2), 6_255, 13),
    (Bounds(records=1, pre_vote=True), 19_496, 16),
    (Bounds(max_epoch=2, records=1), 31_677, 15),
    (Bounds(max_epoch=2, pre_vote=True), 58_634, 20),
]
"""Bounds, the states within them, without renaming, and the largest number of steps to one of them."""


def parameters_of(bounds: Bounds) -> dict[str, Any]:
    """The same bounds in the model."""
    release = "4.2" if bounds.pre_vote else "3.9"
    return {"servers": bounds.servers, "max_epoch": bounds.max_epoch, "records": bounds.records, "release": release}


@pytest.mark.parametrize("row", marked(COUNTS, slow=COUNTS[3:], nightly=COUNTS[4:]))
def test_both_find_the_same_number_of_states(row: tuple[Bounds, int, int]) -> None:
    bounds, states, depth = row
    apart = Apart(bounds).explore()
    assert apart.violated_after is None
    assert (sum(apart.levels), len(apart.levels) - 1) == (states, depth)
    model = MODELS["quorum"].build(parameters_of(bounds))
    found = explore(model, model.properties, Limits())
    assert (found.distinct_states, found.depth - 1) == (states, depth)
    assert [verdict.prop.name for verdict in found.verdicts if verdict.violated] == []


@pytest.mark.parametrize(
    ("name", "bounds"),
    marked_pairs(
        PLANTED := [
            ("votes-again", Bounds(max_epoch=2, pre_vote=True, weakened="votes-again")),
            ("longest-log-wins", Bounds(max_epoch=3, weakened="longest-log-wins")),
        ],
        nightly=PLANTED[1:],
    ),
)
def test_both_find_a_planted_defect_after_as_many_steps(name: str, bounds: Bounds) -> None:
    """A vote that is given twice is seen by both before it has led to two leaders, so that is what is compared."""
    steps = Apart(bounds).explore().violated_after
    model = MODELS["quorum"].build({**parameters_of(bounds), "mutant": name})
    found = explore(model, model.properties, Limits())
    assert steps == min(len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.violated)
    assert steps is not None
    assert steps <= HUNTS[name][2]


def test_it_knows_nothing_of_the_project() -> None:
    assert "kspec" not in Path(quorum_apart.__file__).read_text()
