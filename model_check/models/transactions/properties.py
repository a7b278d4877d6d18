"""The claims about transactions, as properties of the model."""

from typing import Any

from kspec.model_check.core.model import LivenessProperty, PropertyCase, Slot, when
from kspec.model_check.core.temporal import weak
from kspec.model_check.models.transactions.board import Board
from kspec.model_check.models.transactions.values import PartitionLog, Processor, RecordOf, TransactionalProducer, Wish
from kspec.spec.claims import claim
from kspec.spec.coordinator.group import Group
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction
from kspec.spec.transactions.log.partition import LoggedBatch, LoggedMarker, OpenTransaction
from kspec.spec.transactions.log.reading import aborted_between, committed_batches, last_stable_offset
from kspec.spec.transactions.metadata import AT_REST, PREPARED
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import LAST_PRODUCER_EPOCH, Error, Offset

FENCED = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
"""The errors by which a producer learns that it is fenced."""

START = Offset(0)
ASKED_TO_COMMIT = (Wish.COMMIT, Wish.COMMITTED)


def add_properties(board: Board) -> None:
    """Add all properties, and what shows that their premises can be met."""
    model, slots = board.model, board.slots
    logs = list(slots.partition.values())
    producers = list(slots.producer.items())

    def reads_only_committed(log: PartitionLog, *states: TransactionalProducer) -> bool:
        read = {one for start in range(log.end) for one in readable(board.protocol, log, Offset(start))}
        return all(wish_for(one, states) in ASKED_TO_COMMIT for one in read)

    def keeps_committed(log: PartitionLog, *states: TransactionalProducer) -> bool:
        return all(wish_for(one, states) != Wish.COMMITTED for one in ended(log, committed=False))

    own = [slot for _, slot in producers]
    model.always(
        "OnlyCommittedIsRead",
        [when(reads_only_committed, log, *own) for log in logs],
        claim("OnlyCommittedIsRead", "transactions"),
        "RecordIsRead",
    )
    model.always(
        "CommittedIsKept",
        [when(keeps_committed, log, *own) for log in logs],
        claim("CommittedIsKept", "transactions"),
        "CommitIsKnown",
    )

    def has_one_end(*all_logs: PartitionLog) -> bool:
        committed = {one for log in all_logs for one in ended(log, committed=True)}
        return committed.isdisjoint(one for log in all_logs for one in ended(log, committed=False))

    model.always("OneEnd", [when(has_one_end, *logs)], claim("OneEnd", "transactions"), "RecordIsRead")
    model.always(
        "TransactionsApart",
        [when(are_apart, log) for log in logs],
        claim("TransactionsApart", "transactions"),
        "RecordIsRead",
    )
    model.always(
        "OpenIsKnown",
        [
            when(
                lambda log, *known, place=place: is_known(place, log, known),
                slot,
                *(one for own in slots.ids.values() for one in (own.coordinator, own.append)),
            )
            for place, slot in ((board.place_of(one), slot) for one, slot in slots.partition.items())
        ],
        claim("OpenIsKnown", "transactions"),
        "RecordIsRead",
    )
    model.always(
        "StableIsDecided",
        [when(lambda log: is_decided(board.protocol, log), log) for log in logs],
        claim("StableIsDecided", "transactions"),
        "RecordIsRead",
    )
    budgets = [name for name in ("timeouts", "late_requests") if name in slots.left]
    allowed = [board.parameters[name] for name in budgets]
    left = [slots.left[name] for name in budgets]

    def fails_if_fenced(state: TransactionalProducer, *others: int) -> bool:
        may_be_fenced = len(producers) > 1 or any(now < before for now, before in zip(others, allowed, strict=True))
        return state.failed is None or (may_be_fenced and state.failed in FENCED)

    model.always(
        "FailsIfFenced",
        [when(fails_if_fenced, slot, *left) for slot in own],
        claim("FailsIfFenced", "transactions"),
        "CommitIsKnown",
    )
    model.always(
        "EpochWithinBounds",
        [
            when(lambda known: known.metadata is None or has_epoch(known.metadata.producer_epoch), own.coordinator)
            for own in slots.ids.values()
        ],
        claim("EpochWithinBounds", "transactions"),
    )
    model.sometimes(
        "RecordIsRead",
        [when(lambda log: bool(readable(board.protocol, log)), log) for log in logs],
        claim("RecordIsRead", "transactions"),
    )
    model.sometimes(
        "CommitIsKnown",
        [when(lambda state: Wish.COMMITTED in state.wishes, slot) for slot in own],
        claim("CommitIsKnown", "transactions"),
    )
    if slots.group is not None:
        _add_processing(board, slots.group)
    _add_progress(board)


def _add_processing(board: Board, group: Slot) -> None:
    """Each input has its output once: no more, since offsets are committed with the output, and no less."""
    model, slots = board.model, board.slots
    processes = list(slots.processor.values())
    logs = [slots.partition[one] for one in board.data_partitions]

    def has_no_output_twice(log: PartitionLog, *states: Processor) -> bool:
        inputs = [input_of(one, states) for one in readable(board.protocol, log)]
        return len(inputs) == len(set(inputs))

    model.always(
        "EachInputOnce",
        [when(has_no_output_twice, log, *processes) for log in logs],
        claim("EachInputOnce", "transactions"),
        "OffsetIsCommitted",
    )

    def skips_no_input(found: Group, *values: Any) -> bool:
        states, all_logs = values[: len(processes)], values[len(processes) :]
        written = {
            input_of(record, states)
            for log in all_logs
            for record in (record for _, record in log.placed())
            if record not in ended(log, committed=False)
        }
        return all(number in written for one in found.offsets for number in range(one.offset))

    model.always(
        "NoInputSkipped",
        [when(skips_no_input, group, *processes, *logs)],
        claim("NoInputSkipped", "transactions"),
        "OffsetIsCommitted",
    )
    model.sometimes(
        "OffsetIsCommitted",
        [when(lambda found: bool(found.offsets), group)],
        claim("OffsetIsCommitted", "transactions"),
    )


def input_of(record: RecordOf, states: tuple[Processor, ...]) -> int | None:
    """The input of which a record is the output."""
    return states[record.producer - 1].inputs[record.transaction - 1]


def has_epoch(epoch: int) -> bool:
    """Whether there is such an epoch."""
    return epoch <= LAST_PRODUCER_EPOCH


def wish_for(record: RecordOf, states: tuple[TransactionalProducer, ...]) -> Wish:
    """The end that its producer has asked for, for the transaction of a record."""
    return states[record.producer - 1].wishes[record.transaction - 1]


def readable(protocol: TransactionProtocol, log: PartitionLog, start: Offset = START) -> tuple[RecordOf, ...]:
    """The records that a consumer gets which reads what is committed, from an offset on."""
    stable = last_stable_offset(protocol, log.transactions, Offset(0), log.end)
    aborted = aborted_between(protocol, log.transactions.aborted, start, stable)
    known = dict(log.placed())
    return tuple(known[one.batch.base_offset] for one in committed_batches(log.entries[start:stable], aborted))


def ended(log: PartitionLog, committed: bool) -> tuple[RecordOf, ...]:
    """The records whose transaction has this end in the log: by the first marker of their producer after them."""
    found = []
    for offset, record in log.placed():
        entry = log.entries[offset]
        assert isinstance(entry, LoggedBatch)
        after = log.entries[offset:]
        ends = [one for one in after if isinstance(one, LoggedMarker) and one.producer_id == entry.batch.producer_id]
        if ends and ends[0].committed == committed:
            found.append(record)
    return tuple(found)


def are_apart(log: PartitionLog) -> bool:
    """Whether between two markers of a producer id there are records of one transaction alone."""
    known = dict(log.placed())
    open_now: dict[int, RecordOf] = {}
    for offset, entry in enumerate(log.entries):
        match entry:
            case LoggedMarker():
                open_now.pop(entry.producer_id, None)
            case LoggedBatch():
                record = known[Offset(offset)]
                if open_now.setdefault(entry.batch.producer_id, record) != record:
                    return False
    return True


def is_known(place: TopicPartition, log: PartitionLog, known: tuple[Any, ...]) -> bool:
    """Whether a coordinator knows of each transaction that is open in the log, and so is going to end it.

    `known` has for each transactional id what its coordinator knows, and the record that is being written.
    """
    found = list(zip(known[::2], known[1::2], strict=True))
    return all(any(_knows(state, append, one, place) for state, append in found) for one in log.transactions.ongoing)


def _knows(
    known: CoordinatedTransaction, append: AppendTransaction | None, one: OpenTransaction, place: TopicPartition
) -> bool:
    metadata = known.metadata
    if metadata is None or one.producer_id != metadata.producer_id:
        return False
    return place in metadata.partitions or (append is not None and place in append.target.partitions)


def is_decided(protocol: TransactionProtocol, log: PartitionLog) -> bool:
    """Whether each record below the last stable offset has the end of its transaction after it."""
    stable = last_stable_offset(protocol, log.transactions, Offset(0), log.end)
    decided = (*ended(log, committed=True), *ended(log, committed=False))
    return all(offset >= stable or record in decided for offset, record in log.placed())


def _add_progress(board: Board) -> None:
    """A transaction whose end is decided comes to its end."""
    model, slots = board.model, board.slots
    names = ("CommitRecord", "WriteMarker")
    model.fairness += [weak(name, each=True) for name in names]
    cases = [
        PropertyCase(
            " ".join(["the transaction", *(f"of id {number}" for number in own.arguments.values())]),
            ((when(lambda known: known.metadata is not None and known.metadata.state in PREPARED, own.coordinator),),),
            ((when(lambda known: known.metadata is not None and known.metadata.state in AT_REST, own.coordinator),),),
        )
        for own in slots.ids.values()
    ]
    model.liveness.append(
        LivenessProperty("TransactionEnds", "leads-to", tuple(cases), claim("TransactionEnds", "transactions"))
    )
