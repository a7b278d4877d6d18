"""Every broker that is found is run, and the pages say what came of it."""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kspec.cli.conformance import matrix
from kspec.conformance.targets import drivers
from kspec.conformance.targets.drivers import MissingError, PortAnnouncer, ProcessDriver, StartedBroker, TargetDriver
from kspec.conformance.targets.matrix import (
    Column,
    columns_as_text,
    failures,
    overview,
    read_columns,
    with_column,
)
from kspec.conformance.wire.choice.weakened import RuleScore
from kspec.conformance.wire.run.results import ExchangeReport, Result, Status
from kspec.conformance.wire.run.runner import needs_restart
from tests.conformance.wire.targets import documents, kspec


@contextmanager
def never(folder: Path) -> Iterator[StartedBroker]:
    raise AssertionError("it is not started")
    yield ProcessDriver(folder, lambda port: [])


DRIVER = TargetDriver("Broker", "1.2", "`broker PORT`", never)


def column() -> Column:
    first, second, third, fourth = documents()[:4]
    told = ExchangeReport("A", "Produce", 9, "", {}, "", {}, "", "appended", ("error_code: 7, not 0 | 1",))
    return Column(
        DRIVER,
        [
            Result(first, Status.PASS, "", (), 0.1),
            Result(second, Status.FAIL, "error_code: 7, not 0", (told,), 0.1),
            Result(third, Status.NOT_SUPPORTED, "Produce 0 to 2", (), 0.0),
            Result(fourth, Status.UNLIKE, "error_code: 2, where Apache Kafka has 87 | it is free", (), 0.1),
        ],
    )


def test_the_page_of_a_broker_has_each_failure_with_what_differs() -> None:
    page = failures(column())
    assert "1 pass, 1 unlike Kafka, 1 fail, 0 stops answering, 1 not supported" in page
    assert f"| `{documents()[1]['name']}` |" in page
    assert "error_code: 7, not 0 \\| 1 |" in page
    assert "- 1: Produce 0 to 2" in page
    assert documents()[0]["name"] not in page
    free = page.partition("Unlike Apache Kafka, as the protocol leaves it free")[2]
    assert f"| `{documents()[3]['name']}` | error_code: 2, where Apache Kafka has 87 \\| it is free |" in free


def test_the_first_page_counts_the_cases_that_ran() -> None:
    caught = RuleScore("count-what-is-sent", (), "")
    missed = RuleScore("await-isr-only", (), "why not")
    kept = column().kept("Broker", "1 May 2030")
    page = overview([kept], ["frames"], {"Tansu": "there is none"}, [(caught, ["a/longer-case", "a/case"]), (missed, [])])
    assert "| cases | [Broker 1.2](broker-1.2.md) |" in page
    assert "| **all** | 2 of 3 |" in page
    assert "| Broker 1.2 | `broker PORT` | 1 May 2030 | 1 | 1 | 1 | 0 | 1 | 0 |" in page
    assert "- Tansu: there is none" in page
    assert "Of 2 weakened rules of this project's broker 1 are caught" in page
    assert "| `count-what-is-sent` | 2 | `a/case` |" in page
    assert "| `await-isr-only` | 0 | why not |" in page


def test_a_broker_run_anew_takes_its_former_place_and_the_others_stay() -> None:
    old, other = column().kept("Broker", "1 May 2030"), column().kept("Other", "2 May 2030")
    new = old._replace(title="Broker 1.3", date="3 May 2030", rows={"all": {"pass": 7}})
    assert with_column([old, other], new) == [new, other]
    assert with_column([old], other) == [old, other]
    assert read_columns(columns_as_text([new, other])) == [new, other]
    page = overview([new, other], [], {}, [])
    assert "| **all** | 7 of 7 | 2 of 3 |" in page
    assert "| frames | not run | 2 of 3 |" in page


@pytest.mark.parametrize("text", ["", "{}{", '[{"name": "a"}]', "[7]"])
def test_columns_that_are_none_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "matrix.json").write_text(text, encoding="utf-8")
    done = kspec("conformance", "matrix", "--target", "kspec broker", "--out", str(tmp_path))
    assert done.status == 2
    assert "matrix.json: no columns of a conformance matrix" in done.err
    assert (tmp_path / "matrix.json").read_text(encoding="utf-8") == text


def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    program = ProcessDriver(tmp_path / "it", lambda port: ["python3", "-c", "print('no disk'); raise SystemExit(1)"])
    with pytest.raises(MissingError, match="python3 does not start: no disk"):
        program.start()


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    inner = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}, sys.argv[1]])"
    program = ProcessDriver(tmp_path / "it", lambda port: [sys.executable, "-c", outer, str(port)])
    program.start()
    program.stop()
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", program.port)) != 0


CHOOSES = """
import socket, time
listening = socket.create_server(("127.0.0.1", 0))
print("hello")
print(f"127.0.0.1:{listening.getsockname()[1]}", flush=True)
time.sleep(600)
"""


def test_a_broker_that_chooses_its_port_is_found_there_and_after_a_restart_too(tmp_path: Path) -> None:
    program = PortAnnouncer(tmp_path / "it", lambda port: [sys.executable, "-c", CHOOSES])
    program.start()
    try:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", program.port)):
                pass
            program.restart()
    finally:
        program.stop()


FRAGILE = """
import socket, struct, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listening.accept()
    while frame := client.recv(4096):
        key, version, correlation = struct.unpack_from(">hhi", frame, 4)
        assert key == 18, "and it ends"
        client.sendall(struct.pack(">iihihhh", 16, correlation, 0, 1, 18, 0, 0))
"""


def test_a_broker_that_a_case_ends_is_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def start(folder: Path) -> Iterator[StartedBroker]:
        program = ProcessDriver(folder, lambda port: [sys.executable, "-c", FRAGILE, str(port)])
        program.start()
        try:
            yield program
        finally:
            program.stop()

    cases = documents("frames/frame.unknown-version/closed", "frames/alive/alive")
    cases.sort(key=lambda one: one["name"], reverse=True)
    monkeypatch.setattr(matrix, "chosen", lambda wanted, release: cases)
    found = matrix.column_of(DRIVER._replace(start=start, fragile=True), 20.0)
    assert [one.status for one in found.results] == [Status.ENDED, Status.PASS]
    assert "the broker stops answering: " in failures(found)


@pytest.mark.parametrize("driver", [drivers.kfake, drivers.mock, drivers.noida_db, drivers.tansu])
def test_a_program_that_is_not_there_is_named(driver: Callable[[], TargetDriver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "which", lambda name: None)
    monkeypatch.setattr(drivers, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingError, match="there is no "):
        driver()


def test_an_unknown_broker_is_named() -> None:
    done = kspec("conformance", "matrix", "--target", "kfaek")
    assert done.status == 2
    assert "kfake" in done.err


@pytest.mark.slow
def test_our_own_broker_passes_each_twelfth_case_over_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = documents()[::12]
    assert any(map(needs_restart, cases))
    monkeypatch.setattr(matrix, "chosen", lambda wanted, release: cases)
    found = matrix.column_of(drivers.own(), 60.0)
    assert [one.status for one in found.results] == [Status.PASS] * len(cases)


@pytest.mark.slow
@pytest.mark.nightly  # by day: each twelfth with restarts, and by the runner in Go all that need none
def test_our_own_broker_passes_every_case_over_restarts(tmp_path: Path) -> None:
    done = kspec("conformance", "matrix", "--target", "kspec broker", "--out", str(tmp_path / "pages"), "--timeout", "60")
    assert done.status == 0, done.err
    page = (tmp_path / "pages" / "README.md").read_text(encoding="utf-8")
    assert f"| **all** | {len(documents())} of {len(documents())} |" in page
    (own,) = (one for one in (tmp_path / "pages").iterdir() if one.name.startswith("kspec"))
    assert f"{len(documents())} pass, 0 unlike Kafka, 0 fail, 0 stops" in own.read_text(encoding="utf-8")
