"""Waiting for what is to come about."""

import asyncio
import time
from collections.abc import Callable

LOOK_S = 0.05


async def within(seconds: float, holds: Callable[[], bool], look_s: float = LOOK_S) -> bool:
    """Whether something comes to hold in time. It is looked at every so often (`look_s`)."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(look_s)
    return True
