"""Proving theorems: obligations spread over processes, results as they come, counterexamples for what fails."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import z3

from model_check.encode import trace_as_json
from model_check.render import trace_table
from proofs.counterexample import Counterexample, CounterexampleSearch, reachable
from proofs.induction import Induction, Obligation, Status
from proofs.settings import Settings
from proofs.theorems import THEOREMS

REACHABILITY_LIMITS = (300_000, 30.0)
"""How many states, and seconds, are spent on whether a counterexample's start can be reached."""

Report = Callable[[Sequence[Obligation], int, int], None]
"""Called with each task's obligations, how many tasks are done, and how many there are."""


@dataclass(slots=True)
class Outcome:
    """What became of a theorem."""

    settings: Settings
    obligations: list[Obligation] = field(default_factory=list)
    counterexample: Counterexample | None = None
    reachability: str = ""

    @property
    def status(self) -> Status:
        """Proved if everything is, refuted if anything is, else unknown."""
        found = {obligation.status for obligation in self.obligations}
        return "refuted" if "refuted" in found else "unknown" if "unknown" in found else "proved"

    def as_json(self) -> dict[str, Any]:
        """The outcome as one JSON object."""
        described: dict[str, Any] = {
            "name": self.settings.theorem,
            "model": self.settings.theorem,
            "replicas": self.settings.replicas,
            "mutant": self.settings.mutant,
            "status": self.status,
            "obligations": [obligation._asdict() for obligation in self.obligations],
        }
        if self.counterexample is not None:
            described["counterexample"] = {
                "breaks": self.counterexample.broken,
                "reachability": self.reachability,
                "trace": trace_as_json(self.counterexample.model, self.counterexample.trace),
            }
        return described

    def as_text(self) -> str:
        """The outcome in words; the obligations have been told one by one."""
        counts = {status: sum(o.status == status for o in self.obligations) for status in ("proved", "refuted", "unknown")}
        told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        weakened = f" with {self.settings.mutant}" if self.settings.mutant else ""
        lines = [f"{self.settings.theorem}{weakened}, {self.settings.replicas} replicas: {self.status} ({told})"]
        if self.status == "proved":
            lines.append(f"  {THEOREMS[self.settings.theorem].summary}")
        if self.counterexample is not None:
            lines += [
                f"counterexample to induction: {self.counterexample.broken} breaks; {self.reachability}",
                trace_table(self.counterexample.model, self.counterexample.trace),
            ]
        return "\n".join(lines)


def prove(settings: Settings, workers: int, report: Report = lambda obligations, done, tasks: None) -> Outcome:
    """Prove a theorem, and look for a counterexample where that fails."""
    outcome = Outcome(settings)
    tasks = Induction(THEOREMS[settings.theorem], settings).tasks()
    by_task: dict[str, list[Obligation]] = {}
    for done, (task, obligations) in enumerate(_results(settings, tasks, workers), start=1):
        by_task[task] = obligations
        report(obligations, done, len(tasks))
    outcome.obligations = [obligation for task in tasks for obligation in by_task[task]]
    _explain(outcome, by_task)
    return outcome


def _results(settings: Settings, tasks: list[str], workers: int) -> Iterator[tuple[str, list[Obligation]]]:
    if workers == 1:
        _start(settings)
        yield from ((task, _work(task)) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (settings,)) as executor:
        futures = {executor.submit(_work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


_at_work: list[tuple[Induction, CounterexampleSearch]] = []
"""What this process is proving: Z3's terms cannot be sent from one process to another."""


def _start(settings: Settings) -> None:
    induction = Induction(THEOREMS[settings.theorem], settings)
    _at_work[:] = [(induction, CounterexampleSearch(induction))]


def _work(task: str) -> list[Obligation]:
    ((induction, search),) = _at_work
    return induction.prove(task, lambda claim: search.find(claim) is not None)


def _explain(outcome: Outcome, by_task: dict[str, list[Obligation]]) -> None:
    """Show the first counterexample: found once more, in this process."""
    refuted = [
        (task, obligation)
        for task, obligations in by_task.items()
        for obligation in obligations
        if obligation.status == "refuted"
    ]
    if not refuted:
        return
    task, obligation = min(refuted, key=lambda found: outcome.obligations.index(found[1]))
    settings = outcome.settings
    induction = Induction(THEOREMS[settings.theorem], settings)
    claim = next(claim for claim in induction.claims(task) if claim.conjunct == obligation.conjunct)
    outcome.counterexample = CounterexampleSearch(induction).find(claim)
    if outcome.counterexample is not None:
        outcome.reachability = reachable(
            outcome.counterexample, induction.theorem, settings.replicas, settings.mutant, REACHABILITY_LIMITS
        )


def z3_version() -> str:
    """The version of Z3 that proves."""
    return str(z3.get_version_string())
