"""How far each broker has been told that the metadata log is committed, so that it reads what the run says, and no more."""

from collections.abc import Iterable


class Readings:
    """For each broker the offsets behind the decisions that it has read last and has still to read, as in the model."""

    def __init__(self, brokers: Iterable[int], end: int) -> None:
        self._ends: dict[int, tuple[int, ...]] = dict.fromkeys(brokers, (end,))

    def step(self, broker: int, images: int, taken: int, end: int) -> int:
        """Take a step; the offset up to which the broker may read now.

        `images`: how many the model keeps of this broker after the step: the one it has read last, and those to come.
        `taken`: how many it has read in the step. `end`: the end of the metadata log after the step. A decision adds an
        image, or, if it requires no step of the broker, is part of the one before.
        """
        ends = self._ends[broker][taken:]
        if images > len(ends):
            ends += (end,) * (images - len(ends))
        elif taken == 0 and ends:
            ends = (*ends[:-1], end)
        self._ends[broker] = ends
        return ends[0]
