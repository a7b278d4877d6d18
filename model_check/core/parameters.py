"""The parameters of models: names, defaults, and possible values."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ParameterError(ValueError):
    """A parameter that the model does not have, or a value that it cannot take."""


class Parameter(NamedTuple):
    """A whole number (`minimum` and above), a switch (`minimum` is `None`), or one of `choices`.

    With `many`, any set of the choices; with `listed`, one or several of them in order, separated by commas.
    """

    name: str
    default: Any
    meaning: str
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    listed: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def checked(self, value: Any) -> Any:
        """The value in the form that the model gets; `ParameterError` says what is wrong and what would be right."""
        if self.many:
            values = tuple(value)
            unknown = [choice for choice in values if choice not in (*self.choices, "all")]
            if unknown:
                raise ParameterError(f"{self.option} {unknown[0]}: choose from {', '.join((*self.choices, 'all'))}")
            return self.choices if "all" in values else tuple(choice for choice in self.choices if choice in values)
        if self.listed and value is not None:
            unknown = [choice for choice in str(value).split(",") if choice not in self.choices]
            if unknown:
                raise ParameterError(f"{self.option} {unknown[0]}: choose from {', '.join(self.choices)}")
            return value
        if self.choices:
            if value is not None and value not in self.choices:
                raise ParameterError(f"{self.option} {value}: choose from {', '.join(self.choices)}")
            return value
        if self.minimum is None:
            return bool(value)
        if value < self.minimum:
            raise ParameterError(f"{self.option} {value}: must be {self.minimum} or more")
        return value

    def as_json(self) -> dict[str, Any]:
        kind = "choices" if self.many else "choice" if self.choices else "switch" if self.minimum is None else "integer"
        described: dict[str, Any] = {"name": self.name.replace("_", "-"), "kind": kind, "default": self.default}
        if self.choices:
            described["choices"] = list(self.choices)
        if self.minimum is not None:
            described["minimum"] = self.minimum
        return {**described, "meaning": self.meaning}


def resolve(model: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a model: the given ones, checked, and defaults for the rest."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            options = ", ".join(parameter.option for parameter in parameters)
            raise ParameterError(f"model {model} has no parameter --{name.replace('_', '-')}; it has {options}")
    return {name: parameter.checked(given.get(name, parameter.default)) for name, parameter in known.items()}
