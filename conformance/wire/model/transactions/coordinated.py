"""A transactional id and its coordinator: steps whose records are written at once, and how producers look on the wire."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, Hole, RequestFields, equals
from kspec.conformance.wire.model.requests import NO_COORDINATOR, since
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten, TransactionMarker
from kspec.spec.transactions.appending import on_appended
from kspec.spec.transactions.effects import (
    AnswerTransaction,
    AppendTransaction,
    CoordinatedTransaction,
    SendMarkers,
    TransactionEffect,
    TransactionStep,
)
from kspec.spec.transactions.markers import on_markers_answered
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.values import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Epoch,
    Error,
    Instant,
    MonotonicMs,
    ProducerEpoch,
    ProducerId,
    RequestNumber,
    TimestampMs,
    TransactionalId,
)

ResponseT = TypeVar("ResponseT")

DAY_MS = 86_400_000
START = Instant(MonotonicMs(0), TimestampMs(DAY_MS))
"""So late that a transaction that was never open, whose start is -1, is open for long, as it is on every real clock."""
TRANSACTION = 1
"""The type of a coordinator's key. Kafka: `FindCoordinatorRequest.CoordinatorType`."""

NUMBER = RequestNumber(1)
COORDINATOR_EPOCH = Epoch(0)
TRANSACTIONAL_ID = TransactionalId("id")
TRANSACTIONAL_HOLE = Hole("group")
"""A transactional id of a case is named as its group is: both names are new."""

OWN = ProducerId(1)
"""The producer id that the coordinator gives to the transactional id."""

OTHER = ProducerId(2)
OWN_HOLE = Hole("producer_id")
TIMEOUT_MS = 60_000
MOST_EPOCH = 3

AGAIN = (*NO_COORDINATOR, Error.CONCURRENT_TRANSACTIONS)
"""Errors after which producers of transactions ask again: a coordinator begins its work when it is needed, and markers
of the transaction before may be on their way.
"""

LATER = (Error.NONE, *NO_COORDINATOR)
"""A look after the end of a transaction is taken again until it sees the end: the producer is answered before the markers
are written.
"""

KNOWS_FENCED = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}
"""The versions from which producers understand `PRODUCER_FENCED`."""


def coordinator(protocol: BrokerProtocol) -> TransactionCoordinator:
    """A coordinator by the rules of a release."""
    return TransactionCoordinator(protocol.transactions)


def knows_fenced(api: str, versions: Versions) -> bool:
    """Whether all of these versions of a request understand `PRODUCER_FENCED`, or none does."""
    return versions.first >= KNOWS_FENCED[api]


class SettledStep(NamedTuple):
    """A step of the coordinator with all that follows from it: the state, the answer, and the markers that were sent."""

    state: CoordinatedTransaction
    answer: Any
    markers: tuple[TransactionMarker, ...] = ()


def settled(protocol: BrokerProtocol, step: TransactionStep) -> SettledStep:
    """Write the records of a step, and have its markers written, until nothing is left to do."""
    role, state, answer = coordinator(protocol), step.state, None
    markers: list[TransactionMarker] = []
    left: list[TransactionEffect] = list(step.effects)
    while left:
        effect = left.pop(0)
        match effect:
            case AnswerTransaction():
                answer = effect.response
                continue
            case AppendTransaction():
                following = on_appended(role, state, effect, Error.NONE, START)
            case SendMarkers():
                markers.append(effect.marker)
                written = MarkersWritten(tuple((one, Error.NONE) for one in sorted(effect.marker.partitions)))
                following = on_markers_answered(role, state, effect.marker, written)
        state = following.state
        left += following.effects
    return SettledStep(state, answer, tuple(markers))


class NamedProducer(NamedTuple):
    """The id and the epoch that a client says."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch

    def fields(self, prefix: str = "") -> dict[str, Any]:
        """The same as fields of a request."""
        return {f"{prefix}producer_id": id_on_wire(self.producer_id), f"{prefix}producer_epoch": int(self.producer_epoch)}


NOBODY = NamedProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
STRANGER = NamedProducer(ProducerId(0), ProducerEpoch(0))
"""A producer of a transactional id that nobody knows."""

Who = Callable[[TransactionMetadata | None], NamedProducer | None]
"""The producer that a client says it is; none where nobody would be it."""


def id_on_wire(producer_id: ProducerId) -> Any:
    """A producer id as clients say it: that of the transactional id is what the broker has given."""
    return {OWN: OWN_HOLE, OTHER: OWN_HOLE._replace(plus=1)}.get(producer_id, int(producer_id))


def _at(back: int) -> Who:
    """The producer by its epoch, so many before the present one, or after it."""

    def who(metadata: TransactionMetadata | None) -> NamedProducer | None:
        if metadata is None or metadata.producer_epoch - back < 0:
            return None
        return NamedProducer(metadata.producer_id, ProducerEpoch(metadata.producer_epoch - back))

    return who


PRODUCERS: tuple[tuple[str, str, Who], ...] = (
    ("", "its producer", _at(0)),
    ("before", "the producer of the epoch before", _at(1)),
    ("older", "the producer of an older epoch", _at(2)),
    ("newer", "a producer of a later epoch", _at(-1)),
    ("other-id", "another producer", lambda one: None if one is None else NamedProducer(OTHER, one.producer_epoch)),
    ("stranger", "a producer that nobody knows", lambda one: STRANGER if one is None else None),
)
"""Those who may ask for something."""


def outcome_of(error: Error, done: str) -> str:
    """The kind of an answer in a word."""
    return done if error == Error.NONE else error.name


def exchange_of(
    request: RequestFields, error: Error, done: str, constraints: tuple[Constraint, ...], **more: Any
) -> Exchange:
    """The exchange of a request to the coordinator. One that a transaction makes wait is asked again."""
    return Exchange(request, outcome_of(error, done), error, constraints=constraints, retried=AGAIN, **more)


def producer_told(metadata: TransactionMetadata, is_first: bool) -> tuple[Constraint, ...]:
    """Constraints on an answer that tells a producer its id and epoch; the first id may be any."""
    told = (
        AtLeast("producer_id", 0, "any id will do") if is_first else equals("producer_id", id_on_wire(metadata.producer_id))
    )
    return told, equals("producer_epoch", int(metadata.producer_epoch))


def coordinator_ready(transactional_id: Hole = TRANSACTIONAL_HOLE) -> tuple[Exchange, ...]:
    """The broker coordinates the transactional id."""
    key = {"key": transactional_id, "key_type": TRANSACTION, "coordinator_keys": [transactional_id]}
    find = RequestFields("FindCoordinator", key, since(1))
    found = (equals("error_code", 0), equals("coordinators[0].error_code", 0))
    return (Exchange(find, "found", constraints=found, retried=NO_COORDINATOR),)
