"""The ids of idempotent producers: a new one, and what a producer says that had one."""

from dataclasses import replace
from typing import Any

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, Hole, NoneOf, RequestFields, equals
from kspec.conformance.wire.model.partition import reply_of
from kspec.conformance.wire.model.requests import EVER, NO_COORDINATOR, since
from kspec.conformance.wire.model.restarts import after_restart, plain_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.producer_ids import ProducerIds, handle_init_producer_id
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, MonotonicMs, ProducerEpoch, ProducerId

UNIQUE = "no two producers have the same id"
FIRST_WITH_FORMER_ID = 3
OWN, OWN_HOLE = ProducerId(0), Hole("producer_id")
FORMER, ZERO = ProducerId(7), ProducerEpoch(0)
MOST_IDS = 2


def _init(name: str, words: str, had: ProducerId, epoch: ProducerEpoch, versions: Versions = EVER) -> Move:
    def take(protocol: BrokerProtocol, ids: ProducerIds) -> MoveResult | None:
        if ids.following >= MOST_IDS or (had == OWN and ids.following == 0):
            return None
        step = handle_init_producer_id(ids, InitProducerIdRequest(had, epoch), MonotonicMs(0))
        answer = reply_of(step.effects, InitProducerIdResponse)
        said: Any = OWN_HOLE if had == OWN else had
        fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, "producer_id": said, "producer_epoch": epoch}
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE:
            constraints += (AtLeast("producer_id", 0, "any id will do"), equals("producer_epoch", answer.producer_epoch))
            constraints += (NoneOf("producer_id", (OWN_HOLE,)),) if ids.following else ()
        outcome = answer.error.name if answer.error != Error.NONE else "an id"
        kept = (("producer_id", "producer_id"),) if answer.error == Error.NONE else ()
        request = RequestFields("InitProducerId", fields, versions)
        return MoveResult(
            step.state,
            Exchange(request, outcome, answer.error, constraints=constraints, kept=kept, retried=NO_COORDINATOR),
        )

    return Move(f"init.{name}", words, handle_init_producer_id, UNIQUE, take)


LATER = since(FIRST_WITH_FORMER_ID)
PRODUCER_IDS = Subject(
    "producer-ids",
    "ids for idempotent producers",
    ProducerIds(ProducerId(0), ProducerId(MOST_IDS)),
    (
        _init("new", "a producer asks for an id", NO_PRODUCER_ID, NO_PRODUCER_EPOCH),
        _init("own", "a producer says its id, and asks for an id", OWN, ZERO, LATER),
        _init("no-epoch", "a producer says an id and no epoch, and asks for an id", FORMER, NO_PRODUCER_EPOCH, LATER),
        _init("no-id", "a producer says an epoch and no id, and asks for an id", NO_PRODUCER_ID, ZERO, LATER),
    ),
    lambda state, holes: (),
    {"ids": MOST_IDS},
)


def _init_later() -> Move:
    """A new id after others: one by one nobody could compare it with all of them, but they are counted."""
    new = PRODUCER_IDS.moves[0]

    def take(protocol: BrokerProtocol, ids: ProducerIds) -> MoveResult | None:
        taken = new.take(protocol, ids)
        if taken is None or ids.following == 0:
            return taken
        constraints = (*taken.exchange.constraints, AtLeast("producer_id", OWN_HOLE._replace(plus=1), COUNTED))
        return taken._replace(exchange=taken.exchange._replace(constraints=constraints, outcome="another id"))

    return new._replace(take=take)


COUNTED = "a broker counts ids, and goes on where it has stopped: so none of those that it has given comes back"
PRODUCER_IDS_AGAIN = after_restart(
    replace(PRODUCER_IDS, moves=(_init_later(),)),
    plain_restart(handle_init_producer_id, UNIQUE),
    before=("init.new",),
    after=("init.new",),
)
