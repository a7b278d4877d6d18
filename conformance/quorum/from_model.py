"""Runs of model `quorum` as steps of three voters, of which one is real.

Only the names and arguments of actions are taken. A real leader appends by itself, and a real clock ends times by itself.
So a step that the model takes may not be possible any more; it is left out, and so are appends of the real leader. A run
ends before what is not replayed.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from kspec.conformance.kafka.run_files import run_in
from kspec.conformance.quorum.controller import REAL
from kspec.conformance.quorum.moves import (
    AddVoter,
    Append,
    LoseDisk,
    QuorumMove,
    RemoveVoter,
    Restart,
    SnapshotTransfer,
    TakeSnapshot,
    TimeOut,
    VoterExchange,
    VoterRequestKind,
)
from kspec.conformance.quorum.runs import QuorumRun
from kspec.conformance.quorum.voters import VOTERS, Voters, first_voters, take
from kspec.model_check.engines.simulation.walks import trace_of, walks
from kspec.model_check.models import MODELS
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.values import BrokerId

MODEL = "quorum"
WALK_STEPS = 60
WALK_BOUNDS: Mapping[str, Any] = {
    "max_epoch": 4,
    "records": 2,
    "restarts": 1,
    "lost_answers": 2,
    "without_directories": True,
}
"""The bounds of random walks."""

WALK_WEIGHTS: Mapping[str, int] = {
    "PreVote": 8,
    "Vote": 8,
    "BeginQuorumEpoch": 8,
    "EndQuorumEpoch": 4,
    "Append": 6,
    "Restart": 2,
}
WEIGHT = 2
"""Of every other action. Without weights most steps would be fetches of those who wait."""

UNANSWERED = "Unanswered"

CHANGE_BOUNDS: Mapping[str, Any] = {**WALK_BOUNDS, "without_directories": False, "voter_changes": 2}
"""Those of walks in which voters are removed and added again (`kraft.version` 1)."""

CHANGE_WEIGHTS: Mapping[str, int] = {"RemoveVoter": 8, "AddVoter": 60}


SNAPSHOTS = 0.15
"""The share of steps after which a played voter takes a snapshot, in walks with snapshots, if it can."""


class WalkKind(NamedTuple):
    """A kind of random walks: its name, its bounds, and whether played voters take snapshots."""

    name: str
    bounds: Mapping[str, Any]
    snapshots: bool = False


WALK_KINDS = {
    one.name: one
    for one in (WalkKind("seed", WALK_BOUNDS), WalkKind("changes", CHANGE_BOUNDS), WalkKind("snapshots", WALK_BOUNDS, True))
}


def walk(seed: int, rules: QuorumProtocol, kind: WalkKind = WALK_KINDS["seed"]) -> QuorumRun:
    """A random walk of the model. Its real voter is 1, 2 or 3, by the seed.

    The model knows no snapshots: those of played voters come between its steps, and what they make impossible is left out.
    """
    bounds = kind.bounds
    model = MODELS[MODEL].build({**bounds, "release": rules.name, "mutant": None})
    weights = {action.name: {**WALK_WEIGHTS, **CHANGE_WEIGHTS}.get(action.name, WEIGHT) for action in model.actions}
    weights |= {name: 1 for name in weights if name.endswith(UNANSWERED)}
    (found,) = walks(model, [], seed, [0], WALK_STEPS, weights)
    taken = [(step.action.name, step.action.args) for step in trace_of(model, found.actions) if step.action is not None]
    run = run_of_actions(f"{kind.name}:{seed}", taken, BrokerId(1 + seed % len(VOTERS)))
    run = run._replace(changes_voters=bool(bounds.get("voter_changes")))
    choose = Random(f"snapshots {seed}") if kind.snapshots else None
    return run._replace(steps=tuple(_telling_steps(run, rules, choose)))


def _telling_steps(run: QuorumRun, rules: QuorumProtocol, choose: Random | None) -> Iterator[QuorumMove]:
    """The steps that change something, and requests to the real voter; with snapshots, if somebody chooses where."""
    voters = first_voters(rules, voters_in_log=run.changes_voters)
    for step in run.steps:
        taken = take(voters, step)
        is_told = isinstance(step, VoterExchange) and step.asked == REAL
        if taken is None or not (is_told or taken.after != voters):
            continue
        yield step
        voters = taken.after
        for more in _snapshots_after(voters, choose):
            also = take(voters, more)
            if also is not None:
                yield more
                voters = also.after


def _snapshots_after(voters: Voters, choose: Random | None) -> Iterator[QuorumMove]:
    """The snapshots that are fetched and taken after a step: who is told of one fetches it at once."""
    for one in VOTERS:
        voter = voters.of(one)
        if voter.wanted != NO_SNAPSHOT:
            yield SnapshotTransfer(one, voter.replica.election.leader)
    if choose is not None and choose.random() < SNAPSHOTS:
        yield TakeSnapshot(choose.choice([one for one in VOTERS if one != REAL]))


def read_run(path: Path, real: int) -> QuorumRun:
    """The run in a file: ITF, or what `kspec check quorum --json` prints. Raises: `NoRunInFileError`."""
    return run_of_actions(path.name, run_in(path, MODEL).actions, BrokerId(real))


def run_of_actions(name: str, actions: Iterable[tuple[str, Mapping[str, Any]]], real: BrokerId) -> QuorumRun:
    """The run of these actions, up to the first that is not replayed; the real one changes names with 1."""
    steps: list[QuorumMove] = []
    changes_voters = False
    for action, args in actions:
        named = {key: _renamed(BrokerId(value), real) for key, value in args.items() if key in ("server", "asked", "voter")}
        if action == "VoterChangeTimesOut":  # an operator who waits longer sees the same
            continue
        move = _move_of(action, named)
        changes_voters |= isinstance(move, AddVoter | RemoveVoter)
        if move is None:
            break
        if not (isinstance(move, Append) and move.server == REAL):
            steps.append(move)
    words = (
        f"a run of model {MODEL}, in which 1 and {real} have changed names" if real != REAL else f"a run of model {MODEL}"
    )
    return QuorumRun(name, words, "", tuple(steps), lambda states: True, is_free=True, changes_voters=changes_voters)


def _renamed(one: BrokerId, real: BrokerId) -> BrokerId:
    first = BrokerId(REAL)
    return {real: first, first: real}.get(one, one)


def _move_of(action: str, args: Mapping[str, BrokerId]) -> QuorumMove | None:
    """The step of an action, `None` if it is not replayed."""
    kinds = {kind.value: kind for kind in VoterRequestKind}
    name = action.removesuffix(UNANSWERED)
    if name in kinds:
        return VoterExchange(kinds[name], args["server"], args["asked"], lost=action != name)
    match action:
        case "TimeOut":
            return TimeOut(args["server"])
        case "Restart":
            return Restart(args["server"])
        case "LoseDisk":
            return LoseDisk(args["server"])
        case "Append":
            return Append(args["server"])
        case "AddVoter":
            return AddVoter(args["server"], args["voter"])
        case "RemoveVoter":
            return RemoveVoter(args["server"], args["voter"])
        case _:
            return None
