"""The command line: `kspec`."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from model_check.cli.common import (
    ALL_HOLD,
    BAD_USAGE,
    STOPPED,
    VIOLATED,
    Output,
    StoppedError,
    build,
    chosen_properties,
    model_options,
    progress,
)
from model_check.cli.graphs import graph, liveness, stats
from model_check.cli.mutants import matrix, mutants
from model_check.cli.prove import prove
from model_check.cli.simulate import simulate
from model_check.cli.spark import cover, spark_errors, spark_options, spark_settings
from model_check.engines.explorer import DEFAULT_ENGINE, EngineError, explorer
from model_check.models import MODELS
from model_check.version import VERSION


def main() -> NoReturn:
    """Run `kspec`: what was wrong with its use is told in one line, with exit status 2."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("kspec: interrupted", err=True)
        sys.exit(STOPPED)
    except click.ClickException as error:
        click.echo(f"kspec: {' '.join(error.format_message().split())}", err=True)
        sys.exit(error.exit_code if isinstance(error, StoppedError) else BAD_USAGE)
    except MemoryError as error:
        click.echo(f"kspec: out of memory{f': {error}' if str(error) else ''}", err=True)
        sys.exit(STOPPED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ALL_HOLD)
    sys.exit(status or ALL_HOLD)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Do at SIGTERM what is done at Ctrl-C, also where that is ignored, as in the background of a script."""
    at_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(at_ctrl_c):
        raise KeyboardInterrupt
    at_ctrl_c(signal.SIGINT, frame)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="kspec")
def cli() -> None:
    """Kafka's replication protocol, stated once and checked exhaustively.

    Start with `kspec history`, then `kspec study`.
    """


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option("--invariant", "names", multiple=True, metavar="NAME", help="Check this property; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Explore everything and check every property of the model.")
@click.option(
    "--engine", default=DEFAULT_ENGINE, show_default=True, metavar="NAME", help="What explores: compiled, reference, spark."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Threads of engine compiled (all cores by default).")
@spark_options
@click.option("--symmetry", is_flag=True, help="Visit one of the states that differ only in which broker is which.")
@click.option("--deadlock", is_flag=True, help="A state without any possible action is a violation.")
@click.option("--max-states", type=click.IntRange(1), metavar="N", help="Stop after about N distinct states.")
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop after S seconds.")
@click.option("--checkpoint", metavar="DIR", help="Keep checkpoints in this folder: now and then, and where it stops.")
@click.option("--resume", metavar="DIR", help="Go on from the checkpoint in this folder, and keep checkpoints there.")
@click.option(
    "--checkpoint-interval", type=click.FloatRange(0), metavar="S", help="Seconds between checkpoints.  [default: 60]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--itf", metavar="FILE", help="Write the shortest counterexample as ITF JSON (`-`: standard output).")
@click.option("--mermaid", metavar="FILE", help="Write it as a Mermaid sequence diagram (`-`: standard output).")
@click.option("--full", is_flag=True, help="Show whole states in traces, not only what changed.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
@model_options
def check(
    model: str,
    names: tuple[str, ...],
    everything: bool,
    engine: str,
    workers: int | None,
    master: str | None,
    partitions: int | None,
    spill: str | None,
    tables: str | None,
    driver_states: int | None,
    conf: tuple[str, ...],
    symmetry: bool,
    deadlock: bool,
    max_states: int | None,
    time_limit: float | None,
    checkpoint: str | None,
    resume: str | None,
    checkpoint_interval: float | None,
    as_json: bool,
    itf: str | None,
    mermaid: str | None,
    full: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Explore MODEL and check its properties.

    Stops at the first violation, or explores everything with --all. Exit status: 0 all hold, 1 a property is violated,
    2 bad usage, 3 stopped before the space was exhausted.
    """
    from model_check.core.exploration import CheckpointError, Limits
    from model_check.reports.report import exploration_as_json, exploration_as_text, verdict_in_words, violations
    from model_check.traces.itf import as_itf
    from model_check.traces.mermaid import sequence_diagram

    built = build(model, options)
    properties = chosen_properties(built, names, everything)
    checkpointing = _checkpointing(checkpoint, resume, checkpoint_interval)
    settings = spark_settings(
        engine, master, conf, quiet, partitions=partitions, spill=spill, tables=tables, driver_states=driver_states
    )
    with spark_errors(engine):
        explore = _engine(engine, workers, _symmetry(built, properties) if symmetry else None, checkpointing, settings)
    itf_file, mermaid_file = Output(itf), Output(mermaid)
    with progress(not quiet) as report:
        limits = Limits(not everything, max_states, time_limit, deadlock, report)
        with spark_errors(engine):
            try:
                result = explore(built, properties, limits)
            except CheckpointError as error:
                raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(exploration_as_json(result)))
    elif "-" not in (itf, mermaid):
        click.echo(exploration_as_text(result, full))
    shown = violations(result) or [
        (verdict.prop.name, verdict.trace) for verdict in result.verdicts if names and verdict.holds and verdict.trace
    ]
    if shown:
        name, trace = shown[0]
        verdict = next((verdict for verdict in result.verdicts if verdict.prop.name == name), None)
        description = f"{model}: {name} {verdict_in_words(verdict) if verdict else 'violated'}"
        itf_file.write(json.dumps(as_itf(built, trace, description), indent=1) + "\n")
        mermaid_file.write(sequence_diagram(built, trace))
    elif itf or mermaid:
        click.echo("kspec: no property was violated, so there is no trace to write", err=True)
    asked_for_and_false = any(verdict.holds is False for verdict in result.verdicts if verdict.prop.name in names)
    if result.violated or asked_for_and_false:
        return VIOLATED
    return ALL_HOLD if result.complete else STOPPED


def _symmetry(model: Any, properties: list[Any]) -> Any:
    from model_check.core.symmetry import AsymmetryError, Symmetry

    symmetry = Symmetry(model)
    try:
        symmetry.check(properties)
    except AsymmetryError as error:
        raise click.UsageError(str(error)) from error
    return symmetry


def _checkpointing(checkpoint: str | None, resume: str | None, interval: float | None) -> Any:
    from model_check.core.exploration import Checkpointing

    if checkpoint is not None and resume is not None:
        raise click.UsageError("--resume DIR goes on keeping checkpoints in DIR; leave --checkpoint out")
    folder = resume if checkpoint is None else checkpoint
    if folder is None:
        if interval is not None:
            raise click.UsageError("--checkpoint-interval goes with --checkpoint or --resume")
        return None

    def tell(sentence: str) -> None:
        click.echo(f"kspec: {sentence}", err=True)

    asked = Checkpointing(Path(folder), tell, resume=resume is not None, address=folder)
    return asked if interval is None else asked._replace(every=interval)


def _engine(name: str, workers: int | None, symmetry: Any, checkpointing: Any, spark: Any) -> Callable[..., Any]:
    try:
        return explorer(name, workers, symmetry, checkpointing, spark)
    except EngineError as error:
        raise click.UsageError(str(error)) from error


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def models(as_json: bool) -> None:
    """List the models, their parameters with defaults, and the quirks that --repair mends."""
    if as_json:
        described = [
            {
                "name": entry.name,
                "summary": entry.summary,
                "parameters": [parameter.as_json() for parameter in entry.parameters],
                "properties": [
                    {"name": prop.name, "kind": prop.kind, "meaning": prop.meaning, "by_default": prop.by_default}
                    for prop in entry.build({}).properties
                ],
                "fairness": [fairness._asdict() for fairness in entry.build({}).fairness],
                "liveness": [
                    {"name": prop.name, "kind": prop.kind, "meaning": prop.meaning} for prop in entry.build({}).liveness
                ],
                "quirks": dict(entry.quirks),
            }
            for entry in MODELS.values()
        ]
        click.echo(json.dumps({"version": VERSION, "models": described}))
        return
    for entry in MODELS.values():
        click.echo(f"{entry.name}\n  {entry.summary}")
        for parameter in entry.parameters:
            default = " ".join(parameter.default) if parameter.many else parameter.default
            shown = f"[{default}]" if default not in (None, False, "") else ""
            click.echo(f"    {parameter.option:<14} {shown:<12} {parameter.meaning}")
            for choice in parameter.choices if parameter.many else ():
                click.echo(f"{'':31}{choice}: {entry.quirks[choice]}")
        click.echo()


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--states", default=300, type=click.IntRange(1), show_default=True, metavar="N", help="Reachable states to try."
)
@click.option("--seed", default=1, show_default=True, metavar="N", help="Of the random choice of states.")
@model_options
def audit(model: str, states: int, seed: int, **options: Any) -> int:
    """Check that the actions of MODEL read and write only what they declare.

    Exit status: 0 if they do, 1 if not.
    """
    from model_check.core.audit import audit as run_audit

    report = run_audit(build(model, options), states, seed)
    click.echo(f"{model}: {report.states:,} reachable states, {report.evaluations:,} evaluations")
    for finding in report.findings:
        click.echo(f"  WRONG  {finding}")
    for note in report.unused_reads:
        click.echo(f"  unused {note}")
    click.echo("  every action reads and writes what it declares" if not report.findings else "")
    return VIOLATED if report.findings else ALL_HOLD


@cli.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--markdown", is_flag=True, help="Print the story as Markdown, with a Mermaid diagram.")
@click.option("--write", "folder", metavar="DIR", help="Write the pages of all studies, and an index, into this folder.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def study(name: str | None, markdown: bool, folder: str | None, quiet: bool) -> None:
    """Tell the failure NAME: the run found by the checker, and the rule that repairs it. Without NAME, list all."""
    from model_check.reports.studies import STUDIES, as_markdown, as_text, tell
    from model_check.reports.studies.pages import write_pages

    known = {study.name: study for study in STUDIES}
    if name is not None and name not in known:
        raise click.UsageError(f"there is no study {name!r}; studies: {', '.join(known)}")
    if folder is not None:
        with progress(not quiet) as report:
            try:
                for page in write_pages(Path(folder), report):
                    click.echo(page)
            except OSError as error:
                raise click.UsageError(f"cannot write {folder}: {error.strerror}") from error
    elif name is None:
        width = max(map(len, known))
        for entry in STUDIES:
            click.echo(f"{entry.name:<{width}}  {entry.summary} ({entry.reference})")
        click.echo("\n`kspec study NAME` tells one.")
    else:
        with progress(not quiet) as report:
            telling = tell(known[name], report=report)
        click.echo((as_markdown if markdown else as_text)(telling), nl=False)


@cli.command()
@click.option("--traces/--no-traces", default=True, help="Show the shortest counterexample of each violated model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def history(traces: bool, as_json: bool, quiet: bool) -> None:
    """Check the protocol's history, version by version, and print the verdict table."""
    from model_check.reports.history import history_as_json, history_as_text, run_history

    with progress(not quiet) as report:
        chapters = run_history(report)
    click.echo(json.dumps(history_as_json(chapters)) if as_json else history_as_text(chapters, traces))


for command in (simulate, graph, stats, liveness, cover, mutants, matrix, prove):
    cli.add_command(command)
