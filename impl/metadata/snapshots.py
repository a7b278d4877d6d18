"""Snapshots of the metadata log: what the log says up to an offset, as records, in a file `OFFSET-EPOCH.checkpoint`.

A header and a footer, control records both, stand around the records: a file without a footer was cut off.

**Kafka:** `RecordsSnapshotWriter`, `RecordsSnapshotReader`, `Snapshots`.
"""

import re
import struct
from collections.abc import Collection, Iterator, Sequence

from kspec.impl.metadata.records import LogRecord, decode_record, encode_record
from kspec.impl.metadata.voters import (
    KnownVoters,
    VotersFound,
    version_in_batch,
    version_record,
    voters_in,
    voters_record,
)
from kspec.impl.records.batch import InvalidBatchError, headers, is_intact
from kspec.impl.records.record import RecordError, new_batch, records_of
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import DecodeError
from kspec.impl.wire.writing import unsigned_varint
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.values import Epoch, Offset, TimestampMs

BOOTSTRAP = SnapshotId(Offset(0), Epoch(0))
"""The snapshot of nothing, which names the voters of a new cluster. Nobody fetches it.

Kafka: `Snapshots.BOOTSTRAP_SNAPSHOT_ID`.
"""

NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
PARTIAL = ".part"
CONTROL = 0x20
LEADER_CHANGE, HEADER_TYPE, FOOTER_TYPE = 2, 3, 4
"""Kafka: `ControlRecordType.LEADER_CHANGE`, `SNAPSHOT_HEADER`, `SNAPSHOT_FOOTER`."""
RECORDS_OF_A_BATCH = 1_000

_KEY = struct.Struct(">hh")
_HEADER = struct.Struct(">hqB")
_FOOTER = struct.Struct(">hB")
_LEADER = struct.Struct(">hi")


def snapshot_name(snapshot: SnapshotId) -> str:
    """The name of a snapshot's file. **Kafka:** `Snapshots.filenameFromSnapshotId`."""
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


def snapshot_of(name: str) -> SnapshotId | None:
    """The snapshot with this name; none if it is not one's."""
    found = NAME.fullmatch(name)
    return None if found is None else SnapshotId(Offset(int(found[1])), Epoch(int(found[2])))


def leader_change(node: int, voters: Collection[int], granting: Collection[int]) -> tuple[bytes, bytes]:
    """Key and value of the control record with which a leader begins its epoch: it, all voters, those that voted for it.

    **Kafka:** `LeaderChangeMessage`, version 0.
    """
    return _KEY.pack(0, LEADER_CHANGE), _LEADER.pack(0, node) + _voters(voters) + _voters(granting) + b"\0"


def _voters(ids: Collection[int]) -> bytes:
    return unsigned_varint(len(ids) + 1) + b"".join(voter.to_bytes(4, "big") + b"\0" for voter in sorted(ids))


def to_bytes(
    records: Sequence[LogRecord],
    epoch: Epoch,
    now_ms: TimestampMs,
    voters: KnownVoters | None = None,
    kraft_version: int = 0,
) -> bytes:
    """The content of a snapshot, with the time (ms) of the last record in it, and the voters, if they are in the log.

    One of a broker has the `kraft_version`, and no voters.
    """
    values = [encode_record(record) for record in records]
    parts: list[bytes] = []

    def add(batch: list[tuple[int, bytes | None, bytes | None]], attributes: int = 0) -> None:
        offset = sum(header.record_count for part in parts for header in headers(part))
        parts.append(new_batch(batch, base_offset=offset, leader_epoch=epoch, attributes=attributes))

    version = (version_record(),) if voters or kraft_version else ()
    told = (*version, voters_record(voters)) if voters else version
    header = (_KEY.pack(0, HEADER_TYPE), _HEADER.pack(0, now_ms, 0))
    add([(now_ms, *record) for record in (header, *told)], CONTROL)
    for first in range(0, len(values), RECORDS_OF_A_BATCH):
        add([(now_ms, None, value) for value in values[first : first + RECORDS_OF_A_BATCH]])
    add([(now_ms, _KEY.pack(0, FOOTER_TYPE), _FOOTER.pack(0, 0))], CONTROL)
    return b"".join(parts)


def from_bytes(content: bytes, path: str) -> list[LogRecord]:
    """The records in a snapshot. Raises: `StorageError`, if it is damaged or cut off."""
    try:
        return list(_records(content, path))
    except (InvalidBatchError, RecordError, DecodeError, struct.error) as error:
        raise StorageError(f"{path} is damaged: {error}") from error


def voters_of_snapshot(content: bytes, path: str) -> KnownVoters:
    """The voters in a snapshot; none with `kraft.version` 0. Raises: `StorageError`, if it is damaged."""
    found: Sequence[VotersFound]
    try:
        found = list(voters_in(memoryview(content)))
    except (InvalidBatchError, RecordError, DecodeError, struct.error) as error:
        raise StorageError(f"{path} is damaged: {error}") from error
    return found[-1].voters if found else {}


def version_of_snapshot(content: bytes) -> int:
    """The `kraft.version` in a snapshot that is not damaged."""
    view = memoryview(content)
    found = [version_in_batch(view, header) for header in headers(view) if header.control]
    return next((one for one in found if one is not None), 0)


def _records(content: bytes, path: str) -> Iterator[LogRecord]:
    view = memoryview(content)
    kind = 0
    for header in headers(view):
        batch = view[header.position : header.position + header.size]
        if not is_intact(batch, header._replace(position=0)):
            raise StorageError(f"{path} is damaged: the checksum at byte {header.position} is wrong")
        for record in records_of(batch):
            if header.control:
                kind = _KEY.unpack(record.key or b"")[1]
            else:
                yield decode_record(memoryview(record.value or b""))
    if kind != FOOTER_TYPE:
        raise StorageError(f"{path} is damaged: it should end with a footer")
