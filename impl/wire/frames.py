"""The header of a request, and the frame around an answer."""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from kspec.impl.wire.apis import APIS, Api
from kspec.impl.wire.reading import skip_tagged_fields
from kspec.impl.wire.values import DecodeError, KeptMessage, Message
from kspec.impl.wire.writing import Part, Parts, joined, size_of, writer_of

HEADER = struct.Struct(">hhih")
LENGTH = struct.Struct(">i")
CORRELATION = struct.Struct(">ii")
API_VERSIONS = 18


class RequestHeader(NamedTuple):
    """The header of a request; `api` is none for a key that is not known. `body` is where the request itself begins."""

    key: int
    version: int
    correlation: int
    client_id: str
    api: Api | None
    body: int


def read_header(frame: memoryview, apis: Mapping[int, Api] = APIS) -> RequestHeader:
    """The header of the request in a frame, to a node that offers these APIs. Raises: `DecodeError`.

    An ApiVersions request of a version that is not known has its header read as the first flexible one, and no body.
    """
    try:
        key, version, correlation, length = HEADER.unpack_from(frame)
    except struct.error:
        raise DecodeError(f"a request of {len(frame)} bytes has no header") from None
    api = apis.get(key)
    end = HEADER.size + max(length, 0)
    if end > len(frame):
        raise DecodeError(f"a client id of {length} bytes in a request of {len(frame)}")
    client_id = str(frame[HEADER.size : end], "utf-8", "replace")
    if api is not None and version in api.known and version in api.flexible:
        try:
            end = skip_tagged_fields(frame, end)
        except IndexError:
            raise DecodeError("the header of a request is truncated") from None
    return RequestHeader(key, version, correlation, client_id, api, end)


def framed(api: Api, version: int, correlation: int, message: Message) -> list[Part]:
    """An answer with its length before it, as parts to be sent one after the other."""
    if not isinstance(message, KeptMessage):
        return _framed(api, version, correlation, message)
    if version not in message.encoded:
        parts = _framed(api, version, correlation, message)
        message.encoded[version] = memoryview(joined(parts))[CORRELATION.size :]
    rest = message.encoded[version]
    return [CORRELATION.pack(CORRELATION.size - LENGTH.size + len(rest), correlation), rest]


def _framed(api: Api, version: int, correlation: int, message: Message) -> list[Part]:
    parts = Parts()
    parts.tail += CORRELATION.pack(0, correlation)
    if version in api.flexible and api.key != API_VERSIONS:
        parts.tail.append(0)
    writer_of(f"{api.name}Response", version)(parts, message)
    finished = parts.finish()
    head = finished[0]
    assert isinstance(head, bytearray), "the header stands before all parts"
    size = len(head) if len(finished) == 1 else sum(map(size_of, finished))
    LENGTH.pack_into(head, 0, size - LENGTH.size)
    return finished
