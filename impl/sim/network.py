"""A virtual network: frames with delays, in order on each connection; cut connections; nodes that do not reach each other.

A process that is gone closes its connections, so that the other side knows at once. A node that is only out of reach leaves
the other side waiting until its time is over.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple, Protocol, TypeAlias

from impl.broker.calls import Ask
from impl.server.network.answers import Answers
from impl.sim.clock import Clock
from impl.wire.frames import RequestHeader
from impl.wire.passing import Passer, passer_of
from impl.wire.requests import Sent, read_response, request_parts, sent
from impl.wire.values import Message
from impl.wire.writing import joined

STRAGGLER_MS = 1_000
"""How long a frame is under way at most that takes much longer than others."""

RETRY_MS = 40
"""How soon a frame tries again to get through to a node that is out of reach."""

Take = Callable[[Message | None], None]


class Request(NamedTuple):
    """A request as its server would decode it."""

    key: int
    version: int
    correlation: int
    message: Message


Answer: TypeAlias = tuple[int, Message]
"""An answer as its client would decode it: the number of its request, and its content."""

Frame: TypeAlias = bytes | Request


@cache
def _request_passer(api: str, version: int) -> Passer:
    return passer_of(f"{api}Request", version)


@cache
def _answer_passer(api: str, version: int) -> Passer:
    return passer_of(f"{api}Response", version)


def request_frame(api: Sent, version: int, correlation: int, message: Message, coded: bool) -> Frame:
    """A request on its way."""
    if coded:
        return joined(request_parts(api, version, correlation, message))[4:]
    return Request(api.key, version, correlation, _request_passer(api.name, version)(message))


def answer_frame(header: RequestHeader, message: Message) -> Answer:
    """An answer that is passed on as it is."""
    assert header.api is not None
    return header.correlation, _answer_passer(header.api.name, header.version)(message)


class Server(Protocol):
    """A node as the network knows it: what stands at the other end of a connection."""

    node_id: int
    incarnation: int
    """A number of its process; another one after each start."""
    busy_until: int
    """Until when it can send nothing (ms)."""

    @property
    def serves(self) -> bool:
        """Whether it accepts connections."""

    def last_version(self, api: str) -> int | None:
        """The highest version of an API that it offers."""

    def deliver(self, connection: "Line", frame: Frame) -> None:
        """A request has arrived."""

    def hung_up(self, connection: "Line") -> None:
        """A connection is closed."""


class Client(Protocol):
    """Who asks: a node, or a client of the cluster."""

    node_id: int
    incarnation: int
    busy_until: int

    def run(self, action: Callable[..., None], *given: Any) -> None:
        """Do something in this process: later if it is paused, never if it is gone."""


@dataclass(eq=False, slots=True)
class Waiting:
    """A request under way."""

    asked: Ask
    version: int
    correlation: int
    take: Take
    until: tuple[int, int]
    """When its time is over (ms), and its place among the events of that time."""


@dataclass(eq=False)
class Line:
    """One connection, as the server's shell sees it: it has the face of `impl.server.network.connection.Connection`."""

    network: "Network"
    client: Client
    server: Server
    purpose: str
    incarnation: int
    """Of the server: what arrives later is not for its next process."""
    host: str = "127.0.0.1"
    port: int = 0
    local_host: str = "127.0.0.1"
    local_port: int = 0
    last_used: float = 0.0
    closed: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    lost: bool = False
    """Whether nothing arrives any more."""
    arrives_from: int = 0
    """When what is under way arrives at the earliest (ms)."""
    lost_with_next: tuple[int | None] | None = None
    """If it will be lost once the next request is sent: after how long (ms) that arrives, if it does."""
    under_way: deque[Waiting] = field(default_factory=deque)
    watched_until: list[tuple[int, int]] = field(default_factory=list)
    """When somebody looks whether a request's time is over."""
    free_at: list[int] = field(default_factory=lambda: [0, 0])
    """When the last frame back, and the last one forth, has arrived: the next one comes after it."""
    _answers: Answers = field(default_factory=Answers)

    @property
    def unanswered(self) -> int:
        """Requests that have no answer yet."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """Nothing is held."""
        return 0

    def new_place(self) -> int:
        """A place for the answer of the request that has just come."""
        return self._answers.new_place()

    def answer(self, place: int, parts: list[Any]) -> None:
        """Send an answer once all earlier ones are sent."""
        if self.closed:
            return
        for ready in self._answers.put(place, parts):
            if ready:
                self.network.send_back(self, ready[0] if isinstance(ready[0], tuple) else joined(ready)[4:])

    def close(self) -> None:
        """Cut the connection: the server forgets it at once, the client learns it, if it can be reached."""
        if not self.closed:
            self.closed = True
            self._answers.clear()
            self.server.hung_up(self)
            self.network.cut(self)


class Network:
    """All connections. Two nodes between which `blocked` stands do not reach each other.

    `coded`: whether requests are bytes on their way, as on a real wire; by default messages are passed on as they are.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        delays_ms: tuple[int, int] = (1, 4),
        stragglers: float = 0.0,
        coded: bool = False,
    ) -> None:
        self.coded = coded
        self._clock = clock
        self._draw = random.random
        self._least_ms, self._spread = delays_ms[0], delays_ms[1] - delays_ms[0] + 1
        self._stragglers = stragglers / 100
        self._lines: dict[tuple[int, int, int, str], Line] = {}
        self._correlation = 0
        self.servers: dict[int, Server] = {}
        self.blocked: set[frozenset[int]] = set()
        self.late: dict[tuple[int, str, bool], int] = {}
        """When what a node's connections for a purpose carry, forth or back, arrives at the earliest (ms)."""
        self.sluggish: dict[tuple[int, str, bool], int] = {}
        """How much longer (ms) each frame takes that a node's connections for a purpose carry, forth or back."""
        self.lost_with_next: dict[tuple[int, str], int] = {}
        """Whose next request for a purpose, or of an API, will lose its connection, and after how long (ms) it arrives even
        so.
        """
        self.told_of_next: dict[tuple[int, str], Callable[[Line], None]] = {}
        """Who is told of a node's next request for a purpose, once that is under way."""

    def is_blocked(self, one: int, other: int) -> bool:
        """Whether two nodes do not reach each other now."""
        return frozenset((one, other)) in self.blocked

    def _delay(self) -> int:
        drawn = self._draw()
        if drawn < self._stragglers:
            return int(self._draw() * STRAGGLER_MS)
        return self._least_ms + int(drawn * self._spread)

    # ---- requests

    def ask(self, client: Client, asked: Ask, take: Take) -> None:
        """Send a request, and take its answer, or none: at once if nobody listens, later if nobody answers."""
        server = self.servers.get(asked.channel.node)
        if server is None or not server.serves:
            self._clock.after(self._delay(), client.run, take, None)
            return
        line = self._line(client, server, asked.channel.purpose)
        offered = server.last_version(asked.api)
        if offered is None:
            self._clock.after(self._delay(), client.run, take, None)
            return
        api = sent(asked.api)
        version = min(offered, api.versions.last)
        self._correlation += 1
        waiting = Waiting(asked, version, self._correlation, take, (0, 0))
        line.under_way.append(waiting)
        frame = request_frame(api, version, self._correlation, asked.message, self.coded)
        self._carry(line, True, frame)
        waiting.until = until = (self._clock.now_ms + asked.timeout_ms, self._clock.new_number())
        if not line.watched_until or until < line.watched_until[-1]:
            self._watch(line, until)
        if self.lost_with_next:
            for key in ((client.node_id, line.purpose), (client.node_id, asked.api)):
                after_ms = self.lost_with_next.pop(key, None)
                if after_ms is not None:
                    line.lost_with_next = (after_ms,)
        if self.told_of_next:
            told = self.told_of_next.pop((client.node_id, line.purpose), None)
            if told is not None:
                self._clock.at(self._clock.now_ms, told, line)
        if line.lost_with_next is not None:
            (after_ms,) = line.lost_with_next
            self._clock.at(self._clock.now_ms, self.lose, line, after_ms)

    def _line(self, client: Client, server: Server, purpose: str) -> Line:
        key = (client.node_id, client.incarnation, server.node_id, purpose)
        line = self._lines.get(key)
        if line is None or line.closed or line.server is not server:
            line = self._lines[key] = Line(self, client, server, purpose, server.incarnation)
        return line

    def _carry(self, line: Line, forth: bool, frame: Frame | Answer | None) -> None:
        """Let a frame arrive after its time, behind those before it; none tells the client that the server has closed."""
        now_ms, free_at = self._clock.now_ms, line.free_at
        busy_until = (line.client if forth else line.server).busy_until
        due = (busy_until if busy_until > now_ms else now_ms) + self._delay()
        free = free_at[forth]
        if self.late or self.sluggish:
            way = line.client.node_id, line.purpose, forth
            due += self.sluggish.get(way, 0)
            free = max(free, self.late.get(way, 0))
        free_at[forth] = due = free if free > due else due
        self._clock.at(due, self._go, line, forth, frame)

    def _go(self, line: Line, forth: bool, frame: Any) -> None:
        """A frame's time has come; while the way is blocked it tries again.

        A request reaches its server even if nobody waits for its answer any more.
        """
        if line.lost:
            return
        if line.arrives_from > self._clock.now_ms:
            self._clock.at(line.arrives_from, self._go, line, forth, frame)
        elif self.blocked and self.is_blocked(line.client.node_id, line.server.node_id):
            later = self._clock.now_ms + RETRY_MS
            line.free_at[forth] = max(line.free_at[forth], later)
            self._clock.at(later, self._go, line, forth, frame)
        elif forth:
            server = line.server
            if server.serves and server.incarnation == line.incarnation:
                server.deliver(line, frame)
        elif frame is not None:
            line.client.run(self._answered, line, frame)
        else:
            self._drop(line)

    def send_back(self, line: Line, frame: Answer | bytes) -> None:
        """An answer leaves the server."""
        self._carry(line, False, frame)

    def _answered(self, line: Line, frame: Answer | bytes) -> None:
        if not line.under_way:
            return
        waiting = line.under_way.popleft()
        if isinstance(frame, tuple):
            correlation, message = frame
        else:
            correlation, message = read_response(waiting.asked.api, waiting.version, memoryview(frame))
        assert correlation == waiting.correlation, f"the answer to {correlation}, not to {waiting.correlation}"
        waiting.take(message)

    # ---- ends

    def hold(self, line: Line, forth: bool, wait_ms: int) -> None:
        """What a connection carries arrives after a while: all that is under way, or only what is sent back from now on."""
        until_ms = self._clock.now_ms + wait_ms
        if forth:
            line.arrives_from = max(line.arrives_from, until_ms)
        else:
            line.free_at[False] = max(line.free_at[False], until_ms)

    def lines_from(self, node_id: int, purpose: str) -> list[Line]:
        """The open connections that a node has made for a purpose."""
        return [one for key, one in self._lines.items() if key[0] == node_id and one.purpose == purpose]

    def lines_of(self, node_id: int) -> list[Line]:
        """The open connections of a node, as client or as server, in the order of their making."""
        return [one for one in self._lines.values() if node_id in (one.client.node_id, one.server.node_id)]

    def lose(self, line: Line, after_ms: int | None) -> None:
        """A connection is lost. The client learns it now; what is under way arrives after a while (ms), or never."""
        line.lost = after_ms is None
        line.arrives_from = self._clock.now_ms + (after_ms or 0)
        self._clock.at(max(line.arrives_from, *line.free_at) + 1, line.close)
        self._drop(line)

    def _watch(self, line: Line, until: tuple[int, int]) -> None:
        """Look at that time whether a request has no answer yet."""
        line.watched_until.append(until)
        self._clock.at_place(*until, self._look_at, line)

    def _look_at(self, line: Line) -> None:
        """If a client's time is over, it closes the connection, which the server may not learn."""
        over = line.watched_until.pop()
        if not line.under_way:
            return
        first = min(waiting.until for waiting in line.under_way)
        if first <= over:
            self._drop(line)
        elif not line.watched_until or first < line.watched_until[-1]:
            self._watch(line, first)

    def _drop(self, line: Line) -> None:
        """The client has no connection any more: all that it waits for has no answer."""
        waiting, line.under_way = line.under_way, deque()
        key = (line.client.node_id, line.client.incarnation, line.server.node_id, line.purpose)
        if self._lines.get(key) is line:
            del self._lines[key]
        for one in waiting:
            line.client.run(one.take, None)

    def cut(self, line: Line) -> None:
        """The server has closed a connection."""
        self._carry(line, False, None)

    def forget(self, node_id: int, sent_arrives_ms: int | None = None) -> None:
        """A process is gone: those who wait for it learn it, unless they cannot be reached.

        `sent_arrives_ms`: after how long what it has sent arrives even so, and the end of its connections then.
        """
        for line in [one for one in self._lines.values() if one.server.node_id == node_id]:
            line.closed = True
            self.cut(line)
        for key in [key for key in self._lines if key[0] == node_id]:
            line = self._lines.pop(key)
            line.under_way.clear()
            if sent_arrives_ms is not None:
                line.arrives_from = self._clock.now_ms + sent_arrives_ms
                self._clock.at(max(line.arrives_from, line.free_at[True]) + 1, line.close)
            elif not line.closed:
                line.closed = True
                line.server.hung_up(line)
