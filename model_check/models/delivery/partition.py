"""Actions of the partition: its leader appends, more is committed, another replica leads.

How records come to other replicas, and who is elected, is the subject of model `kafka`. What it shows is taken as given:
a leader that is elected cleanly has all that is committed, and any beginning of the rest.
"""

from kspec.model_check.core.model import REFUSED, Arrow, Note, Slot, when
from kspec.model_check.models.delivery.board import Board
from kspec.model_check.models.delivery.producer import without_answer
from kspec.model_check.models.delivery.values import DeliveredLog, SentRecord
from kspec.model_check.models.parts import Values, by_slot
from kspec.spec.log.producers import check_producer_epoch, entry_of
from kspec.spec.messages.produce import ACKS_ALL, ACKS_NONE
from kspec.spec.values import NO_PRODUCER_ID, Error, Offset


def add_partition(board: Board) -> None:
    """Add all that the leader does, and what becomes of it."""
    slots = board.slots
    for name, channel in (("Append", slots.sent), ("AppendLate", slots.late)):
        if channel is not None:
            _add_append(board, name, channel)
    _add_commit(board)
    if board.parameters["leader_changes"]:
        for kept in range(board.records + 3):
            _add_leader_change(board, kept)
            _add_leader_death(board, kept)


def _add_append(board: Board, name: str, channel: Slot) -> None:
    """The leader takes a record, unless it has it already, and answers as the acks say; a late one is not answered."""
    log_slot = board.slots.log
    is_late = channel == board.slots.late

    def append(values: Values) -> object:
        found: SentRecord | None = values[channel]
        if found is None or found.until is not None or found.answer is not None:
            return REFUSED
        log, error, until = _appended(board, values[log_slot], found)
        if is_late or board.acks == ACKS_NONE:
            return {channel: None, log_slot: log}
        waits = board.acks == ACKS_ALL and error == Error.NONE and until > log.committed
        answered = found._replace(until=until) if waits else found._replace(until=until, answer=error)
        return {channel: answered, log_slot: log}

    event = Arrow(board.producer, board.leader, "the late record" if is_late else "the record")
    guards = [when(lambda found: found is not None, channel)]
    board.model.action(name, {}, guards, [by_slot([channel, log_slot], append, [channel, log_slot])], [event])


def _appended(board: Board, log: DeliveredLog, found: SentRecord) -> tuple[DeliveredLog, Error, Offset]:
    """The log with a record, unless its producer's rules say otherwise; and up to where it has to be committed.

    **Kafka:** `UnifiedLog.append`, `analyzeAndValidateProducerState`.
    """
    batch = found.batch._replace(base_offset=log.end)
    if batch.producer_id > NO_PRODUCER_ID:
        entry = entry_of(log.producers(), batch.producer_id)
        known = board.protocol.finds_duplicate(entry, batch)
        if known is not None:
            return log, Error.NONE, Offset(known.last_offset + 1)
        error = check_producer_epoch(entry, batch)
        if error == Error.NONE:
            error = board.protocol.check_sequences(entry, batch)
        if error != Error.NONE:
            return log, error, log.end
    after = log._replace(batches=(*log.batches, batch), records=(*log.records, found.record))
    return after, Error.NONE, after.end


def _add_commit(board: Board) -> None:
    """One more record is on all replicas in sync, so it is committed; who has waited for it is answered."""
    log_slot, sent = board.slots.log, board.slots.sent

    def commit(values: Values) -> object:
        log: DeliveredLog = values[log_slot]
        if log.committed == log.end:
            return REFUSED
        after = log._replace(committed=log.committed + 1)
        found: SentRecord | None = values[sent]
        if found is not None and found.answer is None and found.until is not None and found.until <= after.committed:
            found = found._replace(answer=Error.NONE)
        return {log_slot: after, sent: found}

    guards = [when(lambda log: log.committed < log.end, log_slot)]
    event = Note(board.leader, "the followers have the next record")
    board.model.action("Commit", {}, guards, [by_slot([log_slot, sent], commit, [log_slot, sent])], [event])


def _add_leader_change(board: Board, kept: int) -> None:
    """Another replica leads, whose log has so many records; who waits for the leader before is told that it is none."""
    log_slot, sent, left = board.slots.log, board.slots.sent, board.slots.left["leader_changes"]

    def change(values: Values) -> object:
        log: DeliveredLog = values[log_slot]
        if not values[left] or not _may_lead(board, log, kept):
            return REFUSED
        found: SentRecord | None = values[sent]
        if found is not None and found.until is not None and found.answer is None:
            found = found._replace(answer=Error.NOT_LEADER_OR_FOLLOWER)
        return {log_slot: _beginning(log, kept), sent: found, left: values[left] - 1}

    slots = [log_slot, sent, left]
    guards = [when(lambda number: number > 0, left)]
    event = Note(board.leader, f"another replica leads, with {kept} records")
    board.model.action("ChangeLeader", {"kept": kept}, guards, [by_slot(slots, change, slots)], [event])


def _add_leader_death(board: Board, kept: int) -> None:
    """The leader dies, and another replica leads: the request that was under way, or its answer, is lost."""
    log_slot, sent, left = board.slots.log, board.slots.sent, board.slots.left["leader_changes"]
    producer = board.slots.producer

    def change(values: Values) -> object:
        log: DeliveredLog = values[log_slot]
        found: SentRecord | None = values[sent]
        if found is None or not values[left] or not _may_lead(board, log, kept):
            return REFUSED
        state, again = without_answer(board, values[producer], found)
        return {producer: state, sent: again, log_slot: _beginning(log, kept), left: values[left] - 1}

    slots = [producer, sent, log_slot, left]
    guards = [when(lambda number: number > 0, left)]
    event = Note(board.leader, f"it dies, and another replica leads, with {kept} records")
    board.model.action("LeaderDies", {"kept": kept}, guards, [by_slot(slots, change, slots)], [event])


def _may_lead(board: Board, log: DeliveredLog, kept: int) -> bool:
    """Whether a replica with so many records of the log may be elected."""
    return kept <= log.end and (kept >= log.committed or bool(board.parameters["unclean"]))


def _beginning(log: DeliveredLog, kept: int) -> DeliveredLog:
    return DeliveredLog(log.batches[:kept], log.records[:kept], min(log.committed, kept))
