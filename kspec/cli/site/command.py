"""`kspec site`."""

from pathlib import Path

import click

from kspec.cli.terminal.output import Output, cannot_write
from kspec.model_check.extras import MissingExtraError, need


@click.command()
@click.option("--out", "folder", metavar="DIR", help="Build the site into this folder: a new one, an empty one, or a site.")
@click.option("--find-runs", "runs", metavar="FILE", help="Find the starting points anew, and write their index.")
@click.option("--timeline", metavar="FILE", help="Write the page of releases and KIPs.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def site(folder: str | None, runs: str | None, timeline: str | None, quiet: bool) -> None:
    """Build the static site: the pages of docs/, the explorer, and runs that can be stepped.

    Any web server serves it: python -m http.server --directory DIR.
    """
    from kspec.cli.common import progress
    from kspec.cli.site.build import SiteError, build

    if not (folder or runs or timeline):
        raise click.UsageError("nothing to do; --out DIR builds the site")
    if runs:
        from kspec.cli.site import starting_points

        index = Output(runs)
        with progress(not quiet) as report:
            found = starting_points.find_all(report)
        index.write(starting_points.as_text(found))
        click.echo(f"{runs}: {sum(len(group) for _, group in found.values())} runs")
    if timeline:
        from kspec.cli.site.timeline import timeline_page

        Output(timeline).write(timeline_page())
        click.echo(timeline)
    if not folder:
        return
    try:
        need(("sphinx", "myst_parser", "furo"), "the site", "site")
        told = build(Path(folder), (lambda words: None) if quiet else lambda words: click.echo(f"  {words}", err=True))
    except (SiteError, MissingExtraError) as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise cannot_write(folder, error) from error
    size, live = told["bytes"] / 1e6, told["bytes of pyodide"] / 1e6
    click.echo(f"{folder}: {told['pages']} pages, {told['runs']} runs, {size:.1f} MB, {live:.1f} of them Pyodide")
    for what in told["missing"]:
        click.echo(f"  WITHOUT {what}")
    click.echo(f"  python -m http.server --directory {folder}")
