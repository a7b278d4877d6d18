"""Compaction: what stays of a log, and that a loss of power at any step loses no key's last value."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.impl.records.batch import header_at, headers
from kspec.impl.records.record import StoredRecord, new_batch, records_of
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.impl.storage.cleaner import at_once
from kspec.spec.values import Epoch, MonotonicMs, Offset, TimestampMs
from kspec.trials.simulated.disk import PowerLossError, SimulatedDisk, Survives
from tests.limits.turns import Turns
from tests.times import at_ms

CONFIG = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    cleanup_policy="compact",
    min_cleanable_dirty_ratio=0.01,
    delete_retention_ms=100,
    flush_messages=1,
    file_delete_delay_ms=0,
)

KEYED = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.binary(max_size=8)), min_size=1, max_size=4
)


def opened(disk: SimulatedDisk, config: LogConfig = CONFIG) -> tuple[LogDirectory, PartitionFiles]:
    directory = LogDirectory.open("/logs", disk, "cluster", 1)
    if directory.found:
        return directory, directory.open_partition("topic", 0, config, at_ms(0))
    return directory, directory.create_partition("topic", 0, "A" * 22, config, at_ms(0))


def append(files: PartitionFiles, records: list[tuple[bytes | None, bytes | None]], **fields: int) -> None:
    batch = new_batch([(10, key, value) for key, value in records], **fields)
    files.append(files.log.end_offset, Epoch(0), [batch], at_ms(10))


def records(files: PartitionFiles) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    offset = files.log.start_offset
    turns = Turns()
    while True:
        turns.go()
        part = files.read(offset, files.log.end_offset, 1 << 20, at_least_one=True)
        if part.length == 0:
            return found
        data = part.bytes()
        for header in headers(data):
            found += records_of(data[header.position : header.position + header.size])
        offset = part.next_offset


def last_values(found: list[StoredRecord]) -> dict[bytes | None, bytes]:
    values = {one.key: one.value for one in found}
    return {key: value for key, value in values.items() if value is not None}


@settings(deadline=None, max_examples=60)
@given(batches=st.lists(st.tuples(KEYED, st.sampled_from([0, 1, 3, 4])), min_size=1, max_size=25))
def test_the_last_value_of_each_key_stays(batches: list[tuple[list[tuple[bytes, bytes | None]], int]]) -> None:
    directory, files = opened(SimulatedDisk())
    for keyed, codec in batches:
        append(files, list(keyed), codec=codec)
    before, active = records(files), files.segments[-1].base_offset
    compacted = directory.compact(files, files.log.end_offset, at_ms(20))
    assert compacted == (len(files.segments) > 1 or active > 0)
    after = records(files)
    assert last_values(after) == last_values(before)
    by_offset = {one.offset: one for one in before}
    assert all(by_offset[one.offset][:4] == one[:4] for one in after)
    latest = {one.key: one.offset for one in before if one.offset < active}
    stays = [one.offset for one in before if one.offset >= active or latest[one.key] == one.offset]
    assert [one.offset for one in after] == stays
    assert files.log.end_offset == len(before)
    for offset in range(len(before)):
        part = files.read(Offset(offset), files.log.end_offset, 1, at_least_one=True)
        expected = next((one for one in after if one.offset >= offset), None)
        if expected is not None:
            first = header_at(part.bytes())
            assert first.base_offset <= expected.offset
            assert first.next_offset > offset


def test_tombstones_go_after_their_time_and_producers_stay_known() -> None:
    directory, files = opened(SimulatedDisk())
    append(files, [(b"a", b"1")], producer_id=9, producer_epoch=0, base_sequence=0)
    append(files, [(b"a", b"2"), (b"b", b"1")])
    append(files, [(b"b", None), (b"c", None)])
    append(files, [(None, b"without a key")])
    files.roll(files.log.end_offset, TimestampMs(20))
    append(files, [(b"d", b"x" * 50)])
    assert directory.compact(files, files.log.end_offset, at_ms(1_000))
    assert [(one.offset, one.key) for one in records(files)] == [(1, b"a"), (3, b"b"), (4, b"c"), (6, b"d")]
    first = header_at(files.read(Offset(0), files.log.end_offset, 1 << 20).bytes())
    assert (first.producer_id, first.record_count, first.last_offset) == (9, 0, 0)
    tombstones = files.segments[0].find(Offset(3))
    assert tombstones is not None
    assert tombstones.delete_horizon == 1_100
    assert not directory.compact(files, files.log.end_offset, at_ms(1_050))
    files.roll(files.log.end_offset, TimestampMs(20))
    assert directory.compact(files, files.log.end_offset, at_ms(1_099))
    assert [one.offset for one in records(files)] == [1, 3, 4, 6]
    append(files, [(b"d", b"y")])
    files.roll(files.log.end_offset, TimestampMs(20))
    assert directory.compact(files, files.log.end_offset, at_ms(1_100))
    assert [one.offset for one in records(files)] == [1, 7]


def test_only_committed_and_old_segments_are_compacted() -> None:
    directory, files = opened(SimulatedDisk(), replace(CONFIG, min_compaction_lag_ms=50, max_compaction_lag_ms=1 << 50))
    for _ in range(3):
        append(files, [(b"a", b"1" * 50)])
        files.roll(files.log.end_offset, TimestampMs(20))
    assert not directory.compact(files, Offset(3), at_ms(40))
    assert not directory.compact(files, Offset(0), at_ms(1_000))
    assert directory.compact(files, Offset(2), at_ms(1_000))
    assert [one.offset for one in records(files)] == [1, 2]
    assert not directory.compact(files, Offset(2), at_ms(1_000))


def written(disk: SimulatedDisk) -> tuple[LogDirectory, PartitionFiles]:
    directory, files = opened(disk)
    for number in range(12):
        append(files, [(b"k%d" % (number % 3), b"v%d" % number), (b"once%d" % number, b"x" * 20)])
    return directory, files


def more(files: PartitionFiles) -> None:
    append(files, [(b"k0", b"later"), (b"new", b"x" * 30)])


def truncated(files: PartitionFiles) -> None:
    """Below the segments that are written to, so that one that is being compacted is cut."""
    files.truncate_to(Offset(9))


def deleted(files: PartitionFiles) -> None:
    files.start_at(Offset(15), at_ms(20))


@pytest.mark.parametrize("change", [more, truncated, deleted])
def test_a_log_may_change_between_any_two_batches_of_its_compaction(change: Callable[[PartitionFiles], None]) -> None:
    """Then it is compacted, or not; nothing that was in it after the change is lost, and no half file stays."""
    _, files = written(SimulatedDisk())
    change(files)
    expected, end = records(files), files.log.end_offset
    pauses, was_compacted, was_left = 0, 0, 0
    turns = Turns()
    while True:
        turns.go()
        disk = SimulatedDisk()
        directory, files = written(disk)
        steps = directory.compact_by_batch(files, files.log.end_offset, at_ms(20))
        try:
            for _ in range(pauses + 1):
                next(steps)
        except StopIteration:
            break
        change(files)
        result = at_once(steps)
        was_compacted, was_left = was_compacted + result, was_left + (not result)
        assert [name for name in disk.listdir(files.folder) if name.endswith(".cleaned")] == []
        assert files.log.end_offset == end
        found = records(files)
        if change is not truncated:  # what was cut had the last values of some keys, and the first may have gone for them
            assert last_values(found) == last_values(expected)
        assert {one.offset for one in found} <= {one.offset for one in expected}
        if not result and pauses == 0:
            assert found == expected
        pauses += 1
    assert pauses == 20
    assert (was_left > 0) is (change is not more)
    assert change is not more or was_compacted == pauses


def test_a_compaction_that_is_given_up_leaves_the_log_as_it_is() -> None:
    disk = SimulatedDisk()
    directory, files = written(disk)
    before = records(files)
    steps = directory.compact_by_batch(files, files.log.end_offset, at_ms(20))
    for _ in range(15):
        next(steps)
    assert [name for name in disk.listdir(files.folder) if name.endswith(".cleaned")]
    steps.close()
    assert [name for name in disk.listdir(files.folder) if name.endswith(".cleaned")] == []
    assert records(files) == before
    assert directory.compact(files, files.log.end_offset, at_ms(20))


def compaction(disk: SimulatedDisk) -> None:
    directory, files = written(disk)
    directory.compact(files, files.log.end_offset, at_ms(20))
    directory.clean_up(MonotonicMs(1))
    append(files, [(b"k0", None)])
    files.roll(files.log.end_offset, TimestampMs(20))
    directory.compact(files, files.log.end_offset, at_ms(20))


@pytest.mark.slow
def test_power_is_lost_at_every_step_of_a_compaction() -> None:
    whole = SimulatedDisk()
    compaction(whole)
    complete = last_values(records(opened(whole.after_power_loss(Survives.ALL))[1]))
    assert len(complete) == 14
    reached = []
    for stop_at in range(whole.steps):
        disk = SimulatedDisk()
        disk.stop_at = stop_at
        with suppress(PowerLossError):
            compaction(disk)
        for survives, kept in (
            (Survives.NOTHING, None),
            (Survives.ALL, None),
            (Survives.NOTHING, 1),
            (Survives.HALF, 2),
            (Survives.ZEROS, 3),
        ):
            _, files = opened(disk.after_power_loss(survives, kept))
            found = records(files)
            offsets = [one.offset for one in found]
            assert offsets == sorted(set(offsets)), stop_at
            end = max(offsets, default=-1)
            expected = {b"once%d" % number: b"x" * 20 for number in range((end + 1) // 2) if number < 12}
            values = last_values(found)
            assert {key: value for key, value in values.items() if key and key.startswith(b"once")} == expected, stop_at
            for number in range(3):
                of_key = [n for n in range(12) if n % 3 == number and 2 * n <= end]
                if of_key and not (number == 0 and end >= 24):
                    assert values[b"k%d" % number] == b"v%d" % of_key[-1], stop_at
            reached.append(end)
    assert max(reached) == 24
