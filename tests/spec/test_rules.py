"""`docs/rules.md` and `docs/rules-controller.md` say where each of Kafka's rules is stated; what they name exists.

Rules, hazards and invariants have ids. Every id that a test, a function or a page names is listed on a page.
"""

import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from kspec import spec
from tests.limits.turns import Turns
from tests.places import DOCS, REPOSITORY

SPEC = Path(spec.__path__[0])
PAGE = (DOCS / "rules.md").read_text(encoding="utf-8")
CONTROLLERS_PAGE = (DOCS / "rules-controller.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", PAGE)))
CONTROLLERS_NAMED = sorted(set(re.findall(r"`([A-Za-z_0-9]+_[A-Za-z_0-9]+)`", CONTROLLERS_PAGE.split("## Rules")[1])))

SUBJECTS = "PIFSHBEACTRD"
"""The letters of the ids, in the order of the page."""

CONTROLLERS = {"A3", "A4", "A5", "A8"}

LISTED_ON = {
    "the rules": (DOCS / "rules.md", DOCS / "rules-controller.md"),
    "the hazards": (DOCS / "studies" / "README.md",),
    "the invariants": (DOCS / "kafka-model.md",),
}
IDS = r"(?:[PIFSHBEACTRDL]|Z|V)\d{1,2}"


def rows(page: str) -> list[str]:
    """The first cells of a page's tables."""
    return [line.strip("| ").split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]


def listed(page: str) -> list[str]:
    """The ids with which rows of a page's tables begin."""
    return [name for row in rows(page) if re.match(IDS, row) for name in re.findall(rf"\b{IDS}\b", row.split(" | ")[0])]


def named(text: str) -> Iterator[str]:
    """The ids that a text names; `A3 to A5` and `A3-A5` name those in between, too."""
    for letter, first, last in re.findall(r"\b([A-Z])(\d{1,2})(?: to |-)\1(\d{1,2})\b", text):
        yield from (f"{letter}{number}" for number in range(int(first), int(last) + 1))
    yield from re.findall(rf"\b{IDS}\b", text)


def test_every_rule_is_listed_once_and_in_order() -> None:
    found = [match.group() for row in rows(PAGE) if (match := re.match(r"[A-Z]\d+(?= )", row))]
    last = {name[0]: int(name[1:]) for name in found}
    expected = [f"{letter}{number}" for letter in SUBJECTS for number in range(1, last[letter] + 1)]
    assert found == [name for name in expected if name not in CONTROLLERS]


def what_is_called(name: str) -> Any:
    """The rule of a name, which is a path from `spec/` on: folders, file, function or class, and maybe its member."""
    parts = name.split(".")
    turns = Turns()
    while parts and not (SPEC / Path(*parts)).with_suffix(".py").is_file():
        turns.go()
        parts.pop()
    path = name.split(".")[len(parts) :]
    assert parts, f"no file of spec/ for {name}"
    assert path, f"{name} is a file"
    return reduce(getattr, path, import_module(".".join(("kspec", "spec", *parts))))


def test_what_is_named_exists_and_says_what_it_does() -> None:
    names = [name for name in NAMED if not name.endswith((".py", ".md"))]
    assert len(names) > 100
    assert [name for name in names if not what_is_called(name).__doc__] == []


def symbols() -> set[str]:
    """All functions, classes, constants and fields of `spec/`, and the tests of it."""
    texts = [file.read_text(encoding="utf-8") for file in (*SPEC.rglob("*.py"), *Path(__file__).parent.rglob("*.py"))]
    return {name for text in texts for name in re.findall(r"^ *(?:def |class )?(\w+)(?:\(|:| =)", text, re.MULTILINE)}


def test_what_the_controllers_page_names_exists() -> None:
    assert CONTROLLERS_NAMED
    assert set(CONTROLLERS_NAMED) - symbols() == set()


def _texts() -> Iterator[Path]:
    for folder in ("spec", "model_check", "proofs", "kspec", "tests"):
        yield from sorted((REPOSITORY / folder).rglob("*.py"))
    yield from sorted(DOCS.rglob("*.md"))


def test_every_id_that_is_named_is_listed() -> None:
    ids = {name for pages in LISTED_ON.values() for page in pages for name in listed(page.read_text(encoding="utf-8"))}
    found = {str(file.relative_to(REPOSITORY)): set(named(file.read_text(encoding="utf-8"))) for file in _texts()}
    assert {file: names - ids for file, names in found.items() if names - ids} == {}


def test_ids_are_found_alone_and_in_ranges() -> None:
    assert set(named("rules P2, H8 to H10 and Z1-Z3; Z3 proves it")) == {"P2", "H8", "H9", "H10", "Z1", "Z2", "Z3"}
    assert listed("| P1 acks | f |\n| B1, B4 merged | g |\n| none | P2 |") == ["P1", "B1", "B4"]
