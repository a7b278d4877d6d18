"""Files that the documentation names are there, and its links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.places import DOCS, REPOSITORY

PAGES = [
    page
    for page in sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md"), *(REPOSITORY / "benchmarks").glob("*.md")])
    if page.name != "CHANGELOG.md" and page.parent != DOCS / "studies"
]
"""The changelog tells of what was, and another test compares the studies with what writes them."""

FILES = [
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("spec", "model_check", "proofs", "impl", "trials", "conformance", "kspec", "tests", "benchmarks")
    for path in (REPOSITORY / folder).rglob("*.py")
]


def missing(text: str) -> Iterator[str]:
    """Python files that a text names, by the end of their paths, and that are not there."""
    for name in re.findall(r"(?<![\w/…<>.-])((?:[a-z_]+/)+[a-z_0-9]+\.py)\b", text):
        if not any(f"/{file}".endswith(f"/{name}") for file in FILES):
            yield name


def test_files_that_a_page_names_are_there() -> None:
    found = {page.relative_to(REPOSITORY).as_posix(): list(missing(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_file_that_is_not_there_is_found() -> None:
    assert list(missing("see `rules/truncation.py`, `spec/values.py` and spec/nowhere.py.")) == ["spec/nowhere.py"]


def links(text: str) -> Iterator[str]:
    """The targets of a page's relative links."""
    yield from (target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", target))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {heading.strip().replace(" ", "-") for heading in plain}


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a page's link leads to a file that is there, and to a heading in it."""
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target.read_text(encoding="utf-8"))


def test_links_of_a_page_lead_somewhere() -> None:
    found = [(page, link) for page in PAGES for link in links(page.read_text(encoding="utf-8"))]
    assert [(page.name, link) for page, link in found if not leads_somewhere(page, link)] == []


def test_links_and_anchors_are_found() -> None:
    assert list(links("[a](b.md#c), [d](https://example.org) and [e](#f)")) == ["b.md#c", "#f"]
    assert anchors("# The `model` kafka\n\ntext\n## 1. A-b, c\n") == {"the-model-kafka", "1-a-b-c"}
