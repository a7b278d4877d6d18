"""`python -m tests.conformance.wire.broken [NAME …]`: run the cases on brokers with bugs, and say which are told.

With `--own MODULE` the bugs are weakenings of a module of the broker's own code, such as `impl.requests.fetch`.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tests.conformance.wire.broken.own_code import in_order_for, weakenings_of
from tests.conformance.wire.broken.planting import BUGS, BrokerBug
from tests.conformance.wire.broken.results import OwnCodeScore, keep, keep_own
from tests.conformance.wire.broken.score import cases_that_tell
from tests.conformance.wire.targets import documents


def main() -> int:
    """Run the cases on a broker with each of the bugs; the exit status is 0 if all are told."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wire.broken", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="bugs, or beginnings of their subjects; all, if none is given"
    )
    parser.add_argument("--own", metavar="MODULE", help="weaken this module instead")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth weakening only")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with this one, counted from 0")
    parser.add_argument("--write", action="store_true", help="keep the results, for docs/conformance/power.md")
    arguments = parser.parse_args()
    if arguments.own:
        return _own_code(arguments.own, arguments.first, arguments.every, arguments.write)
    chosen = [
        bug
        for bug in BUGS.values()
        if not arguments.names or bug.name in arguments.names or bug.subject.startswith(tuple(arguments.names))
    ]
    found: dict[str, str] = {}
    for bug in chosen:
        found[bug.name] = _told(bug)
        if arguments.write:
            keep(found)
    return _summary(found)


def _own_code(module: str, first: int, every: int, writes: bool) -> int:
    cases = in_order_for(module, documents())
    found = {bug.name: _told(bug, cases) for bug in list(weakenings_of(module))[first::every]}
    if writes:
        keep_own(module, OwnCodeScore(every, len(found), tuple(name for name, case in found.items() if not case)))
    return _summary(found)


def _told(bug: BrokerBug, cases: Sequence[Any] = ()) -> str:
    """The first case that tells a bug, or nothing."""
    told = cases_that_tell(bug, cases)
    print(f"{bug.subject}: {bug.name}: {len(told)} {told[0] if told else 'MISSED'}", flush=True)
    return told[0].partition(": ")[0] if told else ""


def _summary(found: dict[str, str]) -> int:
    missed: Sequence[str] = [name for name, case in found.items() if not case]
    print(f"{len(found) - len(missed)} of {len(found)} told; not: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
