"""`kspec world`: runs of the model on an unmodified Apache Kafka broker."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from model_check.cli.common import model_options
from model_check.cli.statuses import ALL_HOLD, VIOLATED, StoppedError
from model_check.cli.terminal.help import ModelCommand

if TYPE_CHECKING:
    from conformance.kafka.jars import Jars
    from conformance.world.runs.run import Run

T = TypeVar("T")
Command = Callable[..., Any]


@click.group(context_settings={"max_content_width": 110})
def world() -> None:
    """Replay runs of model kafka on one real broker of Apache Kafka; the specification plays everybody else.

    Needs Java; the jars of the release come from Maven Central (`mvn`), once.
    """


def _kafka(command: Command) -> Command:
    option = click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test.")
    return option(command)


def _jars(kafka: str) -> "Jars":
    from conformance.kafka.jars import KafkaMissingError, find_jars, java
    from conformance.world.runs.run import NoRunError, release_of

    try:
        release_of(kafka)
        java()
        return find_jars(kafka)
    except NoRunError as error:
        raise click.UsageError(str(error)) from error
    except KafkaMissingError as error:
        raise StoppedError(str(error)) from error


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; a broker that dies or does not answer is status 3."""
    from conformance.world.session import ended_by_signals
    from conformance.world.stage.world import BrokerGoneError

    try:
        with ended_by_signals():
            return asyncio.run(work)
    except BrokerGoneError as error:
        raise StoppedError(str(error)) from error


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value not in (None, ()) and name != "release"}


@world.command(cls=ModelCommand)
@click.argument("run", metavar="RUN")
@_kafka
@click.option(
    "--real", type=click.IntRange(1), metavar="BROKER", help="The broker of the run that is real (the first leader)."
)
@click.option(
    "--control", is_flag=True, help="The control of a finding: the same with one decision of the controller at a time."
)
@click.option("--times", type=click.IntRange(1), default=1, metavar="N", help="Replay it this often, on one broker process.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="Print the verdict alone, not every step.")
@model_options
def replay(
    run: str,
    kafka: str,
    real: int | None,
    control: bool,
    times: int,
    as_json: bool,
    plain: bool,
    parameters: dict[str, Any],
) -> int:
    """Replay RUN on a real broker, and compare it with the model after each step.

    RUN is a finding (missed-epoch, forgotten-proposal), a study, a file (ITF, what `kspec check kafka --json` prints, or a
    run that was kept), or seed:N, a walk of the simulator.

    Exit status: 0 the broker follows the run to the end, 1 it departs from it, 2 bad usage, 3 the broker has died or does
    not answer.
    """
    jars = _jars(kafka)
    loaded = _load(run, kafka, real, control, _given(parameters))
    from conformance.world.session import play_all

    outcomes = _run(play_all(jars, [loaded] * times))
    for outcome in outcomes:
        if outcome.verdict is None:
            raise click.UsageError(f"{run}: not played yet: {outcome.unplayed}")
    verdicts = [outcome.verdict for outcome in outcomes if outcome.verdict is not None]
    if as_json:
        click.echo(json.dumps(verdicts[0].as_json() | ({"times": times} if times > 1 else {})))
    else:
        if not plain:
            _show_steps(loaded, verdicts[0].told)
        for verdict in verdicts:
            click.echo(verdict.in_words())
    return VIOLATED if any(verdict.departure for verdict in verdicts) else ALL_HOLD


def _show_steps(run: "Run", told: list[str]) -> None:
    for number, (step, line) in enumerate(zip(run.trace[1:], told, strict=False), start=1):
        assert step.action is not None
        click.echo(f"{number:3}  {step.action.label:45} {line.partition(': ')[2]}")


def _load(source: str, kafka: str, real: int | None, control: bool, parameters: dict[str, Any]) -> "Run":
    from conformance.world.runs.findings import FINDINGS, control_of, finding_run
    from conformance.world.runs.run import NoRunError, load_run, played_by
    from model_check.core.parameters import ParameterError

    try:
        if source in FINDINGS:
            return played_by(control_of(source, kafka) if control else finding_run(source, kafka), real)
        if control:
            raise click.UsageError(f"--control is for findings: {', '.join(FINDINGS)}")
        return played_by(load_run(source, kafka, parameters), real)
    except (NoRunError, ParameterError) as error:
        raise click.UsageError(str(error)) from error
