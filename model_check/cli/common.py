"""What the commands of `kspec` have in common: models from options, files to write, progress, exit statuses."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from model_check.core.parameters import Parameter, ParameterError
from model_check.models import MODELS, ModelEntry


def _union_of_parameters() -> list[Parameter]:
    union: dict[str, Parameter] = {}
    for entry in MODELS.values():
        for parameter in entry.parameters:
            known = union.setdefault(parameter.name, parameter)
            choices = tuple(dict.fromkeys((*known.choices, *parameter.choices)))
            union[parameter.name] = known._replace(choices=choices)
    return list(union.values())


Command = Callable[..., Any]
Option = Callable[[Command], Command]


def together(argument: str, names: Sequence[str], record: Callable[..., Any], options: Sequence[Option]) -> Option:
    """Options that a command gets in one argument: a record made of the values with these names."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**given: Any) -> Any:
            taken = {name: given.pop(name) for name in names}
            return command(**given, **{argument: record(**taken)})

        decorated: Command = called
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


class Shown(NamedTuple):
    """How a command shows what it found."""

    as_json: bool
    itf: str | None
    mermaid: str | None
    full: bool
    quiet: bool


def shown_options(itf: str) -> Option:
    """How a command shows what it found, in the argument `shown`; `itf` says which run is written to files."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--itf", metavar="FILE", help=f"Write {itf} as ITF JSON (`-`: standard output)."),
        click.option("--mermaid", metavar="FILE", help="Write it as a Mermaid sequence diagram (`-`: standard output)."),
        click.option("--full", is_flag=True, help="Show whole states in traces, not only what changed."),
        click.option("--quiet", is_flag=True, help="No progress on standard error."),
    )
    return together("shown", Shown._fields, Shown, options)


def model_options(command: Command) -> Command:
    """Every parameter of every model as an option, together in the argument `parameters`.

    Building a model checks which of them it takes.
    """
    parameters = _union_of_parameters()
    names = [parameter.name for parameter in parameters]
    return together("parameters", names, dict, [_option_of(parameter) for parameter in parameters])(command)


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


def _entry(name: str) -> ModelEntry:
    if name not in MODELS:
        raise click.UsageError(f"there is no model {name!r}; models: {', '.join(MODELS)}")
    return MODELS[name]


def build(name: str, parameters: dict[str, Any]) -> Any:
    """The model with this name and the given parameters; wrong parameters are bad usage."""
    given = {option: value for option, value in parameters.items() if value not in (None, ())}
    try:
        return _entry(name).build(given)
    except ParameterError as error:
        raise click.UsageError(str(error)) from error


class Output:
    """A file to write when the work is done. Whether it can be written is checked before the work starts."""

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
def progress(shown: bool) -> Iterator[Callable[[Any], None] | None]:
    """Progress on stderr: a rewritten line on a terminal, a line now and then elsewhere, nothing if it is not shown."""
    if not shown:
        yield None
        return
    from model_check.cli.progress import ProgressLine

    line = ProgressLine(sys.stderr)
    try:
        yield line.report
    finally:
        line.close()


def chosen_properties(model: Any, names: tuple[str, ...], everything: bool) -> list[Any]:
    """The properties with these names. Without names, the default properties, or all."""
    known = [prop.name for prop in model.properties]
    for name in names:
        if name not in known:
            raise click.UsageError(f"model {model.name} has no property {name!r}; it has {', '.join(known)}")
    if names:
        return [prop for prop in model.properties if prop.name in names]
    return [prop for prop in model.properties if everything or prop.by_default]
