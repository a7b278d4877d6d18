"""The virtual network: connections that are lost with what is under way on them, or before that; frames that are late."""

from collections.abc import Callable
from random import Random

import pytest

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.frames import framed
from kspec.impl.wire.values import Message
from kspec.trials.simulated.clients.client import nothing
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.network import Frame, Network, SimulatedConnection
from tests.limits.turns import Turns

SERVER, CLIENT = 1, 2
HEARTBEAT = next(api for api in APIS.values() if api.name == "Heartbeat")


class Echo:
    """A server that answers each request at once, and notes when it came."""

    def __init__(self, clock: VirtualClock) -> None:
        self.node_id, self.incarnation, self.busy_until, self.serves = SERVER, 1, 0, True
        self.came: list[int] = []
        self.closed = 0
        self._clock = clock

    def last_version(self, api: str) -> int | None:
        return 3

    def deliver(self, connection: SimulatedConnection, frame: Frame) -> None:
        assert isinstance(frame, bytes)
        self.came.append(self._clock.now_ms)
        correlation = int.from_bytes(frame[4:8], "big")
        connection.answer(connection.new_place(), framed(HEARTBEAT, 3, correlation, Message()))

    def hung_up(self, connection: SimulatedConnection) -> None:
        self.closed += 1


class NotingClient:
    """A client that notes its answers."""

    node_id, incarnation, busy_until = CLIENT, 1, 0

    def run(self, action: Callable[..., None], *given: object) -> None:
        action(*given)


class SmallNetwork:
    """A clock, a network, a server, and a client with its answers."""

    def __init__(self) -> None:
        self.clock = VirtualClock(0)
        self.network = Network(self.clock, Random(1), coded=True)
        self.server, self.client = Echo(self.clock), NotingClient()
        self.network.servers[SERVER] = self.server
        self.answers: list[tuple[int, bool]] = []

    def ask(self, purpose: str = "fetch") -> None:
        message = Message(group_id="g", generation_id=1, member_id="m", group_instance_id=None)
        asked = Ask(ChannelKey(SERVER, purpose), "Heartbeat", message, nothing, 10_000)
        self.network.ask(self.client, asked, lambda answer: self.answers.append((self.clock.now_ms, answer is not None)))

    def go_on(self) -> None:
        turns = Turns()
        while self.clock.next_event():
            turns.go()
            pass


@pytest.fixture
def world() -> SmallNetwork:
    return SmallNetwork()


def test_a_request_is_answered_after_two_delays(world: SmallNetwork) -> None:
    world.ask()
    world.go_on()
    ((at, answered),) = world.answers
    assert answered
    assert 2 <= at <= 8


def test_a_lost_connection_delivers_nothing(world: SmallNetwork) -> None:
    world.ask()
    (line,) = world.network.lines_of(CLIENT)
    world.network.lose(line, None)
    world.go_on()
    assert world.server.came == []
    assert world.answers == [(0, False)]
    assert world.server.closed == 1


def test_a_request_may_arrive_long_after_its_sender_has_given_up(world: SmallNetwork) -> None:
    world.ask()
    (line,) = world.network.lines_of(SERVER)
    world.network.lose(line, 700)
    assert world.answers == [(0, False)]
    world.ask()
    world.go_on()
    assert len(world.server.came) == 2
    assert world.server.came[0] < 10
    assert world.server.came[1] == 700
    assert [answered for _, answered in world.answers] == [False, True]


def test_a_connection_may_be_lost_once_the_next_request_is_sent(world: SmallNetwork) -> None:
    world.ask()
    world.go_on()
    (line,) = world.network.lines_of(SERVER)
    line.lost_with_next = (700,)
    begin = world.clock.now_ms
    world.ask()
    world.go_on()
    assert world.answers[1:] == [(begin, False)]
    assert world.server.came[1] == begin + 700


def test_a_late_request_is_not_for_the_next_process_of_its_server(world: SmallNetwork) -> None:
    world.ask()
    (line,) = world.network.lines_of(SERVER)
    world.network.lose(line, 700)
    world.server.incarnation += 1
    world.go_on()
    assert world.server.came == []


def test_one_connection_is_late_and_another_is_not(world: SmallNetwork) -> None:
    world.network.late[CLIENT, "fetch", True] = 500
    world.ask("fetch")
    world.ask("isr")
    world.go_on()
    assert world.server.came[0] < 10
    assert world.server.came[1] == 500


def test_a_node_that_waits_for_its_disk_sends_nothing(world: SmallNetwork) -> None:
    world.server.busy_until = 300
    world.ask()
    world.go_on()
    assert world.answers[0][0] > 300


def test_some_frames_take_much_longer(world: SmallNetwork) -> None:
    world.network = Network(world.clock, Random(1), (1, 4), stragglers=50.0, coded=True)
    world.network.servers[SERVER] = world.server
    took = []
    for number in range(50):
        begin = world.clock.now_ms
        world.ask(f"{number}")
        turns = Turns()
        while len(world.answers) == number:
            turns.go()
            world.clock.next_event()
        took.append(world.answers[number][0] - begin)
    assert min(took) < 10
    assert max(took) > 500
