"""One client's connection: frames in, answers out in the order of the requests, and a limit on both.

What came in one go is handled together. The answers that are ready then leave together, and the owner is told, who may
have put off until then what is cheaper to do for many requests at once. What cannot be sent at once waits; while too much
waits, or too many requests are unanswered, nothing more is read.
"""

import errno
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from impl.server.network.answers import Answers
from impl.server.network.receiving import Frames, RefusedFrameError
from impl.storage import FileSlice

LOG = logging.getLogger("kspec.network")

HANDLED_TOGETHER = 896 << 10
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


class Owner(Protocol):
    """Who handles the frames of a connection."""

    largest_frame: int

    def begin(self) -> None:
        """Frames of one connection follow, and then `settle`."""

    def on_frame(self, connection: "Connection", frame: memoryview) -> None:
        """One whole request."""

    def settle(self, connection: "Connection", last: bool) -> None:
        """Do what was put off until all frames are there. They are gone after that. `last`: none follow."""

    def on_closed(self, connection: "Connection") -> None:
        """The connection is closed, by whichever side."""

    def may_read(self, size: int) -> bool:
        """Whether there is room for a frame of this size."""


class Gathering:
    """The connections whose answers wait until what came on one of them is handled.

    A follower's fetch may complete many requests of a producer, and those of other producers: each connection sends once.
    """

    def __init__(self) -> None:
        self._handles = False
        self._connections: dict[Connection, None] = {}

    def begin(self) -> None:
        """From now on answers wait."""
        self._handles = True

    def takes(self, connection: "Connection") -> bool:
        """Whether the answers of a connection wait."""
        if self._handles:
            self._connections[connection] = None
        return self._handles

    def send(self) -> None:
        """All answers so far leave."""
        connections, self._connections = self._connections, {}
        for connection in connections:
            connection.send_gathered()

    def end(self) -> None:
        """All answers leave, and those that follow do not wait."""
        self._handles = False
        self.send()

    def forget(self, connection: "Connection") -> bool:
        """A connection is being closed: whether answers of it have waited."""
        return self._connections.pop(connection, self) is None


GATHERING = Gathering()
"""That of this process, whose connections are handled one after the other."""


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
        self._frames = Frames(owner)
        self._reading = False
        self._writing = False
        self._answers = Answers()
        self._out: deque[Any] = deque()
        self._unsent = 0
        self._handles = False
        """Whether what has come is being handled."""
        self._resume_reading()

    # ---- receiving

    @property
    def unanswered(self) -> int:
        """Requests that have no answer yet, or whose answer waits for an earlier one."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """Memory that the connection holds for what it receives and sends."""
        return self._frames.held_bytes + self._unsent

    def _is_full(self) -> bool:
        return len(self._answers) >= MOST_UNANSWERED or self._unsent > MOST_UNSENT

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)
            if self._frames.has_rest:  # nothing may come any more that would tell the loop
                self._loop.call_soon(self._on_rest)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _on_rest(self) -> None:
        if self._reading and self._frames.has_rest:
            self._on_readable()

    def _on_readable(self) -> None:
        """Handle what is there."""
        self._handles = True
        GATHERING.begin()
        self._owner.begin()
        self._frames.take_up()
        try:
            self._receive_all()
            self._frames.put_aside()
        except RefusedFrameError as error:
            LOG.warning("closing %s:%d: %s", self.host, self.port, error)
            self.close()
        finally:
            self._settle(last=True)
            self._handles = False
            GATHERING.end()

    def _settle(self, last: bool = False) -> None:
        """What was put off is done, and the answers leave."""
        self._owner.settle(self, last)
        GATHERING.send()
        self._frames.settled()

    def send_gathered(self) -> None:
        """Send the answers that have waited."""
        if self._out and not self._writing and not self.closed:
            self._send()

    def _receive_all(self) -> None:
        """Receive until nothing is left, or others shall have their turn.

        After whole frames, and fewer bytes than there was room for, the client has sent all for now: to look again would
        cost more than to be told.
        """
        received, was_full = 0, True
        while self._handle_all() and not self.closed and received < READ_AT_ONCE:
            if not was_full and not self._frames.has_part:
                return
            try:
                count, was_full = self._frames.receive(self._sock)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                count, was_full = 0, False
            if count == 0:
                self.close()
                return
            received += count
            self.bytes_in += count

    def _handle_all(self) -> bool:
        """Handle the frames that are there: whether more may be received."""
        while not self.closed:
            if self._is_full():
                self._settle()
                if self._is_full():
                    self._pause_reading()
                    return False
            if not self._handle_next():
                break
            if self._frames.lends_large or self._frames.unsettled_bytes >= HANDLED_TOGETHER:
                self._settle()
        return True

    def _handle_next(self) -> bool:
        frame = self._frames.next()
        if frame is None:
            return False
        self._owner.on_frame(self, frame)
        return True

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
        if not GATHERING.takes(self):
            self.send_gathered()
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
                parts = len(self._out)
                sent = self._send_slice() if isinstance(self._out[0], list) else self._send_memory()
                if sent == 0:
                    self.close()
                    return
                sent_now += sent
                self.bytes_out += sent
                if len(self._out) == parts:  # the system takes no more for now
                    break
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
        if self._handles:
            self._handles = False
            self._owner.settle(self, last=True)
        if GATHERING.forget(self):
            self.send_gathered()
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._out.clear()
        self._answers.clear()
        self._frames.forget()
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
