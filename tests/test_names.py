"""Names and first words: a class is a noun, no class name is in two rooms, a docstring begins with a noun or a verb."""

import ast
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.places import REPOSITORY as ROOT

PRODUCT = ("spec", "impl", "trials", "model_check", "proofs", "conformance", "benchmarks", "kspec")
ALL = (*PRODUCT, "tests")
pytestmark = pytest.mark.xdist_group("names")  # one process reads all sources

NOUNS = {"Anything", "Finding", "Framing", "Housekeeping", "Numbering", "Setting", "Sighting"}
"""Words of one part that end like participles, and are nouns."""
IRREGULAR = {
    *("Begun", "Bound", "Brought", "Built", "Caught", "Chosen", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held"),
    *(
        "Hidden",
        "Kept",
        "Known",
        "Led",
        "Left",
        "Lost",
        "Made",
        "Met",
        "Put",
        "Ran",
        "Read",
        "Said",
        "Seen",
        "Sent",
        "Shown",
    ),
    *("Taken", "Told", "Under", "Written"),
}
CLAUSE = {
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Where",
    "Wherever",
    "How",
    "However",
    "When",
    "Which",
    "Why",
}
"""Words that begin a clause, and no sentence that says what something is."""


class ClassName(NamedTuple):
    """The name of a class, its place, and the names of the classes that it derives from."""

    name: str
    path: str
    line: int
    bases: frozenset[str]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class SourceFacts(NamedTuple):
    """All classes, and the places of sentences that begin a clause: of docstrings, and of sentences below a name."""

    classes: list[ClassName]
    docstrings: list[str]
    below_names: list[str]


@cache
def facts() -> SourceFacts:
    """All sources are read once."""
    found = SourceFacts([], [], [])
    for folder in ALL:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                _note(found, path, node)
    return found


def _note(found: SourceFacts, path: str, node: ast.AST) -> None:
    if isinstance(node, ast.ClassDef):
        bases = frozenset(ast.unparse(base).rpartition(".")[2] for base in node.bases)
        found.classes.append(ClassName(node.name, path, node.lineno, bases))
    match node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            if _begins_a_clause(ast.get_docstring(node) or ""):
                found.docstrings.append(f"{path}:{getattr(node, 'lineno', 1)}")
    body = getattr(node, "body", None)
    for above, below in pairwise(body if isinstance(body, list) else ()):
        match above, below:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))) if _begins_a_clause(text):
                found.below_names.append(f"{path}:{below.lineno}")


def _begins_a_clause(text: str) -> bool:
    words = text.split(maxsplit=1)
    return bool(words) and words[0].rstrip(",;:.") in CLAUSE


def _room(path: str) -> str:
    return "/".join(Path(path).parts[:2])


def _is_participle(name: str) -> bool:
    word = name.lstrip("_")
    one_word = sum(letter.isupper() for letter in word) == 1
    return one_word and word not in NOUNS and (word in IRREGULAR or word.endswith(("ed", "ing")))


def test_a_class_is_a_noun() -> None:
    assert len(facts().classes) > 1_000
    assert [f"{one.place}: {one.name}" for one in facts().classes if _is_participle(one.name)] == []


def test_no_class_name_is_in_two_rooms() -> None:
    """A test's own double of a class has a name of its own, too. A private class stays in its module."""
    rooms: dict[str, dict[str, str]] = defaultdict(dict)
    for one in facts().classes:
        if not one.name.startswith("_") and one.name not in one.bases:
            rooms[one.name][_room(one.path)] = one.place
    assert {name: sorted(places.values()) for name, places in rooms.items() if len(places) > 1} == {}


def test_a_docstring_begins_with_a_noun_or_a_verb() -> None:
    assert facts().docstrings == []


def test_a_sentence_about_a_field_or_a_constant_begins_with_a_noun_or_a_verb() -> None:
    assert facts().below_names == []
