"""Clients of the simulated cluster: idempotent producers, and consumers; and its operator.

Producers and consumers find the leader by Metadata, and try again. The operator asks the controller, and asks once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from impl.broker.calls import Ask, Channel, Effect
from impl.records.batch import CRC_START, LENGTH_END, first_fields, headers
from impl.records.record import new_batch, records_of
from impl.sim.clock import Clock
from impl.sim.history import PartitionHistory, Value
from impl.sim.network import Network, Take
from impl.sim.setup import ADMIN_ID, CONTROLLER_ID
from impl.wire.apis import PREFERRED_ELECTION
from impl.wire.values import Message
from spec.messages.produce import ACKS_ALL
from spec.values import Epoch, Error, Offset

REQUEST_MS, RETRY_MS = 10_000, 100
RETRIABLE = frozenset(
    {
        Error.CORRUPT_MESSAGE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.REQUEST_TIMED_OUT,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.NOT_CONTROLLER,
        Error.KAFKA_STORAGE_ERROR,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
        Error.UNKNOWN_TOPIC_ID,
    }
)
"""Errors after which Kafka's clients ask again by themselves. **Kafka:** subclasses of `RetriableException` in `Errors`."""
MOST_BYTES = 1 << 20
LATEST = -1
"""The timestamp that stands for the latest offset. Kafka: `ListOffsetsRequest.LATEST_TIMESTAMP`."""

BATCH_SIZES = range(1, 4)
"""How many records a producer sends together."""

READS_ANEW = 0.02
"""How often a consumer begins anew, beside fetching."""


def nothing(answer: Message | None, now: int) -> list[Effect]:
    """The answer goes elsewhere."""
    return []


class Surroundings(NamedTuple):
    """What a client has around it: the time, the network, chance, the brokers that it may ask, the topic."""

    clock: Clock
    network: Network
    random: Random
    brokers: list[int]
    topic: str
    think_ms: tuple[int, int]
    """Between an answer and the next request: the least and the most."""
    asks_latest: float
    """How often a consumer asks for the latest offset, beside fetching."""
    promises_offsets: bool = True
    """Whether consumers may rely on the offsets and epochs that they are told (KIP-207, KIP-320)."""


class Asker:
    """Who is not a node of the cluster, and asks. It is always there."""

    def __init__(self, client_id: int) -> None:
        self.node_id = client_id
        self.incarnation = 0
        self.busy_until = 0

    def run(self, action: Callable[..., None], *given: Any) -> None:
        """Do something."""
        action(*given)


class SimClient(Asker, ABC):
    """A client that reads or writes one partition."""

    def __init__(self, client_id: int, around: Surroundings, partition: int) -> None:
        super().__init__(client_id)
        self.stopped = False
        self.topic, self.partition = around.topic, partition
        self._clock, self._network, self._random, self._brokers = around[:4]
        self._think_ms = range(around.think_ms[0], around.think_ms[1] + 1)
        self._channels: dict[int, Channel] = {}
        self._leader = self._leader_epoch = -1
        self._latest_epoch = -1
        """The latest leader epoch that it was ever told."""
        self._topic_id = bytes(16)
        self.reported: set[Error] = set()
        """Errors that a client of Kafka reports to its user, since it does not ask again by itself."""

    @property
    def is_promised(self) -> bool:
        """Whether anything is promised to it."""
        return True

    def start(self) -> None:
        """Begin."""
        self._find_leader()

    def _ask(self, broker: int, api: str, message: Message, take: Callable[[Message | None], None]) -> None:
        channel = self._channels.get(broker)
        if channel is None:
            channel = self._channels[broker] = Channel(broker, f"client {self.node_id}")
        self._network.ask(self, Ask(channel, api, message, nothing, REQUEST_MS), take)

    def _later(self, action: Callable[[], None], wait_ms: int = RETRY_MS) -> None:
        self._clock.after(wait_ms, action)

    def _find_leader(self) -> None:
        topics = [Message(name=self.topic)]
        message = Message(topics=topics, allow_auto_topic_creation=False)
        self._ask(self._random.choice(self._brokers), "Metadata", message, self._told)

    def _told(self, answer: Message | None) -> None:
        listed = [] if answer is None else answer.topics[0].partitions
        found = [one for one in listed if one.partition_index == self.partition]
        if answer is None or not found or found[0].leader_id not in {one.node_id for one in answer.brokers}:
            self._later(self._find_leader)
            return
        self._leader, self._topic_id = found[0].leader_id, bytes(answer.topics[0].topic_id)
        self._leader_epoch = found[0].leader_epoch
        self._latest_epoch = max(self._latest_epoch, self._leader_epoch)
        self._go()

    def _ask_again(self, error_code: int = 0) -> None:
        """Find the leader again, and ask, after an error or without an answer.

        An error of an earlier leader, of which a broker with old metadata has told, is not reported: clients of Kafka do not
        follow metadata with an earlier leader epoch than they know (`Metadata.updateLatestMetadata`). These here do, since
        nothing is lost by it.
        """
        error = Error(error_code)
        if error != Error.NONE and error not in RETRIABLE and self._leader_epoch == self._latest_epoch:
            self.reported.add(error)
        self._later(self._find_leader)

    def _go_on(self) -> None:
        """The next request, after a while."""
        self._later(self._go, self._random.choice(self._think_ms))

    @abstractmethod
    def _go(self) -> None:
        """Read or write, now that the leader is known."""


class Producer(SimClient):
    """Sends one batch after the other, each until it is acknowledged. Without a history, nothing is promised to it."""

    def __init__(
        self, client_id: int, around: Surroundings, partition: int, history: PartitionHistory | None, acks: int = ACKS_ALL
    ) -> None:
        super().__init__(client_id, around, partition)
        self._history = history
        self._acks = acks
        self._producer_id = -1
        self._sequence = 0
        self._number = 0
        self._batch: list[Value] = []
        self._since_ms = 0
        """When it began to send its batch."""
        self.longest_ms = 0
        """How long a batch took at most, until it was acknowledged."""
        self.acknowledged = 0

    @property
    def is_promised(self) -> bool:
        """Whether anything is promised to it."""
        return self._history is not None

    def _go(self) -> None:
        if self._producer_id < 0:
            message = Message(transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1)
            self._ask(self._leader, "InitProducerId", message, self._identified)
            return
        if not self._batch:
            if self.stopped:
                return
            count = self._random.choice(BATCH_SIZES)
            self._batch = [Value(self._producer_id, self._number + place) for place in range(count)]
            self._number += count
            self._since_ms = self._clock.now_ms
        self._send()

    def _identified(self, answer: Message | None) -> None:
        if answer is None or answer.error_code:
            self._ask_again(0 if answer is None else answer.error_code)
            return
        self._producer_id, self._sequence, self._number, self._batch = answer.producer_id, 0, 0, []
        self._go()

    def _send(self) -> None:
        records = new_batch(
            [(self._clock.now_ms, None, value.to_bytes()) for value in self._batch],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        data = [Message(index=self.partition, records=records)]
        topic = Message(name=self.topic, topic_id=self._topic_id, partition_data=data)
        message = Message(transactional_id=None, acks=self._acks, timeout_ms=REQUEST_MS // 2, topic_data=[topic])
        self._ask(self._leader, "Produce", message, self._sent)

    def _sent(self, answer: Message | None) -> None:
        if answer is None:
            self._ask_again()
            return
        part = answer.responses[0].partition_responses[0]
        error = Error(part.error_code)
        if error in (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.INVALID_PRODUCER_EPOCH):
            self._producer_id = -1
            self._ask_again(part.error_code)
        elif error == Error.NONE:
            if self._history is not None and part.base_offset >= 0:
                self._history.acknowledge(Offset(part.base_offset), self._batch)
            self.acknowledged += len(self._batch)
            self._sequence += len(self._batch)
            self._batch = []
            self.longest_ms = max(self.longest_ms, self._clock.now_ms - self._since_ms)
            self._go_on()
        else:
            self._ask_again(part.error_code)


class Consumer(SimClient):
    """Reads the partition from its start, again and again from where it was.

    When another leader epoch is known, it first asks whether what it has read last is still there (KIP-320).
    """

    def __init__(self, client_id: int, around: Surroundings, partition: int, history: PartitionHistory) -> None:
        super().__init__(client_id, around, partition)
        self._asks_latest, self._relies_on_offsets = around.asks_latest, around.promises_offsets
        self._history = history
        self._offset = Offset(0)
        self._last_epoch = -1
        """The leader epoch of the record that it has read last."""
        self._validated_in = -1
        """The leader epoch in which its position was found to be there."""

    def _go(self) -> None:
        if self.stopped:
            return
        if self._relies_on_offsets and self._last_epoch >= 0 and self._validated_in < self._leader_epoch:
            self._validate()
            return
        drawn = self._random.random()
        if drawn < self._asks_latest:
            self._ask_latest()
            return
        if drawn < self._asks_latest + READS_ANEW:
            self._offset, self._last_epoch = Offset(0), -1
        wanted = Message(
            partition=self.partition,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self._offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=MOST_BYTES,
        )
        message = Message(
            replica_state=Message(replica_id=-1, replica_epoch=-1),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=MOST_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[Message(topic=self.topic, topic_id=self._topic_id, partitions=[wanted])],
        )
        self._ask(self._leader, "Fetch", message, self._fetched)

    def _fetched(self, answer: Message | None) -> None:
        error = 0 if answer is None else answer.error_code or answer.responses[0].partitions[0].error_code
        if answer is None or error:
            self._ask_again(error)
            return
        records = answer.responses[0].partitions[0].records
        read = [found for found in values_in(records) if found[0] >= self._offset] if records else []
        if read:
            for offset, value in read:
                self._history.see(offset, value)
            self._offset, self._last_epoch = Offset(read[-1][0] + 1), last_epoch_in(records)
            self._history.read_to(self._offset, self._leader_epoch)
        self._go_on()

    def _validate(self) -> None:
        """Ask where the epoch of the last record ends. **Kafka:** `OffsetsRequestManager.validatePositionsIfNeeded`."""
        wanted = Message(partition=self.partition, current_leader_epoch=self._leader_epoch, leader_epoch=self._last_epoch)
        message = Message(replica_id=-1, topics=[Message(topic=self.topic, partitions=[wanted])])
        self._ask(self._leader, "OffsetForLeaderEpoch", message, self._validated)

    def _validated(self, answer: Message | None) -> None:
        error = 0 if answer is None else answer.topics[0].partitions[0].error_code
        if answer is None or error:
            self._ask_again(error)
            return
        end = answer.topics[0].partitions[0]
        self._history.see_end(self._offset, self._last_epoch, Offset(end.end_offset), end.leader_epoch)
        self._validated_in = self._leader_epoch
        self._go_on()

    def _ask_latest(self) -> None:
        """Ask where the log ends, for the leader of the epoch that is known."""
        known = self._history.end_of_read(self._leader_epoch)
        wanted = Message(partition_index=self.partition, current_leader_epoch=self._leader_epoch, timestamp=LATEST)
        topic = Message(name=self.topic, partitions=[wanted])

        def take(answer: Message | None) -> None:
            error = 0 if answer is None else answer.topics[0].partitions[0].error_code
            if answer is None or error:
                self._ask_again(error)
                return
            if self._relies_on_offsets:
                self._history.see_latest(known, Offset(answer.topics[0].partitions[0].offset))
            self._go_on()

        self._ask(self._leader, "ListOffsets", Message(replica_id=-1, isolation_level=0, topics=[topic]), take)


def no_matter(answer: Message | None) -> None:
    """Nobody waits for the answer."""


class Operator:
    """Sends requests to the controller."""

    def __init__(self, around: Surroundings) -> None:
        self._client = Asker(ADMIN_ID)
        self._network, self._topic = around.network, around.topic

    def _ask(self, api: str, message: Message, take: Take = no_matter) -> None:
        self._network.ask(self._client, Ask(Channel(CONTROLLER_ID, "admin"), api, message, nothing), take)

    def create_topic(self, assignments: Sequence[Sequence[int]], unclean_elections: bool, take: Take) -> None:
        """Create the topic, with these replicas for each partition."""
        placed = [Message(partition_index=index, broker_ids=list(replicas)) for index, replicas in enumerate(assignments)]
        configs = [Message(name="unclean.leader.election.enable", value="true")] if unclean_elections else []
        fields = {"num_partitions": -1, "replication_factor": -1, "assignments": placed, "configs": configs}
        self._ask("CreateTopics", Message(topics=[Message(name=self._topic, **fields)], timeout_ms=30_000), take)

    def reassign(self, index: int, replicas: Sequence[int] | None) -> None:
        """Move a partition to other replicas, or cancel its move."""
        wanted = Message(partition_index=index, replicas=None if replicas is None else list(replicas))
        self._ask("AlterPartitionReassignments", Message(topics=[Message(name=self._topic, partitions=[wanted])]))

    def prefer(self, partitions: Sequence[int]) -> None:
        """Ask for the preferred leaders of partitions."""
        named = [Message(topic=self._topic, partitions=list(partitions))]
        self._ask("ElectLeaders", Message(election_type=PREFERRED_ELECTION, topic_partitions=named))


def last_epoch_in(records: memoryview | bytes | None) -> int:
    """The leader epoch of the last of whole batches."""
    return max((header.leader_epoch for header in headers(memoryview(records or b""))), default=-1)


def values_in(records: memoryview | bytes | None) -> list[tuple[Offset, Value]]:
    """The records of whole batches, with their offsets."""
    found = []
    content = memoryview(records or b"")
    for header in headers(content):
        start, base_offset = header.position, header.base_offset
        values = _values_in(bytes(content[start + CRC_START : start + header.size]))
        found += [(Offset(base_offset + delta), value) for delta, value in values]
    return found


@lru_cache(maxsize=20_000)
def _values_in(content: bytes) -> tuple[tuple[int, Value], ...]:
    """The records of a batch from its attributes on, with their places in it: each batch is read by many."""
    head = first_fields(Offset(0), CRC_START - LENGTH_END + len(content), Epoch(0))
    batch = head.ljust(CRC_START, b"\0") + content
    return tuple((record.offset, Value.from_bytes(record.value or b"")) for record in records_of(batch))
