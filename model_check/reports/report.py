"""Results of an exploration: as JSON, and as text for people."""

from collections.abc import Sequence
from typing import Any

from kspec.model_check.core.exploration import Exploration, Trace, Verdict
from kspec.model_check.core.model import Model, State
from kspec.model_check.explorer.verdicts import reasons
from kspec.model_check.traces.compact import compact_run
from kspec.model_check.traces.encode import trace_as_json
from kspec.model_check.traces.parameters import model_as_json, parameters_in_words
from kspec.model_check.traces.render import length_in_words, trace_table, up_to_renaming
from kspec.model_check.traces.text import filled, row


def exploration_as_json(result: Exploration) -> dict[str, Any]:
    """The one object that `kspec check --json` prints; see `docs/formats.md`."""
    return {
        **model_as_json(result.model),
        "engine": result.engine,
        "symmetry": result.symmetry,
        "complete": result.complete,
        "stopped_because": result.stopped_because,
        "distinct_states": result.distinct_states,
        "states_represented": result.represented,
        "transitions": result.transitions,
        "depth": result.depth,
        "levels": result.levels,
        "duration_s": round(result.duration_s, 3),
        "actions": result.actions,
        "deadlocks": {
            "states": result.deadlocks,
            "trace_length": len(result.deadlock_trace) if result.deadlock_trace else None,
            "is_violation": result.deadlock_is_violation,
        },
        "properties": [_verdict_as_json(result, verdict) for verdict in result.verdicts],
        **result.details(),
    }


def _verdict_as_json(result: Exploration, verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.prop.name,
        "kind": verdict.prop.kind,
        "meaning": verdict.prop.meaning,
        "holds": verdict.holds,
        "trace_length": len(verdict.trace) if verdict.trace else None,
        "trace": trace_as_json(result.model, verdict.trace) if verdict.trace else None,
    }


def verdict_in_words(verdict: Verdict) -> str:
    """`holds`, `VIOLATED after 8 steps`, `reached after 6 steps`, `NEVER REACHED`, `not decided`."""
    steps = length_in_words(verdict.trace) if verdict.trace else ""
    if verdict.holds is None:
        return "not decided"
    if verdict.prop.kind == "always":
        return "holds" if verdict.holds else f"VIOLATED after {steps}"
    return f"reached after {steps}" if verdict.holds else "NEVER REACHED"


def vacuous(result: Exploration) -> list[str]:
    """Warnings about properties that hold only because their premise is never met."""
    unreached = {
        verdict.prop.name for verdict in result.verdicts if verdict.prop.kind == "sometimes" and verdict.holds is False
    }
    return [
        f"{verdict.prop.name} holds, but {verdict.prop.twin} is never reached: within these bounds it says nothing"
        for verdict in result.verdicts
        if verdict.holds and verdict.prop.twin in unreached
    ]


def exploration_as_text(result: Exploration, full: bool = False) -> str:
    """The report of `kspec check`: numbers, verdicts, how often each action fired, the violations' traces."""
    rate = result.distinct_states / max(result.duration_s, 1e-3)
    states = f"states {up_to_renaming(result.model)}" if result.symmetry else "states"
    states += f", which stand for {result.represented:,}" if result.represented is not None else ""
    lines = [
        *filled(f"{result.model.name}: {parameters_in_words(result.model)}", "  ", ""),
        *filled(
            f"{result.distinct_states:,} distinct {states}, {result.transitions:,} transitions, depth {result.depth},"
            f" {result.duration_s:.1f} s ({rate:,.0f} states/s, engine {result.engine})"
        ),
        "every reachable state was explored" if result.complete else f"stopped early: {result.stopped_because}",
        "",
    ]
    width = max((len(verdict.prop.name) for verdict in result.verdicts), default=0)
    for verdict in result.verdicts:
        start = f"  {verdict.prop.kind:<9} {verdict.prop.name:<{width}}  {verdict_in_words(verdict)}"
        lines += row(start, verdict.prop.meaning, width + 39)
    lines += [line for warning in vacuous(result) for line in filled(f"warning: {warning}", "    ", "  ")]
    lines += ["", "  action taken" + " " * 27 + "times"]
    lines += [f"  {name:<36} {times:>10,}{'' if times else '   never enabled'}" for name, times in result.actions.items()]
    if result.deadlocks:
        length = length_in_words(result.deadlock_trace) if result.deadlock_trace else "some steps"
        kind = "DEADLOCK" if result.deadlock_is_violation else "no action is possible"
        lines += ["", f"  {kind} in {result.deadlocks:,} states, the nearest after {length}"]
    by_run: dict[tuple[State, ...], tuple[Trace, list[str]]] = {}
    for name, trace in violations(result):
        by_run.setdefault(tuple(step.state for step in trace), (trace, []))[1].append(name)
    for trace, names in by_run.values():
        title = f"Shortest run that violates {', '.join(names)} ({length_in_words(trace)})"
        lines += ["", *filled(title), "", run_as_text(result.model, trace, names, full)]
    return "\n".join(lines)


def run_as_text(model: Model, trace: Trace, violated: Sequence[str], full: bool = False) -> str:
    """A run that violates something, in as few lines as it takes; `full`: the whole state after each step."""
    if full:
        return trace_table(model, trace, full, fit=True)
    return compact_run(model, trace, violated, reasons(model, violated, trace[-1].state))


def violations(result: Exploration) -> list[tuple[str, Trace]]:
    """The violated properties for which there is a run, each with its shortest run, shortest first."""
    found = [(verdict.prop.name, verdict.trace) for verdict in result.verdicts if verdict.violated and verdict.trace]
    if result.deadlock_is_violation and result.deadlock_trace:
        found.append(("deadlock freedom", result.deadlock_trace))
    return sorted(found, key=lambda entry: len(entry[1]))
