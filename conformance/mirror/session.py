"""Many runs on real controllers, one process for each setting of the cluster; and what is said of them."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from kspec.conformance.kafka.jars import Jars
from kspec.conformance.mirror.controller import ControllerUnderTest
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.outcomes import Pair
from kspec.conformance.mirror.replay import Mirror, ReplayResult
from kspec.conformance.mirror.requests import covering, explore, pairs_of, tells_apart
from kspec.conformance.mirror.runs import MirrorRun, run_as_json
from kspec.model_check.traces.encode import as_json
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.mutation import Mutant, changed_rules, weaken

STATES = 300
"""The number of states of each graph that are explored, unless more are asked for."""


class RunSelection(NamedTuple):
    """The runs that cover the graphs, how many states and transitions these have, and the pairs that the runs cover."""

    runs: tuple[MirrorRun, ...]
    states: int
    transitions: int
    pairs: frozenset[tuple[str, Pair]]


class Task(NamedTuple):
    """A run to replay, and the rules that are expected; `name` is the mutant's, if they are a mutant."""

    run: MirrorRun | None
    rules: ControllerProtocol
    name: str = ""


def has_eligible_leader_replicas(kafka: str) -> bool:
    """Whether a release has eligible leader replicas; it is then formatted with them."""
    return not kafka.startswith("3.")


def settings_of(kafka: str) -> tuple[MirrorRun, ...]:
    """The settings of the graphs that are covered; a release before 4.0 has no eligible leader replicas."""
    without = (
        MirrorRun("without ELR", (), eligible_leader_replicas=False),
        MirrorRun("without ELR, unclean", (), unclean_election=True, eligible_leader_replicas=False),
    )
    if not has_eligible_leader_replicas(kafka):
        return without
    return (
        MirrorRun("ELR", ()),
        MirrorRun("ELR, unclean", (), unclean_election=True),
        MirrorRun("ELR, min ISR 3", (), min_isr=3),
        *without,
    )


def choose(kafka: str, rules: ControllerProtocol, states: int = STATES) -> RunSelection:
    """The runs that cover every pair of action and outcome in the graphs of all settings, as far as they are explored."""
    runs: list[MirrorRun] = []
    pairs: set[tuple[str, Pair]] = set()
    explored, transitions = 0, 0
    for template in settings_of(kafka):
        found = explore(template, rules, states)
        explored += found.states
        transitions += found.transitions
        pairs |= {(template.name, pair) for pair in found.found}
        runs += covering(found.found, template, rules)
    for made in NAMED.values():
        run = made()._replace(eligible_leader_replicas=has_eligible_leader_replicas(kafka))
        pairs |= {(run.name, pair) for pair in pairs_of(run, rules)}
        runs.append(run)
    return RunSelection(tuple(runs), explored, transitions, frozenset(pairs))


def telling_apart(chosen: RunSelection, rules: ControllerProtocol, mutants: Iterable[Mutant]) -> Iterator[Task]:
    """For each mutant a shortest run that tells it apart from the rules; `None` in place of a run if there is none.

    A mutant that changes nothing in these rules is left out: they have the weak rule already.
    """
    runs = sorted(chosen.runs, key=lambda run: len(run.steps))
    for mutant in mutants:
        weakened = weaken(rules, mutant)
        if not changed_rules(rules, weakened):
            continue
        yield Task(next((run for run in runs if tells_apart(run, rules, weakened)), None), weakened, mutant.name)


async def replay_all(
    jars: Jars, tasks: Iterable[Task], told: Callable[[ReplayResult], None] | None = None
) -> tuple[ReplayResult, ...]:
    """Replay runs, those with the same kind of cluster on one controller. Nothing is left behind.

    Raises: `ControllerDiedError`, `KafkaMissingError`, `ImpossibleMoveError`.
    """
    found: list[ReplayResult] = []
    listed = [(task.run, task.rules) for task in tasks if task.run is not None]
    for eligible in (True, False):
        batch = [(run, rules) for run, rules in listed if run.eligible_leader_replicas == eligible]
        if not batch:
            continue
        folder = Path(tempfile.mkdtemp(prefix="kspec-mirror-"))
        real = ControllerUnderTest(jars, folder, eligible_leader_replicas=eligible)
        try:
            await real.start()
            mirror = Mirror(real)
            for run, rules in batch:
                found.append(await mirror.replay(run, rules))
                if told is not None:
                    told(found[-1])
        finally:
            await real.close()
            shutil.rmtree(folder, ignore_errors=True)
    return tuple(found)


# ---- what is said


def replayed_as_json(replayed: ReplayResult) -> dict[str, Any]:
    """The one object that `kspec world mirror RUN --json` prints."""
    departure = replayed.departure
    return {
        "verdict": "follows" if departure is None else "departs",
        "kafka": replayed.kafka,
        "run": run_as_json(replayed.run),
        "steps": [as_json(told) for told in replayed.told],
        "departure": None
        if departure is None
        else {"step": departure.step, "move": departure.move, **departure.difference._asdict()},
    }


def verdict_of(replayed: ReplayResult) -> str:
    """The verdict in a line."""
    steps = f"{len(replayed.run.steps)} steps"
    if replayed.departure is None:
        return f"Kafka {replayed.kafka} follows {replayed.run.name} to its end ({steps})"
    where = f"step {replayed.departure.step}" if replayed.departure.step else "the set-up"
    return f"Kafka {replayed.kafka} departs from {replayed.run.name} at {where} of {steps}"


def replayed_as_text(replayed: ReplayResult) -> Iterator[str]:
    """A run as people read it: each step with what Kafka answered and wrote, then the verdict."""
    for told in replayed.told:
        yield f"{told.step:3} {told.move}"
        yield f"      answer  {told.answer}"
        yield from (f"      record  {record}" for record in told.records)
    yield from departure_as_text(replayed)
    yield verdict_of(replayed)


def departure_as_text(replayed: ReplayResult) -> Iterator[str]:
    """Kafka's departure in words, if there is one."""
    departure = replayed.departure
    if departure is not None:
        yield f"{departure.step:3} {departure.move}"
        yield f"      {departure.difference.what} expected  {departure.difference.expected}"
        yield f"      {departure.difference.what} observed  {departure.difference.observed}"
        yield f"      rule  {departure.difference.rule}"


def keep(run: MirrorRun, folder: Path) -> Path:
    """Keep a run as a file that replays, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(run_as_json(run), indent=1) + "\n"
    path = folder / f"departs-{crc32(content.encode()):08x}.json"
    path.write_text(content, encoding="utf-8")
    return path
