"""Milestones of records in a step: one became committed, was acknowledged or read, or was removed after its commit."""

from collections.abc import Iterator, Mapping
from typing import Any

from kspec.model_check.core.model import PRODUCER, Model, Note, Party, State
from kspec.model_check.explorer.drawing import known_to_clients, log_as_json
from kspec.model_check.traces.render import party_name

RecordAt = tuple[int, str]
"""A record in words at its offset."""


def marks_of(model: Model, before: State, after: State) -> list[dict[str, Any]]:
    """The milestones that a step brings, each with the party at which it happens.

    A record is committed when the first high watermark passes it. It is lost when a replica that had it, and that is
    not behind, removes it after its commit.
    """
    old, new = (_values(model, state) for state in (before, after))
    brokers = sorted({slot.broker for slot in model.slots if slot.broker is not None})
    was, now = _committed(brokers, old), _committed(brokers, new)
    found = [_mark("committed", broker, place) for place, broker in sorted(now.items()) if place not in was]
    for broker in brokers:
        gone = set(_records(broker, old)) - set(_records(broker, new))
        found += [_mark("lost", broker, place) for place in sorted(gone & set(was))]
    for kind, earlier, later in zip(("acknowledged", "read"), known_to_clients(old), known_to_clients(new), strict=True):
        fresh = {(one["offset"], one["words"]) for one in later or ()} - {
            (one["offset"], one["words"]) for one in earlier or ()
        }
        found += [_mark(kind, PRODUCER, place) for place in sorted(fresh)]
    return found


SIGNS = {"committed": "▣", "acknowledged": "✓", "read": "◉", "lost": "✕"}
"""The sign of each milestone, as the page has them."""


def remarks_of(model: Model, before: State, after: State) -> Iterator[Note]:
    """The milestones of a step as notes of a diagram, each at its party."""
    parties: dict[str, Party] = {party_name(slot.broker): slot.broker for slot in model.slots if slot.broker is not None}
    for mark in marks_of(model, before, after):
        party = parties.get(mark["party"], PRODUCER)
        yield Note(party, f"{SIGNS[mark['kind']]} {mark['words']} at offset {mark['offset']}: {mark['kind']}")


def _values(model: Model, state: State) -> dict[str, Any]:
    return {slot.label: value for slot, value in zip(model.slots, state, strict=True)}


def _records(broker: int, values: Mapping[str, Any], below: bool = False) -> Iterator[RecordAt]:
    log = log_as_json(broker, values)
    for record in (log and log["records"]) or ():
        if not below or record["below_high_watermark"]:
            yield record["offset"], record["words"]


def _committed(brokers: list[int], values: Mapping[str, Any]) -> dict[RecordAt, int]:
    """The committed records, each with the first broker that knows of its commit."""
    found: dict[RecordAt, int] = {}
    for broker in brokers:
        for place in _records(broker, values, below=True):
            found.setdefault(place, broker)
    return found


def _mark(kind: str, party: int | str, place: RecordAt) -> dict[str, Any]:
    offset, words = place
    return {"kind": kind, "party": party_name(party), "offset": offset, "words": words}
