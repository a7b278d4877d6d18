"""`python -m tests.planted_bugs`: plant each bug, see what notices it, and write docs/planted-bugs.md."""

import argparse
import json
import sys
from typing import Any

from tests.places import DATA, DOCS
from tests.planted_bugs.bugs import BUGS, BY_NAME
from tests.planted_bugs.page import page
from tests.planted_bugs.simulated import simulated
from tests.planted_bugs.units import noticed

FILE = DATA / "planted-bugs.json"
PAGE = DOCS / "planted-bugs.md"


def main() -> int:
    """Plant all bugs, or those that are named; the others stay as the file has them."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted_bugs", description=__doc__)
    parser.add_argument("names", nargs="*", help="these bugs only")
    parser.add_argument("--simulation", action="store_true", help="look at the simulation only")
    parser.add_argument("--units", action="store_true", help="look at unit tests only")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BY_NAME)
    if unknown:
        parser.error(f"no bug is called {', '.join(sorted(unknown))}")
    chosen = [BY_NAME[name] for name in arguments.names] or list(BUGS)
    by_simulation: dict[str, dict[str, Any]] = {}
    if not arguments.units:
        for bug in chosen:
            by_simulation[bug.name] = simulated(bug)
            print(bug.name, by_simulation[bug.name], flush=True)
    by_test = {} if arguments.simulation else {bug.name: test for bug, test in noticed(tuple(chosen))}
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name, seen in by_simulation.items():
        before = found.get(name, {})
        found[name] = {**seen, **({"test": before["test"]} if "test" in before else {})}
    for name, test in by_test.items():
        found.setdefault(name, {})["test"] = test
    kept = {bug.name: found[bug.name] for bug in BUGS if bug.name in found}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
