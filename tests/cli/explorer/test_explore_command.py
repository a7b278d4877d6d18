"""`kspec explore` as a process: what it prints, what it serves, and how it ends."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.model_check.commands import Command

START = "from kspec.cli.start import main; main()"


@contextmanager
def serving(*arguments: str, command: str = "explore") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    own = ["--no-browser", "--port", "0"] if command == "explore" else []
    started = [sys.executable, "-c", START, command, *own, *arguments]
    without_screen = {
        name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    }
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=without_screen) as process:
        try:
            assert process.stdout is not None
            yield process, next(line.strip() for line in process.stdout if line.startswith("http"))
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_ctrl_c(number: signal.Signals) -> None:
    with serving("kip-101", "--replicas", "2") as (process, url):
        address, _, run = url.partition("#")
        assert run.startswith("kip-101~replicas.2~")
        asked = urllib.request.Request(
            f"{address}message?session=a-tab-of-its-own",
            data=b'{"do": "start", "model": "kip-101", "parameters": {}}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert b'"answer":"view"' in answer.read()
        process.send_signal(number)
        _, complaint = process.communicate(timeout=60)
        assert (process.returncode, complaint) == (3, "kspec: interrupted\n")


@pytest.mark.slow
def test_a_check_shows_its_counterexample_and_keeps_its_verdict() -> None:
    bounds = [
        "--replicas",
        "2",
        "--log-size",
        "1",
        "--max-records",
        "1",
        "--max-epoch",
        "1",
        "--restarts",
        "1",
        "--acks",
        "all",
    ]
    with serving("truncate-to-hw", *bounds, "--quiet", "--explore", command="check") as (process, url):
        assert "~~ControllerElectLeader_replica." in url
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kip-999"], "there is no model 'kip-999'"),
        (["kip-101", "--replicas", "9999"], "--replicas 9999"),
        (["kip-101", "--release", "4.4"], "release"),
        (["kip-101~replicas.2~~Nonsense_x.1~~zz"], "the digest 'zz'"),
        (["kip-101~replicas.x"], "whole number"),
        (["--replicas", "2"], "--replicas is a parameter of a model"),
        (["--port", "99999"], "--port"),
    ],
)
def test_bad_usage_is_one_line(command: Command, arguments: list[str], words: str) -> None:
    done = command("explore", "--no-browser", *arguments)
    assert done.mistake == (2, 1)
    assert words in done.stderr


def test_a_port_that_is_taken_is_one_line(command: Command) -> None:
    with serving() as (_, url):
        port = url.rstrip("/").rpartition(":")[2]
        done = command("explore", "--no-browser", "--port", port)
        assert done.mistake == (2, 1)
        assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
