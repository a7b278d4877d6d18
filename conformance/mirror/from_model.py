"""A run of model `controller` as what brokers and operators send.

The model keeps no order of replicas: each of its steps chooses which is preferred. So where a step elects another replica
than the present order would, the partition is first reassigned to the same replicas in another order, which changes nothing
else. The model keeps no epochs either: every request is up to date.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from kspec.conformance.mirror.moves import (
    CancelReassignment,
    CreatePartition,
    Heartbeat,
    Move,
    Propose,
    Reassign,
)
from kspec.conformance.mirror.requests import set_up
from kspec.conformance.mirror.runs import MirrorRun, MirrorStep, run_from_json, without_epochs
from kspec.conformance.mirror.taking import ControllerKnowledge, request_of, taken
from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import Action, Model
from kspec.model_check.engines.simulation.walks import trace_of, walks
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka.kraft.state import topic_of
from kspec.model_check.models.kafka.values import NO_TOPIC, TopicRegistration
from kspec.spec.controller.protocol import Controller, ControllerProtocol
from kspec.spec.values import Error

MODEL = "controller"
WALK_STEPS = 25


class UnusableRunError(ValueError):
    """The run is none for a controller of this release: one line says why."""


class ModelAction(NamedTuple):
    """An action of the model, by its name and its arguments."""

    name: str
    args: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.args.items())})"


# ---- files


def read_run(path: Path, rules: ControllerProtocol, bounds: Mapping[str, Any]) -> MirrorRun:
    """The run in a file: one of ours, ITF, or what `kspec check controller --json` prints.

    `bounds`: parameters of the model, for ITF does not have them. Raises: `UnusableRunError`.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnusableRunError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise UnusableRunError(
            f"{path} has no run: it must be ITF, a run of ours, or what `kspec check controller --json` prints"
        )
    if "steps" in document:
        try:
            return run_from_json(document)
        except (KeyError, TypeError, ValueError) as error:
            raise UnusableRunError(f"{path} is no run of ours: {error}") from error
    if "states" in document and "vars" in document:
        takings = [ModelAction(state["action"], _decoded(state["args"])) for state in document["states"][1:]]
        return run_of_model(path.name, takings, rules, bounds)
    if document.get("model") == MODEL:
        for prop in document.get("properties", ()):
            if prop.get("trace"):
                takings = [ModelAction(step["action"], _tuples(step["args"])) for step in prop["trace"][1:]]
                given = {name.replace("-", "_"): value for name, value in document["parameters"].items()}
                return run_of_model(f"{path.name}: {prop['name']}", takings, rules, {**given, **bounds})
        raise UnusableRunError(f"{path} has no counterexample and no witness")
    raise UnusableRunError(f"{path} has no run of model {MODEL}")


def _decoded(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an action in ITF."""
    return {name: tuple(value["#set"]) if isinstance(value, dict) else value for name, value in _tuples(args).items()}


def _tuples(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in args.items()}


# ---- the model's run


def model_for(rules: ControllerProtocol, bounds: Mapping[str, Any]) -> Model:
    """The model with the rules of a release, whatever release the bounds name."""
    return MODELS[MODEL].build({**bounds, "release": rules.name, "mutant": None})


def walk(seed: int, rules: ControllerProtocol, bounds: Mapping[str, Any]) -> MirrorRun:
    """A random walk of the model, up to the first step that no order of replicas allows."""
    model = model_for(rules, bounds)
    (one,) = walks(model, [], seed, [0], WALK_STEPS, {})
    return translated(f"seed:{seed}", model, trace_of(model, one.actions), rules, whole=False)


def run_of_model(name: str, takings: list[ModelAction], rules: ControllerProtocol, bounds: Mapping[str, Any]) -> MirrorRun:
    """The run of these actions. Raises: `UnusableRunError` where the rules of the release do not take one of them."""
    model = model_for(rules, bounds)
    trace: list[TraceStep] = [TraceStep(None, model.initial)]
    for number, taking in enumerate(takings, start=1):
        action = _action(model, taking)
        after = None if action is None else action.bind()(trace[-1].state)
        if after is None:
            raise UnusableRunError(f"{name}: step {number}, {taking}, is not possible with the rules of {rules.name}")
        trace.append(TraceStep(action, after))
    return translated(name, model, tuple(trace), rules)


def _action(model: Model, taking: ModelAction) -> Action | None:
    return next((one for one in model.actions if one.name == taking.name and dict(one.args) == dict(taking.args)), None)


def translated(name: str, model: Model, trace: Trace, rules: ControllerProtocol, *, whole: bool = True) -> MirrorRun:
    """A run of the model as moves, each with the partition that the model then has.

    Raises: `UnusableRunError` where no order of the replicas allows a step; unless it need not be `whole`, and ends there.
    """
    parameters = model.parameters
    bare = MirrorRun(
        name,
        (),
        parameters["brokers"],
        parameters["min_isr"],
        eligible_leader_replicas=not parameters["without_elr"] and not rules.name.startswith("3."),
    )
    controller = bare.controller(rules)
    known = set_up(bare, controller)
    steps: list[MirrorStep] = []
    place = next(slot.position for slot in model.slots if slot.name == "controller")
    for number, taking in enumerate(trace[1:], start=1):
        assert taking.action is not None
        topic = taking.state[place].topic
        found = _taken_in_some_order(controller, known, taking.action, topic)
        if found is None and not whole:
            break
        if found is None:
            raise UnusableRunError(
                f"{name}: step {number}, {taking.action.label}: no order of the replicas has this outcome"
            )
        for place_in_step, move in enumerate(found, start=1):
            last = place_in_step == len(found)
            steps.append(MirrorStep(move, number if last else 0, topic if last else None))
            known = taken(controller, known, request_of(known, move)).known
    return bare._replace(steps=tuple(steps))


def _taken_in_some_order(
    controller: Controller, known: ControllerKnowledge, action: Action, topic: TopicRegistration
) -> tuple[Move, ...] | None:
    """The action's move, after a change of the order of replicas if it needs one; `None` if no order will do."""
    for first in (None, *_orders(known)):
        before = known
        if first is not None:
            done = taken(controller, known, request_of(known, first))
            before = done.known
            if done.answer.error != Error.NONE or _topic(before) != _topic(known):
                continue
        move = _move_of(action, known)
        done = taken(controller, before, request_of(before, move))
        if done.records and _topic(done.known) == topic:
            return (move,) if first is None else (first, move)
    return None


def _orders(known: ControllerKnowledge) -> Iterator[Move]:
    """The partition's replicas in every order; those that are being removed come last whatever is asked for."""
    partition = known.partition
    if partition is not None:
        staying = [replica for replica in partition.replicas if replica not in partition.removing]
        yield from (Reassign(order) for order in permutations(sorted(staying)))


def _topic(known: ControllerKnowledge) -> TopicRegistration:
    return NO_TOPIC if known.partition is None else without_epochs(topic_of(known.partition))


def _move_of(action: Action, known: ControllerKnowledge) -> Move:
    args: Mapping[str, Any] = action.args
    match action.name:
        case "CreatePartition":
            return CreatePartition(args["replicas"])
        case "Reassign":
            return Reassign(args["replicas"])
        case "CancelReassignment":
            return CancelReassignment()
        case "Fence":
            return Heartbeat(args["broker"], want_fence=True)
        case "Unfence":
            return Heartbeat(args["broker"])
        case "AlterIsr":
            return Propose((args["member"],))
        case name:
            raise UnusableRunError(f"model {MODEL} has got an action {name} that the mirror does not know")
