"""Results of a simulation: as JSON, and as text for people."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Trace
from kspec.model_check.engines.simulation.shrink import Shrunk, shrink
from kspec.model_check.engines.simulation.simulate import Simulation, WalkFinding
from kspec.model_check.engines.simulation.walks import End
from kspec.model_check.reports.report import run_as_text
from kspec.model_check.traces.encode import trace_as_json
from kspec.model_check.traces.parameters import model_as_json
from kspec.model_check.traces.render import length_in_words
from kspec.model_check.traces.text import filled, row

ENDS = {
    End.DEPTH: "ended at the depth",
    End.STUCK: "ended where no action was possible",
    End.VIOLATED: "ended in a violation",
}


class Violation(NamedTuple):
    """A violated property, the run in which a walk violated it, and the shrunk run."""

    finding: WalkFinding
    original: Trace
    shrunk: Shrunk | None

    @property
    def trace(self) -> Trace:
        """The run to show."""
        return self.shrunk.trace if self.shrunk else self.original


def violations(result: Simulation, shrinking: bool = True) -> list[Violation]:
    """The violated properties with their runs, the one with the shortest run first."""
    found = []
    for finding in result.findings:
        if finding.violated and finding.trace:
            shrunk = shrink(result.model, finding.prop, finding.trace) if shrinking else None
            found.append(Violation(finding, finding.trace, shrunk))
    return sorted(found, key=lambda violation: len(violation.trace))


def lengths(histogram: NDArray[np.int64]) -> dict[str, float]:
    """The shortest, mean, median and longest walk, in steps, from the number of walks of each length."""
    total, present = int(histogram.sum()), np.flatnonzero(histogram)
    if not total:
        return {"shortest": 0, "mean": 0.0, "median": 0, "longest": 0}
    mean = float((histogram * np.arange(histogram.size)).sum()) / total
    median = int(np.searchsorted(histogram.cumsum(), (total + 1) // 2))
    return {"shortest": int(present[0]), "mean": round(mean, 2), "median": median, "longest": int(present[-1])}


def simulation_as_json(result: Simulation, found: list[Violation]) -> dict[str, Any]:
    """The one object that `kspec simulate --json` prints; see `docs/random-walks.md`."""
    model, plan = result.model, result.plan
    by_name = {violation.finding.prop.name: violation for violation in found}
    return {
        **model_as_json(model),
        "seed": plan.seed,
        "traces": plan.traces,
        "depth": plan.depth,
        "weights": dict(plan.weights),
        "workers": result.workers,
        "walks": result.walks,
        "complete": not result.interrupted,
        "steps": result.steps,
        "duration_s": round(result.duration_s, 3),
        "lengths": lengths(result.lengths),
        "ends": {end.name.lower(): result.ends[end] for end in End},
        "actions": result.actions,
        "violated": result.violated,
        "properties": [_finding_as_json(result, finding, by_name.get(finding.prop.name)) for finding in result.findings],
    }


def _finding_as_json(result: Simulation, finding: WalkFinding, violation: Violation | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": finding.prop.name,
        "kind": finding.prop.kind,
        "meaning": finding.prop.meaning,
        "walks": finding.walks,
        "walk": finding.walk,
    }
    if finding.prop.kind == "always":
        described |= {
            "original_length": len(violation.original) if violation else None,
            "trace_length": len(violation.trace) if violation else None,
            "trace": trace_as_json(result.model, violation.trace) if violation else None,
        }
    return described


def finding_in_words(finding: WalkFinding) -> str:
    """`no violation`, `VIOLATED in 3 walks`, `reached in 250 walks`, `not reached`."""
    walks = f"{finding.walks:,} walk{'s' if finding.walks != 1 else ''}"
    if finding.prop.kind == "always":
        return f"VIOLATED in {walks}" if finding.walks else "no violation"
    return f"reached in {walks}" if finding.walks else "not reached"


def simulation_as_text(result: Simulation, found: list[Violation], full: bool = False) -> str:
    """The report of `kspec simulate`: numbers, properties, how often each action was taken, the shrunk runs."""
    plan, size = result.plan, lengths(result.lengths)
    rate = result.steps / max(result.duration_s, 1e-3)
    lines = [
        f"{result.model.name}: {plan.traces:,} walks of at most {plan.depth:,} steps, seed {plan.seed}",
        f"{result.walks:,} walks ended, {result.steps:,} steps, {result.duration_s:.1f} s ({rate:,.0f} steps/s)",
        f"a walk took {size['shortest']} to {size['longest']} steps, {size['mean']:.1f} on average, median {size['median']}",
        "; ".join(f"{count:,} {ENDS[end]}" for end, count in result.ends.items() if count),
        "",
    ]
    width = max((len(finding.prop.name) for finding in result.findings), default=0)
    for finding in result.findings:
        prop = finding.prop
        lines += row(f"  {prop.kind:<9} {prop.name:<{width}}  {finding_in_words(finding)}", prop.meaning, width + 39)
    lines += ["", "  action taken" + " " * 27 + "times"]
    for name, times in result.actions.items():
        remark = "" if times else "   forbidden" if plan.weights.get(name) == 0 else "   never taken"
        lines.append(f"  {name:<36} {times:>10,}{remark}")
    for violation in found:
        lines += [
            "",
            *filled(_title(violation)),
            "",
            run_as_text(result.model, violation.trace, [violation.finding.prop.name], full),
        ]
    return "\n".join(lines)


def _title(violation: Violation) -> str:
    finding, shrunk = violation.finding, violation.shrunk
    title = f"Run that violates {finding.prop.name} ({length_in_words(violation.trace)})"
    origin = f"walk {finding.walk} took {length_in_words(violation.original)} to it"
    if shrunk is None:
        return f"{title}: {origin}"
    how = f"{len(shrunk.dropped) - 1} are left after dropping actions"
    if shrunk.trace is not shrunk.dropped:
        how += f", {len(shrunk.trace) - 1} after a search among those that are left"
    return f"{title}: {origin}, {how}"
