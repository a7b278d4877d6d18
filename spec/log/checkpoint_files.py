"""The text of Kafka's checkpoint files: a version, a count, and that many lines.

Such a file is replaced as a whole: the new one is written beside it, flushed to the disk, and renamed. A file of no bytes is
an empty checkpoint. Any other text that is not of the format makes the log directory unusable.
"""

from typing import NamedTuple

from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.values import Epoch, Error, Offset

VERSION = "0"


class OffsetEntry(NamedTuple):
    """One partition's offset in a checkpoint of a whole log directory. Kafka: a line of `OffsetCheckpointFile`."""

    topic: str
    partition: int
    offset: Offset


class Lines(NamedTuple):
    """The content of a checkpoint file: an error, or its entries, each split at white space."""

    error: Error
    entries: tuple[tuple[str, ...], ...] = ()


class Epochs(NamedTuple):
    """The content of `leader-epoch-checkpoint`."""

    error: Error
    history: EpochHistory = EpochHistory()


class Offsets(NamedTuple):
    """The content of one of the three files of offsets, in order of topic and partition."""

    error: Error
    entries: tuple[OffsetEntry, ...] = ()


UNUSABLE = Lines(Error.KAFKA_STORAGE_ERROR)


def to_text(entries: tuple[tuple[object, ...], ...]) -> str:
    """The text of a checkpoint with these entries. **Kafka:** `CheckpointFile.write`."""
    lines = [VERSION, str(len(entries)), *(" ".join(str(field) for field in entry) for entry in entries)]
    return "".join(f"{line}\n" for line in lines)


def from_text(text: str, fields: int) -> Lines:
    """The entries of a checkpoint, each with the given number of fields.

    A version alone counts as empty, too.

    Errors: `KAFKA_STORAGE_ERROR` for another version, a line that is no entry, or a number of entries that is not the
    announced one.

    **Kafka:** `CheckpointFile.read`.
    """
    lines = text.splitlines()
    if not lines or lines == [VERSION]:
        return Lines(Error.NONE)
    if lines[0] != VERSION or not _is_number(lines[1], LARGEST_EPOCH):
        return UNUSABLE
    entries = tuple(tuple(line.split()) for line in lines[2:])
    right = len(entries) == int(lines[1]) and all(len(entry) == fields for entry in entries)
    return Lines(Error.NONE, entries) if right else UNUSABLE


MOST_DIGITS, LARGEST, LARGEST_EPOCH = 19, 2**63 - 1, 2**31 - 1
"""An offset has eight bytes, an epoch and the number of a partition have four."""


def _is_number(text: str, largest: int = LARGEST) -> bool:
    """Whether a text is a number that Java reads as an `int` or a `long`."""
    digits = text.removeprefix("-")
    is_one = digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS
    return is_one and -largest - 1 <= int(text) <= largest


def epochs_to_text(history: EpochHistory) -> str:
    """The text of `leader-epoch-checkpoint`: epoch and start offset a line. **Kafka:** `LeaderEpochCheckpointFile`."""
    return to_text(history.pairs)


def epochs_from_text(text: str) -> Epochs:
    """The epoch history that `leader-epoch-checkpoint` holds, entry assigned after entry.

    Errors: `KAFKA_STORAGE_ERROR`.

    **Kafka:** `LeaderEpochCheckpointFile.read`, `LeaderEpochFileCache`.
    """
    lines = from_text(text, fields=2)
    right = all(_is_number(epoch, LARGEST_EPOCH) and _is_number(offset) for epoch, offset in lines.entries)
    if lines.error != Error.NONE or not right or any(field.startswith("-") for entry in lines.entries for field in entry):
        return Epochs(Error.KAFKA_STORAGE_ERROR)
    history = EpochHistory()
    for entry in (EpochEntry(Epoch(int(epoch)), Offset(int(offset))) for epoch, offset in lines.entries):
        history = history.assign(entry.leader_epoch, entry.start_offset)
    return Epochs(Error.NONE, history)


def offsets_to_text(entries: tuple[OffsetEntry, ...]) -> str:
    """The text of a file of offsets: topic, partition and offset a line.

    The files are `replication-offset-checkpoint` (high watermarks), `recovery-point-offset-checkpoint` and
    `log-start-offset-checkpoint`.

    **Kafka:** `OffsetCheckpointFile`.
    """
    return to_text(tuple(sorted(entries)))


def offsets_from_text(text: str) -> Offsets:
    """The entries of a file of offsets; the last one of a partition counts. Errors: `KAFKA_STORAGE_ERROR`.

    **Kafka:** `OffsetCheckpointFile.read`.
    """
    lines = from_text(text, fields=3)
    right = all(_is_number(index, LARGEST_EPOCH) and _is_number(offset) for _, index, offset in lines.entries)
    if lines.error != Error.NONE or not right:
        return Offsets(Error.KAFKA_STORAGE_ERROR)
    last = {(topic, int(partition)): Offset(int(offset)) for topic, partition, offset in lines.entries}
    return Offsets(Error.NONE, tuple(sorted(OffsetEntry(*key, offset) for key, offset in last.items())))


def offset_of(offsets: Offsets, topic: str, partition: int) -> Offset:
    """A partition's offset in a file; 0 if the file does not list it, or is unusable and may be ignored.

    The files of recovery points and log starts may be ignored. **Kafka:** `LogManager.loadLogs`.
    """
    found = [entry.offset for entry in offsets.entries if (entry.topic, entry.partition) == (topic, partition)]
    return found[0] if found else Offset(0)
