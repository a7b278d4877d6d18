"""Regular expressions of consumers, in RE2's syntax as in Kafka: whether they are any, and which topics they match.

An expression of RE2 takes time that grows with the length of what it is held against, whatever it says: a client cannot
make a broker think for ever. The library is loaded when the first expression comes. Kafka: `com.google.re2j`,
`TopicRegexResolver`.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Protocol


class _Expression(Protocol):
    """A regular expression of the library."""

    def fullmatch(self, text: str) -> object:
        """The match of a whole text, `None` if there is none."""


def is_expression(text: str) -> bool:
    """Whether the text is a regular expression. **Kafka:** `TopicRegexResolver.throwIfRegularExpressionIsInvalid`."""
    return _compiled(text) is not None


def matching(expressions: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The names that each expression matches as a whole; one that is none matches nothing.

    **Kafka:** `TopicRegexResolver.resolveRegularExpressions`.
    """
    listed = tuple(names)
    return {text: _matching(text, listed) for text in expressions}


def _matching(text: str, names: tuple[str, ...]) -> frozenset[str]:
    compiled = _compiled(text)
    return frozenset() if compiled is None else frozenset(name for name in names if compiled.fullmatch(name))


def _compiled(text: str) -> _Expression | None:
    re2 = import_module("re2")
    try:
        compiled: _Expression = re2.compile(text, _quiet())
    except re2.error:
        return None
    return compiled


@cache
def _quiet() -> object:
    """Options by which the library writes no errors of its own."""
    options = import_module("re2").Options()
    options.log_errors = False
    found: object = options
    return found
