"""Help for commands that take a model: the parameters of each kind of model by themselves, with their defaults."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from kspec.model_check.core.parameters import Parameter
from kspec.model_check.models import MODELS
from kspec.model_check.models.own import is_own, own_entry

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


def explained(parameter: Parameter, models: Mapping[str, Sequence[Parameter]], few: int = FEW) -> str:
    """The meaning of a parameter, its choices if they are few, its default, and who has it if not all models do.

    `models` have these parameters, by their names.
    """
    having = [name for name, parameters in models.items() if parameter.name in {one.name for one in parameters}]
    words = parameter.meaning
    choices = (*parameter.choices, "all") if parameter.many else parameter.choices
    if choices:
        many = f"one of {len(choices)} that `kspec models {next(iter(models))}` lists"
        words += f": {', '.join(choices)}" if len(choices) <= few else f": {many}"
    remarks = [] if len(having) == len(models) else [f"only {', '.join(having)}"]
    defaults = {str(one.default): name for name in having for one in models[name] if one.name == parameter.name}
    shown = [default for default in defaults if default not in ("None", "False", "()")]
    if shown:
        remarks.append(f"default: {' or '.join(shown)}")
    return f"{words}  [{'; '.join(remarks)}]" if remarks else words


class ModelCommand(click.Command):
    """A command with the parameters of models as options.

    Its help lists those of the model that is named, or else those of all models, by kind.
    """

    models: Collection[str] = MODELS
    """Models that the command takes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember which model is named: help is asked for before arguments are looked at."""
        ctx.meta[NAMED] = next((argument for argument in args if argument in self.models or is_own(argument)), None)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those of each kind of model, or of the one that is named."""
        listed = self._listed(ctx.meta.get(NAMED))
        names = {parameter.name for kind in (*kinds(), *listed) for parameter in kind.parameters}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [param for param in options if param.name not in names]
        spark = [param for param in own if (param.help or "").startswith(SPARK)]
        for title, params in (("Options", [param for param in own if param not in spark]), ("Engine spark", spark)):
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl([(option, _without_prefix(words)) for option, words in records])
        known = {param.name for param in options}
        for kind in listed:
            taken = [one for one in kind.parameters if one.name in known]
            having = {name: MODELS[name].parameters if name in MODELS else kind.parameters for name in kind.models}
            if taken:
                with formatter.section(f"Parameters of {', '.join(kind.models)}"):
                    formatter.write_dl([(_option(one), explained(one, having)) for one in taken])

    def _listed(self, named: str | None) -> list[Kind]:
        """The kinds of models whose parameters the help lists."""
        if named is None:
            return [kind for kind in kinds() if not set(kind.models).isdisjoint(self.models)]
        entry = MODELS[named] if named in MODELS else own_entry(named)
        return [Kind((entry.name,), entry.parameters)]


NAMED = "model_check.model"
"""The model that a command line names, among what click remembers of it."""

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
