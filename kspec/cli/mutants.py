"""`kspec mutants` and `kspec matrix`."""

import json
from pathlib import Path
from typing import Any

import click

from kspec.cli.common import Seconds, progress, unknown
from kspec.cli.spark import SWARM_ENGINES, session_options, spark_errors, swarm_settings
from kspec.cli.statuses import ALL_HOLD, VIOLATED
from kspec.cli.terminal.output import Output, OutputFolder
from kspec.model_check.extras import MissingExtraError

MODELS_WITH_MUTANTS = ("kafka", "group", "transactions", "quorum")


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--model", type=click.Choice(MODELS_WITH_MUTANTS), default="kafka", show_default=True, help="Whose rules.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--write", "file", metavar="FILE", help="Write the page of all mutants.")
@click.option("--engine", type=SWARM_ENGINES, default="compiled", show_default=True, help="Where mutants are hunted.")
@session_options
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def mutants(
    names: tuple[str, ...],
    model: str,
    as_json: bool,
    file: str | None,
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    quiet: bool,
) -> int:
    """Weaken each rule of broker and controller, or those NAMED, and see which property of model kafka catches it.

    With --model group the rules of group coordinator and consumers, with --model transactions those of transactions, with
    --model quorum those of the quorum of controllers.

    Exit status: 0 if every mutant is caught that is not known to get through, 1 if not.
    """
    from kspec.model_check.reports import mutants as of_kafka
    from kspec.model_check.reports.catalogues import group, quorum, transactions

    own: Any = {"group": group, "transactions": transactions, "quorum": quorum}
    module = own.get(model, of_kafka)
    found = module if module is of_kafka else module.CATALOGUE
    if model != "kafka" and engine == "spark":
        raise click.UsageError("engine spark hunts the mutants of model kafka")

    for name in names:
        if name not in module.ALL_MUTANTS:
            raise unknown(f"there is no mutant {name!r}", name, module.ALL_MUTANTS, f"kspec models {model}")
    unlisted = [name for name in names or module.ALL_MUTANTS if not found.is_listed(name)]
    if unlisted:
        raise click.UsageError(
            f"nothing says where mutant {unlisted[0]!r} is caught: add it to HUNTS, LIVENESS_HUNTS or NOT_CAUGHT"
            f" in {module.__name__.removeprefix('kspec.').replace('.', '/')}.py"
        )
    page = Output(file)
    done = []
    settings = swarm_settings(engine, master, conf, quiet)
    try:
        with progress(not quiet) as report, spark_errors(engine):
            for entry in found.hunts(names, report) if settings is None else _hunts_on_spark(names, settings):
                done.append(entry)
                if not as_json:
                    click.echo(of_kafka.line(entry))
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(of_kafka.as_json(done)))
    else:
        click.echo(f"  {sum(entry.caught for entry in done)} of {len(done)} are caught")
    page.write(_page_with(file, found.as_markdown(done)))
    return ALL_HOLD if all(entry.caught or entry.not_caught_because for entry in done) else VIOLATED


def _page_with(file: str | None, section: str) -> str:
    """The page as it is in the file, with this section; other commands write its others."""
    from kspec.model_check.reports.sections import with_section

    known = Path(file) if file not in (None, "-") else None
    page = known.read_text(encoding="utf-8") if known is not None and known.is_file() else ""
    return with_section(page or "# Mutants\n", section)


def _hunts_on_spark(names: tuple[str, ...], settings: Any) -> list[Any]:
    from kspec.model_check.reports import mutants_on_spark

    return mutants_on_spark.hunts(names, settings)


@click.command()
@click.option("--release", "releases", multiple=True, metavar="NAME", help="Only this release; may be repeated.")
@click.option("--time-limit", default=60.0, type=Seconds(0, min_open=True), metavar="S", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--write", "folder", metavar="DIR", help="Write the matrix, and a page for each release, into this folder.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def matrix(releases: tuple[str, ...], time_limit: float, as_json: bool, folder: str | None, quiet: bool) -> int:
    """Check every property of model kafka in every release, within the same bounds, and print the verdicts.

    Exit status: 0, also where properties are violated: old releases are known to.
    """
    from kspec.model_check.reports import matrix as verdicts
    from kspec.model_check.reports.matrix_pages import write_pages

    for name in releases:
        if name not in verdicts.ROWS:
            raise unknown(f"there is no release {name!r}", name, verdicts.ROWS, "kspec models kafka")
    pages = OutputFolder(folder) if folder is not None else None
    rows: list[Any] = []
    with progress(not quiet) as report:
        for row in verdicts.rows(releases or verdicts.ROWS, time_limit, report):
            rows.append(row)
            if not as_json:
                click.echo(verdicts.line(row))
    if as_json:
        click.echo(json.dumps(verdicts.as_json(rows)))
    if pages is not None:
        with pages.filled() as unfinished:
            written = list(write_pages(unfinished, rows))
        for path in written:
            click.echo(pages.path / path.name)
    return ALL_HOLD
