"""Theorems about one party and all others together: each step of the party is taken by functions of `spec`, path by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import z3

from kspec.proofs.effort import Effort, StoppedByClockError
from kspec.proofs.induction.claims import Obligation, Status, gravest
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.paths import Path, explore
from kspec.proofs.symbolic.values import truth
from kspec.spec.mutation import Mutant


@dataclass(frozen=True, slots=True)
class StepTheorem:
    """A theorem that is proved step by step, and the mutants that it can be tried against.

    - `tasks`: their names, each with the proof of its obligations;
    - `replicas`: for how many it is proved by default, `None` if nothing in it says how many there are;
    - `parties`: the word for them.
    """

    name: str
    summary: str
    mutants: Mapping[str, Mutant]
    tasks: Mapping[str, Callable[[ProofSettings], list[Obligation]]]
    parties: str
    replicas: int | None = None

    def number_in_words(self, settings: ProofSettings) -> str:
        """The number of parties that a proof is for, in words."""
        return f"{'any number of' if self.replicas is None else settings.number_of_replicas} {self.parties}"


def obligations_of_step(
    settings: ProofSettings,
    task: str,
    conjuncts: Sequence[str],
    taken: Callable[[], Mapping[str, Any]],
    known: Sequence[z3.BoolRef] = (),
    assumed: Sequence[z3.BoolRef] = (),
) -> list[Obligation]:
    """The results for one step, which gives the truth of each conjunct after it.

    `known` rules out paths and is assumed; `assumed` is for the conjuncts alone, so that it may have quantifiers.
    """
    started = perf_counter()
    paths = explore(taken, known)
    premises = [*known, *assumed]
    statuses: dict[str, list[Status]] = {conjunct: [] for conjunct in conjuncts}
    everywhere: dict[int, tuple[z3.BoolRef, bool]] = {}
    for path in paths:
        for conjunct, status in _of_path(settings, path, premises, everywhere).items():
            statuses[conjunct].append(status)
    seconds = (perf_counter() - started) / len(conjuncts)
    return [Obligation(task, conjunct, gravest(statuses[conjunct]), seconds, len(paths)) for conjunct in conjuncts]


def _of_path(
    settings: ProofSettings, path: Path, premises: Sequence[z3.BoolRef], everywhere: dict[int, tuple[z3.BoolRef, bool]]
) -> dict[str, Status]:
    """The status of each conjunct on a path.

    All are asked for at once: first whether they hold on any path, which is kept in `everywhere` by Z3's number of the goal,
    then on this one; one by one if that is no proof.
    """
    goals = {conjunct: z3.simplify(truth(goal)) for conjunct, goal in path.value.items()}
    found: dict[str, Status] = dict.fromkeys(goals, "proved")
    asked = {name: goal for name, goal in goals.items() if not z3.is_true(goal)}
    if not asked:
        return found
    whole = z3.And(*asked.values())
    if whole.get_id() not in everywhere:
        everywhere[whole.get_id()] = whole, status_of(settings, premises, whole) == "proved"
    conditions = [path.condition, path.facts, *premises]
    if everywhere[whole.get_id()][1] or status_of(settings, conditions, whole) == "proved":
        return found
    return found | {name: status_of(settings, conditions, goal) for name, goal in asked.items()}


def status_of(settings: ProofSettings, premises: Sequence[z3.BoolRef], goal: z3.BoolRef) -> Status:
    """The result for a goal under premises."""
    solver = z3.Solver()
    solver.add(*premises, z3.Not(goal))
    try:
        answer = Effort(settings.effort, settings.time_limit).ask(solver)
    except StoppedByClockError:
        return "stopped"
    return "proved" if answer == z3.unsat else "refuted" if answer == z3.sat else "unknown"
