"""`kspec check`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from kspec.cli.common import (
    MOST_WORKERS,
    Deadline,
    Display,
    Seconds,
    build,
    chosen_properties,
    model_options,
    only_one_on_standard_output,
    progress,
    shown_options,
    together,
)
from kspec.cli.explorer.pages import PAGE_OPTIONS, PageOptions, check_page_options, show_run
from kspec.cli.spark import SparkOptions, spark_errors, spark_options, spark_settings
from kspec.cli.statuses import ALL_HOLD, STOPPED, VIOLATED
from kspec.cli.terminal.help import ModelCommand, examples
from kspec.cli.terminal.output import Output
from kspec.model_check.engines.explorer import DEFAULT_ENGINE, EngineError, explorer
from kspec.model_check.models import MODELS


class Extent(NamedTuple):
    """Bounds of an exploration, and whether a deadlock counts as a violation."""

    everything: bool
    symmetry: bool
    deadlock: bool
    max_states: int | None
    time_limit: float | None


EXTENT = (
    click.option("--all", "everything", is_flag=True, help="Explore everything and check every property of the model."),
    click.option("--symmetry", is_flag=True, help="Visit one of the states that differ only in which broker is which."),
    click.option("--deadlock", is_flag=True, help="A state without any possible action is a violation."),
    click.option("--max-states", type=click.IntRange(1), metavar="N", help="Stop after about N distinct states."),
    click.option("--time-limit", type=Seconds(0, min_open=True), metavar="S", help="Stop after S seconds."),
)


class Checkpoints(NamedTuple):
    """Options for checkpoints: the folders, and the seconds between two."""

    checkpoint: str | None
    resume: str | None
    checkpoint_interval: float | None


CHECKPOINTS = (
    click.option("--checkpoint", metavar="DIR", help="Keep checkpoints in this folder: now and then, and where it stops."),
    click.option("--resume", metavar="DIR", help="Go on from the checkpoint in this folder, and keep checkpoints there."),
    click.option("--checkpoint-interval", type=Seconds(0), metavar="S", help="Seconds between checkpoints.  [default: 60]"),
)


@click.command(
    cls=ModelCommand,
    **examples(
        ("kspec check kip-101 --replicas 2", "Which property fails, and after how many steps"),
        ("kspec check kip-279 --invariant StrongIsr --itf trace.itf.json", "One property; its counterexample as a file"),
        ("kspec check kafka --release 4.4 --fencings 1 --symmetry", "Brokers and controller of a release"),
    ),
)
@click.argument("model", metavar="MODEL")
@click.option("--invariant", "names", multiple=True, metavar="NAME", help="Check this property; may be repeated.")
@click.option(
    "--engine", default=DEFAULT_ENGINE, show_default=True, metavar="NAME", help="What explores: compiled, reference, spark."
)
@click.option(
    "--workers", type=click.IntRange(1, MOST_WORKERS), metavar="N", help="Threads of engine compiled (all cores by default)."
)
@together("extent", Extent._fields, Extent, EXTENT)
@together("checkpoints", Checkpoints._fields, Checkpoints, CHECKPOINTS)
@spark_options
@shown_options("the shortest counterexample")
@together("page", PageOptions._fields, PageOptions, PAGE_OPTIONS)
@model_options
def check(
    model: str,
    names: tuple[str, ...],
    engine: str,
    workers: int | None,
    extent: Extent,
    checkpoints: Checkpoints,
    spark: SparkOptions,
    shown: Display,
    page: PageOptions,
    parameters: dict[str, Any],
) -> int:
    """Explore MODEL and check its properties.

    Stops at the first violation, or explores everything with --all. Exit status: 0 all hold, 1 a property is violated,
    2 bad usage, 3 stopped before the space was exhausted.
    """
    from kspec.model_check.core.exploration import CheckpointError, Limits
    from kspec.model_check.explorer.marks import remarks_of
    from kspec.model_check.reports.report import exploration_as_json, exploration_as_text, verdict_in_words, violations
    from kspec.model_check.traces.itf import as_itf
    from kspec.model_check.traces.mermaid import sequence_diagram

    only_one_on_standard_output(shown.as_json, itf=shown.itf, mermaid=shown.mermaid, html=page.html)
    check_page_options("check", model, page)
    deadline = Deadline(extent.time_limit)
    built = build(model, parameters, not shown.quiet, deadline)
    properties = chosen_properties(built, names, extent.everything)
    checkpointing = _checkpointing(*checkpoints)
    settings = spark_settings(engine, quiet=shown.quiet, **spark._asdict())
    with progress(not shown.quiet, deadline), spark_errors(engine):
        symmetry = _symmetry(built, properties) if extent.symmetry else None
        explore = _engine(engine, workers, symmetry, checkpointing, settings)
    itf_file, mermaid_file, html_file = Output(shown.itf), Output(shown.mermaid), Output(page.html)
    with progress(not shown.quiet, deadline) as report:
        limits = Limits(not extent.everything, extent.max_states, extent.time_limit, extent.deadlock, report)
        limits.spent = deadline.spent
        with spark_errors(engine):
            try:
                result = explore(built, properties, limits)
            except CheckpointError as error:
                raise click.UsageError(str(error)) from error
    if shown.as_json:
        click.echo(json.dumps(exploration_as_json(result)))
    elif "-" not in (shown.itf, shown.mermaid, page.html):
        click.echo(exploration_as_text(result, shown.full))
        _tell_studies(built, dict(violations(result)))
    runs = violations(result) or [
        (verdict.prop.name, verdict.trace) for verdict in result.verdicts if names and verdict.holds and verdict.trace
    ]
    if runs:
        name, trace = runs[0]
        verdict = next((verdict for verdict in result.verdicts if verdict.prop.name == name), None)
        description = f"{model}: {name} {verdict_in_words(verdict) if verdict else 'violated'}"
        itf_file.write(json.dumps(as_itf(built, trace, description), indent=1) + "\n")
        mermaid_file.write(sequence_diagram(built, trace, remarks_of, [name]))
        show_run(built, trace, description, page, html_file)
    elif shown.itf or shown.mermaid or page.html or page.explore:
        click.echo("kspec: no property was violated, so there is no run to write or show", err=True)
    asked_for_and_false = any(verdict.holds is False for verdict in result.verdicts if verdict.prop.name in names)
    if result.violated or asked_for_and_false:
        return VIOLATED
    return ALL_HOLD if result.complete else STOPPED


def _tell_studies(model: Any, violated: dict[str, Any]) -> None:
    """Name the studies that tell of these runs, and how a real broker is taken through one."""
    if model.name not in MODELS or not violated:
        return
    from kspec.model_check.reports.studies.matching import studies_of
    from kspec.model_check.traces.text import filled

    for study, prop in studies_of(model, violated):
        told = filled(f"{prop}: {study.summary} ({study.reference})", "  ")
        click.echo("\n".join(["", *told, f"  kspec study {study.name}"]))
        if study.name in REPLAYED:
            click.echo(f"  kspec world replay {study.name} --kafka 4.4.0    # takes a real broker through it")


REPLAYED = ("missed-epoch", "forgotten-proposal", "fetch-before-registration")
"""The studies whose run `kspec world replay` has; a test asks that these are all."""


def _symmetry(model: Any, properties: list[Any]) -> Any:
    from kspec.model_check.core.symmetry import AsymmetryError, Symmetry

    try:
        symmetry = Symmetry(model)
        symmetry.check(properties)
    except AsymmetryError as error:
        raise click.UsageError(str(error)) from error
    return symmetry


def _checkpointing(checkpoint: str | None, resume: str | None, interval: float | None) -> Any:
    from kspec.model_check.core.exploration import CheckpointPlan

    if checkpoint is not None and resume is not None:
        raise click.UsageError("--resume DIR goes on keeping checkpoints in DIR; leave --checkpoint out")
    folder = resume if checkpoint is None else checkpoint
    if folder is None:
        if interval is not None:
            raise click.UsageError("--checkpoint-interval goes with --checkpoint or --resume")
        return None

    def tell(sentence: str) -> None:
        click.echo(f"kspec: {sentence}", err=True)

    asked = CheckpointPlan(Path(folder), tell, resume=resume is not None, address=folder)
    return asked if interval is None else asked._replace(every=interval)


def _engine(name: str, workers: int | None, symmetry: Any, checkpointing: Any, spark: Any) -> Callable[..., Any]:
    try:
        return explorer(name, workers, symmetry, checkpointing, spark)
    except EngineError as error:
        raise click.UsageError(str(error)) from error
