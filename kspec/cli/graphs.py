"""`kspec graph`, `kspec stats` and `kspec liveness`: the commands that need the whole graph of a model."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from kspec.cli.common import MOST_WORKERS, build, model_options, only_one_on_standard_output, progress, unknown
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError
from kspec.cli.terminal.help import ModelCommand
from kspec.cli.terminal.output import Output, OutputFolder


def _graph_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that need the whole graph of a model."""
    for option in (
        model_options,
        click.option("--quiet", is_flag=True, help="No progress on standard error."),
        click.option(
            "--max-states", type=click.IntRange(1), metavar="N", help="Give up, with exit status 3, beyond about N states."
        ),
        click.option("--workers", type=click.IntRange(1, MOST_WORKERS), metavar="N", help="Threads (all cores by default)."),
    ):
        command = option(command)
    return command


@contextmanager
def _extra(*libraries: str, purpose: str) -> Iterator[None]:
    """Report in one line missing libraries of an extra, or an exploration that did not finish (exit status 3)."""
    from kspec.model_check.extras import MissingExtraError, need
    from kspec.model_check.graphs.graph import GraphError

    try:
        need(libraries, purpose)
        yield
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error
    except GraphError as error:
        raise StoppedError(str(error)) from error


def _graph(model: Any, workers: int | None, max_states: int | None, quiet: bool) -> Any:
    from kspec.model_check.graphs.edges import state_graph

    with progress(not quiet) as report:
        return state_graph(model, workers, max_states, report)


@click.command(cls=ModelCommand)
@click.argument("model", metavar="MODEL")
@click.option("--out", required=True, metavar="FILE", help="FILE.parquet (a folder), FILE.graphml or FILE.dot.")
@click.option("--format", "name", metavar="NAME", help="parquet, graphml or dot, whatever FILE ends with.")
@_graph_options
def graph(
    model: str,
    out: str,
    name: str | None,
    workers: int | None,
    max_states: int | None,
    quiet: bool,
    parameters: dict[str, Any],
) -> int:
    """Write the state graph of MODEL: every reachable state, and every transition.

    Exit status: 0 written, 2 bad usage or a graph too large for the format, 3 the exploration did not come to an end.
    """
    from kspec.model_check.graphs.files import GraphFileError, format_of, most_states, prepare, too_large, write_graph
    from kspec.model_check.graphs.graph import GraphError

    built, path = build(model, parameters, not quiet), Path(out)
    try:
        chosen = format_of(path, name)
        with _extra(purpose="kspec graph"):
            prepare(path, chosen)
            most = most_states(chosen)
            limited_by_format = most is not None and (max_states is None or most < max_states)
            try:
                found = _graph(built, workers, most + 1 if most and limited_by_format else max_states, quiet)
            except GraphError as error:
                raise too_large(chosen) if limited_by_format else error from error
        write_graph(found, path, chosen)
    except GraphFileError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{path}: {found.states:,} states, {len(found.transitions):,} transitions")
    return ALL_HOLD


@click.command(cls=ModelCommand)
@click.argument("model", metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plots", metavar="DIR", help="Draw plots into this folder.")
@click.option("--plot-format", type=click.Choice(["png", "svg"]), default="png", show_default=True, help="Of the plots.")
@_graph_options
def stats(
    model: str,
    as_json: bool,
    plots: str | None,
    plot_format: str,
    workers: int | None,
    max_states: int | None,
    quiet: bool,
    parameters: dict[str, Any],
) -> int:
    """Describe the state graph of MODEL: actions taken and never taken, levels, degrees, components, diameter.

    Exit status: 0 described, 2 bad usage, 3 the exploration did not come to an end.
    """
    built = build(model, parameters, not quiet)
    libraries = ("scipy", "matplotlib") if plots else ("scipy",)
    with _extra(*libraries, purpose="kspec stats --plots" if plots else "kspec stats"):
        from kspec.model_check.graphs.stats import stats_as_json, stats_as_text, stats_of

        folder = OutputFolder(plots) if plots else None
        found = stats_of(_graph(built, workers, max_states, quiet))
    click.echo(json.dumps(stats_as_json(found)) if as_json else stats_as_text(found))
    if folder is not None:
        from kspec.model_check.graphs.plots import write_plots

        with folder.filled() as unfinished:
            drawn = write_plots(found, unfinished, plot_format)
        for path in drawn:
            click.echo(f"kspec: {folder.path / path.name}", err=True)
    return ALL_HOLD


@click.command(cls=ModelCommand)
@click.argument("model", metavar="MODEL")
@click.option("--property", "names", multiple=True, metavar="NAME", help="Check this property; may be repeated.")
@click.option(
    "--weak",
    multiple=True,
    metavar="ACTION",
    help="Assume weak fairness; ACTION:each for each of its arguments by itself, ACTION:ARGUMENT for each value of one.",
)
@click.option("--strong", multiple=True, metavar="ACTION", help="Assume strong fairness; as --weak.")
@click.option("--without", multiple=True, metavar="ACTION", help="Assume nothing of this action; `all`: nothing at all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--itf", metavar="FILE", help="Write the first lasso as ITF JSON (`-`: standard output).")
@click.option("--full", is_flag=True, help="Show whole states in runs, not only what changed.")
@_graph_options
def liveness(
    model: str,
    names: tuple[str, ...],
    weak: tuple[str, ...],
    strong: tuple[str, ...],
    without: tuple[str, ...],
    as_json: bool,
    itf: str | None,
    full: bool,
    workers: int | None,
    max_states: int | None,
    quiet: bool,
    parameters: dict[str, Any],
) -> int:
    """Check the liveness properties of MODEL: what happens eventually in infinite runs, if some actions are fair.

    Each property is checked under the fairness that the model declares and its own, unless --weak, --strong or --without
    say otherwise. Exit status: 0 all hold, 1 one is violated, 2 bad usage, 3 the exploration did not come to an end.
    """
    only_one_on_standard_output(as_json, itf=itf)
    built = build(model, parameters, not quiet)
    properties = _chosen_liveness(built, names)
    assumptions = _assumptions(built, weak, strong, without)
    itf_file = Output(itf)
    with _extra("scipy", purpose="kspec liveness"):
        from kspec.model_check.graphs.liveness import check_liveness
        from kspec.model_check.reports.lasso import lasso_as_itf, result_as_json, result_as_text

        result = check_liveness(_graph(built, workers, max_states, quiet), properties, assumptions)
    if as_json:
        click.echo(json.dumps(result_as_json(result)))
    elif itf != "-":
        click.echo(result_as_text(result, full))
    shown = [(verdict.prop.name, verdict.lasso) for verdict in result.verdicts if verdict.lasso]
    if shown:
        name, lasso = shown[0]
        itf_file.write(json.dumps(lasso_as_itf(built, lasso, f"{model}: {name} violated by a fair run"), indent=1) + "\n")
    elif itf:
        click.echo("kspec: no property was violated, so there is no run to write", err=True)
    return VIOLATED if result.violated else ALL_HOLD


def _chosen_liveness(model: Any, names: tuple[str, ...]) -> list[Any]:
    known = [prop.name for prop in model.liveness]
    if not known:
        raise click.UsageError(f"model {model.name} states no liveness properties")
    for name in names:
        if name not in known:
            complaint = f"model {model.name} has no liveness property {name!r}"
            raise unknown(complaint, name, known, f"kspec models {model.name}")
    return [prop for prop in model.liveness if not names or prop.name in names]


def _assumptions(
    model: Any, weak: tuple[str, ...], strong: tuple[str, ...], without: tuple[str, ...]
) -> Callable[[Any], list[Any]]:
    """The fairness assumed for a property: that of the model, then that of the property, then that of the options."""
    from kspec.model_check.core.model import Fairness
    from kspec.model_check.core.temporal import assumed

    asked = []
    for texts, is_strong in ((weak, False), (strong, True)):
        for text in texts:
            action, _, how = text.partition(":")
            of = tuple(how.split(",")) if how not in ("", "each") else ()
            arguments = next((list(one.args) for one in model.actions if one.name == action), list(of))
            if not set(of) <= set(arguments):
                option = f"--{'strong' if is_strong else 'weak'} {text}"
                others = f", or ACTION:ARGUMENT with any of {', '.join(arguments)}" if arguments else ""
                raise click.UsageError(f"{option}: write ACTION or ACTION:each{others}")
            asked.append(Fairness(action, is_strong, how == "each", of))
    named = [fairness.action for fairness in asked] + [action for action in without if action != "all"]
    for action in named:
        if action not in model.action_names:
            complaint = f"model {model.name} has no action {action!r}"
            raise unknown(complaint, action, model.action_names, f"kspec models {model.name}")
        if named.count(action) > 1:
            raise click.UsageError(f"action {action} is named twice by --weak, --strong and --without")
    dropped = {*without, *(model.action_names if "all" in without else ())}

    def assumptions(prop: Any) -> list[Any]:
        declared = assumed(model.fairness, prop.assuming)
        return assumed([fairness for fairness in declared if fairness.action not in dropped], asked)

    return assumptions
