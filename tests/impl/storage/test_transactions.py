"""Transactions in a partition's files: the index of aborted ones, producers, and what a start finds."""

import struct
from collections.abc import Iterable

import pytest

from kspec.impl.records.batch import TRANSACTIONAL
from kspec.impl.records.markers import marker_batch
from kspec.impl.records.record import new_batch
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles
from kspec.impl.storage.index import ABORTED
from kspec.spec.log.batch import EndMarker
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.log.partition import AbortedTransaction, OpenTransaction
from kspec.spec.transactions.log.reading import aborted_between
from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId, TimestampMs
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.times import at_ms

ONE, TWO = ProducerId(1), ProducerId(2)
SMALL = LogConfig(segment_bytes=220, index_interval_bytes=0, producer_id_expiration_ms=1_000)
"""Three batches fill a segment."""


class LogWriter:
    """A leader's log in files, as its broker writes it."""

    def __init__(self, config: LogConfig = SMALL) -> None:
        self.disk, self.config = SimulatedDisk(), config
        self.directory = LogDirectory.open("/d", self.disk, "c" * 22, 1)
        self.files = self.directory.create_partition("t", 0, "A" * 22, config, at_ms(0))
        self.sequences: dict[int, int] = {}

    def write(self, producer: ProducerId, key: bytes = b"k", epoch: int = 0) -> None:
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        batch = new_batch(
            [(1_000, key, b"v")],
            attributes=TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self._append(batch)

    def plain(self, key: bytes) -> None:
        self._append(new_batch([(1_000, key, b"v")]))

    def end(self, producer: ProducerId, committed: bool, epoch: int = 0, coordinator: int = 0) -> None:
        self._append(
            marker_batch(producer, ProducerEpoch(epoch), EndMarker(committed, Epoch(coordinator)), TimestampMs(1_001))
        )

    def _append(self, batch: bytes) -> None:
        self.files.append(self.files.log.end_offset, Epoch(0), [batch], at_ms(0))

    def again(self, clean: bool) -> PartitionFiles:
        """The files after a stop, or after a kill."""
        if clean:
            self.directory.close({}, None)
        self.disk = self.disk.after_power_loss(Survives.ALL, self.disk.unsynced_names)
        self.directory = LogDirectory.open("/d", self.disk, "c" * 22, 1)
        self.files = self.directory.open_partition("t", 0, self.config, at_ms(0))
        return self.files


def indexed(files: PartitionFiles) -> list[AbortedTransaction]:
    return list(files.aborted(Offset(0)))


def two_of_three_aborted(writer: LogWriter) -> None:
    """Transactions over several segments: of ONE aborted, of TWO committed, of ONE aborted, of TWO open."""
    for _ in range(3):
        writer.write(ONE)
        writer.write(TWO)
    writer.end(ONE, committed=False)
    writer.write(TWO)
    writer.end(TWO, committed=True, coordinator=4)
    for _ in range(4):
        writer.write(ONE)
    writer.end(ONE, committed=False)
    writer.write(TWO)


EXPECTED = [
    AbortedTransaction(ONE, Offset(0), Offset(6), Offset(1)),
    AbortedTransaction(ONE, Offset(9), Offset(13), Offset(14)),
]


def test_what_is_aborted_is_noted_in_the_segment_of_its_marker() -> None:
    writer = LogWriter()
    two_of_three_aborted(writer)
    files = writer.files
    assert len(files.segments) > 3
    assert indexed(files) == EXPECTED
    for segment in files.segments:
        within = [one for one in EXPECTED if segment.base_offset <= one.last_offset < segment.next_offset]
        path = segment.aborted.path
        assert writer.disk.exists(path) == bool(within)
        if within:
            assert list(ABORTED.iter_unpack(writer.disk.read_file(path))) == [(0, *one) for one in within]
    assert aborted_between(TRANSACTIONS_NEXT, files.aborted(Offset(2)), Offset(2), Offset(4)) == (EXPECTED[0],)
    assert aborted_between(TRANSACTIONS_NEXT, files.aborted(Offset(7)), Offset(7), Offset(20)) == (EXPECTED[1],)


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_knows_what_was_known(clean: bool) -> None:
    writer = LogWriter()
    two_of_three_aborted(writer)
    before = writer.files.transactions()
    files = writer.again(clean)
    assert files.transactions()._replace(unreplicated=()) == before
    assert before.ongoing == (OpenTransaction(Offset(14), TWO),)
    assert [one.coordinator_epoch for one in before.producers] == [0, 4]
    assert indexed(files) == EXPECTED
    writer.files = files
    writer.end(TWO, committed=False, coordinator=5)
    assert indexed(files)[-1] == AbortedTransaction(TWO, Offset(14), Offset(15), Offset(16))


@pytest.mark.parametrize(("committed", "left"), [(0, [6, 8, 13]), (7, [8, 13]), (9, [13]), (14, [])])
def test_a_start_knows_the_ends_that_may_not_be_committed(committed: int, left: list[int]) -> None:
    writer = LogWriter(LogConfig())
    two_of_three_aborted(writer)
    writer.directory.checkpoint_high_watermarks({TopicPartition("t", 0): Offset(committed)})
    writer.again(clean=False)
    assert sorted(one.last_offset for one in writer.files.transactions().unreplicated) == left


@pytest.mark.parametrize("damage", ["gone", "emptied", "cut", "garbage", "another version"])
def test_after_a_kill_the_index_is_made_anew_from_the_batches(damage: str) -> None:
    writer = LogWriter(LogConfig())
    two_of_three_aborted(writer)
    _damage(writer.disk, f"/d/t-0/{0:020d}.txnindex", damage)
    assert indexed(writer.again(clean=False)) == EXPECTED


@pytest.mark.parametrize("damage", ["cut", "garbage", "another version", "of another segment"])
def test_an_index_that_cannot_be_right_is_made_anew_after_a_clean_stop_too(damage: str) -> None:
    writer = LogWriter()
    two_of_three_aborted(writer)
    writer.directory.close({}, None)
    paths = [f"/d/t-0/{name}" for name in writer.disk.listdir("/d/t-0") if name.endswith(".txnindex")]
    for path in paths:
        _damage(writer.disk, path, damage)
    assert indexed(writer.again(clean=False)) == EXPECTED
    content = b"".join(map(writer.disk.read_file, paths))
    assert [fields[1:] for fields in ABORTED.iter_unpack(content)] == EXPECTED


def _damage(disk: SimulatedDisk, path: str, how: str) -> None:
    content = disk.read_file(path)
    if how == "gone":
        disk.unlink(path)
        return
    changed = {
        "emptied": b"",
        "cut": content[:-1],
        "garbage": b"\xff" * len(content),
        "another version": struct.pack(">h", 7) + content[2:],
        "of another segment": ABORTED.pack(0, 1, 500, 510, 511),
    }
    disk.write_file(path, changed[how])


@pytest.mark.parametrize("offset", range(1, 16))
def test_a_truncation_leaves_what_a_log_of_that_length_has(offset: int) -> None:
    writer, shorter = LogWriter(), LogWriter()
    two_of_three_aborted(writer)
    two_of_three_aborted(shorter)
    writer.files.truncate_to(Offset(offset))
    left = writer.files.transactions_left()
    assert indexed(writer.files) == [one for one in EXPECTED if one.last_offset < offset]
    assert [one.first_offset for one in left.ongoing] == [
        first for first, last in ((0, 6), (1, 8), (9, 13), (14, 99)) if first < offset <= last
    ]
    shorter.files.truncate_to(Offset(offset))
    assert shorter.again(clean=False).transactions() == left
    assert indexed(shorter.files) == indexed(writer.files)


def test_deletion_takes_the_index_with_its_segment() -> None:
    writer = LogWriter()
    two_of_three_aborted(writer)
    writer.files.start_at(Offset(9), at_ms(0))
    assert indexed(writer.files) == EXPECTED[1:]
    assert any(name.endswith(".txnindex.deleted") for name in writer.disk.listdir("/d/t-0"))
    files = writer.again(clean=False)
    assert indexed(files) == EXPECTED[1:]
    assert not any(name.endswith(".deleted") for name in writer.disk.listdir("/d/t-0"))


def test_an_open_transaction_does_not_expire() -> None:
    writer = LogWriter()
    writer.write(ONE)
    writer.write(TWO)
    writer.end(TWO, committed=False)
    late = TimestampMs(10**12)
    assert writer.files.expire_producers(late) == (TWO,)
    assert [one.producer_id for one in writer.files.transactions().producers] == [ONE]
    writer.end(ONE, committed=True)
    assert writer.files.expire_producers(late) == (ONE,)
    assert writer.files.transactions().producers == ()


# ---- compaction


COMPACTED = LogConfig(
    cleanup_policy="compact",
    segment_bytes=160,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=100,
    index_interval_bytes=0,
)


def kinds(files: PartitionFiles) -> list[tuple[int, str]]:
    """Each batch of a log: its offset, and what it is; one without records is in brackets."""
    found = []
    for segment in files.segments:
        for header in segment.headers():
            marker = segment.marker(header)
            word = "data" if not header.control else ("commit" if marker is None or marker.committed else "abort")
            found.append((int(header.base_offset), word if header.record_count else f"({word})"))
    return found


def fill(writer: LogWriter, keys: Iterable[bytes]) -> None:
    for key in keys:
        writer.plain(key)


def test_aborted_records_go_and_then_their_marker() -> None:
    writer = LogWriter(COMPACTED)
    writer.write(ONE, b"a")
    writer.end(ONE, committed=True)
    writer.write(ONE, b"a")
    writer.end(ONE, committed=False)
    writer.write(ONE, b"b")
    writer.end(ONE, committed=True)
    fill(writer, [b"x", b"y", b"z", b"u", b"w"])
    files = writer.files
    assert writer.directory.compact(files, files.log.end_offset, at_ms(10))
    assert kinds(files)[:5] == [(0, "data"), (1, "commit"), (3, "abort"), (4, "data"), (5, "commit")]
    assert indexed(files) == [AbortedTransaction(ONE, Offset(2), Offset(3), Offset(4))]
    fill(writer, [b"x", b"y", b"z", b"u"])
    assert writer.directory.compact(files, files.log.end_offset, at_ms(20))
    assert (3, "abort") in kinds(files), "it is seen that nothing is left of its transaction"
    assert indexed(files) == []
    fill(writer, [b"x", b"y", b"z", b"u"])
    assert writer.directory.compact(files, files.log.end_offset, at_ms(119))
    assert (3, "abort") in kinds(files)
    fill(writer, [b"x", b"y", b"z", b"u"])
    assert writer.directory.compact(files, files.log.end_offset, at_ms(120))
    assert kinds(files)[:4] == [(0, "data"), (1, "commit"), (4, "data"), (5, "commit")]
    assert writer.again(clean=False).transactions().ongoing == ()


def test_a_record_of_an_aborted_transaction_is_not_the_last_of_its_key() -> None:
    writer = LogWriter(COMPACTED)
    writer.plain(b"a")
    writer.write(ONE, b"a")
    writer.end(ONE, committed=False)
    fill(writer, [b"x", b"y", b"z"])
    assert writer.directory.compact(writer.files, writer.files.log.end_offset, at_ms(10))
    assert kinds(writer.files)[0] == (0, "data")


def test_the_last_batch_of_a_producer_is_emptied_and_keeps_its_marker() -> None:
    writer = LogWriter(COMPACTED)
    writer.write(ONE, b"a")
    writer.end(ONE, committed=False)
    fill(writer, [b"x", b"y", b"z", b"u"])
    for now in (10, 200, 400):
        assert writer.directory.compact(writer.files, writer.files.log.end_offset, at_ms(now))
        assert kinds(writer.files)[:2] == [(0, "(data)"), (1, "abort")]
        assert indexed(writer.files) == [AbortedTransaction(ONE, Offset(0), Offset(1), Offset(2))]
        fill(writer, [b"x", b"y", b"z", b"u"])
    (entry,) = writer.again(clean=False).transactions().producers
    assert (entry.producer_id, entry.last_sequence, entry.transaction_start) == (ONE, 0, -1)


def test_a_marker_alone_tells_of_its_producer() -> None:
    writer = LogWriter(COMPACTED)
    writer.end(ONE, committed=True, epoch=7)
    fill(writer, [b"x", b"y", b"z", b"u"])
    for now in (10, 200, 400):
        assert writer.directory.compact(writer.files, writer.files.log.end_offset, at_ms(now))
        fill(writer, [b"x", b"y", b"z", b"u"])
    assert kinds(writer.files)[0] == (0, "(commit)")


def test_nothing_is_compacted_from_the_last_stable_offset_on() -> None:
    writer = LogWriter(COMPACTED)
    fill(writer, [b"a", b"a", b"a", b"a"])
    writer.write(ONE, b"a")
    fill(writer, [b"a", b"a", b"a", b"a"])
    assert writer.directory.compact(writer.files, Offset(4), at_ms(10))
    assert [offset for offset, _ in kinds(writer.files) if offset >= 4] == [4, 5, 6, 7, 8]
