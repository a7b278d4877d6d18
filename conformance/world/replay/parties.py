"""Parties of one run on the wire: brokers of the model as nodes, the partition as a topic of its own, requests as messages.

Brokers of the model are interchangeable, so the broker under test is always node 1: its id and broker 1's are swapped. A
broker epoch of the model is a small number; on the wire it is the offset of a registration.
"""

import time
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from kspec.conformance.kafka.codec import batches_in
from kspec.conformance.kafka.network import ArrivedRequest
from kspec.conformance.world.environment.registry import REAL_NODE
from kspec.conformance.world.environment.world import World
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.model_check.models.kafka.party import batch_of
from kspec.spec.log.batch import records_of
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.values import NO_BROKER_EPOCH, NO_EPOCH, UNDEFINED_EPOCH_END, Offset, Record

FETCH_VERSION, PRODUCE_VERSION, LIST_OFFSETS_VERSION, EPOCH_END_VERSION = 17, 11, 7, 4
"""Versions that all releases under test have. A fetch names its topic by id."""

DEBUGGING_CONSUMER = -2
"""A replica id that may ask any replica, followers too. Kafka: `FetchRequest.DEBUGGING_CONSUMER_ID`."""

MOST_BYTES = 1 << 20


class SeenFetch(NamedTuple):
    """A fetch of one partition as it is on the wire."""

    replica: int
    broker_epoch: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int


class SeenAnswer(NamedTuple):
    """The model's part of a fetch response: an error, or a diverging epoch, or the high watermark and records."""

    error: int
    diverging: tuple[int, int] | None
    high_watermark: int | None
    records: tuple[Record, ...]


class SeenProposal(NamedTuple):
    """An AlterPartition request: members of the ISR with their broker epochs, the epochs on which it is based."""

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int


class Parties:
    """The parties of one run. `real`: the model's broker that is the broker under test.

    `registration`: its request to be registered, while it is unanswered.
    """

    def __init__(self, world: World, real: int, name: str) -> None:
        self.world = world
        self.real = real
        self.topic = name
        self.topic_id = uuid.uuid4().bytes
        self.registration: ArrivedRequest | None = None
        self._epochs: dict[tuple[int, int], int] = {}
        self._producer_id = int.from_bytes(self.topic_id[:4], "big")

    def node(self, broker: int) -> int:
        """The node of a broker of the model."""
        if broker == self.real:
            return REAL_NODE
        return self.real if broker == REAL_NODE else broker

    def nodes(self, brokers: Iterable[int]) -> list[int]:
        """The nodes of these brokers, in the order of the brokers."""
        return [self.node(broker) for broker in sorted(brokers)]

    def knows_epoch(self, broker: int, epoch: int) -> None:
        """Note that a broker epoch of the model is the one with which the node is registered now."""
        self._epochs[broker, epoch] = self.world.registry.epochs[self.node(broker)]

    def epoch_on_wire(self, broker: int, epoch: int) -> int:
        """A broker epoch on the wire."""
        return NO_BROKER_EPOCH if epoch < 0 else self._epochs[broker, epoch]

    # ---- records

    def value(self, number: int) -> bytes:
        """The value of the record with this number in the model."""
        return f"m{number}".encode()

    def record_batch(self, number: int, *, idempotent: bool) -> bytes:
        """The batch in which the producer sends a record."""
        records = [(int(time.time() * 1000), None, self.value(number))]
        if not idempotent:
            return new_batch(records)
        sent = batch_of(number, Offset(0))
        return new_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=sent.first_sequence)

    def stored(self, records: Iterable[Record], base: int, *, idempotent: bool) -> bytes:
        """The batches of a leader's log, from an offset on."""
        found = b""
        for offset, record in enumerate(records, start=base):
            sequence = batch_of(record.value, Offset(0)).first_sequence if idempotent else -1
            found += new_batch(
                [(0, None, self.value(record.value))],
                base_offset=offset,
                leader_epoch=record.leader_epoch,
                producer_id=self._producer_id if idempotent else -1,
                producer_epoch=0 if idempotent else -1,
                base_sequence=sequence,
            )
        return found

    # ---- fetching

    def fetch_on_wire(self, request: FetchRequest) -> Message:
        """The fetch of a stand-in, which waits for nothing."""
        epoch = self.epoch_on_wire(request.replica, request.broker_epoch)
        return self._fetch(self.node(request.replica), epoch, *request.fetch)

    def look(self) -> Message:
        """A fetch that changes no state; its response has the high watermark, and the records below it."""
        return self._fetch(DEBUGGING_CONSUMER, -1, NO_EPOCH, 0, NO_EPOCH)

    def _fetch(self, replica: int, epoch: int, leader_epoch: int, offset: int, last_epoch: int) -> Message:
        partition = Message(
            partition=0,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=0 if replica > 0 else -1,
            partition_max_bytes=MOST_BYTES,
        )
        return Message(
            replica_state=Message(replica_id=replica, replica_epoch=epoch),
            max_wait_ms=0,
            min_bytes=0,
            session_id=0,
            session_epoch=-1,
            topics=[Message(topic_id=self.topic_id, partitions=[partition])],
        )

    def expected_fetch(self, request: FetchRequest) -> SeenFetch:
        """The model's request as it is on the wire."""
        epoch = self.epoch_on_wire(request.replica, request.broker_epoch)
        return SeenFetch(self.node(request.replica), epoch, *request.fetch)

    def seen_fetch(self, message: Message) -> SeenFetch | None:
        """The part of a real fetch that is about this run's partition alone."""
        if len(message.topics) != 1 or bytes(message.topics[0].topic_id) != self.topic_id:
            return None
        partition = message.topics[0].partitions[0]
        replica = message.replica_state
        return SeenFetch(
            replica.replica_id,
            replica.replica_epoch,
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.last_fetched_epoch,
        )

    def answer_on_wire(self, answer: FetchResponse, *, idempotent: bool) -> Message:
        """The response of a leader's stand-in to the real follower."""
        records = self.stored(records_of(answer.records), answer.base_offset, idempotent=idempotent)
        diverging = {}
        if answer.diverging != UNDEFINED_EPOCH_END:
            epoch, end = answer.diverging.leader_epoch, answer.diverging.end_offset
            diverging = {"diverging_epoch": Message(epoch=epoch, end_offset=end)}
        partition = Message(
            partition_index=0,
            error_code=answer.error.value,
            high_watermark=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset,
            log_start_offset=answer.log_start_offset,
            records=records,
            **diverging,
        )
        return Message(error_code=0, session_id=0, responses=[Message(topic_id=self.topic_id, partitions=[partition])])

    def expected_answer(self, answer: FetchResponse) -> SeenAnswer:
        """The compared part of the model's response."""
        if answer.error.value:
            return SeenAnswer(answer.error.value, None, None, ())
        if answer.diverging != UNDEFINED_EPOCH_END:
            return SeenAnswer(0, (answer.diverging.leader_epoch, answer.diverging.end_offset), None, ())
        return SeenAnswer(0, None, answer.high_watermark, tuple(records_of(answer.records)))

    def seen_answer(self, message: Message) -> SeenAnswer:
        """The compared part of the real leader's response."""
        if message.error_code:
            return SeenAnswer(message.error_code, None, None, ())
        part = message.responses[0].partitions[0]
        if part.error_code:
            return SeenAnswer(part.error_code, None, None, ())
        if part.diverging_epoch is not None and part.diverging_epoch.end_offset >= 0:
            return SeenAnswer(0, (part.diverging_epoch.epoch, part.diverging_epoch.end_offset), None, ())
        return SeenAnswer(0, None, part.high_watermark, records_in(bytes(part.records or b"")))

    # ---- AlterPartition

    def expected_proposal(self, request: AlterPartitionRequest) -> SeenProposal:
        """The model's request as it is on the wire."""
        members = sorted((self.node(one.broker), self.epoch_on_wire(one.broker, one.broker_epoch)) for one in request.isr)
        return SeenProposal(tuple(members), request.leader_epoch, request.partition_epoch)

    def seen_proposal(self, message: Message) -> SeenProposal | None:
        """A real request, if it is about this run's partition."""
        topic = message.topics[0]
        if bytes(topic.topic_id) != self.topic_id:
            return None
        part = topic.partitions[0]
        members = sorted((one.broker_id, one.broker_epoch) for one in part.new_isr_with_epochs)
        return SeenProposal(tuple(members), part.leader_epoch, part.partition_epoch)

    def isr_answer_on_wire(self, answer: AlterPartitionResponse) -> Message:
        """The controller's response to the real leader."""
        granted = {}
        if not answer.error.value:
            granted = {
                "leader_id": self.node(answer.leader) if answer.leader >= 0 else -1,
                "leader_epoch": answer.leader_epoch,
                "isr": self.nodes(answer.isr),
                "leader_recovery_state": answer.recovery.value,
                "partition_epoch": answer.partition_epoch,
            }
        partition = Message(partition_index=0, error_code=answer.error.value, **granted)
        return Message(error_code=0, topics=[Message(topic_id=self.topic_id, partitions=[partition])])


def records_in(data: bytes) -> tuple[Record, ...]:
    """Records on the wire or on disk as records of the model."""
    return tuple(
        Record(int((record.value or b"m-1")[1:]), header.leader_epoch)
        for header, records in batches_in(data)
        for record in records
    )
