"""A simulated cluster as the cluster of a story: the same nodes in one process, on a virtual clock, network and disk."""

import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from kspec.conformance.story.cluster import PRODUCER_S, SETTINGS, TOPIC, StoryCluster, cap_answer
from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.messages import StoryMessage
from kspec.conformance.story.snapshots import ReplicaSnapshot, log_of
from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.server.startup import BrokerRules
from kspec.impl.storage.small_files import seed_ids
from kspec.impl.wire.values import Message
from kspec.spec.topics import TopicPartition
from kspec.trials.faults.simulated_run import name_of
from kspec.trials.simulated.clients.client import ClientEndpoint, nothing
from kspec.trials.simulated.clock import VirtualClock, VirtualWait, carried_out
from kspec.trials.simulated.ids import CONTROLLER_ID, FIRST_CLIENT_ID
from kspec.trials.simulated.network import Carried, CarriedFrame, Network, SimulatedConnection, SimulatedRequest
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode

SEED = 1
"""The seed of the delays of messages: a run decides about all that matters."""

ANSWER_S = 10

Result = TypeVar("Result")


class SimulatedMessage:
    """A request or a response in virtual time."""

    def __init__(self, carried: CarriedFrame, clock: VirtualClock) -> None:
        line = carried.line
        self.carried = carried
        self.source, self.target = name_of(line.client.node_id), name_of(line.server.node_id)
        self.key = carried.key
        self.is_answer = not carried.forth
        self.is_decided = False
        self._clock = clock

    def release(self) -> None:
        """Let it arrive, after what happens at this moment."""
        if not self.is_decided:
            self._clock.at(self._clock.now_ms, self.carried.arrive)
        self.is_decided = True

    def lose(self) -> None:
        """Lose it, and its connection."""
        if not self.is_decided:
            self.carried.lose()
        self.is_decided = True


class SimulatedStoryCluster(StoryCluster):
    """Nodes in virtual time."""

    def __init__(self, brokers: int, rules: BrokerRules, settings: Mapping[str, str], lag_s: float | None) -> None:
        super().__init__(brokers, lag_s)
        random.seed(SEED)
        seed_ids(SEED)
        own, given = random.Random(SEED), {**SETTINGS, **settings}
        self._clock = VirtualClock()
        self._network = Network(self._clock, own)
        self._network.holds.append(self)
        self._controller = ControllerNode(CONTROLLER_ID, self._clock, self._network, own, rules.controller, given)
        self._nodes = {
            broker: BrokerNode(broker, self._clock, self._network, own, rules.broker, given, [CONTROLLER_ID])
            for broker in self.brokers
        }
        self._held: list[SimulatedMessage] = []

    def carried_out(self, steps: Coroutine[Any, Any, Result]) -> Result:
        """The result of steps that wait for this cluster."""
        return carried_out(steps, self._clock, self._clock.next_event)

    # ---- start and end

    async def start_nodes(self) -> None:
        """Start all nodes."""
        for node in (self._controller, *self._nodes.values()):
            node.start()

    async def end(self) -> None:
        """Do nothing: nothing of it is left."""

    def is_running(self, broker: int) -> bool:
        """Whether a broker runs."""
        return self._nodes[broker].up

    # ---- time

    def now_s(self) -> float:
        """The time (s)."""
        return self._clock.now_ms / 1000

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""
        return await VirtualWait(self._clock.now_ms + round(seconds * 1000), holds)

    # ---- messages

    def takes(self, line: SimulatedConnection, forth: bool, frame: Carried) -> bool:
        """Whether a frame is held that would arrive now."""
        message = SimulatedMessage(CarriedFrame(line, forth, frame), self._clock)
        if self.passes(message):
            return False
        self._held.append(message)
        return True

    @property
    def held(self) -> Sequence[SimulatedMessage]:
        """The messages that are held now, and whose senders wait for a response."""
        self._held = [message for message in self._held if not message.is_decided and message.carried.is_awaited]
        return self._held

    def cap(self, message: StoryMessage, end: int) -> None:
        """Change the controller's response into an earlier one."""
        assert isinstance(message, SimulatedMessage), "in virtual time"
        frame = message.carried.frame
        assert isinstance(frame, tuple), "a response that is not encoded"
        assert not isinstance(frame, SimulatedRequest), "a response"
        cap_answer(frame[1], end)

    def request_of(self, message: StoryMessage) -> Message:
        """A request that is held."""
        assert isinstance(message, SimulatedMessage), "in virtual time"
        frame = message.carried.frame
        assert isinstance(frame, SimulatedRequest), "a request that is not encoded"
        return frame.message

    # ---- observations

    def image(self) -> ClusterImage:
        """The cluster image of the controller."""
        return self._controller.core.image

    def replica(self, broker: int) -> ReplicaSnapshot:
        """A broker's replica, in its files."""
        node = self._nodes[broker]
        found = node.core.replicas.get(TopicPartition(TOPIC, 0))
        if found is None:
            return ReplicaSnapshot((), 0)
        folder = found.files.folder
        segments = [f"{folder}/{name}" for name in node.disk.listdir(folder) if name.endswith(".log")]
        return ReplicaSnapshot(log_of(map(node.disk.read_file, segments)), int(found.partition.local.high_watermark))

    # ---- clients

    async def ask_controller(self, api: str, version: int, **fields: Any) -> Message:
        """The controller's response to an administrator, in the newest version."""
        found: list[Message | None] = []
        asked = Ask(ChannelKey(CONTROLLER_ID, "admin"), api, Message(**fields), nothing, ANSWER_S * 1000)
        self._network.ask(ClientEndpoint(FIRST_CLIENT_ID), asked, found.append)
        await self.until(lambda: bool(found), f"the controller answers {api}", ANSWER_S)
        if found[0] is None:
            raise StoryError(f"the controller does not answer {api}")
        return found[0]

    def send(self, leader: int, version: int, fields: Mapping[str, Any], number: int) -> None:
        """Send a producer's request, and note the acknowledgement whenever it comes."""
        topic_id = self.image().topics[TOPIC].topic_id
        topics = [Message(**{**topic.__dict__, "topic_id": topic_id}) for topic in fields["topic_data"]]
        message = Message(**{**fields, "topic_data": topics})
        asked = Ask(ChannelKey(leader, "producer"), "Produce", message, nothing, PRODUCER_S * 1000)

        def take(answer: Message | None) -> None:
            if answer is not None:
                self.note_response(answer, number)

        self._network.ask(ClientEndpoint(FIRST_CLIENT_ID + number), asked, take)
