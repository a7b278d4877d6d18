"""A request that is being answered, and the effects that the core asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from impl.broker.replica import Replica, Waiting
from impl.metadata.records import LogRecord
from impl.wire.frames import RequestHeader
from impl.wire.values import Message
from spec.broker.effects import LogChange
from spec.controller.rules.metadata_log import SnapshotId
from spec.values import Offset


class Peer(Protocol):
    """The connection that a request came on, as far as the core knows it."""

    @property
    def host(self) -> str:
        """The address of the client."""

    @property
    def local_host(self) -> str:
        """The address that the client has reached, and therefore can reach."""


class Call:
    """One request: its header, its content, where it came from. The core answers it once, now or later."""

    __slots__ = ("header", "message", "peer", "place", "received_ms", "session", "version", "waiting")

    def __init__(self, peer: Peer, place: int, header: RequestHeader, message: Message, received_ms: int) -> None:
        self.peer = peer
        self.place = place
        """The number of the answer among those of its connection."""
        self.header = header
        self.version = header.version
        """The version of the API."""
        self.message = message
        self.received_ms = received_ms
        self.session: Any = None
        """The fetch session that the request goes on with."""
        self.waiting: Waiting | None = None
        """The fetch that waits to be answered."""

    def respond(self, **fields: Any) -> "Respond":
        """The effect of answering with these fields."""
        return Respond(self, Message(**fields))


@dataclass(slots=True)
class Store:
    """Change a partition's files. `payloads` are the bytes of the batches, if there are any."""

    replica: Replica
    change: LogChange
    payloads: tuple[Any, ...] = ()
    on_failure: Callable[[], None] | None = None
    """Called if the files could not be written."""
    separately: bool = False
    """Whether the batches come from several requests: a new segment may begin before each of them."""


@dataclass(slots=True)
class StoreTogether:
    """Changes of different partitions. All are complete before the next effect; their order among each other is open."""

    stores: "list[Store]"


@dataclass(slots=True)
class Respond:
    """Send the answer of a request; its connection keeps the order of the requests."""

    call: Call
    message: Message


@dataclass(slots=True)
class NoResponse:
    """The request gets no answer, as one with acks=0; the next one may be answered."""

    call: Call


@dataclass(slots=True)
class Drop:
    """Close the connection of a request."""

    call: Call


@dataclass(slots=True)
class AppendMetadata:
    """Write records to the metadata log, as one batch and through to the disk."""

    records: tuple[LogRecord, ...]


@dataclass(slots=True)
class Then:
    """Once all earlier effects are carried out, ask the core for more."""

    effects: Callable[[], "list[Effect]"]


class Channel(NamedTuple):
    """A connection to another process: to whom, and what for. Requests on it are answered in their order."""

    node: int
    """The id of a broker, or `CONTROLLER`."""
    purpose: str


CONTROLLER = -1
"""The node that stands for the active controller, whichever that is."""


@dataclass(slots=True)
class Ask:
    """Send a request to another process; its answer is for `take`, with the time, or none if no answer came."""

    channel: Channel
    api: str
    message: Message
    take: "Callable[[Message | None, int], list[Effect]]"
    timeout_ms: int = 30_000
    """How long the answer is waited for. Then the connection is closed. Kafka: `request.timeout.ms`."""


@dataclass(slots=True)
class CopyMetadata:
    """Append batches of the metadata log, fetched from the controller, to this broker's copy."""

    batches: bytes


@dataclass(slots=True)
class CutMetadata:
    """Cut this broker's copy of the metadata log."""

    end_offset: Offset


@dataclass(slots=True)
class CopySnapshot:
    """Begin this broker's copy of the metadata log anew, with a snapshot fetched from the controller."""

    snapshot: SnapshotId
    content: bytes


@dataclass(slots=True)
class Serve:
    """Answer clients and other brokers from now on."""


@dataclass(slots=True)
class Stop:
    """End in order: nobody is served any more, everything is flushed, and a note says that the stop was clean."""


Effect: TypeAlias = (
    Store
    | StoreTogether
    | Respond
    | NoResponse
    | Drop
    | AppendMetadata
    | Then
    | Ask
    | CopyMetadata
    | CopySnapshot
    | CutMetadata
    | Serve
    | Stop
)

Note: TypeAlias = Callable[[Any, Any, Any, tuple[Any, ...], Any], None]
"""Told of each step: the handler, who handles, the state that it read, what it was given, what came of it.

Who handles is none where the handler does not ask that.
"""
