"""The hunts for mutants, each in a task of Spark. The outcome is the same as that of `kspec mutants` without Spark."""

from collections.abc import Iterator
from typing import Any

from kspec.model_check.engines.spark.session import SparkSettings, collected, spark_context
from kspec.model_check.reports.mutants import ALL_MUTANTS, HUNTS, LIVENESS_HUNTS, Hunt, hunt


def hunts(names: tuple[str, ...], settings: SparkSettings | None = None) -> list[Hunt]:
    """The hunts for these mutants, or for all if none are given, each in a task of its own."""
    with spark_context(settings or SparkSettings()) as context:
        return hunts_on(context, names)


def hunts_on(context: Any, names: tuple[str, ...]) -> list[Hunt]:
    """`hunts` with an existing context."""
    asked = names or tuple(ALL_MUTANTS)
    explored = [name for name in asked if name in HUNTS or name in LIVENESS_HUNTS]
    found: dict[str, Hunt] = {}
    if explored:
        tasks = context.parallelize(explored, len(explored)).mapPartitions(_hunt_all)
        found = {name: Hunt(ALL_MUTANTS[name], *outcome) for name, outcome in collected(tasks)}
    return [found[name] if name in found else hunt(name) for name in asked]


def _hunt_all(names: Iterator[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The names with the results: all of a `Hunt` but the mutant, which is made of functions."""
    for name in names:
        yield name, tuple(hunt(name, workers=1)[1:])
