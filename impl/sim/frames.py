"""What is under way between two nodes: the bytes of the real wire, or the same messages without them."""

from typing import NamedTuple, TypeAlias

from impl.wire.frames import RequestHeader
from impl.wire.passing import passer_of
from impl.wire.requests import Sent, request_parts
from impl.wire.values import Message
from impl.wire.writing import joined


class Request(NamedTuple):
    """A request as its server would decode it."""

    key: int
    version: int
    correlation: int
    message: Message


class Answer(NamedTuple):
    """An answer as its client would decode it."""

    correlation: int
    message: Message


Frame: TypeAlias = bytes | Request


def request_frame(api: Sent, version: int, correlation: int, message: Message, coded: bool) -> Frame:
    """A request on its way."""
    if coded:
        return joined(request_parts(api, version, correlation, message))[4:]
    return Request(api.key, version, correlation, passer_of(f"{api.name}Request", version)(message))


def answer_frame(header: RequestHeader, message: Message) -> Answer:
    """An answer that is passed on as it is."""
    assert header.api is not None
    return Answer(header.correlation, passer_of(f"{header.api.name}Response", header.version)(message))
