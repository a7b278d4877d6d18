"""Differences that a weakened rule makes: which runs tell it, whether any run within the bounds would, and a shortest such.

All requests of a subject are answered once by the sound rules, and it is noted which functions each answer has asked. A
weakening of one function can only show where that function is asked. If no answer and no state differs there, it shows on no
run within the bounds: each of its runs goes through the same states. Where the model's client would make another request in
the state of the weakened broker, or none, nothing is known: the run ends there.
"""

from collections import deque
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

from kspec.conformance.wire.choice.calls import called_functions
from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.conformance.wire.choice.graph import GraphStep, Run, State
from kspec.conformance.wire.exchange import AllowedValues, AtLeast, Constraint, DelayedAnswer, Exchange
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.model_check.search.ways import Ways
from kspec.spec.broker.protocol import BrokerProtocol

MOST_PAIRS = 2000
"""The pairs of a sound and a weakened state that are looked at for a run that tells."""


class BrokenError(Exception):
    """A weakened rule that cannot go on: a broker would not answer, or with an error that nobody expects."""


class KnownAnswer(NamedTuple):
    """One request in one state by the sound rules: the answer, the state after it, and the functions that were asked."""

    step: GraphStep
    after: State
    asked: frozenset[CodeType]


class AnswerTable(NamedTuple):
    """All that a subject answers within its bounds, with the ways to its states."""

    subject: Subject
    ways: Ways[State, GraphStep]
    answers: dict[tuple[State, str], KnownAnswer]
    by_function: dict[CodeType, list[KnownAnswer]]

    def run_to(self, state: State) -> Run:
        """A shortest run to a state."""
        return tuple(self.ways.to(state))


class SearchOutcome(NamedTuple):
    """The verdict on a weakened rule in one subject: a run that tells it; and if none does whether it differs at all.

    `is_sure`: the search has come to its end.
    """

    run: Run | None
    is_sure: bool = True


def table_of(subject: Subject, protocol: BrokerProtocol) -> AnswerTable:
    """Give every request in every state, and note what it asks."""
    ways = Ways[State, GraphStep](subject.initial)
    answers: dict[tuple[State, str], KnownAnswer] = {}
    by_function: dict[CodeType, list[KnownAnswer]] = {}
    known: dict[frozenset[CodeType], frozenset[CodeType]] = {}
    for state in ways.places(subject.most_moves):
        for move in moves_of(subject):
            taken, asked = _watched(move, protocol, state)
            if taken is None:
                continue
            step = GraphStep(state, move, taken.exchange)
            answered = KnownAnswer(step, taken.state, known.setdefault(asked, asked))
            answers[state, move.name] = answered
            for code in answered.asked:
                by_function.setdefault(code, []).append(answered)
            ways.reach(state, step, taken.state)
    return AnswerTable(subject, ways, answers, by_function)


def moves_of(subject: Subject) -> tuple[Move, ...]:
    """All that is done in a subject, looks included."""
    return (*subject.moves, *(one for one in subject.looks if one not in subject.moves))


def _watched(move: Move, protocol: BrokerProtocol, state: State) -> tuple[MoveResult | None, frozenset[CodeType]]:
    with called_functions() as asked:
        taken = move.take(protocol, state)
    return taken, frozenset(asked)


def taken_by(move: Move, protocol: BrokerProtocol, state: State) -> MoveResult | None:
    """A move by rules that may be broken. Raises: `BrokenError`."""
    try:
        return move.take(protocol, state)
    except Exception as error:
        raise BrokenError(f"{type(error).__name__}: {error}") from error


# ---- whether an answer is as a case expects it


def is_as_expected(expected: Exchange, given: Exchange) -> bool:
    """Whether a case that expects one exchange takes another for it."""
    return (
        expected.ending == given.ending
        and expected.not_before_ms == given.not_before_ms
        and _all_met(expected.constraints, given.constraints)
        and len(expected.awaited) == len(given.awaited)
        and all(map(_is_awaited, expected.awaited, given.awaited))
    )


def _is_awaited(expected: DelayedAnswer, given: DelayedAnswer) -> bool:
    return expected.client == given.client and _all_met(expected.constraints, given.constraints)


def _all_met(expected: Sequence[Constraint], given: Sequence[Constraint]) -> bool:
    if expected == given:
        return True
    by_path: dict[str, list[Constraint]] = {}
    for one in given:
        by_path.setdefault(one.path, []).append(one)
    return all(one in given or any(_meets(one, other) for other in by_path.get(one.path, ())) for one in expected)


def _meets(expected: Constraint, given: Constraint) -> bool:
    match expected, given:
        case AllowedValues(_, values, _), AllowedValues(_, others, _):
            return all(one in values for one in others)
        case AtLeast(_, int(least), _), AtLeast(_, int(other), _):
            return other >= least
    return expected == given


def tells(run: Run, initial: State, protocol: BrokerProtocol) -> bool:
    """Whether some answer of a run is not as expected by the rules as they are now."""
    state = initial
    for step in run:
        try:
            taken = taken_by(step.move, protocol, state)
        except BrokenError:
            return True
        if taken is None or taken.exchange.request != step.exchange.request:
            return False
        if not is_as_expected(step.exchange, taken.exchange):
            return True
        state = taken.state
    return False


# ---- a run that tells


def first_telling(
    runs: Sequence[SelectedRun], code: CodeType, table: AnswerTable, protocol: BrokerProtocol
) -> SelectedRun | None:
    """The first of the runs that tells a weakening of this function, or none."""
    return next((one for one in runs if asks(one, code, table) and tells(one.steps, table.subject.initial, protocol)), None)


def asks(run: SelectedRun, code: CodeType, table: AnswerTable) -> bool:
    """Whether some request of a run asks a function."""
    return any(code in table.answers[step.state, step.move.name].asked for step in run.steps)


def search(table: AnswerTable, code: CodeType, protocol: BrokerProtocol) -> SearchOutcome:
    """A shortest run that tells a weakening of this function."""
    pairs = _Pairs()
    for answered in table.by_function.get(code, ()):
        if _differs(answered, answered.step.state, (), protocol, pairs):
            return SearchOutcome((*table.run_to(answered.step.state), answered.step))
    names = tuple(one.name for one in moves_of(table.subject))
    while pairs.waiting and len(pairs.seen) < MOST_PAIRS:
        sound, weak, way = pairs.waiting.popleft()
        for name in names:
            expected = table.answers.get((sound, name))
            if expected is not None and _differs(expected, weak, way, protocol, pairs):
                return SearchOutcome((*table.run_to(way[0].state), *way, expected.step))
    return SearchOutcome(None, not pairs.waiting and not pairs.left_out)


class _Pairs:
    """The pairs of a sound state and a weakened one that have been reached, and the steps since they were the same.

    `left_out`: whether something could not be tried, because it cannot be kept or the model's client asks otherwise there.
    """

    def __init__(self) -> None:
        self.waiting: deque[tuple[State, State, Run]] = deque()
        self.seen: set[tuple[State, State]] = set()
        self.left_out = False

    def reach(self, sound: State, weak: State, way: Run) -> None:
        """Note a pair. It is left out if its state cannot be kept: a rule has put there what does not belong there."""
        try:
            is_new = (sound, weak) not in self.seen
        except TypeError:
            self.left_out = True
            return
        if is_new:
            self.seen.add((sound, weak))
            self.waiting.append((sound, weak, way))


def _differs(expected: KnownAnswer, weak: State, way: Run, protocol: BrokerProtocol, pairs: _Pairs) -> bool:
    """Whether a request is answered otherwise in a weakened state; if not, different states after it are noted."""
    step = expected.step
    try:
        taken = taken_by(step.move, protocol, weak)
    except BrokenError:
        return True
    if taken is None or taken.exchange.request != step.exchange.request:
        pairs.left_out = True
        return False
    if not is_as_expected(step.exchange, taken.exchange):
        return True
    if expected.after != taken.state:
        pairs.reach(expected.after, taken.state, (*way, step))
    return False
