"""Readers of clocks: time-outs go by a clock that never jumps, and each place that takes wall time is named here."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.limits.turns import Turns
from tests.places import DOCS, REPOSITORY
from tests.rooms import files_of

WALL = frozenset(
    {
        *(f"time.{name}" for name in ("time", "time_ns", "ctime", "gmtime", "localtime", "asctime", "strftime")),
        *(f"time.{name}" for name in ("clock_gettime", "clock_gettime_ns", "CLOCK_REALTIME", "CLOCK_TAI")),
        *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
        "datetime.date.today",
        "uuid.uuid1",
        "email.utils.formatdate",
        "email.utils.localtime",
    }
)
"""Functions by which Python tells the time of the wall clock, or may."""

FILES = frozenset({"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_atime_ns"})
FILES_OF_PATHS = frozenset({"getmtime", "getctime", "getatime"})
"""Functions that return the time of a file's last write, which is wall time as well."""

MAY: dict[str, str] = {
    "impl.server.clock": "both clocks of a broker or controller: `Instant` says which is which",
    "impl.storage.real_disk": "a segment without any timestamp is as old as its file, as for Kafka",
    "trials.faults.rounds": "names a topic so that no earlier round has one of that name",
    "trials.faults.members.load": "the events of several processes are put in order by the clock that all of them have",
    "trials.faults.members.python_clients": "the time of an event, by the clock that all processes have",
    "trials.faults.process_run": "the timestamps of records that a client sends",
    "conformance.wire.cases.kept": "which of the texts that were kept is the oldest",
    "conformance.wire.run.suite_run": "the timestamps of records that a client sends",
    "conformance.quorum.replay": "the timestamps of records that a played leader appends",
    "conformance.transactions.wire": "the timestamps of records that a producer sends",
    "conformance.world.replay.parties": "the timestamps of records that a client sends",
    "conformance.world.environment.metadata_log": "the timestamps of records that a controller writes",
    "kspec.cli.broker.console": "when a measurement began and ended is printed, as Kafka's tool does",
    "kspec.cli.broker.groups.resetting": "a record is so old: records have the time of the wall, as Kafka's tool has it",
    "kspec.cli.broker.quorum.command": "how long ago a voter has fetched is printed, as Kafka's tool does",
    "kspec.cli.broker.transactions.command": "how long a transaction has been open, by a timestamp of its coordinator",
    "kspec.cli.conformance.matrix": "a page says on which day it was written",
    "benchmarks.broker.coordinator_load": "the timestamps of the commits in a log that it writes",
    "benchmarks.broker.produce_path": "the timestamps of records that a client sends",
}
"""The modules that take wall time, and what for."""

BROKER = ("impl.broker", "impl.requests", "impl.replica", "impl.controller", "impl.coordinator", "impl.metadata")
BROKER_FILES = ("impl.records", "impl.storage", "impl.wire", "impl.config")
"""Rooms that are given the time, and ask for none: not even by the clock that never jumps."""

FILES_OF_MODULES = files_of(REPOSITORY)
OURS = {module: path for module, path in FILES_OF_MODULES.items() if module.split(".")[0] != "tests"}


def clocks_asked(source: str) -> Iterator[str]:
    """The ways to wall time that a source takes, by their full names; and `time.monotonic` and its like."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.split(".")[0]
                names[one.asname or top] = one.name if one.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            yield from (f"{node.module}.{one.name}" for one in node.names if is_time(f"{node.module}.{one.name}"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            full = _full_name(node, names)
            if full is not None and is_time(full):
                yield full
            elif node.attr in FILES or (node.attr in FILES_OF_PATHS):
                yield f"file.{node.attr}"


def is_time(name: str) -> bool:
    """Whether a name tells the time: of the wall clock, or of another."""
    module, _, last = name.rpartition(".")
    return name in WALL or (module == "time" and last.startswith(("monotonic", "perf_counter")))


def _full_name(node: ast.Attribute, names: dict[str, str]) -> str | None:
    parts: list[str] = []
    inner: ast.expr = node
    turns = Turns()
    while isinstance(inner, ast.Attribute):
        turns.go()
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id not in names:
        return None
    return ".".join((names[inner.id], *reversed(parts)))


def is_wall(name: str) -> bool:
    return name in WALL or name.startswith("file.")


@cache
def asked_by(path: Path) -> set[str]:
    return set(clocks_asked(path.read_text(encoding="utf-8")))


def test_who_takes_wall_time_is_named_with_the_reason_and_takes_it() -> None:
    found = {module for module, path in OURS.items() if any(map(is_wall, asked_by(path)))}
    assert found - set(MAY) == set(), "a time-out goes by time.monotonic; a timestamp has its reason in MAY"
    assert set(MAY) - found == set(), "these take no wall time any more"


def test_the_core_and_the_files_of_a_broker_are_given_the_time_and_ask_for_none() -> None:
    rooms = tuple(f"{room}." for room in (*BROKER, *BROKER_FILES))
    asking = {module: asked_by(path) for module, path in OURS.items() if module.startswith(rooms)}
    assert {module for module, asked in asking.items() if asked} == {"impl.storage.real_disk"}


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("import time\nend = time.time() + 5", {"time.time"}),
        ("import time as t\nt.time_ns()", {"time.time_ns"}),
        ("from time import time\ntime()", {"time.time"}),
        ("from time import time as clock", {"time.time"}),
        ("def f():\n    from time import localtime", {"time.localtime"}),
        ("import time\nread = time.clock_gettime", {"time.clock_gettime"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.datetime.now"}),
        ("from datetime import datetime as d\nd.utcnow()", {"datetime.datetime.utcnow"}),
        ("from datetime import date\ndate.today()", {"datetime.date.today"}),
        ("import uuid\nuuid.uuid1()", {"uuid.uuid1"}),
        ("import os\nos.stat('f').st_mtime_ns", {"file.st_mtime_ns"}),
        ("import os\nos.path.getmtime('f')", {"file.getmtime"}),
        ("import time\ntime.monotonic_ns()", {"time.monotonic_ns"}),
        ("from time import perf_counter", {"time.perf_counter"}),
        ("import time\ntime.sleep(1)", set()),
        ("message.time()", set()),
    ],
)
def test_each_way_to_the_time_is_found(source: str, asked: set[str]) -> None:
    assert set(clocks_asked(source)) == asked


# ---- the page


def clocks_of_rules() -> set[tuple[str, str]]:
    """The modules of `spec` with a rule that takes the time, and by which clock."""
    return {
        (module.removeprefix("spec."), annotation)
        for module, path in FILES_OF_MODULES.items()
        if module.startswith("spec.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for one in node.args.args
        if one.annotation is not None
        for annotation in [ast.unparse(one.annotation)]
        if annotation in ("MonotonicMs", "TimestampMs", "Instant")
    }


def test_the_page_says_by_which_clock_each_rule_goes() -> None:
    told = set()
    for line in (DOCS / "clocks.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[1].startswith("`"):
            told |= {(module.strip().strip("`"), cells[1].strip("`")) for module in cells[2].split(",")}
    found = clocks_of_rules()
    assert found - told == set(), "rules that the page does not have"
    assert told - found == set(), "what the page has and no rule"
