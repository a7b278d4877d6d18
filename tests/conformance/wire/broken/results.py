"""Results of bugs in the broker, as `tests/data` keeps them: of those planted by hand, and of weakenings of its own code."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.conformance.wire.broken.planting import BUGS
from tests.places import DATA

FILE = DATA / "broker-bugs-told.json"
OWN_CODE = DATA / "own-code-told.json"


UNSEEN: Mapping[str, str] = MappingProxyType(
    {
        "ends_turn(": "it decides who is served meanwhile, and not what is answered",
        "TURN_SIZE": "it decides who is served meanwhile, and not what is answered",
        "_seed()": "it decides on which brokers replicas lie, and one broker has one place for them",
    }
)
"""The reasons why no case can tell a weakening, by a part of its text."""


def unseen(name: str) -> str:
    """The reason why no case can tell a weakening of the broker's own code; empty if nobody knows one."""
    return next((why for part, why in UNSEEN.items() if part in name), "")


class OwnCodeScore(NamedTuple):
    """A module's weakenings: every Nth was tried, so many; and those that no case tells."""

    every: int
    tried: int
    not_told: tuple[str, ...]


def told_bugs() -> dict[str, str]:
    """The bugs that were tried, each with the first case that tells it, or nothing."""
    kept: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {name: kept[name] for name in BUGS if name in kept}


def keep(found: dict[str, str]) -> None:
    """Keep further results."""
    kept = told_bugs() | found
    FILE.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")


def own_code() -> dict[str, OwnCodeScore]:
    """The scores of modules."""
    kept = json.loads(OWN_CODE.read_text(encoding="utf-8")) if OWN_CODE.exists() else {}
    return {module: OwnCodeScore(one["every"], one["tried"], tuple(one["not_told"])) for module, one in kept.items()}


def keep_own(module: str, score: OwnCodeScore) -> None:
    """Keep a module's score in place of its former one."""
    kept = own_code() | {module: score}
    text = json.dumps({name: one._asdict() for name, one in sorted(kept.items())}, indent=1)
    OWN_CODE.write_text(f"{text}\n", encoding="utf-8")
