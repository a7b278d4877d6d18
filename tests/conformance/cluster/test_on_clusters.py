"""Cases of level 1 on real processes: what sound clusters keep, and what weakened ones lose."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.cluster.running import KSPEC, free_ports

pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
pytestmark = pytest.mark.slow

LIMIT_S = 600.0
"""An emergency stop, far away."""

CAUGHT = {
    "min-isr-of-one": ("rules/min_isr/min-isr-of-one", "AcknowledgedOnNextLeader: lost-write"),
}
"""Weakened rules, the case that catches each every time, and the property and the anomaly by which it does."""


def run(folder: Path, driver: str, case: str) -> dict[str, Any]:
    """The result of one case, as `--json` has it; the exit status is that of its status."""
    options = ["--level", "1", "--driver", driver, "--case", case, "--port", str(free_ports(8)), "--log-dir", str(folder)]
    command = [*KSPEC, "conformance", "run", *options, "--json", str(folder / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (found,) = json.loads((folder / "results.json").read_text(encoding="utf-8"))["cases"]
    assert done.returncode == (found["status"] == "fail"), done.stdout
    result: dict[str, Any] = found
    return result


@pytest.fixture(params=["kspec", f"kafka:{NEWEST}"])
def sound(request: pytest.FixtureRequest) -> str:
    if request.param != "kspec":
        jars_or_skip(NEWEST)
    return str(request.param)


def test_a_sound_cluster_loses_nothing(sound: str, tmp_path: Path) -> None:
    found = run(tmp_path, sound, "rules/min_isr/min-isr-of-one")
    assert found["status"] == "pass", found["reason"]
    assert found["counts"]["acknowledged"] > 0


def test_what_acks_1_loses_is_found_and_named(sound: str, tmp_path: Path) -> None:
    found = run(tmp_path, sound, "acks-1/leader-dies-alone")
    assert found["status"] == "pass", found["reason"]
    assert "AcknowledgedOnNextLeader: lost-write" in found["reason"]


@pytest.mark.parametrize("mutant", CAUGHT)
def test_a_weakened_rule_is_caught_and_named(mutant: str, tmp_path: Path) -> None:
    case, told = CAUGHT[mutant]
    found = run(tmp_path, f"kspec:{mutant}", case)
    assert found["status"] == "fail"
    assert told in found["reason"]
