"""Weakened checks: each check of `spec` that may refuse, turned into one that never does.

The mutants of a release weaken rules in which releases differ. Checks that all releases have are weakened here: they are
found by their type, and none is listed by hand.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from kspec.conformance.wire.choice.calls import called_functions
from kspec.conformance.wire.choice.cover import SelectedRun, is_told
from kspec.conformance.wire.choice.graph import summary_of
from kspec.conformance.wire.model.subject import Subject
from kspec.spec.broker.clients.session_protocol import SessionProtocol
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.mutation import Mutant, names_of_rules, weaken
from kspec.spec.values import Error

Check = Callable[..., Any]


def never(*given: Any, **named: Any) -> Error:
    """A check that refuses nothing."""
    return Error.NONE


def checks() -> dict[str, Check]:
    """The public functions of `spec` that answer an error, by module and name, as far as their modules are loaded."""
    found: dict[str, Check] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("kspec.spec."):
            found |= {
                f"{name.removeprefix('kspec.')}:{one.__name__}": one for one in _own_functions(module) if _answers_error(one)
            }
    return found


def _own_functions(module: ModuleType) -> list[Check]:
    own = [one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__]
    return [one for one in own if not one.__name__.startswith("_")]


def _answers_error(function: Check) -> bool:
    return bool(inspect.signature(function).return_annotation is Error)


@contextmanager
def weakened(check: Check) -> Iterator[None]:
    """While the block runs, whoever calls the check is not refused. A release's record of a broker's rules keeps its own; a
    record of fetch sessions does not.
    """
    rooms = ("kspec.spec.", "kspec.impl.", "kspec.conformance.wire.")
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(rooms)]
    places = [(module, name) for module in modules for name, value in list(vars(module).items()) if value is check]
    records = {
        id(value): value for module in modules for value in vars(module).values() if isinstance(value, SessionProtocol)
    }
    held = [
        (record, name) for record in records.values() for name in names_of_rules(record) if getattr(record, name) is check
    ]
    try:
        _put(places, held, never)
        yield
    finally:
        _put(places, held, check)


def _put(places: list[tuple[ModuleType, str]], held: list[tuple[SessionProtocol, str]], check: Check) -> None:
    for module, name in places:
        setattr(module, name, check)
    for record, name in held:
        object.__setattr__(record, name, check)  # it is frozen for everybody else


def checks_asked(chosen: Sequence[SelectedRun], protocol: BrokerProtocol) -> dict[str, Check]:
    """The checks that some run asks, and that no release's record of rules holds: mutants weaken those."""
    with called_functions() as asked:
        for one in chosen:
            is_told(one.subject, one.steps, protocol)
    own = [getattr(protocol, name) for name in names_of_rules(protocol)]
    return {name: check for name, check in checks().items() if check.__code__ in asked and check not in own}


def checks_told(chosen: Sequence[SelectedRun], protocol: BrokerProtocol) -> dict[str, list[SelectedRun]]:
    """The checks that each run asks and without which it is answered otherwise."""
    found: dict[str, list[SelectedRun]] = {}
    for name, check in checks_asked(chosen, protocol).items():
        with weakened(check):
            found[name] = [one for one in chosen if _is_told(one, protocol)]
    return found


class RuleScore(NamedTuple):
    """A weakening, the runs that tell it, and if there are none the reason."""

    name: str
    told: tuple[SelectedRun, ...]
    reason: str


NOT_ASKED = "a broker that is alone never asks this rule"
SAME_ANSWERS = "a broker that is alone answers every request of the models as before"


def scores(
    subjects: Sequence[Subject], chosen: Sequence[SelectedRun], protocol: BrokerProtocol, mutants: Sequence[Mutant]
) -> list[RuleScore]:
    """Scores of the runs for each mutant of a release's rules, and for each weakened check."""
    by_release = [one for one in chosen if one.subject.by_release]
    asked = frozenset(rule for one in subjects if one.by_release for rule in summary_of(one, protocol).rules_asked)
    found = []
    for mutant in mutants:
        weaker = weaken(protocol, mutant)
        told = tuple(one for one in by_release if mutant.field in asked and is_told(one.subject, one.steps, weaker))
        reason = "" if told else SAME_ANSWERS if mutant.field in asked else NOT_ASKED
        found.append(RuleScore(mutant.name, told, reason))
    for name, runs in checks_told(chosen, protocol).items():
        found.append(RuleScore(name, tuple(runs), "" if runs else SAME_ANSWERS))
    return found


def _is_told(chosen: SelectedRun, protocol: BrokerProtocol) -> bool:
    """Whether a run is answered otherwise; a rule that cannot go on without the check counts as that, too."""
    try:
        return is_told(chosen.subject, chosen.steps, protocol)
    except (AssertionError, LookupError, ValueError):
        return True
