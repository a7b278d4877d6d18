"""`python -m tests.planted_bugs ROOM …`: plant bugs, see what notices them, and write docs/planted-bugs.md.

A room is a module below `spec`, or a folder of such: `coordinator`, `log.epoch_history`; all rooms, if none is named. What
the unit tests of its room do not notice is looked for in simulated clusters. What nothing notices is
printed.
"""

import argparse
import pkgutil
import sys
from collections.abc import Iterable

from kspec import spec
from tests.planted_bugs.page import page
from tests.planted_bugs.planting import PlantedBug, bugs_in, modules_of
from tests.planted_bugs.score import FILE, PAGE, Score, as_text, load, score
from tests.planted_bugs.simulated import fails_in
from tests.planted_bugs.units import noticed

ROOMS = tuple(one.name for one in pkgutil.iter_modules(spec.__path__) if one.name not in ("releases", "published"))
"""All rooms but the tables of releases, and the rules of published protocols, which no broker calls."""


def main() -> int:
    """Plant bugs of the rooms, and write what noticed them; the exit status is 0, whatever is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted_bugs", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth bug of a module only")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with this one, counted from 0")
    parser.add_argument("--units", action="store_true", help="ask unit tests only")
    parser.add_argument("--only-look", action="store_true", help="print what is found, and write neither data nor page")
    arguments = parser.parse_args()
    if arguments.every < 1 or not 0 <= arguments.first < arguments.every:
        parser.error("--every must be at least 1, and --first at least 0 and below --every")
    try:
        modules = [module for room in arguments.rooms or ROOMS for module in modules_of(room)]
    except ModuleNotFoundError as missing:
        room = (missing.name or "").removeprefix("kspec.")
        parser.error(f"no room is called {room}: {', '.join(ROOMS)}, or a module in one of them, such as log.segments")
    bugs = {module: list(bugs_in(module))[arguments.first :: arguments.every] for module in modules}
    found = dict(look_for([bug for those in bugs.values() for bug in those], arguments.units))
    scores = {
        module: score(arguments.every, [(bug, found[bug]) for bug in those]) for module, those in bugs.items() if those
    }
    tell(scores)
    if not arguments.only_look:
        kept = dict(sorted({**load(), **scores}.items()))
        FILE.write_text(as_text(kept), encoding="utf-8")
        PAGE.write_text(page(kept), encoding="utf-8")
    return 0


def look_for(bugs: list[PlantedBug], units_only: bool) -> Iterable[tuple[PlantedBug, str]]:
    """Each bug with what notices it, or nothing."""
    for bug, test in noticed(bugs):
        yield bug, test or ("" if units_only else fails_in(bug))


def tell(scores: dict[str, Score]) -> None:
    """Print the score of each module, and what nothing notices."""
    unnoticed = [bug for one in scores.values() for bug in one.unnoticed]
    for module, one in scores.items():
        print(f"{module}: {one.planted - len(one.unnoticed)} of {one.planted} noticed")
    planted = sum(one.planted for one in scores.values())
    print(f"all: {planted - len(unnoticed)} of {planted} noticed; not:", *unnoticed, sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
