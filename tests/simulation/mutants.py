"""Which mutants of `spec` the properties of the simulation catch: `python -m tests.simulation.mutants`.

It writes what it finds to `tests/data/simulated-mutants.json` and to docs/simulated-mutants.md. Oracles are not asked: they
know each rule, and would say only that it is another one.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from spec.mutation import Mutant, weaken
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from tests.places import DATA, DOCS
from tests.simulation.runs import simulate
from tests.simulation.setup import Setup

FILE = DATA / "simulated-mutants.json"
PAGE = DOCS / "simulated-mutants.md"
MOVES = 25_000
"""Moves after which a mutant counts as not caught."""

MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)


def with_mutant(setup: Setup, name: str) -> Setup:
    """The setup with one rule weakened."""
    for mutant in BROKER_MUTANTS:
        if mutant.name == name:
            return replace(setup, broker=weaken(setup.broker, mutant))
    (found,) = [mutant for mutant in CONTROLLER_MUTANTS if mutant.name == name]
    return replace(setup, controller=weaken(setup.controller, found))


def hunt(name: str, seed: int, moves: int) -> dict[str, Any] | None:
    """The seed, the run and the number of moves with which a mutant violates a property; `None` if it does not."""
    failure = simulate(seed, moves, with_mutant(Setup(oracles=False), name)).failure
    if failure is None:
        return None
    return {"property": failure.name, "seed": seed, "run": failure.run, "moves": failure.all_moves}


def catches() -> dict[str, dict[str, Any]]:
    """What the file says: mutants by name, each with property, seed, run and moves."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def page(found: dict[str, dict[str, Any]]) -> str:
    """The table of all mutants."""
    caught = [mutant for mutant in MUTANTS if mutant.name in found]
    rows = [
        f"| `{one.name}` | {one.summary} | {found[one.name]['property']} | {found[one.name]['seed']} "
        f"| {found[one.name]['run']} | {found[one.name]['moves']:,} |"
        for one in caught
    ]
    left = [f"- `{one.name}`: {one.summary}" for one in MUTANTS if one.name not in found]
    return "\n".join(
        [
            "# Mutants in the simulation",
            "",
            "You want to know which weakened rules the simulation catches. Each mutant of broker and controller is",
            "simulated until a property fails. Written by",
            "`python -m tests.simulation.mutants`. Moves are counted over all runs of the seed; `python -m tests.simulation",
            "--without-oracles --mutant NAME --seed SEED --run RUN` shows the run, cut to what it needs.",
            "",
            f"{len(caught)} of {len(MUTANTS)} are caught.",
            "",
            "| mutant | what it means | caught by | seed | run | moves |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "## Not caught",
            "",
            f"Nothing fails within {MOVES:,} moves. The model checker finds the shortest runs of most of them,",
            "or the liveness property that they violate ([mutants](mutants.md)).",
            "",
            *left,
            "",
        ]
    )


def write(found: dict[str, dict[str, Any]], file: Path = FILE, text: Path = PAGE) -> None:
    """The file and the page."""
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text.write_text(page(found), encoding="utf-8")


def main() -> int:
    """Hunt all mutants, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="these mutants only; the others stay as the file has them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moves", type=int, default=MOVES)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    found = catches() if arguments.names and FILE.exists() else {}
    for mutant in MUTANTS:
        if arguments.names and mutant.name not in arguments.names:
            continue
        found.pop(mutant.name, None)
        catch = hunt(mutant.name, arguments.seed, arguments.moves)
        print(mutant.name, catch or "not caught", flush=True)
        if catch:
            found[mutant.name] = catch
    write({mutant.name: found[mutant.name] for mutant in MUTANTS if mutant.name in found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
