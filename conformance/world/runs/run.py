"""Runs of model `kafka` to be replayed: from a finding or a study, a file, or a seed of the simulator.

A run is taken by the rules of the release under test. From a file come only the names and arguments of its actions.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Limits, Trace, TraceStep
from kspec.model_check.core.model import Action, Model, State
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.engines.simulation.walks import walks
from kspec.model_check.models import MODELS
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.model_check.traces.encode import as_json
from kspec.spec.releases.names import RELEASES

Move = tuple[str, dict[str, Any]]
"""An action's name and its arguments."""

WALK_DEPTH = 30


class NoRunError(Exception):
    """A run that does not exist: the reason in one line."""


class WorldRun(NamedTuple):
    """A run of the model, and the one of its brokers that is the real one."""

    name: str
    model: Model
    trace: Trace
    real: int

    @property
    def moves(self) -> list[Move]:
        """The run's actions."""
        return [(step.action.name, dict(step.action.args)) for step in self.trace if step.action is not None]

    def as_json(self) -> dict[str, Any]:
        """A file that can be replayed: parameters and actions."""
        given = {name: value for name, value in self.model.parameters.items() if value is not None}
        steps = [{"action": name, "args": as_json(args)} for name, args in self.moves]
        return {"model": self.model.name, "parameters": as_json(given), "real": self.real, "steps": steps}


def release_of(kafka: str) -> str:
    """The model's name of a version: the newest release of the series that is not newer, `4.4` for 4.4.0, `3.9.1` for 3.9.2.

    Raises: `NoRunError`.
    """
    version, oldest = kafka.split("."), RELEASES.index("3.9")
    series = [name for name in RELEASES[oldest:] if name.split(".")[:2] == version[:2] and name.split(".") <= version]
    if not series:
        raise NoRunError(f"the world is for Kafka 3.9 and later, and the model knows no release {kafka!r} there")
    return series[-1]


def model_for(kafka: str, parameters: Mapping[str, Any]) -> Model:
    """Model `kafka` by the rules of a release."""
    return MODELS["kafka"].build({**parameters, "release": release_of(kafka)})


def first_leader(moves: Iterable[Move]) -> int:
    """The broker that leads first: the one under test unless another is chosen."""
    return next((int(args["leader"]) for name, args in moves if name == "CreatePartition"), 1)


def trace_of_moves(model: Model, moves: Sequence[Move], *, skip: bool = False) -> Trace:
    """The run of these actions; with `skip` those that are not possible are left out. Raises: `NoRunError`."""
    trace = [TraceStep(None, model.initial)]
    by_move = _by_move(model)
    for number, (name, args) in enumerate(moves, start=1):
        successors = _successors(by_move.get(_key(name, args), []), trace[-1].state)
        if successors:
            trace.append(successors[0])
        elif not skip:
            raise NoRunError(f"step {number} ({name} {args}) is not possible by the rules of {model.parameters['release']}")
    return tuple(trace)


def _by_move(model: Model) -> dict[str, list[Action]]:
    found: dict[str, list[Action]] = {}
    for action in model.actions:
        found.setdefault(_key(action.name, action.args), []).append(action)
    return found


def _key(name: str, args: Mapping[str, Any]) -> str:
    return f"{name} {json.dumps(as_json(args), sort_keys=True)}"


def _successors(actions: Iterable[Action], state: State) -> list[TraceStep]:
    return [TraceStep(action, after) for action in actions if (after := action.bind()(state)) is not None]


# ---- sources of runs


def load_run(source: str, kafka: str, parameters: Mapping[str, Any]) -> WorldRun:
    """The run of a study, a file, or a seed. Raises: `NoRunError`."""
    if source.startswith("seed:"):
        return _walk(source, kafka, parameters)
    if source in {study.name for study in STUDIES}:
        return _study(source, kafka)
    if Path(source).exists():
        return _file(Path(source), kafka, parameters)
    raise NoRunError(f"{source!r} is neither a finding, nor a study, nor a file, nor seed:N")


def with_real_broker(run: WorldRun, real: int | None) -> WorldRun:
    """The run with another of its brokers as the real one. Raises: `NoRunError`."""
    if real is None:
        return run
    if not 1 <= real <= run.model.parameters["brokers"]:
        raise NoRunError(f"--real {real}: the run has brokers 1 to {run.model.parameters['brokers']}")
    return run._replace(real=real)


def _walk(source: str, kafka: str, parameters: Mapping[str, Any]) -> WorldRun:
    number = source.removeprefix("seed:")
    if not number.isdigit():
        raise NoRunError(f"{source!r}: the seed is a number, as in seed:7")
    model = model_for(kafka, parameters)
    return walk(model, int(number), 0, WALK_DEPTH, source)


def walk(model: Model, seed: int, number: int, depth: int, name: str) -> WorldRun:
    """One walk of the simulator."""
    (found,) = walks(model, [], seed, [number], depth, {})
    trace = [TraceStep(None, model.initial)]
    for one in found.actions:
        action = model.actions[one]
        after = action.bind()(trace[-1].state)
        assert after is not None
        trace.append(TraceStep(action, after))
    run = WorldRun(name, model, tuple(trace), 1)
    return run._replace(real=first_leader(run.moves))


def counterexample(model: Model, invariant: str, name: str) -> Trace:
    """The shortest run that violates a property. Raises: `NoRunError`."""
    prop = model.property_named(invariant)
    assert prop is not None, f"{model.name} has no property {invariant}"
    (verdict,) = explore(model, [prop], Limits(), symmetry=Symmetry(model)).verdicts
    if verdict.trace is None:
        raise NoRunError(f"{name}: {invariant} holds by the rules of release {model.parameters['release']}")
    return verdict.trace


def _study(name: str, kafka: str) -> WorldRun:
    study = next(study for study in STUDIES if study.name == name)
    if study.failing.model != "kafka":
        raise NoRunError(f"study {name} is of model {study.failing.model}, whose fetches are no messages")
    if study.failing.parameters.get("mutant"):
        raise NoRunError(f"study {name} is of a weakened rule, which no release of Kafka from 3.9 on has")
    model = model_for(kafka, study.failing.parameters)
    run = WorldRun(name, model, counterexample(model, study.invariant, name), 1)
    return run._replace(real=first_leader(run.moves))


def slot_of(model: Model, state: State, name: str, key: int | None = None) -> Any:
    """A slot's value."""
    return next(state[slot.position] for slot in model.slots if (slot.name, slot.key) == (name, key))


def _file(path: Path, kafka: str, parameters: Mapping[str, Any]) -> WorldRun:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoRunError(f"{path}: {error}") from None
    if not isinstance(content, dict) or content.get("model", "kafka") != "kafka":
        raise NoRunError(f"{path} holds no run of model kafka")
    kept = {
        name.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for name, value in content.get("parameters", {}).items()
        if value is not None
    }
    model = model_for(kafka, {**kept, **parameters})
    moves = _moves_of(path, content)
    return WorldRun(path.name, model, trace_of_moves(model, moves), int(content.get("real", 0)) or first_leader(moves))


def _moves_of(path: Path, content: dict[str, Any]) -> list[Move]:
    """The actions in a file: ITF, what `kspec check --json` prints, or a run that was kept."""
    if "states" in content:
        steps = [state for state in content["states"] if state.get("action") != "init"]
    elif "properties" in content:
        found = [one for one in content["properties"] if one.get("trace")]
        found.sort(key=lambda one: (one["kind"] != "always" or one["holds"] is not False, -len(one["trace"])))
        if not found:
            raise NoRunError(f"{path}: no property there has a run")
        steps = [step for step in found[0]["trace"] if step.get("action")]
    else:
        steps = content.get("steps", [])
    if not steps:
        raise NoRunError(f"{path} holds no run: neither ITF, nor the output of kspec check --json, nor a kept run")
    return [(step["action"], {name: _argument(value) for name, value in step["args"].items()}) for step in steps]


def _argument(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# ---- controls


def metadata_at_once(run: WorldRun) -> WorldRun:
    """A control: the same run, but the real broker reads each decision as soon as it is made.

    Steps that are not possible then are left out.
    """
    moves = [move for move in run.moves if not _reads(run, move)]
    return _with_reading(run, moves, "each decision read at once", at_once=True)


def one_decision_at_a_time(run: WorldRun) -> WorldRun:
    """A control: the same run, but the real broker reads each decision by itself, none together with another.

    Steps that are not possible then are left out.
    """
    moves: list[Move] = []
    for move in run.moves:
        times = move[1]["decisions"] if _reads(run, move) else 1
        one = (move[0], {**move[1], "decisions": 1}) if _reads(run, move) else move
        moves += [one] * times
    return _with_reading(run, moves, "one decision at a time", at_once=False)


def registered_before_it_fetches(run: WorldRun) -> WorldRun:
    """A control: the same run, but a broker that starts is registered before it reads metadata and fetches.

    Steps that are not possible then are left out.
    """
    moves = [
        ("Register", {**args, "successor": args["broker"]}) if name == "Start" else (name, args) for name, args in run.moves
    ]
    trace = trace_of_moves(run.model, moves, skip=True)
    return run._replace(name=f"{run.name}, control: registered before it fetches", trace=trace)


def _reads(run: WorldRun, move: Move) -> bool:
    return move[0] == "ReplayMetadata" and move[1]["broker"] == run.real


def _with_reading(run: WorldRun, moves: Sequence[Move], how: str, *, at_once: bool) -> WorldRun:
    model = run.model
    one = ("ReplayMetadata", {"broker": run.real, "decisions": 1})
    by_move = _by_move(model)
    trace = [TraceStep(None, model.initial)]
    for move in moves:
        successors = _successors(by_move.get(_key(*move), []), trace[-1].state)
        trace += successors[:1]
        while successors and at_once and len(slot_of(model, trace[-1].state, "metadata", run.real)) > 1:
            successors = _successors(by_move[_key(*one)], trace[-1].state)
            trace += successors[:1]
    return run._replace(name=f"{run.name}, control: {how}", trace=tuple(trace))
