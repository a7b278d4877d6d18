"""The suite on this project's broker: sound, and with one rule weakened."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.conformance.wire.choice.weakened import RuleScore
from kspec.conformance.wire.run.results import Status
from kspec.conformance.wire.run.runner import TargetGoneError, needs_restart
from kspec.conformance.wire.run.versions import Choice
from tests.conformance.conftest import MadeSuite
from tests.conformance.wire.targets import SOON, assert_all_pass, documents, run_on
from tests.conformance.wire.weakenings import TOLD_CHECKS, TOLD_MUTANTS
from tests.impl.broker.process import BrokerProcess, first_line
from tests.limits.marks import marked

pytestmark = pytest.mark.slow

OF_EVERY_SUBJECT = (
    "frames",
    "absent",
    "producer-ids",
    "producing",
    "received",
    "limits",
    "reading",
    "compacted",
    "sessions",
    "topics",
    "members",
    "static-members",
    "offsets",
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("level-0") / "logs", "--release", "4.4") as running:
        yield running


def test_some_cases_of_every_subject_pass(broker: BrokerProcess) -> None:
    plain = [case for case in documents() if not needs_restart(case)]
    chosen = [case for subject in OF_EVERY_SUBJECT for case in [one for one in plain if one["subject"] == subject][::4]]
    assert len(chosen) > 110
    assert_all_pass(run_on(broker.port, chosen))


def test_some_cases_pass_in_every_version_of_their_requests(broker: BrokerProcess) -> None:
    cases = [case for case in documents() if case["subject"] in ("producer-ids", "sessions", "compacted")]
    results = run_on(broker.port, cases, versions=Choice.ALL)
    assert len(results) > 3 * len(cases)
    assert {one.case_name for one in results} == {one["name"] for one in cases}
    assert_all_pass(results)


def test_cases_that_need_a_restart_are_not_applicable_without_one(broker: BrokerProcess) -> None:
    (case,) = documents("reading/fetch.end.older/fenced-leader-epoch")
    (result,) = run_on(broker.port, [case])
    assert (result.status, result.reason) == (
        Status.NOT_APPLICABLE,
        "it needs a target that can be restarted (--restart COMMAND)",
    )


@pytest.mark.nightly  # by day the tests of the matrix run all of them, once
def test_all_cases_pass_twice_in_a_row(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", "--release", "4.4", traced=False) as running:
        for _ in range(2):
            assert_all_pass(run_on(running.port, documents(), running.restart))


@pytest.mark.parametrize("mutant", TOLD_MUTANTS)
def test_a_broker_with_a_mutant_fails_the_cases_that_tell_it(tmp_path: Path, mutant: str) -> None:
    told = [case["name"] for case in documents() if mutant in case["catches"]][:12]
    options = ("--release", "4.4", "--mutant", mutant)
    with BrokerProcess(tmp_path / "logs", *options, traced=False) as weak:
        results = run_on(weak.port, documents(*told), weak.restart, SOON)
    assert any(one.status == Status.FAIL for one in results), [(one.name, one.status) for one in results]


@pytest.fixture(scope="session")
def cases_by_check(made_suite: MadeSuite, rule_scores: list[RuleScore]) -> dict[str, list[str]]:
    """The cases that tell each check."""
    by_goals = {case.goals: case.name for case in made_suite.cases}
    told = {one.name: one.told for one in rule_scores if one.name in TOLD_CHECKS}
    return {check: [by_goals[one.goals] for one in runs if one.goals] for check, runs in told.items()}


@pytest.mark.xdist_group("made_suite")  # one process makes the suite, and finds the cases that tell them
@pytest.mark.parametrize("check", marked(TOLD_CHECKS, nightly=set(TOLD_CHECKS) - set(TOLD_CHECKS[::4])))
def test_a_broker_without_a_check_fails_the_cases_that_tell_it(
    tmp_path: Path, check: str, cases_by_check: dict[str, list[str]]
) -> None:
    told = cases_by_check[check]
    command = [sys.executable, "-u", "-m", "tests.conformance.wire.weak_broker", check, "broker", "--release", "4.4"]
    command += ["--log-dir", str(tmp_path / "logs"), "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    command += ["--override", "group.initial.rebalance.delay.ms=0"]
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        port = int(first_line(process.stdout).rpartition(":")[2])
        cases = [case for case in documents(*told) if not needs_restart(case)]
        ended: TargetGoneError | None = None
        results = run_on(port, cases[:12], seconds=SOON)
    except TargetGoneError as gone:
        ended = gone  # with a check less it may end itself at a case
        results = []
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=600)
    if ended is None:
        assert any(one.status == Status.FAIL for one in results), [(one.name, one.status) for one in results]
    else:
        assert ended.result is not None, "it has ended before any case"
