"""One-line changes of the carrier that brokers run: every comparison, bound and number in two files, one at a time."""

import ast
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from kspec.spec.log import epoch_history, epoch_log

SOURCES = (epoch_history, epoch_log)

OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq,),
}
OTHER_NAMES = {"bisect_left": "bisect_right", "bisect_right": "bisect_left", "min": "max", "max": "min"}

OTHER_END = {"start_offset": "end_offset", "end_offset": "start_offset"}
CHANGING = ("assign", "truncate_from_end", "truncate_from_start")
"""Operations that may be left out."""


class Change(NamedTuple):
    """A change of one place: the file, the function, the line as it is, and as it becomes."""

    module: str
    function: str
    before: str
    after: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The change in words."""
        return f"{self.function}: {self.before} -> {self.after}"


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for cls in tree.body:
        if isinstance(cls, ast.ClassDef):
            for function in cls.body:
                if isinstance(function, ast.FunctionDef):
                    yield f"{cls.name}.{function.name}", function


def _places(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        if not isinstance(statement, ast.Assert):
            yield from ast.walk(statement)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Replacements for a node."""
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            for other in OTHER_COMPARISONS.get(type(operator), ()):
                changed = deepcopy(node)
                changed.ops[position] = other()
                yield changed
    elif isinstance(node, ast.Name) and node.id in OTHER_NAMES:
        yield ast.Name(OTHER_NAMES[node.id], node.ctx)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
        yield node.left
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield from node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Starred):
        yield ast.Starred(ast.Tuple([], ast.Load()), ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_END and _is_a_log(node.value):
        yield ast.Attribute(node.value, OTHER_END[node.attr], node.ctx)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        yield node.func.value


def _is_a_log(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "other")


def changes() -> Iterator[Change]:
    """Every change, with the file as it becomes."""
    for module in SOURCES:
        assert module.__file__ is not None
        text = Path(module.__file__).read_text()
        original = ast.parse(text)
        for name, function in _functions(original):
            for number, node in enumerate(_places(function)):
                for other in _replacements(node):
                    tree = deepcopy(original)
                    place = list(_places(dict(_functions(tree))[name]))[number]
                    replaced = _Replace(place, other)
                    tree = ast.fix_missing_locations(replaced.visit(tree))
                    yield Change(module.__name__, name, ast.unparse(node), ast.unparse(other), tree)
        for name, function in _functions(original):
            for number, statement in enumerate(ast.walk(function)):
                if isinstance(statement, ast.If):
                    tree = deepcopy(original)
                    found = list(ast.walk(dict(_functions(tree))[name]))[number]
                    assert isinstance(found, ast.If)
                    found.test = ast.Constant(False)
                    shown = f"if {ast.unparse(statement.test)}"
                    yield Change(module.__name__, name, shown, "if False", ast.fix_missing_locations(tree))


class _Replace(ast.NodeTransformer):
    def __init__(self, place: ast.AST, other: ast.AST) -> None:
        self.place, self.other = place, other

    def visit(self, node: ast.AST) -> Any:
        return self.other if node is self.place else self.generic_visit(node)


MOST_STEPS = 1_000
"""So often may the loops of a changed carrier go round; a change may make a loop that has no end."""


class EndlessLoopError(Exception):
    """A loop has gone round too often."""


class _Counter:
    def __init__(self) -> None:
        self.left = MOST_STEPS * 1_000

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            self.left = MOST_STEPS
            raise EndlessLoopError


class _CounterOfChanges(ast.NodeTransformer):
    """Each round of a loop calls `_count`."""

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, ast.parse("_count()").body[0])
        return node


class ChangedCarrier(NamedTuple):
    """The two modules, one of them with a change."""

    history: ModuleType
    log: ModuleType


def carrier_with(module: str, tree: ast.Module) -> ChangedCarrier:
    """The carrier with one of its files changed: modules of their own, so that nobody else sees the change."""
    history, log = ModuleType(epoch_history.__name__), ModuleType(epoch_log.__name__)
    for made, original in ((history, epoch_history), (log, epoch_log)):
        assert original.__file__ is not None
        source = deepcopy(tree) if original.__name__ == module else ast.parse(Path(original.__file__).read_text())
        source = ast.fix_missing_locations(_CounterOfChanges().visit(source))
        made.__dict__["_count"] = _Counter()
        if made is log:  # it is to use the changed history
            source.body = [one for one in source.body if not _imports_history(one)]
            made.__dict__["EpochHistory"] = history.__dict__["EpochHistory"]
        with _in_place_of(original.__name__, made):
            exec(compile(source, original.__file__, "exec"), made.__dict__)
    return ChangedCarrier(history, log)


class _in_place_of:  # noqa: N801 (used as a function)
    """Within it, a module is found by this name: dataclasses and named tuples look theirs up."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name, self.module = name, module

    def __enter__(self) -> None:
        self.before = sys.modules[self.name]
        sys.modules[self.name] = self.module

    def __exit__(self, *_: object) -> None:
        sys.modules[self.name] = self.before


def _imports_history(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == epoch_history.__name__
