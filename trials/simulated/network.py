"""A virtual network: frames with delays, in order on each connection; lost connections; partitions between nodes.

The connections of a process that ends are closed, so that the other side knows at once. A node that is only out of reach
leaves the other side waiting until its timeout.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import NamedTuple, Protocol, TypeAlias, TypeVarTuple

from kspec.impl.broker.calls import Ask
from kspec.impl.server.network.answers import Answers
from kspec.impl.wire.frames import RequestHeader
from kspec.impl.wire.passing import Passer, passer_of
from kspec.impl.wire.requests import RequestApi, read_response, request_parts, sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import Part, joined
from kspec.trials.simulated.clock import VirtualClock

STRAGGLER_MS = 1_000
"""The longest delay of a straggler: a frame that takes much longer than others."""

RETRY_MS = 40
"""The interval of retransmissions to a node that is out of reach."""

Take = Callable[[Message | None], None]


class SimulatedRequest(NamedTuple):
    """A request as its server decodes it."""

    key: int
    version: int
    correlation: int
    message: Message


Given = TypeVarTuple("Given")

Answer: TypeAlias = tuple[int, Message]
"""A response as its client decodes it: the correlation id, and the message."""

Frame: TypeAlias = bytes | SimulatedRequest

Carried: TypeAlias = Frame | Answer | None
"""Something on its way: a request or a response, or the end of the connection."""


@cache
def _request_passer(api: str, version: int) -> Passer:
    return passer_of(f"{api}Request", version)


@cache
def _answer_passer(api: str, version: int) -> Passer:
    return passer_of(f"{api}Response", version)


def request_frame(api: RequestApi, version: int, correlation: int, message: Message, coded: bool) -> Frame:
    """A request in flight."""
    if coded:
        return joined(request_parts(api, version, correlation, message))[4:]
    return SimulatedRequest(api.key, version, correlation, _request_passer(api.name, version)(message))


def answer_frame(header: RequestHeader, message: Message) -> Answer:
    """A response that is passed on without being encoded."""
    assert header.api is not None
    return header.correlation, _answer_passer(header.api.name, header.version)(message)


class FrameHold(Protocol):
    """A hold on frames of one kind, which arrive when it releases them."""

    def takes(self, line: "SimulatedConnection", forth: bool, frame: Carried) -> bool:
        """Whether a frame is held that would arrive now."""


class NetworkNode(Protocol):
    """A node as the network knows it: the server of a connection."""

    node_id: int
    incarnation: int
    """The number of its process; another one after each start."""
    busy_until: int
    """The time until which it can send nothing (ms)."""

    @property
    def serves(self) -> bool:
        """Whether it accepts connections."""

    def last_version(self, api: str) -> int | None:
        """The highest version of an API that it offers."""

    def deliver(self, connection: "SimulatedConnection", frame: Frame) -> None:
        """Take a request that has arrived."""

    def hung_up(self, connection: "SimulatedConnection") -> None:
        """Take note that a connection is closed."""


class NetworkClient(Protocol):
    """A sender of requests: a node, or a client of the cluster."""

    node_id: int
    incarnation: int
    busy_until: int

    def run(self, action: Callable[[*Given], None], *given: *Given) -> None:
        """Run an action in this process: later if it is paused, never if it has ended."""


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request in flight."""

    asked: Ask
    version: int
    correlation: int
    take: Take
    until: tuple[int, int]
    """The time of its timeout (ms), and its place among the events of that time."""


@dataclass(eq=False)
class SimulatedConnection:
    """One connection, with the interface of `impl.server.network.connection.Connection` for the server's shell."""

    network: "Network"
    client: NetworkClient
    server: NetworkNode
    purpose: str
    incarnation: int
    """The server's incarnation: a frame that arrives later is not for its next process."""
    host: str = "127.0.0.1"
    port: int = 0
    last_used: float = 0.0
    closed: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    lost: bool = False
    """Whether no frame arrives any more."""
    arrives_from: int = 0
    """The earliest arrival of frames in flight (ms)."""
    lost_with_next: tuple[int | None] | None = None
    """The delay (ms) of the next request, if the connection is to be lost with it; none: the request never arrives."""
    under_way: deque[PendingRequest] = field(default_factory=deque)
    watched_until: list[tuple[int, int]] = field(default_factory=list)
    """The scheduled checks of timeouts."""
    free_at: list[int] = field(default_factory=lambda: [0, 0])
    """The arrival of the last frame back, and of the last one forth: the next one comes after it."""
    stuck: list[deque[Carried]] = field(default_factory=lambda: [deque(), deque()])
    """The frames back, and those forth, that could not arrive while the nodes were parted: the next ones wait for them."""
    holds: int = 0
    """The number of requests that are not finished, so that the next one waits."""
    waiting: deque[Frame] = field(default_factory=deque)
    """The requests that wait."""
    _answers: Answers = field(default_factory=Answers)

    def hold(self) -> None:
        """Let no further request be handled until `release` has been called as often."""
        self.holds += 1

    def release(self) -> None:
        """Undo one `hold`; after the last one the next requests are handled."""
        self.holds -= 1
        while self.waiting and not self.holds and not self.closed:
            self.server.deliver(self, self.waiting.popleft())

    @property
    def unanswered(self) -> int:
        """The number of requests without a response."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """The bytes that the connection holds: none."""
        return 0

    def new_place(self) -> int:
        """A place for the response to the request that has just come."""
        return self._answers.new_place()

    def answer(self, place: int, parts: list[Part]) -> None:
        """Send a response once all earlier ones are sent."""
        if self.closed:
            return
        for ready in self._answers.put(place, parts):
            if ready:
                self.network.send_back(self, ready[0] if isinstance(ready[0], tuple) else joined(ready)[4:])

    def close(self) -> None:
        """Close the connection: the server forgets it at once, the client learns of it, if it can be reached."""
        if not self.closed:
            self.closed = True
            self._answers.clear()
            self.server.hung_up(self)
            self.network.cut(self)


class CarriedFrame(NamedTuple):
    """A frame on a connection, that may be held. `forth`: whether it is a request."""

    line: SimulatedConnection
    forth: bool
    frame: Carried

    @property
    def key(self) -> int | None:
        """The API of a request, or of the oldest request of its connection, to which a response is."""
        if isinstance(self.frame, SimulatedRequest):
            return self.frame.key
        under_way = self.line.under_way
        return sent(under_way[0].asked.api).key if self.frame is not None and under_way else None

    @property
    def is_awaited(self) -> bool:
        """Whether its connection is whole, and the client waits for a response."""
        return bool(self.line.under_way) and not self.line.closed and not self.line.lost

    def arrive(self) -> None:
        """Arrive now."""
        self.line.network.arrive(self.line, self.forth, self.frame)

    def lose(self) -> None:
        """Be lost, with the connection."""
        self.line.network.lose(self.line, None)


class Network:
    """All connections. `blocked`: pairs of nodes that do not reach each other.

    `coded`: whether messages are encoded, as on a real wire; by default they are passed on as they are.
    """

    def __init__(
        self,
        clock: VirtualClock,
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
        self._lines: dict[tuple[int, int, int, str], SimulatedConnection] = {}
        self._correlation = 0
        self.servers: dict[int, NetworkNode] = {}
        self.blocked: set[frozenset[int]] = set()
        self.late: dict[tuple[int, str, bool], int] = {}
        """The earliest arrival (ms) of frames on a node's connections for a purpose, forth or back."""
        self.slow_links: dict[tuple[int, str, bool], int] = {}
        """The extra delay (ms) of frames on a node's connections for a purpose, forth or back."""
        self.lost_with_next: dict[tuple[int, str], int] = {}
        """The nodes whose next request for a purpose, or of an API, loses its connection; the request's delay (ms)."""
        self.holds: list[FrameHold] = []
        self.on_next_request: dict[tuple[int, str], Callable[[SimulatedConnection], None]] = {}
        """Listeners to a node's next request for a purpose, called once it is in flight."""

    def is_blocked(self, one: int, other: int) -> bool:
        """Whether two nodes do not reach each other now."""
        return frozenset((one, other)) in self.blocked

    def _delay(self) -> int:
        drawn = self._draw()
        if drawn < self._stragglers:
            return int(self._draw() * STRAGGLER_MS)
        return self._least_ms + int(drawn * self._spread)

    # ---- requests

    def ask(self, client: NetworkClient, asked: Ask, take: Take) -> None:
        """Send a request; `take` gets the response, or none: at once if no server listens, else at the timeout."""
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
        waiting = PendingRequest(asked, version, self._correlation, take, (0, 0))
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
        if self.on_next_request:
            listener = self.on_next_request.pop((client.node_id, line.purpose), None)
            if listener is not None:
                self._clock.at(self._clock.now_ms, listener, line)
        if line.lost_with_next is not None:
            (after_ms,) = line.lost_with_next
            self._clock.at(self._clock.now_ms, self.lose, line, after_ms)

    def _line(self, client: NetworkClient, server: NetworkNode, purpose: str) -> SimulatedConnection:
        key = (client.node_id, client.incarnation, server.node_id, purpose)
        line = self._lines.get(key)
        if line is None or line.closed or line.server is not server:
            line = self._lines[key] = SimulatedConnection(self, client, server, purpose, server.incarnation)
        return line

    def _carry(self, line: SimulatedConnection, forth: bool, frame: Frame | Answer | None) -> None:
        """Let a frame arrive after its delay, behind earlier ones; no frame means that the server has closed."""
        now_ms, free_at = self._clock.now_ms, line.free_at
        busy_until = (line.client if forth else line.server).busy_until
        due = (busy_until if busy_until > now_ms else now_ms) + self._delay()
        free = free_at[forth]
        if self.late or self.slow_links:
            way = line.client.node_id, line.purpose, forth
            due += self.slow_links.get(way, 0)
            free = max(free, self.late.get(way, 0))
        free_at[forth] = due = free if free > due else due
        self._clock.at(due, self._go, line, forth, frame)

    def _go(self, line: SimulatedConnection, forth: bool, frame: Carried) -> None:
        """Deliver a frame whose time has come; while the nodes are partitioned it is sent again.

        A request reaches its server even if the client no longer waits for the response.
        """
        if line.lost:
            return
        stuck = line.stuck[forth]
        is_behind = bool(stuck) and stuck[0] is not frame
        if line.arrives_from > self._clock.now_ms:
            self._clock.at(line.arrives_from, self._go, line, forth, frame)
            return
        if is_behind or (self.blocked and self.is_blocked(line.client.node_id, line.server.node_id)):
            if not any(one is frame for one in stuck):
                stuck.append(frame)
            later = self._clock.now_ms + RETRY_MS
            line.free_at[forth] = max(line.free_at[forth], later)
            self._clock.at(later, self._go, line, forth, frame)
            return
        if stuck:
            stuck.popleft()
        if not (self.holds and any(hold.takes(line, forth, frame) for hold in self.holds)):
            self.arrive(line, forth, frame)

    def arrive(self, line: SimulatedConnection, forth: bool, frame: Carried) -> None:
        """Let a frame arrive now, also one that was held."""
        if line.lost:
            return
        if forth:
            server = line.server
            if server.serves and server.incarnation == line.incarnation:
                assert isinstance(frame, (bytes, SimulatedRequest)), f"{frame} is sent to a server"
                server.deliver(line, frame)
        elif frame is not None:
            assert not isinstance(frame, SimulatedRequest), f"{frame} is sent back"
            line.client.run(self._answered, line, frame)
        else:
            self._drop(line)

    def send_back(self, line: SimulatedConnection, frame: Answer | bytes) -> None:
        """Send a response."""
        self._carry(line, False, frame)

    def _answered(self, line: SimulatedConnection, frame: Answer | bytes) -> None:
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

    def hold(self, line: SimulatedConnection, forth: bool, wait_ms: int) -> None:
        """Delay a connection: all frames in flight, or only those sent back from now on."""
        until_ms = self._clock.now_ms + wait_ms
        if forth:
            line.arrives_from = max(line.arrives_from, until_ms)
        else:
            line.free_at[False] = max(line.free_at[False], until_ms)

    def lines_from(self, node_id: int, purpose: str) -> list[SimulatedConnection]:
        """The open connections of a node as client, for a purpose."""
        return [one for key, one in self._lines.items() if key[0] == node_id and one.purpose == purpose]

    def lines_of(self, node_id: int) -> list[SimulatedConnection]:
        """The open connections of a node, as client or as server, in the order of their creation."""
        return [one for one in self._lines.values() if node_id in (one.client.node_id, one.server.node_id)]

    def lose(self, line: SimulatedConnection, after_ms: int | None) -> None:
        """Lose a connection. The client learns of it now; frames in flight arrive after a while (ms), or never."""
        line.lost = after_ms is None
        line.arrives_from = self._clock.now_ms + (after_ms or 0)
        self._clock.at(max(line.arrives_from, *line.free_at) + 1, line.close)
        self._drop(line)

    def _watch(self, line: SimulatedConnection, until: tuple[int, int]) -> None:
        """Schedule a check of timeouts."""
        line.watched_until.append(until)
        self._clock.at_place(*until, self._look_at, line)

    def _look_at(self, line: SimulatedConnection) -> None:
        """Close the connection of a client whose request has timed out; the server may not learn of it."""
        over = line.watched_until.pop()
        if not line.under_way:
            return
        first = min(waiting.until for waiting in line.under_way)
        if first <= over:
            self._drop(line)
        elif not line.watched_until or first < line.watched_until[-1]:
            self._watch(line, first)

    def _drop(self, line: SimulatedConnection) -> None:
        """Drop the client's end: its requests in flight get no response."""
        waiting, line.under_way = line.under_way, deque()
        key = (line.client.node_id, line.client.incarnation, line.server.node_id, line.purpose)
        if self._lines.get(key) is line:
            del self._lines[key]
        for one in waiting:
            line.client.run(one.take, None)

    def cut(self, line: SimulatedConnection) -> None:
        """Tell the client that the server has closed a connection."""
        self._carry(line, False, None)

    def forget(self, node_id: int, sent_arrives_ms: int | None = None) -> None:
        """Close the connections of a process that has ended. Its clients learn of it, unless they are out of reach.

        `sent_arrives_ms`: the delay after which its last requests, and then the end of its connections, arrive.
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
