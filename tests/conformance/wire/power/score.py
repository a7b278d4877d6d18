"""The score of level 0, as `tests/data/power.json` keeps it, and its page."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kspec.conformance.wire.choice.differences import MOST_PAIRS
from tests.conformance.wire.broken.planting import BUGS
from tests.conformance.wire.broken.results import own_code, told_bugs, unseen
from tests.conformance.wire.power.weakening import MISSED, OPEN, SAME, SEARCH_S, TOLD, WeakeningFinding
from tests.places import DATA, DOCS

DATA_FILE = DATA / "power.json"
PAGE = DOCS / "conformance" / "power.md"
VERDICTS = (TOLD, MISSED, OPEN, SAME)


class RoomScore(NamedTuple):
    """The verdicts on the weakened rules of one module, in all and by the subject that tells them.

    `every`: which of its weakenings were tried. `missed`: those that no case tells, with a subject and the moves that would.
    """

    every: int
    verdicts: dict[str, int]
    subjects: dict[str, dict[str, int]]
    missed: list[list[str]]
    open: list[str]


Score = dict[str, RoomScore]
"""The scores by module below `spec`."""


def score(every: int, findings: Sequence[WeakeningFinding]) -> Score:
    """The score of what was found."""
    by_room: dict[str, list[WeakeningFinding]] = {}
    for one in findings:
        by_room.setdefault(one.bug.function.partition(":")[0], []).append(one)
    return {room: _room_score(every, those) for room, those in by_room.items()}


def _room_score(every: int, findings: Sequence[WeakeningFinding]) -> RoomScore:
    subjects: dict[str, Counter[str]] = {}
    for one in findings:
        if one.subject:
            subjects.setdefault(one.subject, Counter())[one.verdict] += 1
    return RoomScore(
        every,
        dict(sorted(Counter(one.verdict for one in findings).items())),
        {name: dict(sorted(counts.items())) for name, counts in sorted(subjects.items())},
        [[str(one.bug), one.subject, ", ".join(one.moves)] for one in findings if one.verdict == MISSED],
        [str(one.bug) for one in findings if one.verdict == OPEN],
    )


def as_text(kept: Score) -> str:
    """The file with scores."""
    return json.dumps({room: one._asdict() for room, one in sorted(kept.items())}, indent=1) + "\n"


def load() -> Score:
    """The scores that are kept."""
    kept: dict[str, Any] = json.loads(DATA_FILE.read_text(encoding="utf-8")) if DATA_FILE.exists() else {}
    return {room: RoomScore(**fields) for room, fields in kept.items()}


INTRODUCTION = """# The power of level 0

You want to know what the [cases](../conformance.md) notice of a broker that is wrong.

## Weakened rules

Operators on the syntax tree ([planted bugs](../planted-bugs.md)) weaken the rules of `spec` that the models of level 0 ask,
each in one place of one function. The cases are taken through the models with the weakened rule. If none is answered
otherwise, all requests are given in all states of the models: so it is known whether any run within the bounds would tell.

```sh
python -m tests.conformance.wire.power ROOM … --every N --write
```

| verdict | meaning |
|---|---|
| told | an answer of a case is not as it expects; or the rule fails, or does not end |
| missed | no case tells it, and a run of the models would |
| open | no case tells it, and nobody knows whether a run would: the search was given up after {pairs:,} pairs of states or \
{seconds} s, or the model's client makes another request of the weakened broker, whose answer cannot be compared |
| same | no run of the models within the bounds is answered otherwise |

A room is a module below `spec` or a folder of such. Every Nth of its weakened rules is tried; rooms that are not named stay
as they are, and those that were not tried are not here.

Of {planted:,} weakened rules {differ:,} differ on a run of the models, or may; **{told:,} of these are told
({percent:.1f} %)**.
"""


def page(kept: Score) -> str:
    """The page with the scores."""
    return "\n".join([*_weakened(kept), *_missed(kept), *_by_hand(), *_own_code()])


def _weakened(kept: Score) -> Iterator[str]:
    counted = _added(one.verdicts for one in kept.values())
    differ = sum(counted[one] for one in (TOLD, MISSED, OPEN))
    yield INTRODUCTION.format(
        pairs=MOST_PAIRS,
        seconds=SEARCH_S,
        planted=differ + counted[SAME],
        differ=differ,
        told=counted[TOLD],
        percent=100 * counted[TOLD] / differ,
    )
    yield from ("| rules in | every | told | missed | open | same | of those that differ |", "|---|---|---|---|---|---|---|")
    for room, one in sorted(kept.items()):
        yield _row(f"`{room}` | {one.every}", one.verdicts, VERDICTS)
    yield from ("", "Each is counted in the first subject that tells it, in the order of the subjects.", "")
    yield from ("| subject | told | missed | of those that differ |", "|---|---|---|---|")
    for subject in sorted({name for one in kept.values() for name in one.subjects}):
        yield _row(f"`{subject}`", _added(one.subjects.get(subject, {}) for one in kept.values()), (TOLD, MISSED))


def _added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return found


def _row(name: str, counts: Mapping[str, int], verdicts: Sequence[str]) -> str:
    differ = sum(counts.get(one, 0) for one in (TOLD, MISSED, OPEN))
    share = f"{100 * counts.get(TOLD, 0) / differ:.1f} %" if differ else ""
    cells = (f"{counts.get(one, 0):,}" for one in verdicts)
    return f"| {name} | {' | '.join(cells)} | {share} |"


def _missed(kept: Score) -> Iterator[str]:
    missed = [line for _, one in sorted(kept.items()) for line in one.missed]
    unknown = [line for _, one in sorted(kept.items()) for line in one.open]
    yield from ("", "## What no case tells", "")
    if missed:
        yield from ("| weakened rule | a run that would tell it |", "|---|---|")
        yield from (f"| `{_cell(bug)}` | `{subject}`: {moves} |" for bug, subject, moves in missed)
    if unknown:
        yield from ("", "Of these nobody knows:", "", *(f"- `{_cell(one)}`" for one in unknown))
    if not missed and not unknown:
        yield "Nothing that differs."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def _by_hand() -> Iterator[str]:
    told = told_bugs()
    yield from ("", "## Bugs planted by hand", "")
    yield from (
        "Bugs that an implementer may make, planted into this project's broker one at a time.",
        "The cases are run on it by wire.",
        "",
        "```sh",
        "python -m tests.conformance.wire.broken --write",
        "```",
        "",
        f"Of {len(BUGS)} bugs {len(told)} were tried with these cases; **{sum(map(bool, told.values()))}** are told.",
        "",
        "| subject | planted | tried | told | not told |",
        "|---|---|---|---|---|",
    )
    for subject in sorted({one.subject for one in BUGS.values()}):
        names = [name for name, one in BUGS.items() if one.subject == subject]
        tried = [name for name in names if name in told]
        missed = ", ".join(f"`{name}`" for name in tried if not told[name])
        yield f"| {subject} | {len(names)} | {len(tried)} | {sum(bool(told[name]) for name in tried)} | {missed} |"
    yield ""
    yield from (f"- `{name}`: {one.unseen}." for name, one in BUGS.items() if one.unseen)
    yield ""


def _own_code() -> Iterator[str]:
    kept = own_code()
    tried, missed = sum(one.tried for one in kept.values()), sum(len(one.not_told) for one in kept.values())
    yield from (
        "## Weakenings of the broker's own code",
        "",
        "The same operators weaken what is no rule of `spec`: reading of requests, files, waiting, sessions. No model runs",
        "this code, so the cases are run on the broker by wire. Of a weakening that none of them tells nobody knows whether",
        "any request would: many change what only a line of the log, an odd disk, or time shows.",
        "",
        "```sh",
        "python -m tests.conformance.wire.broken --own impl.requests.fetch --every N --write",
        "```",
        "",
        f"Of {tried} weakenings {tried - missed} are told.",
        "",
        "| module | every | tried | told |",
        "|---|---|---|---|",
    )
    yield from (f"| `{name}` | {one.every} | {one.tried} | {one.tried - len(one.not_told)} |" for name, one in kept.items())
    yield from ("", *(_not_told(line) for one in kept.values() for line in one.not_told), "")


def _not_told(name: str) -> str:
    why = unseen(name)
    return f"- `{_cell(name)}`{': ' * bool(why)}{why}"
