"""A run that no model has, as views: what parties sent, did and showed. A page steps through it as through a recording.

It has no moves, and no other step can be taken: a simulated cluster, or a case that was run against a broker.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from kspec.model_check.core.model import CONTROLLER
from kspec.model_check.version import VERSION

FORMAT = 1
"""The number of the form that a recording has."""

IN_A_FILE = "file"
"""The name that stands for a model in the address of such a run."""

NOBODY: Mapping[str, Any] = {
    "is": "none",
    "leader": None,
    "leader_epoch": None,
    "epoch_start": None,
    "isr": None,
    "pending_isr": None,
}


class ToldStep(NamedTuple):
    """A step: the action, what it says besides, the party that takes it, its arrows and notes, and the state after it.

    `fails`: claims that do not hold after it, each with what was seen. `rules` as a view has them.
    """

    action: str
    words: str
    party: str
    events: Sequence[Mapping[str, str]]
    state: Mapping[str, Any]
    fails: Mapping[str, str] = {}
    rules: Sequence[Mapping[str, Any]] = ()
    marks: Sequence[Mapping[str, Any]] = ()


class ToldRun(NamedTuple):
    """A run: its name for addresses, a title, words about it, the first state, its steps, and what each claim means."""

    name: str
    title: str
    words: str
    initial: Mapping[str, Any]
    steps: Sequence[ToldStep]
    claims: Mapping[str, str]


def as_recording(run: ToldRun) -> dict[str, Any]:
    """The run as a recording, which docs/explorer.md has."""
    steps = [_step(number, one) for number, one in enumerate(run.steps, start=2)]
    failing: list[Mapping[str, str]] = [{}, *(one.fails for one in run.steps)]
    states = [run.initial, *(one.state for one in run.steps)]
    views = []
    for position, state in enumerate(states, start=1):
        last = None
        if position > 1:
            doing = run.steps[position - 2]
            last = {**steps[position - 2], "changes": _changes(states[position - 2], state), "rules": list(doing.rules)}
        views.append(
            {
                "answer": "view",
                "run": {"model": run.title, "version": VERSION, "parameters": {}, "words": run.words, "told": True},
                "position": position,
                "length": len(states),
                "address": address_of(run.name, position),
                "whole": address_of(run.name, len(states)),
                "steps": steps,
                "state": state,
                "step": last,
                "properties": [_verdict(name, meaning, failing[:position]) for name, meaning in run.claims.items()],
                "moves": [],
            }
        )
    return {"format": FORMAT, "views": views, "answers": []}


def address_of(name: str, position: int) -> str:
    """The address of a state in such a run; only the page that has the file can show it."""
    return f"{IN_A_FILE}~{quote(name, safe='-').replace('~', '%7E')}~~{position}"


def a_broker(number: int, party: str, slots: Sequence[Mapping[str, Any]] = (), **parts: Any) -> dict[str, Any]:
    """A broker of a state; what is not said is not known."""
    told: dict[str, Any] = {"broker": number, "party": party, "up": None, "log": None, "role": NOBODY, "waiting": []}
    return {**told, **parts, "slots": list(slots)}


def a_slot(name: str, words: str, label: str = "") -> dict[str, Any]:
    """Something that a party shows, in words."""
    return {"slot": label or name, "name": name, "words": words, "value": words}


def a_state(
    brokers: Sequence[Mapping[str, Any]],
    controller: Mapping[str, Any] | None = None,
    clients: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A state of such a run."""
    return {
        "brokers": list(brokers),
        "controller": {
            "party": CONTROLLER,
            "partition": None,
            "fenced": None,
            "stopping": None,
            "slots": [],
            **(controller or {}),
        },
        "clients": {"acknowledged": None, "read": None, "slots": [], **(clients or {})},
        "in_flight": [],
    }


def _step(number: int, one: ToldStep) -> dict[str, Any]:
    words = f"{one.action}  {one.words}".rstrip()
    told: dict[str, Any] = {
        "number": number,
        "action": one.action,
        "args": {},
        "choice": 1,
        "words": words,
        "party": one.party,
    }
    return {**told, "events": list(one.events), "violates": list(one.fails), "marks": list(one.marks)}


def _slots(state: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The words of all slots, and the party of each."""
    parts = [(one["party"], one) for one in state["brokers"]]
    parts += [(state["controller"]["party"], state["controller"]), ("producer", state["clients"])]
    return {slot["slot"]: (party, slot["words"]) for party, part in parts for slot in part["slots"]}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    old = _slots(before)
    return [
        {"slot": name, "party": party, "before": old.get(name, (party, "none"))[1], "after": words}
        for name, (party, words) in _slots(after).items()
        if old.get(name, (party, "none"))[1] != words
    ]


def _verdict(name: str, meaning: str, failing: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A claim at the last of these states."""
    along = [name not in one for one in failing]
    told: dict[str, Any] = {"property": name, "kind": "always", "meaning": meaning, "asked": True}
    if False in along:  # a claim that holds all the time is the same in every view, and is written once
        told["along"] = "".join("1" if holds else "0" for holds in along)
    told["premise"] = {"property": None, "met": True}
    told["verdict"] = "holds" if along[-1] else "violated"
    told["first_at"] = along.index(False) + 1 if False in along else None
    if not along[-1]:
        seen = failing[-1][name]
        told["witness"] = [{"replicas": [], "records": [], "words": seen, "meaning": "", "source": seen, "reads": []}]
    return told
