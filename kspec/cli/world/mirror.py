"""`kspec world mirror`: a real controller under test, with the specification as its brokers."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kspec.cli.common import unknown
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError

if TYPE_CHECKING:
    from kspec.conformance.mirror.replay import ReplayResult
    from kspec.conformance.mirror.runs import MirrorRun
    from kspec.conformance.mirror.session import Task
    from kspec.spec.controller.protocol import ControllerProtocol


class CoverRequest(NamedTuple):
    """Request for a covering run: its goals, and the form of its output."""

    kafka: str
    states: int | None
    most: int | None
    keep: str | None
    as_json: bool


@click.command()
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test.")
@click.option("--cover", is_flag=True, help="Replay runs that cover every pair of action and outcome.")
@click.option("--mutants", is_flag=True, help="For each mutant of the controller, replay a run that tells it apart.")
@click.option("--runs", "most", type=click.IntRange(1), metavar="N", help="With --cover: at most N runs.")
@click.option("--states", type=click.IntRange(1), metavar="N", help="States explored of each graph.  [default: 300]")
@click.option("--traces", type=click.IntRange(1), metavar="N", help="With seed:S: the walks of N seeds from S on.")
@click.option("--rules", metavar="RELEASE", help="Expect what this release's rules say, not those of --kafka.")
@click.option("--mutant", metavar="NAME", help="Weaken one rule of the specification, to see that Kafka departs.")
@click.option("--min-isr", type=click.IntRange(1), metavar="N", help="min.insync.replicas of a run of model controller.")
@click.option("--keep", metavar="DIR", help="Keep each run from which Kafka departs as a file in DIR that replays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="Print the verdict alone, not every step.")
def mirror(
    run: str | None,
    kafka: str,
    cover: bool,
    mutants: bool,
    most: int | None,
    states: int | None,
    traces: int | None,
    rules: str | None,
    mutant: str | None,
    min_isr: int | None,
    keep: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Replay RUN on a real controller, with the specification as its brokers; compare each record and answer.

    RUN is a name (without RUN, all are listed), seed:N (a random walk of model controller), or a file: ITF, what
    `kspec check controller --json` prints, or a run that --keep has kept.

    Exit status: 0 Kafka follows, 1 it departs, 2 bad usage, 3 the controller has died or does not answer. With --mutants: 0
    every mutant that a run tells apart is caught, 1 not.
    """
    if sum((run is not None, cover, mutants)) > 1:
        raise click.UsageError("give one of RUN, --cover and --mutants")
    if most is not None and not cover:
        raise click.UsageError("--runs goes with --cover")
    if states is not None and not cover and not mutants:
        raise click.UsageError("--states goes with --cover and --mutants")
    expected = _rules(kafka, rules, mutant)
    asked = CoverRequest(kafka, states, most, keep, as_json)
    if cover:
        return _cover(asked, expected)
    if mutants:
        return _mutants(asked, expected)
    if run is None:
        return _list_runs()
    from kspec.conformance.mirror.session import Task

    names = _seeds(run, traces) if traces is not None else [run]
    found = _replay(kafka, [Task(_run_named(name, kafka, min_isr), expected) for name in names], None)
    _keep(found, keep)
    _tell(found, as_json=as_json, plain=plain)
    return ALL_HOLD if all(replayed.follows for replayed in found) else VIOLATED


def _seeds(run: str, traces: int) -> list[str]:
    first = run.removeprefix("seed:")
    if first == run or not first.isdecimal():
        raise click.UsageError(f"--traces goes with seed:N, and not with {run}")
    return [f"seed:{int(first) + number}" for number in range(traces)]


def _list_runs() -> int:
    from kspec.conformance.mirror.named import NAMED

    for name, made in NAMED.items():
        click.echo(f"{name:30} {(made.__doc__ or '').splitlines()[0]}")
    return ALL_HOLD


def _replay(kafka: str, tasks: "list[Task]", told: "Callable[[ReplayResult], None] | None") -> "tuple[ReplayResult, ...]":
    """Replay runs; a controller that dies or does not answer is status 3, and so are missing jars."""
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
    from kspec.conformance.mirror.controller import ControllerDiedError
    from kspec.conformance.mirror.session import replay_all
    from kspec.conformance.mirror.taking import ImpossibleMoveError

    try:
        java()
        return asyncio.run(replay_all(find_jars(kafka), tasks, told))
    except ImpossibleMoveError as error:
        raise click.UsageError(str(error)) from error
    except (ControllerDiedError, KafkaMissingError) as error:
        raise StoppedError(str(error)) from error


def _keep(found: "Iterable[ReplayResult]", folder: str | None) -> None:
    from kspec.conformance.mirror.session import keep

    for replayed in found:
        if folder is not None and not replayed.follows:
            keep(replayed.run, Path(folder))


def _rules(kafka: str, release: str | None, mutant: str | None) -> "ControllerProtocol":
    """The rules that are expected: those of the release under test, unless others are asked for."""
    from kspec.conformance.mirror.runs import rules_of
    from kspec.spec.mutation import weaken
    from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
    from kspec.spec.releases.names import KRAFT_NAMES, kraft_of

    parts = kafka.split(".")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or (int(parts[0]), int(parts[1])) < (3, 9):
        raise click.UsageError(f"--kafka {kafka}: expected a release from 3.9.0 on, such as 4.4.0")
    found = rules_of(kafka)
    if release is not None:
        if release not in KRAFT_NAMES:
            raise unknown(f"there are no rules {release!r}", release, KRAFT_NAMES, "kspec models controller")
        found = kraft_of(release)
    if mutant is not None:
        mutants = {one.name: one for one in CONTROLLER_MUTANTS}
        if mutant not in mutants:
            raise unknown(f"there is no mutant {mutant!r}", mutant, mutants, "kspec models controller")
        found = weaken(found, mutants[mutant])
    return found


def _run_named(text: str, kafka: str, min_isr: int | None) -> "MirrorRun":
    """The run that RUN names; the rules of the release under test say what is possible in it."""
    from kspec.conformance.mirror.from_model import UnusableRunError, read_run, walk
    from kspec.conformance.mirror.named import NAMED, OTHER_NAMES
    from kspec.conformance.mirror.runs import rules_of

    bounds: dict[str, Any] = {} if min_isr is None else {"min_isr": min_isr}
    name = OTHER_NAMES.get(text, text)
    try:
        if name in NAMED:
            found = NAMED[name]()
            return found._replace(eligible_leader_replicas=not kafka.startswith("3."))
        if text.startswith("seed:") and text.removeprefix("seed:").isdecimal():
            return walk(int(text.removeprefix("seed:")), rules_of(kafka), bounds)
        if Path(text).exists():
            return read_run(Path(text), rules_of(kafka), bounds)
    except UnusableRunError as error:
        raise click.UsageError(str(error)) from error
    raise unknown(f"there is no run and no file {text!r}", text, NAMED, "kspec world mirror")


def _tell(found: "Sequence[ReplayResult]", *, as_json: bool, plain: bool) -> None:
    from kspec.conformance.mirror.session import departure_as_text, replayed_as_json, replayed_as_text, verdict_of

    if as_json:
        told = [replayed_as_json(replayed) for replayed in found]
        click.echo(json.dumps(told[0] if len(told) == 1 else {"runs": told}))
        return
    for replayed in found:
        lines = [*departure_as_text(replayed), verdict_of(replayed)] if plain else replayed_as_text(replayed)
        click.echo("\n".join(lines))


def _cover(asked: CoverRequest, rules: "ControllerProtocol") -> int:
    """Choose runs from the graph of the release's own rules, and replay them."""
    from kspec.conformance.mirror.runs import rules_of
    from kspec.conformance.mirror.session import STATES, Task, choose, departure_as_text, replayed_as_json, verdict_of

    began = time.monotonic()
    chosen = choose(asked.kafka, rules_of(asked.kafka), asked.states or STATES)
    tasks = [Task(run, rules) for run in chosen.runs[: asked.most]]
    choosing = time.monotonic() - began

    def told(replayed: "ReplayResult") -> None:
        if replayed.departure is not None and not asked.as_json:
            click.echo("\n".join([verdict_of(replayed), *departure_as_text(replayed)]))

    began = time.monotonic()
    found = _replay(asked.kafka, tasks, told)
    replaying = time.monotonic() - began
    departing = [replayed for replayed in found if not replayed.follows]
    _keep(departing, asked.keep)
    steps = sum(len(replayed.run.steps) for replayed in found)
    if asked.as_json:
        summary = {
            "verdict": "departs" if departing else "follows",
            "kafka": asked.kafka,
            "states": chosen.states,
            "transitions": chosen.transitions,
            "pairs": len(chosen.pairs),
            "runs": len(found),
            "steps": steps,
            "duration_s": round(replaying, 3),
            "departures": [replayed_as_json(replayed) for replayed in departing],
        }
        click.echo(json.dumps(summary))
    else:
        graph = f"{chosen.states} states, {chosen.transitions:,} transitions"
        click.echo(f"{len(chosen.pairs)} pairs of action and outcome in {graph} ({choosing:.0f} s)")
        click.echo(f"Kafka {asked.kafka}: {len(found)} runs, {steps} steps, {len(departing)} depart ({replaying:.0f} s)")
    return VIOLATED if departing else ALL_HOLD


def _mutants(asked: CoverRequest, rules: "ControllerProtocol") -> int:
    """A wrong specification is caught: Kafka departs from each mutant, and from each rule that `next` repairs."""
    from kspec.conformance.mirror.session import STATES, choose, telling_apart
    from kspec.spec.mutation import Mutant, changed_rules
    from kspec.spec.releases.kraft import KRAFT_NEXT
    from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS

    chosen = choose(asked.kafka, rules, asked.states or STATES)
    repaired = [
        Mutant(f"{name} of next", name, getattr(KRAFT_NEXT, name), "a rule of next")
        for name in changed_rules(rules, KRAFT_NEXT)
    ]
    tasks = list(telling_apart(chosen, rules, (*CONTROLLER_MUTANTS, *repaired)))
    found = {replayed.rules: replayed for replayed in _replay(asked.kafka, tasks, None)}
    lines = []
    for task in tasks:
        replayed = found.get(task.rules.name)
        departure = None if replayed is None else replayed.departure
        lines.append(
            {
                "mutant": task.name,
                "run": None if task.run is None else [str(step) for step in task.run.steps],
                "step": None if departure is None else departure.step,
                "rule": None if departure is None else departure.difference.rule,
            }
        )
    if asked.as_json:
        click.echo(json.dumps({"kafka": asked.kafka, "mutants": lines}))
    else:
        for line in lines:
            step, ways = line["step"], line["run"]
            verdict = f"departs at step {step}: {line['rule']}" if step is not None else "follows: NOT CAUGHT"
            click.echo(f"{line['mutant']:38} {'no run tells it apart' if ways is None else verdict}")
    return VIOLATED if any(line["run"] is not None and line["step"] is None for line in lines) else ALL_HOLD
