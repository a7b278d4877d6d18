"""The compiled choice of each walk's next step."""

from typing import Any

import numpy as np
from numba import njit

from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.kernels import ACTION_MASK, Integers, Words
from kspec.model_check.engines.simulation.generator import FIRST_FACTOR, GOLDEN, SECOND_FACTOR

STUCK, POSTPONED = -1, -2
"""Used in place of an action: no step could be drawn; no step is drawn yet."""

_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST_FACTOR), np.uint64(SECOND_FACTOR)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(inline="always")
def _mix(number: Any) -> Any:
    number = (number ^ (number >> _S30)) * _FIRST
    number = (number ^ (number >> _S27)) * _SECOND
    return number ^ (number >> _S31)


@kernel
def first_random(seed: Any, walks: Integers, random: Words) -> None:
    """The initial states of the generators of some walks, the same as in `generator.Stream`."""
    start = _mix(np.uint64(seed))
    for place in range(walks.size):
        random[place] = _mix(start + np.uint64(walks[place]) * _GOLDEN)


@kernel
def choose(
    words: int,
    linear: Words,
    degrees: Integers,
    weight: Integers,
    walkers: Integers,
    random: Words,
    states: Words,
    chosen: Integers,
) -> None:
    """Draw the next step of each walker among its successors, which lie in `linear` walker by walker.

    The walker's state is replaced by the successor; `chosen` receives the action.
    """
    stride, at = words + 1, 0
    for place in range(degrees.size):
        degree, walker = degrees[place], walkers[place]
        if degree < 0:
            chosen[place] = POSTPONED
            continue
        total = 0
        for i in range(at, at + degree):
            total += weight[np.int64(linear[i * stride + words] & ACTION_MASK)]
        if total == 0:
            chosen[place] = STUCK
            at += degree
            continue
        random[walker] += _GOLDEN
        left = np.int64(((_mix(random[walker]) >> _S32) * np.uint64(total)) >> _S32)
        i = at
        while True:
            action = np.int64(linear[i * stride + words] & ACTION_MASK)
            left -= weight[action]
            if left < 0:
                break
            i += 1
        chosen[place] = action
        for k in range(words):
            states[walker * words + k] = linear[i * stride + k]
        at += degree
