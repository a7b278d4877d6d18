"""Transactional ids at their coordinator: producers that get an id, begin transactions, end them, and are fenced."""

from collections.abc import Iterator
from typing import Any

from kspec.conformance.wire.exchange import AllowedValues, AtLeast, Constraint, Exchange, RequestFields, equals
from kspec.conformance.wire.model.groups.group import GROUP, GROUP_HOLE, group_ready
from kspec.conformance.wire.model.requests import TOPIC, create_topic, look_up_topic, since, wait_for_leader
from kspec.conformance.wire.model.restarts import ALIVE, RESTARTED, after_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.conformance.wire.model.transactions.coordinated import (
    COORDINATOR_EPOCH,
    KNOWS_FENCED,
    LATER,
    MOST_EPOCH,
    NOBODY,
    NUMBER,
    OWN,
    PRODUCERS,
    START,
    TIMEOUT_MS,
    TRANSACTIONAL_HOLE,
    TRANSACTIONAL_ID,
    Who,
    coordinator,
    coordinator_ready,
    exchange_of,
    id_on_wire,
    knows_fenced,
    outcome_of,
    producer_told,
    settled,
)
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.named_partitions import check_named_partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import CONSUMER_OFFSETS, handle_add_offsets_to_txn, handle_add_partitions_to_txn
from kspec.spec.transactions.administration import describe_transaction
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.ending import handle_end_txn
from kspec.spec.transactions.loading import load_transaction
from kspec.spec.transactions.metadata import BUMPS_EPOCH
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.transactions.records import record_of
from kspec.spec.transactions.refusals import check_added
from kspec.spec.values import Epoch, Error, TransactionalId

KEPT = "a transaction that is open, or whose end is decided, is so after a restart"
FENCED = "of the producers of a transactional id the newest alone goes on"
ATOMIC = "a transaction has one end, and whoever asks again for it is told the same"
TOLD = "an operator sees the transactions that there are"

PARTITIONS, UNKNOWN_PARTITION = (0, 1), 7
PLACES = tuple(TopicPartition("topic", number) for number in PARTITIONS)
LONGEST_MS = 15 * 60_000
NO_TRANSACTIONAL_ID = TransactionalId("")
WITH_FORMER_ID = 3
FROM_BROKERS, BUMPING = 4, 5
"""The first version of AddPartitionsToTxn that brokers send, and the first of EndTxn that raises the epoch."""

FIRST_BUMPING = "4.0"
"""The first release whose producers have an epoch for each transaction."""

INITIAL = CoordinatedTransaction(TRANSACTIONAL_ID, COORDINATOR_EPOCH)


def _bounded(before: CoordinatedTransaction, after: CoordinatedTransaction, exchange: Exchange) -> MoveResult | None:
    """The result, while the epoch is not too large."""
    metadata = after.metadata
    return None if metadata is not None and metadata.producer_epoch > MOST_EPOCH else MoveResult(after, exchange)


# ---- InitProducerId


def _init(
    name: str,
    words: str,
    who: Who,
    versions: Versions,
    timeout_ms: int = TIMEOUT_MS,
    names: str = "both",
    transactional_id: TransactionalId = TRANSACTIONAL_ID,
) -> Move:
    """`names`: what of its former id and epoch a producer says."""

    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        named = who(state.metadata)
        if named is None or (transactional_id == NO_TRANSACTIONAL_ID and state.metadata is not None):
            return None
        if names != "both":
            named = named._replace(**{names: getattr(NOBODY, names)})
        fenced = knows_fenced("InitProducerId", versions) or versions.last >= KNOWS_FENCED["InitProducerId"]
        asked = InitProducerIdRequest(*named, transactional_id, timeout_ms, fenced)
        step = settled(protocol, handle_init_producer_id(coordinator(protocol), state, NUMBER, asked, OWN, START))
        answer: InitProducerIdResponse = step.answer
        said = TRANSACTIONAL_HOLE if transactional_id else ""
        fields = {"transactional_id": said, "transaction_timeout_ms": timeout_ms, **named.fields()}
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE:
            assert step.state.metadata is not None
            constraints += producer_told(step.state.metadata, state.metadata is None)
        kept = (("producer_id", "producer_id"),) if answer.error == Error.NONE and state.metadata is None else ()
        done = "an id" if state.metadata is None else "the same epoch" if step.state == state else "the next epoch"
        exchange = exchange_of(RequestFields("InitProducerId", fields, versions), answer.error, done, constraints, kept=kept)
        return _bounded(state, step.state, exchange)

    return Move(f"init.{name}", words, handle_init_producer_id, FENCED, take)


def _inits() -> Iterator[Move]:
    yield _init("new", "a producer of a transactional id asks for an id", lambda one: NOBODY, Versions(0, 32767))
    for name, words, who in PRODUCERS:
        told = f"{words} asks for an id again, and says which it has"
        yield _init(name or "own", told, who, since(KNOWS_FENCED["InitProducerId"]))
        if name in ("older", "other-id"):
            yield _init(f"{name}.old", f"{told}, by an older request", who, Versions(WITH_FORMER_ID, WITH_FORMER_ID))
    nobody = PRODUCERS[-1][2]
    later = since(WITH_FORMER_ID)
    yield _init("no-epoch", "a producer says an id and no epoch", nobody, later, names="producer_epoch")
    yield _init("no-id", "a producer says an epoch and no id", nobody, later, names="producer_id")
    for name, words, timeout_ms in (
        ("timeout-0", "a time-out of 0", 0),
        ("timeout-negative", "a negative time-out", -1),
        ("timeout-longest", "the longest time-out", LONGEST_MS),
        ("timeout-too-long", "a time-out that is too long", LONGEST_MS + 1),
    ):
        yield _init(name, f"a producer asks for an id with {words}", lambda one: NOBODY, Versions(0, 32767), timeout_ms)
    yield _init(
        "empty-id",
        "a producer of an empty transactional id asks for an id",
        lambda one: NOBODY,
        Versions(0, 32767),
        transactional_id=NO_TRANSACTIONAL_ID,
    )


# ---- AddPartitionsToTxn and AddOffsetsToTxn


def _error_at(where: str, place: TopicPartition) -> str:
    return f"{where}[name=@topic].results_by_partition[partition_index={place.partition}].partition_error_code"


def _asked(numbers: tuple[int, ...]) -> tuple[frozenset[TopicPartition], frozenset[tuple[TopicPartition, Error]]]:
    """The partitions of a request, and those of which there is not one."""
    places = frozenset(TopicPartition("topic", number) for number in numbers)
    errors = ((one, check_named_partition(len(PARTITIONS), one.partition, by_id=False)) for one in places)
    return places, frozenset((one, error) for one, error in errors if error != Error.NONE)


def _add(
    name: str,
    words: str,
    who: Who,
    numbers: tuple[int, ...],
    versions: Versions,
    transactional_id: TransactionalId = TRANSACTIONAL_ID,
    verify_only: bool = False,
) -> Move:
    """Partitions are added: by a client, or in newer versions by a broker for one, which may also verify only."""
    from_broker = versions.first >= FROM_BROKERS

    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        named = who(state.metadata)
        if named is None or (transactional_id == NO_TRANSACTIONAL_ID and state.metadata is None):
            return None
        places, refused = _asked(numbers)
        level = BUMPS_EPOCH if from_broker else 0
        fenced = knows_fenced("AddPartitionsToTxn", versions)
        asked = AddPartitionsToTxnRequest(transactional_id, *named, places, level, verify_only, fenced)
        answer, after = AddPartitionsToTxnResponse(check_added(places, refused)), state
        if not refused:
            done = settled(protocol, handle_add_partitions_to_txn(coordinator(protocol), state, NUMBER, asked, START))
            answer, after = done.answer, done.state
        said: Any = TRANSACTIONAL_HOLE if transactional_id else ""
        topics = [{"name": TOPIC, "partitions": list(numbers)}]
        if from_broker:
            one = {"transactional_id": said, **named.fields(), "verify_only": verify_only, "topics": topics}
            fields: dict[str, Any] = {"transactions": [one]}
            where = "results_by_transaction[0].topic_results"
            constraints: tuple[Constraint, ...] = (equals("error_code", 0),)
        else:
            fields = {"v3_and_below_transactional_id": said, "v3_and_below_topics": topics, **named.fields("v3_and_below_")}
            where, constraints = "results_by_topic_v3_and_below", ()
        constraints += tuple(equals(_error_at(where, place), error.value) for place, error in answer.partitions)
        errors = [error for _, error in answer.partitions]
        worst = next((one for one in errors if one not in (Error.NONE, Error.OPERATION_NOT_ATTEMPTED)), Error.NONE)
        some = "verified" if verify_only else "added" if after != state else "there already"
        request = RequestFields("AddPartitionsToTxn", fields, versions)
        return _bounded(state, after, exchange_of(request, worst, some, constraints))

    kind = "verify" if verify_only else "broker-adds" if from_broker else "add"
    return Move(f"{kind}.{name}", words, handle_add_partitions_to_txn, ATOMIC, take)


OF_CLIENTS, OF_OLD_CLIENTS = Versions(KNOWS_FENCED["AddPartitionsToTxn"], FROM_BROKERS - 1), Versions(0, 1)


def _adds() -> Iterator[Move]:
    own = PRODUCERS[0][2]
    for number in PARTITIONS:
        yield _add(f"{number}", f"a producer adds partition {number} to its transaction", own, (number,), OF_CLIENTS)
    yield _add("both", "a producer adds two partitions to its transaction", own, PARTITIONS, OF_CLIENTS)
    unknown = (*PARTITIONS, UNKNOWN_PARTITION)
    yield _add("unknown", "a producer adds partitions of which there is not one", own, unknown, OF_CLIENTS)
    for name, words, who in PRODUCERS[1:]:
        yield _add(name, f"{words} adds a partition", who, (0,), OF_CLIENTS)
    yield _add("old", "a producer adds a partition by an older request", own, (0,), OF_OLD_CLIENTS)
    before = PRODUCERS[1][2]
    yield _add(
        "before.old", "the producer of the epoch before adds a partition by an older request", before, (0,), OF_OLD_CLIENTS
    )
    yield _add(
        "empty-id", "a producer of an empty transactional id adds a partition", own, (0,), OF_CLIENTS, NO_TRANSACTIONAL_ID
    )
    for verify_only in (False, True):
        does = "asks whether a partition is in the transaction" if verify_only else "adds a partition to the transaction"
        for name, words, who in PRODUCERS:
            told = f"a broker {does} for {words}"
            yield _add(name or "own", told, who, (0,), since(FROM_BROKERS), verify_only=verify_only)
    both = "a broker asks whether two partitions are in the transaction"
    yield _add("both", both, own, PARTITIONS, since(FROM_BROKERS), verify_only=True)


def _add_offsets(
    name: str, words: str, who: Who, versions: Versions, transactional_id: TransactionalId = TRANSACTIONAL_ID
) -> Move:
    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        named = who(state.metadata)
        if named is None or (transactional_id == NO_TRANSACTIONAL_ID and state.metadata is None):
            return None
        asked = AddOffsetsToTxnRequest(transactional_id, *named, GROUP, knows_fenced("AddOffsetsToTxn", versions))
        done = settled(protocol, handle_add_offsets_to_txn(coordinator(protocol), state, NUMBER, asked, START))
        answer: AddOffsetsToTxnResponse = done.answer
        said = TRANSACTIONAL_HOLE if transactional_id else ""
        fields = {"transactional_id": said, "group_id": GROUP_HOLE, **named.fields()}
        some = "added" if done.state != state else "there already"
        request = RequestFields("AddOffsetsToTxn", fields, versions)
        exchange = exchange_of(request, answer.error, some, (equals("error_code", answer.error.value),))
        return _bounded(state, done.state, exchange)

    return Move(f"add-offsets.{name}", words, handle_add_offsets_to_txn, ATOMIC, take)


def _all_offsets() -> Iterator[Move]:
    newer = since(KNOWS_FENCED["AddOffsetsToTxn"])
    for name, words, who in PRODUCERS:
        yield _add_offsets(name or "own", f"{words} adds the offsets of a group", who, newer)
    told = "the producer of the epoch before adds the offsets of a group by an older request"
    yield _add_offsets("before.old", told, PRODUCERS[1][2], OF_OLD_CLIENTS)
    told = "a producer of an empty transactional id adds the offsets of a group"
    yield _add_offsets("empty-id", told, PRODUCERS[0][2], newer, NO_TRANSACTIONAL_ID)


# ---- EndTxn


def _end(
    name: str,
    words: str,
    who: Who,
    committed: bool,
    versions: Versions,
    transactional_id: TransactionalId = TRANSACTIONAL_ID,
) -> Move:
    bumps = versions.first >= BUMPING

    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        named = who(state.metadata)
        if named is None or (transactional_id == NO_TRANSACTIONAL_ID and state.metadata is None):
            return None
        level = BUMPS_EPOCH if bumps else 0
        asked = EndTxnRequest(transactional_id, *named, committed, level, knows_fenced("EndTxn", versions))
        done = settled(protocol, handle_end_txn(coordinator(protocol), state, NUMBER, asked, OWN, START))
        answer: EndTxnResponse = done.answer
        said = TRANSACTIONAL_HOLE if transactional_id else ""
        fields = {"transactional_id": said, "committed": committed, **named.fields()}
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE and bumps:
            constraints += (
                equals("producer_id", id_on_wire(answer.producer_id)),
                equals("producer_epoch", int(answer.producer_epoch)),
            )
        known = "unknown" if state.metadata is None else state.metadata.state.value
        some = f"{'ended' if done.state != state else 'ended before'} {known}"
        request = RequestFields("EndTxn", fields, versions)
        exchange = exchange_of(request, answer.error, some, constraints, since=FIRST_BUMPING if bumps else None)
        if answer.error == Error.INVALID_TXN_STATE:
            exchange = exchange._replace(outcome=f"{exchange.outcome} {known}")
        return _bounded(state, done.state, exchange)

    kind = "commit" if committed else "abort"
    version = ".epoch" if bumps else ""
    return Move(f"{kind}{version}.{name}", words, handle_end_txn, ATOMIC, take)


def _ends() -> Iterator[Move]:
    for committed in (True, False):
        verb = "commits" if committed else "aborts"
        for versions, how in ((Versions(2, BUMPING - 1), ""), (since(BUMPING), ", and is to have the next epoch")):
            for name, words, who in PRODUCERS:
                yield _end(name or "own", f"{words} {verb}{how}", who, committed, versions)
            empty = f"a producer of an empty transactional id {verb}{how}"
            yield _end("empty-id", empty, PRODUCERS[0][2], committed, versions, NO_TRANSACTIONAL_ID)
        old = f"the producer of the epoch before {verb} by an older request"
        yield _end("before.old", old, PRODUCERS[1][2], committed, OF_OLD_CLIENTS)


# ---- looks


def _describe() -> Move:
    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        told = describe_transaction(Error.NONE, TRANSACTIONAL_ID, state.metadata)
        where = "transaction_states[0]"
        found: list[Constraint] = [
            equals("transaction_states[#]", 1),
            equals(f"{where}.error_code", told.error.value),
            equals(f"{where}.transactional_id", TRANSACTIONAL_HOLE),
        ]
        if told.error == Error.NONE:
            own = [one for one in told.partitions if one.topic != CONSUMER_OFFSETS]
            of_groups = len(own) < len(told.partitions)
            begun = AtLeast(f"{where}.transaction_start_time_ms", 0, "the time when the transaction began")
            found += [
                equals(f"{where}.transaction_state", told.state),
                equals(f"{where}.transaction_timeout_ms", told.timeout_ms),
                begun if told.start_ms >= 0 else equals(f"{where}.transaction_start_time_ms", told.start_ms),
                equals(f"{where}.producer_id", id_on_wire(told.producer_id)),
                equals(f"{where}.producer_epoch", int(told.producer_epoch)),
                equals(f"{where}.topics[#]", int(bool(own)) + int(of_groups)),
                equals(f"{where}.topics[#topic='{CONSUMER_OFFSETS}']", int(of_groups)),
            ]
            if of_groups:
                found.append(equals(f"{where}.topics[topic='{CONSUMER_OFFSETS}'].partitions[#]", 1))
            if own:
                listed = f"{where}.topics[topic=@topic].partitions"
                found.append(equals(f"{listed}[#]", len(own)))
                numbers = tuple(one.partition for one in own)
                reason = "the order is free" if len(own) > 1 else ""
                found += [AllowedValues(f"{listed}[{place}]", numbers, reason) for place in range(len(own))]
        request = RequestFields("DescribeTransactions", {"transactional_ids": [TRANSACTIONAL_HOLE]})
        outcome = outcome_of(told.error, told.state)
        return MoveResult(state, Exchange(request, outcome, told.error, constraints=tuple(found), retried=LATER))

    return Move("describe", "ask for the transactional id", describe_transaction, TOLD, take)


DESCRIBE = _describe()


def _setup(state: CoordinatedTransaction, holes: frozenset[str]) -> tuple[Exchange, ...]:
    needs_topic = any(hole in ("topic", "topic_id") for hole in holes)
    topic = (create_topic(TOPIC, partitions=len(PARTITIONS)), look_up_topic(), wait_for_leader(0), wait_for_leader(1))
    return (*(topic if needs_topic else ()), *group_ready(), *coordinator_ready())


def _restart() -> Move:
    """The broker is restarted, and reads the transactional id in its log."""

    def take(protocol: BrokerProtocol, state: CoordinatedTransaction) -> MoveResult | None:
        if state.metadata is None:
            return None
        record = record_of(state.metadata, coordinator(protocol).settings.cluster_level)
        epoch = Epoch(state.coordinator_epoch + 1)
        after = settled(protocol, load_transaction(TRANSACTIONAL_ID, record, epoch, START)).state
        return MoveResult(after, ALIVE)

    return Move("restart", RESTARTED, load_transaction, KEPT, take)


TRANSACTIONAL_IDS = Subject(
    "transactional-ids",
    "producers of a transactional id: their epochs, and the beginning and the end of transactions",
    INITIAL,
    (*_inits(), *_adds(), *_all_offsets(), *_ends(), DESCRIBE),
    _setup,
    {"epochs": MOST_EPOCH + 1, "partitions": len(PARTITIONS)},
    looks=(DESCRIBE,),
    by_release=True,
)

OF_THE_PRODUCER = tuple(
    f"{kind}.{who}" for kind in ("commit", "commit.epoch", "abort", "abort.epoch") for who in ("own", "before")
)
TRANSACTIONAL_IDS_AGAIN = after_restart(
    TRANSACTIONAL_IDS,
    _restart(),
    before=("init.new", "init.own", "add.0", "add-offsets.own", "broker-adds.own", *OF_THE_PRODUCER),
    after=(
        "init.new",
        "init.own",
        "init.before",
        "add.0",
        "add.1",
        "add.before",
        "add-offsets.own",
        "broker-adds.own",
        "verify.own",
        *OF_THE_PRODUCER,
        "describe",
    ),
)
