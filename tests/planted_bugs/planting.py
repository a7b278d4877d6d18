"""Planting of a bug: one place of one function is changed, and the function's code replaced while the bug lasts."""

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tests.planted_bugs import constants
from tests.planted_bugs.by_hand import BY_HAND
from tests.planted_bugs.folding import folded
from tests.planted_bugs.hints import Hints
from tests.planted_bugs.operators import OPERATORS


class PlantedBug(NamedTuple):
    """In a function (module below `spec`, a colon, its name), an operator puts `after` in the place of `before`."""

    function: str
    line: int
    operator: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.function}, line {self.line}, {self.operator}: {self.before} -> {self.after}"


def modules_of(room: str) -> list[str]:
    """The modules of a room, which is a module below `spec` or a folder of such: `coordinator`, `log.epoch_history`."""
    found = import_module(f"kspec.spec.{room}")
    if not hasattr(found, "__path__"):
        return [room]
    inner = pkgutil.walk_packages(found.__path__, f"kspec.spec.{room}.")
    return [one.name.removeprefix("kspec.spec.") for one in inner if not one.ispkg]


def bugs_in(module_name: str) -> Iterator[PlantedBug]:
    """All bugs of a module below `spec`, such as `coordinator.offsets`."""
    module = import_module(f"kspec.spec.{module_name}")
    for name, function in functions_of(module):
        yield from bugs_of(f"{module_name}:{name}", function)
    for name, line, value in constants.constants_of(module):
        for after, _ in constants.others(value):
            yield PlantedBug(
                f"{module_name}:{name}", line, constants.OPERATOR, _short(repr(value))[:60], _short(after), after
            )


def functions_of(module: Any) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that are written in a module, by their names."""
    for name, found in vars(module).items():
        if isinstance(found, FunctionType) and found.__module__ == module.__name__ and found.__name__ == name:
            yield name, found
        elif isinstance(found, type) and found.__module__ == module.__name__:
            for inner, method in vars(found).items():
                plain = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
                if not isinstance(plain, FunctionType) or plain.__qualname__ != f"{name}.{inner}":
                    continue
                if plain.__code__.co_filename == module.__file__ and not plain.__closure__:
                    yield f"{name}.{inner}", plain


def bugs_of(path: str, function: FunctionType) -> Iterator[PlantedBug]:
    """All bugs of a function; `path` is what they call it."""
    source = textwrap.dedent(inspect.getsource(function))
    content = source.encode()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def text(node: ast.AST) -> str:
        begin, end = span(node)
        return content[begin:end].decode()

    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    hints = Hints(function, definition)
    first_line = function.__code__.co_firstlineno
    for before, after in BY_HAND.get(path, ()):
        assert source.count(before) == 1, f"{source.count(before)} places to put {after} in {path}"
        at = first_line + source[: source.index(before)].count("\n")
        yield PlantedBug(path, at, "by_hand", _short(before), _short(after), source.replace(before, after))
    known = {folded(source)}
    for statement in definition.body:
        for node in _read_in(statement):
            for operator in OPERATORS:
                for changed, after in operator(node, text, hints):
                    begin, end = span(changed)
                    new = (content[:begin] + after.encode() + content[end:]).decode()
                    try:
                        same_as = folded(new)
                    except SyntaxError:
                        continue
                    if same_as not in known:
                        known.add(same_as)
                        at = first_line + changed.lineno - 1  # type: ignore[attr-defined]
                        yield PlantedBug(path, at, operator.__name__, _short(text(changed)), _short(after), new)


def _read_in(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but annotations, which nothing reads."""
    yield node
    for name, value in ast.iter_fields(node):
        if name != "annotation":
            for inner in value if isinstance(value, list) else (value,):
                if isinstance(inner, ast.AST):
                    yield from _read_in(inner)


def _short(text: str) -> str:
    return " ".join(text.split())


def function_of(path: str) -> FunctionType:
    """The function that a path names, such as `coordinator.group:Group.member`."""
    module, _, name = path.partition(":")
    return dict(functions_of(import_module(f"kspec.spec.{module}")))[name]


def code_with(bug: PlantedBug) -> CodeType:
    """The code of the function with the bug in it."""
    function, names = function_of(bug.function), {}  # type: FunctionType, dict[str, Any]
    source = "from __future__ import annotations\n" + bug.source[bug.source.index("def ") :]
    exec(compile(source, f"<{bug}>", "exec"), function.__globals__, names)
    planted = names[function.__name__]
    assert isinstance(planted, FunctionType)
    return planted.__code__


@contextmanager
def planted(bug: PlantedBug) -> Iterator[None]:
    """While the block runs, everybody who calls the function, or reads the constant, gets the bug."""
    if bug.operator == constants.OPERATOR:
        module, _, name = bug.function.partition(":")
        with constants.changed(import_module(f"kspec.spec.{module}"), name, bug.source):
            yield
        return
    function = function_of(bug.function)
    sound, function.__code__ = function.__code__, code_with(bug)
    try:
        yield
    finally:
        function.__code__ = sound
