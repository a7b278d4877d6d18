"""Covering runs: one for each goal that no longer run meets on its way; and one for each mutant that none of them tells."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from conformance.wire.choice.graph import Graph, Run, Step, explored, steps_from
from conformance.wire.model.subject import Subject
from spec.broker.protocol import BrokerProtocol
from spec.mutation import Mutant, names_of_rules, weaken


class Chosen(NamedTuple):
    """A run, the goals that it is there for, and the mutants that it is there for."""

    subject: Subject
    run: Run
    goals: tuple[str, ...]
    mutants: tuple[str, ...] = ()


def covering(subject: Subject, graph: Graph) -> list[Chosen]:
    """The longest runs first: what they meet on their way needs no run of its own."""
    ends = {goal: (*graph.run_to(step.state), step) for goal, step in graph.goals.items()}
    chosen, covered = list[Chosen](), set[str]()
    for goal, run in sorted(ends.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        if goal in covered:
            continue
        new = {step.goal for step in run} - covered
        covered |= new
        chosen.append(Chosen(subject, run, tuple(sorted(new))))
    return sorted(chosen, key=lambda one: (len(one.run), one.run[-1].goal))


def is_told(subject: Subject, run: Run, protocol: BrokerProtocol) -> bool:
    """Whether some answer of a run is another one under other rules, or a request is not possible there."""
    state = subject.initial
    for step in run:
        taken = step.move.take(protocol, state)
        if taken is None or taken.exchange != step.exchange:
            return True
        state = taken.state
    return False


def telling(subject: Subject, protocol: BrokerProtocol, other: BrokerProtocol) -> Run | None:
    """A shortest run whose last answer is another one under other rules; none if there is no such run."""
    start = (subject.initial, subject.initial)
    reached_by: dict[object, tuple[object, Step] | None] = {start: None}
    queue = deque([start])
    while queue:
        pair = queue.popleft()
        theirs = {step.move.name: (step.exchange, after) for step, after in steps_from(subject, other, pair[1])}
        for step, after in steps_from(subject, protocol, pair[0]):
            exchange, after_theirs = theirs.get(step.move.name, (None, None))
            if exchange != step.exchange:
                return (*_way(pair, reached_by), step)
            both = (after, after_theirs)
            if both not in reached_by:
                reached_by[both] = (pair, step)
                queue.append(both)
    return None


def _way(pair: object, reached_by: dict[object, tuple[object, Step] | None]) -> Run:
    steps: list[Step] = []
    while (origin := reached_by[pair]) is not None:
        pair, step = origin
        steps.insert(0, step)
    return tuple(steps)


def chosen_runs(subjects: Sequence[Subject], protocol: BrokerProtocol, mutants: Sequence[Mutant]) -> list[Chosen]:
    """The runs of all subjects: every goal is met, and every mutant told that one broker can show."""
    found: list[Chosen] = []
    for subject in subjects:
        own = covering(subject, explored(subject, protocol))
        asked = rules_asked(subject, protocol) if subject.by_release else frozenset()
        for mutant in (one for one in mutants if one.field in asked):
            weaker = weaken(protocol, mutant)
            if not any(is_told(subject, one.run, weaker) for one in own):
                run = telling(subject, protocol, weaker)
                if run is not None:
                    own.append(Chosen(subject, run, (), (mutant.name,)))
        found += own
    return found


def rules_asked(subject: Subject, protocol: BrokerProtocol) -> frozenset[str]:
    """The rules of a release that the subject's answers depend on at all: no other mutant can show itself there."""
    asked: set[str] = set()

    def noting(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*given: Any) -> Any:
            asked.add(name)
            return rule(*given)

        return ask

    watched: dict[str, Any] = {name: noting(name, getattr(protocol, name)) for name in names_of_rules(protocol)}
    explored(subject, replace(protocol, **watched))
    return frozenset(asked)


def caught_by(chosen: Sequence[Chosen], protocol: BrokerProtocol, mutants: Sequence[Mutant]) -> dict[str, list[Chosen]]:
    """Which of the runs tell which mutant."""
    return {
        mutant.name: [one for one in chosen if is_told(one.subject, one.run, weaken(protocol, mutant))] for mutant in mutants
    }
