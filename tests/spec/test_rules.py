"""`docs/rules.md` says for every rule of the broker's side where it is stated; what it names exists."""

import re
from pkgutil import resolve_name

import pytest

from tests.places import DOCS

PAGE = (DOCS / "rules.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", PAGE)))

LAST = {"P": 11, "I": 5, "F": 10, "S": 6, "H": 10, "B": 7, "E": 6, "C": 7, "T": 13, "R": 7, "D": 8}
CONTROLLERS = {"A3", "A4", "A5", "A8"}


def test_every_rule_is_listed_once_and_in_order() -> None:
    listed = [found.group() for row in ROWS if (found := re.match(r"[A-Z]\d+(?= )", row[0]))]
    expected = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
    expected[expected.index("C1") : expected.index("C1")] = [f"A{n}" for n in range(1, 8) if f"A{n}" not in CONTROLLERS]
    assert listed == expected


@pytest.mark.parametrize("name", [name for name in NAMED if not name.endswith((".py", ".md"))])
def test_what_is_named_exists_and_says_what_it_does(name: str) -> None:
    assert resolve_name(f"spec.{name}").__doc__
