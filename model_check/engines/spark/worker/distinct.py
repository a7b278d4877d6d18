"""Sets of distinct packed states, which a task has to send or has received."""

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.engines.compiled.layout import Fields
from kspec.model_check.engines.spark.worker.core import PADDING, Packed
from kspec.model_check.engines.spark.worker.kernels import MOST_INDEXED, add, fill, keep, send, strike
from kspec.model_check.engines.spark.worker.transport import in_order

_FIRST_BITS = 12


class Distinct:
    """A set of states in one layout, in the order in which they came."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.count = 0
        self._bits = _FIRST_BITS
        self._content = np.empty(fields.words << (_FIRST_BITS - 1), np.uint64)
        self._homes = np.empty(1 << (_FIRST_BITS - 1), np.uint16)
        self._index = np.zeros(1 << _FIRST_BITS, np.uint32)
        self._struck: NDArray[np.uint8] | None = None

    def add_successors(self, linear: NDArray[np.uint64], count: int, partitions: int) -> None:
        """Add `count` successors as `kernels.expand` leaves them, and note which of so many partitions they belong to."""
        words = self.fields.words
        self._make_room(count)
        self.count = add(
            words,
            np.uint64(0xFFFFFFFFFFFFFFFF),
            linear.view(np.uint8),
            8 * (words + 1),
            count,
            partitions,
            self._content,
            self.count,
            self._index,
            np.uint64(64 - self._bits),
            self._homes,
        )

    def add_packed(self, packed: Packed, count: int) -> None:
        """Add `count` packed states."""
        self._make_room(count)
        fields = self.fields
        self.count = add(
            fields.words,
            fields.arrays.last,
            packed,
            fields.size,
            count,
            0,
            self._content,
            self.count,
            self._index,
            np.uint64(64 - self._bits),
            self._homes,
        )

    def strike(self, packed: Packed, count: int) -> None:
        """Strike out the states that are among `count` packed states."""
        if self._struck is None:
            self._struck = np.zeros(self.count, np.uint8)
        fields, shift = self.fields, np.uint64(64 - self._bits)
        strike(fields.words, fields.arrays.last, packed, fields.size, count, self._content, self._index, shift, self._struck)

    def by_home(self, partitions: int) -> tuple[Packed, list[int]]:
        """All states packed and grouped by partition, and where each partition's states begin."""
        first, out = np.zeros(partitions + 1, np.int64), np.empty(self.count * self.fields.size + PADDING, np.uint8)
        send(self.fields.words, self.fields.size, self._content, self.count, self._homes, first, out)
        return out, first.tolist()

    def remaining(self) -> tuple[Packed, int]:
        """The states that are not struck out, packed and in order, and their number."""
        struck = np.zeros(self.count, np.uint8) if self._struck is None else self._struck
        size = self.fields.size
        out = np.zeros(self.count * size + PADDING, np.uint8)
        kept = keep(self.fields.words, size, self._content, self.count, struck, out)
        out[: kept * size].reshape(kept, size)[:] = in_order(out, size, kept)
        return out[: kept * size + PADDING], kept

    def _make_room(self, more: int) -> None:
        needed = self.count + more
        if needed > MOST_INDEXED:
            raise OverflowError("one task got more states than it can number; use more --partitions")
        while 2 * needed > 1 << self._bits:
            self._bits += 1
        if 1 << self._bits == self._index.size:
            return
        words, used = self.fields.words, self.count
        content, homes = np.empty(words << (self._bits - 1), np.uint64), np.empty(1 << (self._bits - 1), np.uint16)
        content[: used * words], homes[:used] = self._content[: used * words], self._homes[:used]
        self._content, self._homes = content, homes
        self._index = np.zeros(1 << self._bits, np.uint32)
        fill(words, content, used, self._index, np.uint64(64 - self._bits))
