"""Requests that this process sends, and the answers that it gets."""

import struct
from functools import cache
from typing import NamedTuple

from kspec.impl.wire.reading import read_message, skip_tagged_fields
from kspec.impl.wire.schema import Versions, schema
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import Part, Parts, joined, size_of, writer_of

_HEAD = struct.Struct(">ihhih")
_LENGTH, _CORRELATION = struct.Struct(">i"), struct.Struct(">i")
CLIENT_ID = b"kspec"


class RequestApi(NamedTuple):
    """An API as the one who asks knows it: its name, key, the versions that can be written, those with a flexible header."""

    name: str
    key: int
    versions: Versions
    flexible_request: Versions
    flexible_response: Versions


@cache
def sent(name: str) -> RequestApi:
    """The facts of an API by its name, such as `Fetch`."""
    request, response = schema(f"{name}Request"), schema(f"{name}Response")
    return RequestApi(name, request.key, request.versions, request.flexible, response.flexible)


def request_parts(api: RequestApi, version: int, correlation: int, message: Message) -> list[Part]:
    """A request with its length before it, as parts to be sent one after the other."""
    parts = Parts()
    parts.tail += _HEAD.pack(0, api.key, version, correlation, len(CLIENT_ID)) + CLIENT_ID
    if version in api.flexible_request:
        parts.tail.append(0)
    writer_of(f"{api.name}Request", version)(parts, message)
    finished = parts.finish()
    head = finished[0]
    assert isinstance(head, bytearray), "the header stands before all parts"
    _LENGTH.pack_into(head, 0, sum(map(size_of, finished)) - _LENGTH.size)
    return finished


def request_bytes(name: str, version: int, correlation: int, message: Message) -> bytes:
    """A request without its length, as it is put into an envelope."""
    parts = request_parts(sent(name), version, correlation, message)
    return joined(parts)[_LENGTH.size :]


def read_response(name: str, version: int, frame: memoryview) -> tuple[int, Message]:
    """The correlation id of a response, and its content. Raises: `DecodeError`."""
    api = sent(name)
    if len(frame) < _CORRELATION.size:
        raise DecodeError(f"a response of {len(frame)} bytes has no header")
    (correlation,) = _CORRELATION.unpack_from(frame)
    position = _CORRELATION.size
    if version in api.flexible_response and name != "ApiVersions":
        try:
            position = skip_tagged_fields(frame, position)
        except IndexError:
            raise DecodeError("the header of a response is truncated") from None
    return correlation, read_message(f"{name}Response", version, frame, position)[0]
