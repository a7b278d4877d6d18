"""Help for commands that take a model: the parameters of each kind of model by themselves, with their defaults."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import click

from model_check.core.parameters import Parameter
from model_check.models import MODELS

FEW = 8
"""Up to this many choices are listed in the help."""


class Kind(NamedTuple):
    """Models with the same parameters."""

    models: tuple[str, ...]
    parameters: tuple[Parameter, ...]


def kinds() -> list[Kind]:
    """The models by their parameters; a parameter that only some of a kind have belongs to it, too."""
    found: dict[Parameter, list[str]] = {}
    for entry in MODELS.values():
        found.setdefault(entry.parameters[0], []).append(entry.name)
    return [
        Kind(tuple(names), tuple({one.name: one for name in names for one in MODELS[name].parameters}.values()))
        for names in found.values()
    ]


def explained(parameter: Parameter, models: tuple[str, ...], few: int = FEW) -> str:
    """What a parameter means, its choices if they are few, its default, and who has it if not all models do."""
    having = [name for name in models if parameter.name in {one.name for one in MODELS[name].parameters}]
    words = parameter.meaning
    choices = (*parameter.choices, "all") if parameter.many else parameter.choices
    if choices:
        many = f"one of {len(choices)} that `kspec models {models[0]}` lists"
        words += f": {', '.join(choices)}" if len(choices) <= few else f": {many}"
    remarks = [] if len(having) == len(models) else [f"only {', '.join(having)}"]
    defaults = {str(one.default): name for name in having for one in MODELS[name].parameters if one.name == parameter.name}
    shown = [default for default in defaults if default not in ("None", "False", "()")]
    if shown:
        remarks.append(f"default: {' or '.join(shown)}")
    return f"{words}  [{'; '.join(remarks)}]" if remarks else words


class ModelCommand(click.Command):
    """A command with the parameters of models as options. Its help lists them by kind of model."""

    models: Collection[str] = MODELS
    """Which models the command takes."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those of each kind of model."""
        names = {parameter.name for kind in kinds() for parameter in kind.parameters}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [param for param in options if param.name not in names]
        spark = [param for param in own if (param.help or "").startswith(SPARK)]
        for title, params in (("Options", [param for param in own if param not in spark]), ("Engine spark", spark)):
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl([(option, _without_prefix(words)) for option, words in records])
        known = {param.name for param in options}
        for kind in kinds():
            taken = [one for one in kind.parameters if one.name in known]
            if taken and not set(kind.models).isdisjoint(self.models):
                with formatter.section(f"Parameters of {', '.join(kind.models)}"):
                    formatter.write_dl([(_option(one), explained(one, kind.models)) for one in taken])


SPARK = "Engine spark: "


def _without_prefix(words: str) -> str:
    rest = words.removeprefix(SPARK)
    return rest[0].upper() + rest[1:]


def _option(parameter: Parameter) -> str:
    if parameter.minimum is not None:
        return f"{parameter.option} N"
    return f"{parameter.option} NAME" if parameter.choices else parameter.option


def examples(*lines: tuple[str, str]) -> dict[str, Any]:
    """The end of a command's help: examples, each with what it does."""
    written = "\n\n".join("\b\n" + "\n".join(_example(command, does)) for command, does in lines)
    return {"epilog": f"Examples:\n\n{written}"}


def _example(command: str, does: str) -> Iterator[str]:
    yield f"  {does}:"
    yield f"    {command}"
