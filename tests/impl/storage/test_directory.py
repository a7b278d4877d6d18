"""The log directory on a real disk: whose it is, what is damaged, how it stops and starts."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

from kspec.impl.storage import LogConfig, LogDirectory, RealDisk, StorageError
from kspec.impl.storage.config import log_config
from kspec.impl.storage.disk import File
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerEpoch, Epoch, MonotonicMs, Offset, TimestampMs
from tests.impl.storage.model import made, read_all
from tests.places import REPOSITORY
from tests.times import at_ms

CLUSTER, TOPIC_ID = "MkU3OEVBNTcwNTJENDM2Qk", "JJWqTbVfThig1ab_3GhqFw"
KAFKAS = REPOSITORY / "tests/data/kafka-4.4.0"


def opened(folder: Path) -> LogDirectory:
    return LogDirectory.open(str(folder), RealDisk(), CLUSTER, 1)


def test_a_folder_of_kafka_goes_on(tmp_path: Path) -> None:
    folder = Path(copytree(KAFKAS, tmp_path / "logs"))
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\nrecorded 0 54\n", encoding="utf-8")
    directory = opened(folder)
    assert directory.clean
    assert directory.previous_broker_epoch > 0
    (key,) = directory.found
    assert key == ("recorded", 0)
    files = directory.open_partition("recorded", 0, LogConfig(), at_ms(0))
    assert (files.log.start_offset, files.log.end_offset, files.recovery_point) == (0, 54, 54)
    assert files.recovered.local.high_watermark == 54
    assert [entry.producer_id for entry in files.transactions().producers] == [0, 1, 2]
    assert files.timestamp_lookup(1_700_000_000_100) == (1_700_000_000_120, 12, 0)
    before = read_all(files)
    assert (before[0].base_offset, before[-1].next_offset) == (0, 54)
    files.append(Offset(54), Epoch(1), [made(2)], at_ms(0))
    directory.close({key: Offset(56)}, None)
    again = opened(folder)
    assert not again.clean
    files = again.open_partition("recorded", 0, LogConfig(), at_ms(0))
    assert read_all(files)[:-1] == before
    assert (files.log.end_offset, files.recovered.local.high_watermark) == (56, 56)
    again.close({}, None)


def test_a_start_knows_all_batches_that_a_producer_may_send_again(tmp_path: Path) -> None:
    """Kafka's knows the last one only: an earlier one that is sent again is then out of order."""
    directory = opened(tmp_path / "new")
    files = directory.create_partition("t", 0, TOPIC_ID, LogConfig(), at_ms(0))
    batches = [made(2, producer=7, sequence=2 * number) for number in range(7)]
    for number, batch in enumerate(batches):
        files.append(Offset(2 * number), Epoch(1), [batch], at_ms(0))
    directory.close({}, None)
    again = opened(tmp_path / "new")
    (entry,) = again.open_partition("t", 0, LogConfig(), at_ms(0)).transactions().producers
    assert [batch.first_sequence for batch in entry.batches] == [4, 6, 8, 10, 12]
    again.close({}, None)


def test_a_new_directory_is_formatted_once(tmp_path: Path) -> None:
    directory = opened(tmp_path / "new")
    assert len(directory.directory_id) == 22
    directory.close({}, BrokerEpoch(7))
    again = opened(tmp_path / "new")
    assert (again.directory_id, again.clean, again.previous_broker_epoch) == (directory.directory_id, True, 7)
    again.close({}, None)


def test_another_process_holds_the_lock(tmp_path: Path) -> None:
    script = (
        "import sys; from kspec.impl.storage import LogDirectory, RealDisk;"
        f"LogDirectory.open({str(tmp_path)!r}, RealDisk(), {CLUSTER!r}, 1); print('locked', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, stdin=pipe, stdout=pipe) as other:
        assert other.stdout
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(StorageError, match=r"in use: another process holds \.lock"):
            opened(tmp_path)
    opened(tmp_path).close({}, None)


def change(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8") and None


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (change("meta.properties", f"version=1\ncluster.id={CLUSTER}\nnode.id=2\n"), "belongs to node.id=2, not to 1"),
        (change("meta.properties", "version=1\ncluster.id=x\nnode.id=1\n"), "belongs to cluster.id=x"),
        (change("meta.properties", "version=0\n"), "should say version=1, and has 0"),
        (change("meta.properties", "version=1\nnode.id=1\n"), "has no line cluster.id="),
        (change("meta.properties", f"version=1\ncluster.id={CLUSTER}\nnode.id=one\n"), "node.id=one, which is no number"),
        (lambda folder: (folder / "meta.properties").unlink(), "has no meta.properties, and is not empty"),
        (change("meta.properties", f"version=1\ncluster.id={CLUSTER}\nnode.id={'9' * 5_000}\n"), "which is no number"),
        (lambda folder: (folder / "meta.properties").write_bytes(b"\xff\xff") and None, "is not a text file"),
    ],
)
def test_a_directory_that_cannot_be_used(damage: Callable[[Path], object], complaint: str, tmp_path: Path) -> None:
    folder = Path(copytree(KAFKAS, tmp_path / "logs"))
    damage(folder)
    with pytest.raises(StorageError, match=complaint):
        opened(folder)
    with pytest.raises(StorageError, match=complaint):
        opened(folder)


def test_a_folder_that_lost_a_partition_does_not_say_that_it_stopped_cleanly(tmp_path: Path) -> None:
    """Kafka's folder here has no `__transaction_state-0`, which its checkpoints list."""
    directory = opened(Path(copytree(KAFKAS, tmp_path / "logs")))
    assert (directory.clean, directory.previous_broker_epoch) == (True, -1)
    assert not directory.may_begin_anew("__transaction_state", 0, may_lead=True)
    assert directory.may_begin_anew("__transaction_state", 0, may_lead=False)
    assert directory.may_begin_anew("new", 0, may_lead=True)


def test_partitions_are_created_deleted_and_removed(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    files = directory.create_partition("topic", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=50), at_ms(0))
    files.append(Offset(0), Epoch(0), [made(3)], at_ms(0))
    part = files.read(Offset(0), Offset(3), 1_000)
    with pytest.raises(StorageError, match="exists already"):
        directory.create_partition("topic", 0, TOPIC_ID, LogConfig(), at_ms(0))
    directory.checkpoint_high_watermarks({TopicPartition("topic", 0): Offset(3)})
    files.delete(MonotonicMs(100))
    assert part.bytes() == os.pread(part.handle.fileno(), part.length, part.position)
    (name,) = (name for name in os.listdir(tmp_path) if name.startswith("topic-0."))
    assert name.endswith("-delete")
    directory.clean_up(MonotonicMs(149))
    assert (tmp_path / name).exists()
    directory.clean_up(MonotonicMs(150))
    assert not (tmp_path / name).exists()
    directory.create_partition("topic", 0, TOPIC_ID, LogConfig(), at_ms(200)).delete(MonotonicMs(200))
    directory.close({}, None)
    again = opened(tmp_path)
    assert again.found == {}
    again.clean_up(MonotonicMs(0))
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    again.close({}, None)


def test_a_file_stays_open_while_a_thread_writes_to_it(tmp_path: Path) -> None:
    disk = RealDisk(max_open=1)
    files = [disk.open(str(tmp_path / str(number)), create=True) for number in range(8)]

    def write(file: File) -> None:
        for _ in range(500):
            file.append([b"12345678"])

    with ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(write, files))
    assert [file.read(0, 4000) for file in files] == [b"12345678" * 500] * len(files)


def test_few_files_are_open_at_once(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    disk = RealDisk(max_open=4)
    directory = LogDirectory.open(str(tmp_path), disk, CLUSTER, 1)
    all_files = [directory.create_partition("t", number, TOPIC_ID, LogConfig(), at_ms(0)) for number in range(20)]
    for _ in range(3):
        for files in all_files:
            files.append(files.log.end_offset, Epoch(0), [made(1)], at_ms(0))
    assert len(os.listdir("/proc/self/fd")) - before < 10
    assert all(len(read_all(files)) == 3 for files in all_files)
    directory.close({}, None)


def test_retention_wants_a_log_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    config = LogConfig(segment_bytes=300, retention_bytes=500, retention_ms=-1, file_delete_delay_ms=0)
    files = directory.create_partition("t", 0, TOPIC_ID, config, at_ms(0))
    for _ in range(10):
        files.append(files.log.end_offset, Epoch(0), [made(2)], at_ms(0))
    assert files.retention_offset(Offset(2), TimestampMs(0)) <= 2
    wanted = files.retention_offset(Offset(20), TimestampMs(0))
    assert 0 < wanted < 20
    files.start_at(wanted, at_ms(0))
    assert 500 <= files.size < 800
    assert files.retention_offset(Offset(20), TimestampMs(0)) == wanted
    files.start_at(Offset(20), at_ms(0))
    assert (files.size, len(files.segments)) == (0, 1)
    directory.close({}, None)


def test_settings_by_kafkas_names() -> None:
    config = log_config(
        {"segment.bytes": "1000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.1", "x": "y"}
    )
    assert (config.segment_bytes, config.compacts, config.deletes, config.min_cleanable_dirty_ratio) == (
        1000,
        True,
        True,
        0.1,
    )
    with pytest.raises(StorageError, match=r"segment\.bytes is a number, not .many."):
        log_config({"segment.bytes": "many"})
    with pytest.raises(StorageError, match=r"cleanup\.policy is one of"):
        log_config({"cleanup.policy": "shred"})


def test_partitions_with_a_moved_log_start_are_closed_in_several_threads(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in range(40):
        files = directory.create_partition("topic", number, TOPIC_ID, LogConfig(), at_ms(0))
        files.append(Offset(0), Epoch(1), [made(4)], at_ms(0))
        files.start_at(Offset(2), at_ms(0))
    directory.close({}, BrokerEpoch(3))
    again = opened(tmp_path)
    assert again.clean
    starts = {again.open_partition("topic", number, LogConfig(), at_ms(0)).log.start_offset for number in range(40)}
    assert starts == {2}
    again.close({}, None)


class SlowDisk(RealDisk):
    """One of the checkpoints takes a while to be written, so that threads meet there."""

    def write_file(self, path: str, content: bytes, sync: bool = True) -> None:
        super().write_file(path, content, sync)
        time.sleep(0.02 if "replication-offset" in path else 0)


def test_partitions_are_created_again_in_several_threads(tmp_path: Path) -> None:
    directory = LogDirectory.open(str(tmp_path), SlowDisk(), CLUSTER, 1)
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            create = partial(directory.create_partition, "topic", topic_id=TOPIC_ID, config=LogConfig(), now=at_ms(0))
            made_again = list(threads.map(create, range(32)))
            directory.checkpoint_high_watermarks({TopicPartition("topic", number): Offset(0) for number in range(32)})
            for files in made_again:
                files.delete(MonotonicMs(0))
            directory.clean_up(MonotonicMs(LogConfig().file_delete_delay_ms))
    directory.close({}, None)


def test_a_partition_that_does_not_say_whose_it_is_belongs_to_who_asks(tmp_path: Path) -> None:
    disk = RealDisk()
    path = str(tmp_path / "logs")
    directory = LogDirectory.open(path, disk, CLUSTER, 1)
    directory.create_partition("topic", 0, TOPIC_ID, LogConfig(), at_ms(0))
    directory.close({}, None)
    (tmp_path / "logs" / "topic-0" / "partition.metadata").unlink()
    again = LogDirectory.open(path, disk, CLUSTER, 1)
    assert again.has_partition("topic", 0, TOPIC_ID)
    assert again.open_partition("topic", 0, LogConfig(), at_ms(0), TOPIC_ID).topic_id == TOPIC_ID
    again.close({}, None)
    assert LogDirectory.open(path, disk, CLUSTER, 1).found == {("topic", 0): TOPIC_ID}


def test_the_folder_of_another_topic_of_this_name_is_set_aside(tmp_path: Path) -> None:
    disk = RealDisk()
    path = str(tmp_path / "logs")
    directory = LogDirectory.open(path, disk, CLUSTER, 1)
    directory.create_partition("topic", 0, TOPIC_ID, LogConfig(), at_ms(0))
    directory.close({}, None)
    again = LogDirectory.open(path, disk, CLUSTER, 1)
    other = "B" * 22
    assert not again.has_partition("topic", 0, other)
    aside = again.set_aside("topic", 0)
    assert aside is not None
    assert Path(aside).name.endswith("-stray")
    assert again.set_aside("topic", 0) is None
    again.create_partition("topic", 0, other, LogConfig(), at_ms(0))
    again.close({}, None)
    assert LogDirectory.open(path, disk, CLUSTER, 1).found == {("topic", 0): other}


def test_a_stop_before_the_logs_were_loaded_is_clean_only_if_the_last_one_was(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    opened(folder).close({}, BrokerEpoch(1))
    opened(folder).close({}, BrokerEpoch(2), logs_loaded=False)
    assert (folder / ".kafka_cleanshutdown").exists()
    (folder / ".kafka_cleanshutdown").unlink()
    opened(folder).close({}, BrokerEpoch(3), logs_loaded=False)
    assert not (folder / ".kafka_cleanshutdown").exists()


def test_a_start_that_moves_while_the_checkpoints_are_written_is_still_to_be_written(tmp_path: Path) -> None:
    """They are written in a thread, and the disk may take long."""
    directory = opened(tmp_path)
    files = directory.create_partition("topic", 0, TOPIC_ID, LogConfig(), at_ms(0))
    files.append(Offset(0), Epoch(1), [made(3)], at_ms(0))
    files.start_at(Offset(1), at_ms(0))
    write = directory._write

    def write_slowly(name: str, offsets: Mapping[tuple[str, int], int]) -> None:
        write(name, offsets)
        if files.log.start_offset == 1:
            files.start_at(Offset(2), at_ms(0))

    directory._write = write_slowly  # type: ignore[method-assign]
    directory.checkpoint_logs()
    assert files.start_moved
    directory.checkpoint_logs()
    assert not files.start_moved


def test_a_folder_without_an_id_gets_its_own(tmp_path: Path) -> None:
    """Kafka wrote none before 3.7."""
    opened(tmp_path).close({}, None)
    (tmp_path / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n", encoding="utf-8")
    directory = opened(tmp_path)
    made = directory.directory_id
    assert re.fullmatch(r"[\w-]{22}", made)
    directory.close({}, None)
    assert opened(tmp_path).directory_id == made


@pytest.mark.parametrize("wrong", ["", "short", "AAAAAAAAAAAAAAAAAAAAAQ", "!" * 22])
def test_an_id_that_is_none_is_told(wrong: str, tmp_path: Path) -> None:
    opened(tmp_path).close({}, None)
    text = f"version=1\ncluster.id={CLUSTER}\nnode.id=1\ndirectory.id={wrong}\n"
    (tmp_path / "meta.properties").write_text(text, encoding="utf-8")
    with pytest.raises(StorageError, match=r"meta.properties says directory.id="):
        opened(tmp_path)
