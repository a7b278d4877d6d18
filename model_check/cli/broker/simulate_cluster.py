"""`kspec simulate-cluster`."""

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from os import cpu_count
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from model_check.cli.broker.serve import NEXT, rules_of
from model_check.cli.spark import SWARM_ENGINES, session_options, spark_errors, swarm_settings
from model_check.cli.statuses import ALL_HOLD, VIOLATED

if TYPE_CHECKING:
    from impl.server.startup import Rules
    from impl.sim.runs import Outcome
    from impl.sim.setup import Setup

MOST_SEEDS, MOST_STEPS = 1_000_000, 1 << 40


def _rules(release: str | None, mutant: str | None, brokers: int) -> "dict[str, Rules]":
    """The rules of each node. Raises: bad usage."""
    from impl.cluster.plan import CONTROLLER, UsageError, by_node

    names = [*map(str, range(1, brokers + 1)), CONTROLLER]
    try:
        releases, mutants = by_node(release, names, otherwise=NEXT), by_node(mutant, names, otherwise=None)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    return {name: rules_of(releases[name] or NEXT, mutants[name]) for name in names}


class Length(NamedTuple):
    """How long each seed runs: steps of handlers, or hours of its time; and how often all brokers are restarted."""

    steps: int
    hours: float | None
    roll_every: int | None


def _run(task: "tuple[Setup, Length]") -> "Outcome":
    from impl.sim.plan import CALM, MINUTE_MS, restarts
    from impl.sim.runs import run

    setup, (steps, hours, roll_every) = task
    steps, most_ms = (steps, None) if hours is None else (MOST_STEPS, int(hours * 60 * MINUTE_MS))
    if roll_every is None:
        return run(setup, steps, most_ms=most_ms)
    return run(replace(setup, weather=CALM), steps, restarts(roll_every), most_ms)


def _here(setups: "list[Setup]", length: Length, workers: int) -> "Iterator[Outcome]":
    """The outcomes in the order of the seeds, from processes of this machine."""
    if workers == 1:
        yield from (_run((setup, length)) for setup in setups)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_run, [(setup, length) for setup in setups])


def _on_spark(setups: "list[Setup]", length: Length, settings: Any) -> "Iterator[Outcome]":
    from model_check.engines.spark.session import spark_context

    with spark_context(settings) as context:
        tasks = [(setup, length) for setup in setups]
        yield from context.parallelize(tasks, len(tasks)).map(_run).collect()


@click.command(name="simulate-cluster")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="S", help="The first seed.")
@click.option(
    "--seeds", default=1, show_default=True, type=click.IntRange(1, MOST_SEEDS), metavar="N", help="How many seeds to run."
)
@click.option(
    "--steps",
    default=20_000,
    show_default=True,
    type=click.IntRange(1, MOST_STEPS),
    metavar="N",
    help="Steps of handlers with faults, for each seed.",
)
@click.option(
    "--hours",
    type=click.FloatRange(0, 10_000, min_open=True),
    metavar="H",
    help="Hours of the cluster's time, in place of --steps.",
)
@click.option(
    "--roll-every",
    type=click.IntRange(1, 1_440),
    metavar="MINUTES",
    help="No faults; all brokers are restarted one after the other, again and again.",
)
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(3, 9), metavar="N", help="How many brokers.")
@click.option("--release", metavar="R", help="The rules of all nodes, or of each: 1=3.9,controller=4.4.  [default: next]")
@click.option("--mutant", metavar="NAME", help="Weaken one rule of all nodes, or of one: 2=NAME.")
@click.option("--acks", type=click.Choice(["all", "1"]), default="all", show_default=True, help="What producers ask for.")
@click.option("--shrink/--no-shrink", "shrinking", default=True, help="Shrink the first run in which a property fails.")
@click.option("--engine", type=SWARM_ENGINES, default="compiled", show_default=True, help="Where seeds are run.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="W", help="Processes; by default one for each core.")
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each seed.")
@click.option("--quiet", is_flag=True, help="Print only what is broken.")
def simulate_cluster(
    seed: int,
    seeds: int,
    steps: int,
    hours: float | None,
    roll_every: int | None,
    brokers: int,
    release: str | None,
    mutant: str | None,
    acks: str,
    shrinking: bool,
    engine: str,
    workers: int | None,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Run clusters in simulated time, with faults, and check properties after each event.

    The brokers and the controller are those of `kspec broker`, on a virtual clock, network and disk. A seed is always the
    same run. Exit status: 0 all properties hold, 1 one fails, 2 bad usage.
    """
    setups = _setups(range(seed, seed + seeds), _rules(release, mutant, brokers), acks)
    length = Length(steps, hours, roll_every)
    settings = swarm_settings(engine, master, conf, quiet, workers)
    first_broken: Outcome | None = None
    total = 0
    with spark_errors(engine):
        outcomes = (
            _here(setups, length, min(workers or cpu_count() or 1, seeds))
            if settings is None
            else _on_spark(setups, length, settings)
        )
        for outcome in outcomes:
            total += outcome.steps
            if outcome.broken is not None or not quiet:
                click.echo(json.dumps(outcome.as_json()) if as_json else outcome.in_words())
            if outcome.broken is not None and first_broken is None:
                first_broken = outcome
    if not as_json and not quiet:
        click.echo(f"{seeds:,} seeds, {total:,} steps")
    if first_broken is None:
        return ALL_HOLD
    if shrinking and not as_json and hours is None and roll_every is None:
        _show_short(next(one for one in setups if one.seed == first_broken.seed), first_broken)
    return VIOLATED


def _show_short(setup: "Setup", outcome: "Outcome") -> None:
    from impl.sim.runs import shrunk

    short = shrunk(setup, outcome)
    click.echo(f"\nseed {short.seed} with what it needs of its faults:")
    for line in short.told:
        click.echo(f"  {line}")
    assert short.broken is not None
    click.echo(f"  {short.broken.name}: {short.broken.what}")


def _setups(chosen: range, rules: "dict[str, Rules]", acks: str) -> "list[Setup]":
    from impl.cluster.plan import CONTROLLER
    from impl.sim.setup import Setup
    from spec.messages.produce import ACKS_ALL, ACKS_LEADER

    protocols = {int(name): one.broker for name, one in rules.items() if name != CONTROLLER}
    wanted = ACKS_ALL if acks == "all" else ACKS_LEADER
    return [Setup(seed, protocols, rules[CONTROLLER].controller, acks=wanted) for seed in chosen]
