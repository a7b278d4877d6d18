"""Cases as JSON: the format that docs/conformance-format.md describes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kspec.conformance.wire.cases.case import Case, client_id_of
from kspec.conformance.wire.cases.encoding import parts_of, versions_of
from kspec.conformance.wire.cases.freedoms import free_constraints, freedom_of
from kspec.conformance.wire.cases.known_bugs import known_bugs_of
from kspec.conformance.wire.cases.layout import layouts_of
from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.exchange import (
    AllowedValues,
    AtLeast,
    ChecksummedBytes,
    Constraint,
    DelayedAnswer,
    Exchange,
    HasRecords,
    Hole,
    NoneOf,
    NotEmpty,
    NumberHole,
    RecordParts,
    RequestEnding,
    RequestFields,
)
from kspec.conformance.wire.timing import TIMING
from kspec.impl.wire.requests import CLIENT_ID, sent
from kspec.impl.wire.schema import Field, Versions, schema

FORMAT = 6
"""The version of the format. It grows with every change that a runner would have to know."""

NONE_WAITS: Mapping[str, str] = MappingProxyType({})

PROBE = Exchange(RequestFields("ApiVersions", {}, Versions(0, 0)), "")
"""The question to a target about the versions that it offers. Every broker answers this version."""

TOPIC_NAMES = [Hole("topic"), Hole("topic_dotted"), Hole("topic_underscored")]
CLEAN_UP = Exchange(RequestFields("DeleteTopics", {"topic_names": TOPIC_NAMES, "timeout_ms": 10_000}, Versions(1, 5)), "")
"""The request that deletes the topics of a case; any answer will do."""


def index_of(cases: Sequence[Case], files: Sequence[str]) -> Json:
    """The index that a runner needs beside the cases: their files, what is sent before and after them, the layouts of
    answers.
    """
    exchanges = [PROBE, CLEAN_UP, *(one for case in cases for one in (*case.setup, *case.steps))]
    exchanges += [one.otherwise for one in exchanges if one.otherwise is not None]
    return {
        "format": FORMAT,
        "timing": TIMING._asdict(),
        "cases": [{"file": file, "name": case.name, "title": case.title} for case, file in zip(cases, files, strict=True)],
        "probe": step_of(PROBE),
        "clean_up": step_of(CLEAN_UP),
        "layouts": layouts_of(exchanges),
    }


def file_of(name: str) -> str:
    """The name of a case's file."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()) + ".json"


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
        "steps": _steps_of(case),
    }


def _steps_of(case: Case) -> list[Json]:
    """The steps of a case. The client id of its requests names it, so that a broker's own log does, too."""
    waiting: dict[str, str] = {}
    steps = []
    for exchange in (*case.setup, *case.steps):
        steps.append(step_of(exchange, client_id_of(case.name), waiting))
        if exchange.ending == RequestEnding.LATER:
            waiting[exchange.client] = exchange.request.api
    for step, _ in zip(steps, case.setup, strict=False):
        step["setup"] = True
    return steps


def step_of(exchange: Exchange, client_id: bytes = CLIENT_ID, waiting: Mapping[str, str] = NONE_WAITS) -> Json:
    """One exchange. `waiting`: the APIs that clients wait for an answer of."""
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
        "bytes": {str(version): parts_as_json(parts_of(request, version, client_id)) for version in _all(versions)},
        "ending": exchange.ending.value,
        "outcome": exchange.outcome,
        "expect": [_expected(api.name, exchange, one) for one in exchange.constraints],
    }
    freedom = freedom_of(exchange)
    if freedom is not None and freedom.ending is not None:
        found["free"] = {"ending": freedom.ending, "why": freedom.why}
    if request.raw is not None:
        found["raw"] = True
    if exchange.restarts:
        found["restart"] = True
    if exchange.kept:
        found["keep"] = kept_of(api.name, exchange.kept)
    if exchange.retried:
        found["retry"] = [error.value for error in exchange.retried]
    if exchange.pause_ms:
        found["pause_ms"] = exchange.pause_ms
    if exchange.not_before_ms:
        found["not_before_ms"] = exchange.not_before_ms
    if exchange.optional:
        found["optional"] = True
    if exchange.otherwise is not None:
        found["otherwise"] = step_of(exchange.otherwise, client_id)
    if exchange.awaited:
        found["awaited"] = [awaited_of(one, waiting[one.client]) for one in exchange.awaited]
    return found


def _all(versions: Versions) -> Iterable[int]:
    return range(versions.first, versions.last + 1)


def awaited_of(awaited: DelayedAnswer, api: str) -> Json:
    """An answer that another client gets. Its API is that of the request that the client has sent."""
    return {
        "client": awaited.client,
        "api": sent(api).name,
        "expect": constraints_of(api, awaited.constraints),
        "keep": kept_of(api, awaited.kept),
    }


def kept_of(api: str, kept: Sequence[tuple[str, str]]) -> Json:
    """The values that are kept of an answer, with the versions that have it."""
    return {name: {"path": path, "versions": versions_with(api, path)} for name, path in kept}


# ---- constraints


def _expected(api: str, exchange: Exchange, constraint: Constraint) -> Json:
    """A constraint with what the protocol leaves free of it."""
    found = constraints_of(api, [constraint])[0]
    freedom = freedom_of(exchange)
    if freedom is not None and freedom.error is not None and constraint in free_constraints(exchange):
        found["free"] = freedom.error | {"why": freedom.why}
    return found


def constraints_of(api: str, constraints: Sequence[Constraint]) -> list[Json]:
    """Constraints on an answer, each with the versions of the answer that have its field."""
    return [constraint_of(one) | {"versions": versions_with(api, one.path)} for one in constraints]


def constraint_of(constraint: Constraint) -> Json:
    """One constraint."""
    match constraint:
        case AllowedValues(path, values, reason):
            found: Json = {"path": path, "one_of": [value_of(one) for one in values]}
            return found | ({"reason": reason} if reason else {})
        case NotEmpty(path):
            return {"path": path, "not_empty": True}
        case NoneOf(path, values):
            return {"path": path, "none_of": [value_of(one) for one in values]}
        case AtLeast(path, least, reason):
            return {"path": path, "at_least": value_of(least), "reason": reason}
        case HasRecords(path, offsets, epochs, contents, times, keys):
            records: Json = {"offsets": list(offsets), "leader_epochs": value_of(epochs)}
            if contents is not None:
                records["values"] = value_of(contents)
            if times is not None:
                records["times"] = value_of(times)
            if keys is not None:
                records["keys"] = value_of(keys)
            return {"path": path, "records": records}


def versions_with(api: str, path: str) -> list[int]:
    """The versions of an answer that have a field."""
    facts = schema(f"{api}Response")
    fields: tuple[Field, ...] = facts.fields
    first, last = facts.versions
    for name, inside in re.findall(r"([a-z_0-9]+)((?:\[[^\]]*\])*)(?:\.|$)", path):
        (field,) = [one for one in fields if one.name == name]
        fields = field.fields
        keys = [one for one in fields if one.name in re.findall(r"([a-z_0-9]+)=", inside)]
        for one in (field, *keys):
            first, last = max(first, one.versions.first), min(last, one.versions.last)
    return [first, last]


# ---- values


def value_of(value: Any) -> Any:
    """A value of a field."""
    if isinstance(value, Hole):
        return {"hole": value.name} | ({"plus": value.plus} if value.plus else {})
    if isinstance(value, RecordParts):
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
    if isinstance(part, ChecksummedBytes):
        return {"crc32c": parts_as_json(part.parts)}
    if isinstance(part, NumberHole):
        found: Json = value_of(part.hole)
        return found | {"as": part.width}
    return bytes(part).hex()
