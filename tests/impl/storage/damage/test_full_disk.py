"""A full disk: what was acknowledged stays, a line names the file, and no broker ends by a traceback."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kspec.impl.records.record import new_batch
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.storage.damage.directory import CONFIG, DAMAGED, IDS, stopped
from tests.impl.storage.damage.test_no_files import laid_out, opened
from tests.impl.storage.damage.test_processes import TOPICS, values
from tests.impl.storage.model import read_all
from tests.times import at_ms

pytestmark = pytest.mark.slow


def full(*given: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_indexes_that_cannot_be_written_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = laid_out(tmp_path / "data", True)
    for index in (data / "damaged-0").glob("*.index"):
        index.write_bytes(b"")
        index.with_suffix(".timeindex").unlink()
    directory = opened(data)
    monkeypatch.setattr(os, "pwritev", full)
    files = directory.open_partition(*DAMAGED, CONFIG, at_ms(0), IDS[DAMAGED])
    assert read_all(files) == stopped(True).known[DAMAGED].batches


# ---- a broker as a process: some of its small files find no space

WITHOUT_SPACE = """
import errno, os, re
from pathlib import Path
from kspec.impl.storage import real_disk
flag, fsync = Path({flag!r}), os.fsync
def check(path):
    if (pattern := flag.read_text()) and re.search(pattern, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
def opened(path, mode):
    if "w" in mode:
        check(path)
    return open(path, mode)
def synced(descriptor):
    check(os.readlink("/proc/self/fd/" + str(descriptor)))
    fsync(descriptor)
real_disk.open, os.fsync = opened, synced
"""
"""Small files that are written, and all that are synced: like `write` and `fsync`, the error does not name the file."""

EVERY_FILE = "."


class BrokerOnFullDisk(BrokerProcess):
    """A broker with records in two topics; `fill` says for which small files there is no space (an expression)."""

    def __init__(self, folder: Path) -> None:
        often = [
            "replica.high.watermark.checkpoint.interval.ms=50",
            "log.flush.offset.checkpoint.interval.ms=50",
            "metadata.log.max.record.bytes.between.snapshots=1000",
            "log.segment.bytes=3000",
            "log.flush.interval.ms=100",
        ]
        super().__init__(folder, overrides=often, traced=False)
        self._flag = folder.parent / "full"
        self.begins_with = WITHOUT_SPACE.format(flag=str(self._flag))
        self.fill("")
        self.written = 0
        self.start()
        with BrokerClient(self.port) as client:
            for topic in TOPICS:
                client.create(topic)
            self.write(client, TOPICS, 10)

    def fill(self, pattern: str) -> None:
        """No space from now on for files whose paths have this; none is empty."""
        self._flag.write_text(pattern, encoding="utf-8")

    def write(self, client: BrokerClient, topics: tuple[str, ...], count: int) -> None:
        """Write records, all of which are acknowledged."""
        for number in range(self.written, self.written + count):
            for topic in topics:
                assert client.produce(topic, new_batch([(1_000, None, b"%d" % number)])).error_code == 0
        self.written += count

    def all_there(self, client: BrokerClient, topics: tuple[str, ...]) -> None:
        """Whether what was acknowledged is served."""
        for topic in topics:
            assert values(client, topic) == (Error.NONE, [b"%d" % number for number in range(self.written)])

    def says(self, *words: str) -> None:
        """Wait until a line has all these words."""
        wait_until(lambda: any(all(word in line for word in words) for line in self.text_of_log().splitlines()))

    def is_whole_after(self) -> None:
        """There is space again: a start finds all that was acknowledged."""
        self.fill("")
        self.start()
        with BrokerClient(self.port) as client:
            self.all_there(client, TOPICS)
            self.write(client, TOPICS, 1)
        assert self.stop() == 0
        assert "Traceback" not in self.text_of_log()


CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
NO_SPACE = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("killed", [False, True])
def test_a_checkpoint_that_cannot_be_written_stops_no_writes(name: str, killed: bool, tmp_path: Path) -> None:
    """The one that was written last stays: a start then checks more of the logs."""
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill(name)
    with BrokerClient(broker.port) as client:
        broker.write(client, TOPICS, 10)
        broker.says(str(tmp_path / "data" / name), NO_SPACE)
        broker.write(client, TOPICS, 10)
        broker.all_there(client, TOPICS)
    if killed:
        broker.kill()
    else:
        assert broker.stop() == 3
        assert broker.text_of_log().splitlines()[-1].startswith("kspec: ")
        assert name in broker.text_of_log().splitlines()[-1]
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    broker.is_whole_after()


@pytest.mark.parametrize("killed", [False, True])
def test_epochs_that_cannot_be_written_cost_their_partition_alone(killed: bool, tmp_path: Path) -> None:
    """Each start gives a partition the next leader epoch, which is written down before its first record."""
    broker = BrokerOnFullDisk(tmp_path / "data")
    if killed:
        broker.kill()
    else:
        assert broker.stop() == 0
    broker.fill("/damaged-0/leader-epoch-checkpoint")
    broker.start()
    with BrokerClient(broker.port) as client:
        broker.all_there(client, ("neighbour",))
        assert client.produce("neighbour", new_batch([(1, None, b"10")])).error_code == 0
        assert client.produce("damaged", new_batch([(1, None, b"x")])).error_code == Error.KAFKA_STORAGE_ERROR.value
    broker.says("damaged-0 is offline", str(tmp_path / "data" / "damaged-0" / "leader-epoch-checkpoint"), NO_SPACE)
    assert broker.stop() == 0
    broker.fill("")
    broker.start()
    with BrokerClient(broker.port) as client:
        broker.all_there(client, ("damaged",))
        assert client.produce("damaged", new_batch([(1, None, b"10")])).error_code == 0
        broker.written += 1
    assert broker.stop() == 0
    broker.is_whole_after()


def test_a_snapshot_of_producers_that_cannot_be_written_costs_its_partition_alone(tmp_path: Path) -> None:
    """It is written when a segment is rolled."""
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill("/damaged-0/.*snapshot")
    answers = []
    with BrokerClient(broker.port) as client:
        for _ in range(60):
            answers.append(client.produce("damaged", new_batch([(1, None, bytes(200))])).error_code)
            assert client.produce("neighbour", new_batch([(1, None, bytes(200))])).error_code == 0
    acknowledged = answers.count(0)
    assert 0 < acknowledged < 60
    assert set(answers[acknowledged:]) == {Error.KAFKA_STORAGE_ERROR.value}
    broker.says("damaged-0 is offline", str(tmp_path / "data" / "damaged-0"), "snapshot", NO_SPACE)
    broker.stop()
    broker.fill("")
    broker.start()
    with BrokerClient(broker.port) as client:
        for topic, more in (("damaged", acknowledged), ("neighbour", 60)):
            error, found = values(client, topic)
            assert (error, len(found)) == (Error.NONE, broker.written + more), topic
        assert client.produce("damaged", new_batch([(1, None, b"more")])).base_offset == broker.written + acknowledged
    assert broker.stop() == 0
    assert "Traceback" not in broker.text_of_log()


@pytest.mark.parametrize("killed", [False, True])
def test_a_log_that_cannot_be_flushed_costs_its_partition_alone(killed: bool, tmp_path: Path) -> None:
    """A second sync may succeed without what the system has forgotten: nothing may count as flushed by it."""
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill(r"/damaged-0/.*\.log")
    with BrokerClient(broker.port) as client:
        assert client.produce("damaged", new_batch([(1, None, b"10")])).error_code == 0
        assert client.produce("neighbour", new_batch([(1, None, b"10")])).error_code == 0
        broker.written += 1
        broker.says("damaged-0 is offline", str(tmp_path / "data" / "damaged-0"), NO_SPACE)
        broker.fill("")
        assert client.produce("damaged", new_batch([(1, None, b"x")])).error_code == Error.KAFKA_STORAGE_ERROR.value
        broker.all_there(client, ("neighbour",))
    if killed:
        broker.kill()
    else:
        assert broker.stop() == 0
        lines = (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text(encoding="utf-8").splitlines()
        assert "damaged 0 0" in lines, "its only segment is checked by the next start"
        assert f"neighbour 0 {broker.written}" in lines
    broker.is_whole_after()
    assert ("has changed since the broker stopped" in broker.text_of_log()) == (not killed)


def test_a_snapshot_of_the_metadata_that_cannot_be_written_leaves_the_log_longer(tmp_path: Path) -> None:
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill(r"/__cluster_metadata-0/.*\.checkpoint")
    with BrokerClient(broker.port) as client:
        for number in range(20):
            client.create(f"topic-{number}")
        broker.says("no snapshot of the metadata log could be taken", "__cluster_metadata-0", NO_SPACE)
        broker.write(client, TOPICS, 1)
    broker.kill()
    broker.is_whole_after()
    assert len(list((tmp_path / "data" / "__cluster_metadata-0").glob("*.checkpoint"))) == 1


def test_a_new_partition_without_space_is_offline_until_there_is_some(tmp_path: Path) -> None:
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill("/new-0/")
    with BrokerClient(broker.port) as client:
        client.create("new")
        assert client.produce("new", new_batch([(1, None, b"0")])).error_code == Error.KAFKA_STORAGE_ERROR.value
        broker.write(client, TOPICS, 1)
    broker.says("new-0 is offline", str(tmp_path / "data" / "new-0"), NO_SPACE)
    broker.stop()
    broker.fill("")
    broker.start()
    with BrokerClient(broker.port) as client:
        assert client.produce("new", new_batch([(1, None, b"0")])).base_offset == 0
        assert values(client, "new") == (Error.NONE, [b"0"])
    assert broker.stop() == 0
    broker.is_whole_after()


def test_a_disk_without_any_space_ends_by_no_traceback(tmp_path: Path) -> None:
    """SIGTERM while nothing can be written: the stop is not clean, and says so."""
    broker = BrokerOnFullDisk(tmp_path / "data")
    broker.fill(EVERY_FILE)
    assert broker.stop() == 3
    assert broker.text_of_log().splitlines()[-1].startswith("kspec: ")
    assert NO_SPACE in broker.text_of_log().splitlines()[-1]
    broker.is_whole_after()
