"""`kspec simulate`."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from kspec.cli.common import (
    MOST_WORKERS,
    Display,
    build,
    chosen_properties,
    model_options,
    only_one_on_standard_output,
    shown_options,
    together,
    unknown,
)
from kspec.cli.explorer.pages import PAGE_OPTIONS, PageOptions, check_page_options, show_run
from kspec.cli.spark import SWARM_ENGINES, session_options, spark_errors, swarm_settings
from kspec.cli.statuses import ALL_HOLD, STOPPED, VIOLATED
from kspec.cli.terminal.help import ModelCommand
from kspec.cli.terminal.output import Output
from kspec.model_check.core.preparation import watched

MOST_STEPS = 1_000_000
MOST_WEIGHT = 1_000_000


def _weights(model: Any, given: tuple[str, ...]) -> dict[str, int]:
    """Weights by action name, each given as `ACTION=W`."""
    weights: dict[str, int] = {}
    for text in given:
        name, equals, number = text.partition("=")
        if not equals or not (number.isascii() and number.isdigit()) or int(number) > MOST_WEIGHT:
            raise click.UsageError(f"--weight {text}: expected ACTION=W, W a whole number from 0 to {MOST_WEIGHT:,}")
        if name not in model.action_names:
            command = f"kspec models {model.name}"
            raise unknown(f"model {model.name} has no action {name!r}", name, model.action_names, command)
        weights[name] = int(number)
    return weights


@click.command(cls=ModelCommand)
@click.argument("model", metavar="MODEL")
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0, (1 << 64) - 1), metavar="S", help="Of the random choices."
)
@click.option(
    "--traces",
    default=10_000,
    show_default=True,
    type=click.IntRange(1, 1 << 40),
    metavar="N",
    help="How many walks to take.",
)
@click.option(
    "--depth",
    default=100,
    show_default=True,
    type=click.IntRange(1, MOST_STEPS),
    metavar="D",
    help="Most steps of a walk.",
)
@click.option("--engine", type=SWARM_ENGINES, default="compiled", show_default=True, help="Where walks are taken.")
@click.option("--workers", type=click.IntRange(1, MOST_WORKERS), metavar="W", help="Threads; by default one for each core.")
@click.option("--partitions", type=click.IntRange(1), metavar="P", help="Engine spark: tasks (one for each core).")
@session_options
@click.option(
    "--weight",
    "given_weights",
    multiple=True,
    metavar="ACTION=W",
    help="Draw this action W times as often as others, never if W is 0; may be repeated.",
)
@click.option("--invariant", "names", multiple=True, metavar="NAME", help="Check this property; may be repeated.")
@click.option("--shrink/--no-shrink", "shrinking", default=True, help="Shrink the runs that violate a property.")
@shown_options("the shortest shrunk run")
@together("page", PageOptions._fields, PageOptions, PAGE_OPTIONS)
@model_options
def simulate(
    model: str,
    seed: int,
    traces: int,
    depth: int,
    engine: str,
    workers: int | None,
    partitions: int | None,
    master: str | None,
    conf: tuple[str, ...],
    given_weights: tuple[str, ...],
    names: tuple[str, ...],
    shrinking: bool,
    shown: Display,
    page: PageOptions,
    parameters: dict[str, Any],
) -> int:
    """Take random walks through MODEL and check its properties on the way.

    The same seed gives the same walks, whatever the number of workers, and on Spark too. Exit status: 0 no violation was
    found, 1 a property is violated, 2 bad usage, 3 stopped by Ctrl-C before all walks were taken.
    """
    only_one_on_standard_output(shown.as_json, itf=shown.itf, mermaid=shown.mermaid, html=page.html)
    check_page_options("simulate", model, page)
    built = build(model, parameters, not shown.quiet)
    properties = chosen_properties(built, names, everything=False)
    weights = _weights(built, given_weights)
    itf_file, mermaid_file, html_file = Output(shown.itf), Output(shown.mermaid), Output(page.html)
    from kspec.model_check.engines.simulation.simulate import WalkPlan
    from kspec.model_check.engines.simulation.simulate import simulate as take_walks
    from kspec.model_check.explorer.marks import remarks_of
    from kspec.model_check.reports.simulation import simulation_as_json, simulation_as_text, violations
    from kspec.model_check.traces.itf import as_itf
    from kspec.model_check.traces.mermaid import sequence_diagram

    plan = WalkPlan(seed, traces, depth, weights)
    settings = swarm_settings(engine, master, conf, shown.quiet, workers, partitions=partitions)
    if settings is None:
        with _progress(not shown.quiet) as report:
            result = take_walks(built, properties, plan, workers, report)
    else:
        with spark_errors(engine):
            from kspec.model_check.engines.spark import swarm

            result = swarm.simulate(built, properties, plan, settings)
    found = violations(result, shrinking)
    if shown.as_json:
        click.echo(json.dumps(simulation_as_json(result, found)))
    elif "-" not in (shown.itf, shown.mermaid, page.html):
        click.echo(simulation_as_text(result, found, shown.full))
    if found:
        shortest = found[0]
        description = f"{model}: {shortest.finding.prop.name} VIOLATED in {len(shortest.trace)} states"
        itf_file.write(json.dumps(as_itf(built, shortest.trace, description), indent=1) + "\n")
        mermaid_file.write(sequence_diagram(built, shortest.trace, remarks_of, [shortest.finding.prop.name]))
        show_run(built, shortest.trace, description, page, html_file)
    elif shown.itf or shown.mermaid or page.html or page.explore:
        click.echo("kspec: no property was violated, so there is no run to write or show", err=True)
    return _status(result)


def _status(result: Any) -> int:
    if result.violated:
        return VIOLATED
    return STOPPED if result.interrupted else ALL_HOLD


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[Any], None] | None]:
    if not shown:
        yield None
        return
    from kspec.cli.terminal.progress import ProgressLine

    line = ProgressLine(sys.stderr)

    def report(progress: Any) -> None:
        rate = progress.steps / max(progress.seconds, 1e-3)
        line.show(f"{progress.walks:,} walks, {progress.steps:,} steps, {rate:,.0f} steps/s")

    try:
        with watched(line.prepare):
            yield report
    finally:
        line.close()
