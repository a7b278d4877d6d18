"""The runner in JavaScript, which was written from the format's page alone, gives the verdicts of the one in Python."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kspec.conformance.wire.cases.document import FORMAT
from tests.conformance.wire.run.frail_broker import ALTER_PARTITION, NO_API, FrailBroker, started
from tests.conformance.wire.targets import SECONDS, SOON, documents, kspec, run_on
from tests.impl.broker.process import BrokerProcess
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

ALIVE = "frames/alive/alive"
PROGRAM = REPOSITORY / "conformance" / "runners" / "examples" / "javascript" / "runner.mjs"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None:
        pytest.skip("NOT RUN: the runner in JavaScript, because there is no Node (node) on the path")
    folder = tmp_path_factory.mktemp("javascript") / "cases"
    assert kspec("conformance", "generate", "--out", str(folder)).status == 0
    return folder


def run(cases: Path, port: int, name: str) -> "subprocess.CompletedProcess[str]":
    command = ["node", str(PROGRAM), str(cases), f"127.0.0.1:{port}", name]
    return subprocess.run(command, capture_output=True, text=True, timeout=5 * SECONDS, check=False)


def verdicts(output: str) -> dict[str, str]:
    return {name: status for status, name, _ in (line.split("\t") for line in output.splitlines())}


@pytest.mark.parametrize("subject", ["producing", "members", "sessions"])
def test_verdicts_on_our_broker(cases: Path, tmp_path: Path, subject: str) -> None:
    chosen = [one for one in documents() if one["subject"] == subject]
    with BrokerProcess(tmp_path / "logs", "--release", "4.4", traced=False) as broker:
        done = run(cases, broker.port, f"{subject}/")
        expected = {one.name: one.status.value for one in run_on(broker.port, chosen)}
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done.stdout) == expected


def test_verdicts_on_a_broker_that_takes_liberties_and_is_wrong(cases: Path) -> None:
    chosen = [one for one in documents() if one["subject"] == "frames"]
    with started({ALTER_PARTITION}) as broker:
        found: dict[str, str] = {}
        for name in ("frames/alive", "frames/frame.n", "frames/frame.overs", "frames/frame.unknown-t"):
            found |= verdicts(run(cases, broker.port, name).stdout)
        asked = [one for one in chosen if one["name"] in found]
        expected = {one.name: one.status.value for one in run_on(broker.port, asked, seconds=SOON)}
    assert found == expected
    assert {"pass", "fail", "unlike Kafka"} <= set(found.values())


def test_a_broker_that_ends_is_status_3(cases: Path) -> None:
    with started({ALTER_PARTITION}) as broker:
        done = run(cases, broker.port, "frames/frame.of-controllers/closed")
    assert (done.returncode, verdicts(done.stdout)) == (3, {"frames/frame.of-controllers/closed": "stops answering"})
    assert "no longer answers after case frames/frame.of-controllers/closed" in done.stderr


def test_an_entry_that_is_not_there_is_none_that_has_minus_one(cases: Path, tmp_path: Path) -> None:
    (alive,) = documents(ALIVE)
    (step,) = alive["steps"]
    lacking = {"path": "api_keys[api_key=999].min_version", "one_of": [-1], "versions": [0, 4]}
    index = json.loads((cases / "index.json").read_text(encoding="utf-8"))
    entry = {"file": "0.json", "name": ALIVE, "title": ""}
    (tmp_path / "index.json").write_text(json.dumps(index | {"cases": [entry]}), encoding="utf-8")
    (tmp_path / "0.json").write_text(json.dumps(alive | {"steps": [step | {"expect": [lacking]}]}), encoding="utf-8")
    with started({NO_API}) as broker:
        done = run(tmp_path, broker.port, ALIVE)
    assert (done.returncode, verdicts(done.stdout)) == (1, {ALIVE: "fail"})


def test_bad_usage_is_status_2(cases: Path, tmp_path: Path) -> None:
    with started(set()) as broker:
        assert run(cases, broker.port, "no/such").returncode == 2
    done = subprocess.run(["node", str(PROGRAM)], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 2
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.json").write_text(f'{{"format": {FORMAT - 1}}}', encoding="utf-8")
    done = run(other, 1, "")
    assert (done.returncode, f"the cases have format {FORMAT - 1}" in done.stderr) == (2, True)


def test_nobody_listens(cases: Path) -> None:
    async def free() -> int:
        broker = FrailBroker(set())
        target = await broker.start()
        broker.end()
        return target.port

    assert run(cases, asyncio.run(free()), "frames/alive").returncode == 3
