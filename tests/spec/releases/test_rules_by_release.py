"""The page `docs/rules-by-release.md` has every rule function, and every field in which releases differ."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.fetch_sessions import SESSION_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.upkeep import UPKEEP_RELEASES
from kspec.spec.releases.zookeeper import ZK_RELEASES
from tests.places import DOCS, REPOSITORY

PAGE = (DOCS / "rules-by-release.md").read_text(encoding="utf-8")
READ = {"each", "KRaft", "newest", "not", "none"}
HISTORIES: tuple[tuple[Any, ...], ...] = (
    BROKER_RELEASES,
    KRAFT_RELEASES,
    UPKEEP_RELEASES,
    SESSION_RELEASES,
    ZK_RELEASES,
)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def rules() -> Iterator[str]:
    """The public functions of the rooms with rules, by their full names."""
    for room in ("broker", "controller", "log", "zookeeper"):
        for path in (REPOSITORY / "spec" / room).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    yield f"{module_of(path)}.{node.name}"


def rows() -> Iterator[tuple[str, str, str]]:
    """Of each rule on the page: its full name, in which releases it was read, and the differences."""
    module = ""
    for line in PAGE.splitlines():
        if line.startswith("### "):
            module = line.strip("# `")
        elif module and line.startswith("| `"):
            names, read, differences = (part.strip() for part in line.strip("|").split("|"))
            for name in re.findall(r"`(\w+)`", names):
                yield f"{module}.{name}", read, differences


def changes() -> Iterator[tuple[str, str, str]]:
    """Of each function that a release puts in another's place: its full name, the field, and the name of the release."""
    for history in HISTORIES:
        for field in fields(history[0]):
            if field.name == "transactions":  # a record of its own: `docs/rules-coordinator.md`
                continue
            values = [getattr(release, field.name) for release in history]
            if len(set(values)) > 1:
                for before, after, release in zip([None, *values], values, history, strict=False):
                    if after is not before and hasattr(after, "__name__"):
                        yield f"{after.__module__.removeprefix('kspec.')}.{after.__name__}", field.name, release.name


def test_every_rule_has_one_row() -> None:
    assert Counter(name for name, _, _ in rows()) == Counter(rules())


def test_a_row_says_where_the_rule_was_read() -> None:
    assert {read for _, read, _ in rows()} == READ


def test_every_change_of_a_rule_is_named() -> None:
    told = {
        (name, field, release)
        for name, _, differences in rows()
        for field, releases in re.findall(r"`(\w+)` from ([\w., ]+)", differences)
        for release in releases.strip(", ").split(", ")
    }
    rooms = {name for name, _, _ in rows()}
    assert told == {change for change in changes() if change[0] in rooms}
