"""The state of one transactional id at its coordinator, and the steps that it may take."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.topics import TopicPartition
from kspec.spec.values import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TransactionalId,
)

BUMPS_EPOCH = 2
"""The transaction version from which each transaction has an epoch of its own (KIP-890)."""


class TransactionState(Enum):
    """The state of a transactional id. Kafka: `TransactionState`."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
"""The end of the transaction is decided; markers are on their way."""

AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
"""No transaction is open."""


class TransactionMetadata(NamedTuple):
    """A transactional id: its producer, and its latest transaction. Times are in milliseconds. Kafka: `TransactionMetadata`.

    `previous_producer_id` is the id before the last step, `next_producer_id` the one that takes over when the markers of the
    last epoch are written. `last_producer_epoch`: of a producer that asked again for its id, the epoch that it had.
    `client_level`: the transaction version of the client at the last step.

    In memory alone: `pending` is the state that is being written, `failed_fence` is set if the log refused a fence, whose
    epoch nobody has been told.
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    timeout_ms: int
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    last_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: TimestampMs = NO_TIMESTAMP
    updated_ms: TimestampMs = NO_TIMESTAMP
    client_level: int = 0
    pending: TransactionState | None = None
    failed_fence: bool = False


def bumps_epoch(client_level: int) -> bool:
    """Whether the end of a transaction raises the producer's epoch. **Kafka:** `TransactionVersion.supportsEpochBump`."""
    return client_level >= BUMPS_EPOCH


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no client may get a larger epoch: only the coordinator's own is left.

    **Kafka:** `TransactionMetadata.isEpochExhausted`.
    """
    return producer_epoch >= LAST_PRODUCER_EPOCH - 1


def with_pending(metadata: TransactionMetadata, target: TransactionMetadata) -> TransactionMetadata:
    """The state while a step is being written. No other step may be (`pending`).

    **Kafka:** `TransactionMetadata.prepareTransitionTo`.
    """
    assert metadata.pending is None, f"{target.state} while {metadata.pending} is being written"
    return metadata._replace(pending=target.state)


def to_epoch_after(
    metadata: TransactionMetadata,
    named_epoch: ProducerEpoch | None,
    timeout_ms: int,
    now: TimestampMs,
) -> TransactionMetadata | None:
    """The state in which a producer has the next epoch; `None` if it names an epoch that is not the present one.

    A producer that repeats its request names the epoch before, and gets the present one.

    **Kafka:** `TransactionMetadata.prepareIncrementProducerEpoch`.
    """
    epoch, last = ProducerEpoch(metadata.producer_epoch + 1), NO_PRODUCER_EPOCH
    if named_epoch is not None:
        if metadata.producer_epoch in (named_epoch, NO_PRODUCER_EPOCH):
            last = metadata.producer_epoch
        elif named_epoch == metadata.last_producer_epoch:
            epoch, last = metadata.producer_epoch, metadata.last_producer_epoch
        else:
            return None
    return _empty(metadata, timeout_ms, now)._replace(producer_epoch=epoch, last_producer_epoch=last)


def to_new_id(
    metadata: TransactionMetadata, fresh: ProducerId, names_epoch: bool, timeout_ms: int, now: TimestampMs
) -> TransactionMetadata:
    """The state in which a producer whose epochs are used up has another id. **Kafka:** `prepareProducerIdRotation`."""
    last = metadata.producer_epoch if names_epoch else NO_PRODUCER_EPOCH
    return _empty(metadata, timeout_ms, now)._replace(
        producer_id=fresh, producer_epoch=ProducerEpoch(0), last_producer_epoch=last
    )


def _empty(metadata: TransactionMetadata, timeout_ms: int, now: TimestampMs) -> TransactionMetadata:
    return metadata._replace(
        state=TransactionState.EMPTY,
        previous_producer_id=metadata.producer_id,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        updated_ms=now,
    )


def to_ongoing(
    metadata: TransactionMetadata, added: frozenset[TopicPartition], client_level: int, now: TimestampMs
) -> TransactionMetadata:
    """The state with more partitions in the transaction, which may begin so. **Kafka:** `prepareAddPartitions`."""
    return metadata._replace(
        state=TransactionState.ONGOING,
        previous_producer_id=metadata.producer_id,
        partitions=metadata.partitions | added,
        start_ms=now if metadata.state in AT_REST else metadata.start_ms,
        updated_ms=now,
        client_level=client_level,
    )


def to_complete(metadata: TransactionMetadata, now: TimestampMs) -> TransactionMetadata:
    """The state once all markers are written; a producer whose epochs are used up goes on with its next id.

    **Kafka:** `TransactionMetadata.prepareComplete`.
    """
    commits = metadata.state == TransactionState.PREPARE_COMMIT
    rotates = bumps_epoch(metadata.client_level) and metadata.next_producer_id != NO_PRODUCER_ID
    return metadata._replace(
        state=TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT,
        producer_id=metadata.next_producer_id if rotates else metadata.producer_id,
        previous_producer_id=metadata.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=ProducerEpoch(0) if rotates else metadata.producer_epoch,
        partitions=frozenset(),
        updated_ms=now,
        pending=None,
        failed_fence=False,
    )


def is_timed_out(metadata: TransactionMetadata, now: TimestampMs) -> bool:
    """Whether a transaction has been open for too long. **Kafka:** `TransactionStateManager.timedOutTransactions`."""
    is_open = metadata.state == TransactionState.ONGOING and metadata.pending is None
    return is_open and metadata.start_ms + metadata.timeout_ms < now


def is_expired(metadata: TransactionMetadata, now: TimestampMs, expiration_ms: int) -> bool:
    """Whether a transactional id has not been used for so long that it is forgotten.

    **Kafka:** `TransactionStateManager.shouldExpire`, asked without a pending state.
    """
    return metadata.state in AT_REST and metadata.pending is None and metadata.updated_ms <= now - expiration_ms
