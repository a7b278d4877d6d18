"""WriteTxnMarkers: somebody ends a transaction in a log, as a coordinator does, or an operator (KIP-664)."""

from dataclasses import replace
from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, RequestFields, equals
from kspec.conformance.wire.model.requests import TOPIC, since
from kspec.conformance.wire.model.subject import Move, MoveResult
from kspec.conformance.wire.model.transactions.coordinated import outcome_of
from kspec.conformance.wire.model.transactions.records import (
    LOOKS,
    NEW,
    PLACE,
    PRODUCER_HOLES,
    PRODUCERS,
    TRANSACTIONS,
    LogAndProducers,
    with_marker,
)
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.named_partitions import check_named_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.transactions.log.partition import check_marked_partition
from kspec.spec.transactions.metadata import BUMPS_EPOCH
from kspec.spec.values import Epoch, ProducerEpoch

ONE_END = "a transaction ends once in a log, by who coordinates it now"
COORDINATORS = {"": Epoch(5_000), "later": Epoch(5_001), "earlier": Epoch(4_999)}
"""Coordinator epochs that no coordinator of the broker has."""

UNKNOWN_PARTITION = 7
MOST_RECORDS = 4
WITH_VERSION = 2
"""The first version of the request that tells the version of transactions (KIP-1228)."""


def _mark(name: str, words: str, ahead: int, by: str, committed: bool, level: int, also_unknown: bool = False) -> Move:
    """A marker of an epoch so much later than the producer's, from a coordinator. `also_unknown`: of two partitions."""
    versions = since(WITH_VERSION) if level else Versions(1, WITH_VERSION - 1)

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        known = state.epoch_of(NEW)
        if known is None or known + ahead < 0 or state.partition.local.log.end_offset >= MOST_RECORDS:
            return None
        epoch = ProducerEpoch(known + ahead)
        marker = TransactionMarker(PRODUCERS[NEW], epoch, COORDINATORS[by], committed, frozenset({PLACE}), level)
        done = with_marker(protocol, state.partition, marker)
        numbers = [PLACE.partition] + [UNKNOWN_PARTITION] * also_unknown
        fields: dict[str, Any] = {
            "producer_id": PRODUCER_HOLES[NEW],
            "producer_epoch": int(epoch),
            "transaction_result": committed,
            "topics": [{"name": TOPIC, "partition_indexes": numbers}],
            "coordinator_epoch": int(COORDINATORS[by]),
            "transaction_version": level,
        }
        where = "markers[0].topics[0].partitions"
        constraints: tuple[Constraint, ...] = (
            equals("markers[#]", 1),
            equals("markers[0].producer_id", PRODUCER_HOLES[NEW]),
            equals(f"{where}[#]", len(numbers)),
            equals(f"{where}[partition_index={PLACE.partition}].error_code", done.error.value),
        )
        if also_unknown:
            missing = check_marked_partition(check_named_partition(1, UNKNOWN_PARTITION, by_id=False))
            constraints += (equals(f"{where}[partition_index={UNKNOWN_PARTITION}].error_code", missing.value),)
        was_open = bool(state.partition.transactions.ongoing)
        outcome = outcome_of(done.error, "ended" if was_open else "written")
        request = RequestFields("WriteTxnMarkers", {"markers": [fields]}, versions)
        exchange = Exchange(request, outcome, done.error, constraints=constraints)
        return MoveResult(state._replace(partition=done.partition), exchange)

    return Move(f"mark.{name}", words, handle_produce, ONE_END, take)


MARKS = (
    _mark("commit", "a marker of its epoch commits", 0, "", True, 0),
    _mark("abort", "a marker of its epoch aborts", 0, "", False, 0),
    _mark("abort.later-epoch", "a marker of a later epoch aborts", 1, "", False, 0),
    _mark("abort.former-epoch", "a marker of the epoch before aborts", -1, "", False, 0),
    _mark("abort.later", "a marker of a later coordinator aborts", 0, "later", False, 0),
    _mark("abort.earlier", "a marker of an earlier coordinator aborts", 0, "earlier", False, 0),
    _mark("abort.unknown", "a marker aborts in two partitions, one of which there is not", 0, "", False, 0, True),
    _mark("commit.bumps", "a marker of the next epoch commits, as each transaction has its own", 1, "", True, BUMPS_EPOCH),
    _mark("abort.bumps", "a marker of the next epoch aborts, as each transaction has its own", 1, "", False, BUMPS_EPOCH),
    _mark("abort.bumps-not", "a marker of its epoch aborts, where each transaction has its own", 0, "", False, BUMPS_EPOCH),
)
OF_PRODUCERS = ("init.new", "send.new.next", "send.new.again", "send.new.former")


def _idle(move: Move) -> Move:
    """The move, unless it has the coordinator write markers: its own would be refused."""

    def take(protocol: BrokerProtocol, state: LogAndProducers) -> MoveResult | None:
        taken: Any = move.take(protocol, state)
        if taken is None or taken.state.ends or taken.state.partition.local.log.end_offset > MOST_RECORDS:
            return None
        return MoveResult(taken.state, taken.exchange)

    return move._replace(take=take)


MARKERS = replace(
    TRANSACTIONS,
    name="markers",
    meaning="markers of somebody else in the log of a partition, and producers after them",
    moves=(*(_idle(one) for one in TRANSACTIONS.moves if one.name in OF_PRODUCERS), *MARKS, *LOOKS),
)
