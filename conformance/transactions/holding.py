"""A thread of a running Kafka, held where it calls a method, while all others go on: by the debugger's interface of Java.

The broker is unmodified; a slow thread is what any machine may have. Needs a JDK, not a Java runtime alone.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kspec.conformance.kafka.jars import KafkaMissingError, java

PROGRAM = Path(__file__).with_name("Hold.java")
WAIT_SECONDS = 60.0
"""An emergency stop, far away."""


class ThreadHold:
    """The first call of a method, held until it is let go."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def held(self) -> str:
        """Wait until a thread is held; its name. Raises: `KafkaMissingError`."""
        return (await self._line("holds ")).removeprefix("holds ")

    async def _line(self, wanted: str) -> str:
        assert self._process.stdout is not None
        line = (await asyncio.wait_for(self._process.stdout.readline(), WAIT_SECONDS)).decode().strip()
        if not line.startswith(wanted):
            raise KafkaMissingError(f"no thread can be held: {line or 'this needs a JDK, with the module jdk.jdi'}")
        return line

    async def waits(self) -> None:
        """Wait until calls are watched. Raises: `KafkaMissingError`, if Kafka has no such method, or there is no JDK."""
        line = await self._line("waits at ")
        if line.endswith(" 0"):
            raise KafkaMissingError("no thread can be held: this release has no such method")

    async def let_go(self) -> None:
        """Let the thread go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()
        await self._line("lets go")


@asynccontextmanager
async def holding(port: int, class_name: str, method: str) -> AsyncIterator[ThreadHold]:
    """Hold the first thread that calls a method of the Java that listens on a port; it goes on when the block ends."""
    command = [java(), "--add-modules", "jdk.jdi", str(PROGRAM), str(port), class_name, method]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    try:
        hold = ThreadHold(process)
        await hold.waits()
        yield hold
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
