"""The runner in Go gives the same verdict of every case as the one in Python, and the same exit statuses."""

import gzip
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from kspec.conformance.wire.cases.archive import archived, read_archive
from kspec.conformance.wire.cases.document import FORMAT
from kspec.conformance.wire.cases.kept import whole_suite
from kspec.conformance.wire.cases.suite import SuiteContent, digest_of
from kspec.conformance.wire.run.results import Result, Status
from kspec.conformance.wire.run.runner import needs_restart
from kspec.conformance.wire.run.versions import Choice
from tests.conformance.wire.run.commanded import CommandedAction
from tests.conformance.wire.run.frail_broker import NO_API, started
from tests.conformance.wire.targets import SECONDS, SOON, documents, kspec, run_on
from tests.impl.broker.process import BrokerProcess
from tests.limits.marks import marked
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

SOURCE = REPOSITORY / "conformance" / "runners" / "go"


class Go(NamedTuple):
    """The runner as a program, and the archive with the cases of today."""

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
    assert kspec("conformance", "generate", "--archive", str(folder / "cases.tar.gz")).status == 0
    return Go(folder / "runner", folder / "cases.tar.gz")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("runner") / "logs", "--release", "4.4", traced=False) as running:
        yield running


def verdicts(output: str) -> dict[str, str]:
    return {name: status for status, name, _ in (line.split("\t") for line in output.splitlines())}


def in_python(results: list[Result]) -> dict[str, str]:
    return {one.name: one.status.value for one in results}


def test_every_case_passes_on_our_broker_as_with_the_runner_in_python(go: Go, broker: BrokerProcess) -> None:
    done = go.run(broker.address)
    assert done.returncode == 0, done.stderr
    without_restart = {True: Status.NOT_APPLICABLE.value, False: Status.PASS.value}
    assert verdicts(done.stdout) == {one["name"]: without_restart[needs_restart(one)] for one in documents()}


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


@pytest.mark.parametrize("choice", marked([Choice.OLDEST, Choice.ALL], nightly=[Choice.ALL]))
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


INSIDE = SOURCE / "level0" / "cases.tar.gz"
"""The suite that is built into the runner. It is written anew for a release, and may be older than the cases of today."""


def bare(go: Go, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(go.program), *arguments], capture_output=True, text=True, timeout=5 * SECONDS, check=False)


def test_the_cases_are_inside(go: Go) -> None:
    suite = read_archive(INSIDE)
    assert suite.contents["format"] == FORMAT
    assert bare(go, "--list").stdout.split() == [one["name"] for one in suite.documents]
    assert bare(go, "--version").stdout.startswith(suite.title)


@pytest.mark.nightly
def test_the_cases_inside_are_those_of_today() -> None:
    """`kspec conformance generate --archive conformance/runners/go/level0/cases.tar.gz` writes them."""
    assert read_archive(INSIDE).title == whole_suite().title


def test_a_folder_does_as_well(go: Go, tmp_path: Path) -> None:
    assert kspec("conformance", "generate", "--out", str(tmp_path / "cases")).status == 0
    assert bare(go, "--cases", str(tmp_path / "cases"), "--version").stdout.startswith(whole_suite().title)


def test_cases_that_restart_the_broker_pass_too(go: Go, tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "logs", "--release", "4.4", traced=False) as broker,
        CommandedAction(tmp_path, broker.restart) as restart,
    ):
        done = go.run(broker.address, "--case", "leader-epochs/end-of-epoch", "--restart", restart.command, "--strict")
    assert done.returncode == 0, done.stderr
    assert restart.taken == 2
    assert set(verdicts(done.stdout).values()) == {"pass"}


ALIVE, UNKNOWN, OVERSIZED = "frames/alive/alive", "frames/frame.unknown-api/closed", "frames/frame.oversized/closed"


def test_a_broker_that_ends_is_told_apart_and_the_others_go_on(go: Go, tmp_path: Path) -> None:
    with started({NO_API}) as broker, CommandedAction(tmp_path, broker.start_again) as again:
        at, file = f"127.0.0.1:{broker.port}", tmp_path / "junit.xml"
        done = go.run(at, "--case", "frames/", "--timeout", "2s", "--start", again.command, "--junit", str(file))
    found = verdicts(done.stdout)
    assert (done.returncode, again.taken) == (1, 2)  # once to find out which one, once behind it
    assert [name for name, status in found.items() if status == "stops answering"] == [UNKNOWN]
    assert (found[ALIVE], found[OVERSIZED]) == ("pass", "unlike Kafka")
    (suite,) = ElementTree.parse(file).getroot()
    failed = {one.get("name"): one.find("failure") for one in suite if one.find("failure") is not None}
    assert int(suite.get("failures", 0)) == len(failed)
    told = failed[UNKNOWN]
    assert told is not None
    assert (told.get("type"), len(suite)) == ("stops answering", len(found))
    for part in (
        "rule     spec.broker.clients.versions:judge_version",
        "Kafka    ",
        "sent     0000",
        "again    kspec-runner ",
    ):
        assert part in str(told.text)


def test_failures_that_are_known_are_allowed_and_one_that_is_none_is_told(go: Go, tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(f"# of 2030\n{UNKNOWN} bug 7\n{ALIVE} bug 8\n", encoding="utf-8")
    with started({NO_API}) as broker, CommandedAction(tmp_path, broker.start_again) as again:
        given = ("--timeout", "2s", "--start", again.command, "--allow", str(file))
        first = go.run(f"127.0.0.1:{broker.port}", "--case", UNKNOWN, *given)
        second = go.run(f"127.0.0.1:{broker.port}", "--case", ALIVE, *given, "--strict")
    assert (first.returncode, verdicts(first.stdout)[UNKNOWN]) == (0, "allowed")
    assert (second.returncode, f"allowed to fail, and passes: {ALIVE}" in second.stderr) == (1, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [("no/such bug 7", "there is no case"), (f"{ALIVE}\n", "no reason is given"), (None, "no such file")],
)
def test_known_failures_are_read_closely(go: Go, tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "known"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    done = go.run("127.0.0.1:1", "--allow", str(file))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr


@pytest.mark.parametrize("content", [b"", b"text", gzip.compress(b"text" * 400, mtime=0), INSIDE.read_bytes()[:5000]])
def test_what_is_no_archive_is_one_line_and_status_2(go: Go, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "cases.tar.gz"
    file.write_bytes(content)
    done = bare(go, "--cases", str(file), "--list")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert str(file) in done.stderr


def test_all_that_a_program_wants_is_in_the_json_file(go: Go, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    with started({NO_API}) as broker:
        go.run(f"127.0.0.1:{broker.port}", "--case", OVERSIZED, "--timeout", "2s", "--json", str(file))
    found = json.loads(file.read_text(encoding="utf-8"))
    (case,) = found["cases"]
    assert (found["counts"], case["status"]) == ({"unlike Kafka": 1}, "unlike Kafka")
    assert case["log"][0]["sent"] == "7fffffff"


NO_ENTRY = {"path": "api_keys[api_key=999].min_version", "one_of": [-1]}


def made_suite(file: Path) -> None:
    """A suite of three cases: with a last look that is not offered, a number of 54 bits, an entry that is not there."""
    (alive,) = documents(ALIVE)
    (look,) = [one for one in documents("offsets/offsets.of-partition/an-offset")[0]["steps"] if one.get("optional")]
    (step,) = alive["steps"]
    key = {"path": "api_keys[0].api_key", "one_of": [2**53 + 1], "versions": [0, 4]}
    cases = [
        alive | {"steps": [step, look | {"bytes": {version: [] for version in look["bytes"]}}]},
        alive | {"name": "frames/alive/large", "steps": [step | {"expect": [key]}]},
        alive | {"name": "frames/alive/no-entry", "steps": [step | {"expect": [key | NO_ENTRY]}]},
    ]
    entries = [{"file": f"{number}.json", "name": one["name"], "title": ""} for number, one in enumerate(cases)]
    suite = {"version": "0", "digest": digest_of(cases)}
    file.write_bytes(archived(SuiteContent(whole_suite().contents | {"cases": entries, "suite": suite}, cases)))


def test_a_look_that_is_left_out_is_told_and_numbers_keep_their_bits(go: Go, tmp_path: Path) -> None:
    file = tmp_path / "made.tar.gz"
    made_suite(file)
    with started({NO_API}) as broker:
        at = ("--bootstrap-server", f"127.0.0.1:{broker.port}", "--cases", str(file), "--case")
        for strict in (False, True):
            options = ("--strict",) if strict else ()
            done = bare(go, *at, ALIVE, *options)
            assert (done.returncode, verdicts(done.stdout)) == (int(strict), {ALIVE: "pass"})
            assert "1 pass without a last look: DescribeGroups is not offered" in done.stderr
            told = kspec("conformance", "run", *at, ALIVE, *options)
            assert told.status == int(strict)
            assert "1 pass without a last look: DescribeGroups is not offered" in told.out
        assert "9007199254740993" in bare(go, *at, "frames/alive/large").stdout


def test_an_entry_that_is_not_there_is_none_that_has_minus_one(go: Go, tmp_path: Path) -> None:
    file, name = tmp_path / "made.tar.gz", "frames/alive/no-entry"
    made_suite(file)
    with started({NO_API}) as broker:
        done = bare(go, "--bootstrap-server", f"127.0.0.1:{broker.port}", "--cases", str(file), "--case", name)
    assert (done.returncode, verdicts(done.stdout)) == (1, {name: "fail"})
