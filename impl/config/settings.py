"""The kinds of settings: type, range, default."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kspec.impl.config.properties import ConfigError

Parsed: TypeAlias = bool | int | float | str | tuple[str, ...]

LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1, "short": 2**15 - 1}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by Kafka's name. `kind` is Kafka's type: boolean, int, long, short, double, string, list.

    Kafka: `ConfigDef.ConfigKey`.
    """

    name: str
    kind: str
    default: str | None
    about: str
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        """The right values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind == "boolean":
            return "true or false"
        if self.kind not in {*LARGEST, "double"}:
            return f"a {self.kind}"
        lowest = "" if self.lowest is None else f" from {self.lowest:g}"
        highest = "" if self.highest is None else f" to {self.highest:g}"
        return f"a number{lowest}{highest}"

    def parse(self, text: str) -> Parsed:
        """The value. Raises: `ConfigError`, which names the setting and what would be right."""
        text = text.strip()
        try:
            value = self._parsed(text)
        except ValueError:
            raise ConfigError(f"{self.name} must be {self.wanted}, not {text!r}") from None
        listed = value if isinstance(value, tuple) else (value,)
        if self.choices and any(one not in self.choices for one in listed):
            raise ConfigError(f"{self.name} must be {self.wanted}, not {text!r}")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            too_low = self.lowest is not None and value < self.lowest
            if too_low or value > (LARGEST.get(self.kind, float("inf")) if self.highest is None else self.highest):
                raise ConfigError(f"{self.name} must be {self.wanted}, not {text!r}")
        return value

    def _parsed(self, text: str) -> Parsed:
        if self.kind == "boolean":
            return {"true": True, "false": False}[text.lower()] if text.lower() in {"true", "false"} else int("no")
        if self.kind in LARGEST:
            return int(text)
        if self.kind == "double":
            return float(text)
        if self.kind == "list":
            return tuple(one.strip() for one in text.split(",") if one.strip())
        return text


class SettingValues:
    """The settings of a node by Kafka's names: those given, and the defaults of the others. Each is asked for by its kind.

    `given`: those that are known, as they were given. Raises: `ConfigError`, for a value that is none of its kind.
    """

    known: Mapping[str, Setting]
    """The settings that there are."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = {name: value for name, value in given.items() if name in self.known}
        self._values: dict[str, Parsed | None] = {}
        for name, setting in self.known.items():
            text = self.given.get(name, setting.default)
            self._values[name] = None if text is None else setting.parse(text)

    def number(self, name: str) -> int:
        """A setting of type int, long or short."""
        value = self._values[name]
        assert isinstance(value, int), f"{name} is no number"
        assert not isinstance(value, bool), f"{name} is true or false"
        return value

    def flag(self, name: str) -> bool:
        """A setting of type boolean."""
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is neither true nor false"
        return value

    def word(self, name: str) -> str | None:
        """A setting of type string; none if it is not given, and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, str), f"{name} is no text"
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """A setting of type list; empty if it is not given, and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple), f"{name} is no list"
        return value or ()
