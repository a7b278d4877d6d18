"""Model `kafka`: without a reduction there are more states, and every verdict and every counterexample is as with it."""

from functools import cache
from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Verdict
from kspec.model_check.models.kafka.reductions import Reduction
from tests.model_check.models.kafka.test_kafka import explored, kafka
from tests.places import DOCS

ALL_HOLD = "all hold"

SHRINK = {"brokers": 2, "elections": 1, "isr_shrinks": 1}
UNCLEAN = {"brokers": 2, "elections": 0, "unclean_shutdowns": 1}
UNCLEAN_AND_SHRINK = {**UNCLEAN, "values": 0, "min_isr": 1, "isr_shrinks": 1}
TOLD_TWICE = {"release": "2.0", "brokers": 2, "values": 2, "elections": 2}

UNREAD, IDLE, EARLY = Reduction.UNREAD_FIELDS, Reduction.IDLE_IMAGES, Reduction.EARLY_FOLLOWING
VAIN, ANSWERS, LOST = Reduction.VAIN_PROPOSALS, Reduction.IDLE_ANSWERS, Reduction.LOST_ANSWERS
REPEATED, LONE = Reduction.REPEATED_REQUESTS, Reduction.LONE_TRUNCATION

OF_THE_NIGHT: list[dict[str, Any]] = [
    {"release": "4.0", "elections": 0, "isr_shrinks": 1},
    {"release": "3.9", **UNCLEAN_AND_SHRINK},
    {"release": "3.0", **UNCLEAN},
    {"release": "3.1", **SHRINK},
    {"release": "3.2", **UNCLEAN_AND_SHRINK},
]
"""Bounds whose reductions are tried in fewer brokers, or another release, by day."""

CASES: list[tuple[dict[str, Any], str, tuple[Reduction, ...]]] = [
    (SHRINK, ALL_HOLD, (UNREAD, IDLE, EARLY, ANSWERS, LOST, LONE)),
    (UNCLEAN_AND_SHRINK, ALL_HOLD, (VAIN,)),
    (
        {"release": "4.0", "brokers": 2, "min_isr": 1, "elections": 0, "isr_shrinks": 1},
        "QuorumSuperset",
        (UNREAD, IDLE, EARLY, ANSWERS, LOST, LONE),
    ),
    ({"release": "4.0", "elections": 0, "isr_shrinks": 1}, "QuorumSuperset", (UNREAD, IDLE, EARLY, ANSWERS, LOST, LONE)),
    ({"release": "3.9", **UNCLEAN_AND_SHRINK}, "UncleanExclusion", (VAIN,)),
    ({"release": "3.0", **UNCLEAN}, "AcknowledgedOnLeader", (UNREAD, IDLE, LOST, LONE)),
    ({"release": "2.8", **SHRINK}, ALL_HOLD, (UNREAD, ANSWERS, LOST, LONE)),
    ({"release": "2.2", **UNCLEAN}, ALL_HOLD, (UNREAD, REPEATED, LONE)),
    ({"release": "2.1", **UNCLEAN}, "AcknowledgedOnLeader", (UNREAD, REPEATED, LONE)),
    (TOLD_TWICE, "CommittedOnNextLeader", (UNREAD,)),
    ({"release": "3.1", **SHRINK}, ALL_HOLD, (UNREAD, IDLE, ANSWERS, LOST)),
    ({"release": "3.2", **UNCLEAN_AND_SHRINK}, "UncleanExclusion", (UNREAD, IDLE)),
]
"""Bounds, a property that is violated in them, and the reductions that make the model smaller there."""


@cache
def _explored(bounds: tuple[tuple[str, Any], ...]) -> Exploration:
    return explored(kafka(**dict(bounds)), everything=True)


def both(bounds: dict[str, Any], reduction: Reduction) -> tuple[Exploration, Exploration]:
    """The explorations with and without a reduction."""
    return _explored(tuple(bounds.items())), explored(kafka(**bounds, without_reduction=reduction.value), everything=True)


def marks_of(bounds: dict[str, Any]) -> list[pytest.MarkDecorator]:
    """All tests of some bounds run in one process, which explores them once."""
    return [pytest.mark.xdist_group(f"reductions {bounds}"), *([pytest.mark.nightly] if bounds in OF_THE_NIGHT else [])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "reduction"),
    [pytest.param(bounds, reduction, marks=marks_of(bounds)) for bounds, _, reductions in CASES for reduction in reductions],
    ids=str,
)
def test_a_reduction_changes_no_verdict_and_no_length_of_a_run(bounds: dict[str, Any], reduction: Reduction) -> None:
    with_it, without_it = both(bounds, reduction)
    assert with_it.complete
    assert without_it.complete
    assert with_it.distinct_states < without_it.distinct_states
    for verdict, other in zip(with_it.verdicts, without_it.verdicts, strict=True):
        assert (verdict.prop.name, verdict.holds) == (other.prop.name, other.holds)
        if reduction != LONE:
            assert len(verdict.trace or ()) == len(other.trace or ()), verdict.prop.name
        elif verdict.trace is not None:
            _assert_longer_by_lone_truncations(verdict, other, bounds.get("brokers", 3))


def _assert_longer_by_lone_truncations(verdict: Verdict, other: Verdict, brokers: int) -> None:
    """The steps that a follower now takes alone are the only ones more; each follower needs one, with its empty log."""
    assert verdict.trace is not None
    assert other.trace is not None
    alone = sum(step.action is not None and step.action.name == "TruncateWithoutAsking" for step in other.trace)
    assert len(verdict.trace) <= len(other.trace) - alone
    assert len(other.trace) <= len(verdict.trace) + brokers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "broken", "reductions"), [pytest.param(*case, marks=marks_of(case[0])) for case in CASES], ids=str
)
def test_the_bounds_are_what_they_are_said_to_be(
    bounds: dict[str, Any], broken: str, reductions: tuple[Reduction, ...]
) -> None:
    violated = {verdict.prop.name for verdict in _explored(tuple(bounds.items())).verdicts if verdict.violated}
    assert broken in violated if broken != ALL_HOLD else not violated


def test_every_reduction_is_tried_where_all_holds_and_where_something_is_violated() -> None:
    for reduction in Reduction:
        tried = [broken for _, broken, reductions in CASES if reduction in reductions]
        assert ALL_HOLD in tried, reduction
        assert {*tried} - {ALL_HOLD}, reduction


def test_every_reduction_is_on_the_models_page() -> None:
    page = (DOCS / "kafka-model.md").read_text(encoding="utf-8")
    assert all(f"`{reduction.value}`" in page for reduction in Reduction)


def test_several_reductions_can_be_switched_off() -> None:
    names = f"{Reduction.UNREAD_FIELDS.value},{Reduction.EARLY_FOLLOWING.value}"
    both_off = explored(kafka(**SHRINK, without_reduction=names), everything=True)
    one_off = explored(kafka(**SHRINK, without_reduction=Reduction.UNREAD_FIELDS.value), everything=True)
    assert both_off.distinct_states > one_off.distinct_states
