"""What the commands of `kspec` have in common: models from options, files to write, progress, exit statuses."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from model_check.core.parameters import Parameter, ParameterError
from model_check.models import MODELS, ModelEntry

ALL_HOLD, VIOLATED, BAD_USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses."""


def _union_of_parameters() -> list[Parameter]:
    union: dict[str, Parameter] = {}
    for entry in MODELS.values():
        for parameter in entry.parameters:
            known = union.setdefault(parameter.name, parameter)
            choices = tuple(dict.fromkeys((*known.choices, *parameter.choices)))
            union[parameter.name] = known._replace(choices=choices)
    return list(union.values())


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
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


def build(name: str, options: dict[str, Any]) -> Any:
    """The model of this name with the parameters that were given; wrong ones are bad usage."""
    given = {option: value for option, value in options.items() if value not in (None, ())}
    try:
        return _entry(name).build(given)
    except ParameterError as error:
        raise click.UsageError(str(error)) from error


class StoppedError(click.ClickException):
    """Work that did not come to an end."""

    exit_code = STOPPED


class Output:
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
def progress(shown: bool) -> Iterator[Callable[[Any], None] | None]:
    """Progress on stderr: a line that is rewritten on a terminal, a line now and then elsewhere, nothing if not shown."""
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
    """The properties of these names; without any, those by default, or all."""
    known = [prop.name for prop in model.properties]
    for name in names:
        if name not in known:
            raise click.UsageError(f"model {model.name} has no property {name!r}; it has {', '.join(known)}")
    if names:
        return [prop for prop in model.properties if prop.name in names]
    return [prop for prop in model.properties if everything or prop.by_default]
