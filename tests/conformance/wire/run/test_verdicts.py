"""The summary of a run: nothing that was not run, or was allowed, goes without a word."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kspec.conformance.wire.cases.kept import whole_suite
from tests.conformance.wire.run.commanded import CommandedAction
from tests.conformance.wire.run.frail_broker import NO_API, started
from tests.conformance.wire.targets import Kspec, kspec

pytestmark = pytest.mark.slow

ALIVE, UNKNOWN, OVERSIZED = "frames/alive/alive", "frames/frame.unknown-api/closed", "frames/frame.oversized/closed"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a broker that offers Metadata and ApiVersions alone, and ends at an API that there is not."""
    with started({NO_API}) as broker:
        yield broker.port


def run(port: int, case: str, *more: str) -> Kspec:
    return kspec("conformance", "run", "--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "2", "--case", case, *more)


def allowed(folder: Path, *names: str) -> str:
    file = folder / "allowed"
    file.write_text("".join(f"{name} bug 7\n" for name in names), encoding="utf-8")
    return str(file)


def test_what_is_not_supported_is_told_and_is_a_failure_if_all_is_wanted(port: int) -> None:
    done = run(port, "producer-ids/init.own/an-id")
    assert (done.status, "1 not supported: there is no InitProducerId" in done.out) == (0, True)
    assert run(port, "producer-ids/init.own/an-id", "--strict").status == 1


def test_what_is_unlike_kafka_is_told_with_the_reason(port: int) -> None:
    done = run(port, OVERSIZED, "--strict")
    assert done.status == 0
    assert "1 cases in" in done.out
    assert "1 unlike Kafka: it does not close the connection within 2 s: the protocol has no limit to" in done.out


def test_results_say_of_which_suite_they_are(port: int, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"results.{kind}" for kind in ("json", "html", "junit")}
    given = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    assert run(port, OVERSIZED, *given).status == 0
    found = json.loads(files["json"].read_text(encoding="utf-8"))
    assert found["suite"] == whole_suite().contents["suite"]
    assert found["cases"][0]["exchanges"][0]["liberties"][0].startswith("it does not close the connection")
    assert whole_suite().title in files["html"].read_text(encoding="utf-8")
    (suite,) = ElementTree.parse(files["junit"]).getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "0")
    assert "unlike Kafka: it does not close" in suite[0].findtext("system-out", "")


def test_an_allowed_failure_that_is_none_is_told(port: int, tmp_path: Path) -> None:
    done = run(port, ALIVE, "--allow", allowed(tmp_path, ALIVE))
    assert (done.status, f"allowed to fail, and passes: {ALIVE}" in done.out) == (0, True)
    assert run(port, ALIVE, "--strict", "--allow", allowed(tmp_path, ALIVE)).status == 1
    assert "allowed to fail" not in run(port, ALIVE, "--allow", allowed(tmp_path, UNKNOWN)).out


def test_a_failure_that_is_allowed_has_to_be_one_of_a_case(port: int, tmp_path: Path) -> None:
    done = run(port, ALIVE, "--allow", allowed(tmp_path, "frames/alive/alife"))
    assert done.status == 2
    assert "there is no case 'frames/alive/alife', which is allowed to fail" in done.err


def test_a_file_that_is_no_text_is_bad_usage(port: int, tmp_path: Path) -> None:
    file = tmp_path / "allowed"
    file.write_bytes(b"\xff\xfe\x00")
    done = run(port, ALIVE, "--allow", str(file))
    assert (done.status, "is no text" in done.err) == (2, True)


def test_a_broker_that_ends_is_status_3_and_the_way_to_go_on_is_told(port: int) -> None:
    done = run(port, UNKNOWN)
    assert done.status == 3
    assert f"no longer answers after case {UNKNOWN}" in done.err
    assert "--start COMMAND" in done.err


def test_a_broker_that_ends_is_started_by_a_command_and_the_others_go_on(tmp_path: Path) -> None:
    with started({NO_API}) as broker, CommandedAction(tmp_path, broker.start_again) as again:
        done = run(broker.port, "frames/frame.un", "--start", again.command, "--together", "1")
    assert done.status == 1
    assert again.taken == 1
    assert f"STOPS ANSWERING {UNKNOWN}" in done.out
    assert "1 stops answering" in done.out
    assert "pass" in done.out
