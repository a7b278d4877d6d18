"""Runs in files: ITF, or what `kspec check MODEL --json` prints. Only the names and arguments of actions are taken."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class NoRunInFileError(ValueError):
    """A file without a run of a model: one line says why."""


class RunInFile(NamedTuple):
    """The parameters of a model by name, as a file says them, and the actions with their arguments."""

    parameters: Mapping[str, Any]
    actions: tuple[tuple[str, Mapping[str, Any]], ...]


def run_in(path: Path, model: str) -> RunInFile:
    """The run in a file. Raises: `NoRunInFileError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoRunInFileError(f"{path}: {error}") from error
    steps = list(_steps_in(document, model)) if isinstance(document, dict) else []
    if not steps:
        raise NoRunInFileError(f"{path} has no run: it must be ITF, or what `kspec check {model} --json` prints")
    given = (document.get("#meta") or document).get("parameters", {})
    parameters = {name.replace("-", "_"): value for name, value in given.items()}
    return RunInFile(parameters, tuple((step["action"], step["args"]) for step in steps))


def _steps_in(document: Mapping[str, Any], model: str) -> Iterator[Mapping[str, Any]]:
    if "states" in document:
        yield from document["states"][1:]
    elif document.get("model") == model:
        found = [one["trace"] for one in document.get("properties", ()) if one.get("trace")]
        yield from (step for trace in found[:1] for step in trace[1:])
