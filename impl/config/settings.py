"""What a setting may be: its type, its range, its default."""

from dataclasses import dataclass

from impl.config.properties import ConfigError

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
        """What would be right, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind == "boolean":
            return "true or false"
        if self.kind not in {*LARGEST, "double"}:
            return f"a {self.kind}"
        lowest = "" if self.lowest is None else f" from {self.lowest:g}"
        highest = "" if self.highest is None else f" to {self.highest:g}"
        return f"a number{lowest}{highest}"

    def parse(self, text: str) -> bool | int | float | str | tuple[str, ...]:
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

    def _parsed(self, text: str) -> bool | int | float | str | tuple[str, ...]:
        if self.kind == "boolean":
            return {"true": True, "false": False}[text.lower()] if text.lower() in {"true", "false"} else int("no")
        if self.kind in LARGEST:
            return int(text)
        if self.kind == "double":
            return float(text)
        if self.kind == "list":
            return tuple(one.strip() for one in text.split(",") if one.strip())
        return text
