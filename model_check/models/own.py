"""Models of a user's own: `FILE.py:NAME` is the model called NAME in a file. The package is not edited for it."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from model_check.core.model import Model, ModelError, Slot
from model_check.core.parameters import ParameterError
from model_check.models import ModelEntry


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
    try:
        described.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise OwnModelError(f"{path} {_raised(error, path)}") from error
    return module


def _is_file(module: Any, path: Path) -> bool:
    """Whether a module, or the description of one, is this file."""
    origin = getattr(module, "__file__", None) or getattr(module, "origin", None)
    return origin is not None and Path(origin).resolve() == path.resolve()


def _raised(error: BaseException, path: Path) -> str:
    """What was raised, and in which line of the file."""
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
