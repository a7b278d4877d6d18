"""Results of the bugs planted by hand, as `tests/data/broker-bugs-told.json` keeps them."""

import json

from tests.conformance.wire.broken.planting import BUGS
from tests.places import DATA

FILE = DATA / "broker-bugs-told.json"


def told_bugs() -> dict[str, str]:
    """The bugs that were tried, each with the first case that tells it, or nothing."""
    kept: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {name: kept[name] for name in BUGS if name in kept}


def keep(found: dict[str, str]) -> None:
    """Keep further results."""
    kept = told_bugs() | found
    FILE.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
