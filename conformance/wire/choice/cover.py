"""Covering runs: one for each goal that no longer run meets on its way, one for each mutant that none of them tells, and
those to the boundaries of rules.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kspec.conformance.wire.choice.boundaries import boundary_runs, taken
from kspec.conformance.wire.choice.graph import AnswerBook, Graph, GraphStep, Run, State, explored, looks_after, step_from
from kspec.conformance.wire.model.subject import Subject
from kspec.model_check.search.ways import Ways
from kspec.model_check.search.ways import covering as covering_ways
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.mutation import Mutant, weaken


class SelectedRun(NamedTuple):
    """A run, the goals that it is there for, the mutants that it is there for, and the looks that end it.

    `boundary`: the rule to whose boundary it goes, if it is there for that.
    """

    subject: Subject
    run: Run
    goals: tuple[str, ...] = ()
    mutants: tuple[str, ...] = ()
    looks: Run = ()
    boundary: str = ""

    @property
    def steps(self) -> Run:
        """All that is done."""
        return (*self.run, *self.looks)


def covering(subject: Subject, graph: Graph) -> list[SelectedRun]:
    """The longest runs first: what they meet on their way needs no run of its own."""
    ends = {goal: (*graph.run_to(step.state), step) for goal, step in graph.goals.items()}
    longest_first = sorted(ends.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ways = covering_ways(longest_first, lambda run: {step.goal for step in run})
    chosen = [SelectedRun(subject, run, tuple(new)) for run, new in ways]
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


def telling(subject: Subject, book: AnswerBook, mutant: Mutant) -> Run | None:
    """A shortest run whose last answer is another one with a mutant; none if there is no such run.

    An answer in the same state that does not depend on the mutant's rule is the same.
    """
    weaker = weaken(book.protocol, mutant)
    ways = Ways[tuple[State, State], GraphStep]((subject.initial, subject.initial))
    for pair in ways.places(subject.most_moves):
        for answer in book.at(pair[0]):
            if answer.step is None:
                continue
            after = answer.after
            if pair[0] != pair[1] or mutant.field in answer.rules or mutant.traits:
                other, after = step_from(answer.move, weaker, pair[1])
                if other is None or other.exchange != answer.step.exchange:
                    return (*ways.to(pair), answer.step)
            ways.reach(pair, answer.step, (answer.after, after))
    return None


def chosen_runs(subjects: Sequence[Subject], protocol: BrokerProtocol, mutants: Sequence[Mutant]) -> list[SelectedRun]:
    """The runs of all subjects: every goal is met, and every mutant told that one broker can show."""
    found: list[SelectedRun] = []
    for subject in subjects:
        graph = explored(subject, protocol)
        own = [with_looks(one, protocol) for one in covering(subject, graph)]
        asked = graph.rules_asked if subject.by_release else frozenset()
        for mutant in (one for one in mutants if one.field in asked):
            weaker = weaken(protocol, mutant)
            if not any(is_told(subject, one.steps, weaker) for one in own):
                run = telling(subject, graph.book, mutant)
                if run is not None:
                    own.append(with_looks(SelectedRun(subject, run, (), (mutant.name,)), protocol))
        found += [*own, *to_boundaries(subject, protocol)]
    return found


def to_boundaries(subject: Subject, protocol: BrokerProtocol) -> list[SelectedRun]:
    """The runs of a subject to the boundaries of rules."""
    return [
        with_looks(SelectedRun(subject, taken(subject, one.moves, protocol), boundary=one.rule), protocol)
        for one in boundary_runs().get(subject.name, ())
    ]


def with_looks(chosen: SelectedRun, protocol: BrokerProtocol) -> SelectedRun:
    """A run with the looks that end it."""
    return chosen._replace(looks=looks_after(chosen.subject, chosen.run, protocol))


def caught_by(
    chosen: Sequence[SelectedRun], protocol: BrokerProtocol, mutants: Sequence[Mutant]
) -> dict[str, list[SelectedRun]]:
    """The mutants that each of the runs tells."""
    return {
        mutant.name: [one for one in chosen if is_told(one.subject, one.steps, weaken(protocol, mutant))]
        for mutant in mutants
    }
