"""The visited set: every distinct state once, in the order of discovery, and hash tables of 32-bit indices into it.

The states of one shard lie one after another, level after level, so that the store is at the same time the list of
states, the frontier and the record from which traces are rebuilt. Addresses are reserved in advance, and memory is taken
from the system only when it is first written. So nothing is ever copied when the store grows.
"""

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.engines.compiled.kernels import INDEX_BITS, SHARDS, fill_index, repack
from kspec.model_check.engines.compiled.layout import WORD_BITS, Fields

CONTROL_GROUP = Path("/sys/fs/cgroup")
FIRST_INDEX_SIZE = 64
INDEX_PLACES_PER_STATE = 1.6
"""The places of a hash table that is built for existing states; this leaves room for more states."""

_NORESERVE = 0x4000


def physical_memory() -> int:
    """Bytes of memory that this process may use at most: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _number_in(CONTROL_GROUP / "memory.max")
    return total if limit is None else min(total, limit)


def available_memory() -> int:
    """Bytes that can still be taken before memory runs out."""
    free = physical_memory()
    for line in Path("/proc/meminfo").read_text().splitlines() if os.path.exists("/proc/meminfo") else ():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _number_in(CONTROL_GROUP / "memory.max"), _number_in(CONTROL_GROUP / "memory.current")
    if limit is None or used is None:
        return free
    # Cached files of the group (checkpoints among them) count as used, but are given up when memory is needed.
    given_up = _number_in(CONTROL_GROUP / "memory.stat", "inactive_file ") or 0
    return min(free, limit - used + given_up)


def _number_in(path: Path, label: str = "") -> int | None:
    """The number behind a label at the beginning of a line; `None` if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    text = next((line.removeprefix(label).strip() for line in lines if line.startswith(label)), "")
    return int(text) if text.isdigit() else None


def reserve(size: int, huge: bool) -> mmap.mmap:
    """Addresses for `size` bytes that read as zero and take no memory until they are written."""
    region = mmap.mmap(-1, max(size, mmap.PAGESIZE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        region.madvise(mmap.MADV_HUGEPAGE)
    return region


class StateStore:
    """The shards' states and hash tables, with room for all states that memory can hold."""

    def __init__(self, fields: Fields, memory: int | None = None) -> None:
        self.memory = memory or physical_memory()
        self.fields = fields
        self.count = np.zeros(SHARDS, np.int64)
        self._take(fields.size)
        self.index_room = int(self.capacity * 2.6) + FIRST_INDEX_SIZE
        self.index_region = reserve(4 * self.index_room * SHARDS, huge=False)
        self.index: NDArray[np.uint32] = np.frombuffer(self.index_region, np.uint32)
        self.index_base = np.arange(SHARDS, dtype=np.int64) * self.index_room
        self.index_size = np.full(SHARDS, FIRST_INDEX_SIZE, np.int64)

    def _take(self, size: int) -> None:
        self.capacity = min((1 << INDEX_BITS) - 2, int(self.memory / size / SHARDS * 1.2) + 4096)
        stride = self.capacity + WORD_BITS // 8
        self.region = reserve(size * stride * SHARDS + WORD_BITS // 8, huge=False)
        self.content: NDArray[np.uint8] = np.frombuffer(self.region, np.uint8)
        self.base = np.arange(SHARDS, dtype=np.int64) * stride

    @property
    def states(self) -> int:
        return int(self.count.sum())

    @property
    def bytes(self) -> int:
        """The bytes that states and hash tables take."""
        return self.fields.size * self.states + 4 * int(self.index_size.sum())

    def change_layout(self, fields: Fields) -> None:
        """Move every state to another layout, a shard at a time. Shards, order and hash tables stay as they are."""
        old, region, content, bases = self.fields, self.region, self.content, self.base
        self._take(fields.size)
        for shard, count in enumerate(self.count.tolist()):
            base = int(bases[shard])
            repack(old.arrays, fields.arrays, content, base, self.content, int(self.base[shard]), count)
            _give_back(region, base * old.size, (base + count) * old.size)
        self.fields = fields

    def fill_index(self) -> None:
        """Rebuild all hash tables from the states."""
        for shard, count in enumerate(self.count.tolist()):
            size = int(count * INDEX_PLACES_PER_STATE) + FIRST_INDEX_SIZE
            self.index_size[shard] = size
            base, index_base = int(self.base[shard]), int(self.index_base[shard])
            fill_index(self.fields.arrays, self.content, base, count, self.index, index_base, size)

    def numbers_at(self, shard: int, number: int) -> list[int]:
        """The value numbers of a state."""
        layout, packed = self.fields.arrays, self.packed_at(shard, number)
        numbers: list[int] = ((packed[layout.word] >> layout.shift) & layout.mask).tolist()
        return numbers

    def packed_at(self, shard: int, number: int) -> NDArray[np.uint64]:
        """The words of a state."""
        packed = np.zeros(8 * self.fields.words, np.uint8)
        packed[: self.fields.size] = self.bytes_at(shard, number, number + 1)
        return packed.view(np.uint64)

    def write(self, shard: int, number: int, packed: NDArray[np.uint64]) -> None:
        """Put a state in its place."""
        self.bytes_at(shard, number, number + 1)[:] = packed.view(np.uint8)[: self.fields.size]

    def bytes_at(self, shard: int, first: int, last: int) -> NDArray[np.uint8]:
        """The memory of some states of a shard."""
        size, base = self.fields.size, int(self.base[shard])
        return self.content[(base + first) * size : (base + last) * size]


def _give_back(region: mmap.mmap, begin: int, end: int) -> None:
    """Return the pages that lie wholly between two bytes to the system; their content is lost."""
    begin, end = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if begin < end and hasattr(mmap, "MADV_DONTNEED"):
        region.madvise(mmap.MADV_DONTNEED, begin, end - begin)
