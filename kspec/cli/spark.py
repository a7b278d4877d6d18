"""Parts that the commands on Spark share: its options, and its errors in one line."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from kspec.cli.common import together
from kspec.cli.statuses import ALL_HOLD
from kspec.cli.terminal.output import OutputFolder


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for the place where Spark runs."""
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        help="Engine spark: a setting of Spark by its own name; may be repeated.",
    )
    return click.option("--master", metavar="URL", help="Engine spark: Spark's master.  [default: local[*]]")(conf(command))


class SparkOptions(NamedTuple):
    """The options given for engine spark."""

    master: str | None
    conf: tuple[str, ...]
    partitions: int | None
    spill: str | None
    tables: str | None
    driver_states: int | None


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for the place where Spark runs and for how it explores, in the argument `spark`."""
    options = (
        click.option("--partitions", type=int, metavar="P", help="Engine spark: parts of the states (one for each core)."),
        click.option(
            "--spill", metavar="DIR", help="Engine spark: where states are kept; a path or a URL (hdfs://…, s3://…)."
        ),
        click.option(
            "--tables", metavar="DIR", help="Engine spark: write states, transitions and verdicts as Parquet to this folder."
        ),
        click.option(
            "--driver-states",
            type=click.IntRange(0),
            metavar="N",
            help="Engine spark: the driver explores the first levels, of up to N states, by itself.  [default: 16384]",
        ),
        session_options,
    )
    return together("spark", SparkOptions._fields, SparkOptions, options)(command)


def spark_settings(engine: str, master: str | None, conf: tuple[str, ...], quiet: bool, **others: int | str | None) -> Any:
    """The settings of engine spark; `None` for another engine that was given none of them."""
    given: dict[str, Any] = {name: value for name, value in others.items() if value is not None}
    if engine != "spark" and master is None and not conf and not given:
        return None
    from kspec.model_check.engines.spark.session import SparkSettings

    for setting in conf:
        if "=" not in setting:
            raise click.UsageError(f"--conf {setting}: expected NAME=VALUE")

    def tell(sentence: str) -> None:
        click.echo(f"kspec: {sentence}", err=True)

    settings = dict(setting.split("=", 1) for setting in conf)
    return SparkSettings(master, conf=settings, tell=None if quiet else tell, **given)


SWARM_ENGINES = click.Choice(["compiled", "spark"])
"""The engines for commands whose work falls into independent parts."""


def swarm_settings(
    engine: str, master: str | None, conf: tuple[str, ...], quiet: bool, workers: int | None = None, **others: int | None
) -> Any:
    """The settings of engine spark; `None` for engine compiled."""
    settings = spark_settings(engine, master, conf, quiet, **others)
    if engine != "spark" and settings is not None:
        names = ", ".join(["--master", *(f"--{name}" for name in others), "--conf"])
        raise click.UsageError(f"{names} are for engine spark")
    if engine == "spark" and workers is not None:
        raise click.UsageError("engine spark has as many workers as its master says; leave --workers out")
    return settings


@contextmanager
def spark_errors(engine: str) -> Iterator[None]:
    """Report in one line what Spark cannot do."""
    if engine != "spark":
        yield
        return
    from kspec.model_check.engines.spark.session import SparkError
    from kspec.model_check.extras import MissingExtraError

    try:
        yield
    except (MissingExtraError, SparkError) as error:
        raise click.UsageError(str(error)) from error


@click.command()
@click.argument("tables", metavar="TABLES")
@click.option("--out", required=True, metavar="DIR", help="Write the traces into this folder, as ITF JSON.")
@click.option(
    "--goals",
    type=click.Choice(["actions", "arguments", "pairs", "errors", "properties", "mutants"]),
    default="pairs",
    show_default=True,
    help="What to cover: each action, with all its arguments, pairs of consecutive actions, errors answered, properties"
    " decided, or mutants.",
)
@click.option(
    "--compare",
    type=click.IntRange(1),
    metavar="N",
    help="Goals mutants: compare with the model in the N nearest states.  [default: 20000]",
)
@session_options
@click.option("--quiet", is_flag=True, help="Do not say where Spark's own pages are.")
def cover(
    tables: str, out: str, goals: str, compare: int | None, master: str | None, conf: tuple[str, ...], quiet: bool
) -> int:
    """Choose traces that together cover the model whose tables are in the folder TABLES.

    `kspec check MODEL --engine spark --all --tables TABLES` writes these. Exit status: 0 written, 2 bad usage.
    """
    if compare is not None and goals != "mutants":
        raise click.UsageError("--compare goes with --goals mutants")
    settings = spark_settings("spark", master, conf, quiet)
    folder = OutputFolder(out)
    with spark_errors("spark"):
        from kspec.model_check.extras import need

        need(("pyspark", "pyarrow"), "engine spark", extra="spark")
        from kspec.model_check.engines.spark.session import check_master, spark_context
        from kspec.model_check.reports.coverage import MOST_COMPARED, covering_traces, model_of

        if master is not None:
            check_master(master)
        model_of(tables)  # before Spark starts, which takes long
        with spark_context(settings) as context:
            chosen = covering_traces(context, tables, goals, compare or MOST_COMPARED)
    from kspec.model_check.traces.itf import as_itf

    model = model_of(tables)
    with folder.filled() as unfinished:
        for number, (trace, covered, remark) in enumerate(chosen, 1):
            ending = f". {remark}" if remark else ""
            document = as_itf(model, trace, f"{model.name}: covers {'; '.join(covered)}{ending}")
            file = unfinished / f"{goals}-{number:04d}.itf.json"
            file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{out}: {len(chosen):,} traces cover {sum(len(covered) for _, covered, _ in chosen):,} {goals}")
    return ALL_HOLD
