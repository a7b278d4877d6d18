"""Shrinking: items of a sequence are left out for as long as it still fails, whatever a sequence is and failing means."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(slots=True)
class Shrinker(Generic[Item]):
    """A search for a shorter sequence that still fails.

    - `best`: the shortest one so far. Whoever finds that it fails without a range puts what is left here;
    - `longest`: in the end no range of up to this many items can be left out;
    - `overlapping`: whether ranges begin at every item: more attempts, for sequences that are tried quickly.
    """

    best: Sequence[Item]
    longest: int = 1
    overlapping: bool = False

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of the best sequence to leave out, each from its first item up to its end: halves, quarters, and so on.

        Within one size the last range comes first. The smallest sizes are repeated until nothing more can be left out.
        """
        size = len(self.best) // 2
        while size > self.longest:
            yield from self._of_size(size)
            size //= 2
        before = -1
        while len(self.best) != before:
            before = len(self.best)
            for size in range(1, self.longest + 1):
                yield from self._of_size(size)

    def _of_size(self, size: int) -> Iterator[tuple[int, int]]:
        begin = len(self.best) - size
        while begin >= 0:
            yield begin, begin + size
            begin = min(begin - (1 if self.overlapping else size), len(self.best) - size)
