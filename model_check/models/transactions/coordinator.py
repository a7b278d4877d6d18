"""Actions of the coordinator: it takes requests, its log is committed, time ends, and another broker takes over."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Event, Note, Slot, when
from kspec.model_check.models.parts import by_slot
from kspec.model_check.models.transactions.board import (
    ID,
    NOW,
    TOO_LATE,
    Board,
    Values,
    fresh_id,
    settled,
)
from kspec.model_check.models.transactions.values import SentMarker, TransactionExchange, WriteRequest
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten
from kspec.spec.transactions.adding import handle_add_partitions_to_txn
from kspec.spec.transactions.appending import on_appended
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction, TransactionStep
from kspec.spec.transactions.ending import handle_end_txn, on_timeout
from kspec.spec.transactions.loading import load_transaction
from kspec.spec.transactions.markers import on_markers_answered
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.transactions.records import record_of
from kspec.spec.transactions.refusals import refuse
from kspec.spec.values import Epoch, Error, RequestNumber


def add_coordinator(board: Board) -> None:
    """Add all that the coordinator does by itself, with its log, and when it moves."""
    _add_append(board, "CommitRecord", Error.NONE, "the coordinator's record is committed", None)
    if board.parameters["refusals"]:
        refused = Error.NOT_ENOUGH_REPLICAS
        _add_append(board, "RefuseRecord", refused, "the log refuses the coordinator's record", "refusals")
    if board.parameters["unknown_appends"]:
        what = "the coordinator gives its record up, and it is committed"
        _add_append(board, "CommitLate", Error.REQUEST_TIMED_OUT, what, "unknown_appends")
    if board.parameters["timeouts"]:
        _add_timeout(board)
    if board.parameters["moves"]:
        for kept in (False, True):
            _add_move(board, kept)


def add_action(
    board: Board, name: str, arguments: dict[str, Any], change: Any, slots: list[Slot], event: Event, wanted: Slot
) -> None:
    """Add an action that changes slots in place; `change` says whether it is possible. `wanted` holds something then."""

    def apply(values: Mapping[Slot, Any]) -> object:
        after = dict(values)
        return after if change(after) else REFUSED

    guards = [when(lambda found: found is not None, wanted)]
    board.model.action(name, arguments, guards, [by_slot(slots, apply, slots)], [event])


def handled(board: Board, state: CoordinatedTransaction, request: Any, number: RequestNumber) -> TransactionStep:
    """The step of the handler that a request is for."""
    match request:
        case InitProducerIdRequest():
            return handle_init_producer_id(board.coordinator, state, number, request, fresh_id(state), NOW)
        case AddPartitionsToTxnRequest():
            return handle_add_partitions_to_txn(board.coordinator, state, number, request, NOW)
        case EndTxnRequest():
            return handle_end_txn(board.coordinator, state, number, request, fresh_id(state), NOW)
        case _:
            raise AssertionError(request)


def add_delivery(board: Board, producer: int, name: str, channel: Slot, number: RequestNumber) -> None:
    """The coordinator takes a request from a connection. Nobody waits for the answer to a late one."""
    slots = board.slots
    is_live = channel == slots.exchange[producer]

    def deliver(values: Values) -> bool:
        found: TransactionExchange | None = values[channel]
        if found is None or found.is_taken or isinstance(found.request, WriteRequest):
            return False
        values[channel] = found._replace(is_taken=True) if is_live else None
        board.take(values, handled(board, values[slots.coordinator], found.request, number))
        return True

    event = Arrow(producer, COORDINATOR, "the request" if is_live else "the late request")
    add_action(board, name, {"producer": producer}, deliver, board.of_coordinator, event, channel)


def _add_append(board: Board, name: str, error: Error, what: str, budget: str | None) -> None:
    """The log says what became of the record that is under way."""
    slots = board.slots
    left = [slots.left[budget]] if budget else []

    def appended(values: Values) -> bool:
        append: AppendTransaction | None = values[slots.append]
        if append is None or any(not values[one] for one in left):
            return False
        for one in left:
            values[one] -= 1
        if error in (Error.NONE, Error.REQUEST_TIMED_OUT):
            values[slots.log] = record_of(append.target, board.level)
        values[slots.append] = None
        board.take(values, on_appended(board.coordinator, values[slots.coordinator], append, error, NOW))
        return True

    add_action(board, name, {}, appended, [*board.of_coordinator, slots.log, *left], Note(COORDINATOR, what), slots.append)


def _add_timeout(board: Board) -> None:
    slots = board.slots
    left = slots.left["timeouts"]

    def time_out(values: Values) -> bool:
        before: CoordinatedTransaction = values[slots.coordinator]
        step = on_timeout(board.coordinator, before, fresh_id(before), TOO_LATE)
        if not values[left] or settled(step.state) == before:
            return False
        values[left] -= 1
        board.take(values, step)
        return True

    event = Note(COORDINATOR, "the transaction has taken too long")
    add_action(board, "TimeOut", {}, time_out, [*board.of_coordinator, left], event, slots.coordinator)


def _add_move(board: Board, kept: bool) -> None:
    """Another broker coordinates: it has what was committed, and the record that was under way or not."""
    slots = board.slots
    left = slots.left["moves"]

    def move(values: Values) -> bool:
        append: AppendTransaction | None = values[slots.append]
        if not values[left] or (kept and append is None):
            return False
        values[left] -= 1
        if kept and append is not None:
            values[slots.log] = record_of(append.target, board.level)
        values[slots.append] = None
        _refuse_waiting(board, values)
        epoch = Epoch(values[slots.coordinator].coordinator_epoch + 1)
        board.take(values, load_transaction(ID, values[slots.log], epoch, NOW))
        return True

    event = Note(COORDINATOR, "another broker becomes the coordinator")
    changed = [*board.of_coordinator, slots.log, left]
    add_action(board, "MoveCoordinator", {"kept": int(kept)}, move, changed, event, slots.coordinator)


def _refuse_waiting(board: Board, values: Values) -> None:
    """Requests that wait for the coordinator that was are told that it is none any more."""
    for channel in (*board.slots.exchange.values(), *board.slots.late.values()):
        found: TransactionExchange | None = values[channel]
        if found is None or not found.is_taken or found.answer is not None:
            continue
        match found.request:
            case WriteRequest():
                if found.guard and found.verified is None:
                    values[channel] = found._replace(verified=Error.NOT_COORDINATOR)
            case request:
                refusal = refuse(RequestNumber(0), request, Error.NOT_COORDINATOR)
                values[channel] = found._replace(answer=refusal.response)


def answer_marker(board: Board, values: Values, sent: SentMarker, error: Error) -> None:
    """The leader's answer to a marker reaches the coordinator."""
    (place,) = sent.marker.partitions
    state = values[board.slots.coordinator]
    answer = MarkersWritten(((place, error),))
    board.take(values, on_markers_answered(board.coordinator, state, sent.marker, answer))
