"""Every property along a run: where it fails, with a witness, and what has not been reached yet."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Any

from kspec.model_check.core.model import Local, Model, Property, State
from kspec.model_check.explorer.moves import StateValues, local_as_json
from kspec.model_check.explorer.sources import label_of
from kspec.model_check.models.kafka.values import ClientKnowledge, PlacedRecord
from kspec.model_check.models.published.board import AcknowledgedRecord
from kspec.model_check.traces.encode import in_words
from kspec.model_check.traces.render import field_name, party_name
from kspec.spec.log.local_log import LocalLog
from kspec.spec.values import Offset, Record

WITNESSES = 3
"""Failing terms that are told of one property: other replicas fail it in the same way."""


class PropertyWatch:
    """The verdicts of a model's properties along a run; a state is asked once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._holds = [prop.bind() for prop in model.properties]
        self._known: dict[State, tuple[bool, ...]] = {}

    def at(self, state: State) -> tuple[bool, ...]:
        """Whether each property holds in a state; for a `sometimes`, whether it claims this state possible."""
        if state not in self._known:
            self._known[state] = tuple(holds(state) for holds in self._holds)
        return self._known[state]

    def violated_at(self, state: State) -> list[str]:
        """The names of the `always` that fail in a state."""
        verdicts = zip(self.model.properties, self.at(state), strict=True)
        return [prop.name for prop, holds in verdicts if prop.kind == "always" and not holds]

    def as_json(self, states: Sequence[State]) -> list[dict[str, Any]]:
        """Each property at the last of these states, which are a run from the initial state; that is state 1."""
        verdicts = [self.at(state) for state in states]
        return [self._told(number, prop, states[-1], verdicts) for number, prop in enumerate(self.model.properties)]

    def _told(self, number: int, prop: Property, state: State, verdicts: Sequence[tuple[bool, ...]]) -> dict[str, Any]:
        told: dict[str, Any] = {"property": prop.name, "kind": prop.kind, "meaning": prop.meaning, "asked": prop.by_default}
        along = [verdict[number] for verdict in verdicts]
        told["along"] = "".join("1" if verdict else "0" for verdict in along)
        if prop.kind == "sometimes":
            first = along.index(True) + 1 if True in along else None
            return {**told, "verdict": "not yet reached" if first is None else "reached", "first_at": first}
        twin = next((place for place, other in enumerate(self.model.properties) if other.name == prop.twin), None)
        met = twin is None or any(verdict[twin] for verdict in verdicts)
        told["premise"] = {"property": prop.twin, "met": met}
        told["verdict"] = "holds" if along[-1] else "violated"
        told["first_at"] = along.index(False) + 1 if False in along else None
        if not along[-1]:
            told["witness"] = [witness(term, state) for term in failing_terms(prop, state)]
        return told


def failing_terms(prop: Property, state: State) -> list[Local]:
    """The first terms of an `always` that fail in a state."""
    found: list[Local] = []
    for term in prop.terms:
        if len(found) < WITNESSES and not term.bind()(state):
            found.append(term)
    return found


def witness(term: Local, state: State) -> dict[str, Any]:
    """A term that fails: what it says and reads, its replicas, and the first record in which their logs differ."""
    values = StateValues(state).of(term)
    told = local_as_json(term, values)
    told["replicas"] = sorted({slot.broker for slot in term.slots if slot.broker is not None})
    told["records"] = list(_differing_records(term, values))
    return told


def reasons(model: Model, names: Collection[str], state: State) -> list[str]:
    """The records by which these properties fail in a state: `offset 0: m0(e0) in log of broker 1, nothing in …`."""
    slots = {
        slot.label: f"{field_name(slot)} of {party_name(slot.broker)}" for slot in model.slots if slot.broker is not None
    }
    told: dict[str, None] = {}
    for prop in model.properties:
        for term in failing_terms(prop, state) if prop.name in names and prop.kind == "always" else ():
            for found in _differing_records(term, StateValues(state).of(term)):
                held = (
                    f"{words or 'nothing'} in {slots.get(label) or re.sub(r'[][]', ' ', label).strip()}"
                    for label, words in found["held"].items()
                )
                told[f"offset {found['offset']}: {', '.join(held)}"] = None
    return list(told)[:WITNESSES]


def _differing_records(term: Local, values: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """For each two logs that a term reads, the first offset in which they differ; acknowledged records that a log lacks."""
    logs: dict[str, tuple[int, tuple[Record, ...]]] = {}
    promises: dict[str, list[tuple[Offset, Record]]] = {}
    for read, value in zip(term.reads, values, strict=True):
        name = label_of(read)
        records = records_of(value)
        if records is not None:
            logs[name] = records
        if placed := _placed_in(value):
            promises[name] = placed
    for (one, mine), (other, theirs) in combinations(logs.items(), 2):
        for offset in range(max(mine[0], theirs[0]), max(_end(mine), _end(theirs))):
            here, there = _record_at(mine, offset), _record_at(theirs, offset)
            if here != there:
                yield {"offset": offset, "held": {one: here and in_words(here), other: there and in_words(there)}}
                break
    for name, placed in promises.items():
        for log, held in logs.items():
            for offset, record in placed:
                found = _record_at(held, offset)
                if found != record:
                    yield {"offset": offset, "held": {name: in_words(record), log: found and in_words(found)}}


def _placed_in(value: Any) -> list[tuple[Offset, Record]]:
    """The records with their offsets that clients know of, if a value is that."""
    placed = value.told | value.read if isinstance(value, ClientKnowledge) else value
    if not isinstance(placed, frozenset) or not all(isinstance(one, PlacedRecord | AcknowledgedRecord) for one in placed):
        return []
    return sorted((one.offset, one.record) for one in placed)


def _end(log: tuple[int, tuple[Record, ...]]) -> int:
    return log[0] + len(log[1])


def _record_at(log: tuple[int, tuple[Record, ...]], offset: int) -> Record | None:
    return log[1][offset - log[0]] if log[0] <= offset < _end(log) else None


def records_of(value: Any) -> tuple[int, tuple[Record, ...]] | None:
    """The start and the records of a log, if a value is one or has one; without a start it begins at offset 0."""
    log = value
    for field in ("replica", "local", "log"):
        log = getattr(log, field, log)
    log = log.log if isinstance(log, LocalLog) else log
    records = getattr(log, "records", None)
    if not isinstance(records, tuple) or not all(isinstance(record, Record) for record in records):
        return None
    return int(getattr(log, "start_offset", 0)), records
