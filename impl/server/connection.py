"""One client's connection: frames in, answers out in the order of the requests, and a limit on both.

All connections receive into the same memory, one after the other, and each handles its whole frames there: nothing is
copied, and records are views into that memory. A frame of which only a part has come goes on in memory of its own, which is
used again when the request has been handled. Answers that are ready when a connection has handled what it received leave
together. What cannot be sent at once waits; while too much waits, or too many requests are unanswered, nothing more is read.
"""

import errno
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, Protocol

from impl.server.answers import Answers
from impl.storage import FileSlice
from spec.broker.clients.versions import check_frame_size

LOG = logging.getLogger("kspec.network")

RECEIVED_AT_ONCE = 256 << 10
"""Bytes that one call receives at most, besides the rest of a frame. More would no longer stay in a processor's cache."""

COPIED = 4 << 10
"""Frames up to this size are copied: whoever keeps a view into a small one shall not hold all that came with it."""

HANDLED_BEFORE_SENDING = 512 << 10
"""Bytes of requests that are handled before their answers leave; a client that waits for one shall not wait long."""

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


class Received:
    """The memory that connections receive into. Whoever keeps a view keeps the memory, and the next one gets another."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = bytearray(size)

    def memory(self) -> bytearray:
        """Memory that nobody looks at."""
        if has_views(self._memory):
            self._memory = bytearray(self._size)
        return self._memory


RECEIVED = Received(RECEIVED_AT_ONCE)
"""That of this process."""

SIZE = Struct(">i")


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
        self._rest = b""
        """What was received and is not handled yet: fewer bytes than tell a frame's size, or frames beyond the limit."""
        self._frame: bytearray | None = None
        """Memory for the frame that is being received, which may be larger than the frame."""
        self._size = 0
        self._filled = 0
        self._reading = False
        self._writing = False
        self._answers = Answers()
        self._out: deque[Any] = deque()
        self._unsent = 0
        self._gathers = False
        """Whether answers wait until what was received is handled."""
        self._resume_reading()

    # ---- receiving

    @property
    def unanswered(self) -> int:
        """Requests that have no answer yet, or whose answer waits for an earlier one."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """Memory that the connection holds for what it receives and sends."""
        return (self._size if self._frame is not None else 0) + len(self._rest) + self._unsent

    def _is_full(self) -> bool:
        return len(self._answers) >= MOST_UNANSWERED or self._unsent > MOST_UNSENT

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)
            self._look_at_rest()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _look_at_rest(self) -> None:
        """See that frames are handled that were received before: nothing may come any more that would tell the loop."""
        if self._reading and self._has_frames():
            self._loop.call_soon(self._on_rest)

    def _on_rest(self) -> None:
        if self._reading and self._has_frames():
            self._on_readable()

    def _has_frames(self) -> bool:
        """Whether the rest is not just the beginning of a size."""
        return len(self._rest) >= SIZE.size

    def _on_readable(self) -> None:
        """Handle what is there. The answers that are ready leave together: that saves most of the calls that send."""
        self._gathers = True
        try:
            self._receive_all()
        finally:
            self._gathers = False
        self._send_gathered()
        self._look_at_rest()

    def _send_gathered(self) -> None:
        if self._out and not self._writing and not self.closed:
            self._send()

    def _receive_all(self) -> None:
        received, sent_at = 0, HANDLED_BEFORE_SENDING
        while received < READ_AT_ONCE and not self.closed:
            if self._is_full():
                self._send_gathered()
                if self._is_full():
                    self._pause_reading()
                    return
            if self._has_frames():
                rest, self._rest = self._rest, b""
                self._split(rest, 0, len(rest))
                continue
            try:
                count, asked = self._receive()
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
            if count < asked and self._frame is None and not self._has_frames():
                return  # a client that sends more will have sent a part of it
            if received >= sent_at:
                sent_at = received + HANDLED_BEFORE_SENDING
                self._send_gathered()

    def _receive(self) -> tuple[int, int]:
        """Receive and handle what is there: how many bytes, and for how many there was room."""
        memory = RECEIVED.memory()
        if self._frame is not None:
            return self._receive_frame(self._frame, memory)
        start = len(self._rest)
        count = self._sock.recv_into(memoryview(memory)[start:])
        if count:
            memory[:start], self._rest = self._rest, b""
            self._split(memory, 0, start + count)
        return count, RECEIVED_AT_ONCE - start

    def _receive_frame(self, frame: bytearray, memory: bytearray) -> tuple[int, int]:
        """Receive the rest of a frame, and what comes behind it."""
        left = self._size - self._filled
        count = self._sock.recvmsg_into([memoryview(frame)[self._filled : self._size], memory])[0]
        if count < left:
            self._filled += count
            return count, left
        self._frame = None
        self._owner.on_frame(self, memoryview(frame)[: self._size])
        SPARES.give(frame)
        if count > left:
            self._split(memory, 0, count - left)
        return count, left + RECEIVED_AT_ONCE

    def _split(self, memory: bytearray | bytes, position: int, end: int) -> None:
        """Handle the frames between two positions. What is left of the last one is kept; and all that is too much now."""
        while end - position >= SIZE.size and not self.closed:
            (size,) = SIZE.unpack_from(memory, position)
            if not check_frame_size(size, self._owner.largest_frame):
                LOG.warning("closing %s:%d: a frame of %d bytes", self.host, self.port, size)
                self.close()
                return
            if self._is_full():
                break
            start, following = position + SIZE.size, position + SIZE.size + size
            if following > end:
                self._begin_frame(size, memoryview(memory)[start:end])
                return
            frame = memoryview(memory)[start:following]
            self._owner.on_frame(self, frame if size > COPIED else memoryview(bytes(frame)))
            position = following
        if not self.closed:
            self._rest = bytes(memoryview(memory)[position:end])

    def _begin_frame(self, size: int, first: memoryview) -> None:
        """A part of a frame has come."""
        if not self._owner.may_read(size):
            LOG.warning("closing %s:%d: no memory for a frame of %d bytes", self.host, self.port, size)
            self.close()
            return
        self._frame, self._size, self._filled = SPARES.take(size), size, len(first)
        self._frame[: self._filled] = first

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
        if not self._gathers:
            self._send_gathered()
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
        """Close the connection, whatever waits. What only waited for the rest of the same requests leaves before that."""
        if self._gathers:
            self._gathers = False
            self._send_gathered()
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
        self._rest = b""
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
