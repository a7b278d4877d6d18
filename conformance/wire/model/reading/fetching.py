"""Fetch at every place of a log."""

from collections.abc import Iterator
from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, HasRecords, Hole, equals
from kspec.conformance.wire.model.batches import value_at
from kspec.conformance.wire.model.partition import (
    EPOCHS,
    LogState,
    broker,
    offsets_of,
    on_wire,
    reply_of,
)
from kspec.conformance.wire.model.reading.places import (
    FENCED,
    FIRST_WITH_EPOCH,
    FIRST_WITH_LAST_EPOCH,
    NO_STRANGERS,
    PLACES,
    SAME_LOG,
    TRUNCATES,
    WHICH,
    Place,
    claims,
)
from kspec.conformance.wire.model.requests import (
    FETCHED,
    fetch,
    since,
)
from kspec.conformance.wire.model.subject import Move, MoveResult
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.log.batch import records_of
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch, Error, MonotonicMs


def fetch_constraints(
    answer: FetchResponse, committed: bool = False, where: str = FETCHED, contents: bool = True
) -> tuple[Constraint, ...]:
    """Constraints on the answer's partition. `committed`: a consumer that wants committed transactions is told which of them
    were aborted, and another one is not. `contents`: the records tell their times, and nobody has compressed them.
    """
    if answer.error != Error.NONE:
        return (equals(f"{where}.error_code", answer.error.value),)
    records = records_of(answer.records)
    offsets = offsets_of(answer.base_offset, len(records))
    epochs = tuple(on_wire(record.leader_epoch) for record in records)
    times = tuple(int(record.value) for record in records)
    inside: tuple[Any, Any] = (
        (tuple(map(value_at, times)), tuple(Hole("now", one) for one in times)) if contents else (None, None)
    )
    aborted = equals(f"{where}.aborted_transactions[#]", 0) if committed else equals(f"{where}.aborted_transactions", None)
    return (
        equals(f"{where}.error_code", 0),
        equals(f"{where}.high_watermark", answer.high_watermark),
        equals(f"{where}.last_stable_offset", answer.last_stable_offset),
        equals(f"{where}.log_start_offset", answer.log_start_offset),
        equals(f"{where}.diverging_epoch.epoch", on_wire(answer.diverging.leader_epoch)),
        equals(f"{where}.diverging_epoch.end_offset", answer.diverging.end_offset),
        aborted,
        HasRecords(f"{where}.records", offsets, epochs, *inside),
    )


def _outcome_of_fetch(answer: FetchResponse) -> str:
    if answer.error != Error.NONE:
        return answer.error.name
    return "diverging" if is_diverging(answer) else "records" if answer.records else "nothing"


def fetch_move(place: tuple[str, str, Place], epoch: tuple[str, Epoch], last: tuple[str, Epoch], committed: bool) -> Move:
    """A fetch from a place, with a leader epoch that the client claims, and the epoch of the last record it has."""
    where, words, offset_in = place

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        offset = offset_in(state.partition)
        if offset is None:
            return None
        position = FetchPosition(epoch[1], offset, last[1])
        request = FetchRequest(CONSUMER, position, read_committed=committed, has_client_metadata=True)
        step = handle_fetch(broker(protocol), state.partition, request, MonotonicMs(0))
        answer = reply_of(step.effects, FetchResponse)
        first = FIRST_WITH_LAST_EPOCH if last[0] else FIRST_WITH_EPOCH if epoch[0] else 4
        sent = fetch(
            offset,
            epoch=on_wire(epoch[1]),
            last_epoch=on_wire(last[1]),
            versions=since(first),
            isolation_level=int(committed),
        )
        constraints = fetch_constraints(answer, committed)
        return MoveResult(state, Exchange(sent, _outcome_of_fetch(answer), answer.error, constraints=constraints))

    name = ".".join(filter(None, ("fetch", where, epoch[0], f"last-{last[0]}" if last[0] else "", "committed" * committed)))
    told = f"fetch from {words}" + claims(epoch[0])
    told += f", after a record of {WHICH[last[0]]} epoch" if last[0] else ""
    told += ", committed transactions only" if committed else ""
    return Move(name, told, handle_fetch, _promise_of_fetch(epoch[0], last[0]), take)


NO_REPLICA = BrokerId(2_000_000)


def _fetch_as_replica(epoch: tuple[str, Epoch]) -> Move:
    """A fetch of a broker that is no replica of the partition, as a follower's."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        offset = state.partition.local.log.end_offset
        request = FetchRequest(NO_REPLICA, FetchPosition(epoch[1], offset, NO_EPOCH))
        step = handle_fetch(broker(protocol), state.partition, request, MonotonicMs(0))
        answer = reply_of(step.effects, FetchResponse)
        who = {"replica_id": NO_REPLICA, "replica_state": {"replica_id": NO_REPLICA, "replica_epoch": -1}}
        sent = fetch(offset, epoch=on_wire(epoch[1]), versions=since(FIRST_WITH_EPOCH if epoch[0] else 4), **who)
        return MoveResult(state, Exchange(sent, answer.error.name, answer.error, constraints=fetch_constraints(answer)))

    name = ".".join(filter(None, ("fetch.as-replica", epoch[0])))
    told = "fetch as a replica that the partition has not" + claims(epoch[0])
    return Move(name, told, handle_fetch, NO_STRANGERS, take)


def _promise_of_fetch(epoch: str, last: str) -> str:
    return FENCED if epoch in ("older", "newer", "largest") else TRUNCATES if last else SAME_LOG


def fetch_moves() -> Iterator[Move]:
    """Fetches from all places."""
    for place in PLACES:
        for epoch in EPOCHS:
            yield fetch_move(place, epoch, EPOCHS[0], committed=False)
        for last in EPOCHS[1:]:
            yield fetch_move(place, EPOCHS[0], last, committed=False)
        yield fetch_move(place, EPOCHS[0], EPOCHS[0], committed=True)
    for epoch in EPOCHS[2:]:
        yield fetch_move(PLACES[-1], epoch, EPOCHS[1], committed=False)
    for epoch in EPOCHS:
        yield _fetch_as_replica(epoch)
