"""`kspec world mirror`: a real controller under test, with the specification as its brokers."""

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from model_check.cli.common import unknown
from model_check.cli.statuses import ALL_HOLD, VIOLATED, StoppedError

if TYPE_CHECKING:
    from conformance.mirror.replay import Replayed
    from conformance.mirror.runs import Run
    from spec.controller.protocol import ControllerProtocol


@click.command()
@click.argument("run", required=False, metavar="RUN")
@click.option("--kafka", default="4.4.0", show_default=True, metavar="VERSION", help="Apache Kafka's release, 3.9.0 or later.")
@click.option("--cover", is_flag=True, help="Replay runs that cover every pair of action and outcome.")
@click.option("--runs", "most", type=click.IntRange(1), metavar="N", help="With --cover: at most N runs.")
@click.option(
    "--states", type=click.IntRange(1), metavar="N", help="With --cover: states explored of each graph.  [default: 300]"
)
@click.option("--rules", metavar="RELEASE", help="Expect what this release's rules say, not those of --kafka.")
@click.option("--mutant", metavar="NAME", help="Weaken one rule of the specification, to see that Kafka departs.")
@click.option("--min-isr", type=click.IntRange(1), metavar="N", help="min.insync.replicas of a run of model controller.")
@click.option("--keep", metavar="DIR", help="Keep each run from which Kafka departs as a file in DIR that replays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="No steps, only verdicts and departures.")
def mirror(
    run: str | None,
    kafka: str,
    cover: bool,
    most: int | None,
    states: int | None,
    rules: str | None,
    mutant: str | None,
    min_isr: int | None,
    keep: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Replay RUN on a real Kafka controller, and compare each record and answer.

    RUN is a name (`kspec world mirror` lists them), `seed:N` (a random walk of model `controller`), or a file: ITF, what
    `kspec check controller --json` prints, or a run that --keep has kept. Exit status: 0 Kafka follows, 1 it departs, 2 bad
    usage, 3 the controller ended or did not answer.
    """
    from conformance.kafka.jars import KafkaMissingError, find_jars
    from conformance.mirror.controller import ControllerDiedError
    from conformance.mirror.moves import ImpossibleMoveError
    from conformance.mirror.named import NAMED
    from conformance.mirror.session import keep as keep_run
    from conformance.mirror.session import replay_all

    if (run is None) == (not cover):
        if run is None:
            for name, made in NAMED.items():
                click.echo(f"{name:30} {(made.__doc__ or '').splitlines()[0]}")
            return ALL_HOLD
        raise click.UsageError("give a RUN or --cover, not both")
    if not cover and (most is not None or states is not None):
        raise click.UsageError("--runs and --states go with --cover")
    expected = _rules(kafka, rules, mutant)
    try:
        jars = find_jars(kafka)
        if cover:
            return _cover(kafka, expected, states, most, as_json=as_json, keep=keep)
        (found,) = asyncio.run(replay_all(jars, expected, [_run_named(str(run), kafka, min_isr)]))
    except KafkaMissingError as error:
        raise click.UsageError(str(error)) from error
    except (ControllerDiedError, ImpossibleMoveError) as error:
        raise StoppedError(str(error)) from error
    if keep is not None and not found.follows:
        keep_run(found.run, Path(keep))
    _tell(found, as_json=as_json, plain=plain)
    return ALL_HOLD if found.follows else VIOLATED


def _rules(kafka: str, release: str | None, mutant: str | None) -> "ControllerProtocol":
    """The rules that are expected: those of the release under test, unless others are asked for."""
    from conformance.mirror.runs import rules_of
    from spec.mutation import weaken
    from spec.releases.kraft import KRAFT_RELEASES
    from spec.releases.kraft_mutants import CONTROLLER_MUTANTS

    parts = kafka.split(".")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or (int(parts[0]), int(parts[1])) < (3, 9):
        raise click.UsageError(f"--kafka {kafka}: expected a release from 3.9.0 on, such as 4.4.0")
    found = rules_of(kafka)
    if release is not None:
        by_name = {one.name: one for one in KRAFT_RELEASES}
        if release not in by_name:
            raise unknown(f"there are no rules {release!r}", release, by_name, "kspec models controller")
        found = by_name[release]
    if mutant is not None:
        mutants = {one.name: one for one in CONTROLLER_MUTANTS}
        if mutant not in mutants:
            raise unknown(f"there is no mutant {mutant!r}", mutant, mutants, "kspec models controller")
        found = weaken(found, mutants[mutant])
    return found


def _run_named(text: str, kafka: str, min_isr: int | None) -> "Run":
    """The run that RUN names; the rules of the release under test say what is possible in it."""
    from conformance.mirror.from_model import NoRunError, read_run, walk
    from conformance.mirror.named import NAMED, OTHER_NAMES
    from conformance.mirror.runs import rules_of

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
    except NoRunError as error:
        raise click.UsageError(str(error)) from error
    raise unknown(f"there is no run and no file {text!r}", text, NAMED, "kspec world mirror")


def _tell(found: "Replayed", *, as_json: bool, plain: bool) -> None:
    from conformance.mirror.session import departure_as_text, replayed_as_json, replayed_as_text, verdict_of

    if as_json:
        click.echo(json.dumps(replayed_as_json(found)))
    else:
        lines = [*departure_as_text(found), verdict_of(found)] if plain else replayed_as_text(found)
        click.echo("\n".join(lines))


def _cover(
    kafka: str, rules: "ControllerProtocol", states: int | None, most: int | None, *, as_json: bool, keep: str | None
) -> int:
    """Choose runs from the graph of the release's own rules, and replay them."""
    from conformance.kafka.jars import find_jars
    from conformance.mirror.runs import rules_of
    from conformance.mirror.session import STATES, choose, departure_as_text, replay_all, replayed_as_json, verdict_of
    from conformance.mirror.session import keep as keep_run

    began = time.monotonic()
    chosen = choose(kafka, rules_of(kafka), states or STATES)
    runs = chosen.runs[:most]
    choosing = time.monotonic() - began

    def told(replayed: "Replayed") -> None:
        if replayed.departure is not None and not as_json:
            click.echo("\n".join([verdict_of(replayed), *departure_as_text(replayed)]))

    began = time.monotonic()
    found = asyncio.run(replay_all(find_jars(kafka), rules, runs, told))
    replaying = time.monotonic() - began
    departing = [replayed for replayed in found if not replayed.follows]
    if keep is not None:
        for replayed in departing:
            keep_run(replayed.run, Path(keep))
    if as_json:
        summary = {
            "verdict": "departs" if departing else "follows",
            "kafka": kafka,
            "states": chosen.states,
            "transitions": chosen.transitions,
            "pairs": len(chosen.pairs),
            "runs": len(found),
            "steps": sum(len(replayed.run.steps) for replayed in found),
            "duration_s": round(replaying, 3),
            "departures": [replayed_as_json(replayed) for replayed in departing],
        }
        click.echo(json.dumps(summary))
    else:
        steps = sum(len(replayed.run.steps) for replayed in found)
        click.echo(
            f"{len(chosen.pairs)} pairs of action and outcome in {chosen.states} states, {chosen.transitions:,} transitions"
            f" ({choosing:.0f} s)\nKafka {kafka}: {len(found)} runs, {steps} steps, {len(departing)} depart ({replaying:.0f} s)"
        )
    return VIOLATED if departing else ALL_HOLD
