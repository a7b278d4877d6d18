"""A transactional id as its coordinator has it, and the effects of the coordinator's handlers."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.step import Step
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.values import Epoch, RequestNumber, TransactionalId

NO_REQUEST = RequestNumber(0)
"""The number in a step that nobody has asked for."""

TransactionRequest: TypeAlias = InitProducerIdRequest | AddPartitionsToTxnRequest | AddOffsetsToTxnRequest | EndTxnRequest
TransactionResponse: TypeAlias = (
    InitProducerIdResponse | AddPartitionsToTxnResponse | AddOffsetsToTxnResponse | EndTxnResponse
)


class WaitingCompletion(NamedTuple):
    """A transaction whose markers are on their way: the state that comes when all are written.

    `coordinator_epoch`: that of the coordinator which sent them. Kafka: `PendingCompleteTxn`.
    """

    coordinator_epoch: Epoch
    target: TransactionMetadata


class CoordinatedTransaction(NamedTuple):
    """A transactional id as its coordinator has it. Kafka: `CoordinatorEpochAndTxnMetadata`.

    `metadata` is `None` for an id that is not known. `coordinator_epoch` is the leader epoch of the id's partition of
    `__transaction_state`. `completion`: markers are on their way (`transactionsWithPendingMarkers`).
    """

    transactional_id: TransactionalId
    coordinator_epoch: Epoch
    metadata: TransactionMetadata | None = None
    completion: WaitingCompletion | None = None


@dataclass(frozen=True, slots=True)
class AppendTransaction:
    """Append the record of a state (`records.record_of`, of none a tombstone) to `__transaction_state`, with acks=all.

    What became of it is handed to `on_appended`, together with this effect. `number` and `request`: who is answered then;
    a step of the coordinator's own has none. `raised`: the epoch is raised in memory already, which a refusal leaves so.

    Kafka: `TransactionStateManager.appendTransactionToLog`.
    """

    target: TransactionMetadata
    coordinator_epoch: Epoch
    number: RequestNumber = NO_REQUEST
    request: TransactionRequest | None = None
    raised: bool = False


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Send a marker to the leaders of its partitions. What they answer is handed to `on_markers_answered`.

    Kafka: `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`.
    """

    marker: TransactionMarker


@dataclass(frozen=True, slots=True)
class AnswerTransaction:
    """Answer a request by the number under which it was handed to the coordinator."""

    number: RequestNumber
    response: TransactionResponse


TransactionEffect: TypeAlias = AppendTransaction | SendMarkers | AnswerTransaction
TransactionStep: TypeAlias = Step[CoordinatedTransaction, TransactionEffect]
