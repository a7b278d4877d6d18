"""A value of every class of transactions, for `test_purity`."""

from typing import Any

from kspec.spec.coordinator.effects import PersistTransactionalOffsets
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.describe_transactions import DescribedTransaction
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten, TransactionMarker
from kspec.spec.releases.transactions.history import TRANSACTIONS_4_3
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.clients import ProducerNumbers
from kspec.spec.transactions.effects import (
    AnswerTransaction,
    AppendTransaction,
    CoordinatedTransaction,
    SendMarkers,
    WaitingCompletion,
)
from kspec.spec.transactions.log.compaction import AbortingTransaction, CleanedBatch, CleanedTransactions
from kspec.spec.transactions.log.partition import (
    AbortedTransaction,
    CheckedBatch,
    EndedTransaction,
    LoggedBatch,
    LoggedMarker,
    OpenTransaction,
    PartitionTransactions,
    StartedVerification,
    Verification,
)
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.transactions.protocol import TransactionCoordinator, TransactionSettings
from kspec.spec.transactions.records import record_of
from kspec.spec.values import Epoch, Error, GroupId, Offset, ProducerEpoch, ProducerId, RequestNumber, TransactionalId

T, P, E = TransactionalId("t"), ProducerId(1), ProducerEpoch(0)
PLACE = TopicPartition("topic", 0)
METADATA = TransactionMetadata(T, P, 60_000)
MARKER = TransactionMarker(P, E, Epoch(0), True, frozenset({PLACE}))
ENDED = EndTxnResponse(Error.NONE)

TRANSACTION_VALUES: tuple[Any, ...] = (
    ProducerNumbers(ProducerId(1), ProducerEpoch(0), 1),
    AbortedTransaction(P, Offset(0), Offset(1), Offset(2)),
    AddOffsetsToTxnRequest(T, P, E, GroupId("g")),
    AddOffsetsToTxnResponse(Error.NONE),
    AddPartitionsToTxnRequest(T, P, E, frozenset({PLACE})),
    AbortingTransaction(AbortedTransaction(P, Offset(0), Offset(1), Offset(2))),
    AddPartitionsToTxnResponse(((PLACE, Error.NONE),)),
    AnswerTransaction(RequestNumber(1), ENDED),
    AppendTransaction(METADATA, Epoch(0)),
    CheckedBatch(PartitionTransactions()),
    CleanedBatch(CleanedTransactions(), True),
    CleanedTransactions(),
    CoordinatedTransaction(T, Epoch(0)),
    DescribedTransaction(Error.NONE, T),
    ENDED,
    EndTxnRequest(T, P, E, True),
    EndedTransaction(Offset(0), Offset(1), P),
    ListTransactionsRequest(),
    ListTransactionsResponse(Error.NONE),
    ListedTransaction(T, P, "Empty"),
    LoggedBatch(ProducerBatch(P, E, 0, 1)),
    LoggedMarker(P, E, Epoch(0), True, Offset(1)),
    MARKER,
    METADATA,
    MarkersWritten(((PLACE, Error.NONE),)),
    OpenTransaction(Offset(0), P),
    PLACE,
    PartitionTransactions(),
    SendMarkers(MARKER),
    StartedVerification(PartitionTransactions()),
    TRANSACTIONS_4_3,
    TransactionCoordinator(TRANSACTIONS_4_3),
    TransactionSettings(),
    Verification(P, 1, 0, E, True),
    PersistTransactionalOffsets(E, ()),
    TxnOffsetCommitRequest(T, GroupId("g"), P, E, ()),
    TxnOffsetCommitResponse(()),
    WaitingCompletion(Epoch(0), METADATA),
    record_of(METADATA, 2),
)
