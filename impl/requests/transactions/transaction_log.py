"""The partitions of `__transaction_state` that this broker leads: the transactional ids in them, as their records say."""

from typing import NamedTuple

from kspec.impl.broker.replica import Replica
from kspec.impl.coordinator.transactions import decode_key, decode_value, encode_key, encode_value
from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.requests.coordinator_log import CoordinatorLog
from kspec.spec.controller.topics.names import TRANSACTION_STATE
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction
from kspec.spec.transactions.loading import is_current_term
from kspec.spec.transactions.metadata import TransactionState
from kspec.spec.transactions.records import TransactionRecord, record_of
from kspec.spec.values import Epoch, Instant, TransactionalId


class LoadedTransactions(NamedTuple):
    """The last record of each transactional id, as far as the log has been read; none for a tombstone."""

    records: dict[TransactionalId, TransactionRecord | None]


class TransactionShard:
    """The transactional ids of one partition that this broker leads. Kafka: `TxnMetadataCacheEntry`."""

    def __init__(self, replica: Replica, records: dict[TransactionalId, TransactionRecord | None]) -> None:
        self.replica = replica
        self.records = records
        """The records that were loaded."""
        self.epoch: Epoch = replica.partition.leader_epoch
        """The coordinator epoch."""
        self.transactions: dict[TransactionalId, CoordinatedTransaction] = {}

    @property
    def index(self) -> int:
        """The number of the partition."""
        return self.replica.place.partition

    def transaction(self, transactional_id: TransactionalId) -> CoordinatedTransaction:
        """A transactional id as it is now."""
        return self.transactions.get(transactional_id) or CoordinatedTransaction(transactional_id, self.epoch)

    def keep(self, state: CoordinatedTransaction) -> None:
        """A transactional id as it is from now on."""
        if state.metadata is None:
            self.transactions.pop(state.transactional_id, None)
        else:
            self.transactions[state.transactional_id] = state


class TransactionLog(CoordinatorLog[LoadedTransactions, TransactionShard]):
    """The transactional ids of this broker, by the partition of `__transaction_state` that keeps them."""

    topic, things = TRANSACTION_STATE, "transactional ids"

    def nothing_read(self, replica: Replica) -> LoadedTransactions:
        """No transactional id."""
        return LoadedTransactions({})

    def read(self, loaded: LoadedTransactions, content: bytes) -> LoadedTransactions:
        """The transactional ids after one more stretch. **Kafka:** `TransactionStateManager.loadTransactionMetadata`."""
        found = dict(loaded.records)
        view = memoryview(content)
        for header in headers(view):
            if header.control:
                continue
            for record in records_of(view[header.position : header.position + header.size]):
                transactional_id = decode_key(record.key or b"")
                if transactional_id is not None:
                    value = record.value
                    found[transactional_id] = None if value is None else decode_value(transactional_id, value)
        return LoadedTransactions(found)

    def new_shard(self, replica: Replica, loaded: LoadedTransactions) -> TransactionShard:
        """The transactional ids that were read."""
        return TransactionShard(replica, loaded.records)

    def keeps(self, shard: TransactionShard) -> bool:
        """Whether this broker still leads, in the epoch in which the log was loaded."""
        return super().keeps(shard) and is_current_term(shard.epoch, shard.replica.partition.leader_epoch)


def batch_of(append: AppendTransaction, cluster_level: int, now: Instant) -> memoryview:
    """The record of a step as a batch. **Kafka:** `TransactionStateManager.appendTransactionToLog`."""
    target = append.target
    is_gone = target.state == TransactionState.DEAD
    value = None if is_gone else encode_value(record_of(target, cluster_level), cluster_level)
    return memoryview(new_batch([(now.timestamp, encode_key(target.transactional_id), value)]))
