"""Versions in which a case is run: the newest that both sides know, the oldest, or each in its turn."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from kspec.conformance.wire.cases.suite import Json

Offered: TypeAlias = Mapping[int, tuple[int, int]]
"""The first and the last version that a target offers, by the key of the API."""


class Choice(Enum):
    """The choice of versions. What only prepares a case is always of the newest one: later steps need what it tells."""

    NEWEST = "newest"
    OLDEST = "oldest"
    ALL = "all"


def shared(step: Json, offered: Offered) -> range:
    """The versions of a step that both sides know, the oldest first; empty if there is none."""
    first, last = step["versions"]
    lowest, highest = offered.get(step["key"], (0, -1))
    return range(max(first, lowest), min(last, highest) + 1)


def steps_of(case: Json, offered: Offered) -> Iterator[Json]:
    """The steps of a case. Where the target lacks a request, something else may do as well, or the step may be left out."""
    for step in case["steps"]:
        lacks = not step.get("raw") and not shared(step, offered)
        if lacks and "otherwise" in step:
            yield step["otherwise"]
        elif not lacks or not step.get("optional"):
            yield step


def left_out_of(case: Json, offered: Offered) -> tuple[str, ...]:
    """The APIs of the looks that a case does without, because the target does not offer them."""
    steps = [step for step in case["steps"] if step.get("optional") and not step.get("raw") and "otherwise" not in step]
    return tuple(dict.fromkeys(step["api"] for step in steps if not shared(step, offered)))


def in_versions(cases: Sequence[Json], choice: Choice, offered: Offered) -> list[Json]:
    """The cases as they are to be run. A case that a target lacks something for stays as it is: the runner says what.

    `ALL`: a case is run until each version of each of its requests has been used. All of them go down together from the
    newest one, and whoever has no older one stays at its oldest.
    """
    return [one for case in cases for one in _variants(case, choice, offered)]


def _variants(case: Json, choice: Choice, offered: Offered) -> Iterator[Json]:
    moves = [step for step in case["steps"] if not (step.get("setup") or step.get("raw"))]
    moves = [step for step in moves if shared(step, offered) or not step.get("optional")]
    ranges = [shared(step, offered) for step in moves]
    if choice == Choice.NEWEST or not all(ranges):
        yield case
        return
    most = max(map(len, ranges), default=1)
    for older in (most - 1,) if choice == Choice.OLDEST else range(most):
        yield _pinned(
            case,
            {id(step): versions[max(len(versions) - 1 - older, 0)] for step, versions in zip(moves, ranges, strict=True)},
        )


def _pinned(case: Json, version_of: Mapping[int, int]) -> Json:
    """The case with these versions of its requests, by the identity of the step; the name says them."""
    steps = [step | {"versions": [version_of[id(step)]] * 2} if id(step) in version_of else step for step in case["steps"]]
    said = dict.fromkeys(f"{step['api']} {version_of[id(step)]}" for step in case["steps"] if id(step) in version_of)
    return case | {"steps": steps, "name": f"{case['name']} ({', '.join(said)})", "case": case["name"]}
