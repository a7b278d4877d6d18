"""Files and functions that the documentation names are there, and its links lead somewhere."""

import ast
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


# ---- the page of walks: docs/walks.md

WALKS = (DOCS / "walks.md").read_text(encoding="utf-8")
STOP = re.compile(r"^\| (\d+) \| \[([^]]+)\]\(\.\./([^)]+)\) \| `([\w.]+)` \|", re.MULTILINE)
"""A stop: its number, the file as it is shown, the file as it is linked, the function."""

COUNTED = {
    "request: the leader appends": 0,
    "request: the answer": 2,
    "state": 3,
    "case": 4,
    "decision: at the controller": 6,
}
"""The walks of the last table, with the place of each among the tables of stops."""


def tables(page: str) -> list[list[tuple[str, str, str, str]]]:
    """The tables of stops. Each begins with number 1."""
    found: list[list[tuple[str, str, str, str]]] = []
    for stop in STOP.findall(page):
        if stop[0] == "1":
            found.append([])
        found[-1].append(stop)
    return found


def names_in(source: str) -> Iterator[str]:
    """The functions, classes and constants of a module, and the methods of its classes."""
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.ClassDef():
                yield node.name
                methods = (one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))
                yield from (f"{node.name}.{one.name}" for one in methods)
            case ast.Assign():
                yield from (one.id for one in node.targets if isinstance(one, ast.Name))


def missing_functions(page: str, root: Path) -> list[str]:
    """The stops that name something that is not in their file."""
    names = {file: set(names_in((root / file).read_text(encoding="utf-8"))) for _, _, file, _ in STOP.findall(page)}
    return [f"{file}: {name}" for _, _, file, name in STOP.findall(page) if name not in names[file]]


def test_functions_of_the_walks_are_there() -> None:
    assert missing_functions(WALKS, REPOSITORY) == []


def test_a_function_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Known:\n    def go(self): ...\n")
    page = "| 1 | [one.py](../one.py) | `Known.go` | |\n| 2 | [one.py](../one.py) | `go` | |\n"
    assert missing_functions(page, tmp_path) == ["one.py: go"]


def test_every_row_of_a_walk_is_a_stop_in_its_place() -> None:
    rows = re.findall(r"^\| \d+ \|.*", WALKS, re.MULTILINE)
    assert len(rows) == len(STOP.findall(WALKS))
    for table in tables(WALKS):
        assert [int(number) for number, *_ in table] == list(range(1, len(table) + 1))
        assert [shown.replace("\\", "") for _, shown, _, _ in table] == [file for _, _, file, _ in table]


def test_stops_and_files_are_counted() -> None:
    for walk, place in COUNTED.items():
        table = tables(WALKS)[place]
        told = re.search(rf"^\| {walk} \| \d+ \| (\d+) \| \d+ \| (\d+) \|", WALKS, re.MULTILINE)
        assert told is not None, walk
        assert (int(told[1]), int(told[2])) == (len(table), len({file for _, _, file, _ in table})), walk
