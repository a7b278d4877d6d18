"""The command line: `kspec`."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from model_check.engines import DEFAULT_ENGINE, EngineError, explorer
from model_check.models import MODELS, ModelEntry
from model_check.parameters import Parameter, ParameterError
from model_check.version import VERSION

ALL_HOLD, VIOLATED, BAD_USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses."""


def main() -> NoReturn:
    """Run `kspec`: what was wrong with its use is told in one line, with exit status 2."""
    try:
        status = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("kspec: interrupted", err=True)
        sys.exit(STOPPED)
    except click.ClickException as error:
        click.echo(f"kspec: {' '.join(error.format_message().split())}", err=True)
        sys.exit(BAD_USAGE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ALL_HOLD)
    sys.exit(status or ALL_HOLD)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="kspec")
def cli() -> None:
    """Kafka's replication protocol, stated once and checked exhaustively.

    Start with `kspec history`, then `kspec study`.
    """


def _union_of_parameters() -> list[Parameter]:
    union: dict[str, Parameter] = {}
    for entry in MODELS.values():
        for parameter in entry.parameters:
            known = union.setdefault(parameter.name, parameter)
            choices = tuple(dict.fromkeys((*known.choices, *parameter.choices)))
            union[parameter.name] = known._replace(choices=choices)
    return list(union.values())


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Every parameter of every model as an option; which of them a model takes is checked when it is built."""
    for parameter in reversed(_union_of_parameters()):
        meaning = parameter.meaning
        if parameter.minimum is not None:
            option = click.option(parameter.option, parameter.name, type=int, default=None, metavar="N", help=meaning)
        elif parameter.many:
            text = f"{meaning}: {', '.join((*parameter.choices, 'all'))}"
            option = click.option(parameter.option, parameter.name, multiple=True, metavar="NAME", help=text)
        elif parameter.choices:
            text = f"{meaning}: {', '.join(parameter.choices)}"
            option = click.option(parameter.option, parameter.name, default=None, metavar="NAME", help=text)
        else:
            option = click.option(parameter.option, parameter.name, is_flag=True, default=None, help=meaning)
        command = option(command)
    return command


def _entry(name: str) -> ModelEntry:
    if name not in MODELS:
        raise click.UsageError(f"there is no model {name!r}; models: {', '.join(MODELS)}")
    return MODELS[name]


def _build(name: str, options: dict[str, Any]) -> Any:
    given = {option: value for option, value in options.items() if value not in (None, ())}
    try:
        return _entry(name).build(given)
    except ParameterError as error:
        raise click.UsageError(str(error)) from error


class _Output:
    """A file to be written once the work is done; that it can be written is made sure before the work starts."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        if path and path != "-":
            try:
                with Path(path).open("a", encoding="utf-8"):
                    pass
            except OSError as error:
                raise click.UsageError(f"cannot write {path}: {error.strerror}") from error

    def write(self, text: str) -> None:
        if self.path == "-":
            click.echo(text, nl=not text.endswith("\n"))
        elif self.path:
            Path(self.path).write_text(text, encoding="utf-8")


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[Any], None] | None]:
    """Progress on stderr: a line that is rewritten on a terminal, a line now and then elsewhere, nothing if not shown."""
    if not shown:
        yield None
        return
    from model_check.progress import ProgressLine

    line = ProgressLine(sys.stderr)
    try:
        yield line.report
    finally:
        line.close()


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option("--invariant", "names", multiple=True, metavar="NAME", help="Check this property; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Explore everything and check every property of the model.")
@click.option(
    "--engine", default=DEFAULT_ENGINE, show_default=True, metavar="NAME", help="What explores: compiled, reference."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Threads of engine compiled (all cores by default).")
@click.option("--symmetry", is_flag=True, help="Visit one of the states that differ only in which broker is which.")
@click.option("--deadlock", is_flag=True, help="A state without any possible action is a violation.")
@click.option("--max-states", type=click.IntRange(1), metavar="N", help="Stop after about N distinct states.")
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop after S seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--itf", metavar="FILE", help="Write the shortest counterexample as ITF JSON (`-`: standard output).")
@click.option("--mermaid", metavar="FILE", help="Write it as a Mermaid sequence diagram (`-`: standard output).")
@click.option("--full", is_flag=True, help="Show whole states in traces, not only what changed.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
@_model_options
def check(
    model: str,
    names: tuple[str, ...],
    everything: bool,
    engine: str,
    workers: int | None,
    symmetry: bool,
    deadlock: bool,
    max_states: int | None,
    time_limit: float | None,
    as_json: bool,
    itf: str | None,
    mermaid: str | None,
    full: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Explore MODEL and check its properties.

    Stops at the first violation, or explores everything with --all. Exit status: 0 all hold, 1 a property is violated,
    2 bad usage, 3 stopped before the space was exhausted.
    """
    from model_check.exploration import Limits
    from model_check.itf import as_itf
    from model_check.mermaid import sequence_diagram
    from model_check.report import exploration_as_json, exploration_as_text, verdict_in_words, violations

    built = _build(model, options)
    properties = _chosen_properties(built, names, everything)
    explore = _engine(engine, workers, _symmetry(built, properties) if symmetry else None)
    itf_file, mermaid_file = _Output(itf), _Output(mermaid)
    with _progress(not quiet) as report:
        limits = Limits(not everything, max_states, time_limit, deadlock, report)
        result = explore(built, properties, limits)
    if as_json:
        click.echo(json.dumps(exploration_as_json(result)))
    elif "-" not in (itf, mermaid):
        click.echo(exploration_as_text(result, full))
    shown = violations(result) or [
        (verdict.prop.name, verdict.trace) for verdict in result.verdicts if names and verdict.holds and verdict.trace
    ]
    if shown:
        name, trace = shown[0]
        verdict = next((verdict for verdict in result.verdicts if verdict.prop.name == name), None)
        description = f"{model}: {name} {verdict_in_words(verdict) if verdict else 'violated'}"
        itf_file.write(json.dumps(as_itf(built, trace, description), indent=1) + "\n")
        mermaid_file.write(sequence_diagram(built, trace))
    elif itf or mermaid:
        click.echo("kspec: no property was violated, so there is no trace to write", err=True)
    asked_for_and_false = any(verdict.holds is False for verdict in result.verdicts if verdict.prop.name in names)
    if result.violated or asked_for_and_false:
        return VIOLATED
    return ALL_HOLD if result.complete else STOPPED


def _symmetry(model: Any, properties: list[Any]) -> Any:
    from model_check.symmetry import AsymmetryError, Symmetry

    symmetry = Symmetry(model)
    try:
        symmetry.check(properties)
    except AsymmetryError as error:
        raise click.UsageError(str(error)) from error
    return symmetry


def _engine(name: str, workers: int | None, symmetry: Any) -> Callable[..., Any]:
    try:
        return explorer(name, workers, symmetry)
    except EngineError as error:
        raise click.UsageError(str(error)) from error


def _chosen_properties(model: Any, names: tuple[str, ...], everything: bool) -> list[Any]:
    known = [prop.name for prop in model.properties]
    for name in names:
        if name not in known:
            raise click.UsageError(f"model {model.name} has no property {name!r}; it has {', '.join(known)}")
    if names:
        return [prop for prop in model.properties if prop.name in names]
    return [prop for prop in model.properties if everything or prop.by_default]


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def models(as_json: bool) -> None:
    """List the models, their parameters with defaults, and the quirks that --repair mends."""
    if as_json:
        described = [
            {
                "name": entry.name,
                "summary": entry.summary,
                "parameters": [parameter.as_json() for parameter in entry.parameters],
                "properties": [
                    {"name": prop.name, "kind": prop.kind, "meaning": prop.meaning, "by_default": prop.by_default}
                    for prop in entry.build({}).properties
                ],
                "quirks": dict(entry.quirks),
            }
            for entry in MODELS.values()
        ]
        click.echo(json.dumps({"version": VERSION, "models": described}))
        return
    for entry in MODELS.values():
        click.echo(f"{entry.name}\n  {entry.summary}")
        for parameter in entry.parameters:
            default = " ".join(parameter.default) if parameter.many else parameter.default
            shown = f"[{default}]" if default not in (None, False, "") else ""
            click.echo(f"    {parameter.option:<14} {shown:<12} {parameter.meaning}")
            for choice in parameter.choices if parameter.many else ():
                click.echo(f"{'':31}{choice}: {entry.quirks[choice]}")
        click.echo()


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--states", default=300, type=click.IntRange(1), show_default=True, metavar="N", help="Reachable states to try."
)
@click.option("--seed", default=1, show_default=True, metavar="N", help="Of the random choice of states.")
@_model_options
def audit(model: str, states: int, seed: int, **options: Any) -> int:
    """Check that the actions of MODEL read and write only what they declare.

    Exit status: 0 if they do, 1 if not.
    """
    from model_check.audit import audit as run_audit

    report = run_audit(_build(model, options), states, seed)
    click.echo(f"{model}: {report.states:,} reachable states, {report.evaluations:,} evaluations")
    for finding in report.findings:
        click.echo(f"  WRONG  {finding}")
    for note in report.unused_reads:
        click.echo(f"  unused {note}")
    click.echo("  every action reads and writes what it declares" if not report.findings else "")
    return VIOLATED if report.findings else ALL_HOLD


@cli.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--markdown", is_flag=True, help="Print the story as Markdown, with a Mermaid diagram.")
@click.option("--write", "folder", metavar="DIR", help="Write the pages of all studies, and an index, into this folder.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def study(name: str | None, markdown: bool, folder: str | None, quiet: bool) -> None:
    """Tell the failure NAME: the run found by the checker, and the rule that repairs it. Without NAME, list all."""
    from model_check.studies import STUDIES, as_markdown, as_text, tell
    from model_check.studies.pages import write_pages

    known = {study.name: study for study in STUDIES}
    if name is not None and name not in known:
        raise click.UsageError(f"there is no study {name!r}; studies: {', '.join(known)}")
    if folder is not None:
        with _progress(not quiet) as report:
            try:
                for page in write_pages(Path(folder), report):
                    click.echo(page)
            except OSError as error:
                raise click.UsageError(f"cannot write {folder}: {error.strerror}") from error
    elif name is None:
        width = max(map(len, known))
        for entry in STUDIES:
            click.echo(f"{entry.name:<{width}}  {entry.summary} ({entry.reference})")
        click.echo("\n`kspec study NAME` tells one.")
    else:
        with _progress(not quiet) as report:
            telling = tell(known[name], report=report)
        click.echo((as_markdown if markdown else as_text)(telling), nl=False)


@cli.command()
@click.option("--traces/--no-traces", default=True, help="Show the shortest counterexample of each violated model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def history(traces: bool, as_json: bool, quiet: bool) -> None:
    """Check the protocol's history, version by version, and print the verdict table."""
    from model_check.history import history_as_json, history_as_text, run_history

    with _progress(not quiet) as report:
        chapters = run_history(report)
    click.echo(json.dumps(history_as_json(chapters)) if as_json else history_as_text(chapters, traces))


@cli.command()
@click.argument("theorems", metavar="[THEOREM]...", nargs=-1)
@click.option("--replicas", type=click.IntRange(2), default=3, show_default=True, metavar="N", help="Replicas, 1 to N.")
@click.option("--workers", type=click.IntRange(1), metavar="W", help="Processes (all cores by default).")
@click.option("--export", metavar="DIR", help="Write each obligation into this folder as SMT-LIB 2.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=20.0,
    show_default=True,
    metavar="S",
    help="Seconds for one obligation.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Of Z3's random choices.")
@click.option("--mutant", metavar="NAME", help="Weaken one rule: the proof should then fail.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error, no line for each obligation.")
def prove(
    theorems: tuple[str, ...],
    replicas: int,
    workers: int | None,
    export: str | None,
    timeout: float,
    seed: int,
    mutant: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Prove each THEOREM (all of them by default) by induction, for logs and epochs of any length.

    Exit status: 0 everything is proved, 1 something is refuted, 2 bad usage, 3 something stays unknown.
    """
    import os

    try:
        from proofs.prove import Outcome, z3_version
        from proofs.prove import prove as run
        from proofs.settings import Settings
        from proofs.theorems import THEOREMS
    except ModuleNotFoundError as error:
        if error.name != "z3":
            raise
        raise click.UsageError("kspec prove needs Z3: pip install 'kafka-replication-spec[prove]'") from error

    for name in theorems:
        if name not in THEOREMS:
            raise click.UsageError(f"there is no theorem {name!r}; theorems: {', '.join(THEOREMS)}")
    chosen = theorems or tuple(name for name, known in THEOREMS.items() if mutant is None or mutant in known.mutants)
    for name in chosen or THEOREMS:
        if mutant is not None and mutant not in THEOREMS[name].mutants:
            raise click.UsageError(f"theorem {name} has no mutant {mutant!r}; it has {', '.join(THEOREMS[name].mutants)}")
    folder = _folder(export)
    outcomes: list[Outcome] = []
    with _progress(not quiet) as report:
        for name in chosen:

            def told(obligations: Any, done: int, tasks: int, name: str = name) -> None:
                if not quiet and not as_json:
                    for each in obligations:
                        click.echo(f"{each.status:<8} {each.seconds:6.2f} s  {each.action}  {each.conjunct}")
                if report is not None:
                    report(f"{name}: {done} of {tasks} tasks")

            settings = Settings(name, replicas, mutant, timeout, seed, folder)
            outcomes.append(run(settings, workers or os.cpu_count() or 1, told))
            if not as_json:
                click.echo(outcomes[-1].as_text())
    if as_json:
        described = [outcome.as_json() for outcome in outcomes]
        click.echo(json.dumps({"theorems": described, "z3_version": z3_version()}))
    statuses = {outcome.status for outcome in outcomes}
    return VIOLATED if "refuted" in statuses else STOPPED if "unknown" in statuses else ALL_HOLD


def _folder(path: str | None) -> Path | None:
    """A folder to write into; it is made if it is not there."""
    if path is None:
        return None
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"cannot make the folder {path}: {error.strerror}") from error
    return Path(path)
