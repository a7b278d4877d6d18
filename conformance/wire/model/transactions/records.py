"""Transactions in the log of a partition: batches of their producers, markers, and what is read of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    AllowedValues,
    AtLeast,
    Constraint,
    Exchange,
    HasRecords,
    Hole,
    RequestFields,
    equals,
)
from kspec.conformance.wire.model.batches import BatchShape, batch, value_at
from kspec.conformance.wire.model.partition import (
    CURRENT,
    SECOND,
    SELF,
    Led,
    append,
    broker,
    led_partition,
    offsets_of,
    on_wire,
    reply_of,
    topic_ready,
)
from kspec.conformance.wire.model.requests import (
    FETCHED,
    LISTED,
    NOT_READY,
    PRODUCED,
    TOPIC,
    fetch,
    list_offsets,
    produce,
    restarted,
    since,
)
from kspec.conformance.wire.model.restarts import RESTARTED, after_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.conformance.wire.model.transactions.coordinated import (
    AGAIN,
    COORDINATOR_EPOCH,
    LATER,
    NUMBER,
    START,
    TIMEOUT_MS,
    SettledStep,
    coordinator,
    coordinator_ready,
    exchange_of,
    outcome_of,
    settled,
)
from kspec.conformance.wire.model.transactions.identifiers import ATOMIC, BUMPING, FENCED, FIRST_BUMPING, FROM_BROKERS, KEPT
from kspec.conformance.wire.model.transactions.listing import ID_HOLES, IDS
from kspec.impl.records.batch import TRANSACTIONAL
from kspec.impl.records.markers import ABORT, COMMIT
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.effects import AnswerProducer, VerificationAnswer
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.offsets import handle_list_offsets
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.leader.verification import FIRST_THAT_ADDS, FIRST_WITH_ABORTABLE, begin_verification, is_asked
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.roles import become_leader
from kspec.spec.log.batch import Batch, EndMarker
from kspec.spec.log.producers import LAST_SEQUENCE, ProducerEntry, entry_of, next_sequence
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.produce import ACKS_ALL, ProduceRequest, ProduceResponse
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import handle_add_partitions_to_txn
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.ending import handle_end_txn
from kspec.spec.transactions.loading import load_transaction
from kspec.spec.transactions.log.partition import error_after_verification
from kspec.spec.transactions.log.reading import aborted_between
from kspec.spec.transactions.metadata import BUMPS_EPOCH, TransactionState
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.transactions.records import record_of
from kspec.spec.values import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    Epoch,
    Error,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
)

COMMITTED = "a consumer of committed transactions reads what is committed, in order, and nothing that is aborted or open"
VERIFIED = "no batch opens a transaction in a log that the coordinator does not know of"
DESCRIBED = "an operator sees which transactions are open in a log"

NEW, OLD = 0, 1
"""The producers: one whose batches add their partitions (version 2), and one that adds partitions itself."""

NAMES = ("new", "old")
WHOSE = ("a producer of today", "a producer of before KIP-890")
PRODUCERS = (ProducerId(1), ProducerId(2))
PRODUCER_HOLES = (Hole("producer_id"), Hole("producer_id_2"))
PLACE = TopicPartition("topic", 0)
MOST_RECORDS, MOST_INTERLEAVED, MOST_EPOCH, MOST_PLAIN = 3, 4, 1, 1

ITS_OWN = range(COORDINATOR_EPOCH, COORDINATOR_EPOCH + 2)
"""Coordinator epochs of the broker itself, before and after a restart: a case does not know what they are."""

COMMIT_MARK, ABORT_MARK = -2, -3
"""The values of markers in the model's log, where records have their times."""

MARKER_KEYS = {COMMIT_MARK: b"\x00\x00\x00" + bytes([COMMIT]), ABORT_MARK: b"\x00\x00\x00" + bytes([ABORT])}

UNVERIFIED = (Error.TRANSACTION_ABORTABLE, Error.INVALID_TXN_STATE)
"""Errors of a batch whose transaction is not open, for producers of today and of before."""

PRODUCE_AGAIN = (*AGAIN, *NOT_READY, Error.NOT_ENOUGH_REPLICAS)
"""Errors after which a producer sends a batch again: the coordinator could not be asked, or has not finished yet."""


class LogAndProducers(NamedTuple):
    """The partition, and the transactional ids of both producers.

    `ends`: a transaction has ended, and nobody has seen its marker in the log: it may come after the next batch.
    """

    partition: Led = led_partition()
    ids: tuple[CoordinatedTransaction, CoordinatedTransaction] = (
        CoordinatedTransaction(IDS[NEW], COORDINATOR_EPOCH),
        CoordinatedTransaction(IDS[OLD], COORDINATOR_EPOCH),
    )
    ends: bool = False
    plain: int = 0

    def epoch_of(self, who: int) -> ProducerEpoch | None:
        """The present epoch of a producer, if it has one."""
        metadata = self.ids[who].metadata
        return None if metadata is None else metadata.producer_epoch

    def entry_of(self, who: int) -> ProducerEntry:
        """A producer as the leader of the partition knows it."""
        return entry_of(self.partition.producers, PRODUCERS[who])

    def after(self, protocol: BrokerProtocol, who: int, done: SettledStep) -> "LogAndProducers":
        """The state once the coordinator has taken a step: its markers are in the log."""
        partition = self.partition
        for marker in done.markers:
            partition = with_marker(protocol, partition, marker).partition
        ids = (done.state, self.ids[1]) if who == NEW else (self.ids[0], done.state)
        return self._replace(ids=ids, partition=partition, ends=self.ends or bool(done.markers))

    def settled(self) -> "LogAndProducers":
        """The same with guards that are counted anew: nobody sees how many there were before."""
        transactions = self.partition.transactions
        known = tuple(one._replace(guard=number) for number, one in enumerate(transactions.verifications, 1))
        counted = transactions._replace(verifications=known, guards=len(known))
        return self._replace(partition=self.partition._replace(transactions=counted))


class MarkerOutcome(NamedTuple):
    """The partition after a marker, and what its leader answers."""

    partition: Led
    error: Error


def with_marker(protocol: BrokerProtocol, partition: Led, marker: TransactionMarker) -> MarkerOutcome:
    """Give a marker to the leader."""
    ends = EndMarker(marker.committed, marker.coordinator_epoch)
    value = COMMIT_MARK if marker.committed else ABORT_MARK
    sent = Batch(
        1,
        payload=value,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        marker=ends,
        is_transactional=True,
    )
    request = ProduceRequest(0, ACKS_ALL, sent, transaction_version=marker.client_level)
    step = handle_produce(broker(protocol), partition, request, MonotonicMs(0))
    (answer,) = [one.response for one in step.effects if isinstance(one, AnswerProducer)]
    return MarkerOutcome(step.state, answer.error)


def said_by(who: int, epoch: int, prefix: str = "") -> dict[str, Any]:
    """A producer's id and epoch as fields of a request."""
    return {f"{prefix}producer_id": PRODUCER_HOLES[who], f"{prefix}producer_epoch": epoch}


# ---- to the coordinator


def _init(who: int) -> Move:
    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        if state.ends:
            return None
        asked = InitProducerIdRequest(transactional_id=IDS[who], timeout_ms=TIMEOUT_MS)
        step = handle_init_producer_id(coordinator(protocol), state.ids[who], NUMBER, asked, PRODUCERS[who], START)
        done = settled(protocol, step)
        answer: InitProducerIdResponse = done.answer
        after = state.after(protocol, who, done)
        if _is_beyond(after):
            return None
        is_first = state.ids[who].metadata is None
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE:
            told = AtLeast("producer_id", 0, "any id will do") if is_first else equals("producer_id", PRODUCER_HOLES[who])
            constraints += (told, equals("producer_epoch", int(answer.producer_epoch)))
        kept = ((PRODUCER_HOLES[who].name, "producer_id"),) if is_first else ()
        fields = {"transactional_id": ID_HOLES[who], "transaction_timeout_ms": TIMEOUT_MS}
        request = RequestFields("InitProducerId", fields | {"producer_id": -1, "producer_epoch": -1})
        return MoveResult(after, exchange_of(request, answer.error, "an id", constraints, kept=kept))

    return Move(f"init.{NAMES[who]}", f"{WHOSE[who]} asks for an id", handle_init_producer_id, FENCED, take)


def _is_beyond(state: LogAndProducers) -> bool:
    epochs = [state.epoch_of(who) or 0 for who in (NEW, OLD)]
    return max(epochs) > MOST_EPOCH


def _add() -> Move:
    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        epoch = state.epoch_of(OLD)
        if epoch is None or state.ends:
            return None
        asked = AddPartitionsToTxnRequest(IDS[OLD], PRODUCERS[OLD], epoch, frozenset({PLACE}))
        done = settled(protocol, handle_add_partitions_to_txn(coordinator(protocol), state.ids[OLD], NUMBER, asked, START))
        answer: AddPartitionsToTxnResponse = done.answer
        topics = [{"name": TOPIC, "partitions": [PLACE.partition]}]
        fields = {"v3_and_below_transactional_id": ID_HOLES[OLD], "v3_and_below_topics": topics}
        where = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
        error = answer.partitions[0][1]
        said = said_by(OLD, epoch, "v3_and_below_")
        request = RequestFields("AddPartitionsToTxn", fields | said, Versions(2, FROM_BROKERS - 1))
        exchange = exchange_of(request, error, "added", (equals(where, error.value),))
        return MoveResult(state.after(protocol, OLD, done), exchange)

    return Move("add.old", f"{WHOSE[OLD]} adds the partition", handle_add_partitions_to_txn, ATOMIC, take)


def _end(who: int, committed: bool) -> Move:
    bumps = who == NEW

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        epoch, metadata = state.epoch_of(who), state.ids[who].metadata
        if epoch is None or state.ends or metadata is None or metadata.state != TransactionState.ONGOING:
            return None
        asked = EndTxnRequest(IDS[who], PRODUCERS[who], epoch, committed, BUMPS_EPOCH if bumps else 0)
        done = settled(protocol, handle_end_txn(coordinator(protocol), state.ids[who], NUMBER, asked, PRODUCERS[who], START))
        answer: EndTxnResponse = done.answer
        after = state.after(protocol, who, done)
        if _is_beyond(after):
            return None
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if bumps and answer.error == Error.NONE:
            constraints += (equals("producer_id", PRODUCER_HOLES[who]), equals("producer_epoch", int(answer.producer_epoch)))
        fields = {"transactional_id": ID_HOLES[who], "committed": committed, **said_by(who, epoch)}
        request = RequestFields("EndTxn", fields, since(BUMPING) if bumps else Versions(2, BUMPING - 1))
        exchange = exchange_of(request, answer.error, "ended", constraints, since=FIRST_BUMPING if bumps else None)
        return MoveResult(after, exchange)

    verb = "commit" if committed else "abort"
    return Move(f"{verb}.{NAMES[who]}", f"{WHOSE[who]} {verb}s", handle_end_txn, ATOMIC, take)


# ---- batches


class SentBatch(NamedTuple):
    """A batch: its producer's epoch, and its first sequence number."""

    epoch: int
    sequence: int


Chosen = Callable[[LogAndProducers, int], SentBatch | None]


def _next_in(state: LogAndProducers, who: int, epoch: int, ahead: int = 0) -> SentBatch:
    entry = state.entry_of(who)
    following = next_sequence(entry) if entry.producer_epoch == epoch else 0
    return SentBatch(epoch, following + ahead)


def _relative(by: int, ahead: int = 0) -> Chosen:
    """The next batch of an epoch so much later, with a gap before it or not."""

    def choose(state: LogAndProducers, who: int) -> SentBatch | None:
        epoch = state.epoch_of(who)
        if epoch is None or epoch + by < 0:
            return None
        return _next_in(state, who, epoch + by, ahead)

    return choose


def _again(state: LogAndProducers, who: int) -> SentBatch | None:
    """The last batch that the leader knows."""
    entry = state.entry_of(who)
    return SentBatch(entry.producer_epoch, entry.last_sequence) if entry.batches else None


def _at_last(state: LogAndProducers, who: int) -> SentBatch | None:
    epoch = state.epoch_of(who)
    return None if epoch is None or state.entry_of(who).batches else SentBatch(epoch, LAST_SEQUENCE)


BATCHES: tuple[tuple[str, str, Chosen], ...] = (
    ("next", "its next batch", _relative(0)),
    ("again", "its last batch again", _again),
    ("gap", "a batch after a gap", _relative(0, ahead=1)),
    ("former", "a batch of the epoch before", _relative(-1)),
    ("later", "a batch of a later epoch", _relative(1)),
    ("last-sequence", "a first batch with the last sequence number there is", _at_last),
)

VERSIONS = {
    "adds": since(FIRST_THAT_ADDS),
    "knows-abortable": Versions(FIRST_WITH_ABORTABLE, FIRST_THAT_ADDS - 1),
    "before": Versions(3, FIRST_WITH_ABORTABLE - 1),
}


def _send(name: str, words: str, choose: Chosen, who: int, kind: str, is_transactional: bool = True) -> Move:
    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        sent = choose(state, who)
        if sent is None or state.ends:
            return None
        time = int(state.partition.local.log.end_offset)
        after, answer = _sent(protocol, state, who, sent, kind, is_transactional, time)
        after = after.settled()
        if _is_beyond(after):
            return None
        stored = after.partition.local.log != state.partition.local.log
        flags = TRANSACTIONAL if is_transactional else 0
        shape = BatchShape(1, time, 0, PRODUCER_HOLES[who], sent.epoch, sent.sequence, flags=flags)
        request = produce(ACKS_ALL, batch(shape), VERSIONS[kind], transactional_id=ID_HOLES[who])
        constraints: tuple[Constraint, ...] = (_error_told(answer.error),)
        if answer.error == Error.NONE:
            constraints += (equals(f"{PRODUCED}.base_offset", answer.base_offset),)
        outcome = outcome_of(answer.error, "appended" if stored else "duplicate")
        first = FIRST_BUMPING if kind == "adds" else None
        exchange = Exchange(request, outcome, answer.error, constraints=constraints, retried=PRODUCE_AGAIN, since=first)
        return MoveResult(after, exchange)

    plain = "" if is_transactional else ".no-transaction"
    version = "" if kind in ("adds", "knows-abortable") else f".{kind}"
    told = f"{WHOSE[who]} sends {words}" + ("" if is_transactional else ", outside a transaction")
    return Move(f"send.{NAMES[who]}.{name}{plain}{version}", told, handle_produce, VERIFIED, take)


def _error_told(error: Error) -> Constraint:
    """The error of a batch. Kafka: `AddPartitionsToTxnManager`, whose questions of one request share an operation."""
    where = f"{PRODUCED}.error_code"
    if error not in UNVERIFIED:
        return equals(where, error.value)
    reason = "Kafka asks the coordinator for several producers at once, and answers all of them as the first one understands"
    return AllowedValues(where, tuple(one.value for one in UNVERIFIED), reason)


def _sent(
    protocol: BrokerProtocol,
    state: LogAndProducers,
    who: int,
    sent: SentBatch,
    kind: str,
    is_transactional: bool,
    time: int,
) -> tuple[LogAndProducers, ProduceResponse]:
    """A batch on its way: the leader may ask the coordinator first."""
    adds = kind == "adds"
    given = Batch(
        1,
        payload=time,
        producer_id=PRODUCERS[who],
        producer_epoch=ProducerEpoch(sent.epoch),
        first_sequence=sent.sequence,
        is_transactional=is_transactional,
    )
    guard = 0
    if is_transactional:
        begun = begin_verification(broker(protocol), state.partition, given, adds)
        verification = reply_of(begun.effects, VerificationAnswer)
        state = state._replace(partition=begun.state)
        if verification.error != Error.NONE:
            return state, ProduceResponse(verification.error)
        if is_asked(verification):
            guard = verification.guard
            level = BUMPS_EPOCH if adds else 0
            whose = IDS[who], PRODUCERS[who], ProducerEpoch(sent.epoch)
            asked = AddPartitionsToTxnRequest(*whose, frozenset({PLACE}), level, verify_only=not adds)
            done = settled(
                protocol, handle_add_partitions_to_txn(coordinator(protocol), state.ids[who], NUMBER, asked, START)
            )
            state = state.after(protocol, who, done)
            told: Error = done.answer.partitions[0][1]
            error = error_after_verification(told, adds, kind != "before")
            if error != Error.NONE:
                return state, ProduceResponse(error)
    request = ProduceRequest(0, ACKS_ALL, given, guard=guard)
    step = handle_produce(broker(protocol), state.partition, request, MonotonicMs(0))
    (answer,) = [one.response for one in step.effects if isinstance(one, AnswerProducer)]
    return state._replace(partition=step.state), answer


def _sends() -> Iterator[Move]:
    for who, kind in ((NEW, "adds"), (OLD, "knows-abortable")):
        for name, words, choose in BATCHES if who == NEW else BATCHES[:4]:
            yield _send(name, words, choose, who, kind)
        yield _send("next", "its next batch", _relative(0), who, kind, is_transactional=False)
    yield _send("next", "its next batch, by an older request", _relative(0), OLD, "before")


def _plain() -> Move:
    """A record of a producer that has nothing to do with transactions."""

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        if state.ends or state.plain >= MOST_PLAIN:
            return None
        time = int(state.partition.local.log.end_offset)
        done = append(protocol, state.partition, ACKS_ALL, Batch(1, payload=time))
        after = state._replace(partition=done.partition, plain=state.plain + 1)
        if done.answer is None or _is_beyond(after):
            return None
        constraints = (
            equals(f"{PRODUCED}.error_code", done.answer.error.value),
            equals(f"{PRODUCED}.base_offset", done.answer.base_offset),
        )
        request = produce(ACKS_ALL, batch(BatchShape(1, time, 0)))
        return MoveResult(after, Exchange(request, "appended", done.answer.error, constraints=constraints))

    return Move("produce", "somebody else produces a record", handle_produce, COMMITTED, take)


# ---- looks


def _read(name: str, words: str, place: Callable[[Led], Offset | None], committed: bool) -> Move:
    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        offset = place(state.partition)
        if offset is None:
            return None
        position = FetchPosition(NO_EPOCH, offset, NO_EPOCH)
        request = FetchRequest(CONSUMER, position, read_committed=committed, has_client_metadata=True)
        step = handle_fetch(broker(protocol), state.partition, request, MonotonicMs(0))
        answer = reply_of(step.effects, FetchResponse)
        told = _aborted_told(protocol, state.partition, answer, committed)
        constraints = (*_fetch_constraints(state.partition, answer), *told)
        last = [one.producer_id for one in state.partition.transactions.ongoing]
        outcome = outcome_of(answer.error, f"{len(answer.records)} records, {len(last)} open")
        sent = fetch(offset, versions=since(4), isolation_level=int(committed))
        exchange = Exchange(sent, outcome, answer.error, constraints=constraints, retried=LATER)
        return MoveResult(state._replace(ends=state.ends and name != "all"), exchange)

    return Move(f"read.{name}", f"fetch {words}", handle_fetch, COMMITTED, take)


def _fetch_constraints(partition: Led, answer: FetchResponse) -> tuple[Constraint, ...]:
    if answer.error != Error.NONE:
        return (equals(f"{FETCHED}.error_code", answer.error.value),)
    records = answer.records
    epochs = tuple(on_wire(one.leader_epoch) for one in records)
    known = [int(one.value) for one in records]  # type: ignore[union-attr]
    values = tuple(None if one in MARKER_KEYS else value_at(one) for one in known)
    times = tuple(None if one in MARKER_KEYS else Hole("now", one) for one in known)
    keys = tuple(MARKER_KEYS.get(one, b"k") for one in known)
    return (
        equals(f"{FETCHED}.error_code", 0),
        equals(f"{FETCHED}.high_watermark", answer.high_watermark),
        equals(f"{FETCHED}.last_stable_offset", answer.last_stable_offset),
        equals(f"{FETCHED}.log_start_offset", answer.log_start_offset),
        HasRecords(f"{FETCHED}.records", offsets_of(answer.base_offset, len(records)), epochs, values, times, keys),
    )


def _aborted_told(
    protocol: BrokerProtocol, partition: Led, answer: FetchResponse, committed: bool
) -> tuple[Constraint, ...]:
    """Constraints on the list of aborted transactions.

    It has all that concern the records. Kafka names those, too, that begin behind them.
    """
    listed = f"{FETCHED}.aborted_transactions"
    if answer.error != Error.NONE:
        return ()
    if not committed:
        return (equals(listed, None),)
    rules, known = protocol.transactions, partition.transactions.aborted
    end = Offset(answer.base_offset + len(answer.records))
    needed = aborted_between(rules, known, answer.base_offset, end) if answer.records else ()
    more = aborted_between(rules, known, answer.base_offset, partition.local.log.end_offset) if answer.records else ()
    reason = "it may name transactions that begin behind the records" if len(more) > len(needed) else ""
    counts = tuple(dict.fromkeys((len(needed), len(more))))
    found: list[Constraint] = [AllowedValues(f"{listed}[#]", counts, reason)]
    for who, producer_id in enumerate(PRODUCERS):
        firsts = tuple(one.first_offset for one in needed if one.producer_id == producer_id)
        if firsts:
            where = f"{listed}[producer_id=@{PRODUCER_HOLES[who].name}]"
            found.append(AllowedValues(f"{where}.first_offset", firsts, "their order is free" if len(firsts) > 1 else ""))
    return tuple(found)


def _latest(committed: bool) -> Move:
    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        isolation = Isolation.COMMITTED_TRANSACTIONS if committed else Isolation.HIGH_WATERMARK
        request = ListOffsetsRequest(OffsetSpec.LATEST, NO_EPOCH, isolation)
        step = handle_list_offsets(broker(protocol), state.partition, request, MonotonicMs(0))
        answer: ListOffsetsResponse = reply_of(step.effects, ListOffsetsResponse)
        constraints = (equals(f"{LISTED}.error_code", answer.error.value), equals(f"{LISTED}.offset", answer.offset))
        sent = list_offsets(-1, versions=since(2), isolation_level=int(committed))
        is_open = bool(state.partition.transactions.ongoing)
        outcome = outcome_of(answer.error, "an offset, one open" if is_open else "an offset")
        return MoveResult(state, Exchange(sent, outcome, answer.error, constraints=constraints, retried=LATER))

    name, words = ("committed", ", committed transactions only") if committed else ("all", "")
    return Move(f"latest.{name}", f"ask for the latest offset{words}", handle_list_offsets, COMMITTED, take)


def _describe() -> Move:
    """The producers that the leader remembers, and where their open transactions begin."""

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        producers = state.partition.producers
        where = "topics[0].partitions[0]"
        constraints: list[Constraint] = [
            equals(f"{where}.error_code", 0),
            equals(f"{where}.active_producers[#]", len(producers)),
        ]
        for entry in producers:
            one = f"{where}.active_producers[producer_id=@{PRODUCER_HOLES[PRODUCERS.index(entry.producer_id)].name}]"
            ended = AtLeast(f"{one}.coordinator_epoch", 0, "the leader epoch of the coordinator's log")
            constraints += [
                equals(f"{one}.producer_epoch", entry.producer_epoch),
                equals(f"{one}.last_sequence", entry.last_sequence),
                equals(f"{one}.current_txn_start_offset", entry.transaction_start),
                ended if entry.coordinator_epoch in ITS_OWN else equals(f"{one}.coordinator_epoch", entry.coordinator_epoch),
            ]
        request = RequestFields("DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]})
        is_open = sum(entry.transaction_start != UNKNOWN_OFFSET for entry in producers)
        outcome = f"{len(producers)} producers, {is_open} open"
        return MoveResult(state, Exchange(request, outcome, constraints=tuple(constraints), retried=LATER))

    return Move("describe-producers", "ask which producers are known", handle_produce, DESCRIBED, take)


def _stable(partition: Led) -> Offset | None:
    transactions = partition.transactions
    local = partition.local
    if not transactions.ongoing:
        return None
    return Offset(min(one.first_offset for one in transactions.ongoing)) if local.log.end_offset else None


READ_ALL = _read("all", "all records", lambda partition: Offset(0), committed=False)
READ_COMMITTED = _read("committed", "all records of committed transactions", lambda partition: Offset(0), committed=True)
LATEST_COMMITTED, DESCRIBE_PRODUCERS = _latest(committed=True), _describe()
LOOKS = (READ_ALL, READ_COMMITTED, LATEST_COMMITTED, DESCRIBE_PRODUCERS)


def _setup(state: LogAndProducers, holes: frozenset[str]) -> tuple[Exchange, ...]:
    needed = frozenset(one for one in holes if not one.startswith("producer_id"))
    coordinators = (one for hole in ID_HOLES for one in coordinator_ready(hole))
    return (*topic_ready((), needed), *coordinators)


def _first(move: Move, who: int) -> Move:
    """The move, for a transactional id that nobody has had."""

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        return None if state.ids[who].metadata is not None else move.take(protocol, state)

    return move._replace(take=take)


def _within(most: int, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    """The moves, while the log has at most so many records."""

    def within(move: Move) -> Move:
        def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
            taken: Any = move.take(protocol, state)
            return None if taken is None or taken.state.partition.local.log.end_offset > most else taken

        return move._replace(take=take)

    return tuple(map(within, moves))


INITS = (_init(NEW), _init(OLD))
SENDS = tuple(_sends())
ENDS = tuple(_end(who, committed) for who in (NEW, OLD) for committed in (True, False))
SECOND_RECORD = _read(
    "inside",
    "from the second record, of committed transactions",
    lambda one: Offset(1) if one.local.log.end_offset > 1 else None,
    committed=True,
)
FROM_OPEN = _read("from-open", "from where a transaction is open, of committed transactions", _stable, committed=True)
MORE_LOOKS = (*LOOKS, SECOND_RECORD, FROM_OPEN, _latest(committed=False))


def _of(who: int, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    return tuple(one for one in moves if f".{NAMES[who]}" in one.name)


TRANSACTIONS = Subject(
    "transactions",
    "transactions of a producer whose batches add their partition (KIP-890), and what is read of them",
    LogAndProducers(),
    _within(MOST_RECORDS, (INITS[NEW], *_of(NEW, SENDS), *_of(NEW, ENDS), _plain(), *MORE_LOOKS)),
    _setup,
    {"records": MOST_RECORDS, "epochs": MOST_EPOCH + 1},
    looks=LOOKS,
    by_release=True,
)
ADDED_TRANSACTIONS = replace(
    TRANSACTIONS,
    name="added-transactions",
    meaning="transactions of a producer that adds partitions itself, as all did before KIP-890",
    moves=_within(MOST_RECORDS, (INITS[OLD], _add(), *_of(OLD, SENDS), *_of(OLD, ENDS), _plain(), *MORE_LOOKS)),
    most_moves=8,
)
TWO_PRODUCERS = tuple(_first(one, who) for who, one in enumerate(INITS))
INTERLEAVED = replace(
    TRANSACTIONS,
    name="interleaved-transactions",
    meaning="transactions of two producers at once in one partition",
    moves=_within(
        MOST_INTERLEAVED,
        (*TWO_PRODUCERS, _add(), *(one for one in SENDS if one.name.endswith(".next")), *ENDS, *MORE_LOOKS),
    ),
    bounds={"records": MOST_INTERLEAVED, "epochs": MOST_EPOCH + 1, "producers": 2},
    most_moves=11,
)


def _restart() -> Move:
    """The broker is restarted: it reads transactional ids in their log, and producers in the files of the partition."""

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        if state.ends or state.partition.leader_epoch != CURRENT:
            return None
        registration = PartitionRegistration((SELF,), frozenset({SELF}), SELF, SECOND, PartitionEpoch(1))
        partition = become_leader(broker(protocol), state.partition, registration, MonotonicMs(0)).state
        known = partition.transactions._replace(verifications=(), guards=0)
        ids = (_loaded(protocol, state.ids[NEW]), _loaded(protocol, state.ids[OLD]))
        after = state._replace(partition=partition._replace(transactions=known), ids=ids)
        return MoveResult(after, restarted("epoch_1", partition.local.log.end_offset))

    return Move("restart", RESTARTED, become_leader, KEPT, take)


def _loaded(protocol: BrokerProtocol, state: CoordinatedTransaction) -> CoordinatedTransaction:
    if state.metadata is None:
        return state
    record = record_of(state.metadata, coordinator(protocol).settings.cluster_level)
    epoch = Epoch(state.coordinator_epoch + 1)
    return settled(protocol, load_transaction(state.transactional_id, record, epoch, START)).state


AFTER_LOOKS = ("read.all", "read.committed", "latest.committed", "describe-producers")
TRANSACTIONS_AGAIN = after_restart(
    TRANSACTIONS,
    _restart(),
    before=("init.new", "send.new.next", "commit.new", "abort.new", "read.all"),
    after=("send.new.next", "send.new.again", "send.new.gap", "send.new.former", "commit.new", "abort.new", *AFTER_LOOKS),
)
ADDED_TRANSACTIONS_AGAIN = replace(
    after_restart(
        ADDED_TRANSACTIONS,
        _restart(),
        before=("init.old", "add.old", "send.old.next", "commit.old", "abort.old", "read.all"),
        after=("add.old", "send.old.next", "send.old.again", "commit.old", "abort.old", *AFTER_LOOKS),
    ),
    most_moves=11,
)
