"""The page docs/planted-bugs.md."""

from collections.abc import Mapping
from typing import Any

from tests.planted_bugs.bugs import BUGS
from tests.planted_bugs.others import OTHER_BUGS
from tests.planted_bugs.reasons import REASONS
from tests.planted_bugs.simulated import BUSY_MOVES, MOVES, SEED
from tests.simulation.properties import ALWAYS


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of all bugs, by what notices them."""
    rows, kinds = [], {"property": 0, "oracle": 0, "test": 0, "nothing": 0}
    for bug in BUGS:
        entry = found.get(bug.name, {})
        cells = [_cell(entry.get(kind)) for kind in ("property", "oracle")]
        test = entry.get("test", "")
        noticed_by_any = any(entry.values())
        for kind in ("property", "oracle", "test"):
            kinds[kind] += bool(entry.get(kind))
        kinds["nothing"] += not noticed_by_any
        shown = "`" + test.removeprefix("tests/spec/") + "`" if test else ""
        shown = shown if "test" in entry else "(not run)"
        why = "" if noticed_by_any else REASONS.get(bug.name, "")
        rows.append(f"| `{bug.name}` | `{bug.function.rpartition(':')[2]}` | {cells[0]} | {cells[1]} | {shown}{why} |")
    noticed = len(BUGS) - kinds["nothing"]
    return "\n".join(
        [
            "# Planted bugs",
            "",
            "Small bugs in the rules, one at a time: a comparison that is off by one, a condition",
            "or an effect that is missing, an effect in the wrong place, another error. Written by",
            f"`python -m tests.planted_bugs`, which simulates {MOVES:,} moves of seed {SEED} for each, and {BUSY_MOVES:,}",
            "in a busy cluster where nothing was noticed ([simulated cluster](simulated-cluster.md)), and runs the",
            "unit tests of the rules. A bug whose unit tests have not been run says so. The simulation calls the rules of",
            f"replication; the last {len(OTHER_BUGS)} bugs are in other rules, and only unit tests look for them.",
            "",
            f"Of {len(BUGS)} bugs, {noticed} are noticed: {kinds['property']} by a property of states and effects,",
            f"{kinds['oracle']} by a property or an oracle, {kinds['test']} by a unit test. The second column of the",
            "simulation has what fails first if oracles are asked, too. In brackets: after how many moves.",
            "",
            "| bug | in | property | property or oracle | unit test, or why there is none |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    name = found["name"]
    shown = name if name in ALWAYS else f"`{name}`"
    return f"{shown} ({found['moves']:,})"
