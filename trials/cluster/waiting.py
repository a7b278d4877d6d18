"""Waits for conditions."""

import asyncio
import time
from collections.abc import Callable

LOOK_S = 0.05


async def within(seconds: float, holds: Callable[[], bool], look_s: float = LOOK_S) -> bool:
    """Whether a condition is met in time. `look_s`: the interval of looks."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(look_s)
    return True
