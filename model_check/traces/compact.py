"""A run for people in as few lines as it takes: what each step changed, and which step violates what.

Brokers that say the same stand on one line, and a value before a step is left out where a line has no room for it.
`trace_table` has the same run in full.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Model, Party, State
from kspec.model_check.traces.render import (
    NOTHING,
    action_in_words,
    changes,
    field_name,
    kind_of,
    owner,
    party_name,
    slot_in_words,
    steps,
)
from kspec.model_check.traces.text import filled, row, width

INDENT = 7
"""Columns before a party."""


class _TraceRow(NamedTuple):
    """A line of the run: who, what, and its value, with the one before it if that is short."""

    party: Party
    field: str
    before: str
    after: str

    @property
    def title(self) -> str:
        """The name of what changed; a party's only value needs none."""
        return "" if self.field == self.party else self.field


class _Entry(NamedTuple):
    """A row, and all parties of which it is true."""

    parties: tuple[Party, ...]
    row: _TraceRow


def compact_run(model: Model, trace: Trace, violated: Sequence[str] = (), because: Sequence[str] = ()) -> str:
    """The run step by step. The last step is marked if it violates something; `because` says by what it does."""
    brokers = sorted({slot.broker for slot in model.slots if slot.broker is not None})
    steps_of = [(1, "initial state", _grouped(_initial(model, trace[0].state)))]
    for number, before, after in steps(trace):
        assert after.action is not None
        changed = [
            _TraceRow(owner(slot), field_name(slot), old, new)
            for slot, old, new in changes(model, before.state, after.state)
        ]
        steps_of.append((number, action_in_words(after.action), _grouped(changed)))
    names = {entry.parties: _name(entry.parties, brokers) for _, _, entries in steps_of for entry in entries}
    widths = (
        max(map(len, names.values()), default=0),
        max((len(entry.row.title) for _, _, said in steps_of for entry in said), default=0),
    )
    lines: list[str] = []
    for number, words, entries in steps_of:
        mark = ">>" if violated and number == len(trace) else "  "
        lines += filled(f"{mark} {number:>2}  {words}", " " * 9, "")
        lines += _lines(entries, names, widths)
    if violated:
        lines += filled(
            f"{', '.join(violated)} {'fails' if len(violated) == 1 else 'fail'} here", " " * INDENT, ">>".ljust(INDENT)
        )
        for reason in because:
            lines += filled(reason, " " * INDENT)
    return "\n".join(lines)


def _initial(model: Model, state: State) -> Iterator[_TraceRow]:
    for slot, value in zip(model.slots, state, strict=True):
        if not slot.bookkeeping and (words := slot_in_words(slot, value)) != NOTHING:
            yield _TraceRow(owner(slot), field_name(slot), "", words)


def _grouped(rows: Iterator[_TraceRow] | Sequence[_TraceRow]) -> list[_Entry]:
    """Rows that say the same of several parties as one, in the order of their first party."""
    same: dict[tuple[str, str, str], list[Party]] = {}
    entries = []
    for one in rows:
        if isinstance(one.party, int):
            same.setdefault(one[1:], []).append(one.party)
        else:
            entries.append(_Entry((one.party,), one))
    entries += [_Entry(tuple(parties), _TraceRow(parties[0], *said)) for said, parties in same.items()]
    return sorted(entries, key=lambda entry: (str(entry.parties[0]), entry.parties))


def _name(parties: tuple[Party, ...], brokers: list[int]) -> str:
    """`broker 2`, `brokers 1, 3`, `all brokers`, `controller`."""
    if len(parties) == 1:
        return party_name(parties[0])
    kind = kind_of(next(party for party in parties if isinstance(party, int)))
    if list(parties) == brokers:
        return f"all {kind}s"
    return f"{kind}s {', '.join(map(str, parties))}"


def _lines(entries: list[_Entry], names: Mapping[tuple[Party, ...], str], widths: tuple[int, int]) -> Iterator[str]:
    told = ""
    column, title = widths
    for parties, entry in entries:
        name = names[parties]
        start = f"{' ' * INDENT}{'' if name == told else name:<{column}}  {entry.title:<{title}}  "
        whole = f"{entry.before} -> {entry.after}"
        if not entry.before:
            text = entry.after
        elif len(start) + len(whole) <= width():
            text = whole
        else:
            text = f"-> {entry.after}"
        yield from row(start, text, len(start))
        told = name
