"""The laws of the log algebra (`spec.log.Log`), one list for every carrier and for the prover.

A law is a function that returns true for all logs, offsets and epochs that it is called with. Its name, and a sentence,
say what it means. Tests check every law on the carriers that programs use. The prover evaluates the same functions on
symbolic logs (`proofs.symbolic.log`), where it assumes some of them and proves the rest. So laws speak of one offset at a
time and use nothing but the algebra. The parameters of a law say what it needs:

- `log`, `other`: logs of one carrier, often with a common beginning; the latest epoch may only have been opened;
- `follower`, `leader`: logs of two replicas that one series of leaders has written;
- `batches`, `more`: batches to append, of few records;
- `batch`, `next_batch`: batches to append, of any number of records; `part`: fewer records than `batch` has;
- `offset`, `position`: offsets from 0 on, within the logs and a little beyond;
- `epoch`, `later`: leader epochs from `NO_EPOCH` on; `limit`: a number of records from 0 on.

To check another carrier, make a `Carrier` of it and run it through `LAWS`, as `tests/spec/test_log_laws.py` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Generic, TypeVar, cast

from kspec.spec.log.algebra import Log
from kspec.spec.log.batch import Batch, Batches, count_records, records_of
from kspec.spec.published.truncation import truncate_to_common_epoch
from kspec.spec.values import NO_EPOCH, NO_VALUE, UNDEFINED_EPOCH_END, Epoch, Offset, Record

LogT = TypeVar("LogT", bound=Log)


@dataclass(frozen=True)
class Carrier(Generic[LogT]):
    """A kind of log: how it is made, and which of the laws it claims.

    `log` makes a log from (epoch, value) pairs and a start offset. `keeps_any_order` says that it also keeps records whose
    epochs go back, which an epoch history cannot represent; `compares_logs`, that it has `holds_as` and `agreement_end`;
    `keeps_values`, that reading shows the records' values.
    """

    name: str
    log: Callable[[Sequence[tuple[int, int]], int], LogT]
    keeps_any_order: bool = False
    compares_logs: bool = False
    keeps_values: bool = True


@dataclass(frozen=True)
class Law:
    """A law holds for all arguments for which `given` is true; `in_order` if only where epochs never go back."""

    name: str
    statement: str
    given: Callable[..., bool]
    holds: Callable[..., bool]
    in_order: bool

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of the law and its premise."""
        return frozenset(signature(self.holds).parameters) | frozenset(signature(self.given).parameters)

    @property
    def compares_logs(self) -> bool:
        """Whether it needs a carrier with `holds_as`, `agrees_below` and `agreement_end`."""
        asked = {*self.given.__code__.co_names, *self.holds.__code__.co_names}
        return not asked.isdisjoint({"holds_as", "agrees_below", "agreement_end"})

    def applies_to(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the law says anything about these arguments."""
        return _called(self.given, arguments)

    def holds_for(self, arguments: Mapping[str, Any]) -> bool:
        """Whether it holds for them; asked only where it applies."""
        return _called(self.holds, arguments)


def _called(function: Callable[..., bool], arguments: Mapping[str, Any]) -> bool:
    return function(*(arguments[name] for name in signature(function).parameters))


LAWS: list[Law] = []
"""All laws, in the order of this file."""


def law(
    statement: str, *, given: Callable[..., bool] = lambda: True, in_order: bool = False
) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """Add a function to the list of laws."""

    def add(holds: Callable[..., bool]) -> Callable[..., bool]:
        LAWS.append(Law(holds.__name__, statement, given, holds, in_order))
        return holds

    return add


def within(log: Log, offset: Offset) -> bool:
    return log.start_offset <= offset < log.end_offset


def last_epoch(log: Log) -> Epoch:
    """The epoch of the last record, whatever epoch has been opened since."""
    return log.epoch_at(Offset(log.end_offset - 1))


def read_one(log: Log, offset: Offset) -> tuple[Record, ...]:
    """The record at `offset`, if the log holds one."""
    return records_of(log.read(offset, 1))


# ---- append


@law("The end moves by the number of records appended.")
def append_moves_the_end(log: Log, batches: Batches) -> bool:
    return log.append(batches).end_offset == log.end_offset + count_records(batches)


@law("The start stays where it is.")
def append_keeps_the_start(log: Log, batches: Batches) -> bool:
    return log.append(batches).start_offset == log.start_offset


@law("What was there can still be read.", given=within)
def append_keeps_the_records(log: Log, offset: Offset, batches: Batches) -> bool:
    return read_one(log.append(batches), offset) == read_one(log, offset)


@law("What was there keeps its epoch.", given=within)
def append_keeps_the_epochs(log: Log, offset: Offset, batches: Batches) -> bool:
    return log.append(batches).epoch_at(offset) == log.epoch_at(offset)


@law("Reading from the old end gives the records that were appended.")
def appended_records_are_read(log: Log, batches: Batches) -> bool:
    return records_of(log.append(batches).read(log.end_offset, count_records(batches))) == records_of(batches)


@law("The epochs after the old end are those of what was appended.")
def appended_records_give_their_epochs(log: Log, batches: Batches) -> bool:
    appended, records = log.append(batches), records_of(batches)
    offsets = [Offset(log.end_offset + position) for position in range(len(records))]
    return [appended.epoch_at(offset) for offset in offsets] == [record.leader_epoch for record in records]


@law("The last batch gives the latest epoch.", given=lambda batches: len(batches) > 0)
def appended_batches_give_the_latest_epoch(log: Log, batches: Batches) -> bool:
    return log.append(batches).latest_epoch == batches[-1].leader_epoch


@law("To append nothing changes nothing, not even an opened epoch.")
def appending_nothing_changes_nothing(log: Log) -> bool:
    return log.append(()) == log


@law("It does not matter in how many appends batches arrive.")
def append_in_steps(log: Log, batches: Batches, more: Batches) -> bool:
    return log.append(batches).append(more) == log.append(batches + more)


@law("To append batches is to append their records one by one.")
def appending_batches_is_appending_their_records(log: Log, batches: Batches) -> bool:
    one_by_one = log
    for record in records_of(batches):
        one_by_one = one_by_one.append((record,))
    return log.append(batches) == one_by_one


@law("Batches at the end of the log are an append.")
def appending_at_the_end_is_an_append(log: Log, batches: Batches) -> bool:
    return log.append_at(log.end_offset, batches) == log.append(batches)


@law(
    "Batches after a gap are read where they are put; the gap keeps the epoch before it.",
    given=lambda log, offset, batches: offset >= log.end_offset and len(batches) > 0,
)
def append_after_a_gap(log: Log, offset: Offset, batches: Batches) -> bool:
    longer, count = log.append_at(offset, batches), count_records(batches)
    ends = (longer.start_offset, longer.end_offset) == (log.start_offset, offset + count)
    filled = offset == log.end_offset or longer.epoch_at(log.end_offset) == log.latest_epoch
    return ends and filled and records_of(longer.read(offset, count)) == records_of(batches)


# ---- a batch of any number of records


@law("The end moves by the number of a batch's records.")
def a_batch_moves_the_end(log: Log, batch: Batch) -> bool:
    appended = log.append((batch,))
    return (appended.start_offset, appended.end_offset) == (log.start_offset, log.end_offset + batch.record_count)


@law("A batch gives its epoch to each of its records, and to the log.")
def a_batch_gives_its_epoch(log: Log, offset: Offset, batch: Batch) -> bool:
    appended = log.append((batch,))
    is_in_batch = log.end_offset <= offset < appended.end_offset
    epoch = batch.leader_epoch if is_in_batch else log.epoch_at(offset)
    return appended.latest_epoch == batch.leader_epoch and appended.epoch_at(offset) == epoch


@law(
    "Each record of a batch is read as one record with its payload.",
    given=lambda log, offset, batch: log.end_offset <= offset < log.end_offset + batch.record_count,
)
def a_record_of_a_batch_is_read(log: Log, offset: Offset, batch: Batch) -> bool:
    return read_one(log.append((batch,)), offset) == (Record(cast(int, batch.payload), batch.leader_epoch),)


@law("Where one batch of an epoch ends and the next begins does not matter.")
def a_batch_in_two_parts(log: Log, batch: Batch, part: int) -> bool:
    first, second = batch._replace(record_count=part), batch._replace(record_count=batch.record_count - part)
    return log.append((batch,)) == log.append((first, second))


@law("It does not matter in how many appends two batches arrive.")
def two_batches_in_two_appends(log: Log, batch: Batch, next_batch: Batch) -> bool:
    return log.append((batch, next_batch)) == log.append((batch,)).append((next_batch,))


@law("A log cut inside a batch holds the batch up to there.")
def a_batch_cut_inside(log: Log, batch: Batch, part: int) -> bool:
    cut = log.append((batch,)).truncate_to(Offset(log.end_offset + part))
    return cut == log.append((batch._replace(record_count=part),))


@law("To truncate where the log ended takes back a batch.")
def truncation_takes_back_a_batch(log: Log, batch: Batch) -> bool:
    return log.append((batch,)).truncate_to(log.end_offset) == log.truncate_to(log.end_offset)


# ---- read


@law("A read gives as many records as there are, but at most the limit.", given=within)
def read_gives_what_fits(log: Log, offset: Offset, limit: int) -> bool:
    return count_records(log.read(offset, limit)) == min(limit, log.end_offset - offset)


@law("Outside the log there is nothing to read.", given=lambda log, offset: not within(log, offset))
def read_outside_gives_nothing(log: Log, offset: Offset, limit: int) -> bool:
    return log.read(offset, limit) == ()


@law("It does not matter in how many steps records are read.", given=within)
def read_in_steps(log: Log, offset: Offset, limit: int) -> bool:
    return records_of(log.read(offset, 1 + limit)) == read_one(log, offset) + records_of(log.read(Offset(offset + 1), limit))


# ---- epoch_at


@law("A record's epoch is the one that reading it shows.", given=within)
def epoch_at_a_record(log: Log, offset: Offset) -> bool:
    return log.epoch_at(offset) == read_one(log, offset)[0].leader_epoch


@law("Outside the log there is no epoch.", given=lambda log, offset: not within(log, offset))
def no_epoch_outside(log: Log, offset: Offset) -> bool:
    return log.epoch_at(offset) == NO_EPOCH


@law("Before the first record there is no epoch either: not at offset -1.")
def no_epoch_below_zero(log: Log) -> bool:
    return log.epoch_at(Offset(-1)) == NO_EPOCH


@law("A log has no latest epoch exactly if it is empty and none was opened.")
def no_latest_epoch_without_records(log: Log) -> bool:
    emptied = log.truncate_to(log.start_offset)
    return emptied.latest_epoch == NO_EPOCH and (log.latest_epoch != NO_EPOCH or log == emptied)


# ---- truncate_to


@law("The log ends at the truncation offset, or where it ended before if that is lower.")
def truncation_moves_the_end(log: Log, offset: Offset) -> bool:
    return log.truncate_to(offset).end_offset == min(offset, log.end_offset)


@law("The log starts where it did, or at the truncation offset if that is lower.")
def truncation_lowers_the_start(log: Log, offset: Offset) -> bool:
    return log.truncate_to(offset).start_offset == min(offset, log.start_offset)


@law("What lies before the truncation offset can still be read.", given=lambda offset, position: position < offset)
def truncation_keeps_the_records(log: Log, offset: Offset, position: Offset) -> bool:
    return read_one(log.truncate_to(offset), position) == read_one(log, position)


@law("What lies before the truncation offset keeps its epoch.", given=lambda offset, position: position < offset)
def truncation_keeps_the_epochs(log: Log, offset: Offset, position: Offset) -> bool:
    return log.truncate_to(offset).epoch_at(position) == log.epoch_at(position)


@law("The latest epoch becomes that of the last record left.")
def truncation_gives_the_latest_epoch(log: Log, offset: Offset) -> bool:
    truncated = log.truncate_to(offset)
    return truncated.latest_epoch == last_epoch(truncated)


@law("To truncate again changes nothing.")
def truncation_is_idempotent(log: Log, offset: Offset) -> bool:
    truncated = log.truncate_to(offset)
    return truncated.truncate_to(offset) == truncated


@law("Of two truncations the lower one counts, whichever comes first.")
def truncation_keeps_the_lower(log: Log, offset: Offset, position: Offset) -> bool:
    return log.truncate_to(offset).truncate_to(position) == log.truncate_to(min(offset, position))


@law("To truncate where the log ended takes back an append.")
def truncation_takes_back_an_append(log: Log, batches: Batches) -> bool:
    end = log.end_offset
    return log.append(batches).truncate_to(end) == log.truncate_to(end)


@law(
    "Every truncation takes back an opened epoch without records, even one beyond the end.",
    given=lambda log, epoch: epoch > log.latest_epoch,
)
def truncation_takes_back_an_opened_epoch(log: Log, epoch: Epoch, offset: Offset) -> bool:
    return log.open_epoch(epoch).truncate_to(offset) == log.truncate_to(offset)


# ---- start_at and restart_at


def _between_its_ends(log: Log, offset: Offset) -> bool:
    return log.start_offset <= offset <= log.end_offset


def _in_order(log: Log, offset: Offset, position: Offset) -> bool:
    return log.start_offset <= offset <= position <= log.end_offset


@law("The log starts at the new start, and ends where it did.", given=_between_its_ends)
def starting_later_moves_the_start(log: Log, offset: Offset) -> bool:
    later = log.start_at(offset)
    return (later.start_offset, later.end_offset) == (offset, log.end_offset)


@law(
    "From the new start on everything can still be read, and keeps its epoch.",
    given=lambda log, offset, position: _between_its_ends(log, offset) and position >= offset,
)
def starting_later_keeps_the_records(log: Log, offset: Offset, position: Offset) -> bool:
    later = log.start_at(offset)
    return read_one(later, position) == read_one(log, position) and later.epoch_at(position) == log.epoch_at(position)


@law("Before the new start there is nothing.", given=_between_its_ends)
def nothing_before_the_new_start(log: Log, offset: Offset) -> bool:
    later, before = log.start_at(offset), Offset(offset - 1)
    return read_one(later, before) == () and later.epoch_at(before) == NO_EPOCH


@law("The latest epoch stays, even if no record does.", given=_between_its_ends)
def starting_later_keeps_the_latest_epoch(log: Log, offset: Offset) -> bool:
    return log.start_at(offset).latest_epoch == log.latest_epoch


@law("Of two starts the later one counts.", given=_in_order)
def the_later_start_counts(log: Log, offset: Offset, position: Offset) -> bool:
    return log.start_at(offset).start_at(position) == log.start_at(position)


@law("A log restarted anywhere is empty there, and knows no epoch.")
def a_restarted_log_is_empty(log: Log, offset: Offset) -> bool:
    restarted = log.restart_at(offset)
    return (restarted.start_offset, restarted.end_offset, restarted.latest_epoch) == (offset, offset, NO_EPOCH)


@law("What the log was before does not matter.")
def a_restart_forgets(log: Log, batches: Batches, offset: Offset) -> bool:
    return log.append(batches).restart_at(offset) == log.restart_at(offset)


# ---- open_epoch: a leader opens an epoch above all that its log knows


def is_new(log: Log, epoch: Epoch) -> bool:
    return epoch > log.latest_epoch


@law("To open an epoch moves neither end of the log.", given=is_new)
def opening_keeps_both_ends(log: Log, epoch: Epoch) -> bool:
    opened = log.open_epoch(epoch)
    return (opened.start_offset, opened.end_offset) == (log.start_offset, log.end_offset)


@law("To open an epoch writes no record.", given=is_new)
def opening_keeps_the_records(log: Log, epoch: Epoch, offset: Offset) -> bool:
    opened = log.open_epoch(epoch)
    return read_one(opened, offset) == read_one(log, offset) and opened.epoch_at(offset) == log.epoch_at(offset)


@law("The opened epoch is the latest.", given=is_new)
def opened_epoch_is_the_latest(log: Log, epoch: Epoch) -> bool:
    return log.open_epoch(epoch).latest_epoch == epoch


@law("The opened epoch starts at the end of the log: it ends there too, and so does the epoch before.", given=is_new)
def opened_epoch_starts_at_the_end(log: Log, epoch: Epoch) -> bool:
    opened, end, before = log.open_epoch(epoch), log.end_offset, last_epoch(log)
    answers = [opened.end_offset_for_epoch(epoch) == (epoch, end), opened.largest_epoch_up_to(epoch) == (epoch, end)]
    if before != NO_EPOCH:
        answers.append(opened.end_offset_for_epoch(before) == (before, end))
    return all(answers)


@law("Records of the opened epoch take its place.", given=is_new)
def opened_epoch_gives_way_to_its_records(log: Log, epoch: Epoch) -> bool:
    records = (Record(0, epoch),)
    return log.open_epoch(epoch).append(records) == log.append(records)


@law(
    "An epoch without records gives way to the next that is opened.",
    given=lambda log, epoch, later: log.latest_epoch < epoch < later,
)
def opened_epoch_gives_way_to_the_next(log: Log, epoch: Epoch, later: Epoch) -> bool:
    return log.open_epoch(epoch).open_epoch(later) == log.open_epoch(later)


# ---- end_offset_for_epoch: the answer of released Kafka


@law(
    "To ask for no epoch, or for one above the latest, gives no answer.",
    given=lambda log, epoch: epoch == NO_EPOCH or epoch > log.latest_epoch,
)
def no_end_above_the_latest_epoch(log: Log, epoch: Epoch) -> bool:
    return log.end_offset_for_epoch(epoch) == UNDEFINED_EPOCH_END


@law("The latest epoch ends where the log ends.", given=lambda log: log.latest_epoch != NO_EPOCH)
def latest_epoch_ends_with_the_log(log: Log) -> bool:
    return log.end_offset_for_epoch(log.latest_epoch) == (log.latest_epoch, log.end_offset)


@law("From epoch 0 to the latest there is an answer.", given=lambda log, epoch: 0 <= epoch <= log.latest_epoch)
def epochs_up_to_the_latest_have_an_end(log: Log, epoch: Epoch) -> bool:
    answer = log.end_offset_for_epoch(epoch)
    return 0 <= answer.leader_epoch <= epoch and log.start_offset <= answer.end_offset <= log.end_offset


@law(
    "The answer parts the log: up to the epoch asked before it, later epochs after it.",
    given=lambda log, offset, epoch: 0 <= epoch <= log.latest_epoch and within(log, offset),
    in_order=True,
)
def end_offset_parts_the_log(log: Log, offset: Offset, epoch: Epoch) -> bool:
    return (log.epoch_at(offset) <= epoch) == (offset < log.end_offset_for_epoch(epoch).end_offset)


@law(
    "The answer names the epoch of the record before its end; where that is the log's start, the epoch asked.",
    given=lambda log, epoch: 0 <= epoch < log.latest_epoch,
    in_order=True,
)
def end_offset_names_the_epoch_before_it(log: Log, epoch: Epoch) -> bool:
    named, end = log.end_offset_for_epoch(epoch)
    return named == (epoch if end == log.start_offset else log.epoch_at(Offset(end - 1)))


# ---- first_above: the lookup of KIP-101 as it was published


@law("The first record above an epoch lies in the log, or is where the log ends.")
def first_above_is_bounded(log: Log, epoch: Epoch) -> bool:
    return log.start_offset <= log.first_above(epoch) <= log.end_offset


@law("It is above.", given=lambda log, epoch: log.first_above(epoch) < log.end_offset)
def first_above_is_above(log: Log, epoch: Epoch) -> bool:
    return log.epoch_at(log.first_above(epoch)) > epoch


@law(
    "No record before it is above.",
    given=lambda log, offset, epoch: log.start_offset <= offset < log.first_above(epoch),
)
def before_first_above_nothing_is_above(log: Log, offset: Offset, epoch: Epoch) -> bool:
    return log.epoch_at(offset) <= epoch


# ---- largest_epoch_up_to: the answer as KIP-279 designed it


@law("There is an answer for every epoch.")
def largest_epoch_is_always_defined(log: Log, epoch: Epoch) -> bool:
    answer = log.largest_epoch_up_to(epoch)
    return NO_EPOCH <= answer.leader_epoch <= epoch and log.start_offset <= answer.end_offset <= log.end_offset


@law(
    "The answer parts the log: up to the epoch asked before it, later epochs after it.",
    given=within,
    in_order=True,
)
def largest_epoch_parts_the_log(log: Log, offset: Offset, epoch: Epoch) -> bool:
    return (log.epoch_at(offset) <= epoch) == (offset < log.largest_epoch_up_to(epoch).end_offset)


@law(
    "The answer names the epoch of the record before its end.",
    given=lambda log, epoch: epoch < log.latest_epoch,
    in_order=True,
)
def largest_epoch_is_that_of_the_record_before(log: Log, epoch: Epoch) -> bool:
    named, end = log.largest_epoch_up_to(epoch)
    return named == log.epoch_at(Offset(end - 1))


@law(
    "Up to the latest epoch both answers end at the same offset.",
    given=lambda log, epoch: 0 <= epoch <= log.latest_epoch,
)
def both_answers_end_alike(log: Log, epoch: Epoch) -> bool:
    return log.largest_epoch_up_to(epoch).end_offset == log.end_offset_for_epoch(epoch).end_offset


@law("From the latest epoch on, the whole log is the answer.", given=lambda log, epoch: epoch >= log.latest_epoch)
def whole_log_up_to_the_latest_epoch(log: Log, epoch: Epoch) -> bool:
    return log.largest_epoch_up_to(epoch) == (log.latest_epoch, log.end_offset)


# ---- without_values


@law("Without values a log has the same ends and the same latest epoch.")
def without_values_the_ends_are_the_same(log: Log) -> bool:
    without = log.without_values()
    ends = (without.start_offset, without.end_offset, without.latest_epoch)
    return ends == (log.start_offset, log.end_offset, log.latest_epoch)


@law("Without values each record has the same epoch.")
def without_values_the_epochs_are_the_same(log: Log, offset: Offset) -> bool:
    return log.without_values().epoch_at(offset) == log.epoch_at(offset)


@law("Without values no record has one.", given=within)
def without_values_there_are_none(log: Log, offset: Offset) -> bool:
    return read_one(log.without_values(), offset)[0].value == NO_VALUE


# ---- holds_as and agreement_end


@law("Two logs hold the same at an offset if both hold a record there and reading shows the same.")
def holding_the_same_is_reading_the_same(log: Log, other: Log, offset: Offset) -> bool:
    reads_alike = within(log, offset) and read_one(log, offset) == read_one(other, offset)
    return log.holds_as(other, offset) == reads_alike


@law("It does not matter which of two logs is asked.")
def holding_the_same_is_symmetric(log: Log, other: Log, offset: Offset) -> bool:
    return log.holds_as(other, offset) == other.holds_as(log, offset)


@law(
    "To agree below an end is to hold the same at every offset before it.", given=lambda offset, position: offset < position
)
def agreeing_below_is_holding_the_same(log: Log, other: Log, offset: Offset, position: Offset) -> bool:
    return not log.agrees_below(other, position) or log.holds_as(other, offset)


@law(
    "Logs that agree below an offset and hold the same there agree below the next.",
    given=lambda log, other, offset: log.agrees_below(other, offset),
)
def agreeing_below_grows_by_one(log: Log, other: Log, offset: Offset) -> bool:
    return log.agrees_below(other, Offset(offset + 1)) == log.holds_as(other, offset)


@law("Two logs agree to the same offset, whichever is asked.")
def agreement_is_symmetric(log: Log, other: Log) -> bool:
    return log.agreement_end(other) == other.agreement_end(log)


@law("The agreement ends where one of the logs does, at the latest, and where one starts, at the earliest.")
def agreement_is_bounded(log: Log, other: Log) -> bool:
    lowest, highest = min(log.start_offset, other.start_offset), min(log.end_offset, other.end_offset)
    return lowest <= log.agreement_end(other) <= highest


@law(
    "The logs hold the same just before the agreement ends.",
    given=lambda log, other: log.agreement_end(other) > min(log.start_offset, other.start_offset),
)
def agreement_ends_after_a_common_record(log: Log, other: Log) -> bool:
    return log.holds_as(other, Offset(log.agreement_end(other) - 1))


@law(
    "Where the agreement has ended the logs never hold the same.",
    given=lambda log, other, offset: offset >= log.agreement_end(other),
)
def agreement_is_maximal(log: Log, other: Log, offset: Offset) -> bool:
    return not log.holds_as(other, offset)


@law("A log agrees with itself to its end.")
def a_log_agrees_with_itself(log: Log) -> bool:
    return log.agreement_end(log) == log.end_offset


@law("Truncated to where they agree, logs agree to the end.")
def truncation_keeps_the_agreement(log: Log, other: Log) -> bool:
    end = log.agreement_end(other)
    return log.truncate_to(end).agreement_end(other.truncate_to(end)) == end


@law("A log agrees with its own beginning up to where that ends.", given=lambda log, offset: offset >= log.start_offset)
def a_log_agrees_with_its_beginning(log: Log, offset: Offset) -> bool:
    return log.agreement_end(log.truncate_to(offset)) == min(offset, log.end_offset)


# ---- the exchange of epochs between a follower and its leader


@law(
    "Asking for epochs finds the agreement of two logs that one series of leaders has written.",
    in_order=True,
)
def exchange_finds_the_agreement(follower: Log, leader: Log) -> bool:
    found = truncate_to_common_epoch(follower, follower.start_offset, leader.largest_epoch_up_to)
    return found == follower.agreement_end(leader)


@law(
    "Released Kafka's answers find it too, once the leader has opened an epoch above all that the follower knows.",
    in_order=True,
)
def released_exchange_finds_the_agreement(follower: Log, leader: Log) -> bool:
    own_epoch = Epoch(max(follower.latest_epoch, leader.latest_epoch) + 1)
    answers = leader.open_epoch(own_epoch).end_offset_for_epoch
    return truncate_to_common_epoch(follower, follower.start_offset, answers) == follower.agreement_end(leader)


def written_by_one_series_of_leaders(log: Log, other: Log) -> bool:
    """Epochs never go back, and if two logs have the same epoch at an offset, they hold the same records up to there.

    An epoch has one leader, so this is log matching, stated by epoch. The exchange relies on it.
    """
    for each in (log, other):
        epochs = [record.leader_epoch for record in records_of(each.read(each.start_offset, each.end_offset))]
        if epochs != sorted(epochs):
            return False
    shared = range(max(log.start_offset, other.start_offset), min(log.end_offset, other.end_offset))
    agrees = [log.holds_as(other, Offset(offset)) for offset in shared]
    same_epoch = [log.epoch_at(Offset(offset)) == other.epoch_at(Offset(offset)) for offset in shared]
    return agrees == same_epoch == sorted(agrees, reverse=True)
