"""The runner in Go gives the same verdict of every case as the one in Python, and the same exit statuses."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.wire.run.results import Result
from conformance.wire.run.runner import needs_restart
from conformance.wire.run.versions import Choice
from tests.conformance.wire.targets import SECONDS, SOON, documents, kspec, run_on
from tests.impl.broker.process import BrokerProcess
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

SOURCE = REPOSITORY / "conformance" / "runners" / "go"


class Go(NamedTuple):
    """The runner as a program, and the folder with the cases."""

    program: Path
    cases: Path

    def run(self, address: str, *more: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self.program), "--cases", str(self.cases), "--bootstrap-server", address, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=5 * SECONDS, check=False)


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Go:
    if shutil.which("go") is None:
        pytest.skip("NOT RUN: the runner in Go, because there is no Go (go) on the path")
    folder = tmp_path_factory.mktemp("go")
    build = ["go", "build", "-buildvcs=false", "-o", str(folder / "runner"), "."]
    done = subprocess.run(build, cwd=SOURCE, capture_output=True, text=True, timeout=5 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert kspec("conformance", "generate", "--out", str(folder / "cases")).status == 0
    return Go(folder / "runner", folder / "cases")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("runner") / "logs", "--release", "4.4", traced=False) as running:
        yield running


def verdicts(output: str) -> dict[str, str]:
    return {name: status for status, name, _ in (line.split("\t") for line in output.splitlines())}


def in_python(results: list[Result]) -> dict[str, str]:
    return {one.name: one.status.value for one in results}


def test_every_verdict_on_our_broker_is_that_of_the_runner_in_python(go: Go, broker: BrokerProcess) -> None:
    done = go.run(broker.address)
    assert done.returncode == 0, done.stderr
    assert verdicts(done.stdout) == in_python(run_on(broker.port, documents()))


def test_every_verdict_of_a_subject_on_a_weakened_broker_too_with_failures_among_them(go: Go, tmp_path: Path) -> None:
    weakened = next(one for one in documents() if one["catches"] and not needs_restart(one))
    subject, mutant = weakened["subject"], weakened["catches"][0]
    cases = [one for one in documents() if one["subject"] == subject]
    with BrokerProcess(tmp_path / "logs", "--release", "4.4", "--mutant", mutant, traced=False) as weak:
        done = go.run(weak.address, "--case", f"{subject}/", "--timeout", f"{SOON:g}s")
        expected = in_python(run_on(weak.port, cases, seconds=SOON))
    assert done.returncode == 1, done.stderr
    assert verdicts(done.stdout) == expected
    assert "fail" in expected.values()


@pytest.mark.parametrize("choice", [Choice.OLDEST, Choice.ALL])
def test_versions_are_those_of_the_runner_in_python_and_so_are_the_verdicts(
    go: Go, broker: BrokerProcess, choice: Choice
) -> None:
    """The name of a case says the versions that its requests had."""
    done = go.run(broker.address, "--case", "topics/", "--versions", choice.value)
    cases = [one for one in documents() if one["subject"] == "topics"]
    expected = in_python(run_on(broker.port, cases, versions=choice))
    assert done.returncode == 0, done.stderr
    assert verdicts(done.stdout) == expected
    assert any("CreateTopics 2" in name for name in expected)
    assert len(expected) > len(cases) if choice == Choice.ALL else len(expected) == len(cases)


def test_what_is_no_broker_is_status_3(go: Go) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert go.run(f"127.0.0.1:{port}").returncode == 3


@pytest.mark.parametrize("more", [("--case", "no/such"), ("--no-such",), ("--versions", "some")])
def test_bad_usage_is_status_2(go: Go, more: tuple[str, ...]) -> None:
    assert go.run("127.0.0.1:1", *more).returncode == 2


def test_a_name_alone_means_that_case(go: Go, broker: BrokerProcess) -> None:
    name = "producing/idempotent.again/duplicate"
    assert verdicts(go.run(broker.address, "--case", name).stdout) == {name: "pass"}
