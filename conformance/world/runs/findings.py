"""The findings that a real broker shows: each a run that the checker has found, on to the loss, and a control beside it.

The runs are kept in `findings.json`, so that no replay waits for a search.
`python -m kspec.conformance.world.runs.findings` writes them.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kspec.conformance.world.runs.run import (
    Move,
    NoRunError,
    WorldRun,
    counterexample,
    first_leader,
    metadata_at_once,
    model_for,
    one_decision_at_a_time,
    registered_before_it_fetches,
    release_of,
    slot_of,
    trace_of_moves,
)
from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.models import MODELS
from kspec.model_check.traces.encode import as_json

KEPT = Path(__file__).with_name("findings.json")
NEWEST = "4.4.0"
MOST_STATES = 4000
"""The limit of states in the search from the violation to the loss itself."""


class LossFinding(NamedTuple):
    """A finding: bounds, the property that fails within them, the elections that let the loss be seen, and the control.

    `found_in`: rules with which the checker finds the run, where the release has a shorter run of another finding.
    """

    parameters: Mapping[str, Any]
    invariant: str
    elections: int
    control: Callable[[WorldRun], WorldRun]
    found_in: Mapping[str, Any] = {}


LOST_TWICE = {
    "brokers": 2,
    "min_isr": 1,
    "elections": 0,
    "isr_shrinks": 1,
    "unclean_shutdowns": 2,
    "slow_registrations": 1,
    "only_stops": 2,
}
ACTS_BEFORE_REGISTRATION = {"release": "next", "mutant": "act-before-registration"}

FINDINGS = {
    "missed-epoch": LossFinding({"elections": 1, "fencings": 1}, "AcknowledgedOnNextLeader", 2, one_decision_at_a_time),
    "forgotten-proposal": LossFinding({"elections": 0, "isr_shrinks": 1}, "AcknowledgedOnNextLeader", 1, metadata_at_once),
    "fetch-before-registration": LossFinding(
        LOST_TWICE, "CommittedOnNextLeader", 1, registered_before_it_fetches, ACTS_BEFORE_REGISTRATION
    ),
}


def finding_run(name: str, kafka: str) -> WorldRun:
    """The run of a finding by the rules of a release. Raises: `NoRunError`."""
    finding = FINDINGS[name]
    steps = json.loads(KEPT.read_text(encoding="utf-8"))[name]
    moves: list[Move] = [(one["action"], one["args"]) for one in steps]
    model = model_for(kafka, {**finding.parameters, "elections": finding.elections})
    return WorldRun(name, model, trace_of_moves(model, moves), first_leader(moves))


def control_of(name: str, kafka: str) -> WorldRun:
    """The control run of a finding. Raises: `NoRunError`."""
    return FINDINGS[name].control(finding_run(name, kafka))


def search(name: str, kafka: str) -> WorldRun:
    """The finding's run as the checker finds it, and the shortest way on to the loss."""
    finding = FINDINGS[name]
    model = MODELS["kafka"].build({**finding.parameters, "release": release_of(kafka), **finding.found_in})
    found = WorldRun(name, model, counterexample(model, finding.invariant, name), 1)
    larger = model_for(kafka, {**finding.parameters, "elections": finding.elections})
    run = WorldRun(name, larger, trace_of_moves(larger, found.moves), first_leader(found.moves))
    return run._replace(trace=(*run.trace, *_way_to_loss(run)))


def _way_to_loss(run: WorldRun) -> Trace:
    """The way on by which the real broker loses a record that it has acknowledged: elections, metadata and fetches."""
    last = run.trace[-1].state
    told = {placed.record for placed in slot_of(run.model, last, "clients").told}
    steps = [action for action in run.model.actions if action.name in ("ElectPreferred", "ReplayMetadata", "Fetch")]
    ways: list[Trace] = [()]
    seen = {last}
    for way in ways:
        state = way[-1].state if way else last
        if told - set(slot_of(run.model, state, "log", run.real).log.records):
            return way
        for action in steps:
            after = action.bind()(state)
            if after is not None and after not in seen and len(seen) < MOST_STATES:
                seen.add(after)
                ways.append((*way, TraceStep(action, after)))
    raise NoRunError(f"{run.name}: no way to a loss was found")


def kept_text() -> str:
    """The file of all findings as text."""
    found = {}
    for name in FINDINGS:
        found[name] = [{"action": action, "args": as_json(args)} for action, args in search(name, NEWEST).moves]
    lines = [
        f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(step)}" for step in steps) + "\n  ]"
        for name, steps in found.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    KEPT.write_text(kept_text(), encoding="utf-8")
