"""Frames: requests that are no requests, or of an API or a version that nobody offers. What is sent is bytes."""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    Constraint,
    Exchange,
    Hole,
    NotEmpty,
    NumberHole,
    RequestEnding,
    RequestFields,
    equals,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.versions import VersionVerdict, check_frame_size, judge_content, judge_version
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.values import Error

UNHARMED = "a request that cannot be read ends its connection, and no other"
LEARNS = "a client that is ahead learns which versions there are"
METADATA, API_VERSIONS, ALTER_PARTITION, NO_API = 3, 18, 56, 999
LARGEST_FRAME = 100 << 20
"""Kafka: `socket.request.max.bytes`."""

CORRELATION = NumberHole(Hole("correlation_id"), "int32")
CLIENT = struct.pack(">h", 5) + b"kspec"
FLEXIBLE = CLIENT + b"\0"
"""The rest of a flexible header: the client's name, and no tagged fields."""

NO_TOPICS, ALL_TOPICS = struct.pack(">i", 0), struct.pack(">i", -1)


class FramesState(NamedTuple):
    """A broker that listens: nothing that is sent here changes anything. `unread`: one more answer is to come."""

    unread: bool = False


def _frame(key: int, version: int, rest: bytes, length: int | None = None) -> tuple[Any, ...]:
    """A frame: its length unless another one is claimed, the key and version, and behind the correlation id the rest."""
    size = 8 + len(rest) if length is None else length
    return struct.pack(">ihh", size, key, version), CORRELATION, rest


def _closes(name: str, words: str, parts: tuple[Any, ...], handler: Callable[..., Any], verdict: VersionVerdict) -> Move:
    def take(protocol: BrokerProtocol, state: FramesState) -> MoveResult | None:
        assert verdict == VersionVerdict.CLOSE, name
        if state.unread:
            return None
        request = RequestFields("ApiVersions", {}, Versions(0, 0), parts)
        return MoveResult(state, Exchange(request, "closed", ending=RequestEnding.CLOSED))

    return Move(f"frame.{name}", words, handler, UNHARMED, take)


def _answered(
    name: str, words: str, api: str, version: int, parts: tuple[Any, ...], constraints: tuple[Constraint, ...]
) -> Move:
    def take(protocol: BrokerProtocol, state: FramesState) -> MoveResult | None:
        if state.unread != (name == SECOND):
            return None
        request = RequestFields(api, {}, Versions(version, version), parts)
        return MoveResult(FramesState(name == FIRST), Exchange(request, "answered", constraints=constraints))

    return Move(f"frame.{name}", words, judge_content, UNHARMED, take)


# ---- no frame, or no header


def _sized(name: str, words: str, size: int) -> Move:
    verdict = VersionVerdict.ANSWER if check_frame_size(size, LARGEST_FRAME) else VersionVerdict.CLOSE
    return _closes(name, words, (struct.pack(">i", size),), check_frame_size, verdict)


def _short(name: str, words: str, frame: bytes) -> Move:
    parts = (struct.pack(">i", len(frame)) + frame,)
    return _closes(name, words, parts, judge_content, judge_content(readable=False))


# ---- APIs and versions


def _asked(name: str, words: str, key: int, version: int, rest: bytes, known: bool) -> Move:
    """A request of an API that may not be known, in a version that is not."""
    first, last = (0, 20) if known else (0, -1)
    verdict = judge_version(known, False, version, first, last)
    return _closes(name, words, _frame(key, version, rest), judge_version, verdict)


def _too_new(name: str, words: str, version: int) -> Move:
    """ApiVersions alone is answered in whatever version: by version 0, with the versions that there are (KIP-511)."""

    def take(protocol: BrokerProtocol, state: FramesState) -> MoveResult | None:
        assert judge_version(True, True, version, 0, 5) == VersionVerdict.ANSWER_UNSUPPORTED
        if state.unread:
            return None
        error = Error.UNSUPPORTED_VERSION
        constraints = (
            equals("error_code", error.value),
            equals("api_keys[#]", 1),
            equals("api_keys[0].api_key", API_VERSIONS),
            equals("api_keys[0].min_version", 0),
        )
        request = RequestFields("ApiVersions", {}, Versions(0, 0), _frame(API_VERSIONS, version, FLEXIBLE + b"\1\1\0"))
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))

    return Move(f"frame.{name}", words, judge_version, LEARNS, take)


# ---- content


def _unreadable(name: str, words: str, version: int, rest: bytes) -> Move:
    """A Metadata request whose bytes do not make one up."""
    return _closes(name, words, _frame(METADATA, version, rest), judge_content, judge_content(readable=False))


def _metadata(name: str, words: str, version: int, rest: bytes) -> Move:
    """A Metadata request that asks for no topic, written in an unusual way."""
    return _answered(name, words, "Metadata", version, _frame(METADATA, version, rest), (NotEmpty("brokers[0].port"),))


FIRST, SECOND = "two-at-once", "second-of-two"
"""Two requests are sent at once; after the first answer the second one comes, and nothing is sent for it."""

TWO_AT_ONCE = (
    *_frame(METADATA, 1, CLIENT + NO_TOPICS),
    struct.pack(">ihh", 15, API_VERSIONS, 0),
    NumberHole(Hole("correlation_id", 1), "int32"),
    CLIENT,
)
MOVES = (
    _sized("negative", "send a frame of -1 bytes", -1),
    _sized("most-negative", "send a frame of -2,147,483,648 bytes", -(2**31)),
    _sized("oversized", "send a frame of 2,147,483,647 bytes", 2**31 - 1),
    _short("empty", "send a frame of 0 bytes", b""),
    _short("three-bytes", "send a frame of 3 bytes", b"\0\3\0"),
    _short("short-header", "send a frame that ends before the correlation id", struct.pack(">hh", METADATA, 1)),
    _unreadable("no-client-id", "send a header without a client id", 1, b""),
    _unreadable("long-client-id", "send a client id that is longer than its frame", 1, struct.pack(">h", 500) + b"kspec"),
    _asked("unknown-api", "send a request of an API that there is not", NO_API, 0, CLIENT, known=False),
    _asked("negative-api", "send a request of API -1", -1, 0, CLIENT, known=False),
    _asked("of-controllers", "send a broker a request that controllers answer", ALTER_PARTITION, 2, FLEXIBLE, known=False),
    _asked("unknown-version", "send a request of a version that there is not", METADATA, 99, FLEXIBLE, known=True),
    _asked("negative-version", "send a request of version -1", METADATA, -1, CLIENT, known=True),
    _too_new("api-versions-99", "ask for the versions in version 99", 99),
    _too_new("api-versions-last", "ask for the versions in version 32,767", 2**15 - 1),
    _unreadable("garbage", "send bytes that are no request of their version", 9, FLEXIBLE + b"\xff" * 24),
    _unreadable("no-body", "send a request that ends after its header", 8, CLIENT),
    _unreadable("cut", "send a request that ends within a topic's name", 8, CLIENT + struct.pack(">ih", 1, 20) + b"topic"),
    _unreadable("huge-array", "send a request that claims 2,147,483,647 topics", 8, CLIENT + struct.pack(">i", 2**31 - 1)),
    _unreadable("huge-compact-array", "send a compact array of 4,294,967,294 topics", 9, FLEXIBLE + b"\xff\xff\xff\xff\x0f"),
    _unreadable(
        "null-name",
        "send a topic whose name is null, where it must not be",
        8,
        CLIENT + struct.pack(">ih", 1, -1) + b"\0\0\0",
    ),
    _unreadable("long-varint", "send a length that does not end", 9, FLEXIBLE + b"\xff" * 8 + b"\0\0\0\0"),
    _unreadable(
        "long-tag", "send a tagged field that is longer than its message", 9, FLEXIBLE + b"\1\0\0\0" + b"\1\x40\x7f"
    ),
    _metadata("null-client-id", "send a client id that is null", 1, struct.pack(">h", -1) + NO_TOPICS),
    _metadata("trailing", "send bytes behind the end of a request", 1, CLIENT + NO_TOPICS + b"trailing"),
    _metadata("unknown-tag", "send a tagged field that nobody knows", 9, FLEXIBLE + b"\1\0\0\0" + b"\1\x40\2hi"),
    _metadata(
        "unknown-header-tag", "send a tagged field in a header that nobody knows", 9, CLIENT + b"\1\x40\2hi" + b"\1\0\0\0\0"
    ),
    _answered(FIRST, "send two requests at once", "Metadata", 1, TWO_AT_ONCE, (NotEmpty("brokers[0].port"),)),
    _answered(SECOND, "wait for the answer to the second one", "ApiVersions", 0, (), (equals("error_code", 0),)),
)


def _alive() -> Move:
    def take(protocol: BrokerProtocol, state: FramesState) -> MoveResult | None:
        request = RequestFields("ApiVersions", {}, Versions(0, 0))
        return MoveResult(state, Exchange(request, "alive", constraints=(equals("error_code", 0),), client="B"))

    return Move("alive", "another client is answered", judge_version, UNHARMED, take)


ALIVE = _alive()
FRAMES = Subject(
    "frames",
    "frames that are no requests, and requests that nobody offers",
    FramesState(),
    (*MOVES, ALIVE),
    lambda state, holes: (),
    looks=(ALIVE,),
)
