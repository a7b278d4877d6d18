"""The cluster of a story, on either stage: its messages, which the steps of a run direct, and what it shows."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.messages import APIS, ASKED_OF_LEADERS, StoryMessage, Wanted
from kspec.conformance.story.snapshots import (
    AckedRecord,
    ClusterSnapshot,
    ReplicaSnapshot,
    partition_in,
    value_of,
)
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import NO_EPOCH, NO_LEADER
from kspec.trials.cluster.plan import CONTROLLER

TOPIC = "story"
EVERYTHING = 1 << 60

PATIENCE_S = 60.0
"""The longest wait for a condition (s)."""

PRODUCER_S = 600
"""The longest wait of a producer (s)."""

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "100",
    "replica.fetch.backoff.ms": "20",
    "replica.fetch.min.bytes": "0",
    "replica.high.watermark.checkpoint.interval.ms": "20",
}
"""Settings with which a change shows soon in files and heartbeats."""


class StoryCluster(ABC):
    """A controller and brokers. A message that is held waits for a step of the run.

    - `caps`: the committed end of the metadata log that each broker receives;
    - `silenced`: brokers whose heartbeats do not arrive; `unheard`: pairs of follower and leader whose responses are lost;
    - `heard`: the metadata offset in each broker's last heartbeat;
    - `lag_s`: the lag after which a follower leaves the ISR, if the run needs that;
    - `answers`: the number of responses of a leader to a follower; `answered_at`: the time of the last one (s).
    """

    def __init__(self, brokers: int, lag_s: float | None) -> None:
        self.brokers = range(1, brokers + 1)
        self.lag_s = lag_s
        self.caps = dict.fromkeys(self.brokers, EVERYTHING)
        self.silenced: set[int] = set()
        self.unheard: set[tuple[int, int]] = set()
        self.answers: Counter[tuple[int, int]] = Counter()
        self.answered_at: dict[tuple[int, int], float] = {}
        self.heard = dict.fromkeys(self.brokers, -1)
        self.open = True
        self.acknowledged: set[AckedRecord] = set()

    # ---- start and end

    async def start(self) -> None:
        """Start all nodes; then hold all messages about the partition. Raises: `StoryError`, and errors of the stage."""
        await self.start_nodes()
        await self.until(self._is_ready, "all brokers are unfenced, and have read the metadata log")
        self.open = False
        self.caps = dict.fromkeys(self.brokers, self.metadata_end())

    @abstractmethod
    async def start_nodes(self) -> None:
        """Start all nodes. Raises: errors of the stage."""

    def _is_ready(self) -> bool:
        image = self.image()
        unfenced = [broker for broker in image.spec.brokers if not broker.fenced]
        read = all(offset == image.spec.end_offset - 1 for offset in self.heard.values())
        return len(unfenced) == len(self.brokers) and read

    def let_go(self) -> None:
        """Let all messages arrive from now on."""
        self.open = True
        self.caps = dict.fromkeys(self.brokers, EVERYTHING)
        self.silenced.clear()
        for message in self.waiting(self.passes):
            message.release()

    @abstractmethod
    async def end(self) -> None:
        """End all nodes, whatever state they are in."""

    @abstractmethod
    def is_running(self, broker: int) -> bool:
        """Whether a broker runs."""

    # ---- time

    @abstractmethod
    def now_s(self) -> float:
        """The time (s)."""

    @abstractmethod
    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await self.within(seconds, lambda: False)

    async def until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        """Wait until a condition holds. Raises: `StoryError`, after so many seconds."""
        if not await self.within(seconds, holds):
            raise StoryError(f"{what}: not within {seconds:g} s")

    # ---- messages

    @property
    @abstractmethod
    def held(self) -> Sequence[StoryMessage]:
        """The messages that are held now, the oldest first."""

    def waiting(self, wanted: Wanted) -> list[StoryMessage]:
        """The messages of a kind that are held now."""
        return [message for message in self.held if wanted(message)]

    async def until_held(self, wanted: Wanted, what: str) -> StoryMessage:
        """The first message of a kind that is held, once there is one. Raises: `StoryError`."""
        await self.until(lambda: bool(self.waiting(wanted)), what)
        return self.waiting(wanted)[0]

    def lose(self, wanted: Wanted) -> None:
        """Lose all messages of a kind that are held."""
        for message in self.waiting(wanted):
            message.lose()

    def passes(self, message: StoryMessage) -> bool:
        """Whether a message arrives by itself: all but those about which the run decides."""
        api = None if message.key is None else APIS.get(message.key)
        if api is None or not message.source.isdigit():
            return True
        broker = int(message.source)
        if message.target != CONTROLLER:
            return self._passes_between(broker, int(message.target), api, message)
        if api == "Fetch" and message.is_answer:
            self.cap(message, self.caps[broker])
        if api == "BrokerHeartbeat" and not message.is_answer:
            return self._passes_heartbeat(broker, message)
        return self.open or api != "AlterPartition"

    def _passes_between(self, follower: int, leader: int, api: str, message: StoryMessage) -> bool:
        if not message.is_answer:
            return self.open or api not in ASKED_OF_LEADERS
        self.answers[follower, leader] += 1
        self.answered_at[follower, leader] = self.now_s()
        if (follower, leader) in self.unheard:
            message.lose()
            return False
        return True

    def _passes_heartbeat(self, broker: int, message: StoryMessage) -> bool:
        self.heard[broker] = self.request_of(message).current_metadata_offset
        if broker in self.silenced:
            message.lose()
            return False
        return True

    @abstractmethod
    def cap(self, message: StoryMessage, end: int) -> None:
        """Change the controller's response into an earlier one, by which records behind an end are not committed yet."""

    @abstractmethod
    def request_of(self, message: StoryMessage) -> Message:
        """A request that is held, decoded."""

    def asks(self, follower: int, leader: int | None = None) -> Wanted:
        """A condition on messages: they are requests of a follower to a leader, or to any other broker."""
        targets = {str(broker) for broker in self.brokers} if leader is None else {str(leader)}

        def matches(message: StoryMessage) -> bool:
            return message.source == str(follower) and message.target in targets and not message.is_answer

        return matches

    # ---- observations

    @abstractmethod
    def image(self) -> ClusterImage:
        """The cluster image of the controller."""

    @abstractmethod
    def replica(self, broker: int) -> ReplicaSnapshot:
        """A broker's replica, in its files."""

    def is_fenced(self, broker: int) -> bool:
        """Whether the controller has fenced a broker."""
        return any(known.broker == broker and known.fenced for known in self.image().spec.brokers)

    def metadata_end(self) -> int:
        """The end of the metadata log."""
        return int(self.image().spec.end_offset)

    async def read_up_to(self, broker: int, cap: int) -> None:
        """Let a broker read the metadata log up to this offset, and wait until it has.

        Its requests to leaders from before are lost: it sends them again in its new state.
        """
        self.lose(self.asks(broker))
        self.caps[broker] = cap
        await self.until(lambda: self.heard[broker] >= cap - 1, f"broker {broker} reads the metadata log up to {cap}")
        self.lose(self.asks(broker))

    def seen(self) -> ClusterSnapshot:
        """The cluster as it is now."""
        known = partition_in(self.image(), TOPIC)
        replicas = {broker: self.replica(broker) for broker in self.brokers}
        acknowledged = frozenset(self.acknowledged)
        if known is None:
            return ClusterSnapshot(NO_LEADER, NO_EPOCH, frozenset(), replicas, acknowledged)
        return ClusterSnapshot(
            known.leader, known.leader_epoch, frozenset(known.isr), replicas, acknowledged, frozenset(known.elr)
        )

    # ---- clients

    @abstractmethod
    async def ask_controller(self, api: str, version: int, **fields: Any) -> Message:
        """The controller's response to an administrator."""

    @abstractmethod
    def send(self, leader: int, version: int, fields: Mapping[str, Any], number: int) -> None:
        """Send a producer's request, and note the acknowledgement (`note_response`) whenever it comes."""

    async def create_topic(self, replicas: Sequence[int], settings: Mapping[str, str]) -> None:
        """Create the partition with its replicas in this order of preference."""
        assignment = Message(partition_index=0, broker_ids=list(replicas))
        configs = [Message(name=name, value=value) for name, value in settings.items()]
        topic = Message(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=configs)
        answer = await self.ask_controller("CreateTopics", 5, topics=[topic], timeout_ms=10_000, validate_only=False)
        _must_be_well("CreateTopics", answer.topics[0].error_code)

    async def prefer(self, first: int) -> None:
        """Make a replica the preferred one: the same replicas, in another order."""
        partition = partition_in(self.image(), TOPIC)
        assert partition is not None, "the partition has been created"
        order = [first, *(replica for replica in partition.replicas if replica != first)]
        if list(partition.replicas) == order:
            return
        topic = Message(name=TOPIC, partitions=[Message(partition_index=0, replicas=order)])
        answer = await self.ask_controller("AlterPartitionReassignments", 0, timeout_ms=10_000, topics=[topic])
        _must_be_well("AlterPartitionReassignments", answer.responses[0].partitions[0].error_code)

    async def elect_preferred(self) -> None:
        """Elect the preferred replica."""
        topics = [Message(topic=TOPIC, partitions=[0])]
        answer = await self.ask_controller("ElectLeaders", 1, election_type=0, topic_partitions=topics, timeout_ms=10_000)
        _must_be_well("ElectLeaders", answer.replica_election_results[0].partition_result[0].error_code)

    def produce(self, leader: int, number: int, acks: int) -> None:
        """Send a record by a producer of its own, which waits for the acknowledgement for as long as it takes."""
        part = Message(index=0, records=new_batch([(0, None, value_of(number))]))
        topics = [Message(name=TOPIC, partition_data=[part])]
        fields = {"transactional_id": None, "acks": acks, "timeout_ms": PRODUCER_S * 1000, "topic_data": topics}
        self.send(leader, 8, fields, number)

    def note_response(self, answer: Message, number: int) -> None:
        """Note the acknowledgement of a record, if the response to its producer says so."""
        response = answer.responses[0].partition_responses[0]
        if response.error_code == 0:
            self.acknowledged.add(AckedRecord(int(response.base_offset), number))


def cap_answer(answer: Message, end: int) -> None:
    """Lower the high watermarks in a response to a fetch of the metadata log."""
    for topic in answer.responses:
        for part in topic.partitions:
            part.__dict__["high_watermark"] = min(part.high_watermark, end)


def _must_be_well(api: str, error: int) -> None:
    if error:
        raise StoryError(f"{api} is refused with error {error}")
