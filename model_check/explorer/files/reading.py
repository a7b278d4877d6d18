"""A trace in a file, read as a run: ITF, JSON of `kspec check`, or a run that was exported as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.model import Argument, Model, State
from kspec.model_check.explorer.errors import RefusedMessageError
from kspec.model_check.explorer.run import Run
from kspec.model_check.traces.encode import state_as_json
from kspec.model_check.traces.itf import variables_of


class FileStep(NamedTuple):
    """A step of a trace in a file, and the state after it as the file has it."""

    action: str
    args: Mapping[str, Any]
    state: Mapping[str, Any]


class TraceFile(NamedTuple):
    """A trace in a file: its model, parameters as messages have them, and steps; `itf` says how states are written."""

    model: str
    parameters: Mapping[str, Any]
    steps: tuple[FileStep, ...]
    itf: bool


def trace_in(document: Any) -> TraceFile:
    """The trace that a JSON document has. `RefusedMessageError` says what is missing in it."""
    if not isinstance(document, dict):
        raise _wrong(f"it is {type(document).__name__}, and no object")
    itf = isinstance(document.get("#meta"), dict) and isinstance(document.get("states"), list)
    head = document["#meta"] if itf else document
    name, parameters = head.get("model"), head.get("parameters")
    if not isinstance(name, str) or not isinstance(parameters, dict):
        where = "the #meta of this ITF file has" if itf else "it has"
        raise _wrong(f"{where} no model and parameters, so nobody knows whose run it is; files of kspec 0.1 and later do")
    return TraceFile(name, parameters, tuple(_steps(document["states"] if itf else _shown_trace(document), itf)), itf)


def _shown_trace(document: Mapping[str, Any]) -> list[Any]:
    """The trace of an exported run, or the first counterexample of a report; without one its first witness."""
    if isinstance(document.get("trace"), list):
        trace: list[Any] = document["trace"]
        return trace
    told = document.get("properties")
    properties = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    shown = [one for one in properties if isinstance(one.get("trace"), list)]
    shown.sort(key=lambda one: one.get("kind") != "always")
    if not shown:
        raise _wrong("it has no trace: neither its own nor one of a property")
    first: list[Any] = shown[0]["trace"]
    return first


def _steps(states: list[Any], itf: bool) -> Iterator[FileStep]:
    for number, entry in enumerate(states, start=1):
        if not isinstance(entry, dict) or "action" not in entry or not isinstance(entry.get("args", {}), dict):
            raise _wrong(f"state {number} does not say by which action it was reached")
        if number == 1:
            continue
        written = {name: value for name, value in entry.items() if name not in ("#meta", "action", "args")}
        state = written if itf else entry.get("state", {})
        yield FileStep(str(entry["action"]), entry.get("args", {}), state if isinstance(state, dict) else {})


def replay(run: Run, trace: TraceFile) -> dict[str, Any] | None:
    """Take the steps of a trace as far as they are possible; the result says what has changed since it was written.

    Where a step leads to several states, the one that the file has is taken.
    """
    changed: dict[str, Any] | None = None
    for step in trace.steps:
        number = run.position + 1
        try:
            move = run.move(step.action, arguments_from(step.args))
            ways = [after for _, after in run.ways(move, run.state)]
            same = [way for way, after in enumerate(ways, start=1) if _is(run.model, after, step.state, trace.itf)]
            run.take(move, same[0] if same else 1)
        except RefusedMessageError as error:
            return {"at": number, "words": f"step {number} of the trace: {error}", "kind": error.kind, **error.more}
        if not same and step.state and changed is None:
            changed = {"at": number, "words": f"step {number} of the trace leads to another state than in the file"}
    return changed


def _is(model: Model, state: State, written: Mapping[str, Any], itf: bool) -> bool:
    return bool((variables_of if itf else state_as_json)(model, state) == written)


def arguments_from(args: Mapping[str, Any]) -> dict[str, Argument]:
    """Arguments of an action as the model has them: whole numbers, and lists of these."""
    found: dict[str, Argument] = {}
    for name, value in args.items():
        members = value if isinstance(value, list) else [value]
        if not all(isinstance(member, int) and not isinstance(member, bool) for member in members):
            raise RefusedMessageError("bad-argument", f"{name} {value!r}: must be a whole number, or a list of them")
        found[name] = tuple(members) if isinstance(value, list) else members[0]
    return found


def _wrong(what: str) -> RefusedMessageError:
    return RefusedMessageError("bad-trace", f"this trace cannot be read: {what}")
