"""Restarting the target by a command of the user's."""

import asyncio
import time

from kspec.conformance.wire.run.runner import RunTarget, TargetGoneError, find_target

LIMIT_SECONDS = 180.0
PAUSE_SECONDS = 0.2


async def restarted_by(command: str, host: str, port: int, timeout: float) -> RunTarget:
    """Run the command, and wait until the target answers again: what it offers then. Raises: `TargetGoneError`."""
    process = await asyncio.create_subprocess_shell(command, stdin=asyncio.subprocess.DEVNULL)
    try:
        status = await asyncio.wait_for(process.wait(), LIMIT_SECONDS)
    except TimeoutError:
        process.kill()
        raise TargetGoneError(f"the command that restarts it has not ended in {LIMIT_SECONDS:g} s: {command}") from None
    if status:
        raise TargetGoneError(f"the command that restarts it ends with status {status}: {command}")
    end = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            return await find_target(host, port, timeout)
        except TargetGoneError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
