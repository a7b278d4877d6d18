"""A log in memory, as plain as can be: what the files of a partition are compared with."""

from dataclasses import dataclass, field

from kspec.impl.records.batch import header_at, headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.storage.partition import PartitionFiles
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.producers import ProducerBatch, Producers, rebuilt_from
from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId
from tests.limits.turns import Turns


def made(count: int, *, time: int = 1_000, producer: int = -1, sequence: int = -1, size: int = 10, codec: int = 0) -> bytes:
    """A batch as a producer sends it, with records one ms apart."""
    records = [(time + number, b"key%d" % number, b"v" * size) for number in range(count)]
    epoch = 0 if producer >= 0 else -1
    return new_batch(records, codec=codec, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


@dataclass(frozen=True)
class BatchInLog:
    """A batch in the log: where it lies, and its bytes from the attributes on, which never change."""

    base_offset: int
    epoch: int
    count: int
    body: bytes

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


def stored_in(data: bytes) -> list[BatchInLog]:
    """The batches in bytes that were read."""
    return [
        BatchInLog(
            one.base_offset, one.leader_epoch, one.last_offset_delta + 1, data[one.position + 16 : one.position + one.size]
        )
        for one in headers(data)
    ]


@dataclass
class DirectoryModel:
    """Batches in order, and the log as `spec` sees it."""

    batches: list[BatchInLog] = field(default_factory=list)
    log: EpochLog = EMPTY_EPOCH_LOG

    def append(self, base_offset: int, epoch: int, batches: list[bytes]) -> None:
        self.log = self.log.append_at(Offset(base_offset), ())
        for batch in batches:
            header = header_at(batch)
            self.batches.append(BatchInLog(base_offset, epoch, header.record_count, batch[16:]))
            self.log = self.log.append_at(Offset(base_offset), (Batch(header.record_count, Epoch(epoch)),))
            base_offset += header.record_count

    def truncate_to(self, offset: int) -> None:
        self.batches = [one for one in self.batches if one.next_offset <= offset]
        self.log = self.log.truncate_to(Offset(offset))

    def restart_at(self, offset: int) -> None:
        self.batches = []
        self.log = self.log.restart_at(Offset(offset))

    def start_at(self, offset: int) -> None:
        self.log = self.log.start_at(Offset(offset))

    def open_epoch(self, epoch: int) -> None:
        self.log = self.log.open_epoch(Epoch(epoch))

    @property
    def visible(self) -> list[BatchInLog]:
        """The batches with a record at or after the log start."""
        return [one for one in self.batches if one.next_offset > self.log.start_offset]

    def read(self, offset: int, max_offset: int, max_bytes: int, at_least_one: bool) -> list[BatchInLog]:
        """The batches of a read, if segments had no ends."""
        found: list[BatchInLog] = []
        size = 0
        for one in self.batches:
            if one.next_offset <= offset:
                continue
            size += len(one.body) + 16
            too_large = size > max_bytes and not (at_least_one and not found)
            if one.next_offset > max_offset or too_large:
                break
            found.append(one)
        return found

    def records(self) -> list[tuple[int, int, int]]:
        """(timestamp, offset, leader epoch) of all records from the log start on."""
        found = []
        for one in self.visible:
            batch = one.base_offset.to_bytes(8) + bytes([0, 0, 0, 0]) + one.epoch.to_bytes(4) + one.body
            whole = batch[:8] + (len(batch) - 12).to_bytes(4) + batch[12:]
            found += [(record.timestamp, record.offset, one.epoch) for record in records_of(whole)]
        return [entry for entry in found if entry[1] >= self.log.start_offset]

    def producers(self) -> Producers:
        """The fold of all batches in the log."""
        return rebuilt_from(tuple(one for one in map(producer_batch, self.batches) if one is not None))


def producer_batch(one: BatchInLog) -> ProducerBatch | None:
    """The producer's fields in a stored batch."""
    producer = int.from_bytes(one.body[27:35], signed=True)
    if producer < 0:
        return None
    epoch, sequence = int.from_bytes(one.body[35:37], signed=True), int.from_bytes(one.body[37:41], signed=True)
    return ProducerBatch(ProducerId(producer), ProducerEpoch(epoch), sequence, one.count, Offset(one.base_offset))


def read_all(files: PartitionFiles) -> list[BatchInLog]:
    """All batches from the log start on, segment after segment."""
    found: list[BatchInLog] = []
    offset = files.log.start_offset
    turns = Turns()
    while True:
        turns.go()
        part = files.read(offset, files.log.end_offset, 1 << 30, at_least_one=True)
        if part.length == 0:
            return found
        found += stored_in(part.bytes())
        offset = part.next_offset


def history_of(batches: list[BatchInLog]) -> EpochHistory:
    """The epochs that the batches themselves tell."""
    history = EpochHistory()
    for one in batches:
        if one.epoch > history.latest_epoch:
            history = history.assign(Epoch(one.epoch), Offset(one.base_offset))
    return history
