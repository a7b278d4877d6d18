"""Digests of simulated clusters' runs: `python -m tests.trials.simulated.digests` writes `tests/data/simulated-runs.json`.

A digest is made of every step: when it was, who handled what, and the effects by their kinds; and of the outcome. Whoever
makes the simulation faster keeps the digests. Whoever changes what a seed does (another fault, a weight, a rule) runs the
command again.
"""

import json
import sys
from hashlib import sha256
from typing import Any

from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.places import DATA
from tests.trials.simulated.hunting import setup_of, setup_of_next

FILE = DATA / "simulated-runs.json"
NEXT = "next"
STEPS = 1_000
CASES: tuple[tuple[str, int], ...] = (
    (NEXT, 1),
    (NEXT, 9),
    (NEXT, 20),
    ("release 0.10", 1),
    ("release 3.9", 2),
    ("acks=1", 1),
    ("count-what-is-sent", 1),
)
"""Rules and seeds. Seed 20 has its messages as bytes, seed 9 hardly gets a record through."""


def setup_named(name: str, seed: int) -> RunSetup:
    """The cluster of `next`, a release, a mutant, or acks=1."""
    if name == NEXT:
        return setup_of_next(seed)
    return setup_of(name, seed)


def digest(name: str, seed: int) -> dict[str, Any]:
    """A run: what can be read of it, and its digest."""
    heard = sha256()

    class DigestedCluster(SimulatedCluster):
        """A cluster of which each step is heard."""

        def note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
            super().note(handler, party, state, given, outcome)
            effects = [type(effect).__name__ for effect in getattr(outcome, "effects", ())]
            told = f"{self.clock.now_ms} {getattr(party, 'self_id', None)} {handler.__name__} {effects}\n"
            heard.update(told.encode())

    outcome = run(setup_named(name, seed), STEPS, kind=DigestedCluster)
    heard.update(json.dumps([outcome.as_json(), outcome.told]).encode())
    broken = None if outcome.broken is None else outcome.broken.name
    told = {"steps": outcome.steps, "acknowledged": outcome.acknowledged, "broken": broken}
    return {"name": name, "seed": seed, **told, "digest": heard.hexdigest()}


def known() -> list[dict[str, Any]]:
    """The digests in the file."""
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Write the file."""
    lines = ",\n".join(json.dumps(digest(*case)) for case in CASES)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
