"""The engines by name. All give the same numbers, verdicts and lengths of shortest runs."""

from collections.abc import Callable
from functools import partial

from model_check.exploration import Checkpointing, Exploration, Limits
from model_check.model import Model, Property
from model_check.symmetry import Symmetry

Explore = Callable[[Model, list[Property], Limits], Exploration]
"""What an engine offers."""

DEFAULT_ENGINE = "compiled"
ENGINES = ("compiled", "reference")


class EngineError(ValueError):
    """An engine that does not exist, or that cannot do what is asked."""


def explorer(
    name: str = DEFAULT_ENGINE,
    workers: int | None = None,
    symmetry: Symmetry | None = None,
    checkpointing: Checkpointing | None = None,
) -> Explore:
    """The engine of this name, set up; `EngineError` says what it cannot do.

    Engines are imported when they are asked for: the compiled one takes a quarter of a second.
    """
    if name in ENGINES and name != "compiled" and checkpointing is not None:
        raise EngineError(f"engine {name} keeps no checkpoints; --checkpoint and --resume are for engine compiled")
    if name == "reference":
        from model_check import reference

        if workers not in (None, 1):
            raise EngineError("engine reference has one worker; --workers is for engine compiled")
        return lambda model, properties, limits: reference.explore(model, properties, limits, symmetry)
    if name == "compiled":
        from model_check import compiled

        return partial(compiled.explore, workers=workers, symmetry=symmetry, checkpointing=checkpointing)
    raise EngineError(f"there is no engine {name!r}; engines: {', '.join(ENGINES)}")
