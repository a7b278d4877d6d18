"""A request that is being answered, and the effects that the core asks for."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from kspec.impl.broker.timers import Timer
from kspec.impl.metadata.records import LogRecord
from kspec.impl.records.batch import Buffer
from kspec.impl.storage import PartitionFiles
from kspec.impl.wire.frames import RequestHeader
from kspec.impl.wire.values import Message
from kspec.spec.broker.effects import LogChange
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Epoch, Instant, MonotonicMs, Offset


class Peer(Protocol):
    """The connection that a request came on, as far as the core knows it."""

    @property
    def host(self) -> str:
        """The address of the client."""


FoundT = TypeVar("FoundT")

FollowUp: TypeAlias = "Callable[[Instant], list[Effect]]"
"""The effects that follow at a later time."""


class StoredPartition(Protocol):
    """A partition as far as effects know it: its files, and that these may fail."""

    @property
    def place(self) -> TopicPartition:
        """Its topic's name and its number."""

    @property
    def topic_id(self) -> bytes:
        """Its topic's id."""

    @property
    def files(self) -> PartitionFiles:
        """Its files."""

    @property
    def offline(self) -> bool:
        """Whether its files could not be written."""

    def fail(self) -> None:
        """Its files could not be written."""


class Call:
    """One request: its header, its content, where it came from. The core answers it once, now or later."""

    __slots__ = ("header", "message", "peer", "place", "received", "term", "version", "waiting")

    def __init__(self, peer: Peer, place: int, header: RequestHeader, message: Message, received: Instant) -> None:
        self.peer = peer
        self.place = place
        """The number of the answer among those of its connection."""
        self.header = header
        self.version = header.version
        """The version of the API."""
        self.message = message
        self.received = received
        self.term: Epoch | None = None
        """The epoch of the controller that decides about it; none if nobody has to decide."""
        self.waiting: DelayedOperation | None = None
        """The fetch that waits to be answered."""

    def respond(self, **fields: object) -> "Respond":
        """The effect of answering with these fields."""
        return Respond(self, Message(**fields))


@dataclass(slots=True)
class Store:
    """Change a partition's files. `payloads` are the bytes of the batches, if there are any."""

    replica: Final[StoredPartition]
    change: Final[LogChange]
    payloads: Final[tuple[Buffer, ...]] = ()
    on_failure: Final[Callable[[], None] | None] = None
    """Called if the files could not be written."""
    separately: Final[bool] = False
    """Whether the batches come from several requests: a new segment may begin before each of them."""


@dataclass(slots=True)
class StoreTogether:
    """Changes of different partitions. All are complete before the next effect; their order among each other is open."""

    stores: "list[Store]"


@dataclass(slots=True)
class Respond:
    """Send the answer of a request; its connection keeps the order of the requests.

    `is_long`: a thread puts it into bytes, while others are served. It must not change then. `released`: all of the metadata
    log that it rests on is committed.
    """

    call: Call
    message: Message
    is_long: bool = False
    released: bool = False

    def long_if(self, is_long: bool) -> "Respond":
        """The same answer, which is long or not."""
        return Respond(self.call, self.message, is_long)


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


@dataclass(slots=True)
class Aside:
    """Work that takes long: a thread does it, while others are served; if it is for a request, its connection waits.

    `work` reads nothing that changes. Its result gets the time, and says what follows.
    """

    call: Call | None
    work: Callable[[], FollowUp]


def aside(call: Call | None, work: Callable[[], FoundT], then: "Callable[[FoundT, Instant], list[Effect]]") -> Aside:
    """The effect of doing work in a thread; `then` gets what it has found, and the time, and says what follows."""
    return Aside(call, lambda: partial(then, work()))


Steps: TypeAlias = "Generator[list[Effect], None, list[Effect]]"
"""The steps of a request that names many things: each gives effects, and so does its end."""

TURN_SIZE = 200
"""The number of things of a request, such as partitions or groups, that are handled before others are served."""


@dataclass(slots=True)
class InTurns:
    """A request that names many things, and is handled in steps: others are served in between, and its connection waits.

    Each step sees what is then. One that gives all in its end is carried out at once.
    """

    call: Call
    steps: Steps


@dataclass(slots=True)
class Detain:
    """The next requests on the connection of this one wait until `Resume`: it cannot go on before an answer is there."""

    call: Call


@dataclass(slots=True)
class Resume:
    """A request that has been held goes on."""

    call: Call


@dataclass(slots=True)
class GradualWork:
    """Work in steps that is for no request alone: others are served in between. The effects after it wait until it is done.

    Works are done one after the other, in the order in which they were asked for.
    """

    steps: Steps


def ends_turn(number: int, size: int = TURN_SIZE) -> bool:
    """Whether a step ends with this thing of a request, counted from 0."""
    return number % size == size - 1


def in_one_go(steps: Steps) -> "list[Effect]":
    """The effects of all steps together."""
    effects: list[Effect] = []
    while True:
        try:
            effects += next(steps)
        except StopIteration as end:
            return effects + cast("list[Effect]", end.value)


class ChannelKey(NamedTuple):
    """A connection to another process: to whom, and what for. Requests on it are answered in their order."""

    node: int
    """The id of a broker, or `CONTROLLER`."""
    purpose: str


CONTROLLER = -1
"""The node that stands for the active controller, whichever that is."""


@dataclass(slots=True)
class Ask:
    """Send a request to another process, or to this broker itself; its answer is for `take`, with the time, or none if no
    answer came.
    """

    channel: ChannelKey
    api: str
    message: Message
    take: "Callable[[Message | None, Instant], list[Effect]]"
    timeout_ms: int = 30_000
    """The longest wait for the response. Then the connection is closed. Kafka: `request.timeout.ms`."""
    lowest: int = 0
    """The lowest version that can say it. Who knows no such version counts as one that has answered UNSUPPORTED_VERSION."""


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
    """End in order: nobody is served any more, everything is flushed, and a note says that the stop was clean.

    `why`: in one line, if nobody has asked for the end: it is an error.
    """

    why: str = ""


@dataclass(slots=True)
class EndOnError:
    """The node cannot go on, and ends: the error, and what it is about."""

    error: Exception
    what: str


NodeEffect: TypeAlias = (
    Respond | NoResponse | Drop | AppendMetadata | Then | Aside | InTurns | Detain | Resume | GradualWork | EndOnError
)
"""The effects of every node: they answer requests, write the metadata log, and divide work."""

BrokerEffect: TypeAlias = Store | StoreTogether | Ask | CopyMetadata | CopySnapshot | CutMetadata | Serve | Stop
"""The effects that only a broker has: on the files of partitions, on other processes, on itself."""

Effect: TypeAlias = NodeEffect | BrokerEffect


class RequestHandler(Protocol):
    """A handler of a client's request: the effects, which answer it now or later."""

    def __call__(self, call: Call, now: Instant, /) -> list[Effect]:
        """Handle a request."""


@dataclass(slots=True, eq=False)
class DelayedOperation:
    """A request that waits: a fetch for more to read, or a deletion for followers. Kafka: `DelayedOperation`."""

    deadline: MonotonicMs
    look_again: Callable[[StoredPartition, Instant], list[Effect]]
    """Called when a partition has changed, with the time: the effects, which answer the fetch if there is enough now."""
    complete: FollowUp
    """The effects that answer the fetch with what there is."""
    done: bool = False
    timer: Timer[Effect] | None = None
    """The timer of its deadline."""
    waits_in: list[dict["DelayedOperation", None]] = field(default_factory=list)
    """The lists of those who are called when something changes: of partitions, or of a fetch session."""
    number: int = 0
    """Those that came first look first."""

    def wait_in(self, those: Iterable[dict["DelayedOperation", None]]) -> None:
        """Be called with others."""
        for one in those:
            one[self] = None
            self.waits_in.append(one)

    def leave(self) -> None:
        """Be called no more: it has been answered, or its client has gone."""
        self.done = True
        for one in self.waits_in:
            one.pop(self, None)
        self.waits_in, self.look_again, self.complete = [], not_again, nothing  # no circle is left: its memory is free


def not_again(partition: StoredPartition, now: Instant) -> list[Effect]:
    """Nobody looks at a fetch again that is answered or forgotten."""
    return []


def nothing(now: Instant) -> list[Effect]:
    """Nothing is left to be done for a fetch that is answered or forgotten."""
    return []


def stores_among(effects: Iterable[Effect]) -> tuple[list[Store], list[Effect]]:
    """The changes of files among effects, and the others, both in their order."""
    stores: list[Store] = []
    others: list[Effect] = []
    for effect in effects:
        match effect:
            case Store():
                stores.append(effect)
            case _:
                others.append(effect)
    return stores, others
