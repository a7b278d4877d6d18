"""The state counts of models that run `next`: they change with every rule that `next` gets.

`tests/data/counts.json` has them. `python -m tests.counts` explores all of its rows anew and writes the file. Counts of
released rules and of the published models stand in the tests themselves, and in `golden.json`.
"""

import json
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled
from kspec.model_check.models import MODELS
from tests.places import DATA

FILE = DATA / "counts.json"
ROWS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


class Count(NamedTuple):
    """Distinct states (of each orbit one, with symmetry), transitions, and levels."""

    states: int
    transitions: int
    depth: int


def count_of(model: str, *, symmetry: Any = False, **parameters: Any) -> Count:
    """The row for a model with these parameters."""
    asked = (model, parameters, symmetry)
    (row,) = [row for row in ROWS if (row["model"], row["parameters"], row["symmetry"]) == asked]
    return Count(row["states"], row["transitions"], row["depth"])


def counted(row: dict[str, Any]) -> Count:
    """Explore the model of a row to its end."""
    model = MODELS[row["model"]].build({**row["parameters"], **({"release": "next"} if row["model"] == "kafka" else {})})
    found = compiled.explore(model, [], Limits(stop_at_first=False), symmetry=Symmetry(model) if row["symmetry"] else None)
    return Count(found.distinct_states, found.transitions, found.depth)


def main() -> None:
    """Write the file anew."""
    rows = [{**row, **counted(row)._asdict()} for row in ROWS]
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
