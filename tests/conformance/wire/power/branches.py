"""`python -m tests.conformance.wire.power.branches`: who reaches which branch of the rules of transactions.

It measures, for some minutes, and writes `tests/data/transaction-branches.json`, and the page from that. A branch that no
case of level 0 reaches is listed with what else reaches it: the model, simulated clusters, or a test of the rule.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from coverage.parser import PythonParser

from kspec.conformance.wire.cases.generation import all_runs
from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.models import MODELS
from kspec.model_check.reports.catalogues.transactions import PLAIN, PROCESSES
from kspec.trials.simulated.runs import run
from tests.conformance.wire.power.reached import FunctionReach, reached, reached_by
from tests.places import DATA, DOCS, REPOSITORY
from tests.trials.simulated.hunting import setup_of_next

FILE, PAGE = DATA / "transaction-branches.json", DOCS / "conformance" / "transaction-branches.md"
ROOM = "transactions"

BOUNDS: tuple[dict[str, Any], ...] = (
    {"late_requests": 1, "disconnects": 1, "timeouts": 1},
    {**PLAIN, "late_requests": 1, "disconnects": 1, "transactions": 1},
    {"producers": 2, "transactions": 1, "moves": 1},
    {"late_markers": 1, "moves": 1},
    {"refusals": 1, "unknown_appends": 1, "moves": 1, "disconnects": 1},
    {"first_epoch": 32766, "timeouts": 2},
    {"inputs": 1, "producers": 2, "rebalances": 1, "transactions": 1},
    PROCESSES,
)
"""The bounds of the explorations."""

SEEDS, STEPS = range(1, 13), 3_000
"""The simulated clusters, with producers of transactions."""

TESTS = ("tests/spec/transactions", "tests/spec/broker/leader/test_transactions.py", "tests/spec/releases")


class Branch(NamedTuple):
    """A branch of a function: the line with the condition, and the one that follows; `number`: among equal ones."""

    function: str
    line: str
    then: str
    number: int = 0


def branches_of(room: str) -> dict[tuple[str, int, int], Branch]:
    """All branches below a folder of `spec`, by module and lines."""
    found: dict[tuple[str, int, int], Branch] = {}
    for path in sorted((REPOSITORY / "spec" / room).rglob("*.py")):
        parser = PythonParser(filename=str(path))
        parser.parse_source()
        lines = parser.text.splitlines()
        functions = _functions(lines)
        forks = {line for line, count in parser.exit_counts().items() if count > 1}
        module = ".".join(path.relative_to(REPOSITORY / "spec").with_suffix("").parts)
        counted: Counter[Branch] = Counter()
        for first, then in sorted(parser.arcs()):
            if first in forks:
                target = lines[then - 1].strip() if then > 0 else "the end"
                branch = Branch(f"{module}:{functions[first]}", lines[first - 1].strip(), target)
                found[module, first, then] = branch._replace(number=counted[branch])
                counted[branch] += 1
    return found


def _functions(lines: Sequence[str]) -> dict[int, str]:
    """The function or class at the top of the file in which each line lies."""
    found, name = dict[int, str](), ""
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if words[:1] in (["def"], ["class"]) and not line[0].isspace():
            name = words[1].partition("(")[0].rstrip(":")
        found[number] = name
    return found


# ---- measuring


def measured() -> dict[str, list[Branch]]:
    """The branches that are not reached, by who does not reach them."""
    every = branches_of(ROOM)
    ways: Mapping[str, Callable[[], list[FunctionReach]]] = {
        "cases": lambda: reached(all_runs(), [ROOM]),
        "model": lambda: reached_by(_explore, [ROOM]),
        "simulated clusters": lambda: reached_by(_simulate, [ROOM]),
        "tests": lambda: reached_by(_test, [ROOM]),
    }
    return {
        way: [
            every[one.name.partition(":")[0], first, then]
            for one in measure()
            for first, then in one.branches
            if (one.name.partition(":")[0], first, then) in every
        ]
        for way, measure in ways.items()
    }


def _test() -> None:
    assert pytest.main(["-q", *TESTS]) == 0, "the tests of the rules pass"


def _explore() -> None:
    for bounds in BOUNDS:
        model = MODELS["transactions"].build(bounds)
        explore(model, model.properties, Limits())


def _simulate() -> None:
    for seed in SEEDS:
        outcome = run(replace(setup_of_next(seed), transactions=True), STEPS)
        assert outcome.broken is None, f"seed {seed} breaks {outcome.broken}"


def as_json(missed: Mapping[str, Sequence[Branch]]) -> dict[str, Any]:
    """The content of the file: how many branches there are, and those that no case reaches, with who else does."""
    others = [way for way in missed if way != "cases"]
    listed = [[*branch, [way for way in others if branch not in missed[way]]] for branch in missed["cases"]]
    return {"branches": len(branches_of(ROOM)), "by others": listed}


# ---- the page

HEAD = """\
# The branches of transactions

You want to know which decisions of the rules of transactions no case of level 0 comes to, and what does.

`spec/transactions` has {every} branches: places where a rule goes on in one of two ways. The [cases](../conformance.md)
take {cases} of them. The others are below, each with what reaches it: the [model](../transactions-model.md) within some
bounds, [simulated clusters](../simulated-clusters.md) ({seeds} seeds of {steps:,} steps), or a test of the rule by itself.
Written by `python -m tests.conformance.wire.power.branches`, which measures all four.

| rules | branches | by cases | by model or clusters, too | by tests of the rule alone |
|---|---|---|---|---|
"""


def as_markdown(found: Mapping[str, Any]) -> str:
    """The page."""
    listed = [(Branch(*entry[:4]), entry[4]) for entry in found["by others"]]
    every = Counter(branch.function.partition(":")[0] for branch in branches_of(ROOM).values())
    left = Counter(branch.function.partition(":")[0] for branch, _ in listed)
    alone = Counter(branch.function.partition(":")[0] for branch, ways in listed if ways == ["tests"])
    rows = [
        f"| `{module}` | {count} | {count - left[module]} | {left[module] - alone[module]} | {alone[module]} |\n"
        for module, count in every.items()
    ]
    total = f"| all | {sum(every.values())} | {sum(every.values()) - len(listed)} | "
    total += f"{len(listed) - sum(alone.values())} | {sum(alone.values())} |\n"
    head = HEAD.format(every=sum(every.values()), cases=sum(every.values()) - len(listed), seeds=len(SEEDS), steps=STEPS)
    table = ["\n## Not by cases\n\n| rule | where | goes on with | reached by |\n|---|---|---|---|\n"]
    table += [
        f"| `{branch.function.removeprefix('transactions.')}` | `{_cell(branch.line)}` | `{_cell(branch.then)}` |"
        f" {', '.join(ways) or REASONS[branch.function]} |\n"
        for branch, ways in listed
    ]
    return head + "".join([*rows, total, *table])


def _cell(code: str) -> str:
    return code.replace("|", "\\|")


REASONS: dict[str, str] = {}
"""The reason why nothing reaches a branch of a function."""


def main() -> int:
    """Measure, and write file and page."""
    found = as_json(measured())
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(as_markdown(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
