"""Two transactional ids at once: listed with filters, described, and asked about by brokers."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, Hole, NoneOf, RequestFields, equals
from kspec.conformance.wire.model.requests import TOPIC, create_topic, look_up_topic, since, wait_for_leader
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.conformance.wire.model.transactions.coordinated import (
    AGAIN,
    COORDINATOR_EPOCH,
    LATER,
    NUMBER,
    START,
    TIMEOUT_MS,
    coordinator,
    coordinator_ready,
    exchange_of,
    outcome_of,
    settled,
)
from kspec.conformance.wire.model.transactions.identifiers import ATOMIC, BUMPING, FENCED, FIRST_BUMPING, FROM_BROKERS, TOLD
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.list_transactions import NO_DURATION, ListTransactionsRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import handle_add_partitions_to_txn
from kspec.spec.transactions.administration import describe_transaction, list_transactions
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.ending import handle_end_txn
from kspec.spec.transactions.metadata import BUMPS_EPOCH, TransactionState
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.values import Error, ProducerEpoch, ProducerId, TransactionalId

IDS = (TransactionalId("first"), TransactionalId("second"))
ID_HOLES = (Hole("group"), Hole("topic_dotted"))
"""Transactional ids of a case are named as its group and a topic are: all these names are new."""

PRODUCERS = (ProducerId(1), ProducerId(2))
PRODUCER_HOLES = (Hole("producer_id"), Hole("producer_id_2"))
WORDS = ("one", "the other")
PLACE = TopicPartition("topic", 0)
MOST_EPOCH = 1
HOUR_MS = 3_600_000
WITH_DURATION, WITH_PATTERN = 1, 2
FIRST_WITH_PATTERN = "4.1"
"""The first release that takes a pattern of transactional ids (KIP-1152)."""

UNREADABLE = "("

Pair = tuple[CoordinatedTransaction, CoordinatedTransaction]
NOT_KNOWN: Pair = (CoordinatedTransaction(IDS[0], COORDINATOR_EPOCH), CoordinatedTransaction(IDS[1], COORDINATOR_EPOCH))


def _with(state: Pair, place: int, after: CoordinatedTransaction) -> Pair:
    return (after, state[1]) if place == 0 else (state[0], after)


def _producer(state: Pair, place: int) -> tuple[ProducerId, ProducerEpoch] | None:
    metadata = state[place].metadata
    return None if metadata is None else (metadata.producer_id, metadata.producer_epoch)


def _said(place: int, epoch: ProducerEpoch) -> dict[str, Any]:
    return {"producer_id": PRODUCER_HOLES[place], "producer_epoch": int(epoch)}


def _init(place: int) -> Move:
    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        asked = InitProducerIdRequest(transactional_id=IDS[place], timeout_ms=TIMEOUT_MS)
        fresh = PRODUCERS[place]
        step = handle_init_producer_id(coordinator(protocol), state[place], NUMBER, asked, fresh, START)
        done = settled(protocol, step)
        answer: InitProducerIdResponse = done.answer
        metadata, is_first = done.state.metadata, state[place].metadata is None
        if metadata is None or metadata.producer_epoch > MOST_EPOCH:
            return None
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE:
            hole = PRODUCER_HOLES[place]
            told = AtLeast("producer_id", 0, "any id will do") if is_first else equals("producer_id", hole)
            constraints += (told, equals("producer_epoch", int(answer.producer_epoch)))
            if is_first and state[1 - place].metadata is not None:
                constraints += (NoneOf("producer_id", (PRODUCER_HOLES[1 - place],)),)
        kept = ((PRODUCER_HOLES[place].name, "producer_id"),) if is_first else ()
        fields = {
            "transactional_id": ID_HOLES[place],
            "transaction_timeout_ms": TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        request = RequestFields("InitProducerId", fields)
        exchange = exchange_of(request, answer.error, "an id", constraints, kept=kept)
        return MoveResult(_with(state, place, done.state), exchange)

    return Move(f"init.{place}", f"{WORDS[place]} transactional id gets a producer", handle_init_producer_id, FENCED, take)


def _add(place: int) -> Move:
    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        producer = _producer(state, place)
        if producer is None:
            return None
        asked = AddPartitionsToTxnRequest(IDS[place], *producer, frozenset({PLACE}))
        done = settled(protocol, handle_add_partitions_to_txn(coordinator(protocol), state[place], NUMBER, asked, START))
        answer: AddPartitionsToTxnResponse = done.answer
        said = {f"v3_and_below_{name}": one for name, one in _said(place, producer[1]).items()}
        fields = {
            "v3_and_below_transactional_id": ID_HOLES[place],
            "v3_and_below_topics": [{"name": TOPIC, "partitions": [PLACE.partition]}],
        }
        where = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
        error = answer.partitions[0][1]
        request = RequestFields("AddPartitionsToTxn", fields | said, Versions(2, FROM_BROKERS - 1))
        exchange = exchange_of(request, error, "added", (equals(where, error.value),))
        return MoveResult(_with(state, place, done.state), exchange)

    return Move(f"add.{place}", f"{WORDS[place]} begins a transaction", handle_add_partitions_to_txn, ATOMIC, take)


def _add_both(verify_only: bool) -> Move:
    """A broker asks for the producers of both transactional ids at once."""

    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        after, parts, errors = state, [], []
        constraints: list[Constraint] = [equals("error_code", 0)]
        for place, hole in enumerate(ID_HOLES):
            producer = _producer(state, place)
            if producer is None:
                return None
            asked = AddPartitionsToTxnRequest(IDS[place], *producer, frozenset({PLACE}), BUMPS_EPOCH, verify_only)
            step = handle_add_partitions_to_txn(coordinator(protocol), state[place], NUMBER, asked, START)
            done = settled(protocol, step)
            after = _with(after, place, done.state)
            answer: AddPartitionsToTxnResponse = done.answer
            errors.append(answer.partitions[0][1])
            topics = [{"name": TOPIC, "partitions": [PLACE.partition]}]
            parts.append(
                {"transactional_id": hole, **_said(place, producer[1]), "verify_only": verify_only, "topics": topics}
            )
            where = f"results_by_transaction[transactional_id=@{hole.name}].topic_results[0].results_by_partition[0]"
            constraints.append(equals(f"{where}.partition_error_code", errors[-1].value))
        request = RequestFields("AddPartitionsToTxn", {"transactions": parts}, since(FROM_BROKERS))
        worst = next((one for one in errors if one != Error.NONE), Error.NONE)
        outcome = " and ".join(outcome_of(one, "there") for one in errors)
        exchange = Exchange(request, outcome, worst, constraints=tuple(constraints), retried=AGAIN)
        return MoveResult(after, exchange)

    name = "verify-both" if verify_only else "add-both"
    does = "asks whether two transactions have a partition" if verify_only else "adds a partition to two transactions"
    return Move(name, f"a broker {does}", handle_add_partitions_to_txn, ATOMIC, take)


def _end(place: int, committed: bool) -> Move:
    """The transaction ends, with the next epoch."""

    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        producer = _producer(state, place)
        metadata = state[place].metadata
        if producer is None or metadata is None or metadata.state != TransactionState.ONGOING:
            return None
        asked = EndTxnRequest(IDS[place], *producer, committed, BUMPS_EPOCH)
        done = settled(protocol, handle_end_txn(coordinator(protocol), state[place], NUMBER, asked, PRODUCERS[place], START))
        answer: EndTxnResponse = done.answer
        if answer.producer_epoch > MOST_EPOCH:
            return None
        fields = {"transactional_id": ID_HOLES[place], "committed": committed, **_said(place, producer[1])}
        constraints = (equals("error_code", answer.error.value), equals("producer_epoch", int(answer.producer_epoch)))
        request = RequestFields("EndTxn", fields, since(BUMPING))
        exchange = exchange_of(request, answer.error, "ended", constraints, since=FIRST_BUMPING)
        return MoveResult(_with(state, place, done.state), exchange)

    verb = "commit" if committed else "abort"
    return Move(f"{verb}.{place}", f"{WORDS[place]} {verb}s", handle_end_txn, ATOMIC, take)


# ---- looks


class ListFilter(NamedTuple):
    """A filter of ListTransactions: which states, the producers of which of the two, open for how long, which ids."""

    states: tuple[str, ...] = ()
    producers: tuple[int, ...] = ()
    duration_ms: int = NO_DURATION
    pattern: int | str | None = None
    """The pattern is the name of one of the two; or a text that all ids match, or none."""


EVERY = ".*"
FILTERS: tuple[tuple[str, str, ListFilter], ...] = (
    ("all", "all transactional ids", ListFilter()),
    ("empty", "those that had no transaction", ListFilter(("Empty",))),
    ("ongoing", "those with an open transaction", ListFilter(("Ongoing",))),
    ("complete", "those whose transaction has ended", ListFilter(("CompleteCommit", "CompleteAbort"))),
    ("committed-or-unknown", "those in a state, or in one that there is not", ListFilter(("CompleteCommit", "Gone"))),
    ("unknown-state", "those in a state that there is not", ListFilter(("Gone",))),
    ("small-letters", "those in a state in small letters", ListFilter(("ongoing",))),
    ("producer", "those of one producer", ListFilter(producers=(0,))),
    ("producer-ongoing", "those of one producer, with an open transaction", ListFilter(("Ongoing",), (0,))),
    ("long", "those open for an hour", ListFilter(duration_ms=HOUR_MS)),
    ("long-ongoing", "open transactions of an hour", ListFilter(("Ongoing",), duration_ms=HOUR_MS)),
    ("pattern", "those of one name", ListFilter(pattern=0)),
    ("pattern-every", "those of any name", ListFilter(pattern=EVERY)),
    ("pattern-part", "those whose whole name is the beginning of one", ListFilter(pattern="kspec")),
    ("pattern-empty", "those that an empty pattern passes", ListFilter(pattern="")),
    ("pattern-unreadable", "those of a pattern that is none", ListFilter(pattern=UNREADABLE)),
    ("pattern-ongoing", "those of one name with an open transaction", ListFilter(("Ongoing",), pattern=0)),
)


def _matches(pattern: int | str | None, place: int) -> bool:
    """Whether the whole name of a transactional id matches."""
    return pattern in ("", EVERY, None) or pattern == place


def _list(name: str, words: str, filters: ListFilter) -> Move:
    first = WITH_PATTERN if filters.pattern is not None else WITH_DURATION if filters.duration_ms != NO_DURATION else 0

    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        if any(state[place].metadata is None for place in filters.producers):
            return None
        producers = frozenset(PRODUCERS[place] for place in filters.producers)
        request = ListTransactionsRequest(filters.states, producers, filters.duration_ms, filters.pattern != UNREADABLE)
        known = tuple(one.metadata for place, one in enumerate(state) if one.metadata and _matches(filters.pattern, place))
        told = list_transactions(request, False, known, START.timestamp)
        constraints: list[Constraint] = [equals("error_code", told.error.value)]
        if told.error == Error.NONE:
            constraints.append(equals("unknown_state_filters[#]", len(told.unknown_states)))
            constraints += [equals(f"unknown_state_filters[{at}]", one) for at, one in enumerate(told.unknown_states)]
            for place, hole in enumerate(ID_HOLES):
                listed = [one for one in told.transactions if one.transactional_id == IDS[place]]
                constraints.append(equals(f"transaction_states[#transactional_id=@{hole.name}]", len(listed)))
                for one in listed:
                    where = f"transaction_states[transactional_id=@{hole.name}]"
                    constraints.append(equals(f"{where}.producer_id", PRODUCER_HOLES[place]))
                    constraints.append(equals(f"{where}.transaction_state", one.state))
        pattern = ID_HOLES[filters.pattern] if isinstance(filters.pattern, int) else filters.pattern
        fields = {
            "state_filters": list(filters.states),
            "producer_id_filters": [PRODUCER_HOLES[place] for place in filters.producers],
            "duration_filter": filters.duration_ms,
            "transactional_id_pattern": pattern,
        }
        outcome = outcome_of(told.error, f"{len(told.transactions)} of them")
        sent = RequestFields("ListTransactions", fields, since(first))
        with_pattern = FIRST_WITH_PATTERN if filters.pattern is not None else None
        exchange = Exchange(sent, outcome, told.error, constraints=tuple(constraints), retried=LATER, since=with_pattern)
        return MoveResult(state, exchange)

    return Move(f"list.{name}", f"list {words}", list_transactions, TOLD, take)


def _describe_both() -> Move:
    def take(protocol: BrokerProtocol, state: Pair) -> MoveResult | None:
        constraints: list[Constraint] = [equals("transaction_states[#]", len(IDS) + 1)]
        for place, hole in enumerate(ID_HOLES):
            told = describe_transaction(Error.NONE, IDS[place], state[place].metadata)
            where = f"transaction_states[transactional_id=@{hole.name}]"
            constraints.append(equals(f"{where}.error_code", told.error.value))
            if told.error == Error.NONE:
                constraints.append(equals(f"{where}.transaction_state", told.state))
                constraints.append(equals(f"{where}.producer_id", PRODUCER_HOLES[place]))
                constraints.append(equals(f"{where}.producer_epoch", int(told.producer_epoch)))
                constraints.append(equals(f"{where}.topics[#]", len(told.partitions)))
        empty = describe_transaction(Error.NONE, TransactionalId(""), None)
        constraints.append(equals("transaction_states[transactional_id=''].error_code", empty.error.value))
        request = RequestFields("DescribeTransactions", {"transactional_ids": [*ID_HOLES, ""]})
        known = sum(one.metadata is not None for one in state)
        exchange = Exchange(request, f"{known} known", constraints=tuple(constraints), retried=LATER)
        return MoveResult(state, exchange)

    return Move("describe-both", "ask for both transactional ids, and an empty one", describe_transaction, TOLD, take)


def _setup(state: Pair, holes: frozenset[str]) -> tuple[Exchange, ...]:
    topic = (create_topic(TOPIC), look_up_topic(), wait_for_leader()) if "topic" in holes else ()
    return (*topic, *coordinator_ready(), *coordinator_ready(ID_HOLES[1]))


DESCRIBE_BOTH = _describe_both()
BOTH = (0, 1)
TWO_TRANSACTIONAL_IDS = Subject(
    "two-transactional-ids",
    "two transactional ids at once, listed and described",
    NOT_KNOWN,
    (
        *map(_init, BOTH),
        *map(_add, BOTH),
        *map(_add_both, (False, True)),
        _end(0, committed=True),
        _end(1, committed=False),
        *(_list(*one) for one in FILTERS),
        DESCRIBE_BOTH,
    ),
    _setup,
    {"epochs": MOST_EPOCH + 1},
    looks=(DESCRIBE_BOTH,),
    by_release=True,
)
