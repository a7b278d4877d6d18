"""The explorer: a JSON message in, a JSON message out. docs/explorer.md has all of them."""

from collections.abc import Callable, Mapping
from typing import Any

from kspec.model_check.core.exploration import INTERRUPTED, Exploration, Limits, Progress, Trace
from kspec.model_check.core.model import Model, ModelError, ModelSizeError, Property, State
from kspec.model_check.core.nearest import instead_of
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.engines import reference
from kspec.model_check.explorer.address import AddressStep, digest_of, parameter_from_json, parameters_from, parse
from kspec.model_check.explorer.drawing import state_as_tree
from kspec.model_check.explorer.errors import RefusedMessageError, in_short
from kspec.model_check.explorer.files.cases import is_results, run_of_case
from kspec.model_check.explorer.files.reading import arguments_from, replay, trace_in
from kspec.model_check.explorer.files.told import IN_A_FILE, as_recording
from kspec.model_check.explorer.files.writing import file_of
from kspec.model_check.explorer.moves import MoveEntry, StateValues, move_as_json, rules_of_step
from kspec.model_check.explorer.rules import mutants_of, rule_as_json
from kspec.model_check.explorer.run import Run, parameter_names, present_parameters, step_as_json
from kspec.model_check.explorer.sides.comparison import retraced
from kspec.model_check.explorer.sides.difference import DifferenceSearch
from kspec.model_check.models import MODELS, ModelEntry
from kspec.model_check.traces.parameters import model_as_json, parameters_in_words
from kspec.model_check.traces.render import changes, owner, party_name
from kspec.model_check.version import VERSION

USUAL_STATES = 20_000
"""The states that a search visits at most, if a message does not say."""

MOST_STEPS = 1_000
"""The steps of a run at most: each view has all of them."""

KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", dict: "an object"}


Explore = Callable[[Model, list[Property], Limits], Exploration]
"""The function that an engine offers."""


class Explorer:
    """A session with one run at a time. It needs no threads, files or processes, so it runs in a browser as it is.

    `cancelled` is asked now and then while a search goes on, and `report` is told how far it is; `KeyboardInterrupt`
    cancels a search, too. `explore` is the engine that searches.
    """

    def __init__(
        self,
        models: Mapping[str, ModelEntry] = MODELS,
        cancelled: Callable[[], bool] | None = None,
        report: Callable[[dict[str, Any]], None] | None = None,
        explore: Explore = reference.explore,
    ) -> None:
        self.models = models
        self._explore = explore
        self._cancelled = cancelled
        self._report = report
        self._run: Run | None = None
        self._commands: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "models": self._models,
            "start": self._start,
            "open": self._open,
            "view": self._view,
            "step": self._step,
            "why": self._why,
            "undo": self._undo,
            "jump": self._jump,
            "diff": self._diff,
            "find": self._find,
            "retrace": self._retrace,
            "differ": self._differ,
            "export": self._export,
            "import": self._import,
        }
        self._other: tuple[str, Run] | None = None

    @property
    def trace(self) -> Trace:
        """The run up to the present state, empty before one has begun; a notebook shows it."""
        return () if self._run is None else self._run.trace

    def answer(self, message: Any) -> dict[str, Any]:
        """The answer to a message: what it asks for, or an error. An `id` of the message is in the answer, too."""
        marked = {"id": message["id"]} if isinstance(message, dict) and "id" in message else {}
        try:
            return {**marked, **self._answered(message)}
        except RefusedMessageError as error:
            return {**marked, "answer": "error", "kind": error.kind, "words": str(error), **error.more}
        except ParameterError as error:
            return {**marked, "answer": "error", "kind": "bad-parameter", "words": in_short(str(error))}
        except (ModelSizeError, ModelError) as error:
            return {**marked, "answer": "error", "kind": "bad-model", "words": in_short(str(error))}

    def _answered(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise RefusedMessageError("bad-message", f"a message is an object, not {type(message).__name__}")
        name = message.get("do")
        if not isinstance(name, str) or name not in self._commands:
            others = instead_of(str(name), list(self._commands), f"commands: {', '.join(self._commands)}")
            raise RefusedMessageError("bad-message", f"a message cannot do {name!r}; {others}")
        return self._commands[name]({key: value for key, value in message.items() if key not in ("do", "id")})

    # ---- models and runs

    def _models(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("models", message)
        return {"answer": "models", "version": VERSION, "models": [_entry_as_json(entry) for entry in self.models.values()]}

    def _entry(self, name: Any) -> ModelEntry:
        if not isinstance(name, str) or name not in self.models:
            others = instead_of(str(name), list(self.models), f"models: {', '.join(self.models)}")
            raise RefusedMessageError("unknown-model", f"there is no model {name!r}; {others}")
        return self.models[name]

    def _start(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("start", message, model=str, parameters=dict, release=str, mutant=str)
        entry = self._entry(message.get("model"))
        self._run = Run(entry, _given(entry, message))
        return self._view({})

    def _open(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("open", message, address=str)
        if "address" not in message:
            raise RefusedMessageError("bad-message", "open needs an address")
        if message["address"].partition("~")[0] == IN_A_FILE:
            words = "this is the address of a run that a file has, and no model: open the file (kspec explore --run FILE)"
            raise RefusedMessageError("bad-address", words)
        name, written, steps, digest = parse(message["address"])
        if len(steps) > MOST_STEPS:
            raise RefusedMessageError(
                "bad-address", f"this address has {len(steps):,} steps; a run has {MOST_STEPS:,} at most"
            )
        entry = self._entry(name)
        run = Run(entry, parameters_from(entry, written))
        changed = _replay(run, steps)
        if changed is None and digest and digest != digest_of(run.model, run.state):
            words = "every step is possible, but the end is not the state that the address was made for"
            changed = {"at": run.position, "words": words}
        self._run = run
        return {**self._view({}), "changed": changed}

    @property
    def address(self) -> str | None:
        """The address of the run up to the present state, if there is a run."""
        return None if self._run is None else self._run.address()

    @property
    def _present(self) -> Run:
        if self._run is None:
            raise RefusedMessageError("no-run", "there is no run yet; start one, or open an address")
        return self._run

    def _view(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("view", message)
        run = self._present
        return {"answer": "view", **_shown(run), "moves": run.table.as_json(run.state)}

    # ---- going on

    def _step(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("step", message, index=int, action=str, args=dict, choice=int)
        run = self._present
        if run.position > MOST_STEPS:
            raise RefusedMessageError("too-long", f"a run has {MOST_STEPS:,} steps at most")
        move = _move(run, message)
        run.take(move, message.get("choice", 1))
        return self._view({})

    def _why(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("why", message, index=int, action=str, args=dict)
        run = self._present
        move = _move(run, message)
        enabled = bool(run.ways(move, run.state))
        told = {"answer": "why", **move_as_json(run.model, move, StateValues(run.state))}
        return told if enabled else {**told, "forbidden_by": run.obstacle(move, run.state)}

    def _undo(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("undo", message)
        if self._present.position == 1:
            raise RefusedMessageError("bad-position", "this is the initial state; there is no step to undo")
        self._present.position -= 1
        return self._view({})

    def _jump(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("jump", message, to=int)
        self._present.position = _position(self._present, "jump to", message.get("to"))
        return self._view({})

    def _diff(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("diff", message, **{"from": int})
        run = self._present
        number = _position(run, "diff from", message.get("from"))
        before = run.steps[number - 2].state if number > 1 else run.model.initial
        told = _changes(run, before, run.state)
        return {"answer": "diff", "from": number, "to": run.position, "changes": told}

    # ---- files

    def _export(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("export", message, **{"as": str})
        return file_of(self._present, message.get("as"))

    def _import(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("import", message, trace=dict)
        if is_results(message.get("trace")):
            return {"answer": "recording", "recording": as_recording(run_of_case(message["trace"]))}
        trace = trace_in(message.get("trace"))
        if len(trace.steps) > MOST_STEPS:
            raise RefusedMessageError(
                "bad-trace", f"this trace has {len(trace.steps):,} steps; a run has {MOST_STEPS:,} at most"
            )
        entry = self._entry(trace.model)
        run = Run(entry, _given(entry, {"parameters": trace.parameters}))
        changed = replay(run, trace)
        self._run = run
        return {**self._view({}), "changed": changed}

    # ---- searching and comparing

    def _find(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("find", message, property=str, states=int, start=str)
        run, prop = self._present, self._property(message.get("property"))
        most, start = message.get("states", USUAL_STATES), message.get("start", "initial")
        if most < 1:
            raise RefusedMessageError("bad-message", f"states {most}: must be 1 or more")
        if start not in ("initial", "here"):
            raise RefusedMessageError("bad-message", f"start {start!r}; choose from initial, here")
        model = run.model.starting_at(run.state) if start == "here" else run.model
        limits = Limits(max_states=most, report=self._watched_search, report_every=0.1)
        told: dict[str, Any] = {
            "answer": "found",
            "property": prop.name,
            "looked_for": "a violation" if prop.kind == "always" else "a state that it claims possible",
            "start": start,
        }
        try:
            result = self._explore(model, [prop], limits)
        except KeyboardInterrupt:  # before there is anything to tell of
            return {**told, "states": 0, "found": False, "complete": False, "stopped_because": INTERRUPTED}
        verdict = result.verdicts[0]
        told |= {
            "states": result.distinct_states,
            "found": verdict.trace is not None,
            "complete": result.complete or verdict.trace is not None,
            "stopped_because": None if verdict.trace is not None else result.stopped_because,
        }
        if verdict.trace is not None:
            way = run.named(verdict.trace)
            before = [step.named for step in run.steps[: run.position - 1]] if start == "here" else []
            told["steps"] = [step_as_json(step) for step in way]
            told["address"] = run.address([*before, *way], verdict.trace[-1].state)
        return told

    def _property(self, name: Any) -> Property:
        model = self._present.model
        found = model.property_named(name)
        if found is None:
            names = [prop.name for prop in model.properties]
            others = instead_of(str(name), names, f"properties: {', '.join(names)}")
            raise RefusedMessageError("unknown-property", f"model {model.name} has no property {name!r}; {others}")
        return found

    def _watched_search(self, progress: Progress) -> None:
        if self._report is not None:
            self._report({"answer": "progress", "level": progress.level, "states": progress.distinct_states})
        if self._cancelled is not None and self._cancelled():
            raise KeyboardInterrupt

    def _retrace(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields("retrace", message, address=str, model=str, parameters=dict, release=str, mutant=str)
        if not message:
            raise RefusedMessageError("bad-message", "retrace needs another model, release, mutant or parameters")
        run, other = self._present, self._under_other_rules(message)
        under = {**model_as_json(other.model), "words": parameters_in_words(other.model)}
        return {"answer": "retraced", "under": under, **retraced(run, other), "there": _shown(other)}

    def _differ(self, message: dict[str, Any]) -> dict[str, Any]:
        _check_fields(
            "differ", message, address=str, model=str, parameters=dict, release=str, mutant=str, until=str, states=int
        )
        until, most = message.pop("until", "state"), message.pop("states", USUAL_STATES)
        if until not in ("state", "verdict"):
            raise RefusedMessageError("bad-message", f"until {until!r}; choose from state, verdict")
        if most < 1:
            raise RefusedMessageError("bad-message", f"states {most}: must be 1 or more")
        run, other = self._present, self._under_other_rules(message)
        if until == "state" and [slot.label for slot in run.model.slots] != [slot.label for slot in other.model.slots]:
            raise RefusedMessageError(
                "bad-message", "the two have different slots, so each of their states differs; look until verdict"
            )
        search = DifferenceSearch(run, other, until == "verdict", most)
        try:
            found, stopped = search.search(self._watched_pairs), None
        except KeyboardInterrupt:
            found, stopped = None, INTERRUPTED
        if found is None and not search.complete:
            stopped = stopped or f"the limit of {most:,} states is reached"
        told: dict[str, Any] = {
            "answer": "found",
            "looked_for": "a difference between the two states"
            if until == "state"
            else "a property violated on one side only",
            "start": "initial",
            "states": len(search.ways),
            "found": found is not None,
            "complete": search.complete or found is not None,
            "stopped_because": stopped,
        }
        if found is not None:
            way, end = found
            told["steps"] = [step_as_json(step) for step in way]
            told["address"] = run.address(way, end)
        return told

    def _watched_pairs(self, depth: int, pairs: int) -> None:
        self._watched_search(Progress(depth, pairs, 0, 0))

    def _under_other_rules(self, message: Mapping[str, Any]) -> Run:
        """The initial state under other rules; parameters that the message leaves out are as they are.

        `address` is the start of an address: the model, and what is other in its parameters.
        """
        run = self._present
        if "address" in message:
            if len(message) > 1:
                raise RefusedMessageError("bad-message", "other rules are told by an address, or by fields")
            name, written, steps, _ = parse(message["address"])
            if steps:
                raise RefusedMessageError("bad-address", "the address of other rules has no steps: the run has them")
            entry = self._entry(name)
            given = parameters_from(entry, written)
        else:
            entry = self._entry(message.get("model", run.entry.name))
            given = _given(entry, message)
        given = {**present_parameters(run, entry), **given}
        key = f"{entry.name} {sorted(given.items())}"
        if self._other is None or self._other[0] != key:
            self._other = key, Run(entry, given)
        other = self._other[1]
        other.position = 1
        return other


def _shown(run: Run) -> dict[str, Any]:
    """The present state of a run, and all that a view has but the moves."""
    address = run.address()
    return {
        "run": {**model_as_json(run.model), "words": parameters_in_words(run.model)},
        "position": run.position,
        "length": len(run.steps) + 1,
        "address": address,
        "whole": address if run.position > len(run.steps) else run.whole_address(),
        "steps": [step.described for step in run.steps],
        "state": state_as_tree(run.model, run.state),
        "step": _last_step(run),
        "properties": run.watch.as_json(run.states),
    }


def _move(run: Run, message: Mapping[str, Any]) -> MoveEntry:
    """The move that a message names."""
    if ("index" in message) == ("action" in message) or ("index" in message and "args" in message):
        raise RefusedMessageError("bad-message", "a move is named by an index, or an action with its args")
    if "index" in message:
        number: int = message["index"]
        moves = list(run.moves.values())
        if not 0 <= number < len(moves):
            raise RefusedMessageError("unknown-action", f"index {number}: must be from 0 to {len(moves) - 1}")
        return moves[number]
    return run.move(message["action"], arguments_from(message.get("args", {})))


def _position(run: Run, what: str, number: int | None) -> int:
    last = len(run.steps) + 1
    if number is None or not 1 <= number <= last:
        raise RefusedMessageError("bad-position", f"{what} {number}: must be a state from 1 to {last}")
    return number


def _changes(run: Run, before: State, after: State) -> list[dict[str, str]]:
    return [
        {"slot": slot.label, "party": party_name(owner(slot)), "before": old, "after": new}
        for slot, old, new in changes(run.model, before, after)
    ]


def _last_step(run: Run) -> dict[str, Any] | None:
    """The step that led to the present state: what it changed, and the rules that it called."""
    if run.position == 1:
        return None
    step, before = run.steps[run.position - 2], run.states[-2]
    return {
        **step.described,
        "changes": _changes(run, before, step.state),
        "rules": [rule_as_json(rule, run.entry) for rule in rules_of_step(step.action, before)],
    }


def _replay(run: Run, steps: tuple[AddressStep, ...]) -> dict[str, Any] | None:
    """Take the steps of an address as far as they are possible. The result says what has changed since it was made."""
    for step in steps:
        try:
            run.take(run.move(step.action, dict(step.args)), step.choice)
        except RefusedMessageError as error:
            number = run.position + 1
            return {"at": number, "words": f"step {number} of the address: {error}", "kind": error.kind, **error.more}
    return None


def _entry_as_json(entry: ModelEntry) -> dict[str, Any]:
    """A model that can be started. Its repairs and mutants are values of its parameters, told with what they mean."""
    releases = next((parameter.choices for parameter in entry.parameters if parameter.name == "release"), ())
    return {
        "name": entry.name,
        "summary": entry.summary,
        "parameters": [parameter.as_json() for parameter in entry.parameters],
        "releases": list(releases),
        "mutants": mutants_of(entry),
        "repairs": dict(entry.quirks),
    }


def _given(entry: ModelEntry, message: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a message gives, release and mutant among them; the model checks their values."""
    names = parameter_names(entry)
    written = dict(message.get("parameters", {}))
    for name in ("release", "mutant"):
        if name in message:
            if name in written:
                raise RefusedMessageError("bad-message", f"{name} is given twice")
            written[name] = message[name]
    for name in written:
        if name not in names:
            others = instead_of(name, list(names), "the list of models has all of them")
            raise RefusedMessageError("bad-parameter", f"model {entry.name} has no parameter {name!r}; {others}")
    known = {parameter.name: parameter for parameter in entry.parameters}
    return {names[name]: parameter_from_json(known[names[name]], value) for name, value in written.items()}


def _check_fields(command: str, message: Mapping[str, Any], **known: type) -> None:
    """Refuse fields that the command does not have, or of another type. A `mutant` may be null: none."""
    for name, value in message.items():
        if name not in known:
            has = f"{command} takes {', '.join(known)}" if known else f"{command} takes nothing more"
            raise RefusedMessageError("bad-message", f"{command} has no field {name!r}; {has}")
        if name == "mutant" and value is None:
            continue
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise RefusedMessageError("bad-message", f"{name} of {command} must be {KINDS[known[name]]}, not {value!r}")
