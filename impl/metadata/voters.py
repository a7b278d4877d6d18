"""Voter sets as records of the metadata log have them (KIP-853): each voter with its directory, and where it is reached.

**Kafka:** `VotersRecord`, `KRaftVersionRecord`, `VoterSet`.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from kspec.impl.records.batch import BatchHeader, headers
from kspec.impl.records.record import records_of
from kspec.impl.wire.reading import read_unsigned_varint
from kspec.impl.wire.values import DecodeError
from kspec.impl.wire.writing import unsigned_varint
from kspec.spec.values import BrokerId, DirectoryId, Offset, ReplicaKey

KRAFT_VERSION, KRAFT_VOTERS = 5, 6
"""Kafka: `ControlRecordType.KRAFT_VERSION`, `KRAFT_VOTERS`."""

RECONFIGURABLE = 1
"""The level of `kraft.version` that is written here: voters are in the log, and may be changed."""

_KEY, _SHORT, _INT, _PORT = struct.Struct(">hh"), struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">H")
_NO_TAGS = b"\0"


class Endpoint(NamedTuple):
    """The listener of a controller: its name, and where it is reached."""

    listener: str
    host: str
    port: int


KnownVoters: TypeAlias = Mapping[ReplicaKey, tuple[Endpoint, ...]]
"""Voters, and where each is reached: its first listener is the one that others use."""


class VotersFound(NamedTuple):
    """A record of voters, and its offset."""

    offset: Offset
    voters: KnownVoters


ControlRecord: TypeAlias = tuple[bytes, bytes]
"""Key and value of a control record."""


def version_record() -> ControlRecord:
    """The record of `kraft.version`. **Kafka:** `KRaftVersionRecord`, version 0."""
    return _KEY.pack(0, KRAFT_VERSION), _SHORT.pack(0) + _SHORT.pack(RECONFIGURABLE) + _NO_TAGS


def voters_record(voters: KnownVoters) -> ControlRecord:
    """The record of voters. **Kafka:** `VotersRecord`, version 0."""
    parts = [_SHORT.pack(0), unsigned_varint(len(voters) + 1)]
    for voter, endpoints in sorted(voters.items()):
        parts += [_INT.pack(voter.id), voter.directory, unsigned_varint(len(endpoints) + 1)]
        for one in endpoints:
            parts += [_text(one.listener), _text(one.host), _PORT.pack(one.port), _NO_TAGS]
        supported = _SHORT.pack(0) + _SHORT.pack(RECONFIGURABLE) + _NO_TAGS
        parts += [supported, _NO_TAGS]
    return _KEY.pack(0, KRAFT_VOTERS), b"".join(parts) + _NO_TAGS


def _text(text: str) -> bytes:
    content = text.encode()
    return unsigned_varint(len(content) + 1) + content


class _Reader:
    """The fields of a record, one after the other. Raises: `DecodeError`."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._at = 0

    def bytes(self, size: int) -> bytes:
        """So many bytes."""
        found = bytes(self._content[self._at : self._at + size])
        if len(found) < size:
            raise DecodeError("a record of voters is cut off")
        self._at += size
        return found

    def number(self, form: struct.Struct) -> int:
        """A number of fixed length."""
        found: int = form.unpack(self.bytes(form.size))[0]
        return found

    def level(self) -> int:
        """The level in a record of `kraft.version`."""
        self.number(_SHORT)
        return self.number(_SHORT)

    def count(self) -> int:
        """The length of a text or an array."""
        number, self._at = read_unsigned_varint(self._content, self._at)
        return number - 1

    def text(self) -> str:
        """A text."""
        return self.bytes(self.count()).decode()

    def tags(self) -> None:
        """Pass over tagged fields, which nobody knows yet."""
        for _ in range(self.count() + 1):
            self.count()
            self.bytes(self.count() + 1)


def voters_in_record(value: bytes) -> dict[ReplicaKey, tuple[Endpoint, ...]]:
    """The voters of a record. Raises: `DecodeError`."""
    reader = _Reader(value)
    reader.number(_SHORT)
    found: dict[ReplicaKey, tuple[Endpoint, ...]] = {}
    for _ in range(reader.count()):
        node, directory = reader.number(_INT), reader.bytes(16)
        endpoints = []
        for _ in range(reader.count()):
            endpoints.append(Endpoint(reader.text(), reader.text(), reader.number(_PORT)))
            reader.tags()
        reader.bytes(2 * _SHORT.size)
        reader.tags()
        reader.tags()
        found[ReplicaKey(BrokerId(node), DirectoryId(directory))] = tuple(endpoints)
    return found


def version_in_batch(content: memoryview, header: BatchHeader) -> int | None:
    """The `kraft.version` that a control batch sets, if it does. Raises: `DecodeError`, `RecordError`."""
    for record in records_of(content[header.position : header.position + header.size]):
        if record.key is not None and _KEY.unpack(record.key[: _KEY.size])[1] == KRAFT_VERSION:
            return _Reader(record.value or b"").level()
    return None


def voters_in(content: memoryview) -> Iterator[VotersFound]:
    """The records of voters among batches, with their offsets. Raises: `DecodeError`, `InvalidBatchError`, `RecordError`."""
    for header in headers(content):
        if header.control:
            yield from voters_in_batch(content, header)


def voters_in_batch(content: memoryview, header: BatchHeader) -> Iterator[VotersFound]:
    """The records of voters in a control batch. Raises: `DecodeError`, `RecordError`."""
    for record in records_of(content[header.position : header.position + header.size]):
        if record.key is not None and _KEY.unpack(record.key[: _KEY.size])[1] == KRAFT_VOTERS:
            yield VotersFound(Offset(record.offset), voters_in_record(record.value or b""))
