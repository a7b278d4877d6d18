"""Types at the seam between `spec` and `impl`, held by reading the sources: what mypy alone would not notice."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import get_args, get_origin

import pytest

from kspec.impl.broker import calls
from kspec.spec.broker import effects as broker_effects
from kspec.spec.broker.lifecycle import LifecycleEffect
from kspec.spec.controller.state import ControllerEffect
from kspec.spec.coordinator.effects import GroupEffect, RuntimeEffect
from kspec.spec.quorum.effects import QuorumEffect
from tests.places import REPOSITORY

DECODED = {
    "impl/metadata/election_file.py": "a file of JSON",
    "impl/records/compiled.py": "types of the compiler",
    "impl/records/compression.py": "codecs of other libraries",
    "impl/records/reading.py": "arrays of records, and what the compiled reader finds in them",
    "impl/storage/config.py": "a topic's settings, each of the type of its field",
    "impl/trace/steps.py": "a line of JSON",
    "impl/trace/values.py": "the value that some JSON stands for",
    "impl/wire/from_jars.py": "Kafka's own descriptions of messages",
    "impl/wire/passing.py": "fields of a message, handed on without their bytes",
    "impl/wire/reading.py": "fields of a message",
    "impl/wire/schema.py": "descriptions of messages",
    "impl/wire/values.py": "fields of a message",
    "impl/wire/writing.py": "fields of a message",
}
"""The files of `impl` in which something has a type that is known only when it is decoded, and what that is."""

SAME_SHAPE: dict[tuple[str, ...], str] = {}
"""Values of two classes with the same fields, and why they are not one class."""


UNIONS = (
    calls.Effect,
    broker_effects.Effect,
    LifecycleEffect,
    ControllerEffect,
    GroupEffect,
    RuntimeEffect,
    QuorumEffect,
)
"""The closed unions of effects: those of `spec`'s handlers, and those that a node's shell carries out."""

EFFECTS = frozenset((get_origin(one) or one).__name__ for union in UNIONS for one in get_args(union))

HANDED_ON = {"impl/server/shell.py carry_out": "the rest are a broker's effects: its type says so to mypy"}
"""A match over effects that is exhaustive without `assert_never`."""

SELECTIONS = {
    "impl/broker/calls.py stores_among": "changes of files are joined, or done in threads; the others stay in their order",
    "impl/server/controller.py carry_out_other": "a controller asks others; anything else of a broker's is an error",
    "impl/server/controller.py refuse": "the answers of what another controller decides now are errors; the rest is dropped",
    "impl/server/shell.py refuse": "the answers of what was not stored are errors; nothing else of it happens",
    "impl/server/shell.py _store_and_go_on": "records are stored as one batch before the rest",
    "impl/server/shell.py _takes_long": "other requests are put off behind these",
}
"""A match that asks for some kinds of effects, and leaves all others as they are."""


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    """The files of some rooms, with their syntax trees."""
    for room in rooms:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), ast.parse(path.read_text(encoding="utf-8"))


def fields_of(definition: ast.ClassDef) -> tuple[str, ...]:
    """The fields of a class, with their types as they are written."""
    return tuple(ast.unparse(one) for one in definition.body if isinstance(one, ast.AnnAssign))


def is_named_tuple(definition: ast.ClassDef) -> bool:
    """Whether a class is a named tuple."""
    return any(ast.unparse(base) == "NamedTuple" for base in definition.bases)


def test_a_value_has_one_class() -> None:
    """Two classes with the same fields are one value twice, which code has to convert from one to the other."""
    by_fields: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, tree in sources("impl", "spec"):
        for one in ast.walk(tree):
            if isinstance(one, ast.ClassDef) and is_named_tuple(one) and len(fields_of(one)) > 1:
                by_fields[fields_of(one)].append(f"{path} {one.name}")
    twice = {
        tuple(those) for those in by_fields.values() if len(those) > 1 and any(one.startswith("impl/") for one in those)
    }
    assert twice == set(SAME_SHAPE)
    assert len(by_fields) > 100, "hardly a file has been read"


def uses_any(tree: ast.AST) -> bool:
    """Whether something has the type `Any`."""
    return any(isinstance(one, ast.Name) and one.id == "Any" for one in ast.walk(tree))


def takes_anything(node: ast.AST) -> bool:
    """Whether this is `Callable[..., …]`."""
    return isinstance(node, ast.Subscript) and ast.unparse(node).startswith("Callable[...")


def test_any_is_the_type_of_nothing_but_what_is_decoded() -> None:
    """A file that decodes stands in the table. Elsewhere `Any` hides what mypy would find."""
    found = {path for path, tree in sources("impl") if uses_any(tree)}
    assert found == set(DECODED)


def test_handlers_are_protocols_by_kind() -> None:
    """A `Callable[..., T]` takes any handler with anything: a protocol says who handles, which state, and what is given."""
    found = {path for path, tree in sources("impl") if any(map(takes_anything, ast.walk(tree)))}
    assert found == {
        "impl/broker/core.py",  # the implementation of an overloaded method: callers see the overloads
        "impl/metadata/active.py",  # a step that is recorded, of whichever handler
        "impl/trace/steps.py",  # the same, as it is written
        "impl/trace/values.py",  # a handler by its name
    }


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions of a file, methods included."""
    return (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))


def names_in(node: ast.AST) -> set[str]:
    """The names that stand somewhere in an expression or a pattern."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def calls_that_ask_for_an_effect(tree: ast.AST) -> list[ast.Call]:
    """The calls of `isinstance` with an effect."""
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
    return [one for one in found if ast.unparse(one.func) == "isinstance" and names_in(one.args[1]) & EFFECTS]


def is_over_effects(match: ast.AST) -> bool:
    """Whether this is a match with a case for an effect."""
    return isinstance(match, ast.Match) and any(names_in(case.pattern) & EFFECTS for case in match.cases)


def ends_with_never(match: ast.AST) -> bool:
    """Whether mypy refuses a match that has no case for a kind of the union: it ends with `assert_never`."""
    return isinstance(match, ast.Match) and "assert_never" in names_in(match.cases[-1])


def test_no_effect_is_told_apart_by_isinstance() -> None:
    """A chain of `isinstance` drops a new kind of effect in silence."""
    found = [f"{path}:{one.lineno}" for path, tree in sources("impl") for one in calls_that_ask_for_an_effect(tree)]
    assert found == []


def test_every_match_over_effects_is_exhaustive() -> None:
    """It ends with `assert_never`, so mypy names a kind of effect that is forgotten; or it is a selection with a reason."""
    exhaustive: set[str] = set()
    others: set[str] = set()
    for path, tree in sources("impl"):
        for function in functions_of(tree):
            for match in filter(is_over_effects, ast.walk(function)):
                (exhaustive if ends_with_never(match) else others).add(f"{path} {function.name}")
    assert others == {*HANDED_ON, *SELECTIONS}
    assert exhaustive >= {
        "impl/broker/core.py take",
        "impl/controller/quorum/voting.py _carried_out",
        "impl/metadata/active.py _call",
        "impl/requests/groups.py divided",
        "impl/server/broker.py carry_out_other",
    }


@pytest.mark.parametrize(
    "text",
    [
        "stores = [one for one in effects if isinstance(one, Store)]",
        "is_either = isinstance(effect, (Ask, calls.Reply, Send))",
    ],
)
def test_the_law_sees_isinstance(text: str) -> None:
    assert calls_that_ask_for_an_effect(ast.parse(text))


@pytest.mark.parametrize(
    ("last", "ends"),
    [("case _:\n  assert_never(effect)", True), ("case _:\n  pass", False), ("case Then():\n  go()", False)],
)
def test_the_law_sees_a_match_that_lets_effects_through(last: str, ends: bool) -> None:
    (match,) = filter(is_over_effects, ast.walk(ast.parse(f"match effect:\n case Store():\n  store()\n {last}")))
    assert ends_with_never(match) == ends
