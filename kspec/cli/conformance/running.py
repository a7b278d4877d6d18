"""`kspec conformance run`: level 0 against an address, or another level."""

import asyncio
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kspec.cli.common import unknown
from kspec.cli.conformance.choosing import chosen, suite
from kspec.cli.conformance.levels import Files, Level, level_options
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError
from kspec.cli.terminal.output import Output

if TYPE_CHECKING:
    from kspec.conformance.wire.run.results import Result
    from kspec.conformance.wire.run.runner import RunTarget

VERSIONS = ("newest", "oldest", "all")


def _check_release(release: str | None) -> None:
    from kspec.spec.releases.names import RELEASES

    if release is not None and release not in RELEASES:
        raise unknown(f"there is no release {release!r}", release, RELEASES, f"one of {', '.join(RELEASES)}")


def _allowed(file: str | None) -> dict[str, str]:
    """The failures that are allowed: a name on each line, and after a space the reason."""
    if file is None:
        return {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is no text: {error.reason}") from error
    entries = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    for name, *reason in entries:
        if not reason:
            raise click.UsageError(f"{file}: case {name} is allowed to fail, and no reason is given")
    return {name: reason.strip() for name, reason in entries}


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.UsageError(f"{text!r} is no HOST:PORT")
    return host.strip("[]"), int(port)


class LevelZeroRun(NamedTuple):
    """A run of level 0, with what the user has said."""

    host: str
    port: int
    archive: str | None
    wanted: str | None
    release: str | None
    allowed: dict[str, str]
    restart: str | None
    start: str | None
    versions: str
    timeout: float
    together: int
    keep_topics: bool
    run: str

    @property
    def address(self) -> str:
        """The target's address, as it is told."""
        return f"{self.host}:{self.port}"

    def documents(self) -> Sequence[Any]:
        """The cases that are wanted. Raises: bad usage, also for a failure that is allowed to a case that there is not."""
        known = suite(self.archive).names
        for name in self.allowed:
            if name not in known:
                raise unknown(f"there is no case {name!r}, which is allowed to fail", name, known, "kspec conformance list")
        return chosen(self.wanted, self.release, self.archive)

    def replay(self, result: "Result") -> str:
        """The command that runs a case alone."""
        given = f" --cases {shlex.quote(self.archive)}" if self.archive else ""
        given += f" --restart {shlex.quote(self.restart)}" if self.restart else ""
        given += f" --versions {self.versions}" if result.case_name != result.name else ""
        return f"kspec conformance run --bootstrap-server {self.address} --case {result.case_name}{given}"

    def tell(self, result: "Result") -> None:
        """Print a case that went wrong."""
        from kspec.conformance.wire.run.results import WRONG
        from kspec.conformance.wire.run.words import failure_in_words

        if result.status in WRONG:
            click.echo("\n".join(failure_in_words(result, self.replay(result))))

    async def results(self) -> "list[Result]":
        """Run the cases. Raises: `TargetGoneError`, bad usage."""
        from kspec.conformance.wire.cases.kept import is_kept
        from kspec.conformance.wire.run.runner import find_target
        from kspec.conformance.wire.run.suite_run import NameSpace, Suite, SuiteRun, clean_up
        from kspec.conformance.wire.run.versions import Choice, in_versions

        if self.archive is not None or is_kept():
            self.documents()  # what is wrong with names is told before anything is asked
        target = await find_target(self.host, self.port, self.timeout)  # before cases are made, which takes longer
        cases = in_versions(self.documents(), Choice(self.versions), target.offered)
        restart, start = self._by(self.restart), self._by(self.start or self.restart)
        naming = NameSpace(self.run)
        work = SuiteRun(target, Suite(cases, self.together, self.allowed, restart, start), naming, self.tell)
        try:
            return await work.run()
        finally:
            if not self.keep_topics:
                await clean_up(work.target, naming, work.named)

    def _by(self, command: str | None) -> "Callable[[], Awaitable[RunTarget]] | None":
        """A function that starts the target by a command, and waits until it answers again."""
        from kspec.conformance.wire.run.restarting import restarted_by

        return None if command is None else lambda: restarted_by(command, self.host, self.port, self.timeout)


@click.command()
@click.option("--bootstrap-server", "address", metavar="HOST:PORT", help="The broker under test.")
@click.option("--case", "wanted", metavar="NAME", help="This case, or those whose names begin with it.")
@click.option("--cases", "archive", metavar="FILE", help="The cases of an archive that `generate --archive` wrote.")
@click.option("--release", metavar="R", help="Leave out what holds only from a later release of Kafka on.")
@click.option("--allow", metavar="FILE", help="Failures that are known: a name and a reason on each line.")
@click.option("--strict", is_flag=True, help="Status 1 also if a case was not run, or if an allowed failure is none.")
@click.option(
    "--restart",
    metavar="COMMAND",
    help="A shell command that restarts the broker, which keeps its records: for older leader epochs.",
)
@click.option(
    "--start",
    metavar="COMMAND",
    help="A shell command that starts it again where a case ends it; its records may be gone. By default that of --restart.",
)
@click.option(
    "--versions",
    default="newest",
    show_default=True,
    type=click.Choice(VERSIONS),
    help="Which versions of the requests: of those that both sides know.",
)
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1), metavar="S", help="For each step.")
@click.option("--together", default=16, show_default=True, type=click.IntRange(1), metavar="N", help="Cases at a time.")
@click.option("--keep-topics", is_flag=True, help="Do not delete the run's topics at the end.")
@click.option("--junit", metavar="FILE", help="Write the results for continuous integration.")
@click.option("--json", "json_file", metavar="FILE", help="Write the results for programs.")
@click.option("--html", "html_file", metavar="FILE", help="Write the results for people.")
@level_options
def run(
    address: str | None,
    wanted: str | None,
    archive: str | None,
    release: str | None,
    allow: str | None,
    strict: bool,
    restart: str | None,
    start: str | None,
    versions: str,
    timeout: float,
    together: int,
    keep_topics: bool,
    junit: str | None,
    json_file: str | None,
    html_file: str | None,
    level: Level,
) -> int:
    """Run the cases against a broker, or with --level 1 a cluster under faults.

    Exit status: 0 all pass, are allowed, or cannot be run there; 1 some fail; 2 bad usage; 3 the target has died or does
    not speak the protocol.
    """
    from kspec.conformance.wire.run.files import as_json, as_junit, counts_of
    from kspec.conformance.wire.run.page import as_html
    from kspec.conformance.wire.run.results import WRONG
    from kspec.conformance.wire.run.runner import TargetGoneError
    from kspec.conformance.wire.run.words import counts_in_words

    level.check(address)
    allowed = _allowed(allow)
    outputs = [Output(file) for file in (junit, json_file, html_file)]
    if address is None:
        return level.run(wanted, allowed, Files(*outputs))
    _check_release(release)
    naming = secrets.token_hex(3)
    work = LevelZeroRun(
        *_address(address),
        archive,
        wanted,
        release,
        allowed,
        restart,
        start,
        versions,
        timeout,
        together,
        keep_topics,
        naming,
    )
    began = time.monotonic()
    try:
        results = asyncio.run(work.results())
    except TargetGoneError as error:
        raise StoppedError(str(error)) from error
    outputs[0].write(as_junit(results, work.replay))
    used = suite(archive)
    outputs[1].write(as_json(results, address, naming, work.replay, used.contents["suite"]))
    outputs[2].write(as_html(results, address, f"run {naming}, {used.title}", work.replay))
    click.echo(f"{address}, run {naming}: {counts_in_words(counts_of(results), time.monotonic() - began)}")
    is_complete = _tell_skipped(results, allowed)
    wrong = any(one.status in WRONG for one in results) or (strict and not is_complete)
    return VIOLATED if wrong else ALL_HOLD


def _tell_skipped(results: "Sequence[Result]", allowed: dict[str, str]) -> bool:
    """Print what is no plain pass or failure, each reason once, with the number of its cases; whether all was run.

    What an allowed failure no longer is has to go from the file, or it would hide the next one.
    """
    from kspec.conformance.wire.run.results import Status

    for status in (Status.UNLIKE, Status.NOT_SUPPORTED, Status.NOT_APPLICABLE, Status.ALLOWED):
        reasons = [one.reason for one in results if one.status == status]
        for reason in dict.fromkeys(reasons):
            click.echo(f"  {reasons.count(reason)} {status.value}: {reason}")
    looks = [api for one in results for api in one.left_out]
    for api in dict.fromkeys(looks):
        click.echo(f"  {looks.count(api)} pass without a last look: {api} is not offered")
    passed = {one.case_name for one in results if one.status == Status.PASS} & set(allowed)
    passed -= {one.case_name for one in results if one.status == Status.ALLOWED}
    for name in sorted(passed):
        click.echo(f"  allowed to fail, and passes: {name}")
    not_run = any(one.status in (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE) for one in results)
    return not not_run and not looks and not passed
