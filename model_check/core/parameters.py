"""The parameters of models: names, defaults, and possible values."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.nearest import instead_of


class ParameterError(ValueError):
    """A parameter that the model does not have, or a value that it cannot take."""


class Parameter(NamedTuple):
    """A whole number from `minimum` to `maximum`, a switch (`minimum` is `None`), or one of `choices`.

    With `many`, any set of the choices; with `listed`, one or several of them in order, separated by commas, each once
    unless `repeated`. A maximum is far beyond what anybody can explore: it keeps a slip of the pen from taking hours.
    """

    name: str
    default: Any
    meaning: str
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    listed: bool = False
    maximum: int = 200
    repeated: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def checked(self, value: Any, model: str) -> Any:
        """The value in the form that the model gets; `ParameterError` says what is wrong and what would be right."""
        if self.many:
            values = tuple(value)
            unknown = [choice for choice in values if choice not in (*self.choices, "all")]
            if unknown:
                raise ParameterError(self._not_among((*self.choices, "all"), unknown[0], model))
            return self.choices if "all" in values else tuple(choice for choice in self.choices if choice in values)
        if self.listed and value is not None:
            chosen = str(value).split(",")
            unknown = [choice for choice in chosen if choice not in self.choices]
            if unknown:
                raise ParameterError(self._not_among(self.choices, unknown[0], model))
            again = [choice for number, choice in enumerate(chosen) if choice in chosen[:number]]
            if again and not self.repeated:
                raise ParameterError(f"{self.option} {value}: {again[0]} is named twice")
            return value
        if self.choices:
            if value is not None and value not in self.choices:
                raise ParameterError(self._not_among(self.choices, value, model))
            return value
        if self.minimum is None:
            return bool(value)
        if value < self.minimum:
            raise ParameterError(f"{self.option} {value}: must be {self.minimum} or more")
        return value

    def check_size(self, value: Any) -> None:
        """Refuse a number beyond `maximum`: `ParameterError`. Proofs, which are about any number, do not ask."""
        if self.minimum is not None and value > self.maximum:
            raise ParameterError(f"{self.option} {value}: too large, must be {self.maximum:,} or less")

    def _not_among(self, choices: tuple[str, ...], value: str, model: str) -> str:
        return f"{self.option} {value}: {instead_of(value, choices, f'`kspec models {model}` tells all of them')}"

    def as_json(self) -> dict[str, Any]:
        kind = "choices" if self.many else "choice" if self.choices else "switch" if self.minimum is None else "integer"
        described: dict[str, Any] = {"name": self.name.replace("_", "-"), "kind": kind, "default": self.default}
        if self.choices:
            described["choices"] = list(self.choices)
        if self.minimum is not None:
            described["minimum"] = self.minimum
            described["maximum"] = self.maximum
        return {**described, "meaning": self.meaning}


def resolve(model: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a model: the given ones, checked, and defaults for the rest."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            options = [parameter.option for parameter in parameters]
            option = f"--{name.replace('_', '-')}"
            others = instead_of(option, options, f"`kspec models {model}` tells all of them")
            raise ParameterError(f"model {model} has no parameter {option}; {others}")
    return {name: parameter.checked(given.get(name, parameter.default), model) for name, parameter in known.items()}
