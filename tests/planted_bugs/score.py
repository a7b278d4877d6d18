"""The score of a module: which checks noticed its planted bugs, as tests/data/planted-bugs.json keeps it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.places import DATA, DOCS
from tests.planted_bugs.planting import PlantedBug

FILE = DATA / "planted-bugs.json"
PAGE = DOCS / "planted-bugs.md"

UNIT_TESTS, NOTHING = "unit tests", "nothing"
CATCHERS = (UNIT_TESTS, "simulated clusters", NOTHING)
"""The checks that may notice a bug, in the order in which they are asked; only the first is noted."""


class Score(NamedTuple):
    """Of one module: how many bugs were planted, what caught those of each operator, where, and what nothing catches.

    `planted`: of how many, `every`: each of which.
    """

    every: int
    operators: dict[str, dict[str, int]]
    functions: dict[str, dict[str, int]]
    unnoticed: list[str]

    @property
    def planted(self) -> int:
        """The number of bugs that were planted."""
        return sum(sum(counts.values()) for counts in self.operators.values())

    def by(self, catcher: str) -> int:
        """The number of bugs that something caught."""
        return sum(counts.get(catcher, 0) for counts in self.operators.values())


def score(every: int, found: Iterable[tuple[PlantedBug, str]]) -> Score:
    """The score of the bugs of one module, each with what caught it."""
    operators: dict[str, Counter[str]] = {}
    functions: dict[str, Counter[str]] = {}
    unnoticed = []
    for bug, by in found:
        catcher = catcher_of(by)
        operators.setdefault(bug.operator, Counter())[catcher] += 1
        place = by.partition("::")[0].removeprefix("tests/spec/") if catcher == UNIT_TESTS else by or NOTHING
        functions.setdefault(bug.function.partition(":")[2], Counter())[place] += 1
        if not by:
            unnoticed.append(str(bug))
    return Score(every, {name: dict(counts) for name, counts in sorted(operators.items())}, _plain(functions), unnoticed)


def _plain(counted: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: dict(counts.most_common()) for name, counts in counted.items()}


def catcher_of(by: str) -> str:
    """Of what kind that is which caught a bug."""
    kind = by.partition(": ")[0]
    return NOTHING if not by else kind if kind in CATCHERS else UNIT_TESTS


def load() -> dict[str, Score]:
    """The scores that are kept, by module."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {module: Score(**fields) for module, fields in kept.items()}


def as_text(scores: Mapping[str, Score]) -> str:
    """The file with these scores."""
    lines = (f'"{module}": {json.dumps(scores[module]._asdict())}' for module in sorted(scores))
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---- why nothing notices

READ_ONCE = "nothing changes: it is read when the module is imported, and what it becomes there is tested"

SAME = "nothing changes: both are the same there"

UNREAD = "nothing changes: the argument is not read there"

REASONS: dict[str, str] = {
    "broker.rules.reading:readable_replicas, leave_out_element: isr -> frozenset()": UNREAD,
    "broker.rules.isr.membership:has_reached_epoch_start, shift: epoch_start -> ((epoch_start) + 1)": UNREAD,
    "controller.rules.partition_change:last_known_leader_if_up, take_another: acceptable -> target.last_known_elr": UNREAD,
    "coordinator.protocol:MINUTE_MS, change_constant: 60000 -> 60001": READ_ONCE,
    "coordinator.protocol:MINUTE_MS, change_constant: 60000 -> 59999": READ_ONCE,
    "quorum.rules.snapshots:end_of_epoch, take_another: snapshot.end_offset -> end.end_offset": SAME,
    "broker.rules.truncation:truncation_step, take_another: answer.leader_epoch -> log.latest_epoch": (
        "nothing changes: the next condition gives the same where one of both is no epoch"
    ),
    "log.compaction:is_cleanable_by_ratio, take_another: UNKNOWN_TIME -> NO_BOUND": "nothing is ever overdue, as before",
}
"""The reasons why planted bugs go unnoticed, where they are known. By the bug's text without its line."""
