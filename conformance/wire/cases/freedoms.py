"""Freedoms of Kafka's protocol: answers unlike Apache Kafka's that no client may take amiss.

A case that meets such an answer has the verdict *unlike Kafka*, with the sentence that is here. It goes on: what is
looked at afterwards must be as expected, so a batch that is refused with another error must not be in the log.
"""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.exchange import AllowedValues, Constraint, Exchange, RequestEnding
from kspec.spec.values import Error

LARGEST_FRAME = 100 << 20
"""The longest request that Apache Kafka reads unless it is told otherwise: `socket.request.max.bytes`."""


class Freedom(NamedTuple):
    """An answer, or the end of a request, that does as well.

    `holds` tells the exchanges that it is about. `error`: what its error codes may be, `one_of` or `none_of` some.
    `ending`: how the request may end besides; `open` is neither an answer nor the end of the connection.
    """

    name: str
    why: str
    holds: Callable[[Exchange], bool]
    error: Json | None = None
    ending: str | None = None


def _is_refused_as(*errors: Error) -> Callable[[Exchange], bool]:
    return lambda exchange: exchange.error in errors


def _is_refused_batch(exchange: Exchange) -> bool:
    return exchange.request.api == "Produce" and exchange.error == Error.INVALID_RECORD


def _wants_many_partitions(exchange: Exchange) -> bool:
    return exchange.request.api in ("CreateTopics", "CreatePartitions") and exchange.error == Error.POLICY_VIOLATION


def _wants_no_answer(exchange: Exchange) -> bool:
    is_produce = exchange.request.api == "Produce" and exchange.request.fields.get("acks") == 0
    return is_produce and exchange.ending == RequestEnding.CLOSED


def _is_oversized(exchange: Exchange) -> bool:
    raw = exchange.request.raw
    if exchange.ending != RequestEnding.CLOSED or not raw or not isinstance(raw[0], bytes):
        return False
    (size,) = struct.unpack_from(">i", raw[0])
    return bool(size > LARGEST_FRAME)


FREEDOMS = (
    Freedom(
        "any-refusal",
        "UNKNOWN_SERVER_ERROR stands for an error that the server did not expect, so the protocol prescribes none here, "
        "and any other error says as well that the request was refused",
        _is_refused_as(Error.UNKNOWN_SERVER_ERROR),
        error={"none_of": [Error.NONE.value]},
    ),
    Freedom(
        "corrupt-batch",
        "the protocol has two errors for a batch that cannot be taken: INVALID_RECORD where the broker's checks fail, and "
        "CORRUPT_MESSAGE for one that is corrupt in whatever way",
        _is_refused_batch,
        error={"one_of": [Error.CORRUPT_MESSAGE.value]},
    ),
    Freedom(
        "partitions-at-once",
        "POLICY_VIOLATION refers to a policy of the broker's own, and the protocol has no limit to the partitions that one "
        "request asks for",
        _wants_many_partitions,
        error={"none_of": []},
    ),
    Freedom(
        "acks-0",
        "a Produce request with acks=0 has no response; the protocol does not say that its connection ends if it is refused",
        _wants_no_answer,
        ending="silent",
    ),
    Freedom(
        "long-request",
        "the protocol has no limit to the size of a request, other than that of its four bytes, so a broker may wait for "
        "the rest",
        _is_oversized,
        ending="open",
    ),
)


def freedom_of(exchange: Exchange) -> Freedom | None:
    """The freedom that an exchange leaves, if one."""
    return next((one for one in FREEDOMS if one.holds(exchange)), None)


def free_constraints(exchange: Exchange) -> Sequence[Constraint]:
    """The constraints of an exchange whose field may have another error."""
    return [one for one in exchange.constraints if _is_error(one, exchange.error)]


def _is_error(constraint: Constraint, error: Error) -> bool:
    if not isinstance(constraint, AllowedValues) or error == Error.NONE:
        return False
    return constraint.path.endswith("error_code") and constraint.values == (error.value,)
