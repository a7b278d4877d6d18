"""The compiled engine as one function. What it does is in `search`."""

import os

from model_check.core.exploration import Checkpointing, Exploration, Limits
from model_check.core.model import Model, Property
from model_check.core.symmetry import Symmetry
from model_check.engines.compiled.search import Search


def explore(
    model: Model,
    properties: list[Property],
    limits: Limits,
    workers: int | None = None,
    memory: int | None = None,
    symmetry: Symmetry | None = None,
    checkpointing: Checkpointing | None = None,
) -> Exploration:
    """Visit every reachable state, level by level, on all cores unless `workers` says how many.

    `memory` is how many bytes the search may take; by default nearly what the system has left. With `symmetry`, visit one
    state of each orbit; traces are real runs all the same. `CheckpointError` says why checkpoints cannot be kept, or not be
    resumed, where `checkpointing` wants it.
    """
    return Search(model, properties, limits, workers or os.cpu_count() or 1, memory, symmetry, checkpointing).run()
