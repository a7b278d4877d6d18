"""The functions of `plain`, compiled: some tens of nanoseconds a record. The import takes a while, so `reading` has it done
aside.

Both readers fill a `State`; they are called with numbers and arrays, and know no rule.
"""

from typing import Any

import numpy as np
from numba import njit, types

# What a state has, by its place: how far reading is, what it has found, and the record that is read.
PHASE, SKIP, SIZE, VALUE, COUNT, BASE_TIME, HEADERS = range(7)
ENDING, DONE, WITHOUT_KEY, WITHOUT_TIME, OLDEST, NEWEST, CONSECUTIVE, SHORTEST, LONGEST, FOUND_END = range(7, 17)
TIME, OFFSET, HAS_KEY, LENGTH, SLOTS = range(16, 21)

START = np.zeros(SLOTS, np.int64)
"""A state before the first record."""

NO_FACTS = np.zeros(0, np.int64)
"""A table without room for facts of records."""

RUNNING, COMPLETE, MALFORMED, OVERLONG = range(4)
"""States of a reading; a running one goes on with the next piece."""

# What comes next in a record.
AT_LENGTH, AT_ATTRIBUTES, AT_TIME, AT_OFFSET, AT_KEY, AT_VALUE, AT_HEADERS, AT_HEADER_KEY, AT_HEADER_VALUE = range(9)

_DATA = types.Array(types.uint8, 1, "C", readonly=True)
_NUMBERS = types.Array(types.int64, 1, "C")
_PAIR: Any = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
_NO_TIMESTAMP = -1
START[OLDEST] = START[NEWEST] = _NO_TIMESTAMP
START[CONSECUTIVE] = 1


def zeros(shape: int | tuple[int, int]) -> Any:
    """An array of numbers for what is found."""
    return np.zeros(shape, np.int64)


def array_of(data: bytes | bytearray | memoryview) -> Any:
    """Bytes as an array that is read only."""
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


@njit(types.void(_NUMBERS, _NUMBERS), cache=True, nogil=True)
def _note(state, facts):  # type: ignore[no-untyped-def]
    """A record has been read: count it, and write down what it is if there is room."""
    number = state[DONE]
    time = state[TIME]
    if time == _NO_TIMESTAMP:
        state[WITHOUT_TIME] += 1
    elif number == state[WITHOUT_TIME]:
        state[OLDEST] = time
        state[NEWEST] = time
    elif time < state[OLDEST]:
        state[OLDEST] = time
    elif time > state[NEWEST]:
        state[NEWEST] = time
    if state[HAS_KEY] == 0:
        state[WITHOUT_KEY] += 1
    if number == 0 or state[LENGTH] < state[SHORTEST]:
        state[SHORTEST] = state[LENGTH]
    if number == 0 or state[LENGTH] > state[LONGEST]:
        state[LONGEST] = state[LENGTH]
    if state[OFFSET] != number:
        state[CONSECUTIVE] = 0
    if 3 * number + 2 < facts.size:
        facts[3 * number] = state[OFFSET]
        facts[3 * number + 1] = time
        facts[3 * number + 2] = state[HAS_KEY]
    state[DONE] = number + 1


@njit(types.void(_DATA, _NUMBERS, _NUMBERS), cache=True, nogil=True)
def skim(data, state, facts):  # type: ignore[no-untyped-def]  # noqa: PLR0915 (a call would cost as much as a field)
    """Go on with the next piece of a stream."""
    end = data.size
    position = 0
    phase, size, value = state[PHASE], state[SIZE], np.uint64(state[VALUE])
    while True:
        if state[SKIP] > 0:
            taken = min(state[SKIP], end - position)
            position += taken
            state[SKIP] -= taken
            if state[SKIP] > 0:
                break
        if phase == AT_LENGTH and state[DONE] == state[COUNT]:
            state[ENDING] = COMPLETE if position == end else MALFORMED
            break
        if position >= end:
            break
        if phase == AT_ATTRIBUTES:
            position += 1
            phase = AT_TIME
            continue
        most = 10 if phase == AT_TIME else 5
        whole = False
        while position < end:
            byte = data[position]
            position += 1
            value |= np.uint64(byte & 0x7F) << np.uint64(7 * size)
            size += 1
            if byte < 0x80:
                whole = True
                break
            if size == most:
                state[ENDING] = MALFORMED
                return
        if not whole:
            break
        if phase != AT_TIME:
            value &= np.uint64(0xFFFFFFFF)
        found = np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))
        size = 0
        value = np.uint64(0)
        if phase == AT_LENGTH:
            state[LENGTH] = found
            phase = AT_ATTRIBUTES
        elif phase == AT_TIME:
            state[TIME] = state[BASE_TIME] + found
            phase = AT_OFFSET
        elif phase == AT_OFFSET:
            state[OFFSET] = found
            phase = AT_KEY
        elif phase == AT_KEY:
            state[HAS_KEY] = 1 if found >= 0 else 0
            state[SKIP] = max(found, 0)
            phase = AT_VALUE
        elif phase == AT_VALUE:
            state[SKIP] = max(found, 0)
            phase = AT_HEADERS
        elif phase == AT_HEADERS:
            if found < 0:
                state[ENDING] = MALFORMED
                return
            state[HEADERS] = found
            phase = AT_HEADER_KEY
            if found == 0:
                _note(state, facts)
                phase = AT_LENGTH
        elif phase == AT_HEADER_KEY:
            if found < 0:
                state[ENDING] = MALFORMED
                return
            state[SKIP] = found
            phase = AT_HEADER_VALUE
        else:
            state[SKIP] = max(found, 0)
            state[HEADERS] -= 1
            phase = AT_HEADER_KEY
            if state[HEADERS] == 0:
                _note(state, facts)
                phase = AT_LENGTH
    state[PHASE], state[SIZE], state[VALUE] = phase, size, np.int64(value)


@njit(_PAIR(_DATA, types.int64, types.int64), cache=True, nogil=True)
def _number(data, position, most):  # type: ignore[no-untyped-def]
    """A number, and the position after it: `-MALFORMED` in place of it where bytes are missing, `-OVERLONG` for too many."""
    value = np.uint64(0)
    for size in range(most):
        if position >= data.size:
            return np.int64(0), np.int64(-MALFORMED)
        byte = data[position]
        position += 1
        value |= np.uint64(byte & 0x7F) << np.uint64(7 * size)
        if byte < 0x80:
            if most == 5:
                value &= np.uint64(0xFFFFFFFF)
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position
    return np.int64(0), np.int64(-OVERLONG)


@njit(types.int64(_DATA, types.int64, types.boolean), cache=True, nogil=True)
def _sized(data, position, may_miss):  # type: ignore[no-untyped-def]
    """The position after bytes behind their length; -1 if they are not there."""
    size, position = _number(data, position, 5)
    if position < 0 or size > data.size - position or (size < 0 and not may_miss):
        return -1
    return position + max(size, 0)


@njit(types.void(_DATA, _NUMBERS, _NUMBERS), cache=True, nogil=True)
def thorough(data, state, facts):  # type: ignore[no-untyped-def]
    """Read records that fill these bytes."""
    position = 0
    state[ENDING] = MALFORMED
    while state[DONE] < state[COUNT]:
        length, position = _number(data, position, 5)
        if position < 0:
            state[ENDING] = -position
            return
        if length > data.size - position:
            return
        start = position
        if position >= data.size:
            return
        delta, position = _number(data, position + 1, 10)
        if position < 0:
            return
        state[TIME] = state[BASE_TIME] + delta
        state[OFFSET], position = _number(data, position, 5)
        if position < 0:
            return
        size, position = _number(data, position, 5)
        if position < 0 or size > data.size - position:
            return
        state[HAS_KEY] = 1 if size >= 0 else 0
        position = _sized(data, position + max(size, 0), True)
        if position < 0:
            return
        headers, position = _number(data, position, 5)
        if position < 0 or headers < 0 or headers > data.size - position:
            return
        for _ in range(headers):
            position = _sized(data, position, False)
            if position < 0:
                return
            position = _sized(data, position, True)
            if position < 0:
                return
        if position - start != length:
            return
        state[LENGTH] = length
        _note(state, facts)
    if position == data.size:
        state[ENDING] = COMPLETE


_TABLE = types.Array(types.int64, 2, "C")
PLACE_FIELDS = 5
"""The fields of a record that `places` finds: the offset behind it, place and size of its key, and those of its value."""

_BASE_OFFSET_END, _LENGTH_END, _MAGIC_AT, _ATTRIBUTES_AT, _COUNT_AT, _RECORDS_AT = 8, 12, 16, 22, 57, 61
_NOT_PLAIN = 0x37
"""The bits of the attributes of a batch that is compressed, of a transaction, or a marker."""


@njit(types.int64(_DATA, types.int64, types.int64), cache=True, nogil=True)
def _fixed(data, position, size):  # type: ignore[no-untyped-def]
    """A number of so many bytes."""
    value = np.int64(np.int8(data[position]))
    for place in range(position + 1, position + size):
        value = (value << np.int64(8)) | np.int64(data[place])
    return value


@njit(types.int64(_DATA, _TABLE), cache=True, nogil=True)
def places(data, table):  # type: ignore[no-untyped-def]
    """Find the places of records in whole batches: how many; -1 if one has headers, or a batch is not plain, or is none."""
    start, done = 0, 0
    while start < data.size:
        if data.size - start < _RECORDS_AT or data[start + _MAGIC_AT] != 2:
            return -1
        end = start + _LENGTH_END + _fixed(data, start + _BASE_OFFSET_END, 4)
        plain = data[start + _ATTRIBUTES_AT] & _NOT_PLAIN == 0
        if not plain or end > data.size or end < start + _RECORDS_AT:
            return -1
        base = _fixed(data, start, 8)
        position = start + _RECORDS_AT
        for _ in range(_fixed(data, start + _COUNT_AT, 4)):
            length, position = _number(data, position, 5)
            if position < 0 or length < 0 or length > end - position or done == table.shape[0]:
                return -1
            following = position + length
            _, position = _number(data, position + 1, 10)
            if position < 0:
                return -1
            delta, position = _number(data, position, 5)
            if position < 0:
                return -1
            table[done, 0] = base + delta + 1
            for field in (1, 3):
                size, position = _number(data, position, 5)
                if position < 0 or size > following - position:
                    return -1
                table[done, field] = position
                table[done, field + 1] = size
                position += max(size, 0)
            size, position = _number(data, position, 5)
            if position != following or size != 0:
                return -1
            done += 1
        if position != end:
            return -1
        start = end
    return done
