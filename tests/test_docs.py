"""The pages' links and paths lead somewhere: README, CONTRIBUTING and all of docs/."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import DOCS, REPOSITORY

ROOMS = ("spec", "model_check", "proofs", "tests", "benchmarks", "docs")
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "benchmarks" / "README.md",
    *DOCS.rglob("*.md"),
]


def paths(page: str) -> Iterator[str]:
    """The paths in backticks that begin with a folder of the repository, with or without an argument after them."""
    for quoted in re.findall(r"`([^`\n]+)`", page):
        for word in quoted.split():
            path = word.split("::")[0].rstrip(",.;:")
            if path.split("/")[0] in ROOMS and "/" in path and re.fullmatch(r"[\w./-]+", path):
                yield path


def links(page: str) -> Iterator[str]:
    """The targets of relative links, without what follows `#`."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page):
        if not re.match(r"[a-z]+:", target):
            yield target


def headings(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE))
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_path_exists(page: Path) -> None:
    missing = [path for path in paths(page.read_text(encoding="utf-8")) if not (REPOSITORY / path).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in headings(target.read_text(encoding="utf-8")), link


def test_paths_links_and_headings_are_found() -> None:
    assert list(paths("see `spec/nowhere.py`, `./test tests/a_test.py -k x` and `kspec check`")) == [
        "spec/nowhere.py",
        "tests/a_test.py",
    ]
    assert list(links("[a](b.md#c), [d](https://example.org) and [e](#f)")) == ["b.md#c", "#f"]
    assert headings("# The `model` kafka\n\ntext\n## 1. A-b, c\n") == {"the-model-kafka", "1-a-b-c"}
