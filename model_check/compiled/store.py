"""The visited set: every distinct state once, in the order of discovery, and hash tables of 32-bit indices into it.

The states of one shard lie one after another, level after level, so that the store is at the same time the list of
states, the frontier and the record from which traces are rebuilt. Memory is reserved as addresses and taken from the
system only when it is first written, so nothing is ever copied to grow.
"""

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model_check.compiled.kernels import INDEX_BITS, SHARDS, fill_index, repack
from model_check.compiled.layout import Fields

CONTROL_GROUP = Path("/sys/fs/cgroup")
FIRST_INDEX_SIZE = 64
INDEX_PLACES_PER_STATE = 1.6
"""How big hash tables are made for states that are already there: with room to go on."""

_NORESERVE = 0x4000


def physical_memory() -> int:
    """Bytes of memory that this process may use at most: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _number_in(CONTROL_GROUP / "memory.max")
    return total if limit is None else min(total, limit)


def available_memory() -> int:
    """Bytes that can still be taken before something has to go."""
    free = physical_memory()
    for line in Path("/proc/meminfo").read_text().splitlines() if os.path.exists("/proc/meminfo") else ():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _number_in(CONTROL_GROUP / "memory.max"), _number_in(CONTROL_GROUP / "memory.current")
    if limit is None or used is None:
        return free
    # What the group holds of files (checkpoints among them) counts as used, and is given up when memory is needed.
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


class Store:
    """The shards' states and hash tables, with room for all states that memory can hold."""

    def __init__(self, fields: Fields, memory: int | None = None) -> None:
        self.memory = memory or physical_memory()
        self.fields = fields
        self.count = np.zeros(SHARDS, np.int64)
        self._take(fields.words)
        self.index_room = int(self.capacity * 2.6) + FIRST_INDEX_SIZE
        self.index_region = reserve(4 * self.index_room * SHARDS, huge=False)
        self.index: NDArray[np.uint32] = np.frombuffer(self.index_region, np.uint32)
        self.index_base = np.arange(SHARDS, dtype=np.int64) * self.index_room
        self.index_size = np.full(SHARDS, FIRST_INDEX_SIZE, np.int64)

    def _take(self, words: int) -> None:
        self.capacity = min((1 << INDEX_BITS) - 2, int(self.memory / (8 * words) / SHARDS * 1.2) + 4096)
        self.region = reserve(8 * words * self.capacity * SHARDS, huge=False)
        self.words: NDArray[np.uint64] = np.frombuffer(self.region, np.uint64)
        self.base = np.arange(SHARDS, dtype=np.int64) * self.capacity

    @property
    def states(self) -> int:
        return int(self.count.sum())

    @property
    def bytes(self) -> int:
        """What states and hash tables take."""
        return 8 * self.fields.words * self.states + 4 * int(self.index_size.sum())

    def change_layout(self, fields: Fields) -> None:
        """Move every state to another layout. Shards, order and hash tables stay as they are."""
        old, source, source_base = self.fields, self.words, self.base
        if fields.words != old.words:
            self._take(fields.words)
        for shard in range(SHARDS):
            repack(
                old.arrays,
                fields.arrays,
                old.words,
                fields.words,
                source,
                int(source_base[shard]),
                self.words,
                int(self.base[shard]),
                int(self.count[shard]),
            )
        self.fields = fields

    def fill_index(self) -> None:
        """Make all hash tables anew from the states."""
        for shard, count in enumerate(self.count.tolist()):
            size = int(count * INDEX_PLACES_PER_STATE) + FIRST_INDEX_SIZE
            self.index_size[shard] = size
            base, index_base = int(self.base[shard]), int(self.index_base[shard])
            fill_index(self.fields.arrays, self.fields.words, self.words, base, count, self.index, index_base, size)

    def numbers_at(self, shard: int, number: int) -> list[int]:
        """The value numbers of a state."""
        words, layout = self.fields.words, self.fields.arrays
        at = (int(self.base[shard]) + number) * words
        packed = self.words[at : at + words]
        numbers: list[int] = ((packed[layout.word] >> layout.shift) & layout.mask).tolist()
        return numbers

    def packed_at(self, shard: int, number: int) -> NDArray[np.uint64]:
        at = (int(self.base[shard]) + number) * self.fields.words
        return self.words[at : at + self.fields.words].copy()
