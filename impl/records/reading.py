"""The content of a batch, for the rules of `spec.broker.clients.records`: each record is looked at, and none is kept.

Compiled code reads (`compiled`), once it is loaded. That takes most of a second and more than 100 MiB, so a broker has it
done in a thread when there is something to read (`load_when_worth_it`). Until then, and where it cannot be loaded, `plain`
reads.
"""

from collections.abc import Iterator
from importlib import import_module
from threading import Lock, Thread
from types import ModuleType
from typing import Any

from kspec.impl.records.batch import COMPRESSION, HEADER_SIZE, BatchHeader, Buffer
from kspec.impl.records.compression import CompressionError
from kspec.impl.records.pieces import decompress, pieces
from kspec.impl.records.plain import NO_TIMESTAMP, MalformedError, OverlongError, RecordFacts, skim, thorough
from kspec.spec.log.found_records import FoundRecord, ReaderEnding, RecordsFound

MOST_FACTS = 1 << 18
"""The most records of a batch that are given one by one. Only a batch that becomes far larger than it was sent has more."""

PLAIN_BYTES = 1 << 18
"""A batch of more bytes waits for the compiled reader."""

LEAST_RECORD = 7
"""Bytes of the shortest record: each of its fields has one."""

WORTH_IT_BYTES = 1 << 16
"""After so many bytes of batches a broker has the compiled reader loaded."""

UNREADABLE, MALFORMED = RecordsFound(ReaderEnding.UNREADABLE), RecordsFound(ReaderEnding.MALFORMED)


class CompiledReader:
    """The compiled reader: loaded once, and none where that fails."""

    def __init__(self) -> None:
        self.module: ModuleType | None = None
        self.bytes_before: int | None = None
        """Bytes that are read plainly before it is loaded aside; None if it is not, or no more."""
        self._failed = False
        self._lock = Lock()

    def load(self) -> ModuleType | None:
        """The compiled reader, if there can be one."""
        with self._lock:
            if self.module is None and not self._failed:
                try:
                    self.module = import_module("kspec.impl.records.compiled")
                except (ImportError, RuntimeError, OSError):  # no Numba for this machine
                    self._failed = True
        return self.module

    def for_batch(self, size: int, records: int) -> ModuleType | None:
        """The compiled reader for a batch of so many bytes and records, if it is there or worth waiting for.

        Small records that are compressed well count as if they were not.
        """
        if self.module is not None or size > PLAIN_BYTES:
            return self.module or self.load()
        if self.bytes_before is not None:
            self.bytes_before -= max(size, records * LEAST_RECORD)
            if self.bytes_before < 0:
                self.bytes_before = None
                Thread(target=self.load, name="load-reader", daemon=True).start()
        return None


class AbsentReader(CompiledReader):
    """The substitute where no compiled reader can be loaded."""

    def load(self) -> ModuleType | None:
        """None."""
        return None


_compiled = CompiledReader()


def is_loaded() -> bool:
    """Whether the compiled reader is there."""
    return _compiled.module is not None


def load() -> None:
    """Load the compiled reader."""
    _compiled.load()


def load_when_worth_it() -> None:
    """Have the compiled reader loaded in a thread, once `WORTH_IT_BYTES` have been read."""
    _compiled.bytes_before = WORTH_IT_BYTES


def read_records(batch: Buffer, header: BatchHeader, skims: bool, most: int | None = None) -> RecordsFound:
    """The content of a batch. `skims`: whether what records hold is passed over, as `is_skimmed` says.

    Raises: `MoreBytesError`, if compressed records have more than `most` bytes.

    **Kafka:** the iterators of `DefaultRecordBatch`, as `LogValidator` uses them.
    """
    compiled = _compiled.for_batch(len(batch), header.record_count)
    if compiled is None:
        return summed(header, _plainly(batch, header, skims, most))
    return _read(compiled, batch, header, skims, compiled.NO_FACTS, most)


def records_in(batch: Buffer, header: BatchHeader, skims: bool) -> Iterator[FoundRecord]:
    """The records of a batch that `read_records` has read to its end, one by one; at most `MOST_FACTS`."""
    facts: Iterator[RecordFacts]
    compiled = _compiled.module
    if compiled is None:
        facts = (one for one, _ in zip(_plainly(batch, header, skims), range(MOST_FACTS), strict=False))
    else:
        table = compiled.zeros(3 * min(header.record_count, MOST_FACTS))
        _read(compiled, batch, header, skims, table)
        facts = (RecordFacts(one[0], one[1], bool(one[2])) for one in table.reshape(-1, 3).tolist())
    for place, (offset_delta, timestamp, has_key, _) in enumerate(facts):
        yield FoundRecord(place, header.base_offset + offset_delta, timestamp, has_key)


def record_places(batches: bytes) -> list[list[int]] | None:
    """The place of each record in whole batches; none where only `records_of` can tell.

    Of each: the offset behind it, the place and size of its key, and those of its value; a size of -1 is that of what is
    absent. None is given for batches that are compressed, of a transaction, markers or damaged, for records with headers,
    and without a compiled reader.
    """
    compiled = _compiled.load()
    if compiled is None:
        return None
    table = compiled.zeros((len(batches) // LEAST_RECORD, compiled.PLACE_FIELDS))
    count = compiled.places(compiled.array_of(batches), table)
    found: list[list[int]] = table[:count].tolist()
    return found if count >= 0 else None


def _body(batch: Buffer, header: BatchHeader) -> memoryview:
    return memoryview(batch)[HEADER_SIZE : header.size].toreadonly()


# ---- compiled


def _read(
    compiled: Any, batch: Buffer, header: BatchHeader, skims: bool, facts: Any, most: int | None = None
) -> RecordsFound:
    state = compiled.START.copy()
    state[compiled.COUNT] = header.record_count
    state[compiled.BASE_TIME] = header.base_timestamp
    try:
        if skims:
            _skim(compiled, batch, header, state, facts, most)
        else:
            body: Buffer = _body(batch, header)
            if header.attributes & COMPRESSION:
                body = decompress(header.compression, body, most)
            compiled.thorough(compiled.array_of(body), state, facts)
    except CompressionError:
        return UNREADABLE
    ending, *found = state[compiled.ENDING : compiled.FOUND_END].tolist()
    if ending == compiled.COMPLETE:
        return RecordsFound(ReaderEnding.COMPLETE, *found)
    return UNREADABLE if ending == compiled.OVERLONG and not header.compression else MALFORMED


def _skim(compiled: Any, batch: Buffer, header: BatchHeader, state: Any, facts: Any, most: int | None) -> None:
    """Read piece by piece; a piece behind the last record makes the whole malformed."""
    for piece in pieces(header.compression, _body(batch, header), most):
        compiled.skim(compiled.array_of(piece), state, facts)
        if state[compiled.ENDING] == compiled.MALFORMED:
            return


# ---- plainly


def _plainly(batch: Buffer, header: BatchHeader, skims: bool, most: int | None = None) -> Iterator[RecordFacts]:
    body = _body(batch, header)
    if skims:
        yield from skim(pieces(header.compression, body, most), header.record_count, header.base_timestamp)
        return
    yield from thorough(decompress(header.compression, body, most), header.record_count, header.base_timestamp)


def summed(header: BatchHeader, records: Iterator[RecordFacts]) -> RecordsFound:
    """All records of a batch together."""
    without_key = without_time = count = longest = 0
    shortest: int | None = None
    oldest = newest = NO_TIMESTAMP
    consecutive = True
    try:
        for offset_delta, timestamp, has_key, length in records:
            shortest = length if shortest is None else min(shortest, length)
            longest = length if count == 0 else max(longest, length)
            without_key += not has_key
            if timestamp == NO_TIMESTAMP:
                without_time += 1
            elif oldest == NO_TIMESTAMP:
                oldest = newest = timestamp
            else:
                oldest, newest = min(oldest, timestamp), max(newest, timestamp)
            consecutive = consecutive and offset_delta == count
            count += 1
    except CompressionError:
        return UNREADABLE
    except OverlongError:
        return MALFORMED if header.compression else UNREADABLE
    except MalformedError:
        return MALFORMED
    counts = (count, without_key, without_time)
    return RecordsFound(ReaderEnding.COMPLETE, *counts, oldest, newest, consecutive, shortest or 0, longest)
