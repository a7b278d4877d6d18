"""Cases as JSON: the format that docs/conformance-format.md describes."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.wire.cases.case import Case
from conformance.wire.cases.encoding import parts_of, versions_of
from conformance.wire.cases.known_bugs import known_bugs_of
from conformance.wire.cases.layout import layouts_of
from conformance.wire.exchange import (
    Allowed,
    AtLeast,
    Awaited,
    Checked,
    Constraint,
    Exchange,
    Fixed,
    HasRecords,
    Hole,
    NotEmpty,
    Records,
    Request,
)
from impl.wire.requests import sent
from impl.wire.schema import Field, Versions, schema

FORMAT = 3
"""The version of the format. It grows with every change that a runner would have to know."""

Json = dict[str, Any]

PROBE = Exchange(Request("ApiVersions", {}, Versions(0, 0)), "")
"""How a target is asked which versions it offers. Every broker answers this version."""

TOPIC_NAMES = [Hole("topic"), Hole("topic_dotted"), Hole("topic_underscored")]
CLEAN_UP = Exchange(Request("DeleteTopics", {"topic_names": TOPIC_NAMES, "timeout_ms": 10_000}, Versions(1, 5)), "")
"""What deletes the topics of a case; any answer will do."""


def index_of(cases: Sequence[Case], files: Sequence[str]) -> Json:
    """What a runner needs beside the cases: their files, what is sent before and after them, the layouts of answers."""
    exchanges = [PROBE, CLEAN_UP, *(one for case in cases for one in (*case.setup, *case.steps))]
    exchanges += [one.otherwise for one in exchanges if one.otherwise is not None]
    return {
        "format": FORMAT,
        "cases": [{"file": file, "name": case.name, "title": case.title} for case, file in zip(cases, files, strict=True)],
        "probe": step_of(PROBE),
        "clean_up": step_of(CLEAN_UP),
        "layouts": layouts_of(exchanges),
    }


def document_of(case: Case, release: str) -> Json:
    """A case as JSON. Expected are the answers of this release's rules."""
    rule = case.rule
    return {
        "format": FORMAT,
        "level": 0,
        "name": case.name,
        "title": case.title,
        "subject": case.subject,
        "covers": list(case.goals),
        "release": release,
        "since": case.since,
        "rule": {"function": rule.function, "doc": rule.doc},
        "kafka": rule.kafka,
        "kips": list(rule.kips),
        "promise": case.promise,
        "catches": list(case.mutants),
        "known_bugs": [one.link for one in known_bugs_of(case.name)],
        "steps": [
            *(step_of(one) | {"setup": True} for one in case.setup),
            *(step_of(one) for one in case.steps),
        ],
    }


def step_of(exchange: Exchange) -> Json:
    """One exchange."""
    request, api = exchange.request, sent(exchange.request.api)
    versions = versions_of(request)
    assert versions.first <= versions.last, f"no version of {api.name} can say {request.fields}"
    found: Json = {
        "client": exchange.client,
        "api": api.name,
        "key": api.key,
        "versions": list(versions),
        "words": exchange.words,
        "request": value_of(request.fields),
        "bytes": {str(version): parts_as_json(parts_of(request, version)) for version in _all(versions)},
        "ending": exchange.ending.value,
        "outcome": exchange.outcome,
        "expect": constraints_of(api.name, exchange.constraints),
    }
    if request.raw is not None:
        found["raw"] = True
    if exchange.restarts:
        found["restart"] = True
    if exchange.kept:
        found["keep"] = kept_of(api.name, exchange.kept)
    if exchange.retried:
        found["retry"] = [error.value for error in exchange.retried]
    if exchange.optional:
        found["optional"] = True
    if exchange.otherwise is not None:
        found["otherwise"] = step_of(exchange.otherwise)
    if exchange.awaited:
        found["awaited"] = [awaited_of(one) for one in exchange.awaited]
    return found


def _all(versions: Versions) -> Iterable[int]:
    return range(versions.first, versions.last + 1)


def awaited_of(awaited: Awaited) -> Json:
    """An answer that another client gets. Its API is that of the request that the client has sent."""
    return {
        "client": awaited.client,
        "expect": [constraint_of(one) for one in awaited.constraints],
        "keep": {name: {"path": path} for name, path in awaited.kept},
    }


def kept_of(api: str, kept: Sequence[tuple[str, str]]) -> Json:
    """What is kept of an answer, with the versions that have it."""
    return {name: {"path": path, "versions": versions_with(api, path)} for name, path in kept}


# ---- constraints


def constraints_of(api: str, constraints: Sequence[Constraint]) -> list[Json]:
    """Constraints on an answer, each with the versions of the answer that have its field."""
    return [constraint_of(one) | {"versions": versions_with(api, one.path)} for one in constraints]


def constraint_of(constraint: Constraint) -> Json:
    """One constraint."""
    match constraint:
        case Allowed(path, values, reason):
            found: Json = {"path": path, "one_of": [value_of(one) for one in values]}
            return found | ({"reason": reason} if reason else {})
        case NotEmpty(path):
            return {"path": path, "not_empty": True}
        case AtLeast(path, least, reason):
            return {"path": path, "at_least": least, "reason": reason}
        case HasRecords(path, offsets, epochs):
            return {"path": path, "records": {"offsets": list(offsets), "leader_epochs": value_of(epochs)}}


def versions_with(api: str, path: str) -> list[int]:
    """The versions of an answer that have a field."""
    facts = schema(f"{api}Response")
    fields: tuple[Field, ...] = facts.fields
    first, last = facts.versions
    for name in names_in(path):
        (field,) = [one for one in fields if one.name == name]
        first, last = max(first, field.versions.first), min(last, field.versions.last)
        fields = field.fields
    return [first, last]


def names_in(path: str) -> list[str]:
    """The names of the fields in a path, from outside in."""
    return [re.sub(r"\[.*", "", part) for part in path.split(".")]


# ---- values


def value_of(value: Any) -> Any:
    """A value of a field."""
    if isinstance(value, Hole):
        return {"hole": value.name} | ({"plus": value.plus} if value.plus else {})
    if isinstance(value, Records):
        return {"parts": parts_as_json(value.parts)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, dict):
        return {name: value_of(one) for name, one in value.items()}
    return [value_of(one) for one in value] if isinstance(value, (list, tuple)) else value


def parts_as_json(parts: Sequence[Any]) -> list[Any]:
    """Parts of bytes."""
    return [_part(part) for part in parts]


def _part(part: Any) -> Any:
    if isinstance(part, Checked):
        return {"crc32c": parts_as_json(part.parts)}
    if isinstance(part, Fixed):
        found: Json = value_of(part.hole)
        return found | {"as": part.width}
    return bytes(part).hex()
