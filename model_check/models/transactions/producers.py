"""Actions of producers: they start, begin transactions, write, end them, and take answers; connections break."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.model_check.core.model import REFUSED, Note, when
from kspec.model_check.models.parts import Values, by_slot
from kspec.model_check.models.processes import GROUP, INPUT, member_name
from kspec.model_check.models.transactions.board import TIMEOUT_MS, Board, unanswered
from kspec.model_check.models.transactions.values import (
    TO_LEADERS,
    OffsetsRequest,
    Phase,
    Processor,
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
from kspec.spec.messages.groups.offset_commit import OffsetToCommit
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.transactions.clients import (
    ErrorMeaning,
    meaning_for_offsets,
    meaning_for_records,
    meaning_for_transaction,
)
from kspec.spec.values import NO_SEQUENCE, Error, Generation, Offset


def add_producers(board: Board) -> None:
    """Add all that producers do."""
    for producer in board.producers:
        _add_starting(board, producer)
        for partition in board.data_partitions:
            if not board.client_level:
                _add_adding(board, producer, partition)
            _add_writing(board, producer, partition)
        if board.has_group:
            _add_offsets(board, producer)
        for committed in (True, False):
            _add_ending(board, producer, committed)
        _add_receiving(board, producer)
        if board.parameters["disconnects"]:
            _add_disconnect(board, producer)
        if board.parameters["late_requests"]:
            _add_delay(board, producer)
            _add_giving_up(board, producer)


class ProducerMove(NamedTuple):
    """A request of a producer, and its state from then on."""

    state: TransactionalProducer
    request: ProducerRequest
    processor: Processor | None = None


def _add_request(board: Board, producer: int, name: str, arguments: dict[str, Any], what: str, ask: Any) -> None:
    """Add an action by which a producer that waits for no answer sends a request; `ask` gives `None` if it does not."""
    own, exchange = board.slots.producer[producer], board.slots.exchange[producer]
    processor = board.slots.processor.get(producer)
    slots = [own, exchange] if processor is None else [own, exchange, processor]

    def send(values: Values) -> object:
        process = None if processor is None else values[processor]
        found: ProducerMove | None = ask(values[own], process)
        if found is None or values[exchange] is not None:
            return REFUSED
        sent = {own: found.state, exchange: TransactionExchange(found.request)}
        return sent if processor is None else sent | {processor: found.processor or process}

    board.model.action(
        name,
        {"producer": producer, **arguments},
        guards=[when(lambda under_way: under_way is None, exchange)],
        effects=[by_slot(slots, send, slots)],
        events=[Note(producer, f"sends {what}")],
    )


def _add_starting(board: Board, producer: int) -> None:
    """A producer starts; or it asks for its next epoch, since a record that it has given up may yet arrive (KIP-360)."""
    transactional_id = board.id_of(producer).transactional_id

    def ask(state: TransactionalProducer, process: Processor | None) -> ProducerMove | None:
        if state.phase not in (Phase.NEW, Phase.RENEWING):
            return None
        named = (state.producer_id, state.producer_epoch)
        return ProducerMove(state, InitProducerIdRequest(*named, transactional_id, TIMEOUT_MS))

    _add_request(board, producer, "Initialise", {}, "InitProducerId", ask)


Begun = tuple[TransactionalProducer, Processor | None]


def _in_transaction(board: Board, state: TransactionalProducer, process: Processor | None) -> Begun | None:
    """The producer in its transaction, which it may begin now; `None` if it may not. A process needs an input for that."""
    if state.phase == Phase.OPEN:
        return state, process
    if state.phase != Phase.READY or len(state.wishes) == board.parameters["transactions"]:
        return None
    if process is not None:
        if not process.generation or process.position is None or process.position == board.parameters["inputs"]:
            return None
        process = process._replace(inputs=(*process.inputs, process.position), offered=False)
    nothing = (0,) * len(board.data_partitions)
    begun = state._replace(phase=Phase.OPEN, added=frozenset(), written=nothing, wishes=(*state.wishes, Wish.NONE))
    return begun, process


def _add_adding(board: Board, producer: int, partition: int) -> None:
    transactional_id = board.id_of(producer).transactional_id

    def ask(state: TransactionalProducer, process: Processor | None) -> ProducerMove | None:
        begun = _in_transaction(board, state, process)
        if begun is None or partition in begun[0].added:
            return None
        places = frozenset({board.place_of(partition)})
        named = (transactional_id, state.producer_id, state.producer_epoch)
        return ProducerMove(begun[0], AddPartitionsToTxnRequest(*named, places), begun[1])

    _add_request(board, producer, "AddPartition", {"partition": partition}, f"AddPartitionsToTxn of {partition}", ask)


def _add_writing(board: Board, producer: int, partition: int) -> None:
    def ask(state: TransactionalProducer, process: Processor | None) -> ProducerMove | None:
        begun = _in_transaction(board, state, process)
        if begun is None or begun[0].written[partition] == board.parameters["records"]:
            return None
        if not board.client_level and partition not in begun[0].added:
            return None
        batch = ProducerBatch(state.producer_id, state.producer_epoch, state.sequences[partition], 1)
        record = RecordOf(producer, len(begun[0].wishes))
        return ProducerMove(begun[0], WriteRequest(partition, batch, record), begun[1])

    _add_request(board, producer, "Write", {"partition": partition}, f"a record for {partition}", ask)


def _add_ending(board: Board, producer: int, committed: bool) -> None:
    transactional_id = board.id_of(producer).transactional_id

    def ask(state: TransactionalProducer, process: Processor | None) -> ProducerMove | None:
        is_to_abort = state.phase in (Phase.BROKEN, Phase.GIVEN_UP)
        if state.phase != Phase.OPEN and (committed or not is_to_abort):
            return None
        if committed and process is not None and not process.offered:
            return None
        wish = Wish.COMMIT if committed else Wish.ABORT
        asked = state._replace(wishes=(*state.wishes[:-1], wish))
        named = (transactional_id, state.producer_id, state.producer_epoch)
        return ProducerMove(asked, EndTxnRequest(*named, committed, board.client_level))

    name, what = ("Commit", "EndTxn to commit") if committed else ("Abort", "EndTxn to abort")
    _add_request(board, producer, name, {}, what, ask)


# ---- offsets


def _add_offsets(board: Board, producer: int) -> None:
    """A process has written its output: the offset behind its input becomes part of the transaction."""
    transactional_id = board.id_of(producer).transactional_id
    partition, is_unnamed = board.group_partition, board.parameters["unnamed_members"]

    def add(state: TransactionalProducer, process: Processor) -> ProducerMove | None:
        if state.phase != Phase.OPEN or not any(state.written) or partition in state.added:
            return None
        return ProducerMove(state, AddOffsetsToTxnRequest(transactional_id, state.producer_id, state.producer_epoch, GROUP))

    def commit(state: TransactionalProducer, process: Processor) -> ProducerMove | None:
        if state.phase != Phase.OPEN or not any(state.written) or process.offered or process.position is None:
            return None
        if not board.client_level and partition not in state.added:
            return None
        named = (transactional_id, GROUP, state.producer_id, state.producer_epoch)
        offsets = (OffsetToCommit(INPUT, 0, Offset(process.position + 1)),)
        member = () if is_unnamed else (Generation(process.generation), member_name(producer))
        batch = ProducerBatch(state.producer_id, state.producer_epoch, NO_SEQUENCE, 1)
        record = RecordOf(producer, len(state.wishes))
        return ProducerMove(
            state, OffsetsRequest(partition, batch, record, TxnOffsetCommitRequest(*named, offsets, *member))
        )

    if not board.client_level:
        _add_request(board, producer, "AddOffsets", {}, "AddOffsetsToTxn", add)
    _add_request(board, producer, "CommitOffsets", {}, "TxnOffsetCommit", commit)


# ---- answers


def _add_receiving(board: Board, producer: int) -> None:
    own, exchange = board.slots.producer[producer], board.slots.exchange[producer]
    processor = board.slots.processor.get(producer)
    slots = [own, exchange] if processor is None else [own, exchange, processor]

    def receive(values: Values) -> object:
        found: TransactionExchange | None = values[exchange]
        if found is None or found.answer is None:
            return REFUSED
        error = error_in(found.answer)
        after = dict(values)
        after[exchange] = None
        match meaning_of(found.request)(error):
            case ErrorMeaning.AGAIN:
                after[exchange] = TransactionExchange(found.request)
            case ErrorMeaning.ABORT:
                after[own] = values[own]._replace(phase=Phase.BROKEN)
                if processor is not None and error in OUT_OF_GROUP:
                    after[processor] = values[processor]._replace(generation=0)
            case ErrorMeaning.FATAL:
                after[own] = values[own]._replace(phase=Phase.FATAL, failed=error)
            case ErrorMeaning.DONE:
                after[own] = granted(board, values[own], found)
                if processor is not None:
                    after[processor] = processed(values[processor], found)
        return after

    board.model.action(
        "Receive",
        {"producer": producer},
        guards=[when(lambda found: found is not None and found.answer is not None, exchange)],
        effects=[by_slot(slots, receive, slots)],
        events=[Note(producer, "takes the answer")],
    )


OUT_OF_GROUP = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)
"""The errors by which a process learns that it is no member any more."""


def meaning_of(request: ProducerRequest) -> Callable[[Error], ErrorMeaning]:
    """The rule by which a producer takes the answer to a request."""
    match request:
        case WriteRequest():
            return meaning_for_records
        case OffsetsRequest():
            return meaning_for_offsets
        case _:
            return meaning_for_transaction


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


def granted(board: Board, state: TransactionalProducer, found: TransactionExchange) -> TransactionalProducer:
    """The producer when its request is granted."""
    match found.request, found.answer:
        case InitProducerIdRequest(), InitProducerIdResponse():
            return _with_epoch(state, found.answer)._replace(phase=Phase.READY)
        case AddPartitionsToTxnRequest(partitions=partitions), _:
            return state._replace(added=state.added | {place.partition for place in partitions})
        case AddOffsetsToTxnRequest(), _:
            return state._replace(added=state.added | {board.group_partition})
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


def processed(process: Processor, found: TransactionExchange) -> Processor:
    """The process when a request of its producer is granted: it reads on, or once more after an abort."""
    match found.request:
        case OffsetsRequest():
            return process._replace(offered=True)
        case EndTxnRequest(committed=True):
            position = None if process.position is None else process.position + 1
            return process._replace(position=position, offered=False)
        case EndTxnRequest():
            return process._replace(position=None, offered=False)
        case _:
            return process


def _with_epoch(state: TransactionalProducer, answer: InitProducerIdResponse | EndTxnResponse) -> TransactionalProducer:
    """The producer with the id and epoch that it is told; sequence numbers begin anew in each epoch."""
    same = (state.producer_id, state.producer_epoch) == (answer.producer_id, answer.producer_epoch)
    sequences = state.sequences if same else (0,) * len(state.sequences)
    return state._replace(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch, sequences=sequences)


# ---- connections


def is_with_leader(found: TransactionExchange, partition: int | None = None) -> bool:
    """Whether a leader (of this partition, or any) has a record: it goes on though the connection breaks."""
    if not isinstance(found.request, TO_LEADERS) or partition not in (None, found.request.partition):
        return False
    return found.is_taken and found.answer is None


def _add_disconnect(board: Board, producer: int) -> None:
    """A connection breaks: its request is not handled, or its answer is lost, and the producer sends it again."""
    exchange, append = board.slots.exchange[producer], board.id_of(producer).append
    left = board.slots.left["disconnects"]

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
    append, left = board.id_of(producer).append, board.slots.left["late_requests"]

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
    append, left = board.id_of(producer).append, slots.left["late_requests"]

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
