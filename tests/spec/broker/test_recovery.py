"""Checkpoint files and what a start makes of them: rules C6, D1-D8, H7, T13 of docs/rules.md."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.partition import Partition
from kspec.spec.broker.recovery import (
    CheckpointedOffsets,
    EpochOrder,
    RecoveredLog,
    SurvivingFiles,
    after_clean_stop,
    after_kill,
    after_power_loss,
    begins_as_left,
    checkpoint,
    explains_start,
    is_checkpointed,
    is_clean_for,
    is_noted_as_clean,
    may_be_elected,
    may_begin_anew,
    next_epoch,
    opened,
    previous_broker_epoch,
    recover,
    recovered_epochs,
    recovery_point_after_truncation,
)
from kspec.spec.log.checkpoint_files import (
    OffsetEntry,
    Offsets,
    epochs_from_text,
    epochs_to_text,
    from_text,
    offset_of,
    offsets_from_text,
    offsets_to_text,
)
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory, Neighbours, describes, describes_any
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, rebuilt_from
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Offset,
    PartitionEpoch,
    PartitionId,
    ProducerEpoch,
    ProducerId,
)
from tests.spec.broker_driver import log_of

LOG = log_of(3, 4, 4, 5)


def history(*entries: tuple[int, int]) -> EpochHistory:
    return EpochHistory(tuple(EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in entries))


# ---- D1, D2


def test_the_text_of_the_epoch_file() -> None:
    assert epochs_to_text(history((0, 0), (2, 5))) == "0\n2\n0 0\n2 5\n"


def test_the_text_of_a_file_of_offsets() -> None:
    entries = (OffsetEntry("orders", 1, Offset(7)), OffsetEntry("orders", 0, Offset(12)))
    assert offsets_to_text(entries) == "0\n2\norders 0 12\norders 1 7\n"


growing = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4).map(
    lambda steps: history(*((sum(e for e, _ in steps[:n]) + n, sum(o for _, o in steps[:n]) + n) for n in range(len(steps))))
)


@given(growing)
def test_an_epoch_history_comes_back(written: EpochHistory) -> None:
    assert epochs_from_text(epochs_to_text(written)) == (Error.NONE, written)


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), st.integers(-1, 99), max_size=5))
def test_offsets_come_back(offsets: dict[tuple[str, int], int]) -> None:
    entries = tuple(sorted(OffsetEntry(*key, Offset(offset)) for key, offset in offsets.items()))
    assert offsets_from_text(offsets_to_text(entries)) == (Error.NONE, entries)


@pytest.mark.parametrize("text", ["", "0\n", "0\n0\n"])
def test_a_file_may_be_empty(text: str) -> None:
    assert from_text(text, 3) == (Error.NONE, ())


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "0\nmany\n",
        "0\n2\na 0 1\n",
        "0\n0\na 0 1\n",
        "0\n1\na 0\n",
        "0\n1\na zero 1\n",
        "0\n1\na 0 1.5\n",
        "0\n1\na 0 ٣\n",
        "x",
    ],
)
def test_a_file_of_any_other_form_is_unusable(text: str) -> None:
    assert offsets_from_text(text) == (Error.KAFKA_STORAGE_ERROR, ())
    assert epochs_from_text(text).error == Error.KAFKA_STORAGE_ERROR


def test_the_last_entry_of_a_partition_counts_and_others_are_0() -> None:
    found = offsets_from_text("0\n2\na 0 1\na 0 5\n")
    assert (offset_of(found, "a", 0), offset_of(found, "a", 1)) == (5, 0)


def test_an_unusable_file_of_offsets_counts_as_empty() -> None:
    assert offset_of(Offsets(Error.KAFKA_STORAGE_ERROR), "a", 0) == 0


# ---- D3, T13


def test_a_start_that_the_first_segment_shows_is_not_noted() -> None:
    assert is_checkpointed(Offset(5), Offset(3))
    assert not is_checkpointed(Offset(3), Offset(3))


def test_what_was_cut_off_is_not_on_the_disk() -> None:
    assert recovery_point_after_truncation(Offset(9), Offset(4)) == 4
    assert recovery_point_after_truncation(Offset(2), Offset(4)) == 2


# ---- D4


@pytest.mark.parametrize(
    ("noted", "epoch"),
    [((7,), 7), ((7, 7), 7), ((7, 8), NO_BROKER_EPOCH), ((7, -1), NO_BROKER_EPOCH), ((), NO_BROKER_EPOCH)],
)
def test_a_stop_was_clean_if_all_directories_say_so(noted: tuple[int, ...], epoch: int) -> None:
    assert previous_broker_epoch(tuple(BrokerEpoch(each) for each in noted)) == epoch


# ---- D5, D6, D8, H7


def test_a_clean_stop_loses_nothing() -> None:
    local = LocalLog(LOG.start_at(Offset(1)), Offset(3))
    assert recover(after_clean_stop(local)) == RecoveredLog(local, Offset(4))


def test_a_kill_loses_no_record_but_the_watermark_is_as_old_as_its_checkpoint() -> None:
    checkpoints = checkpoint(LocalLog(LOG.truncate_to(Offset(2)), Offset(1)), Offset(2))
    assert recover(after_kill(LocalLog(LOG, Offset(4)), checkpoints)) == RecoveredLog(LocalLog(LOG, Offset(1)), Offset(2))


def test_a_loss_of_power_loses_what_was_not_flushed() -> None:
    checkpoints = CheckpointedOffsets(Offset(4), Offset(1))
    recovered = recover(after_power_loss(LocalLog(LOG, Offset(4)), checkpoints, Offset(2)))
    assert recovered == RecoveredLog(LocalLog(log_of(3, 4), Offset(2)), Offset(1))


def test_recovery_cuts_at_the_first_invalid_batch_unless_the_stop_was_clean() -> None:
    torn = SurvivingFiles(LOG, CheckpointedOffsets(Offset(4), Offset(1)), first_invalid=Offset(3))
    assert recover(torn).local == LocalLog(log_of(3, 4, 4), Offset(3))
    assert recover(torn._replace(clean=True)).local.log == LOG


def test_an_epoch_opened_in_vain_does_not_survive() -> None:
    assert recover(after_kill(LocalLog(LOG.open_epoch(Epoch(9))), CheckpointedOffsets())).local.log == LOG


def test_a_log_that_ends_before_its_start_is_emptied() -> None:
    recovered = recover(SurvivingFiles(LOG, CheckpointedOffsets(Offset(3), Offset(9), Offset(7))))
    assert recovered == RecoveredLog(LocalLog(log_of().restart_at(Offset(7)), Offset(7)), Offset(7))


def test_the_noted_start_counts() -> None:
    recovered = recover(SurvivingFiles(LOG, CheckpointedOffsets(Offset(1), Offset(4), Offset(2))))
    assert (recovered.local.log.start_offset, recovered.local.high_watermark) == (2, 2)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(-1, 4), st.booleans())
def test_whatever_survived_is_consistent_when_opened(mark: int, point: int, start: int, invalid: int, clean: bool) -> None:
    checkpoints = CheckpointedOffsets(Offset(mark), Offset(point), Offset(start))
    local, recovery_point = recover(SurvivingFiles(LOG, checkpoints, clean, Offset(invalid)))
    assert 0 <= local.log.start_offset <= local.high_watermark <= local.log.end_offset
    assert recovery_point <= local.log.end_offset


# ---- C6


def test_epochs_in_the_file_beyond_the_log_are_dropped_and_later_ones_found_are_added() -> None:
    file = history((3, 0), (4, 2), (6, 9))
    assert recovered_epochs(file, Offset(1), Offset(5), ()) == history((3, 1), (4, 2))
    found = (EpochEntry(Epoch(4), Offset(3)), EpochEntry(Epoch(7), Offset(4)))
    assert recovered_epochs(history((3, 0), (4, 2)), Offset(0), Offset(5), found) == history((3, 0), (4, 2), (7, 4))


def test_an_opened_replica_neither_leads_nor_follows() -> None:
    recovered = RecoveredLog(LocalLog(LOG, Offset(2)), Offset(0))
    batch = ProducerBatch(ProducerId(4), ProducerEpoch(0), 3, 2)
    partition = opened(PartitionId(1), recovered, PartitionTransactions(rebuilt_from((batch,))))
    assert partition._replace(transactions=PartitionTransactions()) == Partition(PartitionId(1), LocalLog(LOG, Offset(2)))
    assert [entry.last_sequence for entry in partition.producers] == [4]


def test_a_stop_before_damaged_logs_were_loaded_is_not_clean() -> None:
    assert is_noted_as_clean(was_clean=False, logs_loaded=True)
    assert is_noted_as_clean(was_clean=True, logs_loaded=False)
    assert not is_noted_as_clean(was_clean=False, logs_loaded=False)


# ---- what a start makes of files that have changed since the stop


def test_a_clean_stop_counts_for_a_log_that_ends_at_its_recovery_point() -> None:
    assert is_clean_for(True, Offset(7), Offset(7))
    assert not is_clean_for(True, Offset(7), Offset(6))
    assert not is_clean_for(True, Offset(6), Offset(7))
    assert not is_clean_for(False, Offset(7), Offset(7))


def test_a_log_ends_before_its_start_only_by_an_unclean_stop() -> None:
    assert explains_start(True, Offset(4), Offset(4))
    assert not explains_start(True, Offset(5), Offset(4))
    assert explains_start(False, Offset(5), Offset(4))


@pytest.mark.parametrize(
    ("clean", "recovery_point", "was_there"),
    [(True, -1, False), (True, 0, True), (True, 5, True), (False, -1, False), (False, 0, False), (False, 5, True)],
)
def test_only_a_lost_log_of_the_isr_does_not_begin_anew(clean: bool, recovery_point: int, was_there: bool) -> None:
    """A folder that was never flushed may be lost with the power, and its line stay."""
    assert may_begin_anew(clean, Offset(recovery_point), may_lead=True) == (not was_there)
    assert may_begin_anew(clean, Offset(recovery_point), may_lead=False)


def test_batches_behind_the_epoch_file_are_looked_at() -> None:
    """The file has epoch 3 alone, and a batch of epoch 4 lies behind it at offset 2."""
    found = (EpochEntry(Epoch(3), Offset(0)), EpochEntry(Epoch(4), Offset(2)))
    assert recovered_epochs(history((3, 0)), Offset(0), Offset(5), found) == history((3, 0), (4, 2))
    assert not describes(history((3, 0)), Offset(0), Offset(5), (Neighbours(Epoch(-1), Epoch(3)),), Epoch(4))
    assert describes_any(history((3, 0)), Offset(0), Offset(5), (Neighbours(Epoch(-1), Epoch(3)),), Epoch(4))


logs = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=6)
"""Batches: how many records each has, and how much later its epoch is than that of the one before."""


@given(logs, st.lists(st.tuples(st.integers(0, 14), st.integers(0, 18)), max_size=5), st.integers(0, 17))
def test_a_history_describes_a_log_if_it_is_that_of_its_batches(
    shape: list[tuple[int, int]], entries: list[tuple[int, int]], start: int
) -> None:
    """Each history that can be is held against each log: it describes it exactly if it is the one that the batches tell."""
    batches, offset, epoch = [], 0, 0
    for count, later in shape:
        epoch += later
        batches.append((offset, offset + count, epoch))
        offset += count
    start = min(start, offset - 1)
    told = history()
    for base, _, of_batch in batches:
        if of_batch > told.latest_epoch:
            told = told.assign(Epoch(of_batch), Offset(base))
    told = told.truncate_from_start(Offset(start))
    other = history()
    for number, place in entries:
        other = other.assign(Epoch(number), Offset(place)) if number > other.latest_epoch else other
    other = other.truncate_from_end(Offset(offset)).truncate_from_start(Offset(start))

    def neighbours(at: int) -> Neighbours:
        before = [one[2] for one in batches if one[0] < at]
        following = [one[2] for one in batches if one[1] > at]
        return Neighbours(Epoch(before[-1] if before else -1), Epoch(following[0] if following else -1))

    for tried in (told, other):
        around = tuple(neighbours(entry.start_offset) for entry in tried.entries)
        assert describes(tried, Offset(start), Offset(offset), around, Epoch(batches[-1][2])) == (tried == told)


def test_epochs_never_go_back_from_batch_to_batch() -> None:
    assert next_epoch(Epoch(3), Epoch(3)) == next_epoch(Epoch(3), Epoch(-1)) == EpochOrder.SAME
    assert next_epoch(Epoch(3), Epoch(4)) == EpochOrder.NEW
    assert next_epoch(Epoch(3), Epoch(2)) == EpochOrder.BACK


def test_a_log_begins_no_later_than_its_epochs() -> None:
    assert begins_as_left(history(), Offset(5))
    assert begins_as_left(history((1, 5)), Offset(5))
    assert not begins_as_left(history((1, 4)), Offset(5))


@pytest.mark.parametrize("text", ["0\n1\nt 0 9223372036854775808\n", f"0\n1\nt 0 {'9' * 5000}\n", "0\n1\nt 2147483648 1\n"])
def test_a_number_that_java_cannot_hold_makes_a_checkpoint_unusable(text: str) -> None:
    assert offsets_from_text(text).error == Error.KAFKA_STORAGE_ERROR
    assert epochs_from_text(text.replace("t ", "")).error == Error.KAFKA_STORAGE_ERROR


def test_the_greatest_numbers_that_java_holds_come_back() -> None:
    """`Long.parseLong`, `Integer.parseInt`: an offset has eight bytes, an epoch four."""
    offset, epoch = 2**63 - 1, 2**31 - 1
    assert offsets_from_text(f"0\n1\nt 0 {offset}\n").error == Error.NONE
    assert epochs_from_text(f"0\n1\n{epoch} {offset}\n").error == Error.NONE
    assert epochs_from_text(f"0\n1\n{epoch + 1} {offset}\n").error == Error.KAFKA_STORAGE_ERROR


def test_a_log_without_a_record_has_only_the_file() -> None:
    assert describes(history((3, 5)), Offset(5), Offset(5), (), Epoch(-1))


def test_behind_the_last_batch_of_a_log_that_ends_in_a_gap_there_is_only_the_file() -> None:
    """Its last segment begins in the gap, and has no batch; what was between is cut off, or was never there."""
    nothing, old = Neighbours(Epoch(-1), Epoch(-1)), Neighbours(Epoch(-1), Epoch(0))
    assert describes(history((0, 432)), Offset(432), Offset(9_000), (nothing,), Epoch(-1))
    assert describes(history((0, 0), (1, 11)), Offset(0), Offset(20), (old, Neighbours(Epoch(0), Epoch(-1))), Epoch(0))
    assert not describes(history((1, 11)), Offset(0), Offset(20), (Neighbours(Epoch(0), Epoch(-1)),), Epoch(0))


def test_a_member_of_the_isr_may_be_elected_and_one_that_left_it_by_an_unclean_stop() -> None:
    replicas, second = (BrokerId(1), BrokerId(2)), frozenset({BrokerId(2)})
    nobody = PartitionRegistration(replicas, frozenset(), BrokerId(1), Epoch(0), PartitionEpoch(0))
    assert not may_be_elected(nobody, BrokerId(2))
    for registration in (nobody._replace(isr=second), nobody._replace(elr=second), nobody._replace(last_known_elr=second)):
        assert may_be_elected(registration, BrokerId(2))
        assert not may_be_elected(registration, BrokerId(1))
