"""Offsets of a group that a producer commits in its transaction, and what of them others read."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import AllowedValues, AtLeast, Constraint, Exchange, Hole, RequestFields, equals
from kspec.conformance.wire.model.groups.group import COORDINATOR, GROUP, GROUP_HOLE, group_ready
from kspec.conformance.wire.model.partition import Led, broker, led_partition, reply_of, topic_ready
from kspec.conformance.wire.model.requests import NO_COORDINATOR, TOPIC, TOPIC_ID, since
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
from kspec.conformance.wire.model.transactions.identifiers import ATOMIC, BUMPING, FENCED, FIRST_BUMPING
from kspec.conformance.wire.model.transactions.listing import ID_HOLES, IDS
from kspec.conformance.wire.model.transactions.records import UNVERIFIED, with_marker
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.effects import AnswerProducer, VerificationAnswer
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.leader.verification import batch_of_offsets, begin_verification, is_asked
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.effects import PersistTransactionalOffsets
from kspec.spec.coordinator.group import Group, absent
from kspec.spec.coordinator.loading import replay_entry
from kspec.spec.coordinator.offsets import (
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
    handle_txn_offset_commit,
    txn_commit_refused,
)
from kspec.spec.coordinator.records import EndOfTransaction
from kspec.spec.coordinator.refusals import answer_for_verification
from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.messages.produce import ACKS_ALL, ProduceRequest
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import CONSUMER_OFFSETS, handle_add_offsets_to_txn, handle_add_partitions_to_txn
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.ending import handle_end_txn
from kspec.spec.transactions.log.partition import OpenTransaction
from kspec.spec.transactions.metadata import BUMPS_EPOCH, TransactionState
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.values import (
    NO_EPOCH,
    NO_GENERATION,
    NO_MEMBER_ID,
    UNKNOWN_OFFSET,
    Error,
    Generation,
    MonotonicMs,
    Offset,
    ProducerEpoch,
    ProducerId,
)

ONCE = "what a transaction has read counts as read once it is committed, and not at all if it is aborted"
STABLE = "who wants stable offsets waits for the transaction that commits them"
TRANSACTIONAL_ID, ID_HOLE = IDS[1], ID_HOLES[1]
PRODUCER = ProducerId(1)
PRODUCER_HOLE = Hole("producer_id")
MOST_OFFSET, MOST_EPOCH = 2, 1
LONGEST_METADATA = COORDINATOR.settings.max_metadata_size
WHERE = "topics[0].partitions[0]"
WITH_STABLE, WITH_MEMBER, WITH_TOPIC_ID = 7, 3, 6
"""The first version of OffsetFetch that may want stable offsets; of TxnOffsetCommit that names a member; and topic ids."""

VERSIONS = {"": Versions(5, 5), ".checked": Versions(4, 4), ".before": Versions(0, 3), ".newest": since(6)}
COMMIT_AGAIN = (*AGAIN, Error.NOT_ENOUGH_REPLICAS)
"""Errors after which a producer commits again: the coordinator could not be asked, or has not finished yet."""

PARTITION = (OffsetFetchPartition("topic", 0),)


EMPTY = led_partition()


class OffsetsState(NamedTuple):
    """The group, the transactional id, and the log that keeps the offsets.

    `last`: the largest offset that was committed. `ends`: a transaction has ended, and nobody has seen it.
    """

    group: Group = absent(GROUP)
    transaction: CoordinatedTransaction = CoordinatedTransaction(TRANSACTIONAL_ID, COORDINATOR_EPOCH)
    log: Led = led_partition()
    last: int = 0
    ends: bool = False

    @property
    def epoch(self) -> ProducerEpoch | None:
        """The producer's present epoch."""
        return None if self.transaction.metadata is None else self.transaction.metadata.producer_epoch

    def after(self, protocol: BrokerProtocol, done: SettledStep) -> "OffsetsState":
        """The state once the coordinator of transactions has taken a step: the group has its markers."""
        group, log = self.group, self.log
        for marker in done.markers:
            log = with_marker(protocol, log, marker).partition
            group = replay_entry(group, EndOfTransaction(marker.producer_id, marker.committed))
        return self._replace(transaction=done.state, group=group, log=log, ends=self.ends or bool(done.markers)).settled()

    def settled(self) -> "OffsetsState":
        """The same, without what nobody sees: how long the log is, and how many verifications there were."""
        transactions = self.log.transactions
        verifications = tuple(one._replace(guard=number) for number, one in enumerate(transactions.verifications, 1))
        is_open = bool(transactions.ongoing)
        begin = Offset(0) if is_open else UNKNOWN_OFFSET
        left = transactions._replace(
            producers=tuple(one._replace(batches=(), transaction_start=begin) for one in transactions.producers),
            ongoing=(OpenTransaction(Offset(0), PRODUCER),) if is_open else (),
            unreplicated=(),
            aborted=(),
            verifications=verifications,
            guards=len(verifications),
        )
        return self._replace(log=EMPTY._replace(transactions=left))


def _said(epoch: int) -> dict[str, Any]:
    return {"producer_id": PRODUCER_HOLE, "producer_epoch": epoch}


# ---- the producer


def _init() -> Move:
    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        if state.ends:
            return None
        asked = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, timeout_ms=TIMEOUT_MS)
        step = handle_init_producer_id(coordinator(protocol), state.transaction, NUMBER, asked, PRODUCER, START)
        done = settled(protocol, step)
        answer: InitProducerIdResponse = done.answer
        after = state.after(protocol, done)
        if (after.epoch or 0) > MOST_EPOCH:
            return None
        is_first = state.epoch is None
        constraints: tuple[Constraint, ...] = (equals("error_code", answer.error.value),)
        if answer.error == Error.NONE:
            told = AtLeast("producer_id", 0, "any id will do") if is_first else equals("producer_id", PRODUCER_HOLE)
            constraints += (told, equals("producer_epoch", int(answer.producer_epoch)))
        kept = (("producer_id", "producer_id"),) if is_first else ()
        fields = {"transactional_id": ID_HOLE, "transaction_timeout_ms": TIMEOUT_MS, "producer_id": -1, "producer_epoch": -1}
        request = RequestFields("InitProducerId", fields)
        return MoveResult(after, exchange_of(request, answer.error, "an id", constraints, kept=kept))

    return Move("init", "a producer of a transactional id asks for an id", handle_init_producer_id, FENCED, take)


def _add() -> Move:
    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        epoch = state.epoch
        if epoch is None or state.ends:
            return None
        asked = AddOffsetsToTxnRequest(TRANSACTIONAL_ID, PRODUCER, epoch, GROUP)
        done = settled(protocol, handle_add_offsets_to_txn(coordinator(protocol), state.transaction, NUMBER, asked, START))
        answer: AddOffsetsToTxnResponse = done.answer
        fields = {"transactional_id": ID_HOLE, "group_id": GROUP_HOLE, **_said(epoch)}
        request = RequestFields("AddOffsetsToTxn", fields, since(2))
        exchange = exchange_of(request, answer.error, "added", (equals("error_code", answer.error.value),))
        return MoveResult(state.after(protocol, done), exchange)

    return Move("add-offsets", "a producer adds the offsets of the group", handle_add_offsets_to_txn, ATOMIC, take)


def _end(committed: bool, bumps: bool) -> Move:
    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        epoch, metadata = state.epoch, state.transaction.metadata
        if epoch is None or metadata is None or state.ends or metadata.state != TransactionState.ONGOING:
            return None
        asked = EndTxnRequest(TRANSACTIONAL_ID, PRODUCER, epoch, committed, BUMPS_EPOCH if bumps else 0)
        step = handle_end_txn(coordinator(protocol), state.transaction, NUMBER, asked, PRODUCER, START)
        done = settled(protocol, step)
        answer: EndTxnResponse = done.answer
        after = state.after(protocol, done)
        if (after.epoch or 0) > MOST_EPOCH:
            return None
        fields = {"transactional_id": ID_HOLE, "committed": committed, **_said(epoch)}
        request = RequestFields("EndTxn", fields, since(BUMPING) if bumps else Versions(2, BUMPING - 1))
        constraints = (equals("error_code", answer.error.value),)
        first = FIRST_BUMPING if bumps else None
        done_with = "ended with offsets" if state.group.pending_offsets else "ended"
        return MoveResult(after, exchange_of(request, answer.error, done_with, constraints, since=first))

    verb = "commit" if committed else "abort"
    told = f"a producer {verb}s" + (", and is to have the next epoch" if bumps else "")
    return Move(f"{verb}{'.epoch' * bumps}", told, handle_end_txn, ATOMIC, take)


# ---- TxnOffsetCommit


def _commit(name: str, words: str, kind: str, back: int = 0, generation: int = NO_GENERATION, metadata: str = "") -> Move:
    """`back`: how far the epoch lies before the present one."""
    versions = VERSIONS[kind]
    if generation != NO_GENERATION:
        versions = versions._replace(first=max(versions.first, WITH_MEMBER))
    adds, knows_abortable = versions.first >= 5, versions.first >= 4

    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        epoch = state.epoch
        if epoch is None or epoch - back < 0 or state.ends or state.last >= MOST_OFFSET:
            return None
        offset = Offset(state.last + 1)
        request = TxnOffsetCommitRequest(
            TRANSACTIONAL_ID,
            GROUP,
            PRODUCER,
            ProducerEpoch(epoch - back),
            (OffsetToCommit("topic", 0, offset, NO_EPOCH, metadata),),
            Generation(generation),
            reports_missing_group=versions.first >= WITH_TOPIC_ID,
        )
        after, error = _committed(protocol, state, request, adds, knows_abortable)
        if error == Error.NONE:
            after = after._replace(last=int(offset))
        partition = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": metadata,
        }
        fields = {
            "transactional_id": ID_HOLE,
            "group_id": GROUP_HOLE,
            **_said(epoch - back),
            "generation_id_or_member_epoch": generation,
            "member_id": "",
            "topics": [{"name": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
        }
        constraint: Constraint = equals(f"{WHERE}.error_code", error.value)
        if error in UNVERIFIED:
            reason = "Kafka asks for several producers at once, and answers all of them as the first one understands"
            constraint = AllowedValues(f"{WHERE}.error_code", tuple(one.value for one in UNVERIFIED), reason)
        sent = RequestFields("TxnOffsetCommit", fields, versions)
        first = "4.4" if kind == ".newest" else FIRST_BUMPING if adds else None
        outcome = outcome_of(error, "committed")
        exchange = Exchange(sent, outcome, error, constraints=(constraint,), retried=COMMIT_AGAIN, since=first)
        return MoveResult(after.settled(), exchange)

    return Move(f"txn-commit.{name}{kind}", words, handle_txn_offset_commit, ONCE, take)


def _committed(
    protocol: BrokerProtocol, state: OffsetsState, request: TxnOffsetCommitRequest, adds: bool, knows_abortable: bool
) -> tuple[OffsetsState, Error]:
    """Offsets on their way: the leader of their log may ask the coordinator of transactions first."""
    sent = batch_of_offsets(request.producer_id, request.producer_epoch)
    begun = begin_verification(broker(protocol), state.log, sent, adds)
    verification = reply_of(begun.effects, VerificationAnswer)
    state, error = state._replace(log=begun.state), verification.error
    if is_asked(verification):
        offsets = coordinator(protocol).settings.offsets_partitions
        place = frozenset({TopicPartition(CONSUMER_OFFSETS, partition_for(GROUP, offsets))})
        whose = TRANSACTIONAL_ID, request.producer_id, request.producer_epoch
        asked = AddPartitionsToTxnRequest(*whose, place, BUMPS_EPOCH if adds else 0, verify_only=not adds)
        done = settled(
            protocol, handle_add_partitions_to_txn(coordinator(protocol), state.transaction, NUMBER, asked, START)
        )
        state, error = state.after(protocol, done), done.answer.partitions[0][1]
    if error != Error.NONE:
        refused = txn_commit_refused(request, answer_for_verification(error, knows_abortable))
        return state, refused.partitions[0].error
    handled = handle_txn_offset_commit(COORDINATOR, state.group, request, START)
    answer = reply_of(handled.effects, TxnOffsetCommitResponse)
    if any(isinstance(effect, PersistTransactionalOffsets) for effect in handled.effects):
        appended = ProduceRequest(0, ACKS_ALL, sent, guard=verification.guard)
        written = handle_produce(broker(protocol), state.log, appended, MonotonicMs(0))
        (stored,) = [one.response for one in written.effects if isinstance(one, AnswerProducer)]
        if stored.error != Error.NONE:
            return state, stored.error
        state = state._replace(log=written.state, group=handled.state)
    return state, answer.partitions[0].error


# ---- others


def _plain_commit() -> Move:
    """Somebody commits an offset outside a transaction."""

    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        if state.ends or state.last >= MOST_OFFSET:
            return None
        offset = Offset(state.last + 1)
        request = OffsetCommitRequest(
            GROUP, (OffsetToCommit("topic", 0, offset, NO_EPOCH, ""),), NO_GENERATION, NO_MEMBER_ID
        )
        step = handle_offset_commit(COORDINATOR, state.group, request, START)
        answer = reply_of(step.effects, OffsetCommitResponse)
        error = answer.partitions[0].error
        partition = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        fields = {
            "group_id": GROUP_HOLE,
            "generation_id_or_member_epoch": NO_GENERATION,
            "member_id": "",
            "topics": [{"name": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
        }
        exchange = Exchange(
            RequestFields("OffsetCommit", fields, since(6)),
            outcome_of(error, "committed"),
            error,
            constraints=(equals(f"{WHERE}.error_code", error.value),),
            retried=NO_COORDINATOR,
        )
        return MoveResult(state._replace(group=step.state, last=int(offset)), exchange)

    return Move("commit-offset", "somebody commits an offset outside the transaction", handle_offset_commit, ONCE, take)


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        if state.ends:
            return None
        step = handle_offset_delete(COORDINATOR, state.group, OffsetDeleteRequest(GROUP, PARTITION), START)
        answer = reply_of(step.effects, OffsetDeleteResponse)
        error = answer.error if answer.error != Error.NONE else answer.partitions[0].error
        where = "error_code" if answer.error != Error.NONE else f"{WHERE}.error_code"
        fields = {"group_id": GROUP_HOLE, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}
        is_pending = bool(state.group.pending_offsets)
        exchange = Exchange(
            RequestFields("OffsetDelete", fields),
            outcome_of(error, "deleted, one pending" if is_pending else "deleted"),
            error,
            constraints=(equals(where, error.value),),
            retried=NO_COORDINATOR,
        )
        return MoveResult(state._replace(group=step.state), exchange)

    return Move("offsets.delete", "delete the offset of the group", handle_offset_delete, ONCE, take)


def _fetch(name: str, words: str, stable: bool) -> Move:
    def take(protocol: BrokerProtocol, state: OffsetsState) -> MoveResult | None:
        step = handle_offset_fetch(COORDINATOR, state.group, OffsetFetchRequest(GROUP, PARTITION, stable), START)
        answer = reply_of(step.effects, OffsetFetchResponse)
        told = answer.partitions[0]
        found: list[Constraint] = []
        for prefix in ("", "groups[0]."):
            where = f"{prefix}topics[0].partitions[0]"
            found += [
                equals(f"{prefix}error_code", answer.error.value),
                equals(f"{where}.error_code", told.error.value),
                equals(f"{where}.committed_offset", told.offset),
                equals(f"{where}.metadata", told.metadata),
            ]
        topics = [{"name": TOPIC, "partition_indexes": [0]}]
        by_id = [one | {"topic_id": TOPIC_ID} for one in topics]
        groups = [{"group_id": GROUP_HOLE, "topics": by_id}]
        fields = {"group_id": GROUP_HOLE, "topics": topics, "groups": groups, "require_stable": stable}
        outcome = outcome_of(told.error, "none" if told.offset < 0 else "an offset")
        outcome += ", one pending" if state.group.pending_offsets and told.error == Error.NONE else ""
        request = RequestFields("OffsetFetch", fields, since(WITH_STABLE if stable else 2))
        again = (*LATER, Error.UNSTABLE_OFFSET_COMMIT)
        exchange = Exchange(request, outcome, told.error, constraints=tuple(found), retried=again)
        return MoveResult(state._replace(ends=state.ends and not stable), exchange)

    return Move(f"offsets.{name}", words, handle_offset_fetch, STABLE if stable else ONCE, take)


def _setup(state: OffsetsState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    needed = frozenset(one for one in holes if one != PRODUCER_HOLE.name)
    return (*topic_ready((), needed), *group_ready(), *coordinator_ready(ID_HOLE))


FETCH_STABLE = _fetch("stable", "ask for the stable offset of the group", stable=True)
FETCH_UNSTABLE = _fetch("any", "ask for the offset of the group", stable=False)
MANY = "m" * (LONGEST_METADATA + 1)
TRANSACTIONAL_OFFSETS = Subject(
    "transactional-offsets",
    "offsets of a group that a producer commits in its transaction",
    OffsetsState(),
    (
        _init(),
        _add(),
        _commit("own", "a producer of today commits an offset in its transaction", ""),
        _commit("own", "a producer commits an offset in its transaction, whose partition it has added", ".checked"),
        _commit("own", "a producer commits an offset in its transaction by an older request", ".before"),
        _commit("own", "a producer commits an offset of a topic that it names by its id in its transaction", ".newest"),
        _commit("former", "the producer of the epoch before commits an offset in its transaction", "", 1),
        _commit("former", "the producer of the epoch before commits an offset, as if it had added it", ".checked", 1),
        _commit("generation", "a producer commits an offset for a generation that there is not", "", 0, 1),
        _commit("generation", "a producer commits an offset for a generation that there is not", ".newest", 0, 1),
        _commit("metadata", "a producer commits an offset with too much metadata", "", 0, NO_GENERATION, MANY),
        *(_end(committed, bumps) for committed in (True, False) for bumps in (True, False)),
        _plain_commit(),
        _delete(),
        FETCH_STABLE,
        FETCH_UNSTABLE,
    ),
    _setup,
    {"offset": MOST_OFFSET, "epochs": MOST_EPOCH + 1},
    looks=(FETCH_STABLE, FETCH_UNSTABLE),
    by_release=True,
)
