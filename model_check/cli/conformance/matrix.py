"""`kspec conformance matrix`."""

import asyncio
import secrets
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from model_check.cli.common import unknown
from model_check.cli.conformance.choosing import chosen, scored
from model_check.cli.statuses import ALL_HOLD, StoppedError
from model_check.core.files import write_whole

if TYPE_CHECKING:
    from conformance.targets.drivers import Driver, Running
    from conformance.targets.matrix import Column
    from conformance.wire.run.results import Result


@click.command()
@click.option(
    "--out", "folder", default="docs/conformance", show_default=True, metavar="DIR", help="Where pages are written."
)
@click.option("--target", "names", multiple=True, metavar="NAME", help="This broker alone; may be repeated.")
@click.option("--timeout", default=5.0, show_default=True, type=click.FloatRange(0.1), metavar="S", help="For each step.")
def matrix(folder: str, names: tuple[str, ...], timeout: float) -> int:
    """Run the cases on every broker that is found on this machine, and write the pages of the matrix.

    These are looked for: Apache Kafka 4.4.0 and 3.9.2 (jars as for `kspec world`), this project's broker, kfake (Go),
    librdkafka's mock cluster (confluent-kafka), noida-db and Tansu (programs on the path).

    Exit status: 0 the pages are written, whatever failed; 2 bad usage; 3 a broker does not start, or stops answering.
    """
    from conformance.targets.drivers import MissingError, looked_for
    from conformance.targets.matrix import failures, overview

    known = dict(looked_for())
    for name in names:
        if name not in known:
            raise unknown(f"there is no broker {name!r}", name, list(known), f"one of {', '.join(known)}")
    columns: list[Column] = []
    missing: dict[str, str] = {}
    for name in names or known:
        try:
            columns.append(column_of(known[name](), timeout))
        except MissingError as error:
            missing[name] = str(error).splitlines()[0]
            click.echo(f"{name}: {missing[name]}", err=True)
            continue
        click.echo(f"{columns[-1].title}: {', '.join(f'{n} {status.value}' for status, n in columns[-1].counts().items())}")
    if not columns:
        raise StoppedError("none of these brokers is on this machine")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for column in columns:
        write_whole(place / column.file, failures(column))
    write_whole(place / "README.md", overview(columns, missing, f"{datetime.now(UTC):%-d %B %Y}", scored()))
    click.echo(f"{folder}: README.md and {len(columns)} pages")
    return ALL_HOLD


def column_of(driver: "Driver", timeout: float) -> "Column":
    """The cases on a broker, which is started for them, and anew after a case that ends it. Raises: `StoppedError`."""
    from conformance.targets.matrix import Column
    from conformance.wire.run.runner import TargetGoneError

    cases = chosen(None, driver.release)
    with tempfile.TemporaryDirectory(prefix="kspec-target-") as folder, driver.start(Path(folder) / "broker") as running:
        found: dict[str, Result] = {}
        while left := [case for case in cases if case["name"] not in found]:
            try:
                asyncio.run(_run(driver, running, left, timeout, found))
            except TargetGoneError as error:
                if not driver.fragile or error.result is None:
                    raise StoppedError(f"{driver.name}: {error}") from error
                found[error.result.name] = error.result.ended_target()
                running.restart()
    return Column(driver, [found[case["name"]] for case in cases])


async def _run(driver: "Driver", running: "Running", cases: list[Any], timeout: float, found: "dict[str, Result]") -> None:
    """Run cases, and put what comes of each into `found`."""
    from conformance.kafka.process import HOST
    from conformance.wire.run.runner import Naming, Suite, SuiteRun, find_target

    async def restarted() -> None:
        await asyncio.get_running_loop().run_in_executor(None, running.restart)
        await find_target(HOST, running.port, timeout)

    target = await find_target(HOST, running.port, timeout)
    suite = Suite(cases, 1 if driver.fragile else 8, {}, restarted if driver.restarts else None)

    def tell(result: "Result") -> None:
        found[result.name] = result

    await SuiteRun(target, suite, Naming(secrets.token_hex(3)), tell).run()
