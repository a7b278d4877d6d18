"""Where each slot's value number lies in a packed state."""

from typing import NamedTuple

import numpy as np

from model_check.compiled.kernels import Layout

WORD_BITS = 64
FEWEST_SPARE_BITS = 1
"""A compact layout keeps at least this many bits more than a slot needs now, unless it has few values."""


class Fields(NamedTuple):
    """A layout and what decides it: how many bits each slot has, in how many words."""

    words: int
    widths: tuple[int, ...]
    arrays: Layout

    def has_room(self, counts: list[int]) -> bool:
        """Whether every slot's values can be numbered in its field."""
        return all(count <= 1 << width for count, width in zip(counts, self.widths, strict=True))


def hash_weights(slots: int) -> list[int]:
    """An odd 64-bit weight for each slot: fixed, so that every run finds the same shards (splitmix64)."""
    weights, state = [], 0x243F6A8885A308D3
    for _ in range(slots):
        state = (state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        weights.append((mixed ^ (mixed >> 31)) | 1)
    return weights


def bits_for(count: int) -> int:
    """Bits that hold any of so many numbers from 0 on."""
    return max(1, (count - 1).bit_length())


def wide_fields(counts: list[int]) -> Fields:
    """Room for far more values than any slot has: the layout to begin with, while little is known."""
    widths = [max(16, bits_for(count) + 4) for count in counts]
    placed = _place(widths, len(counts))
    assert placed is not None
    return fields_at(widths, placed)


def compact_fields(counts: list[int]) -> Fields:
    """As few words as hold every slot with a bit to spare; what is left of them is spread over the slots."""
    needed = [bits_for(count) + (FEWEST_SPARE_BITS if count > 2 else 0) for count in counts]
    words = 1
    while (placed := _place(needed, words)) is None:
        words += 1
    # Slots with many values are likely to get more: they are served first, in rounds, as long as their word has room.
    widths = list(needed)
    free = [WORD_BITS - sum(width for width, word in zip(widths, placed, strict=True) if word == w) for w in range(words)]
    by_size = sorted(range(len(counts)), key=lambda slot: -counts[slot])
    for _ in range(8):
        for slot in by_size:
            if free[placed[slot]] > 0 and widths[slot] < 32:
                widths[slot] += 1
                free[placed[slot]] -= 1
    return fields_at(widths, placed)


def _place(widths: list[int], words: int) -> list[int] | None:
    """The word of each slot, biggest slots first; `None` if they do not fit."""
    free = [WORD_BITS] * words
    placed = [0] * len(widths)
    for slot in sorted(range(len(widths)), key=lambda slot: -widths[slot]):
        word = next((word for word in range(words) if free[word] >= widths[slot]), None)
        if word is None:
            return None
        placed[slot] = word
        free[word] -= widths[slot]
    return placed


def fields_at(widths: list[int], placed: list[int]) -> Fields:
    """The layout with fields of these widths in these words, one after another in each."""
    words = max(placed, default=0) + 1
    used = [0] * words
    shifts = []
    for width, word in zip(widths, placed, strict=True):
        shifts.append(used[word])
        used[word] += width
    arrays = Layout(
        np.array(placed, np.int64),
        np.array(shifts, np.uint64),
        np.array([(1 << width) - 1 for width in widths], np.uint64),
        np.array(hash_weights(len(widths)), np.uint64),
    )
    return Fields(words, tuple(widths), arrays)
