"""Versions of requests that a broker answers."""

from enum import Enum

from kspec.spec.values import Error


class VersionVerdict(Enum):
    """Treatment of a request of some API and version. Kafka: `RequestContext.parseRequest`."""

    ANSWER = "it is read and answered"
    ANSWER_UNSUPPORTED = "version 0 of the answer says UNSUPPORTED_VERSION, and which versions there are"
    CLOSE = "the connection is closed"


def judge_version(known_api: bool, is_api_versions: bool, number: int, first: int, last: int) -> VersionVerdict:
    """The treatment of a request by its version: only ApiVersions may be of a version that is not offered.

    Parameters: whether the API is known on this listener; whether it is ApiVersions; the number of the version; the first
    and the last that can be read.

    **Kafka:** `RequestContext.isUnsupportedApiVersionsRequest`, `SocketServer.Processor.parseRequestHeader`.
    """
    if known_api and first <= number <= last:
        return VersionVerdict.ANSWER
    return VersionVerdict.ANSWER_UNSUPPORTED if known_api and is_api_versions else VersionVerdict.CLOSE


def judge_content(readable: bool) -> VersionVerdict:
    """The treatment of a request of a version that is offered: it is answered if its bytes can be read as one.

    Bytes behind its end are ignored, and so are tagged fields that are not known.

    **Kafka:** `RequestContext.parseRequest`, whose exception closes the connection in
    `SocketServer.Processor.processCompletedReceives`.
    """
    return VersionVerdict.ANSWER if readable else VersionVerdict.CLOSE


def check_forwarded(principal_readable: bool, readable: bool, is_forwarded: bool, known_version: bool) -> Error:
    """Whether a controller opens an envelope: it says who asks, and in it is a request that brokers hand on.

    Parameters: whether the principal can be read; whether the request can; whether its API is one that is handed on, in a
    version that is known.

    Errors: `PRINCIPAL_DESERIALIZATION_FAILURE`, `INVALID_REQUEST`, `UNSUPPORTED_VERSION`.

    **Kafka:** `EnvelopeUtils.handleEnvelopeRequest`. **Leaves out:** whether the principal may ask.
    """
    if not principal_readable:
        return Error.PRINCIPAL_DESERIALIZATION_FAILURE
    if not readable or not is_forwarded:
        return Error.INVALID_REQUEST
    return Error.NONE if known_version else Error.UNSUPPORTED_VERSION


UNSUPPORTED = Error.UNSUPPORTED_VERSION
"""The answer to an ApiVersions request of a version that is not offered."""


def check_frame_size(size: int, largest: int) -> bool:
    """Whether a frame of this size (bytes) is read at all. **Kafka:** `NetworkReceive.readFrom`."""
    return 0 <= size <= largest
