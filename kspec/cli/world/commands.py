"""`kspec world`: runs of the model on an unmodified Apache Kafka broker."""

import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kspec.cli.common import options_of
from kspec.cli.statuses import ALL_HOLD, VIOLATED
from kspec.cli.terminal.help import ModelCommand
from kspec.cli.terminal.output import OutputFolder
from kspec.cli.world.groups import groups
from kspec.cli.world.mirror import mirror
from kspec.cli.world.quorum import quorum
from kspec.cli.world.score import score
from kspec.cli.world.tested import TargetOptions, run_to_end, what_is_tested
from kspec.cli.world.transactions import transactions
from kspec.model_check.core.files import write_whole

if TYPE_CHECKING:
    from kspec.conformance.world.environment.target import WorldTarget
    from kspec.conformance.world.runs.run import WorldRun
    from kspec.conformance.world.session import WorldOutcome

T = TypeVar("T")
Command = Callable[..., Any]


@click.group(context_settings={"max_content_width": 110})
def world() -> None:
    """Replay runs of model kafka on one real broker of Apache Kafka; all other parties are the specification's.

    Needs Java; the jars of the release come from Maven Central (`mvn`), once.
    """


world.add_command(mirror)
world.add_command(score)
world.add_command(groups)
world.add_command(quorum)
world.add_command(transactions)


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value not in (None, ())}


class KafkaCommand(ModelCommand):
    """A command with the parameters of model `kafka`. The release is that of the broker under test."""

    models = ("kafka",)


@world.command(cls=KafkaCommand)
@click.argument("run", metavar="RUN")
@what_is_tested
@click.option(
    "--real", type=click.IntRange(1), metavar="BROKER", help="The broker of the run that is real (the first leader)."
)
@click.option(
    "--control", is_flag=True, help="The control of a finding: the same with one decision of the controller at a time."
)
@click.option("--times", type=click.IntRange(1), default=1, metavar="N", help="Replay it this often, on one broker process.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="Print the verdict alone, not every step.")
@options_of("kafka", but=["release"])
def replay(
    run: str,
    tested: TargetOptions,
    real: int | None,
    control: bool,
    times: int,
    as_json: bool,
    plain: bool,
    parameters: dict[str, Any],
) -> int:
    """Replay RUN on a real broker, and compare it with the model after each step.

    RUN is a finding (missed-epoch, forgotten-proposal), a study, a file (ITF, what `kspec check kafka --json` prints, or a
    run that was kept), or seed:N, a walk of the simulator.

    Exit status: 0 the broker follows the run to the end, 1 it departs from it, 2 bad usage, 3 the broker has died or does
    not answer.
    """
    target = tested.found()
    loaded = _load(run, tested.kafka, real, control, _given(parameters))
    from kspec.conformance.world.session import replay_all

    outcomes = run_to_end(replay_all(target, [loaded] * times))
    for outcome in outcomes:
        if outcome.verdict is None:
            raise click.UsageError(f"{run}: not replayed: {outcome.not_replayed}")
    verdicts = [outcome.verdict for outcome in outcomes if outcome.verdict is not None]
    if as_json:
        click.echo(json.dumps(verdicts[0].as_json() | ({"times": times} if times > 1 else {})))
    else:
        if not plain:
            _show_steps(loaded, verdicts[0].told)
        for verdict in verdicts:
            click.echo(verdict.in_words())
    return VIOLATED if any(verdict.departure for verdict in verdicts) else ALL_HOLD


def _show_steps(run: "WorldRun", told: list[str]) -> None:
    for number, (step, line) in enumerate(zip(run.trace[1:], told, strict=False), start=1):
        assert step.action is not None
        click.echo(f"{number:3}  {step.action.label:45} {line.partition(': ')[2]}")


def _load(source: str, kafka: str, real: int | None, control: bool, parameters: dict[str, Any]) -> "WorldRun":
    from kspec.conformance.world.runs.findings import FINDINGS, control_of, finding_run
    from kspec.conformance.world.runs.run import NoRunError, load_run, with_real_broker
    from kspec.model_check.core.parameters import ParameterError

    try:
        if source in FINDINGS:
            return with_real_broker(control_of(source, kafka) if control else finding_run(source, kafka), real)
        if control:
            raise click.UsageError(f"--control is for findings: {', '.join(FINDINGS)}")
        return with_real_broker(load_run(source, kafka, parameters), real)
    except (NoRunError, ParameterError) as error:
        raise click.UsageError(str(error)) from error


@world.command()
@what_is_tested
@click.option("--runs", type=click.IntRange(1), metavar="N", help="This many: some of the covering runs, or all and walks.")
@click.option("--keep", metavar="DIR", help="Write each run from which the broker departs to a file there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cover(tested: TargetOptions, runs: int | None, keep: str | None, as_json: bool) -> int:
    """Replay runs that cover what a broker can do within small bounds.

    Every step of the broker under test in each outcome, and every pair of its consecutive steps, is in one of the runs.

    Exit status: 0 the broker follows all runs, 1 it departs from some, 3 it has died or does not answer.
    """
    target, kafka, kept = tested.found(), tested.kafka, OutputFolder(keep) if keep else None
    from kspec.conformance.world.choice.cover import covering_runs, filled_up, some_of
    from kspec.conformance.world.session import replay_all

    began = time.monotonic()
    chosen = list(covering_runs(kafka))
    everything = len(chosen)
    goals = sum(len(one.goals) for one in chosen)
    if runs is not None:
        chosen = some_of(chosen, runs) if runs <= len(chosen) else filled_up(kafka, chosen, runs)
    chosen_in = time.monotonic() - began
    began = time.monotonic()

    def told(outcome: "WorldOutcome") -> None:
        _keep(outcome, kept)
        if not as_json:
            _tell_departure(outcome)

    outcomes = run_to_end(replay_all(target, [one.run for one in chosen], told))
    seconds = time.monotonic() - began
    departing = [one for one in outcomes if _departs(one)]
    follow = sum(one.verdict is not None and one.verdict.departure is None for one in outcomes)
    not_replayed = [{"run": one.run.name, "reason": one.not_replayed} for one in outcomes if one.verdict is None]
    steps = sum(one.verdict.steps for one in outcomes if one.verdict is not None)
    if as_json:
        found = {
            "target": target.name,
            "kafka": kafka,
            "covering_runs": everything,
            "goals": goals,
            "runs": len(outcomes),
            "follow": follow,
            "depart": len(departing),
            "not_replayed": not_replayed,
            "departures": [one.verdict.as_json() for one in departing if one.verdict is not None],
            "steps": steps,
            "replayed_again": sum(one.tries - 1 for one in outcomes),
            "seconds": round(seconds, 1),
            "seconds_to_choose": round(chosen_in, 1),
        }
        click.echo(json.dumps(found))
    else:
        again = sum(one.tries - 1 for one in outcomes)
        click.echo(
            f"{target.name} {kafka}: {len(outcomes)} runs ({everything} cover {goals} goals), {follow} followed to the end,"
            f" {len(departing)} departures, {len(not_replayed)} not replayed; {again} replayed again because of the clock;"
            f" {steps} steps in {seconds:.0f} s, {len(outcomes) / max(seconds, 0.1):.1f} runs/s"
        )
    return VIOLATED if departing else ALL_HOLD


def _tell_departure(outcome: "WorldOutcome") -> None:
    if outcome.verdict is None:
        click.echo(f"{outcome.run.name} is not replayed: {outcome.not_replayed}")
    elif outcome.verdict.departure is not None:
        click.echo(outcome.verdict.in_words())


def _departs(outcome: "WorldOutcome") -> bool:
    return outcome.verdict is not None and outcome.verdict.departure is not None


def _keep(outcome: "WorldOutcome", folder: OutputFolder | None) -> None:
    """Write the run of a departure to a file in the folder, if one is given: at once, for what follows may fail."""
    if folder is None or not _departs(outcome):
        return
    name = re.sub(r"[^a-z0-9]+", "-", outcome.run.name.lower())
    with folder.opened() as place:
        write_whole(place / f"{name}.json", json.dumps(outcome.run.as_json(), indent=1) + "\n")


@world.command(cls=KafkaCommand)
@what_is_tested
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="S", help="Of the random choices.")
@click.option("--traces", default=100, show_default=True, type=click.IntRange(1), metavar="N", help="How many walks.")
@click.option(
    "--depth", default=25, show_default=True, type=click.IntRange(1, 1000), metavar="D", help="Most steps of a walk."
)
@click.option("--keep", metavar="DIR", help="Shrink each departure, and write it to a file there, which replays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options_of("kafka", but=["release"])
def walk(
    tested: TargetOptions, seed: int, traces: int, depth: int, keep: str | None, as_json: bool, parameters: dict[str, Any]
) -> int:
    """Replay random walks of the simulator. The same seed gives the same walks.

    Exit status: 0 the broker follows all of them, 1 it departs from some, 2 bad usage, 3 it has died or does not answer.
    """
    target, kafka, kept = tested.found(), tested.kafka, OutputFolder(keep) if keep else None
    from kspec.conformance.world.runs.run import NoRunError
    from kspec.model_check.core.parameters import ParameterError

    began = time.monotonic()
    try:
        outcomes, departing = run_to_end(_walk(target, kafka, seed, traces, depth, kept, as_json, _given(parameters)))
    except (NoRunError, ParameterError) as error:
        raise click.UsageError(str(error)) from error
    seconds = time.monotonic() - began
    steps = sum(one.verdict.steps for one in outcomes if one.verdict is not None)
    if as_json:
        found = [one.verdict.as_json() for one in departing if one.verdict is not None]
        numbers = {"kafka": kafka, "seed": seed, "walks": len(outcomes), "steps": steps, "seconds": round(seconds, 1)}
        click.echo(json.dumps({**numbers, "depart": len(departing), "departures": found}))
    else:
        click.echo(
            f"{target.name} {kafka}: {len(outcomes)} walks of seed {seed}, {steps} steps in {seconds:.0f} s,"
            f" {len(departing)} departures"
        )
    return VIOLATED if departing else ALL_HOLD


async def _walk(
    target: "WorldTarget",
    kafka: str,
    seed: int,
    traces: int,
    depth: int,
    kept: OutputFolder | None,
    as_json: bool,
    parameters: dict[str, Any],
) -> "tuple[list[WorldOutcome], list[WorldOutcome]]":
    from kspec.conformance.world.choice.walks import shrunk, walked
    from kspec.conformance.world.session import WorldSession

    session, outcomes, departing = WorldSession(target), list["WorldOutcome"](), list["WorldOutcome"]()
    try:
        async for outcome in walked(session, kafka, seed, traces, depth, parameters):
            outcomes.append(outcome)
            if not _departs(outcome):
                continue
            departing.append(outcome if kept is None else await shrunk(session, outcome))
            _keep(departing[-1], kept)
            if not as_json:
                _tell_departure(departing[-1])
    finally:
        await session.close()
    return outcomes, departing


@world.command()
@what_is_tested
@click.option("--mutant", "names", multiple=True, metavar="NAME", help="This one; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def mutants(tested: TargetOptions, names: tuple[str, ...], as_json: bool) -> int:
    """Weaken the model, not Kafka: the broker must depart from a run of each weakened model.

    Exit status: 0 it departs wherever a run was found that shows the difference, 1 it follows one, 2 bad usage, 3 it has
    died or does not answer.
    """
    target, kafka = tested.found(), tested.kafka
    from kspec.conformance.world.choice.weakened import MUTANTS

    for name in names:
        if name not in MUTANTS:
            raise click.UsageError(f"there is no mutant {name!r} of a broker's rules")
    found = run_to_end(_mutants(target, kafka, names or MUTANTS, not as_json))
    told = {name: one.verdict for name, one in found.items() if one is not None and one.verdict is not None}
    missed = [name for name, verdict in told.items() if verdict.departure is None]
    if as_json:
        verdicts = {name: verdict.as_json() for name, verdict in told.items()}
        click.echo(json.dumps({"kafka": kafka, "mutants": verdicts, "not_seen": sorted(found.keys() - told.keys())}))
    else:
        click.echo(
            f"{len(told) - len(missed)} of {len(found)} mutants caught, {len(missed)} followed, the rest cannot be seen"
        )
    return VIOLATED if missed else ALL_HOLD


async def _mutants(
    target: "WorldTarget", kafka: str, names: tuple[str, ...], shown: bool
) -> "dict[str, WorldOutcome | None]":
    from kspec.conformance.world.choice.weakened import telling_runs
    from kspec.conformance.world.session import WorldSession

    session, found = WorldSession(target), dict[str, "WorldOutcome | None"]()
    try:
        for one in telling_runs(kafka, names):
            found[one.mutant] = None if one.run is None else await session.replay(one.run)
            outcome = found[one.mutant]
            if shown and (outcome is None or outcome.verdict is None):
                click.echo(f"{one.mutant}: no run within the bounds shows it")
            elif shown and outcome is not None and outcome.verdict is not None:
                click.echo(f"{one.mutant}: {outcome.verdict.in_words()}")
    finally:
        await session.close()
    return found
