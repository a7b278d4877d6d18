"""`docs/rules.md` and `docs/rules-controller.md` say where each of Kafka's rules is stated; what they name exists.

Rules, hazards and invariants have ids. Every id that a test, a function or a page names is listed on a page.
"""

import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

import spec
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


@pytest.mark.parametrize("name", [name for name in NAMED if not name.endswith((".py", ".md"))])
def test_what_is_named_exists_and_says_what_it_does(name: str) -> None:
    """A name is a path from `spec/` on: folders, file, function or class, and maybe its member."""
    parts = name.split(".")
    while parts and not (SPEC / Path(*parts)).with_suffix(".py").is_file():
        parts.pop()
    path = name.split(".")[len(parts) :]
    assert parts, f"no file of spec/ for {name}"
    assert path, f"{name} is a file"
    found = reduce(getattr, path, import_module(".".join(("spec", *parts))))
    assert found.__doc__


@pytest.fixture(scope="module")
def symbols() -> set[str]:
    """All functions, classes, constants and fields of `spec/`, and the tests of it."""
    texts = [file.read_text(encoding="utf-8") for file in (*SPEC.rglob("*.py"), *Path(__file__).parent.rglob("*.py"))]
    return {name for text in texts for name in re.findall(r"^ *(?:def |class )?(\w+)(?:\(|:| =)", text, re.MULTILINE)}


@pytest.mark.parametrize("name", CONTROLLERS_NAMED)
def test_what_the_controllers_page_names_exists(name: str, symbols: set[str]) -> None:
    assert name in symbols


def _texts() -> Iterator[Path]:
    for folder in ("spec", "model_check", "proofs", "tests"):
        yield from sorted((REPOSITORY / folder).rglob("*.py"))
    yield from sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("file", list(_texts()), ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_every_id_that_is_named_is_listed(file: Path) -> None:
    ids = {name for pages in LISTED_ON.values() for page in pages for name in listed(page.read_text(encoding="utf-8"))}
    assert set(named(file.read_text(encoding="utf-8"))) <= ids


def test_ids_are_found_alone_and_in_ranges() -> None:
    assert set(named("rules P2, H8 to H10 and Z1-Z3; Z3 proves it")) == {"P2", "H8", "H9", "H10", "Z1", "Z2", "Z3"}
    assert listed("| P1 acks | f |\n| B1, B4 merged | g |\n| none | P2 |") == ["P1", "B1", "B4"]
