"""The types in a function, as far as annotations tell them: what is put in another's place should fit."""

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NewType, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from kspec.spec.step import Step

CONTAINERS = (tuple, frozenset, set, list)


class Hints:
    """The types of parameters, of assigned names, of fields and of calls in a function; `None` where they are not known."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef) -> None:
        self.globals = function.__globals__
        self.names: dict[str, Any] = _hints_of(function)
        self.names.pop("return", None)
        holder = self.globals.get(function.__qualname__.partition(".")[0])
        if isinstance(holder, type) and definition.args.args:
            self.names.setdefault(definition.args.args[0].arg, holder)
        self.lines = dict.fromkeys(self.names, 0)
        for node in ast.walk(definition):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._note(node.targets[0].id, self.of(node.value), node.lineno)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                for target in node.targets[0].elts:
                    self._note(ast.unparse(target), None, node.lineno)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self._note(node.target.id, self.of(node.value) if node.value else None, node.lineno)
        self.read = [
            (ast.unparse(node), self.of(node), self.lines[_root(node)])
            for node in ast.walk(definition)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _root(node) in self.lines
        ]

    def _note(self, name: str, hint: Any, line: int) -> None:
        self.lines.setdefault(name, line)
        if hint is not None:
            self.names.setdefault(name, hint)

    def named(self, node: ast.AST) -> Any:
        """The object that a name or a chain of names stands for in the module, `None` if it is known only when it runs."""
        if isinstance(node, ast.Name):
            return None if node.id in self.lines else self.globals.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            held = self.named(node.value)
            return None if held is None else getattr(held, node.attr, None)
        return None

    def of(self, node: ast.AST) -> Any:
        """The type of an expression."""
        if isinstance(node, ast.Name):
            if node.id in self.lines:
                return self.names.get(node.id)
            known = self.named(node)
            return type(known) if known is not None and not callable(known) else None
        if isinstance(node, ast.Constant):
            return type(node.value)
        if isinstance(node, ast.Attribute):
            return fields_of(self.of(node.value)).get(node.attr)
        if isinstance(node, ast.Call):
            return self.returned(node)
        if isinstance(node, ast.IfExp):
            return self.of(node.body) or self.of(node.orelse)
        if isinstance(node, ast.BinOp):
            return self.of(node.left)
        if isinstance(node, ast.Compare):
            return bool
        return None

    def returned(self, call: ast.Call) -> Any:
        """The type of what a call returns."""
        if isinstance(call.func, ast.Attribute):
            held = self.of(call.func.value)
            if call.func.attr == "_replace":
                return held
            hint = fields_of(held).get(call.func.attr)
            if hint is not None:
                called = vars(hint).get("__call__") if isinstance(hint, type) else None
                return (
                    _hints_of(called).get("return") if isinstance(called, FunctionType) else (get_args(hint) or (None,))[-1]
                )
            method = getattr(_class_of(held), call.func.attr, None)
            if isinstance(method, FunctionType):
                returned = _hints_of(method).get("return")
                return held if returned is Self else returned
        called = self.named(call.func)
        if isinstance(called, NewType | type):
            return called
        return _hints_of(called).get("return") if isinstance(called, FunctionType) else None

    def optional_arguments(self, call: ast.Call) -> Iterator[ast.AST]:
        """The arguments of a call that could be left out, since they have a default."""
        called = self.named(call.func)
        if not isinstance(called, FunctionType | type) or called.__module__ == "builtins":
            return
        try:
            parameters = list(inspect.signature(called).parameters.values())
        except ValueError:
            return
        optional = {one.name for one in parameters if one.default is not inspect.Parameter.empty}
        known = parameters[: len(call.args)]
        if known and not call.keywords and len(known) == len(call.args) and known[-1].name in optional:
            yield call.args[-1]
        for keyword in call.keywords:
            if keyword.arg in optional:
                yield keyword

    def is_number(self, node: ast.AST) -> bool:
        """Whether an expression is an offset, an epoch, a time or another number."""
        hint = self.of(node)
        return hint is int or getattr(hint, "__supertype__", None) is int

    def same(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two expressions have the same type, and it is known."""
        return is_same(self.of(one), self.of(other))

    def fits(self, node: ast.AST, hint: Any) -> bool:
        """Whether an expression has a type."""
        return is_same(self.of(node), hint)

    def makes_step(self, call: ast.Call) -> bool:
        """Whether a function is called whose outcome is a step."""
        return "Step" in self.globals and self.named(call.func) is not Step and _class_of(self.returned(call)) is Step

    def is_state(self, node: ast.AST, step: Any) -> bool:
        """Whether an expression may be the state in a step of this type."""
        return bool(get_args(step)) and is_same(self.of(node), get_args(step)[0])

    def is_tuple(self, node: ast.AST) -> bool:
        """Whether an expression is a tuple of any length."""
        return _class_of(self.of(node)) is tuple

    def empty(self, node: ast.AST) -> list[str]:
        """The empty value of an expression's type, if it is a collection."""
        return {tuple: ["()"], frozenset: ["frozenset()"]}.get(_class_of(self.of(node)), [])

    def alike(self, node: ast.Name | ast.Attribute) -> list[str]:
        """Expressions known before the line of another and of its type: names, their fields, what is read elsewhere."""
        hint = self.of(node)
        if hint is None or hint in (bool, str, type(None)):
            return []
        found = [text for text, other, line in self.read if line < node.lineno and is_same(other, hint)]
        for name, line in self.lines.items():
            if line < node.lineno:
                held = self.names.get(name)
                if is_same(held, hint):
                    found.append(name)
                found += [f"{name}.{field}" for field, other in fields_of(held).items() if is_same(other, hint)]
        return list(dict.fromkeys(found))

    def other_fields(self, node: ast.Attribute) -> list[str]:
        """The fields of the same type beside a field."""
        fields = fields_of(self.of(node.value))
        hint = fields.get(node.attr)
        return [name for name, other in fields.items() if name != node.attr and is_same(hint, other)]


def _root(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return _root(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def is_same(one: Any, other: Any) -> bool:
    """Whether two types are the same; parameters of classes are not looked at."""
    if one is None or other is None:
        return False
    return bool(one == other or (_class_of(one) is _class_of(other) and _class_of(one) not in (*CONTAINERS, Union)))


def fields_of(hint: Any) -> dict[str, Any]:
    """The fields of a class with their types, and its properties."""
    holder = _class_of(hint)
    if not isinstance(holder, type) or not holder.__module__.startswith("kspec.spec"):
        return {}
    found = _hints_of(holder)
    for name, member in vars(holder).items():
        if isinstance(member, property) and isinstance(member.fget, FunctionType):
            found[name] = _hints_of(member.fget).get("return")
    return {name: found[name] for name in found if not name.startswith("_")}


def _class_of(hint: Any) -> Any:
    alternatives = [one for one in get_args(hint) if one is not type(None)]
    if type(None) in get_args(hint) and len(alternatives) == 1:
        return _class_of(alternatives[0])
    if isinstance(hint, TypeVar):
        return hint.__bound__
    return get_origin(hint) or hint


_KNOWN: dict[Callable[..., Any], dict[str, Any]] = {}


def _hints_of(known: Any) -> dict[str, Any]:
    if known not in _KNOWN:
        try:
            _KNOWN[known] = get_type_hints(known)
        except (NameError, TypeError):  # what is imported for the type checker only
            _KNOWN[known] = {}
    return dict(_KNOWN[known])
