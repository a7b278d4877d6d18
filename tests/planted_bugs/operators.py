"""Bugs made by operators on the syntax tree of the rules: each changes one place of one function.

An operator is a function from a node to the texts that may stand in its place. What it makes may be equivalent to the rule;
a person looks at what nothing notices.
"""

import ast
from collections.abc import Callable, Iterator
from enum import Enum

from kspec.spec.values import Error
from tests.planted_bugs.hints import Hints

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">", "=="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<", "=="),
    ast.Eq: ("!=", "<=", ">="),
    ast.NotEq: ("==", "<", ">"),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
OFF_BY_ONE: dict[type[ast.cmpop], tuple[tuple[str, str], ...]] = {
    ast.Lt: (("+ 1", "<"), ("- 1", "<")),
    ast.LtE: (("- 1", "<="), ("+ 1", "<=")),
    ast.Gt: (("- 1", ">"), ("+ 1", ">")),
    ast.GtE: (("+ 1", ">="), ("- 1", ">=")),
    ast.Eq: (("+ 1", ">="), ("- 1", "<=")),
    ast.NotEq: (("+ 1", "<"), ("- 1", ">")),
}
"""The number that is added to the left side, and how it compares then."""

ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.BitOr: "&", ast.BitAnd: "|"}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "takewhile": "filter"}
FIELDS = {
    "leader_epoch": "partition_epoch",
    "partition_epoch": "leader_epoch",
    "isr": "replicas",
    "session_timeout_ms": "rebalance_timeout_ms",
    "rebalance_timeout_ms": "session_timeout_ms",
    "join_request": "sync_request",
    "sync_request": "join_request",
}
"""A field, and one of another type that is easily taken for it."""

Text = Callable[[ast.AST], str]
Change = tuple[ast.AST, str]
Operator = Callable[[ast.AST, Text, Hints], Iterator[Change]]


def compare(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Another comparison: off by one, the other way round, or one that always or never holds."""
    if not isinstance(node, ast.Compare):
        return
    yield from ((node, "True"), (node, "False"))
    sides = [node.left, *node.comparators]
    if len(node.ops) > 1:
        yield node, f"({text(node.left)} {text_of(node.ops[0])} {text(node.comparators[0])})"
        yield node, f"({text(sides[-2])} {text_of(node.ops[-1])} {text(sides[-1])})"
        for place, kept in enumerate(node.ops):
            words = [word for one, side in zip(node.ops, sides[1:], strict=True) for word in (text_of(one), text(side))]
            for other in COMPARISONS[type(kept)]:
                yield node, f"({text(node.left)} {' '.join([*words[: 2 * place], other, *words[2 * place + 1 :]])})"
        if hints.is_number(sides[-1]):
            yield from ((sides[-1], f"({text(sides[-1])} {by})") for by in ("+ 1", "- 1"))
        return
    left, kind, right = node.left, type(node.ops[0]), node.comparators[0]
    for operator in COMPARISONS[kind]:
        yield node, f"({text(left)} {operator} {text(right)})"
    if hints.is_number(left) or hints.is_number(right):
        for by, operator in OFF_BY_ONE.get(kind, ()):
            yield node, f"({text(left)} {by} {operator} {text(right)})"
        if kind is ast.In and isinstance(right, ast.Tuple):
            yield from ((node, f"({text(left)} {operator} {text(right.elts[-1])})") for operator in ("<=", ">="))
            rest = " or ".join(f"{text(left)} == {text(one)}" for one in right.elts[:-1])
            yield node, f"({rest} or {text(left)} >= {text(right.elts[-1])})"


def text_of(operator: ast.cmpop) -> str:
    """The text of a comparing operator."""
    return ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[2:-2]


def shift(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A number that is one more, or one less; an offset, epoch, time or count likewise."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, f"({node.value + 1})"
        yield node, f"({node.value - 1})"
    values: list[ast.AST | None] = []
    if isinstance(node, ast.Call):
        values += [*node.args, *(one.value for one in node.keywords)]
    elif isinstance(node, ast.Return | ast.Assign):
        values.append(node.value)
    elif isinstance(node, ast.IfExp):
        values += [node.body, node.orelse]
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        values += [node.slice.lower, node.slice.upper]
    elif isinstance(node, ast.Tuple):
        values += node.elts
    for value in values:
        if value is not None and not isinstance(value, ast.Constant | ast.IfExp) and hints.is_number(value):
            yield value, f"(({text(value)}) + 1)"
            yield value, f"(({text(value)}) - 1)"
            yield from ((value, "0"), (value, "(-1)"))


def calculate(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Another sign, one operand alone, or effects in the other order."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC:
            yield node, f"({text(node.left)} {ARITHMETIC[type(node.op)]} {text(node.right)})"
        yield node, text(node.left)
        if not isinstance(node.right, ast.Constant):
            yield node, text(node.right)
            if not hints.is_number(node.left) and not isinstance(node.op, ast.BitOr | ast.BitAnd):
                yield node, f"({text(node.right)} {text_of_sign(node.op)} {text(node.left)})"


def text_of_sign(operator: ast.operator) -> str:
    """The text of an arithmetic operator."""
    return ast.unparse(ast.BinOp(ast.Name("a"), operator, ast.Name("b")))[2:-2]


def decide(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A condition that is left out, or the other way round."""
    if isinstance(node, ast.BoolOp):
        operator, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for place in range(len(node.values)):
            rest = node.values[:place] + node.values[place + 1 :]
            yield node, "(" + f" {operator} ".join(f"({text(value)})" for value in rest) + ")"
            yield node.values[place], f"(not ({text(node.values[place])}))"
        yield node, "(" + f" {other} ".join(f"({text(value)})" for value in node.values) + ")"
        yield from ((node, "True"), (node, "False"))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from ((node, f"({text(node.operand)})"), (node, "True"), (node, "False"))
    elif isinstance(node, ast.IfExp):
        yield node, f"({text(node.body)})"
        yield node, f"({text(node.orelse)})"
        yield node, f"({text(node.orelse)} if {text(node.test)} else {text(node.body)})"
    elif isinstance(node, ast.Call | ast.Name | ast.Attribute) and hints.of(node) is bool and text(node) != "bool":
        yield from ((node, "True"), (node, "False"))


def leave_out_guard(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A condition after which a function ends, or something is done besides, is never met, or always."""
    if isinstance(node, ast.If):
        yield from ((node.test, "False"), (node.test, "True"), (node.test, f"(not ({text(node.test)}))"))
    elif isinstance(node, ast.IfExp):
        yield node.test, f"(not ({text(node.test)}))"


def leave_out_element(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A tuple, as effects are, without one of its elements, without all, or with two of them in the other order."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for place in range(len(node.elts)):
            rest = node.elts[:place] + node.elts[place + 1 :]
            yield node, "(" + "".join(f"{text(one)}, " for one in rest) + ")"
        for place in range(len(node.elts) - 1):
            swapped = [*node.elts[:place], node.elts[place + 1], node.elts[place], *node.elts[place + 2 :]]
            yield node, "(" + "".join(f"{text(one)}, " for one in swapped) + ")"
        yield node, "()"
    elif isinstance(node, ast.Call):
        for value in (*node.args, *(one.value for one in node.keywords)):
            if isinstance(value, ast.Name | ast.Attribute | ast.Call):
                yield from ((value, empty) for empty in hints.empty(value))
                if hints.is_tuple(value):
                    yield from ((value, f"{text(value)}{part}") for part in ("[1:]", "[:-1]"))


def leave_out_change(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A new state that has one field as before, or all."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if name in ("_replace", "replace"):
            for keyword in node.keywords:
                rest = [text(one) for one in node.args]
                rest += [text(one) for one in node.keywords if one is not keyword]
                yield node, f"{text(node.func)}({', '.join(rest)})"
            if isinstance(node.func, ast.Attribute):
                yield node, text(node.func.value)


def leave_out_call(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A call does nothing: what it was given stands in its place, if that has the same type; a step changes nothing."""
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        arguments = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
        yield from ((node, f"({text(one)})") for one in arguments if not isinstance(one, ast.Starred | ast.GeneratorExp))
        if len(arguments) > 2:
            for left_out in arguments:
                rest = ", ".join(text(one) for one in arguments if one is not left_out)
                yield node, f"{node.func.id}({rest})"
        return
    if isinstance(node.func, ast.Name) and node.func.id in ("tuple", "frozenset", "dict", "list") and node.args:
        yield node, f"{node.func.id}()"
        return
    hint = hints.returned(node)
    given = [*node.args, *(one.value for one in node.keywords)]
    if isinstance(node.func, ast.Attribute) and hints.named(node.func) is None:
        given.append(node.func.value)
    for one in given:
        if hints.fits(one, hint):
            yield node, f"({text(one)})"
        elif hints.makes_step(node) and hints.is_state(one, hint):
            yield node, f"Step({text(one)})"


def leave_out_argument(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """An argument that has a default is left out; a yes is a no."""
    if isinstance(node, ast.Call):
        for left_out in hints.optional_arguments(node):
            rest = [text(one) for one in (*node.args, *node.keywords) if one is not left_out]
            yield node, f"{text(node.func)}({', '.join(rest)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)


def leave_out_statement(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """A value that is computed anew stays as it was; what is done besides is not done."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        if hints.lines.get(node.targets[0].id, node.lineno) < node.lineno:
            yield node, "pass"
    elif isinstance(node, ast.AugAssign | ast.Expr) and not isinstance(node.value, ast.Constant):
        yield node, "pass"


def call_another(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """The largest in place of the smallest, all in place of any."""
    if isinstance(node, ast.Name) and node.id in CALLS and isinstance(node.ctx, ast.Load):
        yield node, CALLS[node.id]


def swap_arguments(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Two neighbouring arguments of a call, of one type or both read from somewhere, in each other's place."""
    if isinstance(node, ast.Call) and not node.keywords:
        for place in range(len(node.args) - 1):
            one, other = node.args[place : place + 2]
            if (isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute)) or hints.same(one, other):
                args = [text(arg) for arg in node.args]
                args[place], args[place + 1] = args[place + 1], args[place]
                yield node, f"{text(node.func)}({', '.join(args)})"


def read_another_field(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Another field of the same type, or one that is easily taken for the right one."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        for name in hints.other_fields(node):
            yield node, f"{text(node.value)}.{name}"
        if node.attr in FIELDS:
            yield node, f"{text(node.value)}.{FIELDS[node.attr]}"


def take_another(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Another party's: what is known and has the same type as the right one; the other constant of its kind."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from ((node, other) for other in hints.alike(node) if other != text(node))
    known = hints.named(node)
    if isinstance(node, ast.Name) and node.id.isupper() and known is not None:
        alike = [
            name
            for name, value in hints.globals.items()
            if name.isupper() and type(value) is type(known) and (name == node.id or value != known)
        ]
        if node.id in alike:
            yield node, (alike * 2)[alike.index(node.id) + 1]
    elif isinstance(known, Enum) and isinstance(node, ast.Attribute) and not isinstance(known, Error):
        yield from ((node, f"{text(node.value)}.{other.name}") for other in type(known) if other is not known)


def answer_another_error(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """Another error, or none."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error":
        for other in (Error.NONE, Error.UNKNOWN_SERVER_ERROR):
            if other.name != node.attr:
                yield node, f"Error.{other.name}"


def leave_out_filter(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """All elements, not only those that are meant; or all but the first, or the last."""
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield from ((condition, "True"), (condition, f"(not ({text(condition)}))"))
    if isinstance(node, ast.comprehension | ast.For):
        yield from ((node.iter, f"tuple({text(node.iter)}){part}") for part in ("[1:]", "[:-1]", "[-1:]"))


def take_the_last(node: ast.AST, text: Text, hints: Hints) -> Iterator[Change]:
    """The last element in place of the first, or the other way round; all elements in place of some."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        place = text(node.slice)
        if place in ("0", "-1"):
            yield node, f"{text(node.value)}[{'-1' if place == '0' else '0'}]"
        elif isinstance(node.slice, ast.Slice):
            yield node, text(node.value)


OPERATORS: tuple[Operator, ...] = (
    compare,
    shift,
    calculate,
    decide,
    leave_out_guard,
    leave_out_element,
    leave_out_change,
    leave_out_call,
    leave_out_argument,
    leave_out_statement,
    call_another,
    swap_arguments,
    read_another_field,
    take_another,
    answer_another_error,
    leave_out_filter,
    take_the_last,
)
