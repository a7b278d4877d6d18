"""`kspec world score`."""

import json
from typing import TYPE_CHECKING

import click

from kspec.cli.common import unknown
from kspec.cli.statuses import ALL_HOLD, StoppedError
from kspec.cli.world.tested import TargetOptions, run_to_end

if TYPE_CHECKING:
    from kspec.conformance.world.environment.target import WorldTarget
    from kspec.conformance.world.runs.run import WorldRun


@click.command()
@click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release whose rules are followed.")
@click.option("--mutant", "names", multiple=True, metavar="NAME", help="This one; may be repeated.")
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=80,
    show_default=True,
    metavar="N",
    help="So many of the covering runs for each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(kafka: str, names: tuple[str, ...], runs: int, as_json: bool) -> int:
    """Weaken this project's broker, one rule at a time, and see which the runs notice.

    These are covering runs, and before them the run by which `kspec world mutants` tells the rule, if it has found one.

    Exit status: 0 done, whatever was noticed; 2 bad usage, 3 the broker without a weakened rule departs, or does not answer.
    """
    from kspec.conformance.world.choice.cover import covering_runs, some_of
    from kspec.conformance.world.choice.weakened import by_the_rules, telling_runs
    from kspec.spec.releases.broker_mutants import BROKER_MUTANTS

    known = [one.name for one in BROKER_MUTANTS]
    for name in names:
        if name not in known:
            raise unknown(f"there is no mutant {name!r} of a broker", name, known, "kspec world score")
    chosen = [one.run for one in some_of(list(covering_runs(kafka)), runs)]
    told_by = {
        one.mutant: by_the_rules(kafka, one.run) for one in telling_runs(kafka, names or known) if one.run is not None
    }
    found: dict[str, str | None] = {}
    for name in (None, *(names or known)):
        first = list(told_by.values()) if name is None else [told_by[name]] if name in told_by else []
        told = run_to_end(_first_departure(TargetOptions(kafka, "kspec", name).found(), [*first, *chosen]))
        if name is None and told is not None:
            raise StoppedError(f"the broker departs without a weakened rule: {told}")
        if name is not None:
            found[name] = told
            if not as_json:
                click.echo(f"{name}: {told or 'not noticed'}")
    noticed = sum(told is not None for told in found.values())
    if as_json:
        click.echo(
            json.dumps({"kafka": kafka, "runs": len(chosen), "telling": len(told_by), "noticed": noticed, "mutants": found})
        )
    else:
        click.echo(
            f"{noticed} of {len(found)} mutants noticed by {len(chosen)} covering runs and {len(told_by)} of their own"
        )
    return ALL_HOLD


async def _first_departure(target: "WorldTarget", runs: "list[WorldRun]") -> str | None:
    """The step at which the broker first departs from the rules, or stops answering."""
    from kspec.conformance.world.environment.world import BrokerGoneError
    from kspec.conformance.world.session import WorldSession

    session = WorldSession(target)
    try:
        for run in runs:
            outcome = await session.replay(run)
            if outcome.verdict is not None and outcome.verdict.departure is not None:
                return outcome.verdict.in_words()
    except BrokerGoneError as error:
        return str(error)
    finally:
        await session.close()
    return None
