"""The parts of a rule's docstring, for reports: its first sentence, and the class and method in Apache Kafka."""

import inspect
from collections.abc import Callable
from typing import Any

KAFKA = "**Kafka:**"


def docstring_of(rule: Callable[..., Any]) -> str:
    """A function's docstring without its indentation; empty if it has none."""
    return inspect.cleandoc(rule.__doc__ or "")


def meaning_of(rule: Callable[..., Any]) -> str:
    """The first paragraph of a docstring in one line, without the class in Kafka."""
    return " ".join(docstring_of(rule).partition("\n\n")[0].split()).partition(KAFKA)[0].strip()


def kafka_of(rule: Callable[..., Any]) -> str:
    """The class and method in Kafka that do what the rule says, in one line; empty if the docstring names none."""
    named = docstring_of(rule).partition(KAFKA)[2].partition("\n\n")[0].partition("**Leaves out:**")[0]
    return " ".join(named.split())
