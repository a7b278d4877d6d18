"""Packed states as they travel: sorted, byte by byte, and compressed, so that a state takes a fraction of its size.

Sorted states have most of their leading bytes in common with their neighbours. All first bytes are put together, then all
second ones, and so on, so a fast codec leaves little of them. Nothing is lost, and nothing derived from a state is sent.
"""

import struct
from functools import cache
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kspec.model_check.engines.spark.worker.core import PADDING, Packed

_COUNT = struct.Struct("<I")
MOST_STATES = 1 << 22
"""The most states in one message: a few tens of megabytes are sorted and held at a time."""


@cache
def _codec() -> Any:
    return pyarrow.Codec("zstd", compression_level=1)


def in_order(packed: Packed, size: int, count: int) -> NDArray[np.uint8]:
    """`count` packed states of `size` bytes, one in each row, sorted by their first eight bytes as one number."""
    rows = packed[: count * size].reshape(count, size)
    first = min(size, 8)
    keys = np.zeros((count, 8), np.uint8)
    keys[:, :first] = rows[:, :first]
    numbers = keys.view(np.uint64).ravel()
    if size <= 8:
        numbers.sort()
        return keys[:, :size]
    return rows[np.argsort(numbers, kind="stable")]


def encode(packed: Packed, size: int, count: int) -> bytes:
    """A message of `count` packed states of `size` bytes each."""
    columns = in_order(packed, size, count).T.tobytes()
    body: bytes = _codec().compress(columns, asbytes=True)
    return _COUNT.pack(count) + body


def decode(message: bytes, size: int) -> tuple[Packed, int]:
    """The packed states of a message, as kernels read them, and how many they are."""
    (count,) = _COUNT.unpack_from(message)
    columns = _codec().decompress(memoryview(message)[_COUNT.size :], decompressed_size=count * size)
    packed = np.empty(count * size + PADDING, np.uint8)
    packed[: count * size].reshape(count, size)[:] = np.frombuffer(columns, np.uint8).reshape(size, count).T
    return packed, count
