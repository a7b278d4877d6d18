"""`kspec audit`, `study` and `history`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kspec.cli.common import build, called_as, model_options, progress, unknown
from kspec.cli.explorer.pages import address_of_run, write_page
from kspec.cli.statuses import ALL_HOLD, VIOLATED
from kspec.cli.terminal.help import ModelCommand
from kspec.cli.terminal.output import Output, OutputFolder
from kspec.model_check.traces.text import filled, row

if TYPE_CHECKING:
    from kspec.model_check.reports.studies import StudyReport


@click.command(cls=ModelCommand)
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
    from kspec.model_check.core.audit import audit as run_audit

    report = run_audit(build(model, parameters, shown=True), states, seed)
    click.echo(f"{model}: {report.states:,} reachable states, {report.evaluations:,} evaluations")
    for finding in report.findings:
        click.echo("\n".join(filled(f"WRONG  {finding}", " " * 9, "  ")))
    for note in report.unused_reads:
        click.echo("\n".join(filled(f"unused {note}", " " * 9, "  ")))
    click.echo("  every action reads and writes what it declares" if not report.findings else "")
    return VIOLATED if report.findings else ALL_HOLD


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--markdown", is_flag=True, help="Print the story as Markdown, with a Mermaid diagram.")
@click.option("--full", is_flag=True, help="Show all that the run changes, how it ends, and a diagram.")
@click.option("--write", "folder", metavar="DIR", help="Write the pages of all studies, and an index, into this folder.")
@click.option("--html", metavar="FILE", help="Write the run as a page to step through: one file, without a network.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def study(name: str | None, markdown: bool, full: bool, folder: str | None, html: str | None, quiet: bool) -> None:
    """Tell the failure NAME: the run found by the checker, and the rule that repairs it. Without NAME, list all."""
    from kspec.model_check.reports.studies import STUDIES, as_markdown, as_text, tell
    from kspec.model_check.reports.studies.pages import write_pages

    known = {study.name: study for study in STUDIES}
    if name is not None and name not in known:
        raise unknown(f"there is no study {name!r}", name, known, "kspec study")
    if html is not None and (name is None or folder is not None):
        raise click.UsageError("--html writes the run of one study: kspec study NAME --html FILE")
    html_file = Output(html)
    if folder is not None:
        with progress(not quiet) as report, OutputFolder(folder).filled() as unfinished:
            pages = list(write_pages(unfinished, report))
        for page in pages:
            click.echo(Path(folder) / page.name)
    elif name is None:
        width = max(map(len, known))
        for entry in STUDIES:
            click.echo("\n".join(row(entry.name, f"{entry.summary} ({entry.reference})", width + 2)))
        click.echo("\n`kspec study NAME` tells one.")
    else:
        with progress(not quiet) as report:
            telling = tell(known[name], report=report)
        if html != "-":
            click.echo(as_markdown(telling) if markdown else as_text(telling, full, list(_pages_of(telling))), nl=False)
        write_page(html_file, address_of_run(telling.failing.model, telling.trace), known[name].title)


def _pages_of(telling: "StudyReport") -> Iterator[str]:
    """The commands that show the run of a study elsewhere: in a browser, and in full."""
    yield f"{called_as()} explore {address_of_run(telling.failing.model, telling.trace)}"
    yield f"{called_as()} study {telling.study.name} --full"


@click.command()
@click.option("--traces/--no-traces", default=False, help="Show the shortest counterexample of each violated model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def history(traces: bool, as_json: bool, quiet: bool) -> None:
    """Check the protocol's history, version by version, and print the verdict table."""
    from kspec.model_check.reports.history import history_as_json, history_as_text, run_history

    with progress(not quiet) as report:
        chapters = run_history(report)
    click.echo(json.dumps(history_as_json(chapters)) if as_json else history_as_text(chapters, traces, called_as()))
