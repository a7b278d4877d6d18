"""The model of delivery, and the table that is made of it."""

from typing import Any

import pytest

from kspec.model_check.core.audit import audit
from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.models import MODELS
from kspec.model_check.reports.delivery import IDEMPOTENT, READERS, TABLES, TWO_PROCESSES, cells_of, check_guarantee
from kspec.model_check.reports.studies.study import Configuration
from tests.model_check.reports.delivery_page import PAGE, page

EVERYTHING: dict[str, Any] = {"disconnects": 1, "late_requests": 1, "restarts": 1, "leader_changes": 1}
PROCESSES: dict[str, Any] = {"commits": "before", "rebalances": 1, "crashes": 1, "late_commits": 1}
COUNTS: list[tuple[dict[str, Any], int, int]] = [
    ({}, 9, 8),
    ({**IDEMPOTENT, "disconnects": 2, "late_requests": 1, "leader_changes": 2}, 494, 1_864),
    ({"commits": "before"}, 34, 53),
]
"""Bounds within which everything holds, states, and transitions."""


@pytest.mark.parametrize(("parameters", "states", "transitions"), COUNTS)
def test_everything_holds_within_these_bounds(parameters: dict[str, Any], states: int, transitions: int) -> None:
    model = MODELS["delivery"].build(parameters)
    found = explore(model, model.properties, Limits())
    assert found.complete
    assert [verdict.prop.name for verdict in found.verdicts if not verdict.holds] == []
    assert (found.distinct_states, found.transitions) == (states, transitions)


@pytest.mark.nightly
def test_the_page_is_what_the_models_say() -> None:
    assert page([list(cells_of(table)) for table in TABLES]) == PAGE.read_text(encoding="utf-8")


def test_cells_of_one_table_are_those_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(cell.verdict in text for cell in cells_of(READERS))


def test_a_page_says_when_neither_is_kept() -> None:
    unclean = Configuration("delivery", {"retries": True, "leader_changes": 1, "unclean": True})
    assert check_guarantee(unclean, "AtMostOnce").steps == 4
    assert check_guarantee(unclean, "AtLeastOnce").steps == 5


def test_a_leader_that_dies_takes_its_answer_along() -> None:
    """With acks=1 the record may be on the next leader already: then it is appended again."""
    configuration = Configuration("delivery", {"acks": "1", "retries": True, "leader_changes": 1})
    assert check_guarantee(configuration, "AtMostOnce").steps == 4
    assert check_guarantee(configuration, "AtLeastOnce").steps == 4


def test_releases_before_idempotence_know_no_duplicate() -> None:
    old = Configuration("delivery", {**IDEMPOTENT, "release": "0.10", "disconnects": 1})
    assert check_guarantee(old, "AtMostOnce").steps is not None


def test_a_transaction_of_version_1_is_torn_by_a_late_end() -> None:
    """The offset is committed, and the output is aborted (KAFKA-17754)."""
    late = {"inputs": 2, "transactions": 2, "late_requests": 1}
    torn = Configuration("transactions", {**late, "transaction_version": "1"})
    assert check_guarantee(torn, "NoInputSkipped").steps == 41
    assert check_guarantee(Configuration("transactions", late), "NoInputSkipped").steps is None
    assert check_guarantee(Configuration("transactions", TWO_PROCESSES), "EachInputOnce").steps is None


def test_an_idempotent_producer_waits_for_all_and_retries() -> None:
    with pytest.raises(ParameterError, match="acks=all and retries"):
        MODELS["delivery"].build({"idempotent": True})


@pytest.mark.parametrize("settings", [{"acks": "0"}, {"acks": "1"}, {"retries": True}, IDEMPOTENT])
def test_actions_read_what_they_say(settings: dict[str, Any]) -> None:
    for commits in ("before", "after"):
        parameters = {**settings, **EVERYTHING, **PROCESSES, "commits": commits}
        assert audit(MODELS["delivery"].build(parameters), 30, seed=1, unused=False).findings == []
