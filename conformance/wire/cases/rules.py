"""The rule of `spec` that has decided an answer: found by watching the handler, and told by the rule's docstring."""

import inspect
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from kspec.conformance.wire.choice.graph import GraphStep
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.values import Error


class Rule(NamedTuple):
    """A function of `spec`: where it is, what its docstring says, which class of Kafka it states, and which KIPs."""

    function: str
    doc: str
    kafka: str
    kips: tuple[str, ...]


def rule_of(function: Callable[..., Any], *more: Callable[..., Any]) -> Rule:
    """A function as a rule; KIPs are also those that the functions which call it name."""
    doc = inspect.getdoc(function) or ""
    docs = [doc, *(inspect.getdoc(one) or "" for one in more)]
    kips = dict.fromkeys(kip for one in docs for kip in re.findall(r"KIP-\d+", one))
    return Rule(f"{function.__module__.removeprefix('kspec.')}:{function.__qualname__}", doc, _kafka(docs), tuple(kips))


def _kafka(docs: list[str]) -> str:
    """The text behind **Kafka:** in the first docstring that has it."""
    for doc in docs:
        found = re.search(r"(?:\*\*Kafka:\*\*|Kafka:)\s*(.*?)(?=\*\*[A-Z]|\n\n|\Z)", doc, re.DOTALL)
        if found:
            return " ".join(found.group(1).split())
    return ""


def deciding(step: GraphStep, protocol: BrokerProtocol) -> Rule:
    """The innermost rule that gives the step's error for the first time; the handler itself if there is no error."""
    handler = step.move.handler
    if step.exchange.error == Error.NONE:
        return rule_of(handler)
    found: list[Callable[..., Any]] = []

    def watch(frame: FrameType, event: str, value: Any) -> None:
        if event == "return" and not found and getattr(value, "error", value) is step.exchange.error:
            function = _public(frame)
            if function is not None:
                found.append(function)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        step.move.take(protocol, step.state)
    finally:
        sys.setprofile(before)
    return rule_of(found[0], handler) if found and found[0] is not handler else rule_of(handler)


def _public(frame: FrameType) -> Callable[..., Any] | None:
    """The function of a frame, if it is a rule: public, of `spec`, with a docstring."""
    module, name = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
    if not module.startswith("kspec.spec.") or name.startswith(("_", "<")):
        return None
    function = frame.f_globals.get(name)
    return function if callable(function) and inspect.getdoc(function) else None
