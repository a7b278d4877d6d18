"""A case: a chosen run with its name, its sentence, the rule that it tests, and the exchanges that make it up."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from conformance.wire.cases.rules import Rule, deciding
from conformance.wire.choice.cover import Chosen, is_told
from conformance.wire.choice.graph import Step
from conformance.wire.exchange import Awaited, Checked, Exchange, Fixed, HasRecords, Hole, Records
from conformance.wire.model.subject import Subject
from spec.broker.protocol import BrokerProtocol
from spec.mutation import Mutant, weaken
from spec.releases.broker import BROKER_RELEASES
from spec.releases.names import RELEASES


class Case(NamedTuple):
    """One case of the suite.

    `goals` are the kinds of answer that it is there for, `setup` what it needs first. `since` is the first release of Kafka
    from which on all give these answers by the rules of `spec`; none where releases do not differ in a rule. `mutants` are
    the weakened rules that it catches.
    """

    name: str
    title: str
    subject: str
    goals: tuple[str, ...]
    rule: Rule
    promise: str
    since: str | None
    mutants: tuple[str, ...]
    setup: tuple[Exchange, ...]
    steps: tuple[Exchange, ...]


def name_of(subject: Subject, step: Step) -> str:
    """The name of a case, which stays the same while the last request and its kind of answer do."""
    outcome = re.sub(r"[^a-z0-9]+", "-", step.exchange.outcome.lower()).strip("-")
    return f"{subject.name}/{step.move.name}/{outcome}"


def case_of(chosen: Chosen, protocol: BrokerProtocol, mutants: Sequence[Mutant], name: str) -> Case:
    """A chosen run as a case; `protocol` is that of the release whose answers are expected."""
    subject, last = chosen.subject, chosen.run[-1]
    steps = [step.exchange._replace(words=step.move.words) for step in chosen.run]
    steps += _look(chosen, protocol)
    holes = frozenset(hole.name for exchange in steps for hole in holes_in(exchange))
    told = [
        mutant.name for mutant in mutants if subject.by_release and is_told(subject, chosen.run, weaken(protocol, mutant))
    ]
    return Case(
        name,
        title_of(chosen),
        subject.name,
        chosen.goals,
        deciding(last, protocol),
        last.move.promise,
        _measured(chosen) or (_since(chosen) if subject.by_release else None),
        tuple(told),
        subject.setup(last.state, holes),
        tuple(steps),
    )


def _look(chosen: Chosen, protocol: BrokerProtocol) -> list[Exchange]:
    """What a run has left behind, looked at if its last request is not such a look already."""
    look, last = chosen.subject.look, chosen.run[-1]
    after = last.move.take(protocol, last.state)
    if look is None or last.move.name == look.name or after is None:
        return []
    taken = look.take(protocol, after.state)
    return [] if taken is None else [taken.exchange._replace(words=look.words, optional=True)]


def title_of(chosen: Chosen) -> str:
    """A run as a sentence."""
    told = ", then ".join(step.move.words for step in chosen.run)
    return f"{told[0].upper()}{told[1:]}: {chosen.run[-1].exchange.outcome}."


def _measured(chosen: Chosen) -> str | None:
    """The first release that gives all of these answers, where that was measured."""
    found = [step.exchange.since for step in chosen.run if step.exchange.since is not None]
    return max(found, key=RELEASES.index, default=None)


def _since(chosen: Chosen) -> str:
    """The first release from which on all give the same answers."""
    holds = ""
    for release in reversed(BROKER_RELEASES[:-1]):
        if is_told(chosen.subject, chosen.run, release):
            break
        holds = release.name
    return holds


def cases_of(runs: Sequence[Chosen], protocol: BrokerProtocol, mutants: Sequence[Mutant]) -> list[Case]:
    """All cases. Two runs that end alike are there for different mutants, and are told apart by them."""
    cases: list[Case] = []
    for chosen in runs:
        name = name_of(chosen.subject, chosen.run[-1])
        known = {case.name for case in cases}
        cases.append(case_of(chosen, protocol, mutants, f"{name}/{chosen.mutants[0]}" if name in known else name))
    return cases


def holes_in(value: Any) -> Iterator[Hole]:
    """The holes in what a client sends, and in what is expected."""
    if isinstance(value, Hole):
        yield value
    elif isinstance(value, Exchange):
        yield from holes_in((value.request.fields, value.constraints, value.awaited))
    elif isinstance(value, (Awaited, Records, Checked, Fixed, HasRecords, tuple, list)):
        for one in value:
            yield from holes_in(one)
    elif isinstance(value, dict):
        yield from holes_in(list(value.values()))
