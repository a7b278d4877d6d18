"""Parts that the commands of `kspec` share: models from options, files to write, progress, exit statuses."""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from math import isfinite
from typing import Any, NamedTuple

import click

from kspec.cli.statuses import StoppedError
from kspec.model_check.core.model import ModelSizeError
from kspec.model_check.core.nearest import instead_of
from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.core.preparation import watched
from kspec.model_check.models import MODELS, ModelEntry
from kspec.model_check.models.own import is_own, own_entry


def _union_of_parameters() -> list[Parameter]:
    union: dict[str, Parameter] = {}
    for entry in MODELS.values():
        for parameter in entry.parameters:
            known = union.setdefault(parameter.name, parameter)
            choices = tuple(dict.fromkeys((*known.choices, *parameter.choices)))
            union[parameter.name] = known._replace(choices=choices)
    return list(union.values())


PARAMETER_NAMES = [parameter.name for parameter in _union_of_parameters()]
"""The parameters of all models that are known: commands get their options together."""

Command = Callable[..., Any]
Option = Callable[[Command], Command]


def together(argument: str, names: Sequence[str], record: Callable[..., Any], options: Sequence[Option]) -> Option:
    """Options that a command gets in one argument: a record made of the values with these names."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**given: Any) -> Any:
            taken = {name: given.pop(name) for name in names if name in given}
            return command(**given, **{argument: record(**taken)})

        decorated: Command = called
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


MOST_WORKERS = 1024
"""More threads or processes than this have no computer to run on."""


class Seconds(click.FloatRange):
    """A number of seconds, or of other units, which is neither infinite nor `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a number that time can reach.", param, ctx)
        return number


class Display(NamedTuple):
    """Forms in which a command shows its result."""

    as_json: bool
    itf: str | None
    mermaid: str | None
    full: bool
    quiet: bool


def shown_options(itf: str) -> Option:
    """Options for the form of a command's result, in the argument `shown`; `itf` says which run is written to files."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--itf", metavar="FILE", help=f"Write {itf} as ITF JSON (`-`: standard output)."),
        click.option("--mermaid", metavar="FILE", help="Write it as a Mermaid sequence diagram (`-`: standard output)."),
        click.option("--full", is_flag=True, help="Show whole states in traces, not only what changed."),
        click.option("--quiet", is_flag=True, help="No progress on standard error."),
    )
    return together("shown", Display._fields, Display, options)


def model_options(command: Command) -> Command:
    """Every parameter of every model as an option, together in the argument `parameters`.

    Building a model checks which of them it takes.
    """
    options = [_option_of(parameter) for parameter in _union_of_parameters()]
    return together("parameters", PARAMETER_NAMES, dict, options)(command)


def options_of(model: str, but: Collection[str] = ()) -> Option:
    """The parameters of one model as options, together in the argument `parameters`, but for some."""
    parameters = [parameter for parameter in MODELS[model].parameters if parameter.name not in but]
    return together("parameters", [one.name for one in parameters], dict, [_option_of(one) for one in parameters])


def know_parameters(command: click.Command, entry: ModelEntry) -> None:
    """Give a command that takes a model options for the parameters of this one, which is not in `MODELS`."""
    added = {parameter.name: _option_of(parameter) for parameter in entry.parameters}
    names = {option.name for option in command.params}
    if "model" not in names:
        return
    if taken := added.keys() & names - set(PARAMETER_NAMES):
        option = min(taken).replace("_", "-")
        raise click.UsageError(f"model {entry.name}: --{option} is an option of kspec {command.name}, and no parameter")
    command.params = [option for option in command.params if option.name not in added]
    for decorate in added.values():
        decorate(command)
    PARAMETER_NAMES.extend(name for name in added if name not in PARAMETER_NAMES)


def _option_of(parameter: Parameter) -> Option:
    meaning = parameter.meaning
    if parameter.minimum is not None:
        return click.option(parameter.option, parameter.name, type=int, default=None, metavar="N", help=meaning)
    if parameter.many:
        text = f"{meaning}: {', '.join((*parameter.choices, 'all'))}"
        return click.option(parameter.option, parameter.name, multiple=True, metavar="NAME", help=text)
    if parameter.choices:
        text = f"{meaning}: {', '.join(parameter.choices)}"
        return click.option(parameter.option, parameter.name, default=None, metavar="NAME", help=text)
    return click.option(parameter.option, parameter.name, is_flag=True, default=None, help=meaning)


def unknown(complaint: str, name: str, known: Collection[str], command: str) -> click.UsageError:
    """The one line for a name that does not exist; the command tells all that do."""
    return click.UsageError(f"{complaint}; {instead_of(name, known, f'`{command}` tells all of them')}")


def entry_named(name: str) -> ModelEntry:
    """The model with this name; an unknown name is bad usage."""
    if is_own(name):
        return own_entry(name)
    if name not in MODELS:
        raise unknown(f"there is no model {name!r}", name, MODELS, "kspec models")
    return MODELS[name]


def build(name: str, parameters: dict[str, Any], shown: bool, deadline: "Deadline | None" = None) -> Any:
    """The model with this name and the given parameters; wrong parameters are bad usage.

    Building takes time where bounds are large: its progress is shown if `shown`, and it stops at the deadline.
    """
    given = {option: value for option, value in parameters.items() if value not in (None, ())}
    try:
        with progress(shown, deadline):
            return entry_named(name).build(given)
    except ParameterError as error:
        raise click.UsageError(str(error)) from error
    except ModelSizeError as error:
        raised = [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if type(value) is int]
        raise click.UsageError(f"{error}; choose less than {', '.join(raised)}") from error


def called_as() -> str:
    """The command as its user writes it: `./run` in a clone says so."""
    return os.environ.get("KSPEC_CALLED_AS") or "kspec"


def only_one_on_standard_output(as_json: bool, **files: str | None) -> None:
    """Refuse two outputs that would both go to standard output, where nobody could tell them apart."""
    chosen = ["--json"] * as_json + [f"--{name} -" for name, file in files.items() if file == "-"]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} both write to standard output; leave one of them out")


class Deadline:
    """The end of a command's time limit. The limit begins here, so that building a model counts as well."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.began = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the limit began."""
        return time.monotonic() - self.began

    def check(self, doing: str) -> None:
        """Stop if no time is left for what is being done."""
        if self.seconds is not None and self.spent >= self.seconds:
            raise StoppedError(f"stopped early: the time limit of {self.seconds:g} s is reached while {doing}")


@contextmanager
def progress(shown: bool, deadline: Deadline | None = None) -> Iterator[Callable[[Any], None] | None]:
    """Progress on stderr: a rewritten line on a terminal, a line now and then elsewhere, nothing if it is not shown.

    What is prepared before the exploration is shown, too, and stops at the deadline.
    """
    from kspec.cli.terminal.progress import ProgressLine

    line = ProgressLine(sys.stderr) if shown else None

    def watch(doing: str) -> None:
        if deadline is not None:
            deadline.check(doing)
        if line is not None:
            line.prepare(doing)

    try:
        with watched(watch):
            yield None if line is None else line.report
    finally:
        if line is not None:
            line.close()


def chosen_properties(model: Any, names: tuple[str, ...], everything: bool) -> list[Any]:
    """The properties with these names. Without names, the default properties, or all."""
    known = [prop.name for prop in model.properties]
    for name in names:
        if name not in known:
            raise unknown(f"model {model.name} has no property {name!r}", name, known, f"kspec models {model.name}")
    if len(set(names)) < len(names):
        again = next(name for number, name in enumerate(names) if name in names[:number])
        raise click.UsageError(f"--invariant {again} is given twice")
    if names:
        return [prop for prop in model.properties if prop.name in names]
    return [prop for prop in model.properties if everything or prop.by_default]
