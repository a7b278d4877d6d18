"""`kspec conformance`: cases of level 0, written as files or run against an address."""

import json
from pathlib import Path

import click

from kspec.cli.conformance.choosing import scored, suite, titles
from kspec.cli.conformance.levels import named_cases
from kspec.cli.conformance.matrix import matrix
from kspec.cli.conformance.running import run
from kspec.cli.statuses import ALL_HOLD
from kspec.cli.terminal.output import OutputFolder, cannot_write
from kspec.model_check.core.files import write_whole


@click.group()
def conformance() -> None:
    """Cases drawn from models of one broker: what is answered is what the rules answer.

    They need a broker that listens, and nothing else of it. See docs/conformance.md.
    """


conformance.add_command(matrix)
conformance.add_command(run)


@conformance.command()
@click.option("--out", "folder", metavar="DIR", help="A folder for the files; it need not exist.")
@click.option("--archive", metavar="FILE", help="One file for all: a .tar.gz.")
def generate(folder: str | None, archive: str | None) -> int:
    """Write the cases as JSON files that need no Python: docs/conformance-format.md says what is in them."""
    from kspec.conformance.wire.cases.archive import archived

    if folder is None and archive is None:
        raise click.UsageError("--out DIR or --archive FILE says where to write")
    if folder is not None:
        with OutputFolder(folder).opened() as place:
            for name, content in suite().files():
                write_whole(place / name, json.dumps(content, indent=1) + "\n")
        click.echo(f"{folder}: {len(suite().documents)} cases and index.json")
    if archive is not None:
        try:
            Path(archive).write_bytes(archived(suite()))
        except OSError as error:
            raise cannot_write(archive, error) from error
        click.echo(f"{archive}: {len(suite().documents)} cases, {suite().title}")
    return ALL_HOLD


@conformance.command("list")
@click.option("--case", "wanted", metavar="NAME", help="Those whose names begin with this.")
@click.option("--level", type=click.IntRange(0, 1), default=0, show_default=True, help="0: one broker; 1: a cluster.")
def list_cases(wanted: str | None, level: int) -> int:
    """Name the cases, each with what it does."""
    if level:
        for case in named_cases(wanted):
            click.echo(f"{case.name}\n    {case.title}")
        return ALL_HOLD
    for name, title in titles(wanted):
        click.echo(f"{name}\n    {title}")
    return ALL_HOLD


@conformance.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(as_json: bool) -> int:
    """Weaken one rule after the other, and say which cases tell it.

    Mutants are the weakened rules of `kspec broker --mutant`; checks that all releases have are turned off one by one.
    """
    found = scored()
    if as_json:
        click.echo(json.dumps({one.name: {"cases": names, "reason": one.reason} for one, names in found}))
        return ALL_HOLD
    for one, names in found:
        told = f"{len(names):3} cases, such as {min(names, key=len)}" if names else one.reason
        click.echo(f"{one.name}\n    {told}")
    click.echo(f"{sum(bool(names) for _, names in found)} of {len(found)} are told")
    return ALL_HOLD
