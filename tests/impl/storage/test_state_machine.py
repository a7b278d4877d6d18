"""The files of a partition beside a plain log in memory, under random operations and stops."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.impl.storage.flushing import FlushJob
from kspec.spec.broker.effects import BatchesAppended, EpochOpened, LogRestarted, LogStartMoved, LogTruncated
from kspec.spec.log.batch import Batch
from kspec.spec.log.segments import LARGEST_RELATIVE_OFFSET
from kspec.spec.values import BrokerEpoch, Epoch, MonotonicMs, Offset, TimestampMs
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.impl.storage.model import DirectoryModel, history_of, made, read_all, stored_in
from tests.times import at_ms

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200, file_delete_delay_ms=5)
COUNTS = st.integers(1, 4)
GAPS = st.sampled_from([0, 1, 2, LARGEST_RELATIVE_OFFSET])


class PartitionMachine(RuleBasedStateMachine):
    """Appends, cuts and reads a partition, and stops its broker in three ways."""

    disk: SimulatedDisk
    directory: LogDirectory
    files: PartitionFiles

    @initialize(flush_messages=st.sampled_from([1 << 60, 1, 9]))
    def begin(self, flush_messages: int) -> None:
        self.config = replace(CONFIG, flush_messages=flush_messages)
        self.disk = SimulatedDisk()
        self.directory = LogDirectory.open("/logs", self.disk, "cluster", 1)
        self.files = self.directory.create_partition("topic", 0, "A" * 22, self.config, at_ms(0))
        self.directory.checkpoint_logs()
        self.model = DirectoryModel()
        self.now = 0
        self.sequence = 0
        self.latest = 0
        self.flushed = 0
        self.job: FlushJob | None = None
        self.has_run = False

    def _open(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.directory = LogDirectory.open("/logs", disk, "cluster", 1)
        self.files = self.directory.open_partition("topic", 0, self.config, at_ms(self.now))
        self.job = None

    @property
    def epoch(self) -> int:
        """The latest epoch that ever was: a partition's epochs do not go back."""
        self.latest = max(self.latest, self.model.log.latest_epoch)
        return self.latest

    # ---- writing

    @rule(counts=st.lists(COUNTS, min_size=1, max_size=4), gap=GAPS, newer=st.integers(0, 1), data=st.data())
    def append(self, counts: list[int], gap: int, newer: int, data: st.DataObject) -> None:
        self.now += 1
        base, epoch = self.model.log.end_offset + (gap if newer else 0), self.epoch + newer
        batches = []
        for count in counts:
            producer = data.draw(st.sampled_from([-1, 7, 8]))
            time = data.draw(st.integers(0, 100)) + self.now * 10
            batches.append(
                made(count, time=time, producer=producer, sequence=self.sequence, size=data.draw(st.integers(1, 300)))
            )
            self.sequence += count
        values = tuple(Batch(count, Epoch(epoch)) for count in counts)
        self.files.apply(BatchesAppended(Offset(base), values), batches, at_ms(self.now))
        self.model.append(base, epoch, batches)

    @rule(counts=st.lists(COUNTS, min_size=1, max_size=4), gaps=st.lists(st.integers(0, 1), min_size=4, max_size=4))
    def fetch(self, counts: list[int], gaps: list[int]) -> None:
        """Append the content of another log, as a follower gets it: one buffer, with gaps and epochs."""
        other = SimulatedDisk()
        leader = PartitionFiles.create(other, "/other/topic-0", "B" * 22, LogConfig(), at_ms(0))
        base, epoch = int(self.model.log.end_offset), self.epoch
        leader.restart_at(Offset(base), TimestampMs(0))
        for count, gap in zip(counts, gaps, strict=False):
            base, epoch = base + gap, epoch + gap
            batch = made(count)
            leader.append(Offset(base), Epoch(epoch), [batch], at_ms(0))
            self.model.append(base, epoch, [batch])
            base += count
        data = leader.read(leader.log.start_offset, leader.log.end_offset, 1 << 20).bytes()
        self.files.append_fetched(data, at_ms(self.now))
        self.latest = max(self.latest, epoch)

    @rule()
    def open_epoch(self) -> None:
        epoch = self.epoch + 1
        self.files.apply(EpochOpened(Epoch(epoch), self.model.log.end_offset), (), at_ms(self.now))
        self.model.open_epoch(epoch)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        start, end = self.model.log.start_offset, self.model.log.end_offset
        ends = [one.base_offset for one in self.model.batches if start <= one.base_offset <= end]
        offset = data.draw(st.sampled_from([*ends, end]))
        self.files.apply(LogTruncated(Offset(offset)), (), at_ms(self.now))
        self.model.truncate_to(offset)
        self.flushed = min(self.flushed, offset)

    @rule(ahead=st.integers(-5, 5))
    def restart(self, ahead: int) -> None:
        offset = max(self.model.log.end_offset + ahead, 0)
        self.files.apply(LogRestarted(Offset(offset)), (), at_ms(self.now))
        self.model.restart_at(offset)
        self.flushed = offset

    @rule(data=st.data())
    def move_start(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log.start_offset, self.model.log.end_offset))
        self.files.apply(LogStartMoved(Offset(offset)), (), at_ms(self.now))
        self.model.start_at(offset)
        self.directory.checkpoint_logs()

    # ---- from time to time

    @rule()
    def flush(self) -> None:
        self.files.flush(MonotonicMs(self.now))
        self.flushed = self.files.recovery_point
        assert self.flushed == self.model.log.end_offset

    @rule(runs_now=st.booleans())
    def begin_to_flush(self, runs_now: bool) -> None:
        """In a thread: other things happen before it runs, and before it is noted that it has run. Or it fails."""
        self.job = self.files.flush_job()
        self.has_run = runs_now
        if runs_now:
            self.job.run()

    @precondition(lambda self: self.job)
    @rule(fails=st.booleans())
    def end_the_flush(self, fails: bool) -> None:
        assert self.job
        if not fails:
            if not self.has_run:
                self.job.run()
            self.files.flushed(self.job, MonotonicMs(self.now))
        self.job = None

    @rule()
    def checkpoint(self) -> None:
        self.directory.checkpoint_logs()

    @rule()
    def clean_up(self) -> None:
        self.now += 10
        self.directory.clean_up(MonotonicMs(self.now))

    # ---- stopping

    @rule()
    def stop_cleanly(self) -> None:
        self.directory.close({}, None)
        self.directory = LogDirectory.open("/logs", self.disk, "cluster", 1)
        self.directory.close({}, None)
        self._check_close(clean=False)

    @rule()
    def stop_cleanly_with_a_note(self) -> None:
        self.directory.close({}, BrokerEpoch(4))
        self._check_close(clean=True)
        assert self.directory.previous_broker_epoch == 4

    def _check_close(self, clean: bool) -> None:
        self._open(self.disk)
        assert self.files.log.end_offset in (self._end_of_batches(), self.model.log.end_offset)
        opened = self.model.log.truncate_to(self.files.log.end_offset)
        assert self.directory.clean == clean
        if opened.start_offset == opened.end_offset:  # an empty log keeps its epoch if the file is from before it was empty
            opened = opened._replace(epoch_history=self.files.log.epoch_history)
            assert all(entry.leader_epoch <= self.latest for entry in opened.epoch_history.entries)
        assert self.files.log == opened
        self.model.log = opened
        self.flushed = self.model.log.end_offset
        self._check_producers()

    def _end_of_batches(self) -> Offset:
        """A log that was cut inside a batch or a gap ends before it when it is opened again.

        It does not end before its last segment, which may have no batch and begin in the gap. **Kafka:**
        `LogSegment.readNextOffset`, by which a log that is loaded ends.
        """
        last = self.model.batches[-1].next_offset if self.model.batches else self.model.log.start_offset
        return Offset(max(last, self.files.segments[-1].base_offset))

    @precondition(lambda self: self.model.log.end_offset > 0)
    @rule(survives=st.sampled_from(Survives), data=st.data())
    def lose_power(self, survives: Survives, data: st.DataObject) -> None:
        before, flushed = self.model, self.flushed
        kept = data.draw(st.integers(0, self.disk.unsynced_names))
        self._open(self.disk.after_power_loss(survives, kept))
        found = read_all(self.files)
        visible = [one for one in before.batches if one.next_offset > self.files.log.start_offset]
        assert found == visible[: len(found)]
        lost = visible[len(found) :]
        assert all(one.next_offset > flushed for one in lost), (found, visible, flushed)
        assert self.files.log.start_offset <= before.log.start_offset or not found
        after = DirectoryModel(found, self.files.log)
        expected = history_of(found)
        for one in found:
            assert self.files.log.epoch_at(Offset(max(one.base_offset, self.files.log.start_offset))) == one.epoch
        assert [e for e in expected.entries if e.leader_epoch > before.log.latest_epoch] == []
        self.model = after
        self.flushed = self.files.recovery_point
        self._check_producers()

    def _check_producers(self) -> None:
        known = {entry.producer_id: entry for entry in self.files.transactions().producers}
        for entry in DirectoryModel(self.model.visible).producers():
            assert known[entry.producer_id].batches[-len(entry.batches) :] == entry.batches

    # ---- what must hold

    @invariant()
    def the_log_is_the_same(self) -> None:
        self.flushed = max(self.flushed, self.files.recovery_point)
        assert self.files.recovery_point <= self.model.log.end_offset
        assert self.files.log == self.model.log
        assert read_all(self.files) == self.model.visible

    @rule(data=st.data(), max_bytes=st.integers(0, 3_000), at_least_one=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, at_least_one: bool) -> None:
        start, end = self.model.log.start_offset, self.model.log.end_offset
        offset = data.draw(st.integers(start, end))
        max_offset = data.draw(st.integers(offset, end))
        part = self.files.read(Offset(offset), Offset(max_offset), max_bytes, at_least_one)
        found, expected = stored_in(part.bytes()), self.model.read(offset, max_offset, max_bytes, at_least_one)
        assert found == expected[: len(found)]
        if expected and not found:
            raise AssertionError((expected, offset, max_offset))
        if found:
            assert part.first_offset == found[0].base_offset
            between = [one for one in self.model.batches if found[-1].next_offset <= one.base_offset < part.next_offset]
            assert part.next_offset >= found[-1].next_offset
            assert between == []

    @rule(ago=st.integers(-5, 150))
    def look_up_times(self, ago: int) -> None:
        records = self.model.records()
        wanted = self.now * 10 + 100 - ago
        expected = next((entry for entry in records if entry[0] >= wanted), None)
        assert self.files.timestamp_lookup(wanted) == expected
        newest = max((entry[0] for entry in records), default=None)
        if newest is not None and not self._starts_within_a_batch():
            found = self.files.max_timestamp()
            assert found is not None
            assert found == next(entry for entry in records if entry[0] == newest)

    def _starts_within_a_batch(self) -> bool:
        """Then the newest record may lie before the start, in a batch or segment that is still there, as in Kafka."""
        return self.files.segments[0].base_offset < self.model.log.start_offset


def drive(examples: int) -> None:
    run_state_machine_as_test(
        PartitionMachine, settings=settings(max_examples=examples, stateful_step_count=50, deadline=None)
    )


def test_the_files_are_a_log() -> None:
    drive(20)


@pytest.mark.slow
def test_the_files_are_a_log_in_many_examples() -> None:
    drive(150)
