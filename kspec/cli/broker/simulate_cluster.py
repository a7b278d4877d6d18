"""`kspec simulate-cluster`."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from os import cpu_count
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kspec.cli.broker.cluster_story import tell_simulated_story
from kspec.cli.broker.serve import NEXT, rules_of
from kspec.cli.common import called_as
from kspec.cli.explorer.pages import need_server, show_recording
from kspec.cli.spark import SWARM_ENGINES, session_options, spark_errors, swarm_settings
from kspec.cli.statuses import ALL_HOLD, VIOLATED
from kspec.cli.terminal.output import Output
from kspec.model_check.core.processes import worked_apart

if TYPE_CHECKING:
    from kspec.impl.server.startup import BrokerRules
    from kspec.trials.simulated.kinds.site import Fault
    from kspec.trials.simulated.runs import RunOutcome
    from kspec.trials.simulated.setup import RunSetup

MOST_SEEDS, MOST_STEPS = 1_000_000, 1 << 40
PLAN_BROKERS = CONTROLLERS = 3


def _rules(release: str | None, mutant: str | None, brokers: int) -> "dict[str, BrokerRules]":
    """The rules of each node. Raises: bad usage."""
    from kspec.trials.cluster.plan import CONTROLLER, UsageError, by_node

    names = [*map(str, range(1, brokers + 1)), CONTROLLER]
    try:
        releases, mutants = by_node(release, names, otherwise=NEXT), by_node(mutant, names, otherwise=None)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    return {name: rules_of(releases[name] or NEXT, mutants[name]) for name in names}


class Length(NamedTuple):
    """Length of each seed's run, in steps of handlers or in hours of its time; and the number of restarts of all brokers."""

    steps: int
    hours: float | None
    roll_every: int | None


def _run(task: "tuple[RunSetup, Length]") -> "RunOutcome":
    from kspec.trials.simulated.plan import MINUTE_MS, UNDISTURBED, restarts
    from kspec.trials.simulated.runs import run

    setup, (steps, hours, roll_every) = task
    steps, most_ms = (steps, None) if hours is None else (MOST_STEPS, int(hours * 60 * MINUTE_MS))
    if roll_every is None:
        return run(setup, steps, most_ms=most_ms)
    return run(replace(setup, conditions=UNDISTURBED), steps, restarts(roll_every), most_ms)


def _here(setups: "list[RunSetup]", length: Length, workers: int) -> "Iterator[RunOutcome]":
    """The outcomes in the order of the seeds, from processes of this machine."""
    if workers == 1:
        yield from (_run((setup, length)) for setup in setups)
        return
    with worked_apart(_run, [(setup, length) for setup in setups], workers) as outcomes:
        for outcome in outcomes:
            yield outcome.result()


def _on_spark(setups: "list[RunSetup]", length: Length, settings: Any) -> "Iterator[RunOutcome]":
    from kspec.model_check.engines.spark.session import spark_context

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
@click.option(
    "--plan", "plan_name", metavar="NAME", help="Carry out a plan of `kspec cluster --plans`, and no other faults."
)
@click.option("--story", metavar="NAME", help="Go through the run of a study, as `kspec cluster --story` does.")
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(3, 9), metavar="N", help="How many brokers.")
@click.option(
    "--controllers",
    type=click.IntRange(1, 9),
    metavar="N",
    help="How many controllers, of which one decides.  [default: 3; 1 with --plan]",
)
@click.option("--release", metavar="R", help="The rules of all nodes, or of each: 1=3.9,controller=4.4.  [default: next]")
@click.option("--mutant", metavar="NAME", help="Weaken one rule of all nodes, or of one: 2=NAME.")
@click.option("--acks", type=click.Choice(["all", "1"]), default="all", show_default=True, help="What producers ask for.")
@click.option(
    "--lose-epoch-files",
    is_flag=True,
    help="Brokers that are killed or lose power may lose their leader-epoch-checkpoint.",
)
@click.option("--transactions", is_flag=True, help="Producers of transactions, too, and readers of what is committed.")
@click.option("--shrink/--no-shrink", "shrinking", default=True, help="Shrink the first run in which a property fails.")
@click.option("--engine", type=SWARM_ENGINES, default="compiled", show_default=True, help="Where seeds are run.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="W", help="Processes; by default one for each core.")
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each seed.")
@click.option("--quiet", is_flag=True, help="Print only what is broken.")
@click.option(
    "--html", metavar="FILE", help="Write the end of the run as a page to step through: one file, without a network."
)
@click.option(
    "--recording", metavar="FILE", help="Write the same for the page of `kspec explore`, on which it may be dropped."
)
@click.option("--explore", is_flag=True, help="Show the end of the run in the browser until Ctrl-C.")
def simulate_cluster(
    seed: int,
    seeds: int,
    steps: int,
    hours: float | None,
    roll_every: int | None,
    plan_name: str | None,
    story: str | None,
    brokers: int,
    controllers: int | None,
    release: str | None,
    mutant: str | None,
    acks: str,
    lose_epoch_files: bool,
    transactions: bool,
    shrinking: bool,
    engine: str,
    workers: int | None,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    html: str | None,
    recording: str | None,
    explore: bool,
) -> int:
    """Run clusters in simulated time, with faults, and check properties after each event.

    The brokers and the controller are those of `kspec broker`, on a virtual clock, network and disk. A seed is always the
    same run. Exit status: 0 all properties hold, 1 one fails, 2 bad usage.
    """
    if story is not None:
        return tell_simulated_story(story, release, mutant)
    page = _Page(Output(html), Output(recording), explore)
    page.check(plan_name, roll_every, as_json)
    rules = _rules(release, mutant, brokers)
    wanted = controllers or (CONTROLLERS if plan_name is None else 1)
    setups = setups_of(range(seed, seed + seeds), rules, acks, wanted, lose_epoch_files, transactions)
    if plan_name is not None:
        if hours is not None or roll_every is not None or engine != "compiled":
            raise click.UsageError("--plan has a length of its own: leave --hours, --roll-every and --engine out")
        if brokers != PLAN_BROKERS or wanted > 1:
            raise click.UsageError("a plan has three brokers and one controller: leave --brokers and --controllers out")
        return _carry_out(plan_name, setups, as_json=as_json, quiet=quiet)
    length = Length(steps, hours, roll_every)
    from kspec.trials.simulated.plan import MINUTE_MS

    settings = swarm_settings(engine, master, conf, quiet, workers)
    first_broken: RunOutcome | None = None
    first: RunOutcome | None = None
    total = 0
    with spark_errors(engine):
        outcomes = (
            _here(setups, length, min(workers or cpu_count() or 1, seeds))
            if settings is None
            else _on_spark(setups, length, settings)
        )
        for outcome in outcomes:
            total += outcome.steps
            first = first or outcome
            if outcome.broken is not None or not quiet:
                click.echo(json.dumps(outcome.as_json()) if as_json else outcome.in_words())
            if outcome.broken is not None and first_broken is None:
                first_broken = outcome
    if not as_json and not quiet:
        click.echo(f"{seeds:,} seeds, {total:,} steps")
    shown, faults = first_broken or first, None
    assert shown is not None
    setup = next(one for one in setups if one.seed == shown.seed)
    if first_broken is not None and shrinking and not as_json and hours is None and roll_every is None:
        shown = _show_short(setup, first_broken)
        faults = shown.faults
    page.show(setup, (shown, faults, first_broken or shown), steps, None if hours is None else int(hours * 60 * MINUTE_MS))
    return ALL_HOLD if first_broken is None else VIOLATED


class _Page(NamedTuple):
    """The places to which the end of a run goes besides: a page of one file, a recording, the browser."""

    html: Output
    recording: Output
    explore: bool

    @property
    def is_asked(self) -> bool:
        """Whether a run is shown at all."""
        return self.html.path is not None or self.recording.path is not None or self.explore

    def check(self, plan_name: str | None, roll_every: int | None, as_json: bool) -> None:
        """Refuse what cannot be shown, before anything is run. Raises: bad usage."""
        if not self.is_asked:
            return
        if plan_name is not None or roll_every is not None:
            raise click.UsageError(
                "--html, --recording and --explore show runs with faults of a seed, not --plan or --roll-every"
            )
        if as_json and "-" in (self.html.path, self.recording.path):
            raise click.UsageError("--json and a page both write to standard output")
        if self.explore:
            need_server(f"{called_as()} simulate-cluster --explore")

    def show(
        self,
        setup: "RunSetup",
        found: "tuple[RunOutcome, tuple[Fault, ...] | None, RunOutcome]",
        steps: int,
        most_ms: int | None,
    ) -> None:
        """Take the run once more, and show its last steps: those of the short one with its faults, or of the whole one."""
        if not self.is_asked:
            return
        from kspec.cli.explorer.recording import RecordingError, shortened
        from kspec.cli.explorer.simulated import recorded_run

        short, faults, whole = found
        try:
            made = recorded_run(setup, short, short.steps if faults else steps, faults, most_ms)
        except RecordingError:
            made = recorded_run(setup, whole, steps, None, most_ms)
        told = shortened(made)
        if self.recording.path is not None:
            self.recording.write(json.dumps(told, separators=(",", ":")) + "\n")
        if self.html.path is not None:
            show_recording(told, self.html)
        if self.explore:
            with suppress(KeyboardInterrupt):
                show_recording(told, Output(None))


def _carry_out(name: str, setups: "list[RunSetup]", *, as_json: bool, quiet: bool) -> int:
    """Carry a plan out with each seed; the exit status. Raises: bad usage."""
    from kspec.model_check.core.nearest import instead_of
    from kspec.trials.faults.plans.catalogue import PLANS
    from kspec.trials.faults.simulated_run import run_plan

    if name not in PLANS:
        raise click.UsageError(f"there is no plan {name!r}: {instead_of(name, list(PLANS), 'docs/cluster.md lists all')}")
    plan, is_broken = PLANS[name], False
    if plan.not_simulated:
        raise click.UsageError(f"{name} runs on processes only: {plan.not_simulated}")
    for setup in setups:
        outcome = run_plan(plan, setup)
        broken = outcome.run.broken
        is_broken |= broken is not None
        if as_json:
            found = {"plan": name, "done": list(outcome.steps), "missed": outcome.missed}
            click.echo(json.dumps({**outcome.run.as_json(), **found}))
            continue
        for step in () if quiet else outcome.steps:
            click.echo(f"  {step}")
        given_up = f", not to its end: {outcome.missed}" if outcome.missed else ""
        verdict = "every promise is kept" if broken is None else f"BROKEN {broken.name}: {broken.what}"
        if broken is not None or not quiet:
            click.echo(f"seed {setup.seed}: plan {name}{given_up}: {verdict}")
    return VIOLATED if is_broken else ALL_HOLD


def _show_short(setup: "RunSetup", outcome: "RunOutcome") -> "RunOutcome":
    from kspec.trials.simulated.runs import shrunk

    short = shrunk(setup, outcome)
    click.echo(f"\nseed {short.seed} with what it needs of its faults:")
    for line in short.told:
        click.echo(f"  {line}")
    assert short.broken is not None
    click.echo(f"  {short.broken.name}: {short.broken.what}")
    return short


def setups_of(
    chosen: range,
    rules: "dict[str, BrokerRules]",
    acks: str,
    controllers: int,
    lose_epoch_files: bool,
    transactions: bool,
) -> "list[RunSetup]":
    """The set-ups of runs by these seeds, of nodes with these rules."""
    from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER
    from kspec.trials.cluster.plan import CONTROLLER
    from kspec.trials.simulated.setup import RunSetup

    protocols = {int(name): one.broker for name, one in rules.items() if name != CONTROLLER}
    wanted = ACKS_ALL if acks == "all" else ACKS_LEADER
    controller = rules[CONTROLLER].controller
    return [
        RunSetup(
            seed,
            protocols,
            controller,
            acks=wanted,
            loses_epoch_files=lose_epoch_files,
            controllers=controllers,
            quorum=rules[CONTROLLER].quorum,
            transactions=transactions,
        )
        for seed in chosen
    ]
