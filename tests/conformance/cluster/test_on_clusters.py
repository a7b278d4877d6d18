"""Cases of level 1 on real processes: what sound clusters keep, and what weakened ones lose."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.cluster.cases import all_cases
from kspec.trials.faults.plans.losses import LOSSES
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.limits.marks import marked
from tests.trials.cluster.running import KSPEC, free_ports

pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
pytestmark = pytest.mark.slow

KAFKA = f"kafka:{NEWEST}"
BY_DAY = ("min-isr-of-one",)
"""Mutants that are tried in every run of the tests."""

LIMIT_S = 1200.0
"""An emergency stop, far away."""


def play(folder: Path, driver: str, case: str) -> list[dict[str, Any]]:
    """The results of the cases, as `--json` has them; the exit status says whether one fails."""
    options = ["--level", "1", "--driver", driver, "--case", case, "--port", str(free_ports(8)), "--log-dir", str(folder)]
    command = [*KSPEC, "conformance", "run", *options, "--json", str(folder / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads((folder / "results.json").read_text(encoding="utf-8"))["cases"]
    assert done.returncode == any(one["status"] == "fail" for one in found), done.stdout
    return found


@pytest.fixture(params=["kspec", KAFKA])
def sound(request: pytest.FixtureRequest) -> str:
    if request.param != "kspec":
        jars_or_skip(NEWEST)
    return str(request.param)


@pytest.mark.nightly
def test_a_sound_cluster_loses_nothing_in_the_runs_by_hand(sound: str, tmp_path: Path) -> None:
    """Nor is one of them left out: these drivers have all abilities."""
    found = play(tmp_path, sound, "losses/")
    assert [(one["name"], one["status"], one["reason"]) for one in found if one["status"] != "pass"] == []
    assert len(found) == len(LOSSES)
    assert all(one["counts"]["acknowledged"] > 0 for one in found)


@pytest.mark.parametrize("sound", marked(["kspec", KAFKA], nightly=[KAFKA]), indirect=True)
def test_what_acks_1_loses_is_found_and_named(sound: str, tmp_path: Path) -> None:
    (found,) = play(tmp_path, sound, "acks-1/leader-dies-alone")
    assert found["status"] == "pass", found["reason"]
    assert "AcknowledgedOnNextLeader: lost-write" in found["reason"]


@pytest.mark.parametrize("mutant", marked(LOSSES, nightly=set(LOSSES) - set(BY_DAY)))
def test_a_weakened_rule_loses_records_in_its_run_and_the_loss_is_named(mutant: str, tmp_path: Path) -> None:
    (case,) = [one.name for one in all_cases() if one.by_hand and one.source == mutant]
    (found,) = play(tmp_path, f"kspec:{mutant}", case)
    assert found["status"] == "fail"
    assert "AcknowledgedOnNextLeader: lost-write" in found["reason"]
