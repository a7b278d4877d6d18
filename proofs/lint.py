"""Checks the source of rules for what cannot be evaluated on symbolic values.

A symbolic value answers comparisons and the log algebra, and nothing else. So a rule compares values with `==`, not `is`; it
keeps no dictionary or set by offset or epoch, and takes no index or range from one; it does not ask for hashes or types; and
the only loops over offsets are inside the log algebra.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

CARRIERS = ("log/algebra.py", "log/record_log.py", "log/stored_log.py", "log/epoch_log.py", "log/epoch_history.py")
"""Files of `spec/` that carry the log algebra: their loops over offsets are its own."""

FORMATS = ("log/checkpoint_files.py",)
"""Files of `spec/` that read and write text: no rule calls them."""

NOT_PROVED = ("controller/topics/", "coordinator/", "consumer/", "assignors/")
"""Rooms of `spec/` whose rules no theorem is about: names, settings and placement of topics, and groups of consumers."""

TYPE_QUESTIONS = {"hash", "id", "isinstance", "issubclass", "type", "int", "float", "range", "divmod", "hex", "bin"}
"""Functions that do not work on a symbolic number, set or log."""

COUNTED = ("Offset", "Epoch", "PartitionEpoch")
"""Types of numbers that may be symbolic."""

COUNTING_NAMES = ("offset", "epoch", "high_watermark")
"""Endings of names of offsets and epochs."""


def complaints(source: str) -> Iterator[str]:
    """The problems that keep a source text from being evaluated symbolically, with line numbers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.arg):
            yield from (f"{problem}: line {node.lineno}" for problem in _problems(node))


def complaints_about_rules(folder: Path) -> list[str]:
    """The complaints about every file of rules in `spec/`."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder).as_posix()
        if name not in (*CARRIERS, *FORMATS) and not name.startswith(NOT_PROVED):
            found += [f"{name}: {problem}" for problem in complaints(file.read_text(encoding="utf-8"))]
    return found


def _problems(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in TYPE_QUESTIONS:
            yield f"calls {name}"
        case ast.Compare(left=left, ops=operators, comparators=comparators):
            for operator, sides in zip(operators, pairwise([left, *comparators]), strict=True):
                by_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
                if isinstance(operator, ast.Is | ast.IsNot) and not by_none:
                    yield "compares values by identity"
        case ast.Dict(keys=keys) if any(key is not None and _counts(key) for key in keys):
            yield "keeps a dictionary by offset or epoch"
        case ast.DictComp(key=key) if _counts(key):
            yield "keeps a dictionary by offset or epoch"
        case ast.Set(elts=elements) if any(_counts(element) for element in elements):
            yield "keeps a set of offsets or epochs"
        case ast.SetComp(elt=element) if _counts(element):
            yield "keeps a set of offsets or epochs"
        case ast.Subscript(slice=index) if _counts(index):
            yield "takes an index from an offset or epoch"
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="dict" | "Mapping"), slice=ast.Tuple(elts=[key, *_]))):
            if _names(key, COUNTED):
                yield "keeps a dictionary by offset or epoch"
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="set" | "frozenset"), slice=key)) if _names(key, COUNTED):
            yield "keeps a set of offsets or epochs"


def _counts(node: ast.expr) -> bool:
    """Whether an expression looks like an offset or an epoch."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith(COUNTING_NAMES)
        case ast.Call(func=ast.Name(id=name)):
            return name in COUNTED
        case ast.BinOp(left=left, right=right):
            return _counts(left) or _counts(right)
        case ast.Slice(lower=lower, upper=upper):
            return any(bound is not None and _counts(bound) for bound in (lower, upper))
    return False


def _names(node: ast.expr, names: tuple[str, ...]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
