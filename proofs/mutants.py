"""What becomes of a theorem by outcome when a rule is weakened: a table of all its mutants.

`python -m proofs.mutants THEOREM [--write FILE] [MUTANT]...` looks for the first action that breaks the
induction. It proves nothing: where it finds no counterexample, `kspec prove THEOREM --mutant MUTANT` may find a proof.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proofs.settings import Settings
from proofs.theorems import THEOREMS
from proofs.weakened import Unweakened, WeakenedInduction

SEARCH_S = 120.0
"""How long is looked for a counterexample to a task."""


class Found(NamedTuple):
    """Of a mutant: the tasks that it makes different, and where the induction breaks first."""

    mutant: str
    different: tuple[str, ...]
    action: str = ""
    conjuncts: tuple[str, ...] = ()
    """All that break in the counterexample."""
    size: int = 0
    """How large the logs and numbers of the counterexample are."""


def found(theorem: str, mutants: Sequence[str]) -> Iterator[Found]:
    """What becomes of a theorem with each of these rules weakened."""
    known = THEOREMS[theorem]
    unweakened = Unweakened(known, Settings(theorem, known.replicas))
    for mutant in mutants:
        induction = WeakenedInduction(known, Settings(theorem, known.replicas, mutant), unweakened)
        yield _found(mutant, induction)


def _found(mutant: str, induction: WeakenedInduction) -> Found:
    different = [task for task in induction.tasks() if induction.differs(task)]
    for task in different:
        broken = induction.counterexample(task, SEARCH_S)
        if broken is not None:
            return Found(mutant, tuple(different), task, broken.failing, broken.size)
    return Found(mutant, tuple(different))


def main() -> None:
    """Print a line for each mutant, and write all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("theorem", choices=[name for name, theorem in THEOREMS.items() if theorem.by_outcome])
    parser.add_argument("mutants", nargs="*", metavar="MUTANT")
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_intermixed_args()
    rows: dict[str, Any] = {}
    for row in found(asked.theorem, asked.mutants or THEOREMS[asked.theorem].mutants):
        broken = f"{_name(row.action)}: {', '.join(row.conjuncts)}" if row.action else "no counterexample"
        different = ", ".join(map(_name, row.different)) or "nothing"
        print(f"{row.mutant}: {different} differs; {broken if row.different else 'so nothing is proved anew'}", flush=True)
        rows[row.mutant] = row._asdict()
        if asked.write:
            asked.write.write_text(json.dumps(list(rows.values()), indent=2) + "\n", encoding="utf-8")


def _name(task: str) -> str:
    return task.split("(", maxsplit=1)[0]


if __name__ == "__main__":
    main()
