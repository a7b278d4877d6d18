"""Theorems about one party and all others together: each step of the party is taken by functions of `spec`, path by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

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


class Part(NamedTuple):
    """Some of the conjuncts, and what is assumed for them alone, which may have quantifiers."""

    conjuncts: Sequence[str]
    assumed: Sequence[z3.BoolRef] = ()


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
    return obligations_of_parts(settings, task, [Part(conjuncts, assumed)], taken, known)


def obligations_of_parts(
    settings: ProofSettings,
    task: str,
    parts: Sequence[Part],
    taken: Callable[[], Any],
    known: Sequence[z3.BoolRef] = (),
    told: Callable[[Any], Mapping[str, Any]] = lambda of_step: of_step,
) -> list[Obligation]:
    """The results for one step, for each part of the conjuncts with what is assumed for it.

    `told`: the truth of each conjunct, of what the step is; it is asked after the step, when nothing forks any more.
    """
    started = perf_counter()
    paths = [path._replace(value=told(path.value)) for path in explore(taken, known)]
    conjuncts = [conjunct for part in parts for conjunct in part.conjuncts]
    statuses: dict[str, list[Status]] = {conjunct: [] for conjunct in conjuncts}
    for part in parts:
        for conjunct, found in _of_part(settings, part, paths, [*known, *part.assumed]).items():
            statuses[conjunct] += found
    seconds = (perf_counter() - started) / len(conjuncts)
    return [Obligation(task, conjunct, gravest(statuses[conjunct]), seconds, len(paths)) for conjunct in conjuncts]


def _of_part(
    settings: ProofSettings, part: Part, paths: Sequence[Path], premises: Sequence[z3.BoolRef]
) -> dict[str, list[Status]]:
    """The statuses of a part's conjuncts, by the goals that paths have: those with the same goals are looked at together."""
    alike: dict[int, tuple[z3.BoolRef, dict[str, z3.BoolRef], list[Path]]] = {}
    for path in paths:
        goals = {conjunct: z3.simplify(truth(path.value[conjunct])) for conjunct in part.conjuncts}
        asked = {name: goal for name, goal in goals.items() if not z3.is_true(goal)}
        whole = z3.And(*asked.values())
        alike.setdefault(whole.get_id(), (whole, asked, []))[2].append(path)
    statuses: dict[str, list[Status]] = {conjunct: ["proved"] for conjunct in part.conjuncts}
    for whole, asked, some in alike.values():
        for conjunct, found in _of_paths(settings, whole, asked, some, premises).items():
            statuses[conjunct] += found
    return statuses


def _of_paths(
    settings: ProofSettings,
    whole: z3.BoolRef,
    goals: Mapping[str, z3.BoolRef],
    paths: Sequence[Path],
    premises: Sequence[z3.BoolRef],
) -> dict[str, list[Status]]:
    """The statuses of goals on paths: all are asked for at once, on any path, then on one of these, then on each.

    On a path they are asked for one by one if that is no proof.
    """
    taken = [z3.And(path.condition, path.facts) for path in paths]
    if not goals or "proved" in (status_of(settings, [*premises, *some], whole) for some in ([], [z3.Or(*taken)])):
        return {}
    found: dict[str, list[Status]] = {conjunct: [] for conjunct in goals}
    for condition in taken:
        conditions = [condition, *premises]
        if len(paths) == 1 or status_of(settings, conditions, whole) != "proved":
            for name, goal in goals.items():
                found[name].append(status_of(settings, conditions, goal))
    return found


def status_of(settings: ProofSettings, premises: Sequence[z3.BoolRef], goal: z3.BoolRef) -> Status:
    """The result for a goal under premises."""
    solver = z3.Solver()
    solver.add(*premises, z3.Not(goal))
    try:
        answer = Effort(settings.effort, settings.time_limit).ask(solver)
    except StoppedByClockError:
        return "stopped"
    return "proved" if answer == z3.unsat else "refuted" if answer == z3.sat else "unknown"
