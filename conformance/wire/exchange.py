"""One exchange of a client with a broker: what is sent, and what the answer must be like.

A request is told by fields, as Kafka's message schemas name them. What is only known when a case runs (the name of its
topic, the id that a broker has given) is a `Hole`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from kspec.impl.wire.schema import FOREVER, Versions
from kspec.spec.values import Error

Fields = Mapping[str, Any]
"""The fields of a message by name: numbers, texts, bytes, holes, fields inside, and lists of those."""


class Hole(NamedTuple):
    """A value that is known when the case runs: what an earlier answer was `kept` as, and for a number what is added."""

    name: str
    plus: int = 0


class RecordParts(NamedTuple):
    """The records of a produce request, as parts: bytes, holes of a fixed width, and stretches with a checksum."""

    parts: tuple[Any, ...]


class NumberHole(NamedTuple):
    """A hole in bytes: a number of this width (`int16`, `int32`, `int64`)."""

    hole: Hole
    width: str


class ChecksummedBytes(NamedTuple):
    """A CRC-32C of four bytes over the parts, and then the parts."""

    parts: tuple[Any, ...]


class RequestEnding(Enum):
    """The end of a request: an answer, the end of the connection, no answer at all, or an answer to come."""

    ANSWERED = "answered"
    CLOSED = "closed"
    SILENT = "silent"
    LATER = "later"


class AllowedValues(NamedTuple):
    """A field of the answer has one of these values. `reason` says why there are several.

    A path names fields from outside in, `[0]` an entry of a list, and `[#]` the number of its entries; `[index=1]` is the
    first entry whose field has this value, a number, a hole (`[name=@topic]`) or a text (`[name='a.b']`), and `[#index=1]`
    the number of such entries.
    """

    path: str
    values: tuple[Any, ...]
    reason: str = ""


class NotEmpty(NamedTuple):
    """A field of the answer has some value of its own: an id that the broker makes up."""

    path: str


class NoneOf(NamedTuple):
    """A field of the answer has none of these values: something new, where they are what was there before."""

    path: str
    values: tuple[Any, ...]


class AtLeast(NamedTuple):
    """A field of the answer is a number not below this one, which may be a hole."""

    path: str
    least: Any
    reason: str = ""


class HasRecords(NamedTuple):
    """A field of the answer holds batches. From the first of these offsets on they cover exactly these offsets.

    A batch may begin earlier, because brokers send whole batches. `leader_epochs` are those of the batches at the offsets.
    `values`, `times` and `keys` are those of the records there (bytes, ms, bytes), if they are looked at, and none for those
    that are not; records are not compressed then.
    """

    path: str
    offsets: tuple[int, ...]
    leader_epochs: tuple[Any, ...]
    values: tuple[bytes | None, ...] | None = None
    times: tuple[Any, ...] | None = None
    keys: tuple[bytes | None, ...] | None = None


Constraint = AllowedValues | NotEmpty | NoneOf | AtLeast | HasRecords


def equals(path: str, value: Any) -> AllowedValues:
    """A field of the answer has this value."""
    return AllowedValues(path, (value,))


class RequestFields(NamedTuple):
    """A request by its fields, in any of these versions of its API.

    `raw`: parts (see `RecordParts`) that are sent as they are, the length before them included, for what no client sends.
    An answer to them is read as one of `api`, in the first of the versions.
    """

    api: str
    fields: Fields
    versions: Versions = Versions(0, FOREVER)
    raw: tuple[Any, ...] | None = None


class DelayedAnswer(NamedTuple):
    """An answer to a client that has waited for it. See `Exchange`."""

    client: str
    constraints: tuple[Constraint, ...]
    kept: tuple[tuple[str, str], ...] = ()


class Exchange(NamedTuple):
    """A request of a client, and what must come of it.

    `outcome` tells the kind of answer in a few words. `kept`: what later requests need of the answer, field by name. With
    one of the errors in `retried` the request is sent again: the protocol asks clients to. `awaited`: the answers to other
    clients, whose requests had no answer before (`RequestEnding.LATER`), that come because of this one. `restarts`: the
    broker is stopped in order and started again before the request. `since`: the first release of Kafka that answers so,
    where that was measured; the rules of `spec` tell the others. `otherwise`: what does as well where a target does not
    offer the request. `optional`: it only looks, and is left out there. `pause_ms` pass before the request is sent.
    `not_before_ms`: the answer does not come sooner than so long after it.
    """

    request: RequestFields
    outcome: str
    error: Error = Error.NONE
    ending: RequestEnding = RequestEnding.ANSWERED
    constraints: tuple[Constraint, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    retried: tuple[Error, ...] = ()
    client: str = "A"
    awaited: tuple[DelayedAnswer, ...] = ()
    words: str = ""
    restarts: bool = False
    since: str | None = None
    otherwise: "Exchange | None" = None
    optional: bool = False
    pause_ms: int = 0
    not_before_ms: int = 0
