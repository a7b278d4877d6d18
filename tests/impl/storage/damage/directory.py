"""A log directory with two partitions on a simulated disk, damaged while its broker is down, and opened again."""

from dataclasses import dataclass, field
from functools import cache
from random import Random

from kspec.impl.records.batch import header_at
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles, StorageError
from kspec.spec.log.producers import Producers, rebuilt_from
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerEpoch, Epoch, MonotonicMs, Offset
from kspec.trials.faults.damage import DamageKind, FileKind, Others, damaged, files_of
from kspec.trials.simulated.disk import Content, Names, SimulatedDisk
from tests.impl.storage.model import BatchInLog, DirectoryModel, made, producer_batch, read_all
from tests.times import at_ms

PATH = "logs"
DAMAGED, NEIGHBOUR = TopicPartition("damaged", 0), TopicPartition("neighbour", 0)
BOTH = (DAMAGED, NEIGHBOUR)
IDS = {DAMAGED: "A" * 22, NEIGHBOUR: "B" * 22}
CONFIG = LogConfig(segment_bytes=4_000, index_interval_bytes=300)
EPOCH = BrokerEpoch(7)
BATCHES = 70

Bytes = dict[str, bytes]
"""The files of a log directory by their paths in it."""


@dataclass(frozen=True)
class UndamagedContent:
    """The content of a partition before it was damaged."""

    batches: list[BatchInLog]
    records: list[tuple[int, int, int]]
    """Timestamp, offset and epoch of each record."""
    producers: Producers

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset


@dataclass(frozen=True)
class StoppedDirectory:
    """A log directory whose broker is down, the same some time before, and another replica's."""

    files: Bytes
    known: dict[TopicPartition, UndamagedContent]
    older: Bytes = field(default_factory=dict)
    other: Bytes = field(default_factory=dict)


def bytes_of(disk: SimulatedDisk) -> Bytes:
    """All files of a disk."""
    return {path.removeprefix(f"{PATH}/"): bytes(content.now) for path, content in disk._names.files.items()}


def disk_with(files: Bytes) -> SimulatedDisk:
    """A disk with these files, all of them synced."""
    names = Names()
    for path, data in {f"{PATH}/{path}": data for path, data in files.items()}.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above, folder = "/".join(parts[: depth - 1]), "/".join(parts[:depth])
            names.folders.setdefault(folder, set())
            names.folders[above].add(parts[depth - 1])
        names.folders["/".join(parts[:-1])].add(parts[-1])
        names.files[path] = Content(bytearray(data), data)
    return SimulatedDisk(names)


def open_directory(disk: SimulatedDisk) -> LogDirectory:
    """A start. Raises: `StorageError`."""
    directory = LogDirectory.open(PATH, disk, "cluster", 1)
    directory.closed_at_once = 1
    return directory


def fill(directory: LogDirectory, key: TopicPartition, random: Random, batches: int) -> None:
    """Append batches of several epochs and producers."""
    files = directory.partitions[key]
    for number in range(batches):
        offset, epoch = files.log.end_offset, Epoch(1 + (files.log.end_offset // 40) * 2)
        count = random.randint(1, 4)
        time = 1_000 + 10 * offset - (random.random() < 0.2) * 300
        batch = made(count, time=time, producer=number % 3, sequence=int(offset), size=random.randint(5, 120))
        files.append(offset, epoch, [batch], at_ms(offset))


@cache
def stopped(clean: bool, batches: int = BATCHES, seed: int = 1) -> StoppedDirectory:
    """A broker stopped in order or killed, after it flushed the first part of what it had."""
    disk = SimulatedDisk()
    directory = open_directory(disk)
    for key in BOTH:
        directory.create_partition(*key, IDS[key], CONFIG, at_ms(0))
        fill(directory, key, Random(f"{key} {seed}"), batches // 2)
        directory.partitions[key].flush(MonotonicMs(0))
    directory.checkpoint_logs()
    directory.checkpoint_high_watermarks({key: directory.partitions[key].log.end_offset for key in BOTH})
    older = bytes_of(disk)
    for key in BOTH:
        fill(directory, key, Random(f"{key} {seed} more"), batches - batches // 2)
    known = {key: _known(directory.partitions[key]) for key in BOTH}
    directory._cleaned[NEIGHBOUR] = 3
    directory._write("cleaner-offset-checkpoint", directory._cleaned)
    marks = {key: directory.partitions[key].log.end_offset for key in BOTH}
    if clean:
        directory.close(marks, EPOCH)
    else:
        for key in BOTH:
            directory.partitions[key].flush_is_due(MonotonicMs(0))
        directory.checkpoint_high_watermarks(marks)
    other = stopped(clean, batches - 20, seed + 1).files if seed == 1 else {}
    return StoppedDirectory(bytes_of(disk), known, older, other)


def _known(files: PartitionFiles) -> UndamagedContent:
    model = DirectoryModel(read_all(files))
    producers = rebuilt_from(tuple(one for one in map(producer_batch, model.batches) if one is not None))
    return UndamagedContent(model.batches, model.records(), producers)


@dataclass
class StartOutcome:
    """The outcome of a start on a damaged directory."""

    words: str
    directory: LogDirectory
    partitions: dict[TopicPartition, PartitionFiles]
    refused: dict[TopicPartition, str]


def damage(case: StoppedDirectory, file: FileKind, kind: DamageKind, random: Random) -> tuple[Bytes, str] | None:
    """The directory with a file of one kind damaged, and which one it was; none if there is none, or nothing changes."""
    paths = files_of(list(case.files), f"{DAMAGED.topic}-{DAMAGED.partition}", file)
    if not paths:
        return None
    path = random.choice(paths)
    others = Others(case.other.get(path, b""), case.older.get(path, b""))
    content = damaged(case.files[path], kind, random, others)
    if content == case.files[path]:
        return None
    files = {name: data for name, data in case.files.items() if name != path}
    return (files if content is None else {**files, path: content}), path


def start(files: Bytes, words: str) -> StartOutcome:
    """Start on a directory, as a broker does: each partition by itself. Raises: `StorageError`, if it does not start."""
    directory = open_directory(disk_with(files))
    partitions: dict[TopicPartition, PartitionFiles] = {}
    refused: dict[TopicPartition, str] = {}
    for key in BOTH:
        try:
            partitions[key] = directory.open_partition(*key, CONFIG, at_ms(0), IDS[key])
        except StorageError as error:
            refused[key] = str(error)
    directory.drop_unknown_lines(BOTH)
    return StartOutcome(words, directory, partitions, refused)


def batch_at(files: PartitionFiles, offset: int) -> BatchInLog:
    """The batch that a reader of an offset gets."""
    part = files.read(Offset(offset), files.log.end_offset, 1, at_least_one=True)
    data = part.bytes()
    header = header_at(data)
    return BatchInLog(header.base_offset, header.leader_epoch, header.last_offset_delta + 1, data[16 : header.size])
