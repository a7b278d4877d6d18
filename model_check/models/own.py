"""Models of a user's own: `FILE.py:NAME` is the model called NAME in a file. The package is not edited for it."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from kspec.model_check.core.model import Model, ModelError, Slot
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.models import ModelEntry


class OwnModelError(ModelError):
    """A file that cannot be read or run, or that has no such model. The message is one line and names the file."""


def is_own(text: str) -> bool:
    """Whether this names a model in a file, and not one of ours."""
    return ".py:" in text or (text.endswith(".py") and not text.startswith("-"))


def own_entry(text: str) -> ModelEntry:
    """The model that `FILE.py:NAME` names: a `ModelEntry`, a `Model`, or a function without arguments that returns one.

    The file is run, once. `OwnModelError` says why there is no such model.
    """
    file, _, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    path = Path(file)
    module = _module_of(path)
    models = [known for known, value in vars(module).items() if isinstance(value, ModelEntry | Model)]
    has = f"; it has {', '.join(models)}" if models else ""
    if not name:
        raise OwnModelError(f"{text}: say which model of the file: {path}:{models[0] if models else 'NAME'}{has}")
    if name not in vars(module):
        raise OwnModelError(f"{path} has no {name!r}{has}")
    found = vars(module)[name]
    if isinstance(found, ModelEntry):
        return found._replace(builder=_checked(text, path, found.builder))
    if isinstance(found, Model):
        return ModelEntry(found.name, text, (), {}, _checked(text, path, lambda parameters: found))
    if callable(found) and not isinstance(found, type):
        return ModelEntry(name, text, (), {}, _checked(text, path, lambda parameters: found()))
    raise OwnModelError(
        f"{text} is of type {type(found).__qualname__}, and no model: it must be a Model, a ModelEntry, or a function that"
        f" returns a Model{has}"
    )


def _module_of(path: Path) -> ModuleType:
    """The file as a module, under its own name: so values of its classes can be written, and read in other processes."""
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and _is_file(known, path):
        return known
    if not path.is_file():
        raise OwnModelError(f"{path}: there is no such file")
    installed = known or importlib.util.find_spec(name) if name.isidentifier() else None
    if installed is not None and not _is_file(installed, path):
        raise OwnModelError(f"{path}: there is a module called {name} already; give the file another name")
    described = importlib.util.spec_from_file_location(name, path.resolve())
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules[name] = module
    _FOLDERS.add(path.resolve().parent)
    try:
        described.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise OwnModelError(f"{path} {_raised(error, path)}") from error
    return module


_FOLDERS: set[Path] = set()
"""The folders of the files that have been run."""


def raised_by_own(error: BaseException) -> str | None:
    """The error that a function of a user's file has raised, and its place, in one line; `None` for an error that is not of
    such a file.

    Engines call rules, properties, views and words, so the line is the innermost one that is not of these packages or of
    Python's libraries.
    """
    chain, seen = [error], {id(error)}
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and id(cause) not in seen:
        chain.append(cause)
        seen.add(id(cause))
    for one in chain:
        frames = [frame for frame in traceback.extract_tb(one.__traceback__) if _is_own_file(frame.filename)]
        place = (frames[-1].filename, frames[-1].lineno, frames[-1].name) if frames else _called_wrongly(one)
        if place is not None:
            file, line, name = place
            text = " ".join(str(one).split())
            what = f"{type(one).__qualname__}{f': {text}' if text else ''}"
            return f"{_from_here(Path(file))}, line {line}, {name} raises {what}"
    return None


def _called_wrongly(error: BaseException) -> tuple[str, int, str] | None:
    """The function of a user's that could not be called, with as many values as it declares to read."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, TypeError) or not frames:
        return None
    for value in frames[-1].f_locals.values():
        code = getattr(value.func if isinstance(value, partial) else value, "__code__", None)
        if code is not None and _is_own_file(code.co_filename) and code.co_name in str(error):
            return code.co_filename, code.co_firstlineno, code.co_name
    return None


def _is_own_file(name: str) -> bool:
    path = Path(name)
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return not installed and not path.is_relative_to(OURS) and any(path.is_relative_to(folder) for folder in _FOLDERS)


OURS = Path(__file__).parents[1]
"""The package that calls the functions of users."""


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _is_file(module: Any, path: Path) -> bool:
    """Whether a module, or the description of one, is this file."""
    origin = getattr(module, "__file__", None) or getattr(module, "origin", None)
    return origin is not None and Path(origin).resolve() == path.resolve()


def _raised(error: BaseException, path: Path) -> str:
    """The error that was raised, and its line of the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())]
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        lines = [error.lineno]
        return f"is no Python, line {error.lineno}: {error.msg}"
    where = f" in line {lines[-1]}" if lines else ""
    text = " ".join(str(error).split())
    return f"raises {type(error).__qualname__}{where}{f': {text}' if text else ''}"


def _checked(text: str, path: Path, builder: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Model]:
    """The builder; whatever goes wrong is said in one line that begins with `text`."""

    def build(parameters: dict[str, Any]) -> Model:
        try:
            model = builder(parameters)
        except (ParameterError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise OwnModelError(f"{text} {_raised(error, path)}") from error
        if not isinstance(model, Model):
            raise OwnModelError(f"{text} gives a {type(model).__qualname__}, and no Model")
        for slot in _slots_used(model):
            if slot.position >= len(model.slots) or model.slots[slot.position] is not slot:
                raise OwnModelError(f"{text}: slot {slot.label} is used by a rule, and is no slot of model {model.name}")
        try:
            model.check_properties()
        except ModelError as error:
            raise OwnModelError(f"{text}: {error}") from error
        source = str(path.resolve())
        if source not in model.files:
            model.files = (*model.files, source)
        return model

    return build


def _slots_used(model: Model) -> set[Slot]:
    """All slots that rules read or write."""
    terms = [term for prop in model.properties for term in prop.terms]
    cases = [case for prop in model.liveness for case in prop.cases]
    terms += [term for case in cases for condition in (case.premise, case.goal) for group in condition for term in group]
    used = {slot for term in (*terms, *model.constraint) for slot in term.slots}
    return used.union(*(action.reads | action.writes for action in model.actions))
