"""What commands that can run on Spark have in common: its options, and its errors in one line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where Spark runs, and how."""
    for option in (
        click.option(
            "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark by its own name; may be repeated."
        ),
        click.option(
            "--tables", metavar="DIR", help="Engine spark: write states, transitions and verdicts as Parquet to this folder."
        ),
        click.option(
            "--spill", metavar="DIR", help="Engine spark: where states are kept; a path or a URL (hdfs://…, s3://…)."
        ),
        click.option("--partitions", type=int, metavar="P", help="Engine spark: parts of the states (two for each core)."),
        click.option("--master", metavar="URL", help="Engine spark: Spark's master.  [default: local[*]]"),
    ):
        command = option(command)
    return command


def spark_settings(
    engine: str,
    master: str | None,
    partitions: int | None,
    spill: str | None,
    tables: str | None,
    conf: tuple[str, ...],
    quiet: bool,
) -> Any:
    """The settings of engine spark; `None` for another engine that was given none of them."""
    if engine != "spark" and master is None and partitions is None and spill is None and tables is None and not conf:
        return None
    from model_check.spark.session import SparkSettings

    for setting in conf:
        if "=" not in setting:
            raise click.UsageError(f"--conf {setting}: expected NAME=VALUE")

    def tell(sentence: str) -> None:
        click.echo(f"kspec: {sentence}", err=True)

    settings = dict(setting.split("=", 1) for setting in conf)
    return SparkSettings(master, partitions, spill, settings, None if quiet else tell, tables)


@contextmanager
def spark_errors(engine: str) -> Iterator[None]:
    """Tell what Spark cannot do in one line."""
    if engine != "spark":
        yield
        return
    from model_check.extras import MissingExtraError
    from model_check.spark.session import SparkError

    try:
        yield
    except (MissingExtraError, SparkError) as error:
        raise click.UsageError(str(error)) from error
