"""One client's connection: frames in, answers out in the order of the requests, and a limit on both.

A frame is received into memory of its own, and records are views into it. That memory is used again when the request has
been handled, unless somebody has kept a view. What cannot be sent at once waits; while too much waits, or too many requests
are unanswered, nothing more is read.
"""

import errno
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from impl.server.answers import Answers
from impl.storage import FileSlice
from spec.broker.clients.versions import check_frame_size

LOG = logging.getLogger("kspec.network")

SCRATCH = 8 << 10
"""Bytes that are received before the size of a frame is known."""

READ_AT_ONCE = 2 << 20
"""Bytes that one connection may receive before others have their turn."""

SENT_AT_ONCE = 8 << 20
"""Bytes that one connection may send before others have their turn."""

MOST_UNANSWERED = 32
"""Requests of one connection that are being handled at a time."""

MOST_UNSENT = 1 << 20
"""Bytes in memory that wait to be sent, above which no more requests are taken."""

SMALL_SLICE = 16 << 10
"""Pieces of files up to this size are read and sent with the rest; larger ones go out with `sendfile`."""

IOV_MAX = 64

MOST_SPARES, LARGEST_SPARE = 2, 8 << 20
"""How much memory for frames is kept to be used again: so many pieces of so many bytes at most."""


class Loop(Protocol):
    """The parts of an event loop that are used."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> Any:
        """Call back when something can be read."""

    def remove_reader(self, fd: Any) -> Any:
        """Stop it."""

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> Any:
        """Call back when something can be written."""

    def remove_writer(self, fd: Any) -> Any:
        """Stop it."""

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Call in the next round."""


class Spares:
    """Memory that frames were received into, to be used again: the system takes as long to give some as to fill it."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """At least so many bytes, with any content."""
        for number, memory in enumerate(self._free):
            if len(memory) >= size:
                return self._free.pop(number)
        return bytearray(size)

    def give(self, memory: bytearray) -> None:
        """Take memory back, if nobody has a view into it; of what is too much, the smallest goes."""
        if len(memory) > LARGEST_SPARE or has_views(memory):
            return
        self._free.append(memory)
        if len(self._free) > MOST_SPARES:
            del self._free[min(range(len(self._free)), key=lambda number: len(self._free[number]))]


def has_views(memory: bytearray) -> bool:
    """Whether somebody has a view into some memory, whose size can then not be changed."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return True
    return False


SPARES = Spares()
"""Those of this process: connections receive one after the other."""


class Owner(Protocol):
    """Who handles the frames of a connection."""

    largest_frame: int

    def on_frame(self, connection: "Connection", frame: memoryview) -> None:
        """One whole request."""

    def on_closed(self, connection: "Connection") -> None:
        """The connection is closed, by whichever side."""

    def may_read(self, size: int) -> bool:
        """Whether there is room for a frame of this size."""


class Connection:
    """A client's connection. `on_closed` of its owner is called once."""

    def __init__(self, loop: Loop, sock: socket.socket, owner: Owner, address: tuple[str, int]) -> None:
        self.host, self.port = address
        self.local_host, self.local_port = sock.getsockname()[:2]
        self.client = ""
        self.last_used = time.monotonic()
        self.closed = False
        self.bytes_in = 0
        self.bytes_out = 0
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._owner = owner
        self._scratch = b""
        self._frame: bytearray | None = None
        """Memory for the frame that is being received, which may be larger than the frame."""
        self._size = 0
        self._filled = 0
        self._reading = False
        self._writing = False
        self._answers = Answers()
        self._out: deque[Any] = deque()
        self._unsent = 0
        self._resume_reading()

    # ---- receiving

    @property
    def unanswered(self) -> int:
        """Requests that have no answer yet, or whose answer waits for an earlier one."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """Memory that the connection holds for what it receives and sends."""
        return (self._size if self._frame is not None else 0) + self._unsent

    def _is_full(self) -> bool:
        return len(self._answers) >= MOST_UNANSWERED or self._unsent > MOST_UNSENT

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _on_readable(self) -> None:
        received = 0
        while received < READ_AT_ONCE and not self.closed:
            if self._is_full():
                self._pause_reading()
                return
            try:
                count = self._receive()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            if count == 0:
                self.close()
                return
            received += count
            self.bytes_in += count
            if self._frame is None and count < SCRATCH:
                return

    def _receive(self) -> int:
        """Receive what is there into the frame under way, or find out which frame comes next."""
        if self._frame is not None:
            count = self._sock.recv_into(memoryview(self._frame)[self._filled : self._size])
            self._filled += count
            if self._filled == self._size:
                memory, self._frame = self._frame, None
                self._owner.on_frame(self, memoryview(memory)[: self._size])
                SPARES.give(memory)
            return count
        data = self._sock.recv(SCRATCH)
        if data:
            self._split(self._scratch + data if self._scratch else data)
        return len(data)

    def _split(self, data: bytes) -> None:
        position, end = 0, len(data)
        view = memoryview(data)
        self._scratch = b""
        while end - position >= 4 and not self.closed:
            size = int.from_bytes(view[position : position + 4], "big", signed=True)
            if not check_frame_size(size, self._owner.largest_frame):
                LOG.warning("closing %s:%d: a frame of %d bytes", self.host, self.port, size)
                self.close()
                return
            start, position = position + 4, position + 4 + size
            if position > end:
                if not self._owner.may_read(size):
                    LOG.warning("closing %s:%d: no memory for a frame of %d bytes", self.host, self.port, size)
                    self.close()
                    return
                self._frame, self._size = SPARES.take(size), size
                self._filled = end - start
                self._frame[: self._filled] = view[start:end]
                return
            self._owner.on_frame(self, view[start:position])
        self._scratch = data[position:]

    # ---- answering

    def new_place(self) -> int:
        """A place for the answer of the request that has just come."""
        return self._answers.new_place()

    def answer(self, place: int, parts: list[Any]) -> None:
        """Send an answer once all earlier ones are sent. Without parts the request gets none."""
        if self.closed:
            return
        for ready in self._answers.put(place, parts):
            for part in ready:
                self._put(part)
        if not self._writing:
            self._send()
        if not self._reading and not self._is_full():
            self._resume_reading()

    def _put(self, part: Any) -> None:
        if isinstance(part, FileSlice):
            if part.length > SMALL_SLICE:
                self._out.append([part, part.position, part.length])
                return
            part = part.bytes()
        self._out.append(memoryview(part))
        self._unsent += len(part)

    def _send(self) -> None:
        sent_now = 0
        try:
            while self._out and sent_now < SENT_AT_ONCE:
                sent = self._send_slice() if isinstance(self._out[0], list) else self._send_memory()
                if sent == 0:
                    self.close()
                    return
                sent_now += sent
                self.bytes_out += sent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                LOG.warning("closing %s:%d: %s", self.host, self.port, error)
            self.close()
            return
        if self._out and not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._on_writable)
        elif not self._out and self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _send_memory(self) -> int:
        parts: list[memoryview] = []
        for part in self._out:
            if isinstance(part, list) or len(parts) == IOV_MAX:
                break
            parts.append(part)
        sent = self._sock.send(parts[0]) if len(parts) == 1 else self._sock.sendmsg(parts)
        self._unsent -= sent
        left = sent
        while left:
            first = self._out[0]
            if left < len(first):
                self._out[0] = first[left:]
                break
            left -= len(first)
            self._out.popleft()
        return sent

    def _send_slice(self) -> int:
        piece, position, length = self._out[0]
        sent = os.sendfile(self._fd, piece.handle.fileno(), position, length)
        if sent == length:
            self._out.popleft()
        else:
            self._out[0][1] += sent
            self._out[0][2] -= sent
        return sent

    def _on_writable(self) -> None:
        self._send()
        if not self.closed and not self._reading and not self._is_full():
            self._resume_reading()

    # ---- the end

    def close(self) -> None:
        """Close the connection, whatever waits."""
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._out.clear()
        self._answers.clear()
        self._frame = None
        self._sock.close()
        self._owner.on_closed(self)


def configure(sock: socket.socket, send_buffer: int, receive_buffer: int) -> None:
    """Set a client's socket as Kafka does: no delay, keep-alive, and buffers of these sizes in bytes unless they are -1."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
