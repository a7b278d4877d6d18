"""Results as text: what was sent and answered, the rule behind it, a sequence diagram."""

from collections.abc import Iterator
from typing import Any

from kspec.conformance.wire.run.results import ExchangeReport, Result
from kspec.impl.wire.values import Message

WIDTH = 72
LONGEST_HEX = 4000


def fields_of(value: Any) -> str:
    """A message's fields as text. Bytes are in hex."""
    if isinstance(value, Message):
        return fields_of(value.__dict__)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {fields_of(one)}" for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(fields_of, value)) + "]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"0x{bytes(value).hex()}"
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)


def diagram_of(result: Result) -> list[str]:
    """A sequence diagram as lines: clients on the left, the broker on the right."""
    found: list[str] = []
    for told in result.told:
        found += _arrows(told)
    return found


def _arrows(told: ExchangeReport) -> Iterator[str]:
    client = f"client {told.client}"
    if told.request != "":
        yield f"{client} |-- {f'{told.api} v{told.version} '.ljust(34, '-')}->| broker   {told.words}"
    if told.answer is not None:
        mark = " WRONG " if told.differences else " "
        yield f"{client} |<- {mark.center(34, '-')}--| broker"
    elif told.differences:
        yield f"{client} |x- {' WRONG '.center(34, '-')}--| broker   {told.differences[0]}"


def failure_in_words(result: Result, replay: str) -> list[str]:
    """All that is to be said of a case that failed."""
    case = result.case
    lines = [f"{result.status.value.upper()} {result.name}", f"  {case['title']}", f"  {result.reason}", ""]
    lines += [f"  rule     {case['rule']['function']}"]
    lines += [f"           {line}" for line in case["rule"]["doc"].splitlines()]
    lines += [f"  Kafka    {case['kafka']}", f"  promise  {case['promise']}"]
    lines += [f"  KIPs     {', '.join(case['kips'])}"] if case["kips"] else []
    lines += ["", *(f"  {line}" for line in diagram_of(result)), ""]
    if result.told:
        lines += exchange_in_words(result.told[-1])
    return [*lines, f"  again    {replay}", ""]


def exchange_in_words(told: ExchangeReport) -> list[str]:
    """A request and its answer, as fields and as bytes."""
    lines = [f"  {told.api} v{told.version} of client {told.client}"]
    if told.request != "":
        lines += [f"    sent     {fields_of(told.request)}", f"    as bytes {_cut(told.request_hex)}"]
    if told.answer is not None:
        lines += [f"    answered {fields_of(told.answer)}", f"    as bytes {_cut(told.answer_hex)}"]
    lines += [f"    wrong    {line}" for line in told.differences]
    return [*lines, *(f"    unlike   {line}" for line in told.liberties)]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_HEX else f"{text[:LONGEST_HEX]}... ({len(text) // 2} bytes)"


def counts_in_words(counts: dict[str, int], seconds: float) -> str:
    """The number of cases by their status, in words."""
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{sum(counts.values())} cases in {seconds:.1f} s: {told}"
