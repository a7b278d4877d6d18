"""The record that a cluster's processes have written with --trace, run through the rules again."""

from pathlib import Path
from typing import NamedTuple

from model_check.cli.broker.serve import rules_of

STEPS = "*/steps-*.jsonl"


class Record(NamedTuple):
    """What came of it: how many steps of how many starts, and the first step that comes out differently, in words."""

    steps: int
    starts: int
    difference: str | None

    def __str__(self) -> str:
        if self.difference is not None:
            return f"record: {self.difference}"
        return f"record: {self.steps:,} steps of {self.starts} starts, all come out as recorded"


def replay_record(folder: Path) -> Record:
    """Run all steps in a cluster's folder again, each by the rules that its process had. Raises: `TraceError`."""
    from impl.trace.steps import has_steps, header_of, replay

    steps = starts = 0
    for file in sorted(folder.glob(STEPS)):
        starts += 1
        if not has_steps(file):
            continue
        rules = rules_of(*header_of(file))
        for difference in replay(file, rules.broker, rules.controller.protocol):
            if difference is not None:
                return Record(steps, starts, f"{file}:{difference.line}: {difference.rule} comes out differently")
            steps += 1
    return Record(steps, starts, None)
