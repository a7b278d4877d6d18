"""The page docs/planted-bugs.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.planted_bugs import constants
from tests.planted_bugs.operators import OPERATORS
from tests.planted_bugs.score import CATCHERS, NOTHING, REASONS, Score
from tests.planted_bugs.simulated import SEEDS, STEPS, UNCLEAN_SEED

INTRODUCTION = """# Planted bugs

Operators on the syntax tree plant small bugs in the rules of `spec`, each in one place of one function. A bug is looked for
by the unit tests of its room first, then in simulated clusters, by oracles and properties; what notices it first is noted.
The page is written by

```sh
python -m tests.planted_bugs ROOM … --every N
```

A room is a module below `spec` or a folder of such, and every Nth of its bugs is planted; rooms that are not named stay as
they are. `--first K` begins with another bug: each night may try another sample. A bug may change nothing that anybody could
notice: where this is known, the list at the end says so."""


OTHERS = {
    constants.OPERATOR: "A constant of a module that is one more or less, or lacks an element",
    "by_hand": "What is no change of one place alone",
}
"""Bugs that no operator on a function's syntax tree makes."""


def page(scores: Mapping[str, Score]) -> str:
    """The scores by room, by operator and by rule, and what nothing catches."""
    return "\n".join(
        [
            INTRODUCTION,
            "",
            f"Clusters are [simulated](simulated-clusters.md) for {STEPS:,} steps of seeds",
            f"{', '.join(map(str, SEEDS))}, and of seed {UNCLEAN_SEED} with unclean elections.",
            "",
            *_by_room(scores),
            *_by_operator(scores),
            *_by_rule(scores),
            *_unnoticed(scores),
        ]
    )


def _table(title: str, *head: str) -> Iterator[str]:
    yield from (f"## {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|")


def _row(name: str, each: str, planted: int, by: Callable[[str], int]) -> str:
    noticed = planted - by(NOTHING)
    cells = [name, *([each] if each else []), f"{planted:,}", *(f"{by(one):,}" for one in CATCHERS)]
    return f"| {' | '.join(cells)} | {100 * noticed / planted:.1f} % |"


def _by_room(scores: Mapping[str, Score]) -> Iterator[str]:
    yield from _table("Score by room", "room", "every", "planted", *CATCHERS, "noticed")
    rooms: dict[str, list[Score]] = {}
    for module, score in scores.items():
        rooms.setdefault(room_of(module), []).append(score)
    for room, those in sorted(rooms.items()):
        yield _row(f"`{room}`", _rates(those), sum(one.planted for one in those), _sum(those))
    everything = list(scores.values())
    yield _row("all", _rates(everything), sum(one.planted for one in everything), _sum(everything))
    yield ""


def room_of(module: str) -> str:
    """The folder of a module below `spec`, or the module if it lies in none."""
    return module.rpartition(".")[0] or module


def _rates(those: list[Score]) -> str:
    rates = sorted({one.every for one in those})
    return f"{rates[0]}" if len(rates) == 1 else f"{rates[0]} to {rates[-1]}"


def _sum(those: Iterable[Score]) -> Callable[[str], int]:
    kept = list(those)
    return lambda catcher: sum(one.by(catcher) for one in kept)


def _by_operator(scores: Mapping[str, Score]) -> Iterator[str]:
    yield from _table("Score by operator", "operator", "the bug", "planted", *CATCHERS, "noticed")
    counts: dict[str, Counter[str]] = {operator.__name__: Counter() for operator in OPERATORS}
    counts.update((name, Counter()) for name in OTHERS)
    for score in scores.values():
        for name, caught in score.operators.items():
            counts[name].update(caught)
    for operator in OPERATORS:
        count = counts[operator.__name__]
        if count.total():
            words = (operator.__doc__ or "").partition("\n")[0].rstrip(".")
            yield _row(f"`{operator.__name__}`", words, count.total(), count.__getitem__)
    for name, words in OTHERS.items():
        if counts[name]:
            yield _row(f"`{name}`", words, counts[name].total(), counts[name].__getitem__)
    yield ""


def _by_rule(scores: Mapping[str, Score]) -> Iterator[str]:
    yield from _table("Where the bugs of each rule are caught", "rule", "planted", "caught by")
    for module, score in scores.items():
        for function, places in score.functions.items():
            caught = ", ".join(f"{place} ({count})" for place, count in places.items())
            yield f"| `{module}:{function}` | {sum(places.values())} | {caught} |"
    yield ""


def _unnoticed(scores: Mapping[str, Score]) -> Iterator[str]:
    yield from ("## What nothing catches", "")
    for score in scores.values():
        for bug in score.unnoticed:
            why = REASONS.get(place_of(bug), "")
            yield f"- `{bug}`" + (f": {why}" if why else "")
    yield ""


def place_of(bug: str) -> str:
    """A bug's text without the line."""
    function, _, change = bug.partition(", line ")
    return f"{function}, {change.partition(', ')[2]}"
