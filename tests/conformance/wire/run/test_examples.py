"""The examples of cases as unit tests, in projects in Go, Rust and Java: they pass, they fail, and they know failures."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.wire.run.frail_broker import ALTER_PARTITION, started
from tests.limits.marks import NIGHTLY
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

RUNNERS = REPOSITORY / "conformance" / "runners"
SECONDS = 600
PASSES, FAILS = "frames/alive/alive", "frames/frame.null-client-id/answered"


class Example(NamedTuple):
    """An example: its folder, the command that builds all that it needs, and the one that runs a case."""

    folder: str
    prepare: tuple[str, ...]
    test: Callable[[str], tuple[str, ...]]


EXAMPLES = [
    Example(
        "go", ("go", "vet", "./..."), lambda case: ("go", "test", "-count=1", "-run", f"TestConformance/{case}$", "-v", ".")
    ),
    Example("rust", ("cargo", "build", "--tests", "-q"), lambda case: ("cargo", "test", "-q", case, "--", "--exact")),
    Example(
        "java",
        ("mvn", "-q", "-B", "test-compile"),
        lambda case: ("mvn", "-q", "-B", "test", f"-Dcases={case}"),
    ),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, with the runner that they use."""
    if shutil.which("go") is None:
        pytest.skip("NOT RUN: the examples of unit tests, because there is no Go (go) on the path")
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(RUNNERS, folder / "runners", ignore=shutil.ignore_patterns("target"))
    build = ["go", "build", "-buildvcs=false", "-o", str(folder / "kspec-runner"), "."]
    subprocess.run(build, cwd=folder / "runners" / "go", check=True, timeout=SECONDS)
    return folder


@pytest.fixture
def port() -> Iterator[int]:
    with started({ALTER_PARTITION}) as broker:
        yield broker.port


def run(place: Path, folder: str, command: tuple[str, ...], port: int) -> "subprocess.CompletedProcess[str]":
    given = {"BROKER": f"127.0.0.1:{port}", "RUNNER": str(place / "kspec-runner")}
    where = place / "runners" / "examples" / folder
    return subprocess.run(
        command, cwd=where, env=os.environ | given, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def know(place: Path, *names: str) -> None:
    text = "# known\n" + "".join(f"{name} bug 7\n" for name in names)
    (place / "runners" / "examples" / "known-failures.txt").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=one.folder, marks=() if one.folder == "go" else NIGHTLY) for one in EXAMPLES],
)
def test_an_example_passes_fails_and_knows_failures(place: Path, port: int, example: Example) -> None:
    if shutil.which(example.prepare[0]) is None:
        pytest.skip(f"NOT RUN: the example in {example.folder}, because there is no {example.prepare[0]} on the path")
    prepared = run(place, example.folder, example.prepare, port)
    if prepared.returncode and example.folder != "go":
        pytest.skip(f"NOT RUN: the example in {example.folder}, whose packages cannot be had: {prepared.stderr[-300:]}")
    assert prepared.returncode == 0, prepared.stderr
    know(place)
    passes = run(place, example.folder, example.test(PASSES), port)
    assert passes.returncode == 0, passes.stdout + passes.stderr
    fails = run(place, example.folder, example.test(FAILS), port)
    assert fails.returncode != 0
    assert "spec.broker.clients.versions:judge_content" in fails.stdout + fails.stderr
    know(place, FAILS)
    known = run(place, example.folder, example.test(FAILS), port)
    assert known.returncode == 0, known.stdout + known.stderr
    know(place, PASSES)
    stale = run(place, example.folder, example.test(PASSES), port)
    assert stale.returncode != 0
    assert "known-failures.txt says that it fails" in stale.stdout + stale.stderr
