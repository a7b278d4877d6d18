"""The power is lost at every step of every operation of storage: nothing acknowledged is gone, and what is left agrees.

With flush.messages=1 an operation that has returned is on the disk. A run of operations is cut at each write, rename, sync
and deletion; then the directory is opened again, from what a disk may have kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.log.segments import LARGEST_RELATIVE_OFFSET
from kspec.spec.values import BrokerEpoch, Epoch, MonotonicMs, Offset, TimestampMs
from kspec.trials.simulated.disk import PowerLossError, SimulatedDisk, Survives
from tests.impl.storage.model import BatchInLog, DirectoryModel, history_of, made, read_all
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.times import at_ms

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, flush_messages=1, file_delete_delay_ms=0)
UNFLUSHED = replace(CONFIG, flush_messages=1 << 60)

TOO_LONG = LARGEST_RELATIVE_OFFSET
"""A gap that no index can span."""


@dataclass
class PowerLossRun:
    """A broker's storage, and what its log must be after each operation."""

    disk: SimulatedDisk
    config: LogConfig
    directory: LogDirectory | None = None
    files: PartitionFiles | None = None
    epoch: int = 0

    def start(self) -> PartitionFiles:
        self.directory = LogDirectory.open("/logs", self.disk, "cluster", 1)
        if self.directory.found:
            self.files = self.directory.open_partition("topic", 0, self.config, at_ms(0))
        else:
            self.files = self.directory.create_partition("topic", 0, "A" * 22, self.config, at_ms(0))
        return self.files

    def start_anew(self) -> PartitionFiles:
        """The partition was deleted, and is created again."""
        assert self.directory is not None
        self.files = self.directory.create_partition("topic", 0, "B" * 22, self.config, at_ms(0))
        return self.files


Operation = tuple[str, Callable[[PowerLossRun], None], Callable[[DirectoryModel], None]]
"""Operations on the files, and on the model."""


def append(*counts: int, epoch: int, size: int = 60, gap: int = 0) -> Operation:
    batches = [made(count, size=size, producer=5, sequence=0) for count in counts]

    def on_files(run: PowerLossRun) -> None:
        assert run.files
        run.files.append(Offset(run.files.log.end_offset + gap), Epoch(epoch), batches, at_ms(0))

    def on_model(model: DirectoryModel) -> None:
        model.append(model.log.end_offset + gap, epoch, batches)

    return f"append {counts}", on_files, on_model


def on_files(name: str, change: Callable[[PartitionFiles], None], in_model: Callable[[DirectoryModel], None]) -> Operation:
    def operate(run: PowerLossRun) -> None:
        assert run.files
        change(run.files)

    return name, operate, in_model


def on_directory(name: str, change: Callable[[LogDirectory], None]) -> Operation:
    def operate(run: PowerLossRun) -> None:
        assert run.directory
        change(run.directory)

    return name, operate, lambda model: None


def truncate(offset: int) -> Operation:
    return on_files("truncate", lambda f: f.truncate_to(Offset(offset)), lambda m: m.truncate_to(offset))


def restart(offset: int) -> Operation:
    return on_files("restart", lambda f: f.restart_at(Offset(offset), TimestampMs(0)), lambda m: m.restart_at(offset))


def start_at(offset: int) -> Operation:
    return on_files("start at", lambda f: f.start_at(Offset(offset), at_ms(0)), lambda m: m.start_at(offset))


def open_epoch(epoch: int) -> Operation:
    return on_files("open epoch", lambda f: f.open_epoch(Epoch(epoch)), lambda m: m.open_epoch(epoch))


FLUSH = on_files("flush", lambda f: f.flush(MonotonicMs(0)), lambda m: None)
CHECKPOINT = on_directory("checkpoint", lambda d: d.checkpoint_logs())
CLEAN_UP = on_directory("clean up", lambda d: d.clean_up(MonotonicMs(1)))


def restart_broker(broker_epoch: int | None) -> Operation:
    def operate(run: PowerLossRun) -> None:
        assert run.directory
        run.directory.close({}, None if broker_epoch is None else BrokerEpoch(broker_epoch))
        run.start()

    return "stop and start", operate, lambda model: None


APPENDS = [append(2, 3, epoch=0), append(4, epoch=0), append(5, epoch=1), append(3, 3, epoch=1), append(6, epoch=2)]

RUNS: dict[str, list[Operation]] = {
    "appends": [*APPENDS, CHECKPOINT, append(4, epoch=2), append(1, 1, epoch=3), CHECKPOINT],
    "truncations": [
        *[*APPENDS, CHECKPOINT, truncate(20), append(2, epoch=3), truncate(5), append(4, epoch=4), append(4, 4, epoch=4)],
        *[CHECKPOINT, append(9, epoch=4), truncate(0), append(2, epoch=5)],
    ],
    "a leader without records": [open_epoch(1), open_epoch(2), *[append(3, epoch=2)] * 3, open_epoch(4), truncate(6)],
    "a new start": [
        *[*APPENDS, CHECKPOINT, start_at(7), CLEAN_UP, CHECKPOINT, start_at(20), CLEAN_UP, append(7, epoch=3), CHECKPOINT],
    ],
    "everything deleted": [*APPENDS, start_at(26), CHECKPOINT, CLEAN_UP, append(3, epoch=2), CHECKPOINT],
    "restarts": [
        *[*APPENDS, CHECKPOINT, restart(40), append(3, epoch=3), append(8, epoch=3), CHECKPOINT, restart(10)],
        append(1, epoch=4),
    ],
    "gaps": [
        *[append(2, epoch=0), append(2, epoch=0, gap=3), truncate(5), append(6, epoch=1), append(6, epoch=1, gap=2)],
        *[CHECKPOINT, append(3, epoch=1, gap=TOO_LONG), append(6, epoch=2), truncate(19), append(4, epoch=3)],
    ],
    "stops": [
        *[*APPENDS, restart_broker(3), append(4, epoch=3), restart_broker(None), append(4, epoch=4), truncate(23)],
        restart_broker(4),
    ],
}

KEPT = [
    (Survives.NOTHING, None),
    (Survives.ALL, None),
    (Survives.HALF, 1),
    (Survives.ZEROS, 2),
    (Survives.ALL, 0),
    (Survives.NOTHING, 99),
]

State = tuple[list[BatchInLog], EpochLog]
"""The batches, and the log as `spec` sees it."""


def models(operations: list[Operation]) -> list[State]:
    """The batches and the log before the first operation and after each."""
    model = DirectoryModel()
    states = [(list(model.batches), model.log)]
    for _, _, change in operations:
        change(model)
        states.append((list(model.batches), model.log))
    return states


def run_until_power_loss(config: LogConfig, operations: list[Operation], stop_at: int) -> tuple[SimulatedDisk, int]:
    """The disk, and the number of operations that had returned; -1 before the partition was there."""
    disk = SimulatedDisk()
    disk.stop_at = stop_at
    run, done = PowerLossRun(disk, config), -1
    try:
        run.start()
        for done, (_, operate, _) in enumerate(operations):  # noqa: B007
            operate(run)
        done = len(operations)
    except PowerLossError:
        pass
    return disk, done


def steps_of(config: LogConfig, operations: list[Operation]) -> int:
    disk, done = run_until_power_loss(config, operations, -1)
    assert done == len(operations)
    return disk.steps


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("config", [CONFIG, UNFLUSHED], ids=["flushed", "unflushed"])
@pytest.mark.parametrize("every", marked([1, 11], nightly=[1]), ids=["each step", "some steps"])
def test_power_is_lost(name: str, config: LogConfig, every: int) -> None:
    operations = RUNS[name]
    states = models(operations)
    for stop_at in range(0, steps_of(config, operations), every):
        disk, done = run_until_power_loss(config, operations, stop_at)
        before, after = states[max(done, 0)], states[max(done, 0) + 1]
        for survives, kept in KEPT:
            again = PowerLossRun(disk.after_power_loss(survives, kept), config)
            files = again.start()
            where = f"{name}: step {stop_at} in {operations[max(done, 0)][0]}, {survives}, {kept}"
            check(files, before, after, states[: max(done, 0) + 1] if config is UNFLUSHED else [], where)
            check_goes_on(again, where)


def check(files: PartitionFiles, before: State, after: State, earlier: list[State], where: str) -> None:
    """The log is the one before the operation, the one after it, or one between; without flushes an earlier one, too."""
    found = read_all(files)
    expected = [visible_in(state, files.log.start_offset) for state in (before, after, *earlier)]
    assert any(found == one[: len(found)] for one in expected), (where, found, expected)
    if not earlier:
        flushed = common(visible_in(before, files.log.start_offset), visible_in(after, files.log.start_offset))
        assert found[: len(flushed)] == flushed, (where, found, flushed)
    for one in found:
        offset = Offset(max(one.base_offset, files.log.start_offset))
        assert files.log.epoch_at(offset) == one.epoch, (where, files.log)
    assert files.log.latest_epoch <= max(before[1].latest_epoch, after[1].latest_epoch), where
    latest = history_of(found).latest_epoch
    if not earlier and latest >= 0:
        assert files.log.end_offset_for_epoch(latest).leader_epoch == latest, where
    assert files.recovery_point <= files.log.end_offset, where
    known = {entry.producer_id: entry.batches for entry in files.transactions().producers}
    for entry in DirectoryModel(found).producers():
        assert known[entry.producer_id][-len(entry.batches) :] == entry.batches, where


def visible_in(state: State, start: int) -> list[BatchInLog]:
    return [one for one in state[0] if one.next_offset > start]


def common(one: list[BatchInLog], other: list[BatchInLog]) -> list[BatchInLog]:
    count = 0
    turns = Turns()
    while count < min(len(one), len(other)) and one[count] == other[count]:
        turns.go()
        count += 1
    return one[:count]


def check_goes_on(run: PowerLossRun, where: str) -> None:
    """The log takes more, and keeps it over another start."""
    assert run.files
    epoch = max(run.files.log.latest_epoch, 0) + 1
    run.files.append(run.files.log.end_offset, Epoch(epoch), [made(2)], at_ms(0))
    expected = read_all(run.files)
    run.files.flush(MonotonicMs(0))
    run.disk = run.disk.after_power_loss(Survives.NOTHING)
    assert read_all(run.start()) == expected, where


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_power_is_lost_again_while_recovering(name: str) -> None:
    operations = RUNS[name]
    states = models(operations)
    for stop_at in range(0, steps_of(CONFIG, operations), 10):
        disk, done = run_until_power_loss(CONFIG, operations, stop_at)
        before, after = states[max(done, 0)], states[max(done, 0) + 1]
        first = disk.after_power_loss(Survives.HALF)
        PowerLossRun(first, CONFIG).start()
        for again_at in range(first.steps):
            second = disk.after_power_loss(Survives.HALF)
            second.stop_at = again_at
            with pytest.raises(PowerLossError):
                PowerLossRun(second, CONFIG).start()
            for survives in (Survives.NOTHING, Survives.ALL):
                run = PowerLossRun(second.after_power_loss(survives), CONFIG)
                check(run.start(), before, after, [], f"{name}: steps {stop_at} and {again_at}, {survives}")


# ---- what was flushed is kept, however old the recovery point in the file is


def a_partition(config: LogConfig) -> PowerLossRun:
    run = PowerLossRun(SimulatedDisk(), config)
    run.start()
    assert run.directory
    run.directory.checkpoint_logs()
    return run


def check_flushed_is_kept(run: PowerLossRun) -> None:
    assert run.files
    before = read_all(run.files)
    run.files.flush(MonotonicMs(0))
    again = PowerLossRun(run.disk.after_power_loss(Survives.NOTHING), run.config).start()
    assert read_all(again) == before
    assert again.log == run.files.log


def test_a_segment_that_begins_after_a_cut_within_a_gap_is_kept() -> None:
    """The log's end lies after the last batch. The next segment begins where that batch ends, or a start would delete it."""
    run = a_partition(replace(UNFLUSHED, segment_bytes=300))
    assert run.files
    run.files.append(Offset(0), Epoch(0), [made(1, size=100)], at_ms(0))
    run.files.append(Offset(3), Epoch(0), [made(1)], at_ms(0))
    run.files.truncate_to(Offset(3))
    run.files.append(Offset(3), Epoch(0), [made(1, size=100)], at_ms(0))
    assert [segment.base_offset for segment in run.files.segments] == [0, 1]
    check_flushed_is_kept(run)


def test_a_segment_after_a_gap_that_no_index_can_span_is_kept() -> None:
    run = a_partition(UNFLUSHED)
    assert run.files
    run.files.append(Offset(0), Epoch(0), [made(1)], at_ms(0))
    run.files.append(Offset(TOO_LONG + 2), Epoch(0), [made(1)], at_ms(0))
    assert [segment.base_offset for segment in run.files.segments] == [0, TOO_LONG + 2]
    check_flushed_is_kept(run)


def test_a_log_that_begins_with_a_gap_that_no_index_can_span_keeps_its_start() -> None:
    run = a_partition(UNFLUSHED)
    assert run.files
    run.files.append(Offset(TOO_LONG), Epoch(0), [made(2)], at_ms(0))
    assert run.files.log.start_offset == 0
    check_flushed_is_kept(run)


def test_indexes_of_a_segment_that_is_rolled_while_it_is_flushed_are_kept() -> None:
    """Two segments are begun while a flush runs, the first of them just where the flush ends."""
    run = a_partition(replace(UNFLUSHED, segment_bytes=200))
    assert run.files
    assert run.directory
    run.files.append(Offset(0), Epoch(0), [made(1, time=2_000, size=100)], at_ms(0))
    job = run.files.flush_job()
    job.run()
    for offset in (1, 2):
        run.files.append(Offset(offset), Epoch(0), [made(1, time=1_000, size=100)], at_ms(0))
    run.files.flushed(job, MonotonicMs(0))
    run.files.flush(MonotonicMs(0))
    run.directory.checkpoint_logs()
    again = PowerLossRun(run.disk.after_power_loss(Survives.NOTHING), run.config).start()
    for files in (run.files, again):
        found = files.timestamp_lookup(1_500)
        assert found is not None
        assert found.offset == 0


def test_indexes_of_a_segment_that_ends_in_a_gap_are_kept() -> None:
    """The recovery point lies in the gap, so the next segment holds it before it holds a batch."""
    run = a_partition(replace(UNFLUSHED, segment_bytes=300))
    assert run.files
    assert run.directory
    run.files.append(Offset(0), Epoch(0), [made(1, time=2_000, size=100)], at_ms(0))
    run.files.flush(MonotonicMs(0))
    run.files.append(Offset(3), Epoch(0), [made(1)], at_ms(0))
    run.files.truncate_to(Offset(3))
    run.files.append(Offset(3), Epoch(0), [made(1, time=1_000, size=100)], at_ms(0))
    run.directory.checkpoint_logs()
    again = PowerLossRun(run.disk.after_power_loss(Survives.NOTHING), run.config).start()
    found = again.timestamp_lookup(1_500)
    assert found is not None
    assert found.offset == 0


def test_a_flush_beside_one_that_has_not_run_syncs_the_names_of_new_segments() -> None:
    """The other one runs in a thread, and may take long or fail."""
    run = a_partition(replace(UNFLUSHED, segment_bytes=200))
    assert run.files
    run.files.flush(MonotonicMs(0))
    for offset in range(3):
        run.files.append(Offset(offset), Epoch(0), [made(1, size=100)], at_ms(0))
    run.files.flush_job()
    check_flushed_is_kept(run)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_that_is_created_again_does_not_keep_the_recovery_point_of_the_one_before(restarts: bool) -> None:
    """A start would not look at the batches below it, and call a log whole that the power has taken."""
    run = PowerLossRun(SimulatedDisk(), UNFLUSHED)
    before = run.start()
    before.append(Offset(0), Epoch(0), [made(8, size=60)], at_ms(0))
    before.flush(MonotonicMs(0))
    assert run.directory is not None
    run.directory.checkpoint_logs()
    before.delete(MonotonicMs(0))
    if restarts:
        run.disk = run.disk.after_power_loss(Survives.ALL)
        run.directory = LogDirectory.open("/logs", run.disk, "cluster", 1)
    after = run.start_anew()
    for _ in range(6):
        after.append(after.log.end_offset, Epoch(1), [made(3, size=60)], at_ms(0))
    assert len(after.segments) > 2
    for handle in after.segments[-1].handles(with_indexes=True):
        handle.sync()
    run.disk.sync_folder(after.folder)
    run.disk = run.disk.after_power_loss(Survives.NOTHING)
    found = run.start()
    assert sum(one.count for one in read_all(found)) == found.log.end_offset
    assert found.log.end_offset < after.log.end_offset
