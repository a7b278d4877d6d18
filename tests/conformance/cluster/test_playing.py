"""What an act waits for, by what brokers tell, and what a driver's broker keeps that has lost its records."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.cluster.acts import Act, Do
from conformance.cluster.drivers import own
from conformance.cluster.losses import LOSSES
from conformance.cluster.playing import shows
from impl.cluster.view import Told
from tests.places import REPOSITORY

BEFORE, AFTER = Told(1, 4, (1, 2, 3)), Told(2, 5, (2, 3))
NEWS: Mapping[int, Told] = {1: BEFORE, 2: AFTER, 3: AFTER}
"""Broker 2 leads now, and broker 1 has not heard of it."""


@pytest.mark.parametrize(
    ("act", "told", "expected"),
    [
        (Act(Do.LEAD, 2), NEWS, True),
        (Act(Do.LEAD, 1), NEWS, False),
        (Act(Do.LOSE, 1), NEWS, True),
        (Act(Do.LOSE, 2), NEWS, False),
        (Act(Do.LOSE, 1), {2: AFTER._replace(leader=-1)}, False),
        (Act(Do.KNOW, 1), NEWS, False),
        (Act(Do.KNOW, 3), NEWS, True),
        (Act(Do.DROP, 1), NEWS, True),
        (Act(Do.DROP, 3), NEWS, False),
        (Act(Do.DROP, 3), {1: BEFORE, 2: BEFORE._replace(isr=(1, 2))}, False),
        (Act(Do.DROP, 3), {1: BEFORE._replace(isr=(1, 2)), 2: BEFORE._replace(isr=(1, 2))}, True),
        (Act(Do.JOIN, 3), NEWS, True),
        (Act(Do.JOIN, 1), NEWS, False),
        (Act(Do.JOIN, 3), {1: BEFORE._replace(isr=(1, 2)), 3: BEFORE}, False),
        (Act(Do.JOIN, 3), {1: BEFORE._replace(isr=(1, 2)), 2: BEFORE}, False),
        (Act(Do.JOIN, 3), {1: BEFORE, 3: BEFORE._replace(isr=(1, 2))}, True),
        (Act(Do.SERVE, 3), NEWS, True),
        (Act(Do.SERVE, 3), {1: BEFORE}, False),
        *((Act(do, 1), {}, False) for do in (Do.LEAD, Do.LOSE, Do.KNOW, Do.DROP, Do.JOIN, Do.SERVE)),
    ],
)
def test_what_brokers_tell_is_what_an_act_waits_for_or_not(act: Act, told: Mapping[int, Told], expected: bool) -> None:
    assert shows(act, told) == expected


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
