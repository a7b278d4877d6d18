"""Every carrier is held against a plain log, over all small logs; every one-line change of the broker's carrier is seen."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from kspec.spec.log import epoch_history, epoch_log
from kspec.spec.log.algebra import Log
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.log.stored_log import EMPTY_STORED_LOG, StoredLog
from kspec.spec.values import Epoch, Offset, Record
from tests.spec.log.one_line_changes import Change, ChangedCarrier, carrier_with, changes
from tests.spec.log.plain_log import PlainLog, differences, differences_of_histories, histories, logs_within_bounds


@pytest.mark.parametrize("empty", [EMPTY_LOG, EMPTY_EPOCH_LOG, EMPTY_STORED_LOG], ids=lambda log: type(log).__name__)
def test_a_carrier_answers_as_a_plain_log_after_every_operation_on_every_small_log(empty: Log) -> None:
    assert list(differences(empty)) == []


def made(carrier: ChangedCarrier) -> Callable[[tuple[tuple[int, int], ...]], Any]:
    """Makes the carrier's history of pairs."""
    history = carrier.history
    return lambda known: history.EpochHistory(
        tuple(history.EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in known)
    )


def test_every_operation_on_every_small_history_does_what_its_sentence_says() -> None:
    assert list(differences_of_histories(made(ChangedCarrier(epoch_history, epoch_log)))) == []


def test_there_are_many_small_logs_and_histories() -> None:
    """The bounds hold logs with every mixture of epochs, starts, gaps and epochs without a record."""
    logs = logs_within_bounds()
    assert (len(logs), len(list(histories()))) == (121, 121)
    for kind in (
        PlainLog((0, 1, 2)),
        PlainLog((0, 2), start=1),
        PlainLog((1,), empty_epoch=2),
        PlainLog((), start=3, empty_epoch=1),
        PlainLog((-1, 0, 0)),
    ):
        assert kind in logs


def test_the_two_carriers_of_models_are_one_log_in_two_forms() -> None:
    """Each follows from the other where epochs never go back: so a model counts the same states with either."""
    forms: dict[Any, Any] = {}
    for plain in logs_within_bounds():
        records = tuple(Record(7, Epoch(epoch)) for epoch in plain.epochs)
        as_records = RecordLog(records, Offset(plain.start), Epoch(plain.empty_epoch))
        epochs = EpochLog(as_records.epoch_history, as_records.start_offset, as_records.end_offset)
        forms[as_records] = StoredLog(epochs, records, as_records.start_offset)
    assert len(set(forms.values())) == len(forms)
    assert {log.epochs.epoch_history.pairs for log in forms.values()} == {
        tuple(plain.history) for plain in logs_within_bounds()
    }


# ---- one-line changes

all_changes = cache(lambda: list(changes()))

SAME = {
    "EpochHistory.assign: start_offset >= self.entries[-1].start_offset -> start_offset > self.entries[-1].start_offset": (
        "the entry that starts there is dropped, and put back"
    ),
    "EpochHistory.end_offset_for: epoch == NO_EPOCH -> epoch <= NO_EPOCH": "there is no epoch below it",
    "EpochHistory.end_offset_for: floor == NO_EPOCH -> floor <= NO_EPOCH": "there is no epoch below it",
    "EpochHistory.truncate_from_end: end_offset < 0 or not self.entries or self.entries[-1].start_offset < end_offset"
    " -> end_offset < 0": "the shortcut saves making an equal history",
    "EpochLog.first_above: self.start_offset == self.end_offset -> self.start_offset >= self.end_offset": (
        "a log never starts after its end"
    ),
    "EpochLog.first_above: self.end_offset -> self.start_offset": "of an empty log, whose start is its end",
    "EpochLog.append_at: batch.leader_epoch != NO_EPOCH or history.entries -> batch.leader_epoch != NO_EPOCH": (
        "no batch without an epoch follows one that has one; if it did, an assertion would say so"
    ),
    "EpochLog.agreement_end: min -> max": "beyond the end of either log they hold nothing alike",
    "EpochLog.first_above: if self.start_offset == self.end_offset -> if False": "an opened epoch starts at the end anyway",
}
"""Changes that change nothing, and why; a name may stand for several places in a function."""


def is_seen(change: Change) -> bool:
    carrier = carrier_with(change.module, change.tree)
    found = next(differences_of_histories(made(carrier)), None)
    return bool(found or next(differences(carrier.log.EMPTY_EPOCH_LOG), None))


def test_changes_are_tried_in_every_function_that_decides_anything() -> None:
    assert len(all_changes()) > 150
    deciding = {change.function for change in all_changes()}
    undecided = {"EpochHistory.pairs", "EpochLog.latest_epoch", "EpochLog.restart_at", "EpochLog.without_values"}
    undecided.add("EpochLog.agrees_below")
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (epoch_history.EpochHistory, EpochLog)
        for name, member in vars(kind).items()
        if (isinstance(member, property) or callable(member)) and not name.startswith("_")
    }
    assert methods - deciding == undecided


def test_some_changes_are_seen() -> None:
    assert [change.name for change in all_changes()[::8] if not is_seen(change) and change.name not in SAME] == []


@pytest.mark.nightly
def test_every_one_line_change_is_seen() -> None:
    assert {change.name for change in all_changes() if not is_seen(change)} == SAME.keys()
