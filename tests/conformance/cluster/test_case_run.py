"""Conditions of steps by brokers' reports, and the log of a driver's broker that has lost its records."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from kspec.conformance.cluster.case_run import shows
from kspec.conformance.cluster.drivers import own
from kspec.trials.cluster.view import ReportedPartition
from kspec.trials.faults.plans.losses import LOSSES
from kspec.trials.faults.plans.steps import ClusterStep, StepKind
from tests.places import REPOSITORY

BEFORE, AFTER = ReportedPartition(1, 4, (1, 2, 3)), ReportedPartition(2, 5, (2, 3))
NEWS: Mapping[int, ReportedPartition] = {1: BEFORE, 2: AFTER, 3: AFTER}
"""Broker 2 leads now, and broker 1 has not heard of it."""


@pytest.mark.parametrize(
    ("step", "reports", "expected"),
    [
        (ClusterStep(StepKind.LEAD, 2), NEWS, True),
        (ClusterStep(StepKind.LEAD, 1), NEWS, False),
        (ClusterStep(StepKind.LOSE_LEADERSHIP, 1), NEWS, True),
        (ClusterStep(StepKind.LOSE_LEADERSHIP, 2), NEWS, False),
        (ClusterStep(StepKind.LOSE_LEADERSHIP, 1), {2: AFTER._replace(leader=-1)}, False),
        (ClusterStep(StepKind.KNOW_LEADER, 1), NEWS, False),
        (ClusterStep(StepKind.KNOW_LEADER, 3), NEWS, True),
        (ClusterStep(StepKind.LEAVE_ISR, 1), NEWS, True),
        (ClusterStep(StepKind.LEAVE_ISR, 3), NEWS, False),
        (ClusterStep(StepKind.LEAVE_ISR, 3), {1: BEFORE, 2: BEFORE._replace(isr=(1, 2))}, False),
        (ClusterStep(StepKind.LEAVE_ISR, 3), {1: BEFORE._replace(isr=(1, 2)), 2: BEFORE._replace(isr=(1, 2))}, True),
        (ClusterStep(StepKind.JOIN_ISR, 3), NEWS, True),
        (ClusterStep(StepKind.JOIN_ISR, 1), NEWS, False),
        (ClusterStep(StepKind.JOIN_ISR, 3), {1: BEFORE._replace(isr=(1, 2)), 3: BEFORE}, False),
        (ClusterStep(StepKind.JOIN_ISR, 3), {1: BEFORE._replace(isr=(1, 2)), 2: BEFORE}, False),
        (ClusterStep(StepKind.JOIN_ISR, 3), {1: BEFORE, 3: BEFORE._replace(isr=(1, 2))}, True),
        (ClusterStep(StepKind.SERVE, 3), NEWS, True),
        (ClusterStep(StepKind.SERVE, 3), {1: BEFORE}, False),
        *(
            (ClusterStep(do, 1), {}, False)
            for do in (
                StepKind.LEAD,
                StepKind.LOSE_LEADERSHIP,
                StepKind.KNOW_LEADER,
                StepKind.LEAVE_ISR,
                StepKind.JOIN_ISR,
                StepKind.SERVE,
            )
        ),
    ],
)
def test_what_brokers_tell_is_what_an_act_waits_for_or_not(
    step: ClusterStep, reports: Mapping[int, ReportedPartition], expected: bool
) -> None:
    assert shows(step, reports) == expected


def test_a_broker_that_loses_its_records_keeps_its_identity(tmp_path: Path) -> None:
    data = tmp_path / "2" / "data"
    (data / "topic-0").mkdir(parents=True)
    (data / "topic-0" / "0.log").write_text("records", encoding="utf-8")
    for name in ("meta.properties", "replication-offset-checkpoint"):
        (data / name).write_text("text", encoding="utf-8")
    asyncio.run(own(20000)(tmp_path).erase("2"))
    assert [one.name for one in data.iterdir()] == ["meta.properties"]


def test_the_page_says_what_happens_in_each_run_by_hand() -> None:
    page = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    for mutant, loss in LOSSES.items():
        assert f"| `{mutant}` | {loss.title}" in page, mutant
