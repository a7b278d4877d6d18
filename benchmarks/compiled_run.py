"""One exploration by the compiled engine, as a whole process: `python -m benchmarks.compiled_run MODEL NAME=VALUE …`.

Prints one line of JSON. `properties=A,B` chooses what is checked, `workers=N` how many cores are used; with `symmetry=1`
one state of each orbit is visited.
"""

import json
import sys

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled import explore
from kspec.model_check.models import MODELS


def main(arguments: list[str]) -> None:
    """Explore, and print the numbers."""
    name, *rest = arguments
    settings = dict(argument.split("=", 1) for argument in rest)
    workers = int(settings.pop("workers", "0")) or None
    symmetric = settings.pop("symmetry", "0") == "1"
    chosen = settings.pop("properties", None)
    model = MODELS[name].build({key: int(value) for key, value in settings.items()})
    properties = [
        prop for prop in model.properties if (prop.by_default if chosen is None else prop.name in chosen.split(","))
    ]
    symmetry = Symmetry(model) if symmetric else None
    found = explore(model, properties, Limits(stop_at_first=False), workers, symmetry=symmetry)
    print(
        json.dumps(
            {
                "distinct": found.distinct_states,
                "represented": found.represented if symmetric else found.distinct_states,
                "transitions": found.transitions,
                "depth": found.depth,
                "seconds": round(found.duration_s, 3),
                "violated": [verdict.prop.name for verdict in found.verdicts if verdict.violated],
                "stopped_because": found.stopped_because,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
