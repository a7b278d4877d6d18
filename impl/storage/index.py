"""The two sparse indexes of a segment: offset to position, and timestamp to offset. And that of aborted transactions.

Entries are kept in memory until there are many, and then appended to the file. The rest is written when the segment is
rolled, flushed or closed: after an unclean stop the indexes of the last segments are made anew from the batches. Kafka
preallocates and maps these files, and trims them when it closes them; it takes files that were never longer, too.
"""

import logging
from collections.abc import Callable, Iterable
from struct import Struct

from kspec.impl.storage.disk import Disk, File, Handle, StorageError
from kspec.spec.transactions.log.partition import AbortedTransaction
from kspec.spec.values import Offset, ProducerId

LOG = logging.getLogger("kspec.storage")

MOST_PENDING = 512
"""Entries that are kept in memory."""

MOST_KNOWN = 4_096
"""Entries of a file that are remembered as right."""


class Index:
    """Entries of one size in growing order. An entry is a tuple of two numbers, as in the file."""

    def __init__(self, disk: Disk, path: str, entry: Struct, create: bool) -> None:
        self.path = path
        self._file: File = disk.open(path, create=create)
        self._entry = entry
        self._stored = self._file.size // entry.size
        self._pending: list[tuple[int, int]] = []
        self._last: tuple[int, int] | None = None
        self._found = self._stored
        """The number of entries in the file when it was opened: each is verified before its first use."""
        self._right: set[int] = set()
        """The numbers of those that were found right."""
        self._rebuilding = False

    def __len__(self) -> int:
        return self._stored + len(self._pending)

    @property
    def is_damaged(self) -> bool:
        """Whether the file cannot be right: its length, or an order of first and last entry that is impossible."""
        if self._file.size % self._entry.size:
            return True
        return len(self) > 0 and (self.last < self[0] or self.last[1] < 0 or self.last[0] < 0)

    def is_known(self, number: int) -> bool:
        """Whether an entry is this process's own, or was found right."""
        return number >= self._found or number in self._right

    def note_right(self, number: int) -> None:
        """An entry of the file was found right."""
        if len(self._right) >= MOST_KNOWN:
            self._right.clear()
        self._right.add(number)

    def __getitem__(self, number: int) -> tuple[int, int]:
        if number >= self._stored:
            return self._pending[number - self._stored]
        key, value = self._entry.unpack(self._file.read(number * self._entry.size, self._entry.size))
        return key, value

    @property
    def last(self) -> tuple[int, int]:
        """The last entry; zeros if there is none."""
        if self._last is None:
            self._last = self[len(self) - 1] if len(self) else (0, 0)
        return self._last

    def add(self, entry: tuple[int, int]) -> None:
        """Append an entry."""
        self._pending.append(entry)
        self._last = entry
        if len(self._pending) >= MOST_PENDING and not self._rebuilding:
            self.write()

    def write(self) -> None:
        """Append what is in memory to the file."""
        if self._pending:
            self._file.append([b"".join(self._entry.pack(*entry) for entry in self._pending)])
            self._stored += len(self._pending)
            self._pending.clear()

    def begin_anew(self) -> None:
        """Without any entry; those that are added stay in memory until `rebuilt`."""
        self.cut(0)
        self._rebuilding = True

    def rebuilt(self) -> None:
        """Append to the file what was added. If the disk does not take it, it stays in memory."""
        self._rebuilding = False
        try:
            self.write()
        except (OSError, StorageError) as error:
            LOG.warning("%s cannot be written, and is kept in memory: %s", self.path, error)

    def handle(self) -> Handle:
        """The file with all entries in it, to be synced."""
        self.write()
        return self._file.handle()

    def cut(self, entries: int) -> None:
        """Keep only the first entries."""
        self._right.clear()
        if entries < self._stored:
            self._pending.clear()
            self._file.truncate(entries * self._entry.size)
            self._stored = entries
            self._found = min(self._found, entries)
        else:
            del self._pending[entries - self._stored :]
            if self._file.size != self._stored * self._entry.size:
                self._file.truncate(self._stored * self._entry.size)
        self._last = None

    def first_where(self, holds: Callable[[tuple[int, int]], bool]) -> int:
        """The number of the first entry for which a condition holds that then holds for all later ones."""
        low, high = 0, len(self)
        if self._pending and not holds(self._pending[0]):
            low = self._stored + 1
        while low < high:
            middle = (low + high) // 2
            if holds(self[middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def close(self) -> None:
        """Write the entries and close the file."""
        self.write()
        self._file.close()


class OffsetIndex(Index):
    """Entries (last offset of a batch, counted from the segment's base; position of that batch). Kafka: `OffsetIndex`."""

    def __init__(self, disk: Disk, path: str, base_offset: Offset, create: bool) -> None:
        super().__init__(disk, path, Struct(">ii"), create)
        self._base = base_offset

    def number_for(self, offset: Offset) -> int:
        """The number of the last entry whose offset is not above this one; -1 if there is none. **Kafka:** `lookup`."""
        relative = offset - self._base
        return self.first_where(lambda entry: entry[0] > relative) - 1

    def number_up_to(self, position: int) -> int:
        """The number of the last entry whose position is not above this one; -1 if there is none."""
        return self.first_where(lambda entry: entry[1] > position) - 1

    def offset_at(self, number: int) -> Offset:
        """The offset of an entry."""
        return Offset(self._base + self[number][0])

    def append(self, last_offset: Offset, position: int) -> None:
        """Note a batch."""
        self.add((last_offset - self._base, position))

    def truncate_to(self, offset: Offset) -> None:
        """Without the entries of batches that do not end before an offset. **Kafka:** `OffsetIndex.truncateTo`."""
        relative = offset - self._base
        self.cut(self.first_where(lambda entry: entry[0] >= relative))


class TimeIndex(Index):
    """Entries (largest timestamp so far in ms; the last offset of its batch, counted from the base). Kafka: `TimeIndex`."""

    def __init__(self, disk: Disk, path: str, base_offset: Offset, create: bool) -> None:
        super().__init__(disk, path, Struct(">qi"), create)
        self._base = base_offset

    def number_for(self, timestamp: int) -> int:
        """The number of the last entry whose timestamp is not above this one; -1 if there is none.

        No record before its offset has a later timestamp. **Kafka:** `TimeIndex.lookup`.
        """
        return self.first_where(lambda entry: entry[0] > timestamp) - 1

    def offset_at(self, number: int) -> Offset:
        """The offset of an entry."""
        return Offset(self._base + self[number][1])

    @property
    def last_entry(self) -> tuple[int, Offset]:
        """The last timestamp and its offset; -1 and the base without any."""
        if not len(self):
            return (-1, self._base)
        return (self.last[0], Offset(self._base + self.last[1]))

    def append(self, timestamp: int, offset: Offset) -> None:
        """Note the largest timestamp so far, if it is larger than the one noted last. **Kafka:** `TimeIndex.maybeAppend`."""
        if timestamp > (self.last[0] if len(self) else -1):
            self.add((timestamp, offset - self._base))

    def truncate_to(self, offset: Offset) -> None:
        """Without the entries of batches that do not end before an offset. **Kafka:** `TimeIndex.truncateTo`."""
        relative = offset - self._base
        self.cut(self.first_where(lambda entry: entry[1] >= relative))


# ---- aborted transactions

ABORTED_VERSION = 0
ABORTED = Struct(">hqqqq")


class AbortedIndex:
    """The aborted transactions whose markers lie in one segment, in the order of these: `OFFSET.txnindex`.

    Most segments have none, and no file. Kafka: `TransactionIndex`, `AbortedTxn`.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._file: File | None = disk.open(path) if disk.exists(path) else None
        self._entries: list[AbortedTransaction] | None = None if self._file is not None else []
        self._is_damaged = False

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self._file is not None

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries; those that can be read, if the file is damaged."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def _read(self) -> list[AbortedTransaction]:
        assert self._file is not None
        content = self._file.read(0, self._file.size)
        whole = len(content) - len(content) % ABORTED.size
        self._is_damaged = whole != self._file.size
        found: list[AbortedTransaction] = []
        for version, producer_id, first, last, stable in ABORTED.iter_unpack(content[:whole]):
            one = AbortedTransaction(ProducerId(producer_id), Offset(first), Offset(last), Offset(stable))
            if version != ABORTED_VERSION or not is_possible(one) or (found and found[-1].last_offset >= last):
                self._is_damaged = True
                break
            found.append(one)
        return found

    def is_damaged(self, base_offset: Offset, end: Offset) -> bool:
        """Whether the file cannot be right: its length, an impossible entry, or one of a marker outside its segment.

        **Kafka:** `TransactionIndex.sanityCheck`.
        """
        entries = self.entries
        outside = bool(entries) and (entries[0].last_offset < base_offset or entries[-1].last_offset >= end)
        return self._is_damaged or outside

    def append(self, one: AbortedTransaction) -> bool:
        """Append an entry; whether the file is new."""
        known, is_new = self.entries, self._file is None
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
        self._file.append([_packed(one)])
        known.append(one)
        return is_new

    def truncate_to(self, offset: Offset) -> None:
        """Without the entries of markers from an offset on. **Kafka:** `TransactionIndex.truncateTo`."""
        kept = [one for one in self.entries if one.last_offset < offset]
        if self._file is not None and self._file.size != len(kept) * ABORTED.size:
            self._file.truncate(len(kept) * ABORTED.size)
        self._entries, self._is_damaged = kept, False

    def replace(self, entries: Iterable[AbortedTransaction]) -> None:
        """These entries alone. If the disk does not take them, they are kept in memory."""
        self._entries, self._is_damaged = list(entries), False
        if self._file is None and not self._entries:
            return
        try:
            if self._file is None:
                self._file = self._disk.open(self.path, create=True)
            self._file.truncate(0)
            if self._entries:
                self._file.append([_packed(one) for one in self._entries])
        except (OSError, StorageError) as error:
            LOG.warning("%s cannot be written, and is kept in memory: %s", self.path, error)

    def handles(self) -> tuple[Handle, ...]:
        """The file, if there is one, to be synced."""
        return () if self._file is None else (self._file.handle(),)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def is_possible(one: AbortedTransaction) -> bool:
    """Whether there can be such a transaction: it ends behind its begin, and everything is stable up to some offset."""
    return one.producer_id >= 0 and 0 <= one.first_offset < one.last_offset and one.last_stable_offset >= 0


def _packed(one: AbortedTransaction) -> bytes:
    return ABORTED.pack(ABORTED_VERSION, *one)
