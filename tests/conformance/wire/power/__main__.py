"""`python -m tests.conformance.wire.power [ROOM …] --every N`: weaken rules, and say which the cases tell.

A room is a module below `spec`, or a folder of such; all that level 0 asks, if none is named. With `--choose` runs are added
to `conformance/wire/choice/boundaries.json` until each weakened rule is told that a run of the models can tell. With
`--write` the score is kept, and its page written.
"""

import argparse
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context

from kspec.conformance.wire.cases.generation import all_runs
from kspec.conformance.wire.choice import boundaries
from kspec.conformance.wire.choice.differences import table_of
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.spec.releases.broker import NEWEST
from tests.conformance.wire.power.choosing import chosen
from tests.conformance.wire.power.score import DATA_FILE, PAGE, as_text, load, page, score
from tests.conformance.wire.power.weakening import MISSED, OPEN, WeakeningFinding, Weakenings
from tests.planted_bugs.planting import PlantedBug

MEMORY = 5 << 30
"""Bytes. A weakened rule may ask for endless memory."""

ALL: list[Weakenings] = []
"""The weakenings that the processes which judge have from the one that starts them."""


def main() -> int:
    """Weaken rules, and tell what tells them; the exit status is 0, whatever is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wire.power", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth weakening only")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with this one, counted from 0")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--choose", action="store_true", help="add runs that tell what no case tells")
    parser.add_argument("--write", action="store_true", help="keep the score, and write its page")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    weakenings = Weakenings([table_of(subject, NEWEST) for subject in SUBJECTS], all_runs())
    ALL.append(weakenings)
    bugs = weakenings.bugs(arguments.rooms)[arguments.first :: arguments.every]
    findings = list(_judged(bugs, arguments.processes))
    for one in findings:
        if one.verdict in (MISSED, OPEN):
            print(one.verdict, one.bug, one.subject, " ".join(one.moves), sep="\n    ")
    print(", ".join(f"{count} {verdict}" for verdict, count in Counter(one.verdict for one in findings).most_common()))
    if arguments.choose:
        boundaries.FILE.write_text(boundaries.as_text(chosen(findings, weakenings)), encoding="utf-8")
    if arguments.write:
        kept = load() | score(arguments.every, findings)
        DATA_FILE.write_text(as_text(kept), encoding="utf-8")
        PAGE.write_text(page(kept), encoding="utf-8")
    return 0


def _judged(bugs: Sequence[PlantedBug], processes: int) -> Iterator[WeakeningFinding]:
    with get_context("fork").Pool(processes) as pool:
        for number, finding in enumerate(pool.imap(_judge, bugs, chunksize=20), 1):
            yield finding
            if number % 500 == 0:
                print(f"{number} of {len(bugs)}", file=sys.stderr, flush=True)


def _judge(bug: PlantedBug) -> WeakeningFinding:
    return ALL[0].judge(bug)


if __name__ == "__main__":
    sys.exit(main())
