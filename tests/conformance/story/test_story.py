"""`kspec cluster --story` with real processes."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trials.cluster.running import KSPEC, alive, is_free, kspec, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: the process of a connection is read in /proc"),
    pytest.mark.xdist_group("story"),
]
"""In one group: each takes twenty ports that are free, and two at a time may take the same."""


FIRST_PORTS = range(20_000, 32_000, 20)
"""Below those that the system gives to whoever connects."""


def ports() -> str:
    """The first of twenty ports that nobody listens on."""
    return str(next(first for first in FIRST_PORTS if all(is_free(port) for port in range(first, first + 20))))


def test_the_loss_of_kip_101_happens_with_0_10_and_not_with_0_11() -> None:
    told = kspec("cluster", "--story", "kip-101-loss", "--release", "0.10", "--port", ports())
    assert told.returncode == 0, told.stdout + told.stderr
    failing, _, repaired = told.stdout.partition("With release 0.11")
    assert "m1 was acknowledged at offset 0, and leader" in failing
    assert repaired.rstrip().endswith("Nothing is lost, and the logs agree.")
    assert max(map(len, told.stdout.splitlines())) <= 130


@pytest.mark.nightly
def test_a_proposal_that_was_granted_is_dropped_with_the_mutant_and_not_without() -> None:
    told = kspec("cluster", "--story", "rolled-back-proposal", "--port", ports())
    assert told.returncode == 0, told.stdout + told.stderr
    failing, _, repaired = told.stdout.partition("\nWith release next\n")
    assert "m1 at offset 0 is committed on broker 1, and broker 2, which may lead, lacks it" in failing
    assert repaired.rstrip().endswith("Nothing is lost, and the logs agree.")


def test_a_story_by_rules_that_do_not_fail_is_not_told() -> None:
    told = kspec("cluster", "--story", "kip-101-loss", "--release", "0.11", "--port", ports())
    assert told.returncode == 1
    assert "did not go as told: kip-101-loss: AcknowledgedOnLeader holds by the rules of release 0.11" in told.stdout


def test_a_simulated_cluster_tells_the_same_story() -> None:
    told = kspec("simulate-cluster", "--story", "acks-1")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "AcknowledgedOnLeader fails: m1 was acknowledged at offset 0, and leader 2 does not have it." in told.stdout
    assert told.stdout.rstrip().endswith("Nothing is lost, and the logs agree.")


@pytest.mark.parametrize(
    ("name", "why"), [("kip-101-los", "did you mean kip-101-loss"), ("latest-offset", "processes cannot show latest-offset")]
)
def test_a_story_that_there_is_not_is_bad_usage(name: str, why: str) -> None:
    told = kspec("cluster", "--story", name)
    assert told.returncode == 2
    assert why in told.stderr


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [
        *KSPEC,
        "cluster",
        "--story",
        "kip-101-loss",
        "--port",
        ports(),
        "--log-dir",
        str(tmp_path / "kept"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        pids_file = tmp_path / "kept" / "failing" / "pids.json"
        until(lambda: pids_file.exists() and '"3"' in pids_file.read_text(encoding="utf-8"))
        pids = [int(part.split(":")[1].strip(" }\n")) for part in pids_file.read_text(encoding="utf-8").split(",")]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 3
    until(lambda: not any(map(alive, pids)))


def test_a_port_that_is_taken_is_bad_usage() -> None:
    first = int(ports())
    with socket.create_server(("127.0.0.1", first)):
        told = kspec("cluster", "--story", "acks-1", "--port", str(first))
    assert told.returncode == 2
    assert "cannot listen" in told.stderr
    assert str(first) in told.stderr
