"""`kspec conformance matrix`."""

import asyncio
import secrets
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kspec.cli.common import unknown
from kspec.cli.conformance.choosing import chosen, scored
from kspec.cli.statuses import ALL_HOLD, StoppedError
from kspec.model_check.core.files import write_whole

if TYPE_CHECKING:
    from kspec.conformance.targets.drivers import StartedBroker, TargetDriver
    from kspec.conformance.targets.matrix import Column
    from kspec.conformance.wire.run.results import Result

COLUMNS = "matrix.json"
TOLD_EVERY = 100
"""Cases from one line of progress to the next."""


@click.command()
@click.option(
    "--out", "folder", default="docs/conformance", show_default=True, metavar="DIR", help="Where pages are written."
)
@click.option("--target", "names", multiple=True, metavar="NAME", help="This broker alone; may be repeated.")
@click.option("--timeout", default=5.0, show_default=True, type=click.FloatRange(0.1), metavar="S", help="For each step.")
def matrix(folder: str, names: tuple[str, ...], timeout: float) -> int:
    """Run the cases on every broker that is found on this machine, and write the pages of the matrix.

    A page is written as soon as its broker has run. Columns of brokers that are not run stay as they are in DIR.

    These are looked for: Apache Kafka 4.4.0, 4.1.1 and 3.9.2 (jars as for `kspec world`), this project's broker, kfake (Go),
    librdkafka's mock cluster (confluent-kafka), noida-db and Tansu (programs on the path).

    Exit status: 0 the pages are written, whatever failed; 2 bad usage; 3 a broker does not start, or stops answering.
    """
    from kspec.conformance.targets.drivers import MissingError, looked_for
    from kspec.conformance.targets.matrix import columns_as_text, failures, overview, read_columns, with_column
    from kspec.conformance.wire.model.subjects import SUBJECTS

    known = dict(looked_for())
    for name in names:
        if name not in known:
            raise unknown(f"there is no broker {name!r}", name, list(known), f"one of {', '.join(known)}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    data = place / COLUMNS
    try:
        columns = read_columns(data.read_text(encoding="utf-8")) if data.exists() else []
    except ValueError as error:
        raise click.UsageError(f"{data}: {error}; another --out, or remove it") from error
    missing: dict[str, str] = {}
    ran = 0
    for name in names or known:
        try:
            column = column_of(known[name](), timeout)
        except MissingError as error:
            missing[name] = str(error).splitlines()[0]
            click.echo(f"{name}: {missing[name]}", err=True)
            continue
        ran += 1
        kept = column.kept(name, f"{datetime.now(UTC):%-d %B %Y}")
        columns = with_column(columns, kept)
        write_whole(place / kept.file, failures(column))
        write_whole(data, columns_as_text(columns))
        click.echo(f"{column.title}: {', '.join(f'{n} {status.value}' for status, n in column.counts().items())}")
    if not ran:
        raise StoppedError("none of these brokers is on this machine")
    absent = {name: reason for name, reason in missing.items() if all(one.name != name for one in columns)}
    write_whole(place / "README.md", overview(columns, [one.name for one in SUBJECTS], absent, scored()))
    click.echo(f"{folder}: README.md and {len(columns)} pages")
    return ALL_HOLD


def column_of(driver: "TargetDriver", timeout: float) -> "Column":
    """The cases on a broker, which is started for them, and anew after a case that ends it. Raises: `StoppedError`."""
    from kspec.conformance.targets.matrix import Column
    from kspec.conformance.wire.run.runner import TargetGoneError

    cases = chosen(None, driver.release)
    with tempfile.TemporaryDirectory(prefix="kspec-target-") as folder, driver.start(Path(folder) / "broker") as running:
        try:
            results = asyncio.run(_run(driver, running, cases, timeout))
        except TargetGoneError as error:
            raise StoppedError(f"{driver.name}: {error}") from error
    return Column(driver, results)


async def _run(driver: "TargetDriver", running: "StartedBroker", cases: Sequence[Any], timeout: float) -> "list[Result]":
    """Run cases; a target that ends at one is started anew."""
    from kspec.conformance.kafka.process import HOST
    from kspec.conformance.wire.run.runner import RunTarget, find_target
    from kspec.conformance.wire.run.suite_run import NameSpace, Suite, SuiteRun

    async def started_again() -> RunTarget:
        await asyncio.get_running_loop().run_in_executor(None, running.restart)
        return await find_target(HOST, running.port, timeout)

    done = 0

    def tell(result: "Result") -> None:
        nonlocal done
        done += 1
        if done % TOLD_EVERY == 0:
            click.echo(f"{driver.name}: {done:,} of {len(cases):,} cases", err=True)

    target = await find_target(HOST, running.port, timeout)
    restart = started_again if driver.restarts else None
    suite = Suite(cases, 1 if driver.fragile else 8, {}, restart, started_again)
    return await SuiteRun(target, suite, NameSpace(secrets.token_hex(3)), tell).run()
