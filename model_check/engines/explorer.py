"""The engines by name. All give the same numbers, verdicts and lengths of shortest runs."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kspec.model_check.core.exploration import CheckpointPlan, Exploration, Limits
from kspec.model_check.core.model import Model, Property
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.extras import need

if TYPE_CHECKING:
    from kspec.model_check.engines.spark.session import SparkSettings

Explore = Callable[[Model, list[Property], Limits], Exploration]
"""The function that an engine offers."""

DEFAULT_ENGINE = "compiled"
ENGINES = ("compiled", "reference", "spark")


class EngineError(ValueError):
    """An engine that does not exist, or that cannot do what is asked."""


def explorer(
    name: str = DEFAULT_ENGINE,
    workers: int | None = None,
    symmetry: Symmetry | None = None,
    checkpointing: CheckpointPlan | None = None,
    spark_settings: "SparkSettings | None" = None,
) -> Explore:
    """The engine of this name, set up; `EngineError` says what it cannot do, `MissingExtraError` what is not installed.

    Engines are imported when they are asked for: the compiled one takes a quarter of a second.
    """
    if name == "reference" and checkpointing is not None:
        raise EngineError("engine reference keeps no checkpoints; --checkpoint and --resume are for compiled and spark")
    if name in ("compiled", "reference") and spark_settings is not None:
        raise EngineError("--master, --partitions, --spill, --tables, --driver-states and --conf are for engine spark")
    if name == "reference":
        from kspec.model_check.engines import reference

        if workers not in (None, 1):
            raise EngineError("engine reference has one worker; --workers is for engine compiled")
        return lambda model, properties, limits: reference.explore(model, properties, limits, symmetry)
    if name == "compiled":
        from kspec.model_check.engines import compiled

        return partial(compiled.explore, workers=workers, symmetry=symmetry, checkpointing=checkpointing)
    if name == "spark":
        need(("pyspark", "pyarrow"), "engine spark", extra="spark")
        from kspec.model_check.engines.spark import engine

        if workers is not None:
            raise EngineError(
                "engine spark has as many workers as its master says (--master 'local[2]'); leave --workers out"
            )
        return partial(engine.explore, settings=spark_settings, symmetry=symmetry, checkpointing=checkpointing)
    raise EngineError(f"there is no engine {name!r}; engines: {', '.join(ENGINES)}")
