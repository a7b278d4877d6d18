"""The speed of clusters in simulated time: `python -m benchmarks.broker.simulation`.

Seeds of `kspec simulate-cluster`, one after the other in one process, with faults, and all properties after each event. A
step is one call of a handler of `spec`, or of a question of it. Times are of the processor, without the start of Python and
its imports. So that machines can be compared, a step is also told in calls of an empty Python function, timed in turns with
the seeds.
"""

import argparse
import cProfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.engines import write_readme
from kspec.spec.controller.protocol import Controller
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup

BROKERS = (1, 2, 3)
CALLS = 1_000_000

PARTS = {
    "handlers and questions of `spec`, with what is made of their effects": (
        "impl/broker/core.py:run(",
        "impl/broker/core.py:ask(",
        "impl/metadata/active.py:decide_event(",
    ),
    "fetches, at leaders": ("impl/requests/fetch.py:fetch(", "impl/requests/fetch.py:_look_again("),
    "produce requests": ("impl/requests/produce.py:produce(",),
    "followers, with their answers": ("impl/replica/fetching.py:_take(", "impl/replica/fetching.py:go("),
    "metadata that brokers read": ("impl/replica/metadata_follower.py:_take(",),
    "the controller's requests": ("impl/controller/dispatch.py:handle(",),
    "files": ("impl/server/broker.py:_store(",),
    "starts of processes": ("trials/simulated/nodes.py:start(",),
    "messages on their way": ("trials/simulated/network.py:request_frame(", "trials/simulated/network.py:answer_frame("),
    "properties": ("trials/simulated/promises.py:look(", "trials/simulated/promises.py:look_at_step("),
}
"""Functions by what they are for. One may call another, so the shares overlap."""


SIMULATION = "the simulation itself: clock, network, nodes, clients, faults, properties, and its disk"
FOLDERS = {
    "trials/simulated/": SIMULATION,
    "trials/simulated/disk.py": SIMULATION,
    "/spec/": "`spec` itself",
    "/impl/": "all else of `impl`: the brokers and the controller",
}
"""The time's owner, by the file of a function, the first that fits. What Python's own functions take is their caller's."""


class SeedTiming(NamedTuple):
    """A seed: what came of it, its seconds of the processor, and those of an empty call."""

    outcome: RunOutcome
    seconds: float
    call: float


def _setup(seed: int) -> RunSetup:
    return RunSetup(seed, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT))


def _spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _empty() -> None:
    """Nothing."""


def _calls() -> None:
    for _ in range(CALLS):
        _empty()


def timed(seed: int, steps: int) -> SeedTiming:
    """Run a seed."""
    outcomes: list[RunOutcome] = []
    seconds = _spent(lambda: outcomes.append(run(_setup(seed), steps)))
    return SeedTiming(outcomes[0], seconds, _spent(_calls) / CALLS)


def shares(seeds: Sequence[int], steps: int) -> list[str]:
    """Rows: what part of the time each part takes, functions that it calls included, under a profiler; and all calls."""
    profile = cProfile.Profile()
    profile.enable()
    total = sum(run(_setup(seed), steps).steps for seed in seeds)
    profile.disable()
    profile.create_stats()
    functions = {f"{file}:{name}(": row for (file, _, name), row in profile.stats.items()}
    whole = functions[next(name for name in functions if name.endswith("trials/simulated/runs.py:run("))][3]
    rows = []
    for part, endings in PARTS.items():
        own = [row for name, row in functions.items() if name.endswith(endings)]
        rows.append(f"| {part} | {100 * sum(row[3] for row in own) / whole:.0f}% |")
    calls = sum(row[1] for row in functions.values())
    rows.append(f"| calls, those of built-in functions included | {calls / total:,.0f} a step |")
    return [*rows, *_by_folder(profile.stats)]


def _by_folder(stats: Mapping[Any, Any]) -> list[str]:
    """Rows: what part of the time the files of each folder take, without what they call elsewhere."""
    found: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in stats.items():
        whose = _whose(function)
        if whose is not None:
            found[whose] += own
            continue
        for caller, (_, _, spent, _) in callers.items():
            found[_whose(caller) or "Python's own functions that such call"] += spent
    return [f"| {whose} | {100 * spent / found.total():.0f}% |" for whose, spent in found.most_common()]


def _whose(function: tuple[str, int, str]) -> str | None:
    return next((whose for part, whose in FOLDERS.items() if part in function[0]), None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=5, help="the first seed")
    parser.add_argument("--seeds", type=int, default=4, help="how many")
    parser.add_argument("--steps", type=int, default=20_000, help="of each seed, with faults")
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    timed(chosen.seed, chosen.steps // 10)
    rows, found = [], [timed(seed, chosen.steps) for seed in seeds]
    for one in found:
        assert one.outcome.broken is None, f"seed {one.outcome.seed}: {one.outcome.broken}"
        rows.append(_row(f"{one.outcome.seed}", [one]))
    if len(found) > 1:
        rows.append(_row("all", found))
    text = "\n".join(
        [
            f"{chosen.steps:,} steps of each seed, and those until all replicas are in sync; one core.",
            "",
            "| seed | faults | steps | CPU s | steps per CPU-s | a step, in empty calls |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "Where the time goes, under a profiler (parts may call each other):",
            "",
            "| part | of the time |",
            "|---|---|",
            *shares(seeds, chosen.steps // 4),
            "",
        ]
    )
    print(text)
    write_readme("broker/simulation", text)


def _row(name: str, found: Sequence[SeedTiming]) -> str:
    steps, faults = sum(one.outcome.steps for one in found), sum(len(one.outcome.faults) for one in found)
    seconds, call = sum(one.seconds for one in found), sum(one.call for one in found) / len(found)
    rate = steps / seconds
    return f"| {name} | {faults} | {steps:,} | {seconds:.2f} | {rate:,.0f} | {1 / rate / call:,.0f} |"


if __name__ == "__main__":
    main()
