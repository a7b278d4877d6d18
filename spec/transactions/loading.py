"""A broker begins to coordinate a transactional id, by what is in the log, and ids that nobody uses are forgotten."""

from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.step import Step
from kspec.spec.transactions.appending import send_markers
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction, TransactionStep
from kspec.spec.transactions.metadata import PREPARED, TransactionState, is_expired, with_pending
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.transactions.records import TransactionRecord, metadata_of
from kspec.spec.values import Epoch, Error, Instant, TransactionalId


def transaction_partition(transactional_id: TransactionalId, partitions: int) -> int:
    """The partition of `__transaction_state` that has an id; its leader coordinates the id.

    **Kafka:** `TransactionStateManager.partitionFor`.
    """
    return partition_for(transactional_id, partitions)


def check_coordinates(is_loading: bool, is_loaded: bool) -> Error:
    """Whether a broker coordinates the ids of a partition of `__transaction_state`.

    Errors: `COORDINATOR_LOAD_IN_PROGRESS`; `NOT_COORDINATOR` if it has never led the partition, or leads it no more.

    **Kafka:** `TransactionStateManager.getAndMaybeAddTransactionState`.
    """
    if is_loading:
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    return Error.NONE if is_loaded else Error.NOT_COORDINATOR


def is_current_term(loaded_epoch: Epoch, leader_epoch: Epoch) -> bool:
    """Whether what was loaded in one leader epoch of the partition still counts: in that epoch alone. It is the coordinator
    epoch of every marker, so a broker that goes on leading in another one loads the log again.

    **Kafka:** `TransactionCoordinator.onElection`.
    """
    return loaded_epoch == leader_epoch


def load_transaction(
    transactional_id: TransactionalId, record: TransactionRecord | None, coordinator_epoch: Epoch, now: Instant
) -> TransactionStep:
    """Take over a transactional id with the last record that the log has of it, `None` for none or a tombstone.

    A transaction whose end is decided is ended: its markers are sent again, in the name of the new coordinator epoch.

    **Kafka:** `TransactionStateManager.loadTransactionsForTxnTopicPartition`. Upon resignation a broker forgets the id.
    """
    if record is None:
        return Step(CoordinatedTransaction(transactional_id, coordinator_epoch))
    state = CoordinatedTransaction(transactional_id, coordinator_epoch, metadata_of(record))
    return send_markers(state, now) if record.state in PREPARED else Step(state)


def on_expiry(coordinator: TransactionCoordinator, state: CoordinatedTransaction, now: Instant) -> TransactionStep:
    """A transactional id that has not been used for long is forgotten once its tombstone is in the log.

    **Kafka:** `TransactionStateManager.removeExpiredTransactionalIds`, every hour.
    """
    metadata = state.metadata
    if metadata is None or not is_expired(metadata, now.timestamp, coordinator.settings.expiration_ms):
        return Step(state)
    target = metadata._replace(state=TransactionState.DEAD)
    append = AppendTransaction(target, state.coordinator_epoch)
    return Step(state._replace(metadata=with_pending(metadata, target)), (append,))
