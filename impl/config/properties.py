"""Files in Java's properties format, and settings in the form NAME=VALUE."""

from collections.abc import Iterable
from pathlib import Path


class ConfigError(Exception):
    """A setting that cannot be: one line that names it and says what would be right."""


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a file. Raises: `ConfigError`, if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """The settings in a text: comments begin with # or !, a backslash at the end continues a line."""
    found: dict[str, str] = {}
    for line in _whole_lines(text):
        name, value = _parted(line)
        if name:
            found[name] = value
    return found


def _whole_lines(text: str) -> Iterable[str]:
    held = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not held and stripped.startswith(("#", "!")):
            continue
        if stripped.endswith("\\"):
            held += stripped[:-1]
            continue
        yield held + stripped
        held = ""
    yield held


def _parted(line: str) -> tuple[str, str]:
    ends = [index for index, character in enumerate(line) if character in "=:"]
    if not ends:
        return line.strip(), ""
    return line[: ends[0]].strip(), line[ends[0] + 1 :].strip()


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """Settings in the form NAME=VALUE. Raises: `ConfigError` for one that has another form."""
    found = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"an override has the form NAME=VALUE, not {override!r}")
        found[name.strip()] = value.strip()
    return found
