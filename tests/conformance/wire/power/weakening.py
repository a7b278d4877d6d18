"""Weakened rules: which there are, and what is found about one of them."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType
from typing import NamedTuple

from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.conformance.wire.choice.differences import AnswerTable, first_telling, search
from kspec.spec.releases.broker import NEWEST
from tests.conformance.wire.power.inputs import RuleInputs, inputs_of
from tests.planted_bugs.planting import PlantedBug, bugs_in, code_with, functions_of, planted

TOLD, MISSED, SAME, OPEN = "told", "missed", "same", "open"
"""Whether a case tells a weakened rule; or none does, though a run of the models would; or no run would; or the search for
such a run was not ended.
"""

HANGS_S, SEARCH_S = 5, 60
"""Emergency stops, in seconds of the processor. A rule that does not end is told: its broker does not answer."""


class WeakeningFinding(NamedTuple):
    """A verdict on a weakened rule, the subject that tells it, and the moves of a run that does."""

    bug: PlantedBug
    verdict: str
    subject: str = ""
    moves: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that is weakened, as cases name it."""
        return f"spec.{self.bug.function}"


class _TooLongError(BaseException):
    """The time is over. No rule catches it."""


class Weakenings:
    """The weakenings of all rules that the subjects ask, and the runs that are there to tell them."""

    def __init__(self, tables: Sequence[AnswerTable], runs: Sequence[SelectedRun]) -> None:
        self.tables = tables
        self.runs = {one.subject.name: [run for run in runs if run.subject is one.subject] for one in tables}
        self._codes: dict[str, CodeType] = {}
        self._inputs: dict[str, RuleInputs] = {}

    def bugs(self, rooms: Sequence[str] = ()) -> list[PlantedBug]:
        """All weakenings of the rules that are asked, in order of their modules; of these rooms alone, if some are named."""
        asked = {code for table in self.tables for code in table.by_function}
        functions: dict[str, FunctionType] = {}
        found: list[PlantedBug] = []
        for name, module in sorted(sys.modules.items()):
            room = name.removeprefix("kspec.spec.")
            if room == name or not _is_in(room, rooms):
                continue
            own = {f"{room}:{inner}": one for inner, one in functions_of(module) if one.__code__ in asked}
            functions |= own
            found += [one for one in bugs_in(room) if one.function in own] if own else []
        self._codes = {path: function.__code__ for path, function in functions.items()}
        self._inputs = inputs_of(functions, self._answers())
        return found

    def _answers(self) -> Iterator[Callable[[], object]]:
        """The answers that ask one of the rules."""
        wanted = set(self._codes.values())
        for table in self.tables:
            for answered in table.answers.values():
                if not wanted.isdisjoint(answered.asked):
                    yield partial(answered.step.move.take, NEWEST, answered.step.state)

    def judge(self, bug: PlantedBug) -> WeakeningFinding:
        """Look for a run that tells a weakened rule."""
        if self._is_the_same(bug):
            return WeakeningFinding(bug, SAME)
        code = self._codes[bug.function]
        tables = [one for one in self.tables if code in one.by_function]
        with planted(bug):
            for table in tables:
                if self.told_by(table, code):
                    return WeakeningFinding(bug, TOLD, table.subject.name)
            verdict = SAME
            for table in tables:
                try:
                    with _limited(SEARCH_S):
                        found = search(table, code, NEWEST)
                except _TooLongError:
                    verdict = OPEN
                    continue
                if found.run is not None:
                    return WeakeningFinding(bug, MISSED, table.subject.name, tuple(step.move.name for step in found.run))
                verdict = verdict if found.is_sure else OPEN
        return WeakeningFinding(bug, verdict)

    def _is_the_same(self, bug: PlantedBug) -> bool:
        """Whether a weakened rule gives the same for all that it is given within the bounds."""
        try:
            with _limited(HANGS_S):
                return self._inputs[bug.function].are_alike(code_with(bug))
        except _TooLongError:
            return False

    def told_by(self, table: AnswerTable, code: CodeType) -> bool:
        """Whether a run of a subject tells the rule that is weakened now."""
        return self._tells(lambda: first_telling(self.runs[table.subject.name], code, table, NEWEST) is not None)

    def is_told_by(self, bug: PlantedBug, run: SelectedRun) -> bool:
        """Whether one run tells a weakened rule."""
        table = next(one for one in self.tables if one.subject is run.subject)
        with planted(bug):
            return self._tells(lambda: first_telling([run], self._codes[bug.function], table, NEWEST) is not None)

    def _tells(self, look: Callable[[], bool]) -> bool:
        try:
            with _limited(HANGS_S):
                return look()
        except _TooLongError:
            return True


def _is_in(module: str, rooms: Sequence[str]) -> bool:
    return not rooms or any(module == room or module.startswith(f"{room}.") for room in rooms)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
