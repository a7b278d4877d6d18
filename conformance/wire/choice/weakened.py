"""Weakened checks: each check of `spec` that may refuse, turned into one that never does.

The mutants of a release weaken rules in which releases differ. Checks that all releases have are weakened here: they are
found by their type, and none is listed by hand.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from conformance.wire.choice.cover import Chosen, is_told, rules_asked
from conformance.wire.model.subject import Subject
from spec.broker.protocol import BrokerProtocol
from spec.mutation import Mutant, names_of_rules, weaken
from spec.values import Error

Check = Callable[..., Any]


def never(*given: Any, **named: Any) -> Error:
    """A check that refuses nothing."""
    return Error.NONE


def checks() -> dict[str, Check]:
    """The public functions of `spec` that answer an error, by module and name, as far as their modules are loaded."""
    found: dict[str, Check] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("spec."):
            found |= {f"{name}:{one.__name__}": one for one in _own_functions(module) if _answers_error(one)}
    return found


def _own_functions(module: ModuleType) -> list[Check]:
    own = [one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__]
    return [one for one in own if not one.__name__.startswith("_")]


def _answers_error(function: Check) -> bool:
    return bool(inspect.signature(function).return_annotation is Error)


@contextmanager
def weakened(check: Check) -> Iterator[None]:
    """While the block runs, whoever calls the check is not refused. A release's record of rules keeps its own."""
    places = [
        (module, name)
        for module_name, module in list(sys.modules.items())
        if module_name.startswith(("spec.", "impl.", "conformance.wire."))
        for name, value in list(vars(module).items())
        if value is check
    ]
    try:
        for module, name in places:
            setattr(module, name, never)
        yield
    finally:
        for module, name in places:
            setattr(module, name, check)


def checks_asked(chosen: Sequence[Chosen], protocol: BrokerProtocol) -> dict[str, Check]:
    """The checks that some run asks, and that no release's record of rules holds: mutants weaken those."""
    asked: set[CodeType] = set()

    def note(frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            asked.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for one in chosen:
            is_told(one.subject, one.run, protocol)
    finally:
        sys.setprofile(before)
    own = [getattr(protocol, name) for name in names_of_rules(protocol)]
    return {name: check for name, check in checks().items() if check.__code__ in asked and check not in own}


def checks_told(chosen: Sequence[Chosen], protocol: BrokerProtocol) -> dict[str, list[Chosen]]:
    """Which of the runs are answered otherwise without which of the checks that they ask."""
    found: dict[str, list[Chosen]] = {}
    for name, check in checks_asked(chosen, protocol).items():
        with weakened(check):
            found[name] = [one for one in chosen if _is_told(one, protocol)]
    return found


class Score(NamedTuple):
    """A weakening, the runs that tell it, and if there are none the reason."""

    name: str
    told: tuple[Chosen, ...]
    reason: str


NOT_ASKED = "a broker that is alone never asks this rule"
SAME_ANSWERS = "a broker that is alone answers every request of the models as before"


def scores(
    subjects: Sequence[Subject], chosen: Sequence[Chosen], protocol: BrokerProtocol, mutants: Sequence[Mutant]
) -> list[Score]:
    """What the runs tell of each mutant of a release's rules, and of each weakened check."""
    by_release = [one for one in chosen if one.subject.by_release]
    asked = frozenset(rule for one in subjects if one.by_release for rule in rules_asked(one, protocol))
    found = []
    for mutant in mutants:
        weaker = weaken(protocol, mutant)
        told = tuple(one for one in by_release if mutant.field in asked and is_told(one.subject, one.run, weaker))
        reason = "" if told else SAME_ANSWERS if mutant.field in asked else NOT_ASKED
        found.append(Score(mutant.name, told, reason))
    for name, runs in checks_told(chosen, protocol).items():
        found.append(Score(name, tuple(runs), "" if runs else SAME_ANSWERS))
    return found


def _is_told(chosen: Chosen, protocol: BrokerProtocol) -> bool:
    """Whether a run is answered otherwise; a rule that cannot go on without the check counts as that, too."""
    try:
        return is_told(chosen.subject, chosen.run, protocol)
    except (AssertionError, LookupError, ValueError):
        return True
