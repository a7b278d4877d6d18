"""The wall clock of a process is off by what its file says, also while it runs; its monotonic clock is not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.impl.server import clock
from kspec.trials.cluster.clocks import LIBRARY, MISSING, SHARED, faketime_library, forget_shared, move_clock, with_clock
from tests.times import YEAR_MS

NEAR_MS = 30_000
"""The longest time for a process to answer, on a machine that is busy."""

TELLS = "from kspec.impl.server import clock\nwhile input():\n    print(*clock.now(), flush=True)"

SHARES = """
import os, threading, time

def count():
    for _ in range(5_000_000):
        pass

threads = [threading.Thread(target=count) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*os.times()[:2])
"""
"""Two threads that want the interpreter's lock, and the time that the process and the system have used for them."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    move_clock(tmp_path / "clock", 0)
    return tmp_path / "clock"


@pytest.fixture
def process(file: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that tells the time when it is asked."""
    library = faketime_library()
    if library is None:
        pytest.skip(f"NOT RUN: {MISSING}")
    command = with_clock(library, file, [sys.executable, "-c", TELLS])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()
        forget_shared(running.pid)


def look(process: "subprocess.Popen[str]") -> list[int]:
    assert process.stdin is not None
    assert process.stdout is not None
    print("now", file=process.stdin, flush=True)
    return [int(word) for word in process.stdout.readline().split()]


@pytest.mark.parametrize("ms", [60_000, -60_000, 3_600_000, -3_600_000, 30 * YEAR_MS, -30 * YEAR_MS])
def test_only_the_wall_clock_is_off(file: Path, process: "subprocess.Popen[str]", ms: int) -> None:
    for ahead_ms in (0, ms, 0):
        move_clock(file, ahead_ms)
        here, (monotonic, timestamp) = clock.now(), look(process)
        assert abs(timestamp - here.timestamp - ahead_ms) < NEAR_MS
        assert 0 <= monotonic - here.monotonic < NEAR_MS


def test_a_thread_that_waits_for_the_interpreter_does_not_spin(file: Path) -> None:
    library = faketime_library()
    if library is None:
        pytest.skip(f"NOT RUN: {MISSING}")
    command = with_clock(library, file, [sys.executable, "-c", SHARES])
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=NEAR_MS / 1000).stdout
    of_process, of_system = (float(seconds) for seconds in told.split())
    assert of_system < of_process / 2, "with the library's old fix as much as the process itself"


def test_nothing_of_a_process_that_was_killed_stays_in_shared_memory(tmp_path: Path) -> None:
    for name in SHARED:
        (tmp_path / name.format(7)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name.format(7)).touch()
    forget_shared(7, tmp_path)
    forget_shared(8, tmp_path)
    assert list((tmp_path / "dev/shm").iterdir()) == []


def test_the_library_is_found_where_debian_has_it(tmp_path: Path) -> None:
    assert faketime_library(tmp_path) is None
    place = tmp_path / "usr/lib/x86_64-linux-gnu/faketime"
    place.mkdir(parents=True)
    (place / LIBRARY).touch()
    assert faketime_library(tmp_path) == place / LIBRARY
