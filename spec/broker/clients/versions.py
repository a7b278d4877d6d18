"""Which versions of which requests a broker answers."""

from enum import Enum


class Verdict(Enum):
    """What a broker does with a request of some API and version. Kafka: `RequestContext.parseRequest`."""

    ANSWER = "it is read and answered"
    ANSWER_UNSUPPORTED = "version 0 of the answer says UNSUPPORTED_VERSION, and which versions there are"
    CLOSE = "the connection is closed"


def judge_version(known_api: bool, is_api_versions: bool, number: int, first: int, last: int) -> Verdict:
    """What becomes of a request: only ApiVersions may be of a version that is not offered.

    Parameters: whether the API is known on this listener; whether it is ApiVersions; the number of the version; the first
    and the last that can be read.

    **Kafka:** `RequestContext.isUnsupportedApiVersionsRequest`, `SocketServer.Processor.parseRequestHeader`.
    """
    if known_api and first <= number <= last:
        return Verdict.ANSWER
    return Verdict.ANSWER_UNSUPPORTED if known_api and is_api_versions else Verdict.CLOSE


def judge_content(readable: bool) -> Verdict:
    """What becomes of a request of a version that is offered: it is answered if its bytes can be read as one.

    Bytes behind its end are ignored, and so are tagged fields that are not known.

    **Kafka:** `RequestContext.parseRequest`, whose exception closes the connection in
    `SocketServer.Processor.processCompletedReceives`.
    """
    return Verdict.ANSWER if readable else Verdict.CLOSE


def check_frame_size(size: int, largest: int) -> bool:
    """Whether a frame of this size (bytes) is read at all. **Kafka:** `NetworkReceive.readFrom`."""
    return 0 <= size <= largest
