"""One exchange of a client with a broker: what is sent, and what the answer must be like.

A request is told by fields, as Kafka's message schemas name them. What is only known when a case runs (the name of its
topic, the id that a broker has given) is a `Hole`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from impl.wire.schema import FOREVER, Versions
from spec.values import Error

Fields = Mapping[str, Any]
"""The fields of a message by name: numbers, texts, bytes, holes, fields inside, and lists of those."""


class Hole(NamedTuple):
    """A value that is known when the case runs: what an earlier answer was `kept` as, and for a number what is added."""

    name: str
    plus: int = 0


class Records(NamedTuple):
    """The records of a produce request, as parts: bytes, holes of a fixed width, and stretches with a checksum."""

    parts: tuple[Any, ...]


class Fixed(NamedTuple):
    """A hole in bytes: a number of this width (`int16`, `int32`, `int64`)."""

    hole: Hole
    width: str


class Checked(NamedTuple):
    """A CRC-32C of four bytes over the parts, and then the parts."""

    parts: tuple[Any, ...]


class Ending(Enum):
    """What becomes of a request: an answer, the end of the connection, no answer at all, or an answer to come."""

    ANSWERED = "answered"
    CLOSED = "closed"
    SILENT = "silent"
    LATER = "later"


class Allowed(NamedTuple):
    """A field of the answer has one of these values. `reason` says why there are several.

    A path names fields from outside in, `[0]` an entry of a list, and `[#]` the number of its entries.
    """

    path: str
    values: tuple[Any, ...]
    reason: str = ""


class NotEmpty(NamedTuple):
    """A field of the answer has some value of its own: an id that the broker makes up."""

    path: str


class AtLeast(NamedTuple):
    """A field of the answer is a number not below this one."""

    path: str
    least: int
    reason: str = ""


class HasRecords(NamedTuple):
    """A field of the answer holds batches. From the first of these offsets on they cover exactly these offsets.

    A batch may begin earlier, because brokers send whole batches. `leader_epochs` are those of the batches at the offsets.
    """

    path: str
    offsets: tuple[int, ...]
    leader_epochs: tuple[Any, ...]


Constraint = Allowed | NotEmpty | AtLeast | HasRecords


def equals(path: str, value: Any) -> Allowed:
    """A field of the answer has this value."""
    return Allowed(path, (value,))


class Request(NamedTuple):
    """A request by its fields, in any of these versions of its API.

    `raw`: parts (see `Records`) that are sent as they are, the length before them included, for what no client would send.
    An answer to them is read as one of `api`, in the first of the versions.
    """

    api: str
    fields: Fields
    versions: Versions = Versions(0, FOREVER)
    raw: tuple[Any, ...] | None = None


class Awaited(NamedTuple):
    """An answer to a client that has waited for it. See `Exchange`."""

    client: str
    constraints: tuple[Constraint, ...]
    kept: tuple[tuple[str, str], ...] = ()


class Exchange(NamedTuple):
    """A request of a client, and what must come of it.

    `outcome` tells the kind of answer in a few words. `kept`: what later requests need of the answer, field by name. With
    one of the errors in `retried` the request is sent again: the protocol asks clients to. `awaited`: the answers to other
    clients, whose requests were left unanswered before (`Ending.LATER`), that come because of this one. `restarts`: the
    broker is stopped in order and started again before the request. `since`: the first release of Kafka that answers so,
    where that was measured; the rules of `spec` tell the others. `otherwise`: what does as well where a target does not
    offer the request. `optional`: it only looks, and is left out there.
    """

    request: Request
    outcome: str
    error: Error = Error.NONE
    ending: Ending = Ending.ANSWERED
    constraints: tuple[Constraint, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    retried: tuple[Error, ...] = ()
    client: str = "A"
    awaited: tuple[Awaited, ...] = ()
    words: str = ""
    restarts: bool = False
    since: str | None = None
    otherwise: "Exchange | None" = None
    optional: bool = False
