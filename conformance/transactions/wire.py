"""The requests of producers as a broker gets them, in the versions that a client of a transaction version sends.

Producer ids of a run are those of the model; a real broker gives out its own. `RunNames` knows which is which.
"""

import time
from typing import Any, NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.impl.records.batch import TRANSACTIONAL
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.model_check.models.processes import GROUP, INPUT
from kspec.model_check.models.transactions.board import ID
from kspec.model_check.models.transactions.values import (
    OffsetsRequest,
    ProducerAnswer,
    ProducerRequest,
    RecordOf,
    WriteRequest,
)
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.transactions.adding import CONSUMER_OFFSETS
from kspec.spec.values import NO_MEMBER_ID, NO_PRODUCER_ID, Error, ProducerId

ACKS_ALL = -1
KNOWS_VERSION = 2
"""From this version of WriteTxnMarkers on a marker says of which transaction version it is."""

WAIT_MS = 10_000

GENERATION = ("generation_id", "generation_id_or_member_epoch")
"""The name of a field of TxnOffsetCommit up to 4.3, and since."""

VERSIONS = {
    "InitProducerId": (4, 4),
    "AddPartitionsToTxn": (3, 3),
    "AddOffsetsToTxn": (3, 3),
    "EndTxn": (4, 5),
    "Produce": (11, 12),
    "TxnOffsetCommit": (4, 5),
}
"""The version of each request before version 2 of transactions, and in it."""


class EncodedRequest(NamedTuple):
    """A request as it is sent."""

    api: str
    version: int
    message: Message


class RunNames:
    """The names of one run on a broker: its topic, its transactional ids, its group and members; and real producer ids.

    `coordinator_epoch`: the epoch of the coordinator when the run begins, which is 0 in the model.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.topic = f"{run}-output"
        self.group = f"{run}-{GROUP}"
        self.members: dict[str, str] = {}
        self.generations: dict[int, int] = {}
        self.coordinator_epoch = 0
        self._real: dict[int, int] = {}

    def transactional_id(self, name: str) -> str:
        """A transactional id of the run on the broker."""
        return f"{self.run}-{name}"

    def real(self, producer_id: int) -> int:
        """The producer id that the broker has given for one of the model."""
        return self._real.get(producer_id, NO_PRODUCER_ID) if producer_id != NO_PRODUCER_ID else NO_PRODUCER_ID

    def learn(self, producer_id: int, real: int) -> None:
        """The broker has told a producer id where the model has this one; it is known from then on."""
        if real != NO_PRODUCER_ID and real not in self._real.values():
            self._real.setdefault(producer_id, real)

    def in_model(self, real: int) -> ProducerId:
        """The producer id of the model for one of the broker; one that is not known is itself, below zero."""
        return ProducerId(next((own for own, other in self._real.items() if other == real), -real - 2))


class RequestWriter:
    """Writes requests of the model in the fields of Kafka. `level`: the transaction version of the clients."""

    def __init__(self, codec: Codec, names: RunNames, level: int, timeout_ms: int) -> None:
        self._codec = codec
        self._names = names
        self._place = int(level > 1)
        self._timeout_ms = timeout_ms

    def request(self, request: ProducerRequest) -> EncodedRequest:
        """A request of a producer."""
        match request:
            case InitProducerIdRequest():
                return self._of("InitProducerId", **self._named(request), transaction_timeout_ms=self._timeout_ms)
            case AddPartitionsToTxnRequest(partitions=partitions):
                topics = [Message(name=self._names.topic, partitions=sorted(one.partition for one in partitions))]
                given = {f"v3_and_below_{name}": value for name, value in self._named(request).items()}
                return self._of("AddPartitionsToTxn", **given, v3_and_below_topics=topics)
            case AddOffsetsToTxnRequest():
                return self._of("AddOffsetsToTxn", **self._named(request), group_id=self._names.group)
            case EndTxnRequest(committed=committed):
                return self._of("EndTxn", **self._named(request), committed=committed)
            case WriteRequest(partition=partition, batch=batch, record=record):
                return self.records(partition, batch, record)
            case OffsetsRequest(commit=commit):
                return self._offsets(commit)

    def records(self, partition: int, batch: ProducerBatch, record: RecordOf) -> EncodedRequest:
        """A Produce request of one record, whose value says of which transaction it is."""
        now_ms = int(time.time() * 1000)
        records = new_batch(
            [(now_ms, None, value_of(record))],
            attributes=TRANSACTIONAL,
            producer_id=self._names.real(batch.producer_id),
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.first_sequence,
        )
        data = Message(name=self._names.topic, partition_data=[Message(index=partition, records=records)])
        name = self._names.transactional_id(ID)
        return self._of("Produce", transactional_id=name, acks=ACKS_ALL, timeout_ms=WAIT_MS, topic_data=[data])

    def marker(self, marker: TransactionMarker) -> EncodedRequest:
        """A marker as its coordinator sends it."""
        place = [Message(name=self._topic_of(one.topic), partition_indexes=[one.partition]) for one in marker.partitions]
        version = self._codec.versions("WriteTxnMarkers").last
        knows = {"transaction_version": marker.client_level} if version >= KNOWS_VERSION else {}
        fields = Message(
            producer_id=self._names.real(marker.producer_id),
            producer_epoch=marker.producer_epoch,
            transaction_result=marker.committed,
            topics=place,
            coordinator_epoch=self._names.coordinator_epoch + marker.coordinator_epoch,
            **knows,
        )
        return EncodedRequest("WriteTxnMarkers", version, Message(markers=[fields]))

    def _topic_of(self, topic: str) -> str:
        return topic if topic == CONSUMER_OFFSETS else self._names.topic

    def _offsets(self, commit: TxnOffsetCommitRequest) -> EncodedRequest:
        partitions = [Message(partition_index=one.partition, committed_offset=one.offset) for one in commit.offsets]
        is_member = commit.member_id != NO_MEMBER_ID
        generation = self._names.generations[commit.generation] if is_member else -1
        known = {field.name for field in self._codec.schema("TxnOffsetCommitRequest").fields}
        name = next(name for name in GENERATION if name in known)
        return self._of(
            "TxnOffsetCommit",
            **self._named(commit),
            **{name: generation},
            group_id=self._names.group,
            member_id=self._names.members[commit.member_id] if is_member else "",
            topics=[Message(name=INPUT, partitions=partitions)],
        )

    def _named(self, request: Any) -> dict[str, Any]:
        return {
            "transactional_id": self._names.transactional_id(request.transactional_id),
            "producer_id": self._names.real(request.producer_id),
            "producer_epoch": request.producer_epoch,
        }

    def _of(self, api: str, **fields: Any) -> EncodedRequest:
        return EncodedRequest(api, VERSIONS[api][self._place], Message(**fields))


def value_of(record: RecordOf) -> bytes:
    """The value of a record: its producer, and its transaction."""
    return b"%d.%d" % record


def error_in(request: ProducerRequest, answer: Message) -> Error:
    """The error of a broker's answer."""
    match request:
        case AddPartitionsToTxnRequest():
            (topic,) = answer.results_by_topic_v3_and_below
            (partition,) = topic.results_by_partition
            return Error(partition.partition_error_code)
        case WriteRequest():
            return Error(answer.responses[0].partition_responses[0].error_code)
        case OffsetsRequest():
            return Error(answer.topics[0].partitions[0].error_code)
        case _:
            return Error(answer.error_code)


def told(answer: ProducerAnswer, level: int) -> tuple[Error, int, int]:
    """An answer of `spec`: its error, and the producer id and epoch that it gives, which are -1 if it gives none."""
    match answer:
        case AddPartitionsToTxnResponse(((_, error),)):
            return error, -1, -1
        case Error():
            return answer, -1, -1
        case InitProducerIdResponse(error=error, producer_id=producer_id, producer_epoch=epoch):
            return error, producer_id, epoch
        case EndTxnResponse(error=error, producer_id=producer_id, producer_epoch=epoch):
            return (error, producer_id, epoch) if level > 1 else (error, -1, -1)
        case _:
            error_alone: Error = answer.error  # type: ignore[union-attr]
            return error_alone, -1, -1


def told_by_broker(request: ProducerRequest, answer: Message, level: int) -> tuple[Error, int, int]:
    """The same of a broker's answer, with its own producer id."""
    error = error_in(request, answer)
    if isinstance(request, InitProducerIdRequest) or (isinstance(request, EndTxnRequest) and level > 1):
        return error, answer.producer_id, answer.producer_epoch
    return error, -1, -1
