"""Caps on the committed end of the metadata log that each broker receives: it reads the decisions of the run's step."""

from collections.abc import Iterable


class MetadataCaps:
    """The offsets behind the decisions that each broker has read last and has still to read, as in the model."""

    def __init__(self, brokers: Iterable[int], end: int) -> None:
        self._ends: dict[int, tuple[int, ...]] = dict.fromkeys(brokers, (end,))

    def step(self, broker: int, images: int, taken: int, end: int) -> int:
        """The offset up to which the broker may read after a step.

        `images`: the number of images that the model keeps for this broker after the step: the one it has read last, and
        those to come. `taken`: the number that it has read in the step. `end`: the end of the metadata log after the step.
        A decision adds an image, or, if it requires no step of the broker, is part of the one before.
        """
        ends = self._ends[broker][taken:]
        if images > len(ends):
            ends += (end,) * (images - len(ends))
        elif taken == 0 and ends:
            ends = (*ends[:-1], end)
        self._ends[broker] = ends
        return ends[0]
