"""The layout of answers as data, so that a runner can read them without a codec of Kafka's messages.

A layout is a list of fields in their order on the wire. What differs between versions is decided here: there is one layout
for each version, and no reader of it has to know which versions are flexible.
"""

from collections.abc import Iterable

from kspec.conformance.wire.cases.encoding import versions_of
from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.exchange import Exchange
from kspec.impl.wire.requests import sent
from kspec.impl.wire.schema import Field, schema


def layouts_of(exchanges: Iterable[Exchange]) -> Json:
    """The layouts of all answers that these exchanges can get: by the name of the API, and by version."""
    found: dict[str, dict[str, list[Json]]] = {}
    for exchange in exchanges:
        api, versions = exchange.request.api, versions_of(exchange.request)
        known = found.setdefault(api, {})
        for version in range(versions.first, versions.last + 1):
            if str(version) not in known:
                known[str(version)] = layout_of(api, version)
    return found


def layout_of(api: str, version: int) -> list[Json]:
    """An answer behind its length: the correlation id, then the rest of the header, then the fields of the message."""
    facts = schema(f"{api}Response")
    header: list[Json] = [{"name": "correlation_id", "type": "int32"}]
    if (
        version in sent(api).flexible_response and api != "ApiVersions"
    ):  # a client that does not know what is offered reads it
        header.append({"type": "tags", "tagged": {}})
    return header + _fields(facts.fields, version, version in facts.flexible)


def _fields(fields: tuple[Field, ...], version: int, flexible: bool) -> list[Json]:
    present = [field for field in fields if version in field.versions]
    found = [_field(field, version, flexible) for field in present if version not in field.tagged]
    if flexible:
        tagged = {str(field.tag): _field(field, version, flexible) for field in present if version in field.tagged}
        found.append({"type": "tags", "tagged": tagged})
    return found


def _field(field: Field, version: int, flexible: bool) -> Json:
    if field.flexible is not None:
        flexible = flexible and version in field.flexible
    found: Json = {"name": field.name}
    if field.is_array:
        of = _typed(field, version, flexible)
        found |= {"type": _sized("array", flexible), "of": of}
    else:
        found |= _typed(field, version, flexible)
    if version in field.nullable or (field.kind == "records" and not field.is_array):
        found["nullable"] = True
    return found


def _typed(field: Field, version: int, flexible: bool) -> Json:
    if field.kind == "struct":
        return {"type": "struct", "fields": _fields(field.fields, version, flexible)}
    if field.kind in ("string", "bytes", "records"):
        return {"type": _sized("string" if field.kind == "string" else "bytes", flexible)}
    return {"type": field.kind}


def _sized(kind: str, flexible: bool) -> str:
    return f"compact_{kind}" if flexible else kind
