"""Logs that are cut down to their start, or to a gap before it, and opened again; and what a cut leaves of producers.

Found by the state machine over the files, and kept as cases.
"""

from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.spec.values import BrokerEpoch, Epoch, Offset
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.impl.storage.model import made
from tests.times import at_ms


def _begun(disk: SimulatedDisk) -> tuple[LogDirectory, PartitionFiles]:
    directory = LogDirectory.open("/logs", disk, "cluster", 1)
    return directory, directory.create_partition("topic", 0, "A" * 22, LogConfig(), at_ms(0))


def _reopened(disk: SimulatedDisk) -> PartitionFiles:
    return LogDirectory.open("/logs", disk, "cluster", 1).open_partition("topic", 0, LogConfig(), at_ms(1))


def _append(files: PartitionFiles, base: int, epoch: int, *, sequence: int = 0, producer: int = -1) -> None:
    files.append(Offset(base), Epoch(epoch), [made(1, producer=producer, sequence=sequence)], at_ms(0))


def test_a_batch_below_the_log_start_has_no_epoch() -> None:
    disk = SimulatedDisk()
    directory, files = _begun(disk)
    _append(files, 0, 0)
    _append(files, 1, 0)
    files.start_at(Offset(1), at_ms(0))
    files.truncate_to(Offset(1))
    _append(files, 2, 1)
    directory.checkpoint_logs()
    directory.close({}, BrokerEpoch(4))
    assert _reopened(disk).log == files.log


def test_a_log_that_is_cut_down_to_a_start_in_a_gap_opens_again() -> None:
    disk = SimulatedDisk()
    directory, files = _begun(disk)
    _append(files, 1, 0)
    files.start_at(Offset(1), at_ms(0))
    files.truncate_to(Offset(1))
    directory.checkpoint_logs()
    directory.close({}, BrokerEpoch(4))
    assert _reopened(disk).log.end_offset == 1


def test_a_start_that_moves_into_the_gap_at_the_end_of_a_log_is_kept() -> None:
    disk = SimulatedDisk()
    directory, files = _begun(disk)
    _append(files, 3, 0)
    files.truncate_to(Offset(3))
    files.start_at(Offset(1), at_ms(0))
    directory.checkpoint_logs()
    directory.close({}, BrokerEpoch(4))
    assert _reopened(disk).log.start_offset == 1


def test_a_snapshot_of_batches_that_were_cut_does_not_come_back_after_a_loss_of_power() -> None:
    """Its folder entry is deleted; until the folder is synced, a loss of power brings it back."""
    disk = SimulatedDisk()
    directory, files = _begun(disk)
    _append(files, 0, 0, producer=7, sequence=0)
    _append(files, 1, 0, producer=7, sequence=1)
    directory.close({}, BrokerEpoch(4))
    files = _reopened(disk)
    files.truncate_to(Offset(1))
    _append(files, 1, 0)
    survivors = disk.after_power_loss(Survives.ALL, 0)
    (producer,) = _reopened(survivors).transactions().producers
    assert producer.batches[-1].last_sequence == 0
