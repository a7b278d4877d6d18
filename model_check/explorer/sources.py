"""Functions of models for readers: their source, what it means, and the values that they were made with."""

import ast
import linecache
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache, lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from kspec.model_check.core.model import Slot, View
from kspec.model_check.traces.docstrings import meaning_of
from kspec.model_check.traces.encode import in_words
from kspec.model_check.traces.render import owner, party_name, slot_in_words

LONGEST = 300
"""Characters of a value in words: the value of a view may be a whole replica."""


class Source(NamedTuple):
    """A function as text: its expression or name, its file and line, and a sentence on it; empty where there is none."""

    text: str
    place: str
    meaning: str


def core_of(function: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function behind what binds its first arguments, and those arguments by name."""
    bound: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    while isinstance(function, partial):
        bound, named = (*function.args, *bound), {**function.keywords, **named}
        function = function.func
    return function, {**dict(zip(_parameters(function), bound, strict=False)), **named}


def _code(function: Callable[..., Any]) -> CodeType | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    code = _code(function)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    return names[1:] if hasattr(function, "__self__") else names


@lru_cache(maxsize=4096)
def source_of(function: Callable[..., Any]) -> Source:
    """The text of a function: of a lambda its expression, of another function its name."""
    function, _ = core_of(function)
    code = _code(function)
    name = getattr(function, "__name__", repr(function))
    if code is None:
        return Source(name, "", "")
    place = f"{getattr(function, '__module__', '').replace('.', '/')}.py:{code.co_firstlineno}"
    if name != "<lambda>":
        return Source(name, place, meaning_of(function))
    found = _lambda_of(code)
    return Source(name, place, "") if found is None else Source(found[0], place, found[1])


@cache
def _lambda_of(code: CodeType) -> tuple[str, str] | None:
    """The expression of a lambda, and the meaning of the function that returns it; `None` where its file is not at hand."""
    columns = [(start, column) for start, _, column, _ in code.co_positions() if start and column]
    line, column = min(columns, default=(code.co_firstlineno, 0))
    best: tuple[str, str] | None = None
    for node, meaning in _lambdas_in(code.co_filename):
        body = node.body
        first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
        if node.lineno == code.co_firstlineno and first <= (line, column) < last:
            best = ast.unparse(body), meaning
    return best


@cache
def _lambdas_in(file: str) -> list[tuple[ast.Lambda, str]]:
    """The lambdas of a file, outer ones first, each with the meaning of the function that returns it."""
    text = "".join(linecache.getlines(file))
    return list(_lambdas(ast.parse(text), ""))


def _lambdas(node: ast.AST, meaning: str) -> Iterator[tuple[ast.Lambda, str]]:
    for child in ast.iter_child_nodes(node):
        own = ""
        if isinstance(child, ast.FunctionDef):
            own = (ast.get_docstring(child) or "").partition("\n\n")[0]
        elif isinstance(child, ast.Return):
            own = meaning
        elif isinstance(child, ast.Lambda):
            yield child, " ".join(meaning.split()) if isinstance(node, ast.Return) else ""
        yield from _lambdas(child, own)


@lru_cache(maxsize=4096)
def values_of(function: Callable[..., Any], reads: int) -> Mapping[str, str]:
    """The plain values that a function was made with (arguments bound before, of functions around it, defaults), in words.

    The last `reads` of its arguments without a default are what it reads in a state.
    """
    function, bound = core_of(function)
    found = dict(bound)
    if isinstance(function, FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            found[name] = cell.cell_contents
        names, defaults = _parameters(function), function.__defaults__ or ()
        given = len(bound) + reads
        for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            if names.index(name) >= given:
                found[name] = value
    return {name: in_words(value) for name, value in found.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(_is_plain(member) for member in value)
    return value is None or isinstance(value, int | str | Enum)


def read_in_words(read: Slot | View, value: Any) -> dict[str, Any]:
    """A slot or view that a function reads, with its value in a state; a view names the slots behind it."""
    if isinstance(read, Slot):
        return {"slot": read.label, "party": party_name(owner(read)), "words": shortened(slot_in_words(read, value))}
    return {"view": label_of(read), "words": shortened(in_words(value)), "of": [slot.label for slot in read.reads]}


def label_of(read: Slot | View) -> str:
    """The label of a slot, and of a view in the same form."""
    if isinstance(read, Slot):
        return read.label
    return read.name if read.key is None else f"{read.name}[{read.key}]"


def shortened(words: str) -> str:
    """Words that are not too long; an ellipsis says that there are more."""
    return words if len(words) <= LONGEST else words[:LONGEST] + "…"
