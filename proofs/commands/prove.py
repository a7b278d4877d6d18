"""Proves theorems: spreads obligations over processes, reports results as they come, finds counterexamples to failures."""

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import z3

from kspec.model_check.core.exploration import Limits, Trace, uninterrupted
from kspec.model_check.core.model import Model, Property, when
from kspec.model_check.core.processes import worked_apart
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.traces.encode import trace_as_json
from kspec.model_check.traces.render import length_in_words, trace_table
from kspec.proofs.commands.choice import obligations_of, proof_of
from kspec.proofs.induction.claims import Obligation, Status, gravest
from kspec.proofs.induction.invariant import Theorem
from kspec.proofs.refutation.bounded import MOST_STATES, BoundedExecution, Depth
from kspec.proofs.refutation.counterexample import Counterexample, reachable, search_for
from kspec.proofs.refutation.weakened import WeakenedObligations, WeakenedSearch
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.theorems import BY_STEPS, REFUTABLE, THEOREMS, by_runs

MOST_REPLICAS_OF_WITNESS = 3

MOST_STATES_TO_WITNESS = 3_000_000
"""The most states that are explored for a witness."""

MOST_STATES_TO_START = 30_000
"""The most states that are explored to find out whether a counterexample's start can be reached."""

IN_WORDS: dict[Status, str] = {
    "proved": "proved",
    "refuted": "refuted",
    "unknown": "unknown",
    "stopped": "stopped by the clock",
}


def _names(tasks: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(task.split("(")[0] for task in tasks))


Report = Callable[[Sequence[Obligation], int, int], None]
"""Called with each task's obligations, how many tasks are done, and how many there are."""


@dataclass(slots=True)
class TheoremOutcome:
    """The outcome for a theorem."""

    settings: ProofSettings
    obligations: list[Obligation] = field(default_factory=list)
    counterexample: Counterexample | None = None
    reachability: str = ""
    witness: tuple[Model, Trace] | None = None
    """A run to a state that the theorem speaks of: it shows that the theorem is not vacuous."""
    unchanged: tuple[str, ...] = ()
    """If a rule is weakened: the tasks whose obligations are all the theorem's own, so that they are not proved again."""
    left_out: tuple[str, ...] = ()
    """Tasks that were not tried, because another one is refuted."""

    @property
    def is_weakened(self) -> bool:
        """Whether only the obligations that a weakened rule changes are tried."""
        return (
            self.settings.mutant is not None
            and self.settings.theorem in THEOREMS
            and THEOREMS[self.settings.theorem].by_outcome
        )

    @property
    def status(self) -> Status:
        """Proved if all obligations are, refuted if any is, else stopped by the clock if any is, or else unknown."""
        return gravest(obligation.status for obligation in self.obligations)

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
        if self.is_weakened:
            described |= {"unchanged": list(self.unchanged), "left_out": list(self.left_out)}
        if self.witness is not None:
            described["witness"] = {"trace": trace_as_json(*self.witness)}
        if self.counterexample is not None:
            described["counterexample"] = {
                "breaks": self.counterexample.broken,
                "reachability": self.reachability,
                "trace": trace_as_json(self.counterexample.model, self.counterexample.trace),
            }
        return described

    def as_text(self) -> str:
        """The outcome in words; the obligations have already been reported one by one."""
        counts = Counter(IN_WORDS[obligation.status] for obligation in self.obligations)
        told = ", ".join(f"{counts[word]} {word}" for word in IN_WORDS.values() if counts[word]) or "nothing is asked anew"
        weakened = f" with {self.settings.mutant}" if self.settings.mutant else ""
        by_steps = BY_STEPS.get(self.settings.theorem)
        number = self.settings.replicas_in_words if by_steps is None else by_steps.number_in_words(self.settings)
        lines = [f"{self.settings.theorem}{weakened}, {number}: {IN_WORDS[self.status]} ({told})"]
        if "stopped" in {obligation.status for obligation in self.obligations}:
            lines.append(
                f"  the clock stopped Z3 where one question took {self.settings.time_limit:g} s: that is no answer, and on a"
                " faster machine, or with a longer --time-limit, there may be one"
            )
        if self.is_weakened:
            lines += self._unchanged_in_words()
        if self.status == "proved":
            lines.append(f"  {(by_steps or THEOREMS[self.settings.theorem]).summary}")
        if self.witness is not None:
            _, trace = self.witness
            lines.append(f"  witness: a run of {length_in_words(trace)}; what it ends in is what the theorem speaks of")
        first = next((o for o in self.obligations if o.status == "refuted"), None)
        if self.counterexample is not None and first is not None:
            shown = f"{first.action}: {self.counterexample.broken} breaks; {self.reachability}"
            by_runs_found = by_runs(self.settings.theorem, self.settings.runs_from)
            table = trace_table(self.counterexample.model, self.counterexample.trace)
            lines += [shown, table if by_runs_found else self.counterexample.table()]
        return "\n".join(lines)

    def _unchanged_in_words(self) -> list[str]:
        """The tasks that are as without the weakened rule, and the tasks that were not tried."""
        as_it_is = f"  with the same obligations as {self.settings.theorem} itself, so not proved again: "
        lines = [as_it_is + ", ".join(_names(self.unchanged))] if self.unchanged else []
        return lines + ([f"  not looked at: {', '.join(_names(self.left_out))}"] if self.left_out else [])


def prove(settings: ProofSettings, workers: int, report: Report = lambda obligations, done, tasks: None) -> TheoremOutcome:
    """Prove a theorem, and search for a counterexample if that fails."""
    if by_runs(settings.theorem, settings.runs_from):
        return _refute(settings, report)
    outcome = TheoremOutcome(settings)
    if settings.theorem in BY_STEPS:
        steps = [*BY_STEPS[settings.theorem].tasks]
        proved = _proved(settings, steps, workers, report)
        outcome.obligations = [obligation for step in steps for obligation in proved[step]]
        return outcome
    obligations = obligations_of(THEOREMS[settings.theorem], settings)
    tasks = obligations.tasks()
    if isinstance(obligations, WeakenedObligations):
        tasks = _changed(obligations, outcome, report)
        if outcome.counterexample is not None:
            return outcome
    by_task = _proved(settings, tasks, workers, report)
    outcome.obligations = [obligation for task in tasks for obligation in by_task[task]]
    _explain(outcome, by_task)
    if outcome.status == "proved" and not outcome.is_weakened:
        size = MOST_REPLICAS_OF_WITNESS if settings.replicas == ANY else settings.number_of_replicas
        outcome.witness = witness(THEOREMS[settings.theorem], min(size, MOST_REPLICAS_OF_WITNESS))
    return outcome


def _changed(obligations: WeakenedObligations, outcome: TheoremOutcome, report: Report) -> list[str]:
    """The tasks that a weakened rule changes, up to the first one with a counterexample."""
    settings, tasks, search = obligations.settings, obligations.tasks(), WeakenedSearch(obligations)
    changed: list[str] = []
    for done, task in enumerate(tasks, start=1):
        started = time.perf_counter()
        if not obligations.differs(task):
            outcome.unchanged += (task,)
            report([], done, len(tasks))
            continue
        changed.append(task)
        found = search.in_task(task) if settings.search else None
        if found is not None:
            seconds = time.perf_counter() - started
            paths = sum(step.paths for step in obligations.outcomes(task, obligations.actions[task]))
            outcome.obligations = [Obligation(task, name, "refuted", seconds, paths) for name in found.failing]
            outcome.counterexample, outcome.left_out = found, tuple(tasks[done:])
            outcome.reachability = reachable(found, obligations.theorem, settings.mutant, MOST_STATES_TO_START)
            report(outcome.obligations, done, len(tasks))
            break
    return changed


def witness(theorem: Theorem, replicas: int) -> tuple[Model, Trace] | None:
    """The shortest run of a small model to a state that shows that the theorem is not vacuous."""
    model = theorem.bounded(replicas, *theorem.witness.bounds)

    read = [slot for slot in model.slots if not theorem.witness.reads or slot.name in theorem.witness.reads]

    def shown(*values: Any) -> bool:
        known = {(slot.name, slot.key): value for slot, value in zip(read, values, strict=True)}

        def at(name: str, key: Any = None) -> Any:
            return known[name, key]

        return theorem.witness.holds(theorem.view(at, Brokers(range(1, replicas + 1))))

    wanted = Property("Witness", "sometimes", (when(shown, *read),), "the theorem speaks of something")
    engine = "compiled" if theorem.witness.reads else "reference"
    found = uninterrupted(explorer(engine)(model, [wanted], Limits(True, MOST_STATES_TO_WITNESS)))
    (verdict,) = found.verdicts
    return (model, verdict.trace) if verdict.trace is not None else None


def _refute(settings: ProofSettings, report: Report) -> TheoremOutcome:
    """Search for a shortest run that violates the model's property, one length at a time."""
    refutable = REFUTABLE[settings.theorem]
    model = refutable.build(settings.number_of_replicas)
    prop = model.property_named(refutable.prop)
    assert prop is not None, f"model {model.name} has no property {refutable.prop}"
    outcome = TheoremOutcome(settings)

    def told(depth: Depth) -> None:
        if depth.violated is None:
            status: Status = "stopped" if depth.stopped else "unknown"
        else:
            status = "refuted" if depth.violated else "proved"
        action = f"runs of {depth.states} states"
        outcome.obligations.append(Obligation(action, prop.name, status, depth.seconds, len(model.actions)))
        report(outcome.obligations[-1:], depth.states, MOST_STATES)

    least = settings.runs_from or 1
    found = BoundedExecution(model, prop).shortest_violation(
        MOST_STATES, settings.effort, told, settings.export, least, settings.time_limit
    )
    if found.trace is not None:
        outcome.counterexample = Counterexample(
            model, refutable.log_size, settings.number_of_replicas, found.trace, prop.name
        )
        shorter = "and none is shorter" if least == 1 else f"and none is shorter of those from {least} states on"
        outcome.reachability = f"this run starts where every run does, {shorter}"
    return outcome


def _proved(settings: ProofSettings, tasks: list[str], workers: int, report: Report) -> dict[str, list[Obligation]]:
    """The obligations of each task, which are reported as they come."""
    by_task: dict[str, list[Obligation]] = {}
    for done, (task, results) in enumerate(_results(settings, tasks, workers), start=1):
        by_task[task] = results
        report(results, done, len(tasks))
    return by_task


def _results(settings: ProofSettings, tasks: list[str], workers: int) -> Iterator[tuple[str, list[Obligation]]]:
    if workers == 1:
        _start(settings)
        yield from ((task, _work(task)) for task in tasks)
        return
    with worked_apart(_work_apart, tasks, workers, _start_forking, (settings,)) as futures:
        of_future = dict(zip(futures, tasks, strict=True))
        for future in as_completed(futures):
            yield of_future[future], future.result()


_at_work: list[Callable[[str], list[Obligation]]] = []
"""The proof that this process works on, task by task: Z3's terms cannot be sent from one process to another."""


def _start(settings: ProofSettings) -> None:
    if settings.theorem in BY_STEPS:
        tasks = BY_STEPS[settings.theorem].tasks
        _at_work[:] = [lambda task: tasks[task](settings)]
        return
    proof = proof_of(THEOREMS[settings.theorem], settings)
    search = search_for(proof.obligations)
    _at_work[:] = [lambda task: proof.prove(task, lambda claim: search.find(claim) is not None)]


def _work(task: str) -> list[Obligation]:
    (work,) = _at_work
    return work(task)


_at_work_apart: list[BaseProcess] = []
"""The process that proves this process's task."""


def _start_forking(settings: ProofSettings) -> None:
    """Get ready to prove each task in a process of its own, which ends when this process is terminated."""
    _start(settings)

    def end(signal_number: int, _: object) -> None:
        for process in _at_work_apart:
            process.kill()
        os._exit(128 + signal_number)

    signal.signal(signal.SIGTERM, end)


def _work_apart(task: str) -> list[Obligation]:
    """Prove a task in a process that is forked for it.

    What Z3 finds, and how soon, depends a little on all that it was asked before. So each task begins in the same way,
    whatever tasks a worker had before it.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(task, sender))
    process.start()
    sender.close()
    _at_work_apart[:] = [process]
    try:
        found = receiver.recv()
    except EOFError as error:
        raise RuntimeError(f"the process died that was to prove {task}") from error
    finally:
        process.kill()
        process.join()
        _at_work_apart.clear()
    if isinstance(found, BaseException):
        raise found
    obligations: list[Obligation] = found
    return obligations


def _send(task: str, sender: Connection) -> None:
    try:
        sender.send(_work(task))
    except BaseException as error:
        sender.send(error)


def _explain(outcome: TheoremOutcome, by_task: dict[str, list[Obligation]]) -> None:
    """Find the first counterexample once more, in this process, to show it."""
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
    obligations = obligations_of(THEOREMS[settings.theorem], settings)
    search = search_for(obligations)
    claims = (claim for claim in obligations.claims(task) if claim.conjunct == obligation.conjunct)
    found = outcome.counterexample = next(filter(None, map(search.find, claims)), None)
    if found is not None:
        outcome.reachability = reachable(found, obligations.theorem, settings.mutant, MOST_STATES_TO_START)


def z3_version() -> str:
    """The version of Z3 that is used."""
    return str(z3.get_version_string())
