"""Damage to files of a log directory while the broker is down, as by a disk, a file system or an operator's mistake.

Each kind of damage is a function of bytes, so that it is the same on a simulated disk and on files.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from random import Random
from typing import NamedTuple

from kspec.impl.storage.small_files import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)


class DamageKind(Enum):
    """A kind of damage."""

    CUT = "bytes at the end are gone"
    CUT_ONE = "the last byte is gone"
    ZERO = "some bytes are zeros"
    FLIP = "one bit is another one"
    RANDOM = "some bytes are random"
    EMPTY = "it has no bytes"
    DELETE = "it is gone"
    DOUBLE = "its content is there twice"
    APPEND = "random bytes follow"
    SWAP = "it is another replica's"
    STALE = "it is as it was some time before"


class FileKind(Enum):
    """A kind of file: what its name ends with, or is."""

    ACTIVE_SEGMENT = ".log of the segment that is appended to"
    OLDER_SEGMENT = ".log of another segment"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    SNAPSHOT = ".snapshot"
    EPOCHS = LEADER_EPOCHS
    OWNER = PARTITION_METADATA
    HIGH_WATERMARKS = HIGH_WATERMARKS
    RECOVERY_POINTS = RECOVERY_POINTS
    LOG_STARTS = LOG_STARTS
    CLEANED = CLEANED_OFFSETS
    CLEAN_STOP = CLEAN_SHUTDOWN
    META = META_PROPERTIES


OF_PARTITION = (
    FileKind.ACTIVE_SEGMENT,
    FileKind.OLDER_SEGMENT,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.SNAPSHOT,
    FileKind.EPOCHS,
    FileKind.OWNER,
)
"""The kinds of files in a partition's folder."""

MOST_CHANGED = 64
"""The largest number of changed bytes."""


class Others(NamedTuple):
    """Files that may come in the place of a file: another replica's, and an older one; empty if there is none."""

    other: bytes = b""
    older: bytes = b""


def _stretch(content: bytes, random: Random) -> tuple[int, int]:
    """Some bytes within the content: the first and the end."""
    length = random.randint(1, min(MOST_CHANGED, len(content)))
    first = random.randrange(len(content) - length + 1)
    return first, first + length


def _with(content: bytes, random: Random, new: Callable[[int], bytes]) -> bytes:
    first, end = _stretch(content, random)
    return content[:first] + new(end - first) + content[end:]


def _flipped(content: bytes, random: Random) -> bytes:
    place = random.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]


NONE = Others()


def damaged(content: bytes, kind: DamageKind, random: Random, others: Others = NONE) -> bytes | None:
    """The content of a file after it was damaged; none if the file is gone. What is empty already stays so."""
    if kind == DamageKind.DELETE:
        return None
    if kind in (DamageKind.SWAP, DamageKind.STALE):
        return others.other if kind == DamageKind.SWAP else others.older
    if kind == DamageKind.APPEND:
        return content + random.randbytes(random.randint(1, MOST_CHANGED))
    if not content or kind == DamageKind.EMPTY:
        return b""
    made: Mapping[DamageKind, Callable[[], bytes]] = {
        DamageKind.CUT: lambda: content[: random.randrange(len(content))],
        DamageKind.CUT_ONE: lambda: content[:-1],
        DamageKind.ZERO: lambda: _with(content, random, bytes),
        DamageKind.FLIP: lambda: _flipped(content, random),
        DamageKind.RANDOM: lambda: _with(content, random, random.randbytes),
        DamageKind.DOUBLE: lambda: content * 2,
    }
    return made[kind]()


def files_of(names: list[str], folder: str, file: FileKind) -> list[str]:
    """The paths of one kind among those of a log directory; those of a partition in this folder of it."""
    within = sorted(name for name in names if name.rpartition("/")[0] == folder)
    if file not in OF_PARTITION:
        return [name for name in names if name == file.value]
    if file in (FileKind.ACTIVE_SEGMENT, FileKind.OLDER_SEGMENT):
        segments = [name for name in within if name.endswith(".log")]
        return segments[-1:] if file == FileKind.ACTIVE_SEGMENT else segments[:-1]
    return [name for name in within if name.endswith(file.value)]


def damage_folder(data: Path, partition: str, file: FileKind, kind: DamageKind, random: Random) -> str | None:
    """Damage a file of a broker that is down; what was done, in words, or none if there is no such file."""
    names = [str(one.relative_to(data)) for one in data.rglob("*") if one.is_file()]
    found = files_of(names, partition, file)
    if not found:
        return None
    name = random.choice(found)
    content = damaged((data / name).read_bytes(), kind, random)
    if content is None:
        (data / name).unlink()
    else:
        (data / name).write_bytes(content)
    return f"{name}: {kind.value}"
