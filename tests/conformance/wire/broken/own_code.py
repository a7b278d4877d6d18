"""Weakenings of the broker's own code, which no model runs: each is planted into a broker, and the cases are run on it."""

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from kspec.impl.wire.schema import snake_case
from tests.conformance.wire.broken.planting import BrokerBug
from tests.planted_bugs.planting import bugs_of, functions_of


def weakenings_of(module: str) -> Iterator[BrokerBug]:
    """All weakenings of a module below `kspec`, such as `impl.requests.fetch`, in order of its functions."""
    for name, function in functions_of(import_module(f"kspec.{module}")):
        before = inspect.getsource(function)
        indent = before[: len(before) - len(before.lstrip())]
        for bug in bugs_of(f"{module}:{name}", function):
            yield BrokerBug(str(bug), module, module, before, textwrap.indent(bug.source, indent))


def in_order_for(module: str, cases: Sequence[Any]) -> list[Any]:
    """The cases with those first that send a request which a function of the module answers: so most are told sooner."""
    functions = vars(import_module(f"kspec.{module}"))

    def is_about_others(case: Any) -> bool:
        sent = {step["api"] for step in case["steps"] if not step.get("setup")}
        return not any(snake_case(api) in functions for api in sent)

    return sorted(cases, key=is_about_others)
