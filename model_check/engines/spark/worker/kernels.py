"""Compiled loops over packed states in transit: remove duplicates, send to partitions, strike out known states."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.intrinsics import load_word, prefetch, store_word
from kspec.model_check.engines.compiled.kernels import ACTION_MASK, Bytes, Codes, Integers, Layout, Words, finish_hash

AHEAD = 16
"""The number of states whose places in a hash table are prefetched at a time."""

INDEX_BITS = 26
"""An entry of a hash table is (tag, 1 + index) in 32 bits; the index takes this many."""

MOST_INDEXED = (1 << INDEX_BITS) - 2
_INDEX_MASK = np.uint32((1 << INDEX_BITS) - 1)
_TAG_SHIFT, _TAG_MASK = np.uint32(INDEX_BITS), np.uint64(0x3F)
_MIX, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF, _ZERO, _ALL_BITS = np.uint64(32), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_BYTE, _EIGHT_BITS = np.uint64(0xFF), np.uint64(8)


@njit(inline="always")
def _hash_of(words: int, last: Any, source: Bytes, at: int) -> Any:
    """The hash of the state that begins at this byte; `last` are the bits of a state's last word."""
    mixed = _ZERO
    for k in range(words - 1):
        mixed = (mixed ^ load_word(source, at + 8 * k)) * _MIX
        mixed ^= mixed >> _HALF
    mixed = (mixed ^ (load_word(source, at + 8 * (words - 1)) & last)) * _MIX
    return (mixed ^ (mixed >> _HALF)) * _MIX_2


@njit(inline="always")
def _entry_of(hashed: Any, index: int) -> Any:
    """The entry of a hash table for the state of this hash that lies at this index."""
    return np.uint32(hashed & _TAG_MASK) << _TAG_SHIFT | np.uint32(index + 1)


@njit(inline="always")
def _place_of(words: int, last: Any, source: Bytes, at: int, hashed: Any, content: Words, index: Codes, shift: Any) -> Any:
    """The place of the entry, in a hash table, of a state of `content` that equals this one; an empty place, if there is
    none.
    """
    entries = index.size - 1
    place = np.int64(hashed >> shift)
    tag = np.uint32(hashed & _TAG_MASK) << _TAG_SHIFT
    while True:
        entry = index[place]
        if entry == np.uint32(0):
            return place
        if entry & ~_INDEX_MASK == tag:
            other = (np.int64(entry & _INDEX_MASK) - 1) * words
            same = content[other + words - 1] == load_word(source, at + 8 * (words - 1)) & last
            for k in range(words - 1):
                same = same and content[other + k] == load_word(source, at + 8 * k)
            if same:
                return place
        place = (place + 1) & entries


@njit(inline="always")
def _partition_of(hashed: Any, partitions: int) -> Any:
    """The partition that a state of this hash (`finish_hash`) belongs to."""
    return np.uint16(((hashed >> _HALF) * np.uint64(partitions)) >> _HALF)


@kernel
def add(
    words: int,
    last: Any,
    source: Bytes,
    stride: int,
    count: int,
    partitions: int,
    content: Words,
    used: int,
    index: Codes,
    shift: Any,
    homes: NDArray[np.uint16],
) -> int:
    """Add `count` states, `stride` bytes from one to the next, to `content` where they are new; return how many it holds.

    With `partitions`, each state is followed by its hash, and the partition that it belongs to is noted in `homes`.
    `last` are the bits of a state's last word. The caller has made sure that there is room.
    """
    hashes = np.empty(AHEAD, np.uint64)
    for begin in range(0, count, AHEAD):
        batch = min(AHEAD, count - begin)
        for member in range(batch):
            hashes[member] = _hash_of(words, last, source, (begin + member) * stride)
            prefetch(index, np.int64(hashes[member] >> shift))
        for member in range(batch):
            at = (begin + member) * stride
            place = _place_of(words, last, source, at, hashes[member], content, index, shift)
            if index[place] != np.uint32(0):
                continue
            index[place] = _entry_of(hashes[member], used)
            for k in range(words - 1):
                content[used * words + k] = load_word(source, at + 8 * k)
            content[used * words + words - 1] = load_word(source, at + 8 * (words - 1)) & last
            if partitions > 0:
                hashed = load_word(source, at + 8 * words)
                homes[used] = _partition_of(hashed, partitions)
            used += 1
    return used


@kernel
def fill(words: int, content: Words, used: int, index: Codes, shift: Any) -> None:
    """Rebuild the hash table from states that are all different."""
    entries = index.size - 1
    source = content.view(np.uint8)
    for i in range(used):
        hashed = _hash_of(words, _ALL_BITS, source, i * words * 8)
        place = np.int64(hashed >> shift)
        while index[place] != np.uint32(0):
            place = (place + 1) & entries
        index[place] = _entry_of(hashed, i)


@kernel
def strike(
    words: int, last: Any, source: Bytes, stride: int, count: int, content: Words, index: Codes, shift: Any, struck: Bytes
) -> None:
    """Mark those of `content` that are among `count` states of `source`."""
    hashes = np.empty(AHEAD, np.uint64)
    for begin in range(0, count, AHEAD):
        batch = min(AHEAD, count - begin)
        for member in range(batch):
            hashes[member] = _hash_of(words, last, source, (begin + member) * stride)
            prefetch(index, np.int64(hashes[member] >> shift))
        for member in range(batch):
            at = (begin + member) * stride
            entry = index[_place_of(words, last, source, at, hashes[member], content, index, shift)]
            if entry != np.uint32(0):
                struck[np.int64(entry & _INDEX_MASK) - 1] = 1


@kernel
def send(words: int, size: int, content: Words, used: int, homes: NDArray[np.uint16], first: Integers, out: Bytes) -> None:
    """Pack states into `size` bytes each, grouped by partition; `first` receives where each group begins."""
    first[:] = 0
    for i in range(used):
        first[np.int64(homes[i]) + 1] += 1
    for home in range(first.size - 1):
        first[home + 1] += first[home]
    cursor = first[:-1].copy()
    for i in range(used):
        own = np.int64(homes[i])
        to = cursor[own] * size
        cursor[own] += 1
        for k in range(words - 1):
            store_word(out, to + 8 * k, content[i * words + k])
        # States do not come in the order of their places: what lies behind this one may be written already.
        word = content[i * words + words - 1]
        for byte in range(8 * (words - 1), size):
            out[to + byte] = np.uint8(word & _BYTE)
            word >>= _EIGHT_BITS


@kernel
def keep(words: int, size: int, content: Words, used: int, struck: Bytes, out: Bytes) -> int:
    """Pack the states that are not struck out into `size` bytes each; return how many they are."""
    kept = 0
    for i in range(used):
        if struck[i] == 0:
            for k in range(words):
                store_word(out, kept * size + 8 * k, content[i * words + k])
            kept += 1
    return kept


@kernel
def sift(
    local: Layout,
    wire: Layout,
    words: int,
    wire_words: int,
    limits: Words,
    linear: Words,
    degrees: Integers,
    out: Words,
    fired: Integers,
    set_aside: Bytes,
) -> int:
    """Convert successors from the layout of this process to the one that all share; return how many.

    A state with a successor that holds a value not numbered by all (its number is not below the slot's limit) is set
    aside: none of its successors counts.
    """
    slots, stride, wire_stride = local.word.size, words + 1, wire_words + 1
    at, count = 0, 0
    for place in range(degrees.size):
        degree = max(degrees[place], 0)
        inside = True
        for i in range(at, at + degree):
            for slot in range(slots):
                number = (linear[i * stride + np.int64(local.word[slot])] >> local.shift[slot]) & local.mask[slot]
                if number >= limits[slot]:
                    inside = False
                    break
            if not inside:
                break
        if not inside:
            set_aside[place] = 1
            for i in range(at, at + degree):
                fired[np.int64(linear[i * stride + words] & ACTION_MASK)] -= 1
            at += degree
            continue
        for i in range(at, at + degree):
            to = count * wire_stride
            for k in range(wire_words):
                out[to + k] = _ZERO
            for slot in range(slots):
                number = (linear[i * stride + np.int64(local.word[slot])] >> local.shift[slot]) & local.mask[slot]
                out[to + np.int64(wire.word[slot])] |= number << wire.shift[slot]
            out[to + wire_words] = linear[i * stride + words]
            count += 1
        at += degree
    return count


@kernel
def home_of(layout: Layout, packed: Words, partitions: int) -> int:
    """The partition that a state belongs to."""
    total = _ZERO
    for slot in range(layout.word.size):
        total += ((packed[np.int64(layout.word[slot])] >> layout.shift[slot]) & layout.mask[slot]) * layout.weight[slot]
    home: int = _partition_of(finish_hash(total), partitions)
    return home


@kernel
def homes_of(layout: Layout, packed: Bytes, size: int, partitions: int, homes: NDArray[np.uint16]) -> None:
    """The partitions that packed states belong to."""
    for number in range(homes.size):
        total = _ZERO
        for slot in range(layout.word.size):
            word = load_word(packed, number * size + 8 * np.int64(layout.word[slot]))
            total += ((word >> layout.shift[slot]) & layout.mask[slot]) * layout.weight[slot]
        homes[number] = _partition_of(finish_hash(total), partitions)
