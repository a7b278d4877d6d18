"""The fate of a theorem by outcome when a rule is weakened: a table of all its mutants.

`python -m kspec.proofs.commands.mutants THEOREM [--write FILE] [MUTANT]...` looks for the first action that breaks the
induction. Where it finds no counterexample, it proves what differs, and looks for a counterexample to each claim that it
cannot prove.
FILE keeps its rows of mutants that are not named.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kspec.proofs.commands.choice import strategy_for
from kspec.proofs.induction.claims import Claim
from kspec.proofs.induction.proof import Proof
from kspec.proofs.refutation.counterexample import Counterexample
from kspec.proofs.refutation.weakened import TheoremOutcomes, WeakenedObligations, WeakenedSearch
from kspec.proofs.settings import ProofSettings
from kspec.proofs.theorems import EFFORT_BY_OUTCOME, THEOREMS

MOST_OPEN = 3
"""After so many claims with neither a proof nor a counterexample a mutant is left open."""


class TriedMutant(NamedTuple):
    """The result for a mutant: the tasks that it changes, and where the induction breaks first, or what is left open.

    A mutant that breaks nothing and leaves nothing open is proved not to matter.
    """

    mutant: str
    different: tuple[str, ...]
    action: str = ""
    conjuncts: tuple[str, ...] = ()
    """All conjuncts that break in the counterexample."""
    size: int = 0
    """The size of the counterexample's logs and numbers."""
    left_open: tuple[str, ...] = ()
    """The first few conjuncts for which neither a proof nor a counterexample was found, each with its action."""


class _Enough(Exception):  # noqa: N818 - not an error: the search has its result
    """No more proofs are needed."""


def found(theorem: str, mutants: Sequence[str]) -> Iterator[TriedMutant]:
    """The result for a theorem with each of these mutants."""
    known = THEOREMS[theorem]
    unweakened = TheoremOutcomes(known, ProofSettings(theorem, known.replicas))
    for mutant in mutants:
        settings = ProofSettings(theorem, known.replicas, mutant, effort=EFFORT_BY_OUTCOME)
        yield _found(mutant, WeakenedObligations(known, settings, unweakened))


def _found(mutant: str, obligations: WeakenedObligations) -> TriedMutant:
    search = WeakenedSearch(obligations)
    different = tuple(task for task in obligations.tasks() if obligations.differs(task))
    for task in different:
        broken = search.in_task(task)
        if broken is not None:
            return TriedMutant(mutant, different, task, broken.failing, broken.size)
    proof = Proof(obligations, strategy_for(obligations))
    left_open: list[str] = []
    for task in different:
        broken = _refuted(proof, search, task, left_open)
        if broken is not None:
            return TriedMutant(mutant, different, task, broken.failing, broken.size)
        if len(left_open) >= MOST_OPEN:
            break
    return TriedMutant(mutant, different, left_open=tuple(left_open))


def _refuted(proof: Proof, search: WeakenedSearch, task: str, left_open: list[str]) -> Counterexample | None:
    """A counterexample to an unproved claim of a task, if there is one; else the unproved claims go to `left_open`."""
    broken: list[Counterexample] = []

    def look(claim: Claim) -> bool:
        known = search.find(claim)
        if known is None:
            left_open.append(f"{_name(task)} {claim.conjunct}")
        else:
            broken.append(known)
        if broken or len(left_open) >= MOST_OPEN:
            raise _Enough
        return False

    with suppress(_Enough):
        proof.prove(task, look)
    return broken[0] if broken else None


def main() -> None:
    """Print a line for each mutant, and write all results as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("theorem", choices=[name for name, theorem in THEOREMS.items() if theorem.by_outcome])
    parser.add_argument("mutants", nargs="*", metavar="MUTANT")
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_intermixed_args()
    known = list(THEOREMS[asked.theorem].mutants)
    if unknown := sorted({*asked.mutants} - {*known}):
        parser.error(f"no mutant is called {', '.join(unknown)}")
    rows: dict[str, Any] = _rows_in(asked.write, known) if asked.write and asked.mutants else {}
    for row in found(asked.theorem, asked.mutants or known):
        different = ", ".join(map(_name, row.different)) or "nothing"
        print(f"{row.mutant}: {different} differs; {_in_words(row)}", flush=True)
        rows[row.mutant] = row._asdict()
        if asked.write:
            ordered = [rows[mutant] for mutant in known if mutant in rows]
            asked.write.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


def _rows_in(file: Path, known: Sequence[str]) -> dict[str, Any]:
    """A file's rows about the mutants that there still are."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return {row["mutant"]: row for row in rows if row["mutant"] in known}


def _in_words(row: TriedMutant) -> str:
    if row.action:
        return f"breaks at {_name(row.action)}: {', '.join(row.conjuncts)}"
    if row.left_open:
        return f"open: {', '.join(row.left_open)}"
    return "it is proved all the same" if row.different else "so nothing is proved anew"


def _name(task: str) -> str:
    return task.split("(", maxsplit=1)[0]


if __name__ == "__main__":
    main()
