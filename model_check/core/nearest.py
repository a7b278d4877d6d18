"""Answers to a name that does not exist: the names that are most like it."""

from collections.abc import Collection
from difflib import SequenceMatcher

FEW = 7
"""Up to this many names are all told."""

NEAREST = 3

LONGEST = 100
"""A name of more letters than this was not meant to be one of ours; to compare it would take long."""

LIKE = 0.55
"""From this similarity on (1: equal) a name may be the one that was meant."""


def nearest(name: str, known: Collection[str]) -> list[str]:
    """The known names that are most like this one, the nearest first; those that contain it come before others."""
    wanted = name.lower()
    if len(wanted) > LONGEST:
        return []

    def likeness(other: str) -> float:
        return SequenceMatcher(None, wanted, other.lower()).ratio() + (wanted in other.lower() and len(wanted) > 1)

    return [other for other in sorted(known, key=likeness, reverse=True) if likeness(other) >= LIKE][:NEAREST]


def instead_of(name: str, known: Collection[str], otherwise: str) -> str:
    """`choose from a, b` if there are few names; the nearest ones of many, and `otherwise` to say where all of them are."""
    if len(known) <= FEW:
        return f"choose from {', '.join(known)}" if known else "there is none"
    found = nearest(name, known)
    if not found:
        return otherwise
    meant = f"{', '.join(found[:-1])} or {found[-1]}" if len(found) > 1 else found[0]
    return f"did you mean {meant}? {otherwise}"
