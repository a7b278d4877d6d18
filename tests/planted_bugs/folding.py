"""A function's syntax tree without what changes nothing: docstrings, constant conditions, tuples that are put together."""

import ast
from typing import Any, NewType

from kspec.spec import values

NEW_TYPES = {name for name, value in vars(values).items() if isinstance(value, NewType)}
NOTHINGS = {name: value for name, value in vars(values).items() if name.startswith("NO_") and isinstance(value, int)}


def folded(source: str) -> str:
    """A text that two sources share if they do the same for a reason that needs no thought."""
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    if ast.get_docstring(definition) is not None:
        definition.body = definition.body[1:]
    definition.decorator_list, definition.returns = [], None
    return ast.dump(_Fold().visit(definition))


def _truth(node: ast.AST) -> bool | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _without_constant(node: ast.expr) -> tuple[ast.expr, int]:
    """A sum without its last constant, and the constant."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return node, 0
    if not isinstance(node.right, ast.Constant) or not isinstance(node.right.value, int):
        return node, 0
    rest, constant = _without_constant(node.left)
    return rest, constant + (node.right.value if isinstance(node.op, ast.Add) else -node.right.value)


class _Fold(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body = [one for one in node.body if not isinstance(one, ast.Pass)] or [ast.Pass()]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.visit(ast.parse(str(NOTHINGS[node.id])).body[0].value) if node.id in NOTHINGS else node  # type: ignore

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        kind = function.func if isinstance(function, ast.Call) else None
        is_type = isinstance(kind, ast.Name) and kind.id == "type"
        is_new = isinstance(function, ast.Name) and function.id in NEW_TYPES
        return node.args[0] if (is_type or is_new) and len(node.args) == 1 else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        of = node.value
        if isinstance(node.slice, ast.Slice) and isinstance(of, ast.Call) and ast.dump(of.func) == _TUPLE:
            node.value = of.args[0]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        left, more = _without_constant(node.left)
        right, less = _without_constant(node.comparators[0])
        by, kind = more - less, type(node.ops[0])
        if by and kind in (ast.LtE, ast.GtE):
            kind, by = (ast.Lt, by - 1) if kind is ast.LtE else (ast.Gt, by + 1)
        if (by, kind) in ((-1, ast.Lt), (1, ast.Gt)):
            kind, by = (ast.LtE if kind is ast.Lt else ast.GtE), 0
        shifted = ast.BinOp(left, ast.Add(), ast.Constant(by)) if by else left
        return ast.Compare(shifted, [kind()], [right])

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        test = _truth(node.test)
        if test is not None:
            return node.body if test else node.orelse
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            return ast.IfExp(node.test.operand, node.orelse, node.body)
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        test = _truth(node.test)
        return node if test is None else (node.body if test else node.orelse or ast.Pass())

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        idle = isinstance(node.op, ast.And)
        values: list[ast.expr] = []
        for value in node.values:
            truth = _truth(value)
            if truth is None:
                same = isinstance(value, ast.BoolOp) and type(value.op) is type(node.op)
                values += value.values if same and isinstance(value, ast.BoolOp) else [value]
            elif truth != idle:
                values.append(value)
                break
        if not values:
            return ast.Constant(idle)
        if _truth(values[-1]) is not None and not any(
            isinstance(one, ast.Call) for value in values for one in ast.walk(value)
        ):
            return values[-1]
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        truth = _truth(node.operand)
        return ast.Constant(not truth) if isinstance(node.op, ast.Not) and truth is not None else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add):
            for empty, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(empty, ast.Tuple) and not empty.elts:
                    return other
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [one for one in node.ifs if _truth(one) is not True]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        same = isinstance(target, ast.Name) and isinstance(node.value, ast.Name) and target.id == node.value.id
        return ast.Pass() if same else node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        one = node.elts[0] if len(node.elts) == 1 else None
        return one.value if isinstance(one, ast.Starred) else node


_TUPLE = ast.dump(ast.Name("tuple", ast.Load()))
