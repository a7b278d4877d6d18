"""A model by its name and its parameters: as JSON, and in words."""

from typing import Any

from kspec.model_check.core.model import Model
from kspec.model_check.traces.encode import as_json
from kspec.model_check.version import VERSION


def option_name(parameter: str) -> str:
    """A parameter as it is typed: `log_size` is `log-size`."""
    return parameter.replace("_", "-")


def model_as_json(model: Model) -> dict[str, Any]:
    """The head of every machine-readable output: the model, the version of this project, and the model's parameters."""
    return {
        "model": model.name,
        "version": VERSION,
        "parameters": {option_name(name): as_json(value) for name, value in model.parameters.items()},
    }


def parameters_in_words(model: Model) -> str:
    """The parameters that matter: sizes always, other settings only where they are not empty or off."""
    shown = []
    for name, value in model.parameters.items():
        if value is True:
            shown.append(option_name(name))
        elif value not in (False, None, ()) and not (name == "min_isr" and value == 1):
            shown.append(f"{option_name(name)} {', '.join(value) if isinstance(value, tuple) else value}")
    return ", ".join(shown)
