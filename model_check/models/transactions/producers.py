"""Actions of producers: they start, begin transactions, write, end them, and take answers; connections break."""

from typing import Any

from kspec.model_check.core.model import REFUSED, Note, when
from kspec.model_check.models.parts import Values, by_slot
from kspec.model_check.models.transactions.board import ID, TIMEOUT_MS, Board, place_of, unanswered
from kspec.model_check.models.transactions.values import (
    Phase,
    ProducerRequest,
    RecordOf,
    TransactionalProducer,
    TransactionExchange,
    Wish,
    WriteRequest,
    late_number,
    live_number,
)
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.transactions.clients import ErrorMeaning, meaning_for_records, meaning_for_transaction
from kspec.spec.values import Error


def add_producers(board: Board) -> None:
    """Add all that producers do."""
    for producer in board.producers:
        _add_request(board, producer, "Initialise", {}, "InitProducerId", _initialise)
        for partition in board.partitions:
            if not board.client_level:
                _add_adding(board, producer, partition)
            _add_writing(board, producer, partition)
        for committed in (True, False):
            _add_ending(board, producer, committed)
        _add_receiving(board, producer)
        if board.parameters["disconnects"]:
            _add_disconnect(board, producer)
        if board.parameters["late_requests"]:
            _add_delay(board, producer)
            _add_giving_up(board, producer)


def _add_request(board: Board, producer: int, name: str, arguments: dict[str, Any], what: str, ask: Any) -> None:
    """Add an action by which a producer that waits for no answer sends a request; `ask` gives `None` if it does not."""
    own, exchange = board.slots.producer[producer], board.slots.exchange[producer]

    def send(values: Values) -> object:
        found = ask(values[own])
        if found is None or values[exchange] is not None:
            return REFUSED
        state, request = found
        return {own: state, exchange: TransactionExchange(request)}

    board.model.action(
        name,
        {"producer": producer, **arguments},
        guards=[when(lambda under_way: under_way is None, exchange)],
        effects=[by_slot([own, exchange], send, [own, exchange])],
        events=[Note(producer, f"sends {what}")],
    )


Asked = tuple[TransactionalProducer, ProducerRequest]


def _initialise(state: TransactionalProducer) -> Asked | None:
    """A producer starts; or it asks for its next epoch, since a record that it has given up may yet arrive (KIP-360)."""
    if state.phase not in (Phase.NEW, Phase.RENEWING):
        return None
    return state, InitProducerIdRequest(state.producer_id, state.producer_epoch, ID, TIMEOUT_MS)


def _in_transaction(board: Board, state: TransactionalProducer) -> TransactionalProducer | None:
    """The producer in its transaction, which it may begin now; `None` if it may not."""
    if state.phase == Phase.OPEN:
        return state
    if state.phase != Phase.READY or len(state.wishes) == board.parameters["transactions"]:
        return None
    nothing = (0,) * len(board.partitions)
    return state._replace(phase=Phase.OPEN, added=frozenset(), written=nothing, wishes=(*state.wishes, Wish.NONE))


def _add_adding(board: Board, producer: int, partition: int) -> None:
    def ask(state: TransactionalProducer) -> Asked | None:
        begun = _in_transaction(board, state)
        if begun is None or partition in begun.added:
            return None
        places = frozenset({place_of(partition)})
        return begun, AddPartitionsToTxnRequest(ID, state.producer_id, state.producer_epoch, places)

    _add_request(board, producer, "AddPartition", {"partition": partition}, f"AddPartitionsToTxn of {partition}", ask)


def _add_writing(board: Board, producer: int, partition: int) -> None:
    def ask(state: TransactionalProducer) -> Asked | None:
        begun = _in_transaction(board, state)
        if begun is None or begun.written[partition] == board.parameters["records"]:
            return None
        if not board.client_level and partition not in begun.added:
            return None
        batch = ProducerBatch(state.producer_id, state.producer_epoch, state.sequences[partition], 1)
        return begun, WriteRequest(partition, batch, RecordOf(producer, len(begun.wishes)))

    _add_request(board, producer, "Write", {"partition": partition}, f"a record for {partition}", ask)


def _add_ending(board: Board, producer: int, committed: bool) -> None:
    def ask(state: TransactionalProducer) -> Asked | None:
        is_to_abort = state.phase in (Phase.BROKEN, Phase.GIVEN_UP)
        if state.phase != Phase.OPEN and (committed or not is_to_abort):
            return None
        wish = Wish.COMMIT if committed else Wish.ABORT
        asked = state._replace(wishes=(*state.wishes[:-1], wish))
        return asked, EndTxnRequest(ID, state.producer_id, state.producer_epoch, committed, board.client_level)

    name, what = ("Commit", "EndTxn to commit") if committed else ("Abort", "EndTxn to abort")
    _add_request(board, producer, name, {}, what, ask)


# ---- answers


def _add_receiving(board: Board, producer: int) -> None:
    own, exchange = board.slots.producer[producer], board.slots.exchange[producer]

    def receive(values: Values) -> object:
        found: TransactionExchange | None = values[exchange]
        if found is None or found.answer is None:
            return REFUSED
        error = error_in(found.answer)
        meaning_of = meaning_for_records if isinstance(found.request, WriteRequest) else meaning_for_transaction
        match meaning_of(error):
            case ErrorMeaning.AGAIN:
                return {own: values[own], exchange: TransactionExchange(found.request)}
            case ErrorMeaning.ABORT:
                return {own: values[own]._replace(phase=Phase.BROKEN), exchange: None}
            case ErrorMeaning.FATAL:
                return {own: values[own]._replace(phase=Phase.FATAL, failed=error), exchange: None}
            case ErrorMeaning.DONE:
                return {own: granted(values[own], found), exchange: None}

    board.model.action(
        "Receive",
        {"producer": producer},
        guards=[when(lambda found: found is not None and found.answer is not None, exchange)],
        effects=[by_slot([own, exchange], receive, [own, exchange])],
        events=[Note(producer, "takes the answer")],
    )


def error_in(answer: Any) -> Error:
    """The error of an answer."""
    match answer:
        case AddPartitionsToTxnResponse(((_, error),)):
            found: Error = error
            return found
        case Error():
            return answer
        case _:
            other: Error = answer.error
            return other


def granted(state: TransactionalProducer, found: TransactionExchange) -> TransactionalProducer:
    """The producer when its request is granted."""
    match found.request, found.answer:
        case InitProducerIdRequest(), InitProducerIdResponse():
            return _with_epoch(state, found.answer)._replace(phase=Phase.READY)
        case AddPartitionsToTxnRequest(partitions=partitions), _:
            return state._replace(added=state.added | {place.partition for place in partitions})
        case WriteRequest(partition=partition), _:
            written = tuple(number + (place == partition) for place, number in enumerate(state.written))
            sequences = tuple(number + (place == partition) for place, number in enumerate(state.sequences))
            return state._replace(written=written, sequences=sequences)
        case EndTxnRequest(committed=committed, client_level=level), EndTxnResponse():
            renews = state.phase == Phase.GIVEN_UP and not level
            ended = state._replace(
                phase=Phase.RENEWING if renews else Phase.READY,
                added=frozenset(),
                written=(0,) * len(state.written),
                wishes=(*state.wishes[:-1], Wish.COMMITTED if committed else Wish.ABORTED),
            )
            return _with_epoch(ended, found.answer) if level else ended
        case _:
            return state


def _with_epoch(state: TransactionalProducer, answer: InitProducerIdResponse | EndTxnResponse) -> TransactionalProducer:
    """The producer with the id and epoch that it is told; sequence numbers begin anew in each epoch."""
    same = (state.producer_id, state.producer_epoch) == (answer.producer_id, answer.producer_epoch)
    sequences = state.sequences if same else (0,) * len(state.sequences)
    return state._replace(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch, sequences=sequences)


# ---- connections


def is_with_leader(found: TransactionExchange, partition: int | None = None) -> bool:
    """Whether a leader (of this partition, or any) has a record: it goes on though the connection breaks."""
    if not isinstance(found.request, WriteRequest) or partition not in (None, found.request.partition):
        return False
    return found.is_taken and found.answer is None


def _add_disconnect(board: Board, producer: int) -> None:
    """A connection breaks: its request is not handled, or its answer is lost, and the producer sends it again."""
    exchange, append, left = board.slots.exchange[producer], board.slots.append, board.slots.left["disconnects"]

    def breaks(values: Values) -> object:
        found: TransactionExchange | None = values[exchange]
        if found is None or is_with_leader(found) or not values[left]:
            return REFUSED
        return {
            exchange: TransactionExchange(found.request),
            append: unanswered(values[append], live_number(producer)),
            left: values[left] - 1,
        }

    slots = [exchange, append, left]
    board.model.action(
        "Disconnect",
        {"producer": producer},
        guards=[when(lambda found: found is not None, exchange)],
        effects=[by_slot(slots, breaks, slots)],
        events=[Note(producer, "loses its connection, and sends the request again")],
    )


def _add_delay(board: Board, producer: int) -> None:
    """A request is sent again on another connection, and is still under way on the one before."""
    exchange, late = board.slots.exchange[producer], board.slots.late[producer]
    append, left = board.slots.append, board.slots.left["late_requests"]

    def delay(values: Values) -> object:
        found: TransactionExchange | None = values[exchange]
        if found is None or values[late] is not None or not values[left]:
            return REFUSED
        if found.is_taken and not is_with_leader(found):
            return REFUSED
        return {
            exchange: TransactionExchange(found.request),
            late: found,
            append: unanswered(values[append], live_number(producer), late_number(producer)),
            left: values[left] - 1,
        }

    slots = [exchange, late, append, left]
    board.model.action(
        "Delay",
        {"producer": producer},
        guards=[when(lambda found: found is not None, exchange)],
        effects=[by_slot(slots, delay, slots)],
        events=[Note(producer, "gives up its connection, on which the request is still under way, and sends it again")],
    )


def _add_giving_up(board: Board, producer: int) -> None:
    """A producer waits no longer for the answer to a record (`delivery.timeout.ms`), which may still arrive."""
    slots = board.slots
    own, exchange, late = slots.producer[producer], slots.exchange[producer], slots.late[producer]
    append, left = slots.append, slots.left["late_requests"]

    def give_up(values: Values) -> object:
        found: TransactionExchange | None = values[exchange]
        if found is None or found.answer is not None or not isinstance(found.request, WriteRequest):
            return REFUSED
        if values[late] is not None or not values[left]:
            return REFUSED
        return {
            own: values[own]._replace(phase=Phase.GIVEN_UP),
            exchange: None,
            late: found,
            append: unanswered(values[append], live_number(producer), late_number(producer)),
            left: values[left] - 1,
        }

    changed = [own, exchange, late, append, left]
    board.model.action(
        "GiveUp",
        {"producer": producer},
        guards=[when(lambda found: found is not None, exchange)],
        effects=[by_slot(changed, give_up, changed)],
        events=[Note(producer, "gives up a record that is still under way")],
    )
