"""`kafka-dump-log` for `.log`, `.index`, `.timeindex`, `.txnindex`, `.snapshot` and KRaft's `.checkpoint` files.

**Kafka:** `org.apache.kafka.tools.DumpLogSegments`. **Leaves out:** decoders for Kafka's own topics, batches
before format 2, and the fields of control records other than the ends of transactions.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from kspec.impl.records.batch import HEADER_SIZE, LENGTH_END, MAGIC, BatchHeader, header_at, is_intact
from kspec.impl.records.compression import NAMES, CompressionError
from kspec.impl.records.record import RecordError, StoredRecord, records_of
from kspec.impl.storage.disk import StorageError
from kspec.impl.storage.index import ABORTED
from kspec.impl.storage.producer_state import SnapshotError, from_bytes

LEAST_SIZE = 14
"""Kafka: `LegacyRecord.RECORD_OVERHEAD_V0`."""

ALL_BYTES = 2**31 - 1

CONTROL_TYPES = ("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS")

_CONTROL_KEY = Struct(">hh")
_END_OF_TRANSACTION = Struct(">hi")
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class Options(NamedTuple):
    """The tool's flags, by their names."""

    print_data_log: bool = False
    deep_iteration: bool = False
    index_sanity_check: bool = False
    verify_index_only: bool = False
    skip_record_metadata: bool = False
    max_bytes: int = ALL_BYTES


class Dump:
    """A run of the tool. `lines` is for standard output; `complaints` goes to standard error after it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._mismatches: dict[str, dict[int, int]] = {}
        self._times: dict[str, list[tuple[int, int]]] = {}
        self._order: dict[str, list[tuple[int, int]]] = {}
        self._not_found: dict[str, list[tuple[int, int]]] = {}
        self._gaps: dict[str, dict[int, int]] = {}
        self._remarks: list[str] = []

    def lines(self, file: str) -> Iterator[str]:
        """The lines about one file.

        Raises: `StorageError`, if it or a file beside it that is needed cannot be read.
        """
        path = Path(file)
        yield f"Dumping {file}"
        dumps = {
            ".log": self._log,
            ".checkpoint": self._log,
            ".index": self._offset_index,
            ".timeindex": self._time_index,
            ".txnindex": self._aborted,
            ".snapshot": self._snapshot,
        }
        if path.suffix not in dumps:
            self._remarks.append(f"Ignoring unknown file {file}")
            return
        try:
            yield from dumps[path.suffix](path)
        except OSError as error:
            raise StorageError(f"cannot read {error.filename or file}: {error.strerror}") from error

    @property
    def complaints(self) -> list[str]:
        """The faults of the files, as the tool says them at its end."""
        lines = list(self._remarks)
        for file, pairs in self._mismatches.items():
            lines.append(f"Mismatches in :{file}")
            lines += [f"  Index offset: {one}, log offset: {other}" for one, other in sorted(pairs.items(), reverse=True)]
        for file, entries in self._times.items():
            lines.append(f"Found timestamp mismatch in :{file}")
            lines += [f"  Index timestamp: {one}, log timestamp: {other}" for one, other in entries]
        for file, entries in self._order.items():
            lines.append(f"Found out of order timestamp in :{file}")
            lines += [f"  Index timestamp: {one}, Previously indexed timestamp: {other}" for one, other in entries]
        for file, entries in self._not_found.items():
            lines.append(f"The following indexed offsets are not found in :{file}")
            lines += [f"Indexed offset: {one}, found log offset: {other}" for one, other in entries]
        for file, pairs in self._gaps.items():
            lines.append(f"Non-consecutive offsets in {file}")
            lines += [f"  {one} is followed by {other}" for one, other in sorted(pairs.items())]
        return lines

    # ---- logs

    def _log(self, path: Path) -> Iterator[str]:
        yield from _title(path)
        data = path.read_bytes()[: self.options.max_bytes]
        valid, last = 0, -1
        deep = self.options.deep_iteration or self.options.print_data_log
        for header in _headers(data, path):
            batch = memoryview(data)[header.position : header.position + header.size]
            yield _batch_line(header, is_intact(data, header))
            for record in _records(batch, path) if deep else ():
                if record.offset != last + 1:
                    self._gaps.setdefault(str(path.absolute()), {})[last] = record.offset
                last = record.offset
                yield self._record_line(header, record)
            valid += header.size
        if valid < len(data) and self.options.max_bytes == ALL_BYTES:
            yield f"Found {len(data) - valid} invalid bytes at the end of {path.name}"

    def _record_line(self, header: BatchHeader, record: StoredRecord) -> str:
        parts = [] if self.options.skip_record_metadata else [_metadata(header, record)]
        prefix = "| " if self.options.skip_record_metadata else " "
        if self.options.print_data_log and not header.control:
            for name, value in (("key", record.key), ("payload", record.value)):
                if value is not None:
                    parts.append(f"{prefix}{name}: {value.decode('utf-8', 'replace')}")
                    prefix = " "
        return "".join(parts)

    # ---- indexes

    def _offset_index(self, path: Path) -> Iterator[str]:
        base = _base_offset(path)
        log, index = path.with_suffix(".log").read_bytes(), path.read_bytes()
        entries = [_OFFSET_ENTRY.unpack_from(index, place) for place in range(0, len(index) - 7, 8)]
        if not entries:
            yield f"{path} is empty."
            return
        if self.options.index_sanity_check:
            yield from _sanity(path, index, 8, entries[-1][0] >= 0)
            return
        for number, (relative, position) in enumerate(entries):
            if relative == 0 and number > 0:
                return
            offset = base + relative
            found = next((header.last_offset for header in _headers(log, path, position)), None)
            if found != offset:
                self._mismatches.setdefault(str(path.absolute()), {})[offset] = -1 if found is None else found
            if not self.options.verify_index_only:
                yield f"offset: {offset} position: {position}"

    def _time_index(self, path: Path) -> Iterator[str]:
        base = _base_offset(path)
        log, index = path.with_suffix(".log").read_bytes(), path.read_bytes()
        offsets = path.with_suffix(".index").read_bytes()
        positions = [_OFFSET_ENTRY.unpack_from(offsets, place) for place in range(0, len(offsets) - 7, 8)]
        entries = [_TIME_ENTRY.unpack_from(index, place) for place in range(0, len(index) - 11, 12)]
        if self.options.index_sanity_check:
            yield from _sanity(path, index, 12, not entries or (entries[-1][0] >= entries[0][0] and entries[-1][1] >= 0))
            return
        before = -1
        for number, (timestamp, relative) in enumerate(entries):
            if relative == 0 and number > 0:
                return
            position = max((place for known, place in positions if known <= relative), default=0)
            self._check_time(path, log, position, (timestamp, base + relative, before))
            if not self.options.verify_index_only:
                yield f"timestamp: {timestamp} offset: {base + relative}"
            before = timestamp

    def _check_time(self, path: Path, log: bytes, position: int, entry: tuple[int, int, int]) -> None:
        timestamp, offset, before = entry
        found = next((header for header in _headers(log, path, position) if header.last_offset >= offset), None)
        name = str(path.absolute())
        if found is None or found.last_offset != offset:
            self._not_found.setdefault(name, []).append((offset, -1 if found is None else found.last_offset))
            return
        batch = memoryview(log)[found.position : found.position + found.size]
        newest = max((record.timestamp for record in _records(batch, path)), default=-1)
        if newest != timestamp:
            self._times.setdefault(name, []).append((timestamp, newest))
        if before >= timestamp:
            self._order.setdefault(name, []).append((timestamp, before))

    # ---- aborted transactions

    def _aborted(self, path: Path) -> Iterator[str]:
        _base_offset(path)
        content = path.read_bytes()
        whole = len(content) - len(content) % ABORTED.size
        for version, producer_id, first, last, stable in ABORTED.iter_unpack(content[:whole]):
            yield (
                f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last}"
                f" lastStableOffset: {stable}"
            )
        if whole < len(content):
            raise StorageError(f"{path} is corrupt: its length is no multiple of {ABORTED.size}")

    # ---- snapshots of producers

    def _snapshot(self, path: Path) -> Iterator[str]:
        try:
            states = from_bytes(path.read_bytes())
        except SnapshotError as error:
            self._remarks.append(f"{path} is no snapshot of producers: {error}")
            return
        for state in states:
            line = (
                f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch}"
                f" coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {_optional(state.transaction_start)}"
                f" lastTimestamp: {state.timestamp}"
            )
            if state.last_offset >= 0:
                line += (
                    f" firstSequence: {state.as_batch().first_sequence} lastSequence: {state.last_sequence}"
                    f" lastOffset: {state.last_offset} offsetDelta: {state.offset_delta} timestamp: {state.timestamp}"
                )
            yield line


def _title(path: Path) -> Iterator[str]:
    """The facts in the name of a log file or of a snapshot of the metadata."""
    if path.suffix == ".log":
        yield f"Log starting offset: {_base_offset(path)}"
    elif path.name == "bootstrap.checkpoint":
        yield "KRaft bootstrap snapshot"
    else:
        found = re.fullmatch(r"(\d{20})-(\d{10})", path.stem)
        if found is None:
            raise StorageError(f"{path} should be named OFFSET-EPOCH.checkpoint, with 20 and 10 digits")
        yield f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def _base_offset(path: Path) -> int:
    stem = path.name.split(".", 1)[0]
    if not stem.isdecimal():
        raise StorageError(f"{path} should be named by the offset at which it starts, as {0:020d}{path.suffix}")
    return int(stem)


def _headers(data: bytes, path: Path, position: int = 0) -> Iterator[BatchHeader]:
    """The batches from a position on, as far as they are whole. **Kafka:** `FileLogInputStream.nextBatch`."""
    while position + LENGTH_END + 5 <= len(data):
        length = int.from_bytes(data[position + 8 : position + LENGTH_END], "big", signed=True)
        if length < LEAST_SIZE:
            raise StorageError(f"{path}: a batch of {length} bytes at byte {position}; the least is {LEAST_SIZE}")
        if position + LENGTH_END + length > len(data):
            return
        if data[position + 16] != MAGIC or length + LENGTH_END < HEADER_SIZE:
            raise StorageError(f"{path}: the batch at byte {position} has format {data[position + 16]}, not {MAGIC}")
        yield header_at(data, position)
        position += LENGTH_END + length


def _records(batch: memoryview, path: Path) -> Iterator[StoredRecord]:
    try:
        yield from records_of(batch)
    except (RecordError, CompressionError) as error:
        raise StorageError(f"{path}: the batch at offset {header_at(batch).base_offset}: {error}") from error


def _sequence(header: BatchHeader, delta: int) -> int:
    return -1 if header.base_sequence < 0 else (header.base_sequence + delta) % 2**31


def _optional(number: int | None) -> str:
    return "OptionalLong.empty" if number is None or number < 0 else f"OptionalLong[{number}]"


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _kind_of_time(header: BatchHeader) -> str:
    return "LogAppendTime" if header.log_append_time else "CreateTime"


def _batch_line(header: BatchHeader, intact: bool) -> str:
    codec = NAMES[header.compression] if header.compression < len(NAMES) else str(header.compression)
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {_sequence(header, header.last_offset_delta)}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_word(header.transactional)}"
        f" isControl: {_word(header.control)} deleteHorizonMs: {_optional(header.delete_horizon)}"
        f" position: {header.position} {_kind_of_time(header)}: {header.max_timestamp} size: {header.size}"
        f" magic: {header.magic} compresscodec: {codec} crc: {header.crc} isvalid: {_word(intact)}"
    )


def _metadata(header: BatchHeader, record: StoredRecord) -> str:
    key_size, value_size = (-1 if one is None else len(one) for one in (record.key, record.value))
    line = (
        f"| offset: {record.offset} {_kind_of_time(header)}: {record.timestamp} keySize: {key_size} valueSize: {value_size}"
        f" sequence: {_sequence(header, record.offset - header.base_offset)}"
        f" headerKeys: [{','.join(name for name, _ in record.headers)}]"
    )
    return line + (_control(record) if header.control else "")


def _control(record: StoredRecord) -> str:
    number = _CONTROL_KEY.unpack_from(record.key or bytes(4))[1]
    name = CONTROL_TYPES[number] if 0 <= number < len(CONTROL_TYPES) else "UNKNOWN"
    if name in ("ABORT", "COMMIT") and record.value is not None and len(record.value) >= _END_OF_TRANSACTION.size:
        return f" endTxnMarker: {name} coordinatorEpoch: {_END_OF_TRANSACTION.unpack_from(record.value)[1]}"
    return f" controlType: {name}({number})"


def _sanity(path: Path, index: bytes, size: int, in_order: bool) -> Iterator[str]:
    """**Kafka:** `AbstractIndex.sanityCheck`, which a start asks."""
    if len(index) % size or not in_order:
        wrong = f"its length is no multiple of {size}" if in_order else "its last entry lies before its first one"
        raise StorageError(f"{path} is corrupt: {wrong}")
    yield f"{path} passed sanity check."
