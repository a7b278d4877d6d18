"""Idempotent producers and consumers of one partition, which find the leader by Metadata, and retry."""

from collections.abc import Callable
from functools import lru_cache

from kspec.impl.records.batch import CRC_START, LENGTH_END, first_fields, headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.wire.values import Message
from kspec.spec.messages.delete_records import TO_HIGH_WATERMARK
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import Epoch, Error, Offset
from kspec.trials.simulated.clients.client import REQUEST_MS, ClientEnvironment, SimClient
from kspec.trials.simulated.history import ClientPartitionHistory, Value

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
"""Errors that Kafka's clients retry. **Kafka:** subclasses of `RetriableException` in `Errors`."""
MOST_BYTES = 1 << 20
LATEST, EARLIEST = -1, -2
"""The timestamps that stand for the latest offset, and for the log start. Kafka: `ListOffsetsRequest`."""

BATCH_SIZES = range(1, 4)
"""Numbers of records in a producer's batch."""

READS_ANEW = 0.02
"""The share of a consumer's turns in which it seeks to the beginning."""

DELETES_MS, WAITS_FOR_DELETION_MS = range(300, 2_500), 1_000
"""The time (ms) from an answer to the next deletion, and the time that followers have to delete the same."""


class PartitionClient(SimClient):
    """A client that reads or writes one partition."""

    def __init__(self, client_id: int, environment: ClientEnvironment, partition: int) -> None:
        super().__init__(client_id, environment)
        self.partition = partition
        self._leader = self._leader_epoch = -1
        self._latest_epoch = -1
        """The latest leader epoch in any response."""
        self._topic_id = bytes(16)

    def start(self) -> None:
        """Begin."""
        self._find_leader()

    def _find_leader(self) -> None:
        self.ask_for_topic(self._told)

    def _told(self, answer: Message | None) -> None:
        listed = [] if answer is None else answer.topics[0].partitions
        found = [one for one in listed if one.partition_index == self.partition]
        if answer is None or not found or found[0].leader_id not in {one.node_id for one in answer.brokers}:
            self.later(self._find_leader)
            return
        self._leader, self._topic_id = found[0].leader_id, bytes(answer.topics[0].topic_id)
        self._leader_epoch = found[0].leader_epoch
        self._latest_epoch = max(self._latest_epoch, self._leader_epoch)
        self.go()

    def _ask_again(self, error_code: int = 0) -> None:
        """Retry after an error or without a response: find the leader, and send the request again.

        An error of an earlier leader, found by stale metadata, is not reported: clients of Kafka ignore metadata with an
        earlier leader epoch than they know (`Metadata.updateLatestMetadata`). These do not, since nothing is lost by it.
        """
        error = Error(error_code)
        if error != Error.NONE and error not in RETRIABLE and self._leader_epoch == self._latest_epoch:
            self.reported.add(error)
        self.later(self._find_leader)


class ProducerClient(PartitionClient):
    """A producer that sends one batch after the other, each until it is acknowledged. Without a history no promise holds."""

    def __init__(
        self,
        client_id: int,
        environment: ClientEnvironment,
        partition: int,
        history: ClientPartitionHistory | None,
        acks: int = ACKS_ALL,
    ) -> None:
        super().__init__(client_id, environment, partition)
        self._history = history
        self._acks = acks
        self._one_by_one = environment.one_by_one
        self._producer_id = -1
        self._sequence = 0
        self._number = 0
        self._batch: list[Value] = []
        self._since_ms = 0
        """The time at which it began to send its batch."""
        self.longest_ms = 0
        """The longest time from the first send of a batch to its acknowledgement."""
        self.acknowledged = 0

    @property
    def is_promised(self) -> bool:
        """Whether Kafka's promises hold for this client."""
        return self._history is not None

    @property
    def in_flight(self) -> int:
        """The number of records that it has begun to send, and that are not acknowledged."""
        return len(self._batch)

    def go(self) -> None:
        """Send a batch."""
        if self._producer_id < 0:
            message = Message(transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1)
            self.ask(self._leader, "InitProducerId", message, self._identified)
            return
        if not self._batch:
            if self.stopped:
                return
            count = 1 if self._one_by_one else self.random.choice(BATCH_SIZES)
            self._batch = [Value(self._producer_id, self._number + place) for place in range(count)]
            self._number += count
            self._since_ms = self.clock.now_ms
        self._send()

    def _identified(self, answer: Message | None) -> None:
        if answer is None or answer.error_code:
            self._ask_again(0 if answer is None else answer.error_code)
            return
        self._producer_id, self._sequence, self._number, self._batch = answer.producer_id, 0, 0, []
        self.go()

    def _send(self) -> None:
        records = new_batch(
            [(self.clock.now_ms, None, value.to_bytes()) for value in self._batch],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        data = [Message(index=self.partition, records=records)]
        topic = Message(name=self.topic, topic_id=self._topic_id, partition_data=data)
        message = Message(transactional_id=None, acks=self._acks, timeout_ms=REQUEST_MS // 2, topic_data=[topic])
        self.ask(self._leader, "Produce", message, self._sent)

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
            self.longest_ms = max(self.longest_ms, self.clock.now_ms - self._since_ms)
            self.go_on()
        else:
            self._ask_again(part.error_code)


class Consumer(PartitionClient):
    """A consumer that reads the partition from its start, and sometimes seeks back to it.

    When it learns of another leader epoch, it first validates its position (KIP-320).
    """

    def __init__(
        self, client_id: int, environment: ClientEnvironment, partition: int, history: ClientPartitionHistory
    ) -> None:
        super().__init__(client_id, environment, partition)
        self._asks_latest, self._relies_on_offsets = environment.asks_latest, environment.promises_offsets
        self._history = history
        self._offset = Offset(0)
        self._last_epoch = -1
        """The leader epoch of the last record read."""
        self._validated_in = -1
        """The leader epoch in which its position was validated."""

    def go(self) -> None:
        """Fetch, or request offsets."""
        if self.stopped:
            return
        if self._relies_on_offsets and self._last_epoch >= 0 and self._validated_in < self._leader_epoch:
            self._validate()
            return
        drawn = self.random.random()
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
        self.ask(self._leader, "Fetch", message, self._fetched)

    def _fetched(self, answer: Message | None) -> None:
        error = 0 if answer is None else answer.error_code or answer.responses[0].partitions[0].error_code
        if error == Error.OFFSET_OUT_OF_RANGE.value and self._history.deletes:
            self._ask_earliest()
            return
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
        self.go_on()

    def _validate(self) -> None:
        """Request the end of the last record's epoch. **Kafka:** `OffsetsRequestManager.validatePositionsIfNeeded`."""
        wanted = Message(partition=self.partition, current_leader_epoch=self._leader_epoch, leader_epoch=self._last_epoch)
        message = Message(replica_id=-1, topics=[Message(topic=self.topic, partitions=[wanted])])
        self.ask(self._leader, "OffsetForLeaderEpoch", message, self._validated)

    def _validated(self, answer: Message | None) -> None:
        error = 0 if answer is None else answer.topics[0].partitions[0].error_code
        if answer is None or error:
            self._ask_again(error)
            return
        end = answer.topics[0].partitions[0]
        self._history.see_end(self._offset, self._last_epoch, Offset(end.end_offset), end.leader_epoch)
        self._validated_in = self._leader_epoch
        self.go_on()

    def _ask_earliest(self) -> None:
        """Go on where the log starts, since the position is deleted. **Kafka:** `auto.offset.reset=earliest`."""

        def take(answer: Message | None) -> None:
            error = 0 if answer is None else answer.topics[0].partitions[0].error_code
            if answer is None or error:
                self._ask_again(error)
                return
            self._offset, self._last_epoch = Offset(answer.topics[0].partitions[0].offset), -1
            self.go_on()

        self._list_offsets(EARLIEST, take)

    def _list_offsets(self, timestamp: int, take: Callable[[Message | None], None]) -> None:
        wanted = Message(partition_index=self.partition, current_leader_epoch=self._leader_epoch, timestamp=timestamp)
        topic = Message(name=self.topic, partitions=[wanted])
        self.ask(self._leader, "ListOffsets", Message(replica_id=-1, isolation_level=0, topics=[topic]), take)

    def _ask_latest(self) -> None:
        """Request the latest offset from the leader of the known epoch."""
        known = self._history.end_of_read(self._leader_epoch)

        def take(answer: Message | None) -> None:
            error = 0 if answer is None else answer.topics[0].partitions[0].error_code
            if answer is None or error:
                self._ask_again(error)
                return
            if self._relies_on_offsets:
                self._history.see_latest(known, Offset(answer.topics[0].partitions[0].offset))
            self.go_on()

        self._list_offsets(LATEST, take)


class Deleter(PartitionClient):
    """Deletes records of the partition from its start: some that were read, or all that are committed."""

    def __init__(
        self, client_id: int, environment: ClientEnvironment, partition: int, history: ClientPartitionHistory
    ) -> None:
        super().__init__(client_id, environment, partition)
        self._history = history

    @property
    def is_promised(self) -> bool:
        """It asks for more than there is, too."""
        return False

    def go(self) -> None:
        """Ask the leader, after a while."""
        self.later(self._delete, self.random.choice(DELETES_MS))

    def _delete(self) -> None:
        if self.stopped:
            return
        read = max(self._history.ends_read.values(), default=0)
        offset = self.random.choice((TO_HIGH_WATERMARK, read, self.random.randint(0, read), read + 1_000))
        wanted = Message(partition_index=self.partition, offset=offset)
        topic = Message(name=self.topic, partitions=[wanted])
        message = Message(topics=[topic], timeout_ms=WAITS_FOR_DELETION_MS)
        self.ask(self._leader, "DeleteRecords", message, lambda answer: self._ask_again())


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
    """The records of a batch from its attributes on, with their offset deltas. Cached: each batch is read by many."""
    head = first_fields(Offset(0), CRC_START - LENGTH_END + len(content), Epoch(0))
    batch = head.ljust(CRC_START, b"\0") + content
    return tuple((record.offset, Value.from_bytes(record.value or b"")) for record in records_of(batch))
