"""Actions of the producer: it sends records one after the other, takes answers, and starts again; connections break."""

from collections.abc import Callable, Sequence
from functools import partial

from kspec.model_check.core.model import REFUSED, Note, Slot, when
from kspec.model_check.models.delivery.board import Board
from kspec.model_check.models.delivery.values import SendingProducer, SentRecord
from kspec.model_check.models.parts import Values, by_slot
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.transactions.clients import (
    ProducerNumbers,
    is_done_when_sent,
    numbered_anew,
    numbered_behind,
    sends_again,
)
from kspec.spec.values import NO_PRODUCER_EPOCH, NO_SEQUENCE, Error, ProducerId


def add_producer(board: Board) -> None:
    """Add all that the producer does, and its connections."""
    slots = board.slots
    _act(board, "Send", [slots.producer, slots.sent], partial(_send, board), "sends the next record")
    _act(board, "Receive", [slots.producer, slots.sent], partial(_receive, board), "takes the answer")
    if board.parameters["disconnects"]:
        left = slots.left["disconnects"]
        what = "loses its connection"
        _act(board, "Disconnect", [slots.producer, slots.sent, left], partial(_lose, board, left), what)
    if slots.late is not None and board.retries:
        late, left = slots.late, slots.left["late_requests"]
        what = "gives up a connection on which the record is still under way, and sends it again"
        _act(board, "Delay", [slots.sent, late, left], partial(_delay, board, late, left), what)
    if board.parameters["restarts"]:
        left = slots.left["restarts"]
        what = "starts again, with the first record that it is not done with"
        _act(board, "Restart", [slots.producer, slots.sent, left], partial(_restart, board, left), what)


def _act(board: Board, name: str, slots: Sequence[Slot], change: Callable[[Values], object], what: str) -> None:
    guards = [when(lambda _: True, board.slots.sent)]
    board.model.action(name, {}, guards, [by_slot(slots, change, slots)], [Note(board.producer, what)])


def _send(board: Board, values: Values) -> object:
    """Send the next record. With acks=0 the producer is done with it then."""
    producer, sent = board.slots.producer, board.slots.sent
    state: SendingProducer = values[producer]
    if values[sent] is not None or state.following == board.records:
        return REFUSED
    nobody = (state.numbers.producer_id, NO_PRODUCER_EPOCH, NO_SEQUENCE)
    batch = ProducerBatch(*(state.numbers if board.idempotent else nobody), 1)
    after = _done(state) if is_done_when_sent(board.acks) else state
    return {producer: after, sent: SentRecord(state.following, batch)}


def _done(state: SendingProducer) -> SendingProducer:
    return state._replace(following=state.following + 1, numbers=numbered_behind(state.numbers))


def _receive(board: Board, values: Values) -> object:
    """Take an answer: the next record, the same once more, or the next one though this one has failed."""
    producer, sent = board.slots.producer, board.slots.sent
    found: SentRecord | None = values[sent]
    if found is None or found.answer is None:
        return REFUSED
    if sends_again(found.answer, board.retries):
        return {producer: values[producer], sent: SentRecord(found.record, found.batch)}
    after = _done(values[producer])
    return {producer: after if found.answer == Error.NONE else _given_up(board, after), sent: None}


def _given_up(board: Board, state: SendingProducer) -> SendingProducer:
    """The producer when a record has failed: one that is idempotent numbers anew."""
    if not board.idempotent:
        return state
    return state._replace(numbers=numbered_anew(state.numbers, _fresh(state)))


def _fresh(state: SendingProducer) -> ProducerId:
    """A producer id that nobody has had."""
    return ProducerId(state.numbers.producer_id + 1)


def _lose(board: Board, left: Slot, values: Values) -> object:
    """The connection breaks, with a request that the leader does not get, or with its answer."""
    producer, sent = board.slots.producer, board.slots.sent
    found: SentRecord | None = values[sent]
    if found is None or not values[left]:
        return REFUSED
    state, again = without_answer(board, values[producer], found)
    return {producer: state, sent: again, left: values[left] - 1}


def without_answer(board: Board, state: SendingProducer, found: SentRecord) -> tuple[SendingProducer, SentRecord | None]:
    """The producer whose record gets no answer, and the record, if it is sent again."""
    if is_done_when_sent(board.acks):
        return state, None
    if board.retries:
        return state, SentRecord(found.record, found.batch)
    return _given_up(board, _done(state)), None


def _delay(board: Board, late: Slot, left: Slot, values: Values) -> object:
    sent = board.slots.sent
    found: SentRecord | None = values[sent]
    if found is None or found.until is not None or found.answer is not None or values[late] is not None or not values[left]:
        return REFUSED
    return {sent: found, late: found, left: values[left] - 1}


def _restart(board: Board, left: Slot, values: Values) -> object:
    """Another process takes the place of the producer: it has another id, and forgets what is under way."""
    producer, sent = board.slots.producer, board.slots.sent
    if values[sent] is None or not values[left]:
        return REFUSED
    state: SendingProducer = values[producer]
    begun = ProducerNumbers(_fresh(state) if board.idempotent else state.numbers.producer_id)
    return {producer: state._replace(numbers=begun), sent: None, left: values[left] - 1}
