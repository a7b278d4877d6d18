"""A producer of transactions (version 2), and a reader of what is committed, in a simulated cluster."""

from collections.abc import Callable

from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.wire.values import Message
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.transactions.clients import ErrorMeaning, meaning_for_records, meaning_for_transaction
from kspec.spec.values import Error, Offset
from kspec.trials.simulated.clients.client import REQUEST_MS, ClientEnvironment, SimClient
from kspec.trials.simulated.clients.partitions import RETRIABLE
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.transactions.history import (
    TransactionHistory,
    TransactionName,
    TransactionOutcome,
    TransactionValue,
)

TRANSACTION_KEY, TRANSACTIONAL = 1, 0x10
COMMITS = 0.7
"""The share of transactions that their producer commits."""

WRITES_AGAIN = 0.3
"""The share of transactions with two batches in a partition."""

TIMEOUT_MS = 4_000
"""The time for a transaction, after which its coordinator aborts it."""

STANDS_STILL, STILL_MS = 0.04, TIMEOUT_MS + 2_000
"""The share of batches before which a producer stands still for longer than its transaction may take, and for how long."""

MOST_BYTES, FEW_BYTES, READS_FEW = 1 << 20, 1, 0.5
"""Bytes of a fetch at most: of one batch, which may be in the middle of a transaction, in this share of all fetches."""

READ_COMMITTED = 1


class SimulatedTransactionClient(SimClient):
    """A client that asks leaders and coordinators, and asks again until it is answered."""

    def __init__(self, client_id: int, environment: ClientEnvironment, partitions: int) -> None:
        super().__init__(client_id, environment)
        self.partitions = partitions
        self.topic_id = bytes(16)

    def start(self) -> None:
        """Begin."""
        self.go()

    def ask_leader(self, partition: int, api: str, make: Callable[[], Message], take: Callable[[Message], None]) -> None:
        """Ask the leader of a partition, whoever that is, until there is an answer."""

        def again() -> None:
            self.later(lambda: self.ask_leader(partition, api, make, take))

        def answered(answer: Message | None) -> None:
            if answer is None:
                again()
            else:
                take(answer)

        def told(answer: Message | None) -> None:
            listed = [] if answer is None else answer.topics[0].partitions
            found = [one for one in listed if one.partition_index == partition]
            if answer is None or not found or found[0].leader_id not in {one.node_id for one in answer.brokers}:
                again()
                return
            self.topic_id = bytes(answer.topics[0].topic_id)
            self.ask(found[0].leader_id, api, make(), answered)

        self.ask_for_topic(told)

    def ask_coordinator(self, name: str, api: str, message: Message, take: Callable[[Message], None]) -> None:
        """Ask the coordinator of a transactional id until there is an answer."""

        def again() -> None:
            self.later(lambda: self.ask_coordinator(name, api, message, take))

        def answered(answer: Message | None) -> None:
            if answer is None:
                again()
            else:
                take(answer)

        def found(answer: Message | None) -> None:
            if answer is None or answer.coordinators[0].error_code:
                again()
            else:
                self.ask(answer.coordinators[0].node_id, api, message, answered)

        wanted = Message(key_type=TRANSACTION_KEY, coordinator_keys=[name], key=name)
        self.ask(self.random.choice(self.brokers), "FindCoordinator", wanted, found)


class SimulatedTransactionProducer(SimulatedTransactionClient):
    """A producer that writes a batch or two to each partition in a transaction, and commits it, or aborts it.

    When it can do nothing more, it begins anew, as a program that is started again.
    """

    def __init__(
        self, client_id: int, environment: ClientEnvironment, partitions: int, name: str, history: TransactionHistory
    ) -> None:
        super().__init__(client_id, environment, partitions)
        self._name, self._history = name, history
        self._producer_id = self._epoch = -1
        self._number = 0
        self.transaction: TransactionName | None = None
        self.ended = 0
        """The number of transactions of which it knows the end."""

    @property
    def is_idle(self) -> bool:
        """Whether it has no transaction under way."""
        return self.transaction is None

    def go(self) -> None:
        """Begin the next transaction."""
        if self.stopped:
            return
        if self._producer_id < 0:
            self._identify()
            return
        self._number += 1
        self.transaction = TransactionName(self.node_id, self._number)
        self._history.begin(self.transaction)
        self._write(0)

    def _identify(self) -> None:
        message = Message(transactional_id=self._name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1)
        self.ask_coordinator(self._name, "InitProducerId", message, self._identified)

    def _identified(self, answer: Message) -> None:
        if answer.error_code:
            self.later(self._identify)
            return
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self.go()

    # ---- records

    def _write(self, partition: int, sequence: int = 0) -> None:
        """Write to a partition, perhaps once more, and then to the next; after the last one the transaction ends."""
        if partition == self.partitions:
            self._end(self.random.random() < COMMITS)
            return
        assert self.transaction is not None
        count = self.random.randint(1, 2)
        values = [TransactionValue(self.transaction, place) for place in range(sequence, sequence + count)]
        now_ms = self.clock.now_ms
        for value in values:
            self._history.send(partition, value)

        def make() -> Message:
            records = new_batch(
                [(now_ms, None, value.to_bytes()) for value in values],
                attributes=TRANSACTIONAL,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
            )
            data = [Message(index=partition, records=records)]
            topic = Message(name=self.topic, topic_id=self.topic_id, partition_data=data)
            return Message(transactional_id=self._name, acks=ACKS_ALL, timeout_ms=REQUEST_MS // 2, topic_data=[topic])

        def take(answer: Message) -> None:
            error = Error(answer.responses[0].partition_responses[0].error_code)
            meaning = ErrorMeaning.AGAIN if error in RETRIABLE else meaning_for_records(error)
            if meaning == ErrorMeaning.AGAIN:
                self.later(lambda: self.ask_leader(partition, "Produce", make, take))
            elif meaning == ErrorMeaning.DONE:
                base = answer.responses[0].partition_responses[0].base_offset
                for place, value in enumerate(values):
                    self._history.acknowledge(partition, Offset(base + place), value)
                if not sequence and self.random.random() < WRITES_AGAIN:
                    self._write(partition, count)
                else:
                    self._write(partition + 1)
            elif meaning == ErrorMeaning.ABORT:
                self._end(committed=False)
            else:
                self._fail(error)

        def send() -> None:
            self.ask_leader(partition, "Produce", make, take)

        if self.random.random() < STANDS_STILL:
            self.later(send, STILL_MS)
        else:
            send()

    # ---- the end

    def _end(self, committed: bool) -> None:
        assert self.transaction is not None
        if committed:
            self._history.outcomes[self.transaction] = TransactionOutcome.UNKNOWN
        message = Message(
            transactional_id=self._name, producer_id=self._producer_id, producer_epoch=self._epoch, committed=committed
        )

        def take(answer: Message) -> None:
            error = Error(answer.error_code)
            meaning = meaning_for_transaction(error)
            if meaning == ErrorMeaning.AGAIN:
                self.later(lambda: self.ask_coordinator(self._name, "EndTxn", message, take))
            elif meaning == ErrorMeaning.DONE:
                assert self.transaction is not None
                known = TransactionOutcome.COMMITTED if committed else TransactionOutcome.ABORTED
                self._history.outcomes[self.transaction] = known
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                self.ended += 1
                self._over()
            elif meaning == ErrorMeaning.ABORT and committed:
                self._end(committed=False)
            else:
                self._fail(error)

        self.ask_coordinator(self._name, "EndTxn", message, take)

    def _fail(self, error: Error) -> None:
        """Begin anew, as a program that is started again. Raises: `BrokenPromiseError`, if nobody has fenced it."""
        if error != Error.PRODUCER_FENCED:
            raise BrokenPromiseError("FailsIfFenced", f"{self._name} of {self.node_id} is told {error.name}")
        self.reported.add(error)
        self._producer_id = self._epoch = -1
        self._over()

    def _over(self) -> None:
        self.transaction = None
        self.go_on()


class CommittedReader(SimulatedTransactionClient):
    """A reader of one partition, from its start to its end and then anew: it gets what is committed, and nothing else."""

    def __init__(
        self, client_id: int, environment: ClientEnvironment, partitions: int, partition: int, history: TransactionHistory
    ) -> None:
        super().__init__(client_id, environment, partitions)
        self.partition, self._history = partition, history
        self._offset = Offset(0)
        self.is_last = False
        """Whether it is reading for the last time, from the start."""
        self.found: dict[Offset, TransactionValue] = {}
        self.end: Offset | None = None
        """The end of the log when it had nothing more to read, and all before was decided."""

    def read_all(self) -> None:
        """Read from the start, for the last time."""
        self.is_last, self._offset, self.found, self.end = True, Offset(0), {}, None

    def go(self) -> None:
        """Fetch."""
        if self.stopped:
            return
        offset = self._offset
        most_bytes = FEW_BYTES if self.random.random() < READS_FEW else MOST_BYTES

        def make() -> Message:
            wanted = Message(
                partition=self.partition,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=most_bytes,
            )
            return Message(
                replica_state=Message(replica_id=-1, replica_epoch=-1),
                isolation_level=READ_COMMITTED,
                max_wait_ms=200,
                min_bytes=1,
                max_bytes=most_bytes,
                session_id=0,
                session_epoch=-1,
                topics=[Message(topic=self.topic, topic_id=self.topic_id, partitions=[wanted])],
            )

        self.ask_leader(self.partition, "Fetch", make, lambda answer: self._fetched(offset, answer))

    def _fetched(self, offset: Offset, answer: Message) -> None:
        part = None if answer.error_code else answer.responses[0].partitions[0]
        if part is None or part.error_code or offset != self._offset:
            self.go_on()
            return
        content = memoryview(part.records or b"")
        aborted = sorted((one.first_offset, one.producer_id) for one in part.aborted_transactions or ())
        left_out: set[int] = set()
        for header in headers(content):
            last = header.base_offset + header.last_offset_delta
            while aborted and aborted[0][0] <= last:
                left_out.add(aborted.pop(0)[1])
            records = list(records_of(content[header.position : header.position + header.size]))
            if header.control:
                if (records[0].key or b"")[2:4] == b"\0\0":
                    left_out.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in left_out):
                for record in records:
                    if record.offset >= self._offset:
                        value = TransactionValue.from_bytes(record.value or b"")
                        self.found[record.offset] = value
                        self._history.see(self.partition, record.offset, value)
            self._offset = Offset(last + 1)
        if not content.nbytes and part.last_stable_offset == part.high_watermark == self._offset:
            self.end = self._offset
            if not self.is_last and self.random.random() < 0.1:
                self._offset, self.found = Offset(0), {}
        self.go_on()
