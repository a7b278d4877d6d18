"""`python -m tests.conformance.wire.power.reached ROOM …`: the branches of rules that no case of level 0 reaches.

A room is a module below `spec`, or a folder of such. The cases' runs are taken through the models, and each function of the
room is listed whose lines or branches are not all reached, with what is left out.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coverage import Coverage

from kspec.conformance.wire.cases.generation import all_runs
from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.spec.releases.broker import NEWEST
from tests.places import REPOSITORY


class FunctionReach(NamedTuple):
    """A function with the lines, and the branches (from a line to a line), that no case reaches."""

    name: str
    lines: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]
    all_branches: int

    @property
    def whole(self) -> bool:
        """Whether all of it is reached."""
        return not self.lines and not self.branches


def reached(runs: Sequence[SelectedRun], rooms: Sequence[str]) -> list[FunctionReach]:
    """The functions of rooms, by what these runs reach in them."""

    def take() -> None:
        for one in runs:
            for step in one.run:
                step.move.take(NEWEST, step.state)

    return reached_by(take, rooms)


def reached_by(work: Callable[[], object], rooms: Sequence[str]) -> list[FunctionReach]:
    """The functions of rooms, by what some work reaches in them."""
    watch = Coverage(data_file=None, branch=True, source=["kspec.spec"], config_file=False)
    watch.set_option("run:disable_warnings", ["module-not-measured"])
    watch.start()
    work()
    watch.stop()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reached.json"
        watch.json_report(outfile=str(file), ignore_errors=True)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return [
        _reach(f"{room}:{name}", function)
        for path, data in sorted(found["files"].items())
        if _is_in(room := _room(path), rooms)
        for name, function in data["functions"].items()
        if name
    ]


def _reach(name: str, function: dict[str, Any]) -> FunctionReach:
    lines = tuple(function["missing_lines"])
    branches = tuple((first, then) for first, then in function["missing_branches"])
    return FunctionReach(name, lines, branches, function["summary"]["num_branches"])


def _room(path: str) -> str:
    parts = (Path(path) if not Path(path).is_absolute() else Path(path).relative_to(REPOSITORY)).with_suffix("").parts
    return ".".join(part for part in parts[parts.index("spec") + 1 :] if part != "__init__")


def _is_in(room: str, rooms: Sequence[str]) -> bool:
    return any(room == one or room.startswith(f"{one}.") for one in rooms)


def main() -> int:
    """List what no case reaches; the exit status is 0, whatever is found, and 2 if there is no such room."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wire.power.reached", description=__doc__)
    parser.add_argument("rooms", nargs="+", metavar="ROOM")
    found = reached(all_runs(), parser.parse_args().rooms)
    if not found:
        print("no function of the rules is in these rooms; transactions is one", file=sys.stderr)
        return 2
    for one in found:
        if not one.whole:
            branches = ", ".join(f"{first}->{then}" if then > 0 else f"{first}->exit" for first, then in one.branches)
            print(f"{one.name}: lines {', '.join(map(str, one.lines)) or 'all'}; branches not taken: {branches or 'none'}")
    count, left = sum(one.all_branches for one in found), sum(len(one.branches) for one in found)
    print(f"{len(found)} functions, {sum(one.whole for one in found)} reached whole; {count - left} of {count} branches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
