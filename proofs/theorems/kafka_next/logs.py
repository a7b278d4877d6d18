"""Conjuncts about logs: their epochs, and what each leader wrote."""

from typing import Any

from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import (
    all_of,
    any_of,
    epoch_at,
    has_same_record,
    holds,
    implies,
    no,
    opened_epoch,
    same_record,
)
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch, Offset


@conjunct("LogShape", "No record is deleted at the start of a log.")
def log_shape(s: KafkaNextView, broker: BrokerId) -> Any:
    log = s.log(broker)
    return all_of(
        log.start_offset == 0,
        log.end_offset >= 0,
        s.high_watermark(broker) >= 0,
        s.high_watermark(broker) <= log.end_offset,
    )


@conjunct("EpochsInOrder", "Epochs grow along a log, and none is later than its broker's.")
def epochs_in_order(s: KafkaNextView, broker: BrokerId, offset: Offset, later: Offset) -> Any:
    log = s.log(broker)
    return implies(
        all_of(offset <= later, holds(log, later)),
        all_of(
            epoch_at(log, offset) >= 0,
            epoch_at(log, offset) <= epoch_at(log, later),
            epoch_at(log, later) <= s.epoch(broker),
        ),
    )


@conjunct(
    "OpenedByItself", "If a log ends with an epoch without records, its broker opened that epoch as leader and wrote none."
)
def opened_by_itself(s: KafkaNextView, broker: BrokerId, offset: Offset) -> Any:
    log = s.log(broker)
    opened = opened_epoch(log)
    last = implies(log.end_offset > 0, opened > epoch_at(log, log.end_offset - 1))
    return any_of(
        opened == NO_EPOCH,
        all_of(
            opened <= s.epoch(broker),
            last,
            s.opened_only(broker, opened, log.end_offset),
            implies(holds(log, offset), same_record(s.leader_log(opened), log, offset)),
        ),
    )


@conjunct("LeaderLogShape", "An epoch starts where its leader's log ended; it begins when its leader replays its election.")
def leader_log_shape(s: KafkaNextView, epoch: Epoch) -> Any:
    book, leadership = s.leader_log(epoch), s.leadership(epoch)
    highest_epoch = s.some(lambda broker: all_of(s.last_decision(epoch).leader == broker, s.epoch(broker) >= epoch))
    return all_of(
        book.start_offset == 0,
        book.end_offset >= 0,
        leadership.committed >= 0,
        implies(
            leadership.begun,
            all_of(
                highest_epoch,
                leadership.start >= 0,
                leadership.start <= book.end_offset,
                leadership.committed <= book.end_offset,
            ),
        ),
        implies(no(leadership.begun), all_of(leadership.committed == 0, book.end_offset == 0)),
    )


@conjunct("LeaderLogInOrder", "A leader's records of its own epoch come after all records that it had when the epoch began.")
def leader_log_in_order(s: KafkaNextView, epoch: Epoch, offset: Offset, later: Offset) -> Any:
    book = s.leader_log(epoch)
    own = epoch_at(book, later) == epoch
    return implies(
        all_of(offset <= later, holds(book, later)),
        all_of(
            epoch_at(book, offset) >= 0,
            epoch_at(book, offset) <= epoch_at(book, later),
            epoch_at(book, later) <= epoch,
            own == (later >= s.leadership(epoch).start),
        ),
    )


@conjunct(
    "LeaderKeepsLog", "A leader only appends while it leads. A leader that has stopped keeps that log until it starts again."
)
def leader_keeps_log(s: KafkaNextView, leader: BrokerId, offset: Offset) -> Any:
    epoch, log = s.epoch(leader), s.log(leader)
    book, leadership, opened = s.leader_log(epoch), s.leadership(epoch), opened_epoch(log)
    has_led = all_of(s.min_isr == 1, epoch >= 0, s.last_decision(epoch).leader == leader)
    wrote = all_of(log.end_offset > 0, epoch_at(log, log.end_offset - 1) == epoch)
    kept = all_of(
        leadership.begun, log.end_offset == book.end_offset, implies(holds(log, offset), same_record(log, book, offset))
    )
    leading = all_of(
        leadership.start == s.role(leader).epoch_start,
        leadership.committed <= s.high_watermark(leader),
        any_of(opened == epoch, wrote),
    )
    return all_of(implies(any_of(s.leads(leader), has_led), kept), implies(s.leads(leader), leading))


@conjunct("WrittenByLeader", "A log is, up to any record, what the leader of the record's epoch had in its log.")
def written_by_leader(s: KafkaNextView, broker: BrokerId, offset: Offset, earlier: Offset) -> Any:
    log = s.log(broker)
    epoch = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.leadership(epoch).begun, has_same_record(s.leader_log(epoch), log, earlier)),
    )


@conjunct(
    "LeaderLogWrittenByLeader", "A leader's log is at any time, up to any record, what the leader of the record's epoch had."
)
def leader_log_written_by_leader(s: KafkaNextView, epoch: Epoch, offset: Offset, earlier: Offset) -> Any:
    log = s.leader_log(epoch)
    written_in = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.leadership(written_in).begun, has_same_record(s.leader_log(written_in), log, earlier)),
    )
