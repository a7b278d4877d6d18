"""Actions of the partitions' leaders: they verify, append, take markers; a partition gets another leader."""

from kspec.model_check.core.model import COORDINATOR, Arrow, Note, Slot
from kspec.model_check.models.transactions.board import NOW, Board, IdSlots, Values, answer_on, unanswered
from kspec.model_check.models.transactions.coordinator import add_action, add_delivery, answer_marker
from kspec.model_check.models.transactions.producers import is_with_leader
from kspec.model_check.models.transactions.values import (
    TO_LEADERS,
    LeaderRequest,
    OffsetsRequest,
    PartitionLog,
    SentMarker,
    TransactionExchange,
    late_number,
    live_number,
)
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.loading import replay_entry
from kspec.spec.coordinator.offsets import check_before_verification, handle_txn_offset_commit
from kspec.spec.coordinator.records import EndOfTransaction
from kspec.spec.coordinator.refusals import answer_for_verification
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.transactions.adding import handle_add_partitions_to_txn
from kspec.spec.transactions.log.partition import (
    NO_GUARD,
    LoggedBatch,
    LoggedMarker,
    append_batch,
    check_marker,
    error_after_verification,
    rebuilt_transactions,
    start_verification,
    with_marker,
)
from kspec.spec.transactions.log.reading import on_high_watermark
from kspec.spec.transactions.markers import on_markers_lost
from kspec.spec.transactions.metadata import bumps_epoch
from kspec.spec.values import Error, RequestNumber


def add_leaders(board: Board) -> None:
    """Add all that leaders do, and the delivery of all requests."""
    slots = board.slots
    for producer in board.producers:
        for channel, number in channels_of(board, producer):
            late = "Late" if channel in slots.late.values() else ""
            add_delivery(board, producer, f"Deliver{late}", channel, RequestNumber(0) if late else number)
            for partition in board.partitions:
                _add_verification(board, producer, partition, f"Verify{late}", channel, number)
                _add_append(board, producer, partition, f"Append{late}", channel)
    for partition in board.partitions:
        for own in slots.ids.values():
            _add_marker(board, own, partition, "WriteMarker", own.marker[partition])
            if partition in own.late_marker:
                _add_marker(board, own, partition, "WriteLateMarker", own.late_marker[partition])
                _add_lost_marker(board, own, partition)
        if board.parameters["leader_changes"]:
            _add_leader_change(board, partition)


def channels_of(board: Board, producer: int) -> list[tuple[Slot, RequestNumber]]:
    """The connections of a producer, also that which it has given up, and the numbers of their requests."""
    slots = board.slots
    late = [(slots.late[producer], late_number(producer))] if producer in slots.late else []
    return [(slots.exchange[producer], live_number(producer)), *late]


# ---- records


def _add_verification(board: Board, producer: int, partition: int, name: str, channel: Slot, number: RequestNumber) -> None:
    """A leader takes a record: it appends it at once, or asks the coordinator first, which answers now or later."""
    own = board.id_of(producer)
    log_slot = board.slots.partition[partition]
    group = board.of_group(partition)

    def take(values: Values) -> bool:
        found: TransactionExchange | None = values[channel]
        if found is None or found.is_taken or not isinstance(found.request, TO_LEADERS):
            return False
        request = found.request
        if request.partition != partition:
            return False
        log: PartitionLog = values[log_slot]
        error = _refused_before(board, values, request)
        if error != Error.NONE:
            _answer(board, values, channel, error)
            return True
        bumps = bumps_epoch(board.client_level)
        started = start_verification(board.protocol, log.transactions, request.batch, bumps)
        values[log_slot] = log._replace(transactions=started.state)
        if started.error != Error.NONE:
            _answer(board, values, channel, started.error)
        elif started.guard == NO_GUARD:
            _append(board, values, channel, log_slot, request, NO_GUARD)
        else:
            values[channel] = found._replace(is_taken=True, guard=started.guard)
            _ask_coordinator(board, own, values, request, number)
        return True

    event = Arrow(producer, board.leader_of(partition), "the record")
    arguments = {"producer": producer, "partition": partition}
    add_action(board, name, arguments, take, [*board.of_coordinator(own), log_slot, *group], event, channel)


def _refused_before(board: Board, values: Values, request: LeaderRequest) -> Error:
    """The error of a request that goes no further: offsets may be checked before their transaction is verified."""
    match request:
        case OffsetsRequest(commit=commit) if board.slots.group is not None:
            return check_before_verification(board.groups, values[board.slots.group], commit)
    return Error.NONE


def _ask_coordinator(board: Board, own: IdSlots, values: Values, request: LeaderRequest, number: RequestNumber) -> None:
    """Ask whether the partition is in the transaction; in version 2 it becomes part of it."""
    batch = request.batch
    places = frozenset({board.place_of(request.partition)})
    bumps = bumps_epoch(board.client_level)
    asked = AddPartitionsToTxnRequest(
        own.transactional_id,
        batch.producer_id,
        batch.producer_epoch,
        places,
        client_level=board.client_level,
        verify_only=not bumps,
    )
    state = values[own.coordinator]
    board.take(values, own, handle_add_partitions_to_txn(board.coordinator, state, number, asked, NOW))


def _add_append(board: Board, producer: int, partition: int, name: str, channel: Slot) -> None:
    """A leader has heard from the coordinator, and appends the record or refuses it."""
    log_slot = board.slots.partition[partition]
    group = board.of_group(partition)

    def append(values: Values) -> bool:
        found: TransactionExchange | None = values[channel]
        if found is None or found.verified is None or found.answer is not None:
            return False
        assert isinstance(found.request, TO_LEADERS)
        if found.request.partition != partition:
            return False
        if found.verified != Error.NONE:
            _answer(board, values, channel, _error_after(board, found.request, found.verified))
        else:
            _append(board, values, channel, log_slot, found.request, found.guard)
        return True

    event = Note(board.leader_of(partition), "hears from the coordinator")
    arguments = {"producer": producer, "partition": partition}
    add_action(board, name, arguments, append, [channel, log_slot, *group], event, channel)


def _error_after(board: Board, request: LeaderRequest, verified: Error) -> Error:
    """The error that a producer is told when the coordinator has said this of its transaction."""
    match request:
        case OffsetsRequest():
            return answer_for_verification(verified, knows_abortable=True)
        case _:
            return error_after_verification(verified, bumps_epoch(board.client_level), knows_abortable=True)


def _append(board: Board, values: Values, channel: Slot, log_slot: Slot, request: LeaderRequest, guard: int) -> None:
    """Append a record, unless it is a duplicate or refused, and answer. Offsets are checked in the same step."""
    log: PartitionLog = values[log_slot]
    placed = LoggedBatch(request.batch._replace(base_offset=log.end))
    after_commit: Group | None = None
    match request:
        case OffsetsRequest(commit=commit) if board.slots.group is not None:
            step = handle_txn_offset_commit(board.groups, values[board.slots.group], commit, NOW)
            error = step.effects[-1].message.partitions[0].error  # type: ignore[union-attr]
            if error != Error.NONE:
                _answer(board, values, channel, error)
                return
            after_commit = step.state
    checked = append_batch(board.protocol, log.transactions, placed, guard, is_sequenced=after_commit is None)
    if checked.error == Error.NONE and checked.duplicate is None:
        log = log._replace(entries=(*log.entries, placed), records=(*log.records, request.record))
        if after_commit is not None and board.slots.group is not None:
            values[board.slots.group] = after_commit
    values[log_slot] = log._replace(transactions=checked.state)
    _answer(board, values, channel, checked.error)


def _answer(board: Board, values: Values, channel: Slot, error: Error) -> None:
    """Answer a producer; nobody waits on a connection that was given up."""
    if channel in board.slots.late.values():
        values[channel] = None
    else:
        values[channel] = values[channel]._replace(is_taken=True)
        answer_on(values, channel, error)


# ---- markers


def _add_marker(board: Board, own: IdSlots, partition: int, name: str, channel: Slot) -> None:
    """A leader takes a marker, and its answer reaches the coordinator, unless the connection is broken."""
    log_slot = board.slots.partition[partition]

    def write(values: Values) -> bool:
        sent: SentMarker | None = values[channel]
        if sent is None:
            return False
        values[channel] = None
        error = _written(board, values, partition, sent.marker)
        if not sent.is_lost:
            answer_marker(board, own, values, sent, error)
        return True

    event = Arrow(
        COORDINATOR,
        board.leader_of(partition),
        "the marker" if channel in own.marker.values() else "the late marker",
    )
    changed = [*board.of_coordinator(own), log_slot, *board.of_group(partition)]
    add_action(board, name, {**own.arguments, "partition": partition}, write, changed, event, channel)


def _written(board: Board, values: Values, partition: int, marker: TransactionMarker) -> Error:
    log_slot = board.slots.partition[partition]
    log: PartitionLog = values[log_slot]
    error = check_marker(board.protocol, log.transactions, marker)
    if error == Error.NONE:
        entry = LoggedMarker(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.committed, log.end)
        after = log._replace(entries=(*log.entries, entry))
        ended = with_marker(board.protocol, log.transactions, entry)
        values[log_slot] = after._replace(transactions=on_high_watermark(ended, after.end))
        for slot in board.of_group(partition):
            decided = EndOfTransaction(marker.producer_id, marker.committed)
            values[slot] = replay_entry(values[slot], decided, board.groups.protocol.counts_at_end)
    return error


def _add_lost_marker(board: Board, own: IdSlots, partition: int) -> None:
    """The connection breaks on which a marker is sent: the coordinator sends it again, and the first may arrive late."""
    slots = board.slots
    sent_slot, late = own.marker[partition], own.late_marker[partition]
    left = slots.left["late_markers"]

    def lose(values: Values) -> bool:
        sent: SentMarker | None = values[sent_slot]
        if sent is None or values[late] is not None or not values[left]:
            return False
        values[left] -= 1
        values[late] = sent._replace(is_lost=True)
        values[sent_slot] = None
        board.take(values, own, on_markers_lost(board.coordinator, values[own.coordinator], sent.marker))
        return True

    event = Note(COORDINATOR, "loses the connection to a leader, and sends the marker again")
    arguments = {**own.arguments, "partition": partition}
    add_action(board, "DelayMarker", arguments, lose, [*board.of_coordinator(own), left], event, sent_slot)


# ---- leaders


def _add_leader_change(board: Board, partition: int) -> None:
    """Another replica leads, without the verifications of the one before, which refuses what is under way."""
    slots = board.slots
    log_slot, left = slots.partition[partition], slots.left["leader_changes"]

    def change(values: Values) -> bool:
        log: PartitionLog = values[log_slot]
        if not values[left]:
            return False
        read = rebuilt_transactions(board.protocol, log.entries)
        known = on_high_watermark(read, log.end)._replace(guards=log.transactions.guards)
        values[left] -= 1
        values[log_slot] = log._replace(transactions=known)
        for producer in board.producers:
            for channel, number in channels_of(board, producer):
                found: TransactionExchange | None = values[channel]
                if found is not None and is_with_leader(found, partition):
                    append = board.id_of(producer).append
                    values[append] = unanswered(values[append], number)
                    _answer(board, values, channel, Error.NOT_LEADER_OR_FOLLOWER)
        return True

    channels = [channel for producer in board.producers for channel, _ in channels_of(board, producer)]
    event = Note(board.leader_of(partition), "another replica leads the partition")
    appends = [own.append for own in slots.ids.values()]
    changed = [log_slot, *appends, *channels, left]
    add_action(board, "ChangeLeader", {"partition": partition}, change, changed, event, log_slot)
