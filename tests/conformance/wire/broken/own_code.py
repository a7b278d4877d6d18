"""Weakenings of the broker's own code, which no model runs: each is planted into a broker, and the cases are run on it."""

import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module

from tests.conformance.wire.broken.planting import BrokerBug
from tests.planted_bugs.planting import bugs_of, functions_of


def weakenings_of(module: str) -> Iterator[BrokerBug]:
    """All weakenings of a module below `kspec`, such as `impl.requests.fetch`, in order of its functions."""
    for name, function in functions_of(import_module(f"kspec.{module}")):
        before = inspect.getsource(function)
        indent = before[: len(before) - len(before.lstrip())]
        for bug in bugs_of(f"{module}:{name}", function):
            yield BrokerBug(str(bug), module, module, before, textwrap.indent(bug.source, indent))
