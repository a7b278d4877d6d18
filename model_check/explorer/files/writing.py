"""A run as a file: a trace in a format that others read, or a text that opens it again."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from kspec.model_check.explorer.errors import RefusedMessageError
from kspec.model_check.explorer.marks import remarks_of
from kspec.model_check.explorer.run import Run
from kspec.model_check.traces.encode import trace_as_json
from kspec.model_check.traces.itf import as_itf
from kspec.model_check.traces.mermaid import sequence_diagram
from kspec.model_check.traces.parameters import model_as_json, parameters_in_words

SNIPPET = '''"""A run of {model}, replayed: {words}."""

from kspec.model_check.models import MODELS
from kspec.model_check.traces.render import changes, party_name, owner

PARAMETERS = {parameters}
STEPS = [
{steps}]
"""Each step: the action, its arguments, and which way it is taken where there are several."""

model = MODELS[{model!r}].build(PARAMETERS)
state = model.initial
for number, (name, args, way) in enumerate(STEPS, start=2):
    actions = [action for action in model.actions if action.name == name and action.args == args]
    found = dict.fromkeys(after for action in actions if (after := action.bind()(state)) is not None)
    ways = [after for after in found if all(term.bind()(after) for term in model.constraint)]
    before, state = state, ways[way - 1]
    print(number, name, args)
    for slot, old, new in changes(model, before, state):
        print("   ", party_name(owner(slot)), slot.label, old, "->", new)
    for prop in model.properties:
        if prop.kind == "always" and not prop.bind()(state):
            print("    violated:", prop.name)
'''


def file_of(run: Run, kind: Any) -> dict[str, Any]:
    """The run up to its position as a file: its name, media type and text. `RefusedMessageError` for another kind."""
    if not isinstance(kind, str) or kind not in WRITERS:
        raise RefusedMessageError("bad-message", f"a run is exported as {', '.join(WRITERS)}, not {kind!r}")
    ending, media_type, write = WRITERS[kind]
    name = f"{run.model.name}-{run.position}-states{ending}"
    return {"answer": "file", "as": kind, "name": name, "type": media_type, "text": write(run)}


def _itf(run: Run) -> str:
    description = f"a run of {run.model.name}: {parameters_in_words(run.model)}"
    return json.dumps(as_itf(run.model, run.trace, description), indent=1) + "\n"


def _mermaid(run: Run) -> str:
    asked = [prop.name for prop in run.model.properties if prop.by_default]
    return sequence_diagram(run.model, run.trace, remarks_of, asked)


def _json(run: Run) -> str:
    told = {**model_as_json(run.model), "address": run.address(), "trace": trace_as_json(run.model, run.trace)}
    return json.dumps(told, indent=1) + "\n"


def _python(run: Run) -> str:
    taken = [step.named for step in run.steps[: run.position - 1]]
    steps = "".join(f"    ({step.action!r}, {dict(step.args)!r}, {step.choice}),\n" for step in taken)
    return SNIPPET.format(
        model=run.model.name,
        words=parameters_in_words(run.model),
        parameters=dict(run.model.parameters),
        steps=steps,
    )


def _command(run: Run) -> str:
    return f"kspec explore '{run.address()}'\n"


WRITERS: Mapping[str, tuple[str, str, Callable[[Run], str]]] = {
    "itf": (".itf.json", "application/json", _itf),
    "mermaid": (".mmd", "text/plain", _mermaid),
    "json": (".json", "application/json", _json),
    "python": (".py", "text/x-python", _python),
    "command": (".sh", "text/x-sh", _command),
}
"""The formats that a run is written in: the ending of the file's name, its media type, and the function."""
