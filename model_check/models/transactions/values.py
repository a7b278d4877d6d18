"""The values of the model's slots: a producer, what is under way, and the log of a partition."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.transactions.effects import TransactionResponse
from kspec.spec.transactions.log.partition import NO_GUARD, LoggedBatch, PartitionTransactions, TransactionalEntry
from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, Offset, ProducerEpoch, ProducerId, RequestNumber


class Phase(Enum):
    """The state of a producer. Kafka: `TransactionManager.State`."""

    NEW = "not started"
    READY = "ready"
    OPEN = "in transaction"
    BROKEN = "to abort"
    GIVEN_UP = "to abort, and then to get another epoch"
    RENEWING = "to get another epoch"
    FATAL = "failed"


class Wish(Enum):
    """The end that a producer has asked for, for a transaction, and whether it knows that it has come."""

    NONE = "open"
    COMMIT = "to be committed"
    ABORT = "to be aborted"
    COMMITTED = "committed, as it knows"
    ABORTED = "aborted, as it knows"


class TransactionalProducer(NamedTuple):
    """A producer: its id and epoch, its transaction, and the ends of all its transactions.

    `added`: partitions that the coordinator knows to be in the transaction (before version 2). `written`: how many records
    of the transaction are acknowledged, by partition. `sequences`: the next sequence number of each partition.
    `failed`: the error after which it can do nothing more.
    """

    phase: Phase = Phase.NEW
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    added: frozenset[int] = frozenset()
    written: tuple[int, ...] = ()
    sequences: tuple[int, ...] = ()
    wishes: tuple[Wish, ...] = ()
    failed: Error | None = None


class Processor(NamedTuple):
    """A process that reads input, and writes its output and its offset in one transaction, as a member of a group.

    `generation`: its own, 0 if it is in none. `position`: the next input that it reads, `None` until it has asked for the
    committed offset. `inputs`: what it has read in each of its transactions, `None` for nothing. `offered`: the transaction
    that is open has the offset.
    """

    generation: int = 0
    position: int | None = None
    inputs: tuple[int | None, ...] = ()
    offered: bool = False


class RecordOf(NamedTuple):
    """A record as a consumer finds it: the producer that wrote it, and in which of its transactions, counted from 1."""

    producer: int
    transaction: int


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A Produce request of one record for a partition. Kafka: `ProduceRequestData`."""

    partition: int
    batch: ProducerBatch
    record: RecordOf


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """A TxnOffsetCommit for the partition of the group, and the batch that its leader appends.

    `record` tells of which transaction it is. Kafka: `TxnOffsetCommitRequestData`.
    """

    partition: int
    batch: ProducerBatch
    record: RecordOf
    commit: TxnOffsetCommitRequest


LeaderRequest: TypeAlias = WriteRequest | OffsetsRequest
"""Requests to the leader of a partition, which has their transaction verified."""

TO_LEADERS = (WriteRequest, OffsetsRequest)

ProducerRequest: TypeAlias = (
    InitProducerIdRequest | AddPartitionsToTxnRequest | AddOffsetsToTxnRequest | EndTxnRequest | LeaderRequest
)


ProducerAnswer: TypeAlias = TransactionResponse | Error
"""The answer to a request; of a Produce request its error."""


class TransactionExchange(NamedTuple):
    """A request of a producer on a connection, and its answer.

    `is_taken`: the receiver has it. Of a Produce request: `guard` is that of its verification, and `verified` what the
    coordinator has said.
    """

    request: ProducerRequest
    is_taken: bool = False
    guard: int = NO_GUARD
    verified: Error | None = None
    answer: ProducerAnswer | None = None


class SentMarker(NamedTuple):
    """A marker for one partition on its way; `is_lost`: its connection is broken, so nobody hears of an answer."""

    marker: TransactionMarker
    is_lost: bool = False


class PartitionLog(NamedTuple):
    """The log of a partition, of which every record is committed at once, and the state that its leader has.

    `records` are those of the data batches, in order.
    """

    transactions: PartitionTransactions = PartitionTransactions()
    entries: tuple[TransactionalEntry, ...] = ()
    records: tuple[RecordOf, ...] = ()

    @property
    def end(self) -> Offset:
        """The log end offset, and the high watermark."""
        return Offset(len(self.entries))

    def placed(self) -> tuple[tuple[Offset, RecordOf], ...]:
        """The records with their offsets."""
        offsets = [Offset(place) for place, entry in enumerate(self.entries) if isinstance(entry, LoggedBatch)]
        return tuple(zip(offsets, self.records, strict=True))


def live_number(producer: int) -> RequestNumber:
    """The number of the request on a producer's connection."""
    return RequestNumber(2 * producer)


def late_number(producer: int) -> RequestNumber:
    """The number of the request on a connection that a producer has given up."""
    return RequestNumber(2 * producer + 1)
