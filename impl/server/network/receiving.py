"""A connection's received bytes, as frames: in memory that all connections share, one after the other.

A connection takes the memory when its socket is readable, and copies its unhandled bytes before another has its turn. Frames
are views into the memory: nothing else is copied. A large frame is received into memory of its own.
"""

import socket
from struct import Struct
from typing import Protocol

from kspec.spec.broker.clients.versions import check_frame_size

SIZE = Struct(">i")

SHARED = 1 << 20
"""Bytes of the shared memory: few enough to stay in a processor's cache."""

AT_ONCE = 128 << 10
"""Bytes that are received before they are handled: few enough to be still in a processor's cache."""

LARGE_AT_ONCE = 2 << 20
"""Bytes of a large frame that are received before other connections have their turn."""

LARGE = 128 << 10
"""Frames above this size are received into memory of their own."""

FIRST_PART = 1 << 20
"""The first piece of memory for a large frame. It gets more when that is full: its announced size may be a lie."""

SCRATCH = 8 << 10
"""Bytes that are received behind a large frame, until the size of the next one is known, which may be large, too."""

COPIED = 4 << 10
"""The largest frame that is copied, so that a kept view into a small frame does not keep the shared memory."""

MOST_SPARES, LARGEST_SPARE = 2, 8 << 20
"""The memory for large frames that is kept for reuse: the largest number of pieces, and the largest piece (bytes)."""


class RefusedFrameError(Exception):
    """A frame that is not received."""


class ReceiveLimits(Protocol):
    """The limits of the frames that are received."""

    largest_frame: int

    def may_read(self, size: int) -> bool:
        """Whether there is memory for a frame of this size."""


class Spares:
    """Memory of received frames for reuse: a new allocation takes as long as to fill it."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """Memory for so many bytes, with any content; if none is free, a new first piece."""
        for number, memory in enumerate(self._free):
            if len(memory) >= size:
                return self._free.pop(number)
        return bytearray(min(size, FIRST_PART))

    def give(self, memory: bytearray) -> None:
        """Take memory back, unless there are views into it; of too many pieces the smallest is dropped."""
        if len(memory) > LARGEST_SPARE or has_views(memory):
            return
        self._free.append(memory)
        if len(self._free) > MOST_SPARES:
            del self._free[min(range(len(self._free)), key=lambda number: len(self._free[number]))]


def has_views(memory: bytearray) -> bool:
    """Whether there are views into some memory: its size cannot be changed then."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return True
    return False


class SharedMemory:
    """The shared memory. A kept view keeps all of it; then the next connection gets new memory."""

    def __init__(self) -> None:
        self.memory = bytearray(SHARED)

    def free(self) -> bytearray:
        """Memory without views into it."""
        if has_views(self.memory):
            self.memory = bytearray(SHARED)
        return self.memory


SPARES = Spares()
"""The spares of this process: connections receive one after the other."""

SHARED_MEMORY = SharedMemory()
"""The shared memory of this process."""


class Frames:
    """The frames that one connection receives."""

    __slots__ = (
        "_end",
        "_filled",
        "_is_drained",
        "_large",
        "_lent",
        "_limits",
        "_memory",
        "_rest",
        "_size",
        "_start",
        "_was_large",
    )

    def __init__(self, limits: ReceiveLimits) -> None:
        self._limits = limits
        self._rest = b""
        """The unhandled bytes that were copied out of the shared memory."""
        self._memory = SHARED_MEMORY.memory
        self._start = self._end = 0
        """The unhandled bytes in the shared memory: their first place, and the end."""
        self._large: bytearray | None = None
        """Memory for the large frame that is being received, which may be larger than the frame."""
        self._size = self._filled = 0
        self._lent: bytearray | None = None
        """The memory of the large frame that is being handled."""
        self._was_large = False
        self._is_drained = False
        """Whether the socket was empty after the last part of the large frame."""

    @property
    def held_bytes(self) -> int:
        """The memory that is held while other connections have their turn (bytes)."""
        return (len(self._large) if self._large is not None else 0) + len(self._rest)

    @property
    def has_rest(self) -> bool:
        """Whether frames may have been put aside, and not just a part of a size."""
        return len(self._rest) >= SIZE.size

    @property
    def unsettled_bytes(self) -> int:
        """The bytes of frames that were handled since `take_up` or `settled`."""
        return self._start

    @property
    def has_part(self) -> bool:
        """Whether a part of a frame is there, and the socket may have more of it."""
        return self._end > self._start or (self._large is not None and not self._is_drained)

    def take_up(self) -> None:
        """Begin a turn of this connection on the shared memory."""
        rest, self._rest = self._rest, b""
        self._begin_with(rest)

    def _begin_with(self, rest: bytes) -> None:
        self._memory = SHARED_MEMORY.free()
        self._start, self._end = 0, len(rest)
        self._memory[: self._end] = rest

    def settled(self) -> None:
        """Free the memory of handled frames: the next bytes are received from the memory's start on."""
        if self._lent is not None:
            lent, self._lent = self._lent, None
            SPARES.give(lent)
        if self._start:
            self._begin_with(bytes(memoryview(self._memory)[self._start : self._end]))

    def put_aside(self) -> None:
        """Copy the unhandled bytes out of the shared memory, which another connection may use then.

        Raises: `RefusedFrameError`, if this one may not keep a part of a frame.
        """
        self._rest = bytes(memoryview(self._memory)[self._start : self._end])
        self._start = self._end = 0
        if self.has_rest:
            size: int = SIZE.unpack_from(self._rest)[0]
            if size > len(self._rest) and not self._limits.may_read(size):
                raise RefusedFrameError(f"no memory for a frame of {size} bytes")

    def forget(self) -> None:
        """Drop all memory: the connection is closed."""
        self._rest, self._large, self._lent = b"", None, None
        self._start = self._end = 0

    def receive(self, sock: socket.socket) -> tuple[int, bool]:
        """Receive once: the number of bytes, and whether there was room for no more. Raises: `OSError`."""
        if self._large is not None:
            if self._filled == len(self._large):
                self._large += bytes(min(self._filled, self._size - self._filled))
            count = self._receive_large(memoryview(self._large), sock)
            return count, not self._is_drained
        room = SCRATCH if self._was_large else min(AT_ONCE, SHARED - self._end)
        count = sock.recv_into(memoryview(self._memory)[self._end :], room)
        self._end += count
        return count, count == room

    def _receive_large(self, memory: memoryview, sock: socket.socket) -> int:
        """Receive as much of a large frame as the socket has: it comes in pieces of the size of the system's buffers."""
        before = self._filled
        end = min(self._size, len(memory), before + LARGE_AT_ONCE)
        self._is_drained = False
        while self._filled < end:
            try:
                count = sock.recv_into(memory[self._filled : min(self._size, len(memory))])
            except (BlockingIOError, InterruptedError):
                if self._filled == before:
                    raise
                self._is_drained = True
                break
            if count == 0:
                break
            self._filled += count
        return self._filled - before

    def next(self) -> memoryview | None:
        """The next frame, if all of it is there. Raises: `RefusedFrameError`."""
        if self._large is not None:
            return self._whole_large() if self._filled == self._size else None
        start, end = self._start + SIZE.size, self._end
        if start > end:
            return None
        size: int = SIZE.unpack_from(self._memory, self._start)[0]
        if not check_frame_size(size, self._limits.largest_frame):
            raise RefusedFrameError(f"a frame of {size} bytes")
        following = start + size
        if following > end:
            if size > LARGE:
                self._begin_large(size, start)
            return None
        self._start = following
        self._was_large = False
        frame = memoryview(self._memory)[start:following]
        return frame if size > COPIED else memoryview(bytes(frame))

    def _begin_large(self, size: int, start: int) -> None:
        """Move the first part of a large frame into memory of its own."""
        if not self._limits.may_read(size):
            raise RefusedFrameError(f"no memory for a frame of {size} bytes")
        self._large, self._size, self._filled = SPARES.take(size), size, self._end - start
        self._is_drained = False
        self._large[: self._filled] = memoryview(self._memory)[start : self._end]
        self._end = self._start

    def _whole_large(self) -> memoryview:
        self._lent, self._large, self._was_large = self._large, None, True
        assert self._lent is not None
        return memoryview(self._lent)[: self._size]

    @property
    def lends_large(self) -> bool:
        """Whether the last frame was a large one: its memory is to be used for the next."""
        return self._lent is not None
