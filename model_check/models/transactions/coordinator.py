"""Actions of the coordinator: it takes requests, its log is committed, time ends, and another broker takes over."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Event, Note, Slot, when
from kspec.model_check.models.parts import by_slot
from kspec.model_check.models.transactions.board import (
    NOW,
    TOO_LATE,
    Board,
    IdSlots,
    Values,
    fresh_id,
    settled,
)
from kspec.model_check.models.transactions.values import (
    TO_LEADERS,
    OffsetsRequest,
    SentMarker,
    TransactionExchange,
    WriteRequest,
)
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten
from kspec.spec.transactions.adding import handle_add_offsets_to_txn, handle_add_partitions_to_txn
from kspec.spec.transactions.appending import on_appended
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction, TransactionStep
from kspec.spec.transactions.ending import handle_end_txn, on_timeout
from kspec.spec.transactions.loading import load_transaction
from kspec.spec.transactions.markers import on_markers_answered
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.transactions.records import TransactionRecord, record_of
from kspec.spec.transactions.refusals import refuse
from kspec.spec.values import Epoch, Error, RequestNumber


def add_coordinator(board: Board) -> None:
    """Add all that the coordinator of each transactional id does by itself, with its log, and when it moves."""
    for own in board.slots.ids.values():
        _add_append(board, own, "CommitRecord", Error.NONE, "the coordinator's record is committed", None)
        if board.parameters["refusals"]:
            refused = Error.NOT_ENOUGH_REPLICAS
            _add_append(board, own, "RefuseRecord", refused, "the log refuses the coordinator's record", "refusals")
        if board.parameters["unknown_appends"]:
            what = "the coordinator gives its record up, and it is committed"
            _add_append(board, own, "CommitLate", Error.REQUEST_TIMED_OUT, what, "unknown_appends")
        if board.parameters["timeouts"]:
            _add_timeout(board, own)
        if board.parameters["moves"]:
            for kept in (False, True):
                _add_move(board, own, kept)
        if own.unsure is not None:
            _add_uncommitted_load(board, own, own.unsure)


def add_action(
    board: Board, name: str, arguments: dict[str, Any], change: Any, slots: list[Slot], event: Event, wanted: Slot
) -> None:
    """Add an action that changes slots in place; `change` says whether it is possible. `wanted` holds something then."""

    def apply(values: Mapping[Slot, Any]) -> object:
        after = dict(values)
        return after if change(after) else REFUSED

    guards = [when(lambda found: found is not None, wanted)]
    board.model.action(name, arguments, guards, [by_slot(slots, apply, slots)], [event])


def handled(
    board: Board, own: IdSlots, state: CoordinatedTransaction, request: Any, number: RequestNumber
) -> TransactionStep:
    """The step of the handler that a request is for."""
    match request:
        case InitProducerIdRequest():
            return handle_init_producer_id(board.coordinator, state, number, request, fresh_id(own, state), NOW)
        case AddPartitionsToTxnRequest():
            return handle_add_partitions_to_txn(board.coordinator, state, number, request, NOW)
        case AddOffsetsToTxnRequest():
            return handle_add_offsets_to_txn(board.coordinator, state, number, request, NOW)
        case EndTxnRequest():
            return handle_end_txn(board.coordinator, state, number, request, fresh_id(own, state), NOW)
        case _:
            raise AssertionError(request)


def add_delivery(board: Board, producer: int, name: str, channel: Slot, number: RequestNumber) -> None:
    """The coordinator takes a request from a connection. Nobody waits for the answer to a late one."""
    own = board.id_of(producer)
    is_live = channel == board.slots.exchange[producer]

    def deliver(values: Values) -> bool:
        found: TransactionExchange | None = values[channel]
        if found is None or found.is_taken or isinstance(found.request, TO_LEADERS):
            return False
        values[channel] = found._replace(is_taken=True) if is_live else None
        board.take(values, own, handled(board, own, values[own.coordinator], found.request, number))
        return True

    event = Arrow(producer, COORDINATOR, "the request" if is_live else "the late request")
    add_action(board, name, {"producer": producer}, deliver, board.of_coordinator(own), event, channel)


def _add_append(board: Board, own: IdSlots, name: str, error: Error, what: str, budget: str | None) -> None:
    """The log says what became of the record that is under way."""
    slots = board.slots
    left = [slots.left[budget]] if budget else []

    def appended(values: Values) -> bool:
        append: AppendTransaction | None = values[own.append]
        if append is None or any(not values[one] for one in left):
            return False
        for one in left:
            values[one] -= 1
        if error in (Error.NONE, Error.REQUEST_TIMED_OUT):
            commit(values, own, record_of(append.target, board.level))
        values[own.append] = None
        board.take(values, own, on_appended(board.coordinator, values[own.coordinator], append, error, NOW))
        return True

    add_action(
        board,
        name,
        own.arguments,
        appended,
        [*board.of_coordinator(own), *log_of(own), *left],
        Note(COORDINATOR, what),
        own.append,
    )


def _add_timeout(board: Board, own: IdSlots) -> None:
    slots = board.slots
    left = slots.left["timeouts"]

    def time_out(values: Values) -> bool:
        before: CoordinatedTransaction = values[own.coordinator]
        step = on_timeout(board.coordinator, before, fresh_id(own, before), TOO_LATE)
        if not values[left] or settled(step.state) == before:
            return False
        values[left] -= 1
        board.take(values, own, step)
        return True

    event = Note(COORDINATOR, "the transaction has taken too long")
    add_action(board, "TimeOut", own.arguments, time_out, [*board.of_coordinator(own), left], event, own.coordinator)


def _add_move(board: Board, own: IdSlots, kept: bool) -> None:
    """Another broker coordinates: it has what was committed, and the record that was under way or not."""
    slots = board.slots
    left = slots.left["moves"]

    def move(values: Values) -> bool:
        append: AppendTransaction | None = values[own.append]
        if not values[left] or (kept and append is None):
            return False
        values[left] -= 1
        commit(values, own, record_of(append.target, board.level) if kept and append is not None else values[own.log])
        _take_over(board, own, values, values[own.log])
        return True

    event = Note(COORDINATOR, "another broker becomes the coordinator")
    changed = [*board.of_coordinator(own), *log_of(own), left]
    add_action(board, "MoveCoordinator", {**own.arguments, "kept": int(kept)}, move, changed, event, own.coordinator)


def _take_over(board: Board, own: IdSlots, values: Values, record: TransactionRecord | None) -> None:
    """Another broker coordinates by a record. Whoever waits for the one before is told that it coordinates no more."""
    values[own.append] = None
    _refuse_waiting(board, own, values)
    epoch = Epoch(values[own.coordinator].coordinator_epoch + 1)
    board.take(values, own, load_transaction(own.transactional_id, record, epoch, NOW))


def _add_uncommitted_load(board: Board, own: IdSlots, unsure: Slot) -> None:
    """Another broker coordinates by the record under way, which it has, and not all that are in sync."""
    left = board.slots.left["uncommitted_loads"]

    def load(values: Values) -> bool:
        append: AppendTransaction | None = values[own.append]
        if not values[left] or append is None or not board.protocol.may_coordinate(1, 0):
            return False
        values[left] -= 1
        values[unsure] = record_of(append.target, board.level)
        _take_over(board, own, values, values[unsure])
        return True

    def have(values: Values) -> bool:
        commit(values, own, values[unsure])
        return True

    event = Note(COORDINATOR, "another broker coordinates, by a record that is not committed")
    changed = [*board.of_coordinator(own), *log_of(own), left]
    add_action(board, "LoadUncommitted", own.arguments, load, changed, event, own.append)
    event = Note(COORDINATOR, "the record by which the broker coordinates is committed")
    add_action(board, "CommitLoaded", own.arguments, have, log_of(own), event, unsure)


def log_of(own: IdSlots) -> list[Slot]:
    """The slots of the log of a transactional id."""
    return [own.log] if own.unsure is None else [own.log, own.unsure]


def commit(values: Values, own: IdSlots, record: TransactionRecord | None) -> None:
    """A record is committed, or the last one that is: what was behind it is over or lost."""
    values[own.log] = record
    if own.unsure is not None:
        values[own.unsure] = None


def _refuse_waiting(board: Board, own: IdSlots, values: Values) -> None:
    """Requests that wait for the coordinator that was are told that it is none any more."""
    slots = board.slots
    for channel in [kind[one] for kind in (slots.exchange, slots.late) for one in own.producers if one in kind]:
        found: TransactionExchange | None = values[channel]
        if found is None or not found.is_taken or found.answer is not None:
            continue
        match found.request:
            case WriteRequest() | OffsetsRequest():
                if found.guard and found.verified is None:
                    values[channel] = found._replace(verified=Error.NOT_COORDINATOR)
            case request:
                refusal = refuse(RequestNumber(0), request, Error.NOT_COORDINATOR)
                values[channel] = found._replace(answer=refusal.response)


def answer_marker(board: Board, own: IdSlots, values: Values, sent: SentMarker, error: Error) -> None:
    """The leader's answer to a marker reaches the coordinator."""
    (place,) = sent.marker.partitions
    state = values[own.coordinator]
    answer = MarkersWritten(((place, error),))
    board.take(values, own, on_markers_answered(board.coordinator, state, sent.marker, answer))
