"""Leaders answer the markers of a coordinator, or do not."""

from dataclasses import replace

from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten, TransactionMarker
from kspec.spec.step import Step
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.appending import complete_if_written
from kspec.spec.transactions.effects import CoordinatedTransaction, SendMarkers, TransactionStep
from kspec.spec.transactions.metadata import PREPARED
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.values import Error

WRITTEN = frozenset({Error.NONE, Error.UNSUPPORTED_VERSION})
"""The partition has its marker, or can have no transaction."""

SENT_AGAIN = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.REQUEST_TIMED_OUT,
        Error.KAFKA_STORAGE_ERROR,
    }
)
"""The partition has another leader, or will take the marker later."""

NOT_NAMED = Error.REQUEST_TIMED_OUT
"""The error of a partition that an answer does not name: the marker is sent again."""


def on_markers_answered(
    coordinator: TransactionCoordinator, state: CoordinatedTransaction, marker: TransactionMarker, answer: MarkersWritten
) -> TransactionStep:
    """The leaders of some partitions have answered a marker.

    Partitions that are written leave the transaction; some are sent the marker again. With `INVALID_PRODUCER_EPOCH` or
    `TRANSACTION_COORDINATOR_FENCED` nothing more is sent for the transactional id: another coordinator has taken over.
    An answer to another coordinator epoch changes nothing.

    **Kafka:** `TransactionMarkerRequestCompletionHandler.onComplete`. **Leaves out:** errors that are a defect.
    """
    metadata = state.metadata
    if metadata is None or marker.coordinator_epoch != state.coordinator_epoch:
        return Step(_without_completion(coordinator, state, marker))
    written = {one for one, error in answer.partitions if error in WRITTEN}
    again = frozenset(one for one, error in answer.partitions if error in SENT_AGAIN)
    if metadata.state in PREPARED:
        metadata = metadata._replace(partitions=metadata.partitions - written)
    after = state._replace(metadata=metadata)
    if len(written) + len(again) < len(answer.partitions):
        return Step(_without_completion(coordinator, after, marker))
    return _sent_again(after, marker, again) if again else complete_if_written(after)


def on_markers_lost(
    coordinator: TransactionCoordinator, state: CoordinatedTransaction, marker: TransactionMarker
) -> TransactionStep:
    """The connection broke on which a marker was sent: it is sent again, to who leads now.

    **Kafka:** `TransactionMarkerRequestCompletionHandler.onComplete`, `wasDisconnected`.
    """
    if state.metadata is None or marker.coordinator_epoch != state.coordinator_epoch:
        return Step(_without_completion(coordinator, state, marker))
    return _sent_again(state, marker, marker.partitions)


def on_partitions_deleted(state: CoordinatedTransaction, deleted: frozenset[TopicPartition]) -> TransactionStep:
    """Partitions that are to get a marker have no leader in the metadata: they are taken to be deleted (KAFKA-5202).

    **Kafka:** `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`.
    """
    metadata = state.metadata
    if metadata is None or metadata.state not in PREPARED:
        return Step(state)
    return complete_if_written(state._replace(metadata=metadata._replace(partitions=metadata.partitions - deleted)))


def _sent_again(
    state: CoordinatedTransaction, marker: TransactionMarker, partitions: frozenset[TopicPartition]
) -> TransactionStep:
    return Step(state, (SendMarkers(replace(marker, partitions=partitions)),))


def _without_completion(
    coordinator: TransactionCoordinator, state: CoordinatedTransaction, marker: TransactionMarker
) -> CoordinatedTransaction:
    """The state in which nothing more is sent, if what is sent belongs to this answer. **Kafka:** `removeMarkersForTxn`."""
    completion = state.completion
    if completion is None:
        return state
    forgets = coordinator.protocol.forgets_markers(marker.coordinator_epoch, completion.coordinator_epoch)
    return state._replace(completion=None) if forgets else state
