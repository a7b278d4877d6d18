"""`python -m tests.conformance.wire.broken [NAME …]`: run the cases on brokers with bugs, and say which are told."""

import argparse
import sys

from tests.conformance.wire.broken.planting import BUGS
from tests.conformance.wire.broken.results import keep
from tests.conformance.wire.broken.score import cases_that_tell


def main() -> int:
    """Run the cases on a broker with each of the bugs; the exit status is 0 if all are told."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wire.broken", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="bugs, or beginnings of their subjects; all, if none is given"
    )
    parser.add_argument("--write", action="store_true", help="keep the results, for docs/conformance/power.md")
    arguments = parser.parse_args()
    chosen = [
        bug
        for bug in BUGS.values()
        if not arguments.names or bug.name in arguments.names or bug.subject.startswith(tuple(arguments.names))
    ]
    found: dict[str, str] = {}
    for bug in chosen:
        told = cases_that_tell(bug.name)
        print(f"{bug.subject}: {bug.name}: {len(told)} {told[0] if told else 'MISSED'}", flush=True)
        found[bug.name] = told[0].partition(": ")[0] if told else ""
        if arguments.write:
            keep(found)
    missed = [name for name, case in found.items() if not case]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} told; not: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
