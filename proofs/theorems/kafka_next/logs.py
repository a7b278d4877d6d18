"""Conjuncts about logs: their epochs, and what each leader wrote."""

from typing import Any

from proofs.induction.invariant import conjunct
from proofs.symbolic.logic import (
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
from proofs.theorems.kafka_next.view import View
from spec.values import NO_EPOCH, BrokerId, Epoch, Offset


@conjunct("LogShape", "Nothing is deleted at the start of a log.")
def log_shape(s: View, broker: BrokerId) -> Any:
    log = s.log(broker)
    return all_of(
        log.start_offset == 0,
        log.end_offset >= 0,
        s.high_watermark(broker) >= 0,
        s.high_watermark(broker) <= log.end_offset,
    )


@conjunct("EpochsInOrder", "Epochs grow along a log, and none is later than its broker's.")
def epochs_in_order(s: View, broker: BrokerId, offset: Offset, later: Offset) -> Any:
    log = s.log(broker)
    return implies(
        all_of(offset <= later, holds(log, later)),
        all_of(
            epoch_at(log, offset) >= 0,
            epoch_at(log, offset) <= epoch_at(log, later),
            epoch_at(log, later) <= s.epoch(broker),
        ),
    )


@conjunct("OpenedByItself", "An epoch that a log has no record of was opened by its broker as leader, which wrote none.")
def opened_by_itself(s: View, broker: BrokerId, offset: Offset) -> Any:
    log = s.log(broker)
    opened = opened_epoch(log)
    last = implies(log.end_offset > 0, opened > epoch_at(log, log.end_offset - 1))
    return any_of(
        opened == NO_EPOCH,
        all_of(
            opened <= s.epoch(broker),
            last,
            s.opened_only(broker, opened, log.end_offset),
            implies(holds(log, offset), same_record(s.ledger(opened), log, offset)),
        ),
    )


@conjunct("LedgerShape", "An epoch starts where its leader's log ended; it begins when its leader replays its election.")
def ledger_shape(s: View, epoch: Epoch) -> Any:
    book, term = s.ledger(epoch), s.term(epoch)
    entered = s.some(lambda broker: all_of(s.reign(epoch).leader == broker, s.epoch(broker) >= epoch))
    return all_of(
        book.start_offset == 0,
        book.end_offset >= 0,
        term.committed >= 0,
        implies(
            term.begun, all_of(entered, term.start >= 0, term.start <= book.end_offset, term.committed <= book.end_offset)
        ),
        implies(no(term.begun), all_of(term.committed == 0, book.end_offset == 0)),
    )


@conjunct("LedgerInOrder", "A leader writes its own epoch, after all that it had when the epoch began.")
def ledger_in_order(s: View, epoch: Epoch, offset: Offset, later: Offset) -> Any:
    book = s.ledger(epoch)
    own = epoch_at(book, later) == epoch
    return implies(
        all_of(offset <= later, holds(book, later)),
        all_of(
            epoch_at(book, offset) >= 0,
            epoch_at(book, offset) <= epoch_at(book, later),
            epoch_at(book, later) <= epoch,
            own == (later >= s.term(epoch).start),
        ),
    )


@conjunct("LeaderKeepsLedger", "While it leads, a leader only appends. One that has stopped has that log until it starts.")
def leader_keeps_ledger(s: View, leader: BrokerId, offset: Offset) -> Any:
    epoch, log = s.epoch(leader), s.log(leader)
    book, term, opened = s.ledger(epoch), s.term(epoch), opened_epoch(log)
    has_led = all_of(s.min_isr == 1, epoch >= 0, s.reign(epoch).leader == leader)
    wrote = all_of(log.end_offset > 0, epoch_at(log, log.end_offset - 1) == epoch)
    kept = all_of(term.begun, log.end_offset == book.end_offset, implies(holds(log, offset), same_record(log, book, offset)))
    leading = all_of(
        term.start == s.role(leader).epoch_start,
        term.committed <= s.high_watermark(leader),
        any_of(opened == epoch, wrote),
    )
    return all_of(implies(any_of(s.leads(leader), has_led), kept), implies(s.leads(leader), leading))


@conjunct("WrittenByLeader", "A log is, up to any record, what the leader of the record's epoch had.")
def written_by_leader(s: View, broker: BrokerId, offset: Offset, earlier: Offset) -> Any:
    log = s.log(broker)
    epoch = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.term(epoch).begun, has_same_record(s.ledger(epoch), log, earlier)),
    )


@conjunct("LedgerWrittenByLeader", "The same of a leader's log at any time.")
def ledger_written_by_leader(s: View, epoch: Epoch, offset: Offset, earlier: Offset) -> Any:
    log = s.ledger(epoch)
    written_in = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.term(written_in).begun, has_same_record(s.ledger(written_in), log, earlier)),
    )
