"""`kspec models`, `audit`, `study` and `history`."""

import json
from pathlib import Path
from typing import Any

import click

from model_check.cli.common import build, model_options, progress
from model_check.cli.statuses import ALL_HOLD, VIOLATED
from model_check.models import MODELS
from model_check.version import VERSION


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def models(as_json: bool) -> None:
    """List the models, their parameters with defaults, and the quirks that --repair repairs."""
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


@click.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--states", default=300, type=click.IntRange(1), show_default=True, metavar="N", help="Reachable states to try."
)
@click.option("--seed", default=1, show_default=True, metavar="N", help="Of the random choice of states.")
@model_options
def audit(model: str, states: int, seed: int, parameters: dict[str, Any]) -> int:
    """Check that the actions of MODEL read and write only what they declare.

    Exit status: 0 if they do, 1 if not.
    """
    from model_check.core.audit import audit as run_audit

    report = run_audit(build(model, parameters), states, seed)
    click.echo(f"{model}: {report.states:,} reachable states, {report.evaluations:,} evaluations")
    for finding in report.findings:
        click.echo(f"  WRONG  {finding}")
    for note in report.unused_reads:
        click.echo(f"  unused {note}")
    click.echo("  every action reads and writes what it declares" if not report.findings else "")
    return VIOLATED if report.findings else ALL_HOLD


@click.command()
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


@click.command()
@click.option("--traces/--no-traces", default=True, help="Show the shortest counterexample of each violated model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def history(traces: bool, as_json: bool, quiet: bool) -> None:
    """Check the protocol's history, version by version, and print the verdict table."""
    from model_check.reports.history import history_as_json, history_as_text, run_history

    with progress(not quiet) as report:
        chapters = run_history(report)
    click.echo(json.dumps(history_as_json(chapters)) if as_json else history_as_text(chapters, traces))
