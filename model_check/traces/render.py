"""Traces for people, as plain text: a table of what each step changed, and a sequence diagram."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import (
    CONTROLLER,
    COORDINATOR,
    PRODUCER,
    Action,
    Arrow,
    Client,
    Event,
    Model,
    ModelError,
    Note,
    Party,
    Slot,
    State,
)
from kspec.model_check.traces.encode import in_words
from kspec.model_check.traces.text import filled, row

NOTHING = "none"
"""The result of `in_words` for a slot that holds nothing."""


class SlotChange(NamedTuple):
    """A slot that a step changed, with its values in words."""

    slot: Slot
    before: str
    after: str


def changes(model: Model, before: State, after: State) -> list[SlotChange]:
    """The differences between two states in words, without the model's bookkeeping."""
    changed = [
        SlotChange(slot, slot_in_words(slot, old), slot_in_words(slot, new))
        for slot, old, new in zip(model.slots, before, after, strict=True)
        if old != new and not slot.bookkeeping
    ]
    return [change for change in changed if change.before != change.after]


def slot_in_words(slot: Slot, value: Any) -> str:
    """A value of a slot as a reader of traces sees it."""
    if slot.words is None:
        return in_words(value)
    said = slot.words(value)
    if not isinstance(said, str):
        raise ModelError(f"slot {slot.label}: its words for {value!r} are a {type(said).__qualname__}, and no text")
    return said


def field_name(slot: Slot) -> str:
    """A slot's name as words: `highWatermark` becomes `high watermark`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", slot.name).replace("_", " ").lower()


def kind_of(party: int) -> str:
    """The kind of a numbered party: `broker`, or a client's, as `consumer`."""
    return party.kind if isinstance(party, Client) else "broker"


def party_name(party: Party) -> str:
    """`broker 2`, `consumer 2`, `controller`, `producer`."""
    return f"{kind_of(party)} {party}" if isinstance(party, int) else party


def up_to_renaming(model: Model) -> str:
    """`up to renaming of brokers`, or of whoever is interchangeable in the model."""
    return f"up to renaming of {kind_of(next(iter(model.interchangeable), 0))}s"


def action_in_words(action: Action) -> str:
    """`FollowerFetch`, with its arguments: `FollowerFetch  leader 1, follower 2`."""
    arguments = ", ".join(
        f"{name} {'{' + ', '.join(map(str, value)) + '}' if isinstance(value, tuple) else value}"
        for name, value in action.args.items()
    )
    return f"{action.name}  {arguments}".rstrip()


def owner(slot: Slot) -> Party:
    """The party in whose column a slot is shown."""
    return slot.party if slot.broker is None else slot.broker


def steps(trace: Trace) -> Iterator[tuple[int, TraceStep, TraceStep]]:
    """Each step of a trace with the one before it. Numbers are those of states, as TLC has them: the initial one is 1."""
    for number, (before, after) in enumerate(pairwise(trace), start=2):
        yield number, before, after


def length_in_words(trace: Trace) -> str:
    """The length of a run: `11 steps`. Every report says it so; see docs/GLOSSARY.md."""
    return f"{len(trace) - 1} step{'' if len(trace) == 2 else 's'}"


def trace_table(model: Model, trace: Trace, full: bool = False, fit: bool = False) -> str:
    """A trace step by step: the action, and what it changed at which party; with `full`, every slot after each step.

    The initial state and the last one are always shown whole. With `fit`, lines are as long as the terminal is wide.
    """
    lines = ["1  initial state", *state_in_lines(model, trace[0].state, fit)]
    for number, before, after in steps(trace):
        assert after.action is not None
        action = f"{number}  {action_in_words(after.action)}"
        lines += filled(action, " " * 5, "") if fit else [action]
        lines += step_in_lines(model, before.state, after.state, full, fit)
    if len(trace) > 1 and not full:
        lines += ["   in the end", *state_in_lines(model, trace[-1].state, fit)]
    return "\n".join(lines)


def step_in_lines(model: Model, before: State, after: State, full: bool = False, fit: bool = False) -> list[str]:
    """The changes of a step at each party, or the whole state after it."""
    if full:
        return state_in_lines(model, after, fit)
    rows = [
        (party_name(owner(slot)), field_name(slot), f"{old} -> {new}") for slot, old, new in changes(model, before, after)
    ]
    return _aligned(rows, fit)


def state_in_lines(model: Model, state: State, fit: bool = False) -> list[str]:
    """The slots of each party in a state; slots that hold nothing are left out."""
    rows = [
        (party_name(owner(slot)), field_name(slot), words)
        for slot, value in zip(model.slots, state, strict=True)
        if not slot.bookkeeping and (words := slot_in_words(slot, value)) != NOTHING
    ]
    return _aligned(sorted(rows, key=lambda row: row[0]), fit)


def _aligned(rows: list[tuple[str, str, str]], fit: bool) -> list[str]:
    if not fit:
        return [f"     {party:<11} {name:<15} {text}" for party, name, text in rows]
    return [line for party, name, text in rows for line in row(f"     {party:<11} {name:<15}", text, 33)]


Remarks = Callable[[Model, State, State], Iterable[Note]]
"""Notes on what became of records in a step. Rooms that know the types of records make them; traces know no type."""


def told_with_remarks(model: Model, before: TraceStep, after: TraceStep, remarks: Remarks | None) -> Iterator[Event]:
    """The events of one step as `told` has them, then its remarks; what clients know is told by these alone."""
    added = list(remarks(model, before.state, after.state)) if remarks else []
    is_remarked = any(note.party == PRODUCER for note in added)
    for event in told(model, before, after):
        if not (is_remarked and isinstance(event, Note) and event.party == PRODUCER):
            yield event
    yield from added


def first_failures(model: Model, trace: Trace, names: Sequence[str]) -> dict[int, list[str]]:
    """The states of a trace, by number, in which one of these invariants fails first."""
    found: dict[int, list[str]] = {}
    for prop in model.properties:
        if prop.name in names and prop.kind == "always":
            holds = prop.bind()
            number = next((number for number, step in enumerate(trace, 1) if not holds(step.state)), None)
            if number is not None:
                found.setdefault(number, []).append(prop.name)
    return found


def parties(model: Model, trace: Trace) -> list[Party]:
    """The parties in a trace's diagram, in the order of its columns: producer, controller, brokers by id."""
    seen = {owner(slot) for slot in model.slots if not slot.bookkeeping}
    for step in trace:
        for event in step.action.events if step.action else ():
            seen |= {event.source, event.target} if isinstance(event, Arrow) else {event.party}
    return [party for party in (PRODUCER, CONTROLLER, COORDINATOR) if party in seen] + sorted(
        party for party in seen if isinstance(party, int)
    )


def told(model: Model, before: TraceStep, after: TraceStep) -> Iterator[Event]:
    """The events of one step of a trace, then a note at each party of what changed there."""
    assert after.action is not None
    for event in after.action.events:
        if isinstance(event, Arrow) and _is_silent(model, event.source, before, after):
            yield Note(event.target, f"gets from {party_name(event.source)}, which is down by now: {event.text}")
        else:
            yield event
    noted: dict[Party, list[str]] = {}
    for slot, _, new in changes(model, before.state, after.state):
        title = "" if slot.name == owner(slot) else f"{field_name(slot)}: "
        noted.setdefault(owner(slot), []).append(f"{title}{new}")
    for party, texts in noted.items():
        yield Note(party, "; ".join(texts))


def _is_silent(model: Model, party: Party, before: TraceStep, after: TraceStep) -> bool:
    """Whether a party sends nothing, neither before a step nor after it."""
    silent = model.silent.get(party)
    return silent is not None and all(silent.bind()(step.state) for step in (before, after))


def sequence_text(model: Model, trace: Trace, remarks: Remarks | None = None, asked: Sequence[str] = ()) -> str:
    """A trace as a sequence diagram in plain text. The step after which an invariant that is `asked` fails is marked."""
    columns = parties(model, trace)
    width = 22
    middle = {party: 4 + width // 2 + index * width for index, party in enumerate(columns)}
    end = 4 + width * len(columns)

    def lifelines() -> list[str]:
        line = [" "] * end
        for position in middle.values():
            line[position] = "|"
        return line

    def put(line: list[str], start: int, text: str) -> str:
        line[start : start + len(text)] = text
        return "".join(line).rstrip()

    def arrow(event: Arrow) -> Iterator[str]:
        left, right = sorted((middle[event.source], middle[event.target]))
        yield put(lifelines(), left + 2, f"{event.text} ")
        line = lifelines()
        line[left + 1 : right] = "-" * (right - left - 1)
        at = right - 1 if middle[event.target] == right else left + 1
        line[at] = ">" if at == right - 1 else "<"
        yield "".join(line).rstrip()

    header = [" "] * end
    lines = [put(header, 0, "")]
    for party in columns:
        name = party_name(party)
        lines[0] = put(header, middle[party] - len(name) // 2, name)
    failures = first_failures(model, trace, asked)
    for number, before, after in steps(trace):
        lines.append("".join(lifelines()).rstrip())
        for index, event in enumerate(told_with_remarks(model, before, after, remarks)):
            drawn = (
                list(arrow(event))
                if isinstance(event, Arrow)
                else [put(lifelines(), middle[event.party], f"* {event.text} ")]
            )
            if index == 0:
                drawn[0] = f"{number:>2}" + drawn[0][2:]
            lines += drawn
        if number in failures:
            lines.append(f">>  {' and '.join(failures[number])} fails here")
    return "\n".join(lines)
