"""The common part of all clients of the simulated cluster, which send requests over the network, wait, and send the next."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeVarTuple

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.wire.values import Message
from kspec.spec.values import Error, Instant
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.network import Network

REQUEST_MS, RETRY_MS = 10_000, 100


Given = TypeVarTuple("Given")


def nothing(answer: Message | None, now: Instant) -> list[Effect]:
    """Ignore a response: it is taken elsewhere."""
    return []


class ClientEnvironment(NamedTuple):
    """A client's environment: the clock, the network, random numbers, the bootstrap brokers, the topic."""

    clock: VirtualClock
    network: Network
    random: Random
    brokers: list[int]
    topic: str
    think_ms: tuple[int, int]
    """The shortest and the longest pause between a response and the next request."""
    asks_latest: float
    """The share of ListOffsets requests among a consumer's requests."""
    promises_offsets: bool = True
    """Whether consumers may rely on the offsets and epochs in responses (KIP-207, KIP-320)."""
    one_by_one: bool = False
    """Whether producers put one record in a batch."""


class ClientEndpoint:
    """A sender of requests that is not a node of the cluster. It never fails."""

    def __init__(self, client_id: int) -> None:
        self.node_id = client_id
        self.incarnation = 0
        self.busy_until = 0

    def run(self, action: Callable[[*Given], None], *given: *Given) -> None:
        """Run an action at once."""
        action(*given)


class SimClient(ClientEndpoint, ABC):
    """A client that goes on by itself until it is stopped."""

    def __init__(self, client_id: int, environment: ClientEnvironment) -> None:
        super().__init__(client_id)
        self.stopped = False
        self.clock, self.network, self.random, self.brokers, self.topic = environment[:5]
        self._think_ms = range(environment.think_ms[0], environment.think_ms[1] + 1)
        self._channels: dict[int, ChannelKey] = {}
        self.reported: set[Error] = set()
        """Errors that a client of Kafka reports to its user, since it does not retry them."""

    @property
    def is_promised(self) -> bool:
        """Whether Kafka's promises hold for this client."""
        return True

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    def ask(
        self, broker: int, api: str, message: Message, take: Callable[[Message | None], None], timeout_ms: int = REQUEST_MS
    ) -> None:
        """Send a request; `take` gets the response, or none."""
        channel = self._channels.get(broker)
        if channel is None:
            channel = self._channels[broker] = ChannelKey(broker, f"client {self.node_id}")
        self.network.ask(self, Ask(channel, api, message, nothing, timeout_ms), take)

    def ask_for_topic(self, take: Callable[[Message | None], None]) -> None:
        """Request the metadata of the topic from any broker."""
        message = Message(topics=[Message(name=self.topic)], allow_auto_topic_creation=False)
        self.ask(self.random.choice(self.brokers), "Metadata", message, take)

    def later(self, action: Callable[[], None], wait_ms: int = RETRY_MS) -> None:
        """Run an action after a while."""
        self.clock.after(wait_ms, action)

    def go_on(self) -> None:
        """Send the next request after a pause."""
        self.later(self.go, self.random.choice(self._think_ms))

    @abstractmethod
    def go(self) -> None:
        """Send the next request."""
