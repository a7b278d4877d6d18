"""The epoch file of a partition beside the history in memory."""

from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.impl.storage.small_files import read_epochs
from kspec.spec.broker.effects import BatchesAppended
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Epoch, Offset
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.impl.storage.model import made
from tests.times import at_ms

DEFAULTS = LogConfig()


def a_partition(config: LogConfig = DEFAULTS) -> tuple[SimulatedDisk, LogDirectory, PartitionFiles]:
    disk = SimulatedDisk()
    directory = LogDirectory.open("/logs", disk, "cluster", 1)
    return disk, directory, directory.create_partition("topic", 0, "A" * 22, config, at_ms(0))


def history(*pairs: tuple[int, int]) -> EpochHistory:
    return EpochHistory(tuple(EpochEntry(Epoch(epoch), Offset(offset)) for epoch, offset in pairs))


def test_an_append_writes_the_epochs_that_a_moved_log_start_has_changed() -> None:
    disk, directory, files = a_partition()
    files.append(Offset(0), Epoch(1), [made(4)], at_ms(0))
    files.append(Offset(4), Epoch(2), [made(4)], at_ms(0))
    files.start_at(Offset(6), at_ms(0))
    assert files.log.epoch_history == history((2, 6))
    assert read_epochs(disk, files.folder) == history((1, 0), (2, 4)), "the file waits for its next change"
    files.append(Offset(8), Epoch(2), [made(1)], at_ms(0))
    assert read_epochs(disk, files.folder) == files.log.epoch_history == history((2, 6))
    again = LogDirectory.open("/logs", disk.after_power_loss(Survives.NOTHING), "cluster", 1)
    assert again.open_partition("topic", 0, LogConfig(), at_ms(0)).log.start_offset in {0, 6}
    assert not directory.partitions[TopicPartition("topic", 0)].start_moved, "the log start was written first"


def test_epochs_that_are_written_are_not_written_again() -> None:
    disk, _, files = a_partition()
    files.append(Offset(0), Epoch(1), [made(2)], at_ms(0))
    before = disk.read_file(f"{files.folder}/leader-epoch-checkpoint")
    disk.unlink(f"{files.folder}/leader-epoch-checkpoint")
    files.append(Offset(2), Epoch(1), [made(2)], at_ms(0))
    assert not disk.exists(f"{files.folder}/leader-epoch-checkpoint")
    files.append(Offset(4), Epoch(2), [made(2)], at_ms(0))
    assert disk.read_file(f"{files.folder}/leader-epoch-checkpoint") != before


def test_batches_of_several_epochs_that_fill_segments_leave_the_whole_history() -> None:
    disk, _, files = a_partition(LogConfig(segment_bytes=200))
    other = a_partition()[2]
    for number in range(6):
        other.append(Offset(number), Epoch(number // 2), [made(1)], at_ms(0))
    files.append_fetched(other.read(Offset(0), Offset(6), 1 << 20).bytes(), at_ms(0))
    assert len(files.segments) > 1
    assert read_epochs(disk, files.folder) == files.log.epoch_history == history((0, 0), (1, 2), (2, 4))


def test_batches_of_several_requests_fill_segments_as_if_they_came_one_by_one() -> None:
    config = LogConfig(segment_bytes=300, index_interval_bytes=0)
    _, _, one_by_one = a_partition(config)
    _, _, together = a_partition(config)
    batches = [made(1, size=size) for size in (1, 40, 70, 1, 90, 20, 20)]
    values = tuple(Batch(1, Epoch(0)) for _ in batches)
    for number, batch in enumerate(batches):
        one_by_one.apply(BatchesAppended(Offset(number), values[:1]), [batch], at_ms(0))
    for first, last in ((0, 1), (1, 5), (5, 7)):
        change = BatchesAppended(Offset(first), values[first:last])
        together.apply(change, batches[first:last], at_ms(0), separately=True)
    assert len(together.segments) > 2
    assert together.log == one_by_one.log
    for ours, wanted in zip(together.segments, one_by_one.segments, strict=True):
        assert ours.base_offset == wanted.base_offset
        assert ours.log.read(0, ours.size) == wanted.log.read(0, wanted.size)
        assert list(ours.headers()) == list(wanted.headers())
        assert [*map(ours.offsets.__getitem__, range(len(ours.offsets)))] == [
            *map(wanted.offsets.__getitem__, range(len(wanted.offsets)))
        ]


def test_batches_of_one_request_begin_a_segment_together() -> None:
    _, _, files = a_partition(LogConfig(segment_bytes=300))
    files.append(Offset(0), Epoch(0), [made(1, size=100)], at_ms(0))
    batches = [made(1, size=1), made(1, size=30)]
    change = BatchesAppended(Offset(1), (Batch(1, Epoch(0)), Batch(1, Epoch(0))))
    files.apply(change, batches, at_ms(0))
    assert [segment.base_offset for segment in files.segments] == [0, 1]
