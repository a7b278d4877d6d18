"""Liveness results as JSON, as ITF, and as text for people."""

from typing import Any

from kspec.model_check.core.model import Fairness, Model
from kspec.model_check.graphs.liveness import Lasso, LivenessResult, LivenessVerdict
from kspec.model_check.traces.encode import as_json, trace_as_json
from kspec.model_check.traces.itf import as_itf
from kspec.model_check.traces.parameters import model_as_json, parameters_in_words
from kspec.model_check.traces.render import action_in_words, length_in_words, state_in_lines, step_in_lines, steps
from kspec.model_check.traces.text import filled, row


def lasso_as_text(model: Model, lasso: Lasso, full: bool = False) -> str:
    """A lasso step by step: the way to the loop, the loop, and why the run is fair."""
    lines = ["1  initial state", *state_in_lines(model, lasso.steps[0].state, fit=True)]
    lines += _remarks(lasso, 0)
    for number, before, after in steps(lasso.steps):
        assert after.action is not None
        lines += filled(f"{number}  {action_in_words(after.action)}", " " * 5, "")
        lines += step_in_lines(model, before.state, after.state, full, fit=True)
        lines += _remarks(lasso, number - 1)
    if lasso.closing:
        assert lasso.closing.action is not None
        last = lasso.steps[-1].state
        lines += [f"{lasso.loop_start + 1}  {action_in_words(lasso.closing.action)}"]
        lines += step_in_lines(model, last, lasso.closing.state, full, fit=True)
        lines.append(f"   and so on, from {lasso.loop_start + 1}")
    if not full:
        lines += ["", f"   in state {lasso.loop_start + 1}"]
        lines += state_in_lines(model, lasso.steps[lasso.loop_start].state, fit=True)
    width = max((len(label) for label, _ in lasso.why), default=0)
    lines += ["", "   why this run is fair" if lasso.why else "   nothing is assumed to be fair, so a run may stop anywhere"]
    return "\n".join([*lines, *(f"     {label:<{width}}  {reason}" for label, reason in _in_short(lasso.why))])


def _remarks(lasso: Lasso, place: int) -> list[str]:
    """The remarks on the state at this place."""
    remarks = [f"   from here on, never: the goal ({lasso.case})"] if place == lasso.since else []
    if place == lasso.loop_start:
        remarks.append("   the loop:" if lasso.closing else "   the loop: nothing happens any more")
    return remarks


def _in_short(why: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The reasons, without assumptions on single arguments that are never enabled in the loop."""
    if len(why) <= 8:
        return why
    idle = [label for label, reason in why if reason.startswith("never") and "=" in label]
    shown = [(label, reason) for label, reason in why if label not in idle]
    return [*shown, (f"{len(idle)} more, of other arguments", "never possible in the loop")] if idle else shown


def result_as_text(result: LivenessResult, full: bool = False) -> str:
    """The report of `kspec liveness`: assumptions, verdicts, and a run for each violated property."""
    graph = result.graph
    common = _common(result.verdicts)
    lines = [
        *filled(f"{graph.model.name}: {parameters_in_words(graph.model)}", "  ", ""),
        f"{graph.states:,} states, {len(graph.transitions):,} transitions",
        *filled(f"assumed: {_listed(common)}", "  ", ""),
        "",
    ]
    width = max((len(verdict.prop.name) for verdict in result.verdicts), default=0)
    for verdict in result.verdicts:
        lines += row(f"  {verdict.prop.name:<{width}}  {_in_words(verdict)}", verdict.prop.meaning, width + 14)
        own = [fairness for fairness in verdict.fairness if fairness not in common]
        if own:
            lines += filled(f"also assumed: {_listed(own)}", " " * 8, " " * 6)
    for verdict in result.verdicts:
        if verdict.holds and not verdict.met:
            lines.append(f"  warning: {verdict.prop.name} holds, but nothing is ever left to be done: it says little here")
    for verdict in result.verdicts:
        if lasso := verdict.lasso:
            turns = len(lasso.steps) - lasso.loop_start
            way = lasso.steps[: lasso.loop_start + 1]
            ends = f"then the same {turns} again and again" if lasso.closing else "where it stays for ever"
            title = f"A fair run that violates {verdict.prop.name}: {length_in_words(way)}, {ends}"
            lines += ["", *filled(title), "", lasso_as_text(graph.model, lasso, full)]
    return "\n".join(lines)


def _common(verdicts: list[LivenessVerdict]) -> list[Fairness]:
    """The fairness that every property assumes."""
    first = verdicts[0].fairness if verdicts else []
    return [fairness for fairness in first if all(fairness in verdict.fairness for verdict in verdicts)]


def _listed(fairness: list[Fairness]) -> str:
    return ", ".join(one.label for one in fairness) or "no fairness at all"


def _in_words(verdict: LivenessVerdict) -> str:
    return "holds" if verdict.holds else "VIOLATED"


def result_as_json(result: LivenessResult) -> dict[str, Any]:
    """The object that `kspec liveness --json` prints; see `docs/liveness.md`."""
    graph = result.graph
    return {
        **model_as_json(graph.model),
        "states": graph.states,
        "transitions": len(graph.transitions),
        "properties": [_verdict_as_json(graph.model, verdict) for verdict in result.verdicts],
    }


def _verdict_as_json(model: Model, verdict: LivenessVerdict) -> dict[str, Any]:
    return {
        "name": verdict.prop.name,
        "kind": verdict.prop.kind,
        "meaning": verdict.prop.meaning,
        "fairness": [fairness._asdict() for fairness in verdict.fairness],
        "holds": verdict.holds,
        "cases": verdict.cases,
        "cases_met": verdict.met,
        "lasso": _lasso_as_json(model, verdict.lasso) if verdict.lasso else None,
    }


def _lasso_as_json(model: Model, lasso: Lasso) -> dict[str, Any]:
    return {
        "case": lasso.case,
        "trace": trace_as_json(model, lasso.steps),
        "since": lasso.since,
        "loop": lasso.loop_start,
        "closing": _closing(lasso),
        "why_fair": [{"fairness": label, "reason": reason} for label, reason in lasso.why],
    }


def _closing(lasso: Lasso) -> dict[str, Any] | None:
    """The step from the last state back to the loop's first; `None` where the run stands still."""
    if lasso.closing is None or lasso.closing.action is None:
        return None
    return {"action": lasso.closing.action.name, "args": as_json(lasso.closing.action.args)}


def lasso_as_itf(model: Model, lasso: Lasso, description: str) -> dict[str, Any]:
    """An ITF document with the field `loop`: after the last state, the run goes on from the state at this index."""
    document = as_itf(model, lasso.steps, description)
    document["#meta"]["closing"] = _closing(lasso)
    return {**document, "loop": lasso.loop_start}
