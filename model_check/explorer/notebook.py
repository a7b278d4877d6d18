"""Models, states, runs and explorations as HTML, for notebooks: they show themselves as the last value of a cell."""

from collections import Counter
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from kspec.model_check.core.exploration import Exploration, NotebookTrace, Trace, Verdict
from kspec.model_check.core.model import LivenessProperty, Model, NotebookState, Party, Property, State
from kspec.model_check.explorer.drawing import state_as_tree
from kspec.model_check.explorer.verdicts import PropertyWatch, reasons
from kspec.model_check.traces.markup import EPOCH_COLOURS, Markup, element, folded, joined, shown, table
from kspec.model_check.traces.parameters import parameters_in_words
from kspec.model_check.traces.render import (
    NOTHING,
    action_in_words,
    changes,
    field_name,
    length_in_words,
    owner,
    parties,
    party_name,
    slot_in_words,
    steps,
    up_to_renaming,
)

MOST_STEPS = 300
"""Steps of a run that are shown; a longer one is for `kspec explore`."""

DRAWN = {"log", "highWatermark", "endOffset"}
"""Slots of a broker that stand in the drawing of its log."""


@singledispatch
def html_of(value: Any) -> str:
    """A value as a notebook shows it."""
    raise TypeError(f"nothing shows a {type(value).__qualname__}")


@html_of.register
def _model(model: Model) -> str:
    slots = Counter((field_name(slot), party_name(owner(slot)).split()[0]) for slot in model.slots if not slot.bookkeeping)
    actions = Counter(action.name for action in model.actions)
    claims: list[Property | LivenessProperty] = [*model.properties, *model.liveness]
    return shown(
        element("div", f"model {model.name}", class_="title"),
        element("div", parameters_in_words(model), class_="quiet"),
        table(("property", "kind", "meaning"), ((one.name, one.kind, one.meaning) for one in claims)),
        folded(
            f"{len(model.actions):,} actions, {len(actions)} by name",
            table(("action", "with how many arguments"), ((name, f"{times:,}") for name, times in actions.items())),
        ),
        folded(
            f"{len(model.slots)} slot{'s' if len(model.slots) != 1 else ''}",
            table(("slot", "of", "how many"), ((name, whose, str(times)) for (name, whose), times in slots.items())),
        ),
        folded("the initial state", _state_html(model, model.initial)),
    )


@html_of.register
def _state(state: NotebookState) -> str:
    return shown(_state_html(state.model, state))


@html_of.register
def _trace(trace: NotebookTrace) -> str:
    return shown(_trace_html(trace.model, trace))


@html_of.register
def _exploration(result: Exploration) -> str:
    symmetry = f" {up_to_renaming(result.model)}" if result.symmetry else ""
    ended = "every reachable state was explored" if result.complete else f"stopped early: {result.stopped_because}"
    found = [verdict for verdict in result.verdicts if verdict.violated and verdict.trace]
    return shown(
        element("div", f"model {result.model.name}", class_="title"),
        element("div", parameters_in_words(result.model), class_="quiet"),
        element("div", f"{result.distinct_states:,} distinct states{symmetry}, {result.transitions:,} transitions; {ended}"),
        table(
            ("property", "verdict", "meaning"),
            ((verdict.prop.name, _verdict(verdict), verdict.prop.meaning) for verdict in result.verdicts),
        ),
        *(
            folded(f"{verdict.prop.name}: a shortest run that violates it", _trace_html(result.model, verdict.trace or ()))
            for verdict in found
        ),
    )


def _verdict(verdict: Verdict) -> str:
    after = f" after {length_in_words(verdict.trace)}" if verdict.trace else ""
    if verdict.violated:
        return element("span", f"violated{after}", class_="violated")
    if verdict.holds is None:
        return "not decided"
    if verdict.prop.kind == "always":
        return "holds"
    return f"reached{after}" if verdict.holds else "never reached"


# ---- a state


def _state_html(model: Model, state: State) -> Markup:
    tree = state_as_tree(model, state)
    cards = [_broker(broker) for broker in tree["brokers"]]
    for name, part in ((tree["controller"]["party"], tree["controller"]), ("clients", tree["clients"])):
        if said := _slots(part["slots"]):
            cards.append(element("div", element("div", name, class_="title"), said, class_="party"))
    messages = [element("li", f"{one['from']} → {one['to']}: {one['words']}") for one in tree["in_flight"]]
    under_way = [element("div", "in flight", class_="title"), element("ul", *messages)] if messages else []
    return joined([element("div", *cards, class_="parties"), *under_way])


def _broker(broker: dict[str, Any]) -> Markup:
    role = broker["role"]
    is_ = {"leader": f"leads in epoch {role['leader_epoch']}", "follower": f"follows {role['leader']}"}.get(role["is"], "")
    down = "is down" if broker["up"] is False else ""
    title = ", ".join(words for words in (broker["party"], down or is_) if words)
    parts = [element("div", title, class_="title")]
    if broker["log"] is not None:
        parts.append(_log(broker["log"]))
    drawn = broker["log"] is not None
    parts.append(_slots([slot for slot in broker["slots"] if not (drawn and slot["slot"].split("[")[0] in DRAWN)]))
    return element("div", *parts, class_="party")


def _log(log: dict[str, Any]) -> Markup:
    """The records of a log by offset, with the high watermark between them where it is."""
    if log["records"] is None:
        return element("div", f"log end offset {log['end']}", class_="log")
    mark, cells = log["high_watermark"], []
    high = element("span", "HW", class_="mark", title=f"high watermark {mark}")
    for record in log["records"]:
        if record["offset"] == mark:
            cells.append(high)
        colour = EPOCH_COLOURS[record["leader_epoch"] % len(EPOCH_COLOURS)]
        cells.append(
            element(
                "span",
                record["words"],
                element("small", str(record["offset"])),
                class_="record",
                style=f"background: {colour}",
                title=f"offset {record['offset']}, leader epoch {record['leader_epoch']}",
            )
        )
    if mark is not None and mark >= log["end"]:
        cells.append(high)
    if not log["records"]:
        cells.append(element("span", f"empty, next offset {log['end']}", class_="quiet"))
    return element("div", *cells, class_="log", role="img", aria_label=_log_in_words(log))


def _log_in_words(log: dict[str, Any]) -> str:
    records = ", ".join(f"{record['offset']}: {record['words']}" for record in log["records"])
    mark = "" if log["high_watermark"] is None else f"; high watermark {log['high_watermark']}"
    return f"log: {records or 'empty'}{mark}"


def _slots(slots: list[dict[str, Any]]) -> Markup:
    said = [
        element("div", f"{slot['name']}: " if slot["name"] != slot["slot"] or len(slots) > 1 else "", slot["words"])
        for slot in slots
        if slot["words"] != NOTHING
    ]
    return joined(said)


# ---- a run


def _trace_html(model: Model, trace: Trace) -> Markup:
    if not trace:
        return element("div", "a run without a state", class_="quiet")
    columns = parties(model, trace)
    watch, known = PropertyWatch(model), set[str]()
    asked = {prop.name for prop in model.properties if prop.by_default}
    rows: list[Markup] = []
    begins: dict[Party, list[str]] = {}
    for slot, value in zip(model.slots, trace[0].state, strict=True):
        if not slot.bookkeeping and (words := slot_in_words(slot, value)) != NOTHING:
            begins.setdefault(owner(slot), []).append(f"{field_name(slot)}: {words}")
    states: list[tuple[int, str, dict[Party, list[str]], State]] = [(1, "initial state", begins, trace[0].state)]
    for number, before, after in steps(trace[: MOST_STEPS + 1]):
        assert after.action is not None
        changed: dict[Party, list[str]] = {}
        for slot, old, new in changes(model, before.state, after.state):
            changed.setdefault(owner(slot), []).append(f"{field_name(slot)}: {old} → {new}")
        states.append((number, action_in_words(after.action), changed, after.state))
    for number, words, changed, state in states:
        last = number == len(trace)
        violated = [name for name in watch.violated_at(state) if name not in known and (last or name in asked)]
        known |= set(watch.violated_at(state))
        cells = [element("td", *_lines(changed.get(party, []))) for party in columns]
        rows.append(element("tr", element("th", str(number), scope="row"), element("td", words), *cells))
        if violated:
            said = "; ".join([f"{', '.join(violated)} violated", *reasons(model, violated, state)])
            rows.append(
                element("tr", element("td", ""), element("td", said, class_="violated", colspan=str(len(columns) + 1)))
            )
    head = element("tr", *(element("th", name, scope="col") for name in ("", "step", *map(party_name, columns))))
    left_out = len(trace) - 1 - MOST_STEPS
    more = [element("div", f"{left_out:,} further steps are not shown", class_="quiet")] if left_out > 0 else []
    end = [folded("the state in the end", _state_html(model, trace[-1].state))]
    return joined(
        [
            element("div", f"model {model.name}, {length_in_words(trace)}", class_="title"),
            element("div", parameters_in_words(model), class_="quiet"),
            element("table", element("thead", head), element("tbody", *rows)),
            *more,
            *end,
        ]
    )


def _lines(texts: list[str]) -> Iterator[Markup]:
    for text in texts:
        yield element("div", text)
