"""The place of each slot's value number in a packed state."""

from typing import NamedTuple

import numpy as np

from kspec.model_check.engines.compiled.kernels import Layout

WORD_BITS = 64


class Fields(NamedTuple):
    """A layout and its parameters: the bits of each slot, and the number of words, of which `size` bytes are used."""

    words: int
    size: int
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
    """The number of bits that can hold any of the first `count` numbers, counted from 0."""
    return max(1, (count - 1).bit_length())


def wide_fields(counts: list[int]) -> Fields:
    """The first layout, with room for far more values than any slot has, while few values are known."""
    widths = [max(16, bits_for(count) + 4) for count in counts]
    placed = _place(widths, 8 * len(counts))
    assert placed is not None
    return fields_at(widths, placed)


def compact_fields(counts: list[int], spare: int = 1) -> Fields:
    """The fewest bytes that hold every slot, with `spare` extra bits for slots with more than two values.

    Bits left in the last byte are spread over the slots, those with the most values first: they are likely to get more.
    """
    needed = [bits_for(count) + (spare if count > 2 else 0) for count in counts]
    size = -(-sum(needed) // 8)
    while (placed := _place(needed, size)) is None:
        size += 1
    widths, free = list(needed), _capacities(size)
    for width, word in zip(widths, placed, strict=True):
        free[word] -= width
    by_size = sorted(range(len(counts)), key=lambda slot: -counts[slot])
    for _ in range(8):
        for slot in by_size:
            if free[placed[slot]] > 0 and widths[slot] < 32:
                widths[slot] += 1
                free[placed[slot]] -= 1
    return fields_at(widths, placed)


def padded(fields: Fields) -> Fields:
    """The same layout with whole words for each state."""
    size = 8 * fields.words
    return fields._replace(size=size, arrays=fields.arrays._replace(size=size, last=np.uint64(0xFFFFFFFFFFFFFFFF)))


def _capacities(size: int) -> list[int]:
    """The number of bits in each word, for words of `size` bytes in total."""
    whole, rest = divmod(size * 8, WORD_BITS)
    return [WORD_BITS] * whole + [rest] * (rest > 0)


def _place(widths: list[int], size: int) -> list[int] | None:
    """The word of each slot in `size` bytes, with the biggest slots placed first; `None` if they do not fit."""
    free = _capacities(size)
    placed = [0] * len(widths)
    for slot in sorted(range(len(widths)), key=lambda slot: -widths[slot]):
        word = next((word for word in range(len(free)) if free[word] >= widths[slot]), None)
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
    size = 8 * (words - 1) + max(1, -(-used[-1] // 8))
    arrays = Layout(
        np.array(placed, np.uint64),
        np.array(shifts, np.uint64),
        np.array([(1 << width) - 1 for width in widths], np.uint64),
        np.array(hash_weights(len(widths)), np.uint64),
        size,
        np.uint64((1 << (8 * (size - 8 * (words - 1)))) - 1),
    )
    return Fields(words, size, tuple(widths), arrays)
