"""One client's connection: requests in, responses out in the order of the requests, and a limit on both.

Requests that have arrived together are handled together. Then the owner's `settle` runs, for work that is cheaper for many
requests at once, and the responses that are ready leave together.

No connection starves another. Each handles requests for a few milliseconds, and then waits for its next turn (`Traffic`).
While its socket buffer is full, because the client does not read its responses, none of its requests is handled: at most
one response is made for which the client has no room. Kafka mutes a channel until its response is sent,
`SocketServer.Processor`.
"""

import errno
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Protocol

from kspec.impl.server.network.answers import Answers
from kspec.impl.server.network.receiving import Frames, RefusedFrameError
from kspec.impl.storage import FileSlice
from kspec.impl.wire.writing import MEMORY, Part

LOG = logging.getLogger("kspec.network")

HANDLED_TOGETHER = 896 << 10
"""Bytes of requests that are handled before their responses leave, so that no client waits long."""

READ_AT_ONCE = 2 << 20
"""Bytes that one connection may receive before others have their turn."""

SENT_AT_ONCE = 8 << 20
"""Bytes that one connection may send before others have their turn."""

MOST_UNANSWERED = 32
"""Requests of one connection that are being handled at a time."""

MOST_UNSENT = 1 << 20
"""Bytes in memory that wait to be sent, above which no more requests are taken."""

LARGE_ANSWERS = 64 << 10
"""Bytes of responses that are sent before the next request of the connection is handled: the client may not read them."""

MOST_UNSENT_IN_ALL = 256 << 20
"""Bytes in memory that wait to be sent on all connections of a process. Above that, the connection with most is closed."""

TURN_SECONDS = 0.002
"""The length of a connection's turn, in which it handles requests that have arrived."""

ROUND_SECONDS = 0.004
"""The time for all further turns in one round of the event loop."""

SMALL_SLICE = 16 << 10
"""Pieces of files up to this size are read and sent with the rest; larger ones go out with `sendfile`."""

IOV_MAX = 64


class Loop(Protocol):
    """The part of an event loop that is used here."""

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call back when a file descriptor is readable."""

    def remove_reader(self, fd: int, /) -> object:
        """Remove the callback."""

    def add_writer(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call back when a file descriptor is writable."""

    def remove_writer(self, fd: int, /) -> object:
        """Remove the callback."""

    def call_soon(self, callback: Callable[[], object], /) -> object:
        """Call in the next round."""


@dataclass(slots=True)
class UnsentSlice:
    """A piece of a file of which not all is sent: where the rest begins, and how long it is (bytes)."""

    piece: FileSlice
    position: int
    length: int


class Owner(Protocol):
    """The handler of a connection's frames."""

    largest_frame: int

    def begin(self) -> None:
        """Prepare for frames of one connection, and then `settle`."""

    def on_frame(self, connection: "Connection", frame: memoryview) -> None:
        """Handle one whole request."""

    def settle(self, connection: "Connection", last: bool) -> None:
        """Complete the work on all frames so far, which are invalid after it. `last`: whether no frame follows."""

    def on_closed(self, connection: "Connection") -> None:
        """Take note that the connection is closed, by whichever side."""

    def may_read(self, size: int) -> bool:
        """Whether there is memory for a frame of this size."""


class ConnectionGroup:
    """The connections whose responses wait until the requests of one of them are handled.

    A follower's fetch may complete many requests of a producer, and those of other producers: each connection sends once.
    """

    def __init__(self) -> None:
        self._handles = False
        self._connections: dict[Connection, None] = {}

    def begin(self) -> None:
        """Let responses wait from now on."""
        self._handles = True

    def takes(self, connection: "Connection") -> bool:
        """Whether the responses of a connection wait."""
        if self._handles:
            self._connections[connection] = None
        return self._handles

    def send(self) -> None:
        """Send all waiting responses."""
        connections, self._connections = self._connections, {}
        for connection in connections:
            connection.send_gathered()

    def end(self) -> None:
        """Send all waiting responses, and let those that follow not wait."""
        self._handles = False
        self.send()

    def forget(self, connection: "Connection") -> bool:
        """Forget a connection that is being closed; whether it had waiting responses."""
        return self._connections.pop(connection, self) is None


GATHERING = ConnectionGroup()
"""The group of this process, whose connections are handled one after the other."""


class Traffic:
    """The common budget of connections: time to handle requests, and memory for responses that clients do not read."""

    def __init__(self) -> None:
        self.unsent = 0
        """Bytes that wait to be sent."""
        self.stuck: dict[Connection, None] = {}
        """The connections whose socket buffer is full."""
        self._unfinished: dict[Connection, None] = {}
        self._is_called = False

    def wait_for_turn(self, connection: "Connection", loop: Loop) -> None:
        """Queue a connection with unhandled requests for its next turn."""
        self._unfinished[connection] = None
        if not self._is_called:
            self._is_called = True
            loop.call_soon(partial(self._round, loop))

    def _round(self, loop: Loop) -> None:
        """Give some connections their turn; requests of other connections are handled between two rounds."""
        self._is_called = False
        end = perf_counter() + ROUND_SECONDS
        while self._unfinished:
            connection = next(iter(self._unfinished))
            del self._unfinished[connection]
            connection.take_turn()
            if perf_counter() >= end:
                break
        if self._unfinished and not self._is_called:
            self._is_called = True
            loop.call_soon(partial(self._round, loop))

    def queue(self, size: int) -> None:
        """Count bytes that wait to be sent; above the limit, connections that hold most and read nothing are closed."""
        self.unsent += size
        while self.unsent > MOST_UNSENT_IN_ALL and self.stuck:
            worst = max(self.stuck, key=lambda one: one.held_bytes)
            LOG.warning("closing %s:%d: %d bytes wait for it, and it reads none", worst.host, worst.port, worst.held_bytes)
            worst.close()


class Connection:
    """A client's connection. `on_closed` of its owner is called once. `traffic`: the budget that it shares with others."""

    def __init__(
        self, loop: Loop, sock: socket.socket, owner: Owner, address: tuple[str, int], traffic: Traffic | None = None
    ) -> None:
        self.host, self.port = address
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
        self._out: deque[memoryview | UnsentSlice] = deque()
        self._unsent = 0
        self._traffic = traffic or Traffic()
        self._turn_ends = 0.0
        self._is_unfinished = False
        """Whether its turn was over before all received requests were handled."""
        self._handles = False
        """Whether received requests are being handled."""
        self._holds = 0
        """The number of unfinished parts of requests; while there are any, the next request waits."""
        self._resume_reading()

    # ---- receiving

    @property
    def unanswered(self) -> int:
        """The number of requests without a response, or whose response waits for an earlier one."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """The memory that the connection holds for requests and responses (bytes)."""
        return self._frames.held_bytes + self._unsent

    def _is_full(self) -> bool:
        is_busy = self._writing or self._holds > 0 or len(self._answers) >= MOST_UNANSWERED
        return is_busy or self._unsent > MOST_UNSENT

    def hold(self) -> None:
        """Let no further request be handled until `release` has been called as often."""
        self._holds += 1

    def release(self) -> None:
        """Undo one `hold`; after the last one the next requests are handled."""
        self._holds -= 1
        if not self._reading and not self._is_full():
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._reading or self.closed:
            return
        if self._frames.has_rest:  # the socket may never become readable again
            self._traffic.wait_for_turn(self, self._loop)
            return
        self._reading = True
        self._loop.add_reader(self._fd, self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def take_turn(self) -> None:
        """Handle the requests that were put aside, and read again."""
        if self.closed or self._reading or self._is_full():
            return
        self._reading = True
        self._loop.add_reader(self._fd, self._on_readable)
        self._on_readable()

    def _on_readable(self) -> None:
        """Receive and handle requests."""
        self._handles = True
        GATHERING.begin()
        self._owner.begin()
        self._frames.take_up()
        self._turn_ends, self._is_unfinished = perf_counter() + TURN_SECONDS, False
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
        if self._is_unfinished and self._reading and self._frames.has_rest:
            self._pause_reading()
            self._resume_reading()

    def _settle(self, last: bool = False) -> None:
        """Complete postponed work, and send the responses."""
        self._owner.settle(self, last)
        GATHERING.send()
        self._frames.settled()

    def send_gathered(self) -> None:
        """Send the waiting responses."""
        if self._out and not self._writing and not self.closed:
            self._send()

    def _receive_all(self) -> None:
        """Receive until the socket is empty, or the connection has received its share.

        After whole frames, and fewer bytes than there was room for, the socket is empty: another system call would cost
        more than the loop's next event.
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
        """Handle all received frames; whether more may be received."""
        while not self.closed:
            if self._is_full():
                self._settle()
                if self._is_full():
                    self._pause_reading()
                    return False
            if not self._handle_next():
                break
            if self._frames.lends_large or self._frames.unsettled_bytes >= HANDLED_TOGETHER or self._unsent > LARGE_ANSWERS:
                self._settle()
            if perf_counter() >= self._turn_ends:
                self._is_unfinished = True
                return False
        return True

    def _handle_next(self) -> bool:
        frame = self._frames.next()
        if frame is None:
            return False
        self._owner.on_frame(self, frame)
        return True

    # ---- responses

    def new_place(self) -> int:
        """A place for the response to the request that has just arrived."""
        return self._answers.new_place()

    def send(self, parts: list[Part]) -> None:
        """Send a request, after those before it."""
        self.answer(self.new_place(), parts)

    def answer(self, place: int, parts: list[Part]) -> None:
        """Send a response once all earlier ones are sent. Without parts the request gets none."""
        if self.closed:
            return
        for ready in self._answers.put(place, parts):
            for part in ready:
                self._put(part)
        if not GATHERING.takes(self):
            self.send_gathered()
        if not self._reading and not self._is_full():
            self._resume_reading()

    def _put(self, part: Part) -> None:
        if self.closed:
            return
        if isinstance(part, MEMORY):
            memory = memoryview(part)
        elif isinstance(part, FileSlice) and part.length > SMALL_SLICE:
            self._out.append(UnsentSlice(part, part.position, part.length))
            return
        else:
            memory = memoryview(part.bytes())
        self._out.append(memory)
        self._unsent += len(memory)
        self._traffic.queue(len(memory))

    def _send(self) -> None:
        sent_now = 0
        try:
            while self._out and sent_now < SENT_AT_ONCE:
                parts = len(self._out)
                first = self._out[0]
                sent = self._send_slice(first) if isinstance(first, UnsentSlice) else self._send_memory()
                if sent == 0:
                    self.close()
                    return
                sent_now += sent
                self.bytes_out += sent
                if len(self._out) == parts:  # the socket buffer is full
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
            self._traffic.stuck[self] = None
            self._loop.add_writer(self._fd, self._on_writable)
        elif not self._out and self._writing:
            self._stop_writing()

    def _stop_writing(self) -> None:
        self._writing = False
        self._traffic.stuck.pop(self, None)
        self._loop.remove_writer(self._fd)

    def _send_memory(self) -> int:
        parts: list[memoryview] = []
        for part in self._out:
            if isinstance(part, UnsentSlice) or len(parts) == IOV_MAX:
                break
            parts.append(part)
        sent = self._sock.send(parts[0]) if len(parts) == 1 else self._sock.sendmsg(parts)
        self._unsent -= sent
        self._traffic.unsent -= sent
        left = sent
        for part in parts:
            if left < len(part):
                self._out[0] = part[left:]
                break
            left -= len(part)
            self._out.popleft()
            if not left:
                break
        return sent

    def _send_slice(self, unsent: UnsentSlice) -> int:
        sent = os.sendfile(self._fd, unsent.piece.handle.fileno(), unsent.position, unsent.length)
        if sent == unsent.length:
            self._out.popleft()
        else:
            unsent.position += sent
            unsent.length -= sent
        return sent

    def _on_writable(self) -> None:
        self._send()
        if not self.closed and not self._reading and not self._is_full():
            self._resume_reading()

    # ---- the end

    def close(self) -> None:
        """Close the connection. Responses that only waited for the other requests of this turn are sent before."""
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
            self._stop_writing()
        self._traffic.unsent -= self._unsent
        self._unsent = 0
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
