"""Files in Java's properties format, and settings in the form NAME=VALUE.

What is wrong is told by its place, never by its text: a value may be a secret, and so may a line that is none.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
"""The form of a setting's name: words with dots between them."""

BLANK = " \t\f"
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class ConfigError(Exception):
    """A setting that cannot be: one line that names it and says what would be right."""


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a file. Raises: `ConfigError`, if it cannot be read, or has a line that is no setting."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    return parse_properties(text, str(path))


def parse_properties(text: str, source: str = "the properties") -> dict[str, str]:
    """The settings in a text: comments begin with # or !, a backslash at the end continues a line.

    Raises: `ConfigError` for a line that is no setting. Kafka: `Properties.load`, which takes any line for one.
    """
    found: dict[str, str] = {}
    for number, line in _whole_lines(text):
        name, separated, value = _parted(line)
        if not separated or NAME.fullmatch(name) is None:
            raise ConfigError(f"line {number} of {source} is no setting; one has the form NAME=VALUE")
        try:
            found[name] = _unescaped(value).strip()
        except ValueError:
            raise ConfigError(f"line {number} of {source} has a \\u without four hexadecimal digits behind it") from None
    return found


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those that go on joined; each with its number."""
    held, first = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = line.lstrip(BLANK)
        if not first and (not stripped or stripped[0] in "#!"):
            continue
        first = first or number
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            held += stripped[:-1]
            continue
        yield first, held + stripped
        held, first = "", 0
    if first:
        yield first, held


def _parted(line: str) -> tuple[str, bool, str]:
    """The name, whether a separator follows it, and the rest. The separator is = or :, or white space."""
    end = next((index for index, one in enumerate(line) if one in "=:" + BLANK), len(line))
    rest = line[end:].lstrip(BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANK)
        return line[:end], True, rest
    return line[:end], bool(rest), rest


def _unescaped(text: str) -> str:
    """A value without its backslashes. Raises: `ValueError` for a \\u without four digits."""
    if "\\" not in text:
        return text
    found, rest = "", iter(range(len(text)))
    for index in rest:
        if text[index] != "\\":
            found += text[index]
            continue
        escaped = text[index + 1 : index + 2]
        next(rest, None)
        if escaped == "u":
            digits = text[index + 2 : index + 6]
            if re.fullmatch("[0-9A-Fa-f]{4}", digits) is None:
                raise ValueError(index)
            found += chr(int(digits, 16))
            for _ in digits:
                next(rest)
        else:
            found += ESCAPED.get(escaped, escaped)
    return found


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """Settings in the form NAME=VALUE. Raises: `ConfigError` for one that has another form."""
    found = {}
    for number, override in enumerate(overrides, start=1):
        name, equals, value = override.partition("=")
        name = name.strip()
        if not equals or NAME.fullmatch(name) is None:
            raise ConfigError(f"an override has the form NAME=VALUE; number {number} has another")
        found[name] = value.strip()
    return found
