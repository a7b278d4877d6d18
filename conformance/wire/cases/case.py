"""A case: a chosen run with its name, its sentence, the rule that it tests, and the exchanges that make it up."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.plain_fields import with_plain_fields
from kspec.conformance.wire.cases.rules import Rule, deciding
from kspec.conformance.wire.choice.cover import SelectedRun, is_told
from kspec.conformance.wire.choice.graph import GraphStep
from kspec.conformance.wire.exchange import (
    ChecksummedBytes,
    DelayedAnswer,
    Exchange,
    HasRecords,
    Hole,
    NumberHole,
    RecordParts,
)
from kspec.conformance.wire.model.subject import Subject
from kspec.impl.wire.requests import CLIENT_ID
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.mutation import Mutant, weaken
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.names import RELEASES


class Case(NamedTuple):
    """One case of the suite.

    `goals` are the kinds of answer, or the boundary of a rule, that it is there for, `setup` what it needs first. `since` is
    the first release of Kafka from which on all give these answers by the rules of `spec`; none where releases do not differ
    in a rule. `mutants` are the weakened rules that it catches.
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


def client_id_of(name: str) -> bytes:
    """The client id of a case's requests, so that a broker's own log names the case, too."""
    return CLIENT_ID + b"/" + name.encode()


def name_of(subject: Subject, step: GraphStep) -> str:
    """The name of a case, which stays the same while the last request and its kind of answer do."""
    outcome = re.sub(r"[^a-z0-9]+", "-", step.exchange.outcome.lower()).strip("-")
    return f"{subject.name}/{step.move.name}/{outcome}"


def case_of(chosen: SelectedRun, protocol: BrokerProtocol, mutants: Sequence[Mutant], name: str) -> Case:
    """A chosen run as a case; `protocol` is that of the release whose answers are expected."""
    subject, last = chosen.subject, chosen.run[-1]
    client_id = client_id_of(name)
    steps = [step.exchange._replace(words=step.move.words) for step in chosen.run]
    steps += [step.exchange._replace(words=step.move.words, optional=True) for step in chosen.looks]
    number = len(chosen.run)
    steps = [with_plain_fields(one, client_id, place == number) for place, one in enumerate(steps, 1)]
    holes = frozenset(hole.name for exchange in steps for hole in holes_in(exchange))
    told = [
        mutant.name for mutant in mutants if subject.by_release and is_told(subject, chosen.steps, weaken(protocol, mutant))
    ]
    return Case(
        name,
        title_of(chosen),
        subject.name,
        (*chosen.goals, *([f"boundary of {chosen.boundary}"] if chosen.boundary else [])),
        deciding(last, protocol),
        last.move.promise,
        _first_of(chosen),
        tuple(told),
        subject.setup(last.state, holes),
        tuple(steps),
    )


def title_of(chosen: SelectedRun) -> str:
    """A run as a sentence."""
    told = ", then ".join(step.move.words for step in chosen.run)
    return f"{told[0].upper()}{told[1:]}: {chosen.run[-1].exchange.outcome}."


def _first_of(chosen: SelectedRun) -> str | None:
    """The first release from which on all give these answers: where that was measured, and by their rules."""
    found = [_measured(chosen), _since(chosen) if chosen.subject.by_release else None]
    return max((one for one in found if one is not None), key=RELEASES.index, default=None)


def _measured(chosen: SelectedRun) -> str | None:
    """The first release that gives all of these answers, where that was measured."""
    found = [step.exchange.since for step in chosen.run if step.exchange.since is not None]
    return max(found, key=RELEASES.index, default=None)


def _since(chosen: SelectedRun) -> str:
    """The first release from which on all give the same answers."""
    holds = ""
    for release in reversed(BROKER_RELEASES[:-1]):
        if is_told(chosen.subject, chosen.run, release):
            break
        holds = release.name
    return holds


def cases_of(runs: Sequence[SelectedRun], protocol: BrokerProtocol, mutants: Sequence[Mutant]) -> list[Case]:
    """All cases."""
    return [case_of(chosen, protocol, mutants, name) for name, chosen in named(runs)]


def named(runs: Sequence[SelectedRun]) -> Iterator[tuple[str, SelectedRun]]:
    """Runs with the names of their cases.

    Runs that end alike are there for different mutants, or boundaries, and are told apart by them.
    """
    known: set[str] = set()
    for chosen in runs:
        name = name_of(chosen.subject, chosen.run[-1])
        if chosen.boundary:
            name = f"{name}/{_words_of(chosen.boundary)}"
        elif name in known:
            name = f"{name}/{chosen.mutants[0]}"
        names = (name, *(f"{name}-{number}" for number in range(2, len(runs))))
        free = next(one for one in names if one not in known)
        known.add(free)
        yield free, chosen


def _words_of(rule: str) -> str:
    """A rule's name as a part of a case's name."""
    return re.sub(r"[^a-z0-9]+", "-", rule.rpartition(":")[2].lower()).strip("-")


def holes_in(value: Any) -> Iterator[Hole]:
    """The holes in what a client sends, and in what is expected."""
    if isinstance(value, Hole):
        yield value
    elif isinstance(value, str):
        yield from map(Hole, re.findall(r"=@([A-Za-z_0-9]+)\]", value))
    elif isinstance(value, Exchange):
        yield from holes_in((value.request.fields, value.constraints, value.awaited))
    elif isinstance(value, (DelayedAnswer, RecordParts, ChecksummedBytes, NumberHole, HasRecords, tuple, list)):
        for one in value:
            yield from holes_in(one)
    elif isinstance(value, dict):
        yield from holes_in(list(value.values()))
