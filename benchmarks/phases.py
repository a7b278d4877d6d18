"""The phases of a search with one worker, in time: `python -m benchmarks.phases [NAME=VALUE …]`.

`StrongIsr` is checked in `kip-320`, three replicas, log 3, records 3, epochs 0 to 2 unless settings say otherwise.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks.engines import write_readme

STARTED = time.perf_counter()

from kspec.model_check.core.exploration import Limits  # noqa: E402
from kspec.model_check.engines.compiled import explore, kernels, search  # noqa: E402
from kspec.model_check.engines.compiled.rulebook import RuleBook  # noqa: E402
from kspec.model_check.models import MODELS  # noqa: E402

SETTINGS = {"log_size": 3, "max_records": 3, "max_epoch": 2}
PHASES = (
    (search.Search, "successors", "expand", "transition"),
    (kernels, "distribute", "distribute by shard", "transition"),
    (search.Search, "merge_shards", "merge", "transition"),
    (search.Search, "check", "check properties", "state"),
    (RuleBook, "learn", "ask the rules (Python)", "state"),
    (search.Search, "change_layout", "pack states anew", "state"),
)


def main(arguments: list[str]) -> None:
    """Explore with every phase timed, and put the table on the page."""
    imported = time.perf_counter() - STARTED
    settings = SETTINGS | {key: int(value) for key, value in (argument.split("=", 1) for argument in arguments)}
    seconds: dict[str, float] = defaultdict(float)
    for owner, name, phase, _ in PHASES:
        setattr(owner, name, _timed(getattr(owner, name), phase, seconds))
    model = MODELS["kip-320"].build(settings)
    properties = [prop for prop in model.properties if prop.name == "StrongIsr"]
    before = time.perf_counter()
    found = explore(model, properties, Limits(stop_at_first=False), workers=1)
    total = time.perf_counter() - before
    amounts = {"state": found.distinct_states, "transition": found.transitions}
    lines = ["| phase | seconds | nanoseconds |", "|---|---|---|", f"| import | {imported:.2f} | |"]
    for _, _, phase, unit in PHASES:
        lines.append(f"| {phase} | {seconds[phase]:.2f} | {seconds[phase] / amounts[unit] * 1e9:.0f} per {unit} |")
    rest = total - sum(seconds.values())
    lines.append(f"| the rest | {rest:.2f} | {rest / amounts['state'] * 1e9:.0f} per state |")
    shown = ", ".join(f"{key} {value}" for key, value in settings.items())
    text = (
        f"`kip-320`, {shown}, `StrongIsr` checked, one worker: {found.distinct_states:,} states,"
        f" {found.transitions:,} transitions, {total:.2f} s.\n\n" + "\n".join(lines) + "\n"
    )
    print(text)
    write_readme(" ".join(["phases", *arguments]), text)


def _timed(function: Callable[..., Any], phase: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **options: Any) -> Any:
        before = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            seconds[phase] += time.perf_counter() - before

    return timed


if __name__ == "__main__":
    main(sys.argv[1:])
