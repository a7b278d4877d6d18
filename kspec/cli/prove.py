"""`kspec prove`."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from kspec.cli.common import MOST_WORKERS, Seconds, unknown
from kspec.cli.statuses import ALL_HOLD, STOPPED, VIOLATED
from kspec.cli.terminal.output import OutputFolder
from kspec.model_check.extras import MissingExtraError, need
from kspec.model_check.traces.text import filled

if TYPE_CHECKING:
    from kspec.proofs.induction.by_steps import StepTheorem

MOST_REPLICAS = 16

LIST = "kspec prove --list"


class NumberOfReplicas(click.IntRange):
    """A number of replicas, or the word `any`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or `any`."""
        try:
            return value if value == "any" else super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(f"{value!r} is neither `any` nor a number from {self.min} to {self.max}.") from error


@click.command()
@click.argument("theorems", metavar="[THEOREM]...", nargs=-1)
@click.option(
    "--replicas",
    type=NumberOfReplicas(2, MOST_REPLICAS),
    metavar="N",
    help="Replicas, 1 to N, or `any` for however many there are.  [default: 3, and any where that is proved; for a"
    " refutation as few as it takes]",
)
@click.option("--workers", type=click.IntRange(1, MOST_WORKERS), metavar="W", help="Processes (all cores by default).")
@click.option("--export", metavar="DIR", help="Write each obligation into this folder as SMT-LIB 2.")
@click.option(
    "--effort",
    type=Seconds(0, min_open=True),
    metavar="N",
    help="How much Z3 may do for one obligation: N million of its own units, some three of which take a second."
    "  [default: 60; for one that is proved outcome by outcome 240; for runs of one length that refute 4000]",
)
@click.option(
    "--time-limit",
    type=Seconds(0, min_open=True),
    metavar="S",
    help="Emergency stop: after S seconds the clock stops one question to Z3, and that is reported as no answer."
    "  [default: 600; for runs of one length that refute 7200]",
)
@click.option("--no-search", is_flag=True, help="Look for no counterexample where no proof is found.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Of Z3's random choices.")
@click.option("--mutant", metavar="NAME", help="Weaken one rule: the proof should then fail.")
@click.option(
    "--runs",
    "runs_from",
    type=click.IntRange(1, 20),
    metavar="N",
    help="Refute by runs from the initial state, of N states or more, and not by where induction fails.",
)
@click.option("--list", "listing", is_flag=True, help="Only list the theorems and their mutants.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error, no line for each obligation.")
def prove(
    theorems: tuple[str, ...],
    replicas: int | Literal["any"] | None,
    workers: int | None,
    export: str | None,
    effort: float | None,
    time_limit: float | None,
    no_search: bool,
    seed: int,
    mutant: str | None,
    runs_from: int | None,
    listing: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Prove each THEOREM (all that hold by default) by induction, for logs and epochs of any length.

    Of versions that lose committed records it finds where the induction fails, or a shortest run that loses one.
    Exit status: 0 everything is proved, 1 something is refuted, 2 bad usage, 3 something stays unknown, or is stopped by the
    clock.
    """
    try:
        need(("z3",), "kspec prove", extra="prove")
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error

    from kspec.proofs.commands.prove import TheoremOutcome, z3_version
    from kspec.proofs.commands.prove import prove as run
    from kspec.proofs.settings import ProofSettings
    from kspec.proofs.theorems import default_effort, default_time_limit

    if listing:
        _list()
        return ALL_HOLD
    names = _chosen(theorems, mutant) if runs_from is None else _refutable(theorems, replicas, mutant)
    chosen = jobs(names, replicas, mutant, runs_from)
    folder = OutputFolder(export) if export is not None else None
    outcomes: list[TheoremOutcome] = []
    with _words(not quiet) as show:
        for name, size in chosen:

            def told(obligations: Any, done: int, tasks: int, name: str = name) -> None:
                if not quiet and not as_json:
                    for each in obligations:
                        click.echo(f"{each.status:<8} {each.seconds:6.2f} s  {each.action}  {each.conjunct}")
                show(f"{name}: {done} of {tasks} tasks")

            units = default_effort(name, runs_from) if effort is None else max(int(effort * 1_000_000), 1)
            seconds = default_time_limit(name, runs_from) if time_limit is None else time_limit
            settings = ProofSettings(name, size, mutant, units, seconds, seed, None, runs_from)
            if no_search:
                settings = replace(settings, search=0)
            with _target(folder, f"{name}-{size}", len(chosen)) as target:
                outcomes.append(run(replace(settings, export=target), workers or os.cpu_count() or 1, told))
            if not as_json:
                click.echo(outcomes[-1].as_text())
    if as_json:
        described = [outcome.as_json() for outcome in outcomes]
        click.echo(json.dumps({"theorems": described, "z3_version": z3_version()}))
    statuses = {outcome.status for outcome in outcomes}
    return VIOLATED if "refuted" in statuses else STOPPED if statuses - {"proved"} else ALL_HOLD


@contextmanager
def _words(shown: bool) -> Iterator[Callable[[str], None]]:
    """Progress in words on standard error, if `shown`."""
    if not shown:
        yield lambda text: None
        return
    from kspec.cli.terminal.progress import ProgressLine

    line = ProgressLine(sys.stderr)
    try:
        yield line.show
    finally:
        line.close()


def _list() -> None:
    """Each theorem, what it says, and its mutants; then the versions that a run refutes."""
    from kspec.proofs.theorems import BY_STEPS, REFUTABLE, THEOREMS

    told = [(name, theorem.summary, theorem.mutants) for name, theorem in THEOREMS.items()]
    told += [(name, theorem.summary, theorem.mutants) for name, theorem in BY_STEPS.items()]
    for name, summary, known in told:
        mutants = f"mutants: {', '.join(known) or 'none'}"
        click.echo("\n".join([name, *filled(summary, "  "), *filled(mutants, "  ")]))
    for name, refutable in REFUTABLE.items():
        if name not in THEOREMS:
            click.echo("\n".join([name, *filled(f"{refutable.prop}, which a run refutes", "  ")]))


def _chosen(theorems: tuple[str, ...], mutant: str | None) -> tuple[str, ...]:
    """The theorems with these names. Without names, all that have the mutant."""
    from kspec.proofs.theorems import BY_STEPS, HOLDING, NAMES, THEOREMS

    for name in theorems:
        if name not in NAMES:
            raise unknown(f"there is no theorem {name!r}", name, NAMES, LIST)
    if mutant is None:
        return theorems or HOLDING
    for name in theorems:
        known_mutants = tuple(known.mutants if (known := THEOREMS.get(name) or BY_STEPS.get(name)) else ())
        if mutant not in known_mutants:
            raise unknown(f"theorem {name} has no mutant {mutant!r}", mutant, known_mutants, LIST)
    if theorems:
        return theorems
    having = tuple(name for name, known in THEOREMS.items() if mutant in known.mutants and not known.by_outcome)
    if not having:
        names = dict.fromkeys(mutant for known in THEOREMS.values() for mutant in known.mutants)
        raise unknown(f"no theorem has a mutant {mutant!r}", mutant, names, LIST)
    return having


def jobs(
    names: tuple[str, ...],
    replicas: int | Literal["any"] | None,
    mutant: str | None = None,
    runs_from: int | None = None,
) -> list[tuple[str, int | Literal["any"]]]:
    """Each theorem with a number of replicas; without `replicas`, also with any number if it is proved for any."""
    from kspec.proofs.theorems import BY_STEPS, THEOREMS, default_replicas

    for name in names if replicas is not None else ():
        _check_replicas(BY_STEPS.get(name), replicas)
    if replicas is None:
        known: list[tuple[str, int | Literal["any"]]] = [(name, default_replicas(name, runs_from)) for name in names]
        proved = [name for name in names if name in THEOREMS and THEOREMS[name].any_number and THEOREMS[name].holds]
        return known if mutant or runs_from else [*known, *((name, "any") for name in proved)]
    for name in names if replicas == "any" else ():
        if name not in BY_STEPS and (name not in THEOREMS or not THEOREMS[name].any_number):
            able = ", ".join(known for known, theorem in THEOREMS.items() if theorem.any_number)
            raise click.UsageError(f"{name} needs a number of --replicas; for any number of them there is {able}")
    return [(name, replicas) for name in names]


def _check_replicas(theorem: "StepTheorem | None", replicas: int | Literal["any"] | None) -> None:
    """Raise unless a theorem about the steps of one party is proved for this number of them."""
    if theorem is None:
        return
    if theorem.replicas is None and replicas != "any":
        raise click.UsageError(f"{theorem.name} is about any number of {theorem.parties}; it takes no --replicas")
    if theorem.replicas is not None and (not isinstance(replicas, int) or replicas < theorem.replicas):
        raise click.UsageError(f"{theorem.name} needs a number of --replicas, {theorem.replicas} or more")


def _refutable(theorems: tuple[str, ...], replicas: int | Literal["any"] | None, mutant: str | None) -> tuple[str, ...]:
    """The versions with these names, whose symbolic runs from the initial state are searched."""
    from kspec.proofs.theorems import REFUTABLE

    if mutant is not None or replicas == "any":
        raise click.UsageError("--runs needs a number of --replicas, and no --mutant")
    for name in theorems:
        if name not in REFUTABLE:
            raise click.UsageError(f"--runs: no run is known to violate {name}; some do of {', '.join(REFUTABLE)}")
    return theorems or tuple(REFUTABLE)


def _target(folder: OutputFolder | None, name: str, several: int) -> AbstractContextManager[Path | None]:
    """The folder to which obligations are written: one for each theorem and number of replicas, if there are several."""
    if folder is None:
        return nullcontext()
    return (folder if several == 1 else OutputFolder(str(folder.path / name))).opened()
