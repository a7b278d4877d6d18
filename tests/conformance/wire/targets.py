"""Cases run against a target from a test."""

import asyncio
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.kept import whole_suite
from kspec.conformance.wire.run.results import Result, Status
from kspec.conformance.wire.run.runner import find_target
from kspec.conformance.wire.run.suite_run import NameSpace, Suite, SuiteRun
from kspec.conformance.wire.run.versions import Choice, in_versions
from kspec.conformance.wire.run.words import failure_in_words
from tests.impl.broker.process import COMMAND

SECONDS = 60.0
"""For one step: an emergency stop, far away."""

SOON = 5.0
"""The time limit for a step of a broker that may not answer, because a rule is weakened."""


def documents(*names: str) -> list[Any]:
    """The cases with these names, or all."""
    suite = whole_suite()
    return [suite.documents[at] for at, name in enumerate(suite.names) if not names or name in names]


def run_on(
    port: int,
    cases: Sequence[Any],
    restart: Callable[[], None] | None = None,
    seconds: float = SECONDS,
    versions: Choice = Choice.NEWEST,
) -> list[Result]:
    """Run cases on a broker of the loopback, with so long a time limit for a step."""

    async def restarted() -> None:
        assert restart is not None
        await asyncio.get_running_loop().run_in_executor(None, restart)

    again: Callable[[], Awaitable[None]] | None = restarted if restart else None

    async def work() -> list[Result]:
        target = await find_target("127.0.0.1", port, seconds)
        suite = Suite(in_versions(cases, versions, target.offered), 16, {}, again)
        return await SuiteRun(target, suite, NameSpace(secrets.token_hex(3)), lambda result: None).run()

    return asyncio.run(work())


def assert_all_pass(results: Sequence[Result], may_lack: tuple[str, ...] = ()) -> None:
    """Every case passes, or lacks a version that starts so."""
    for one in results:
        lacks = one.status == Status.NOT_SUPPORTED and one.reason.startswith(may_lack) and may_lack
        assert one.status == Status.PASS or lacks, "\n".join(failure_in_words(one, ""))


class Kspec(NamedTuple):
    """The result of a command: its exit status, and its output."""

    status: int
    out: str
    err: str


def kspec(*arguments: str) -> Kspec:
    """Run `kspec` with these arguments."""
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS, check=False)
    return Kspec(done.returncode, done.stdout, done.stderr)
