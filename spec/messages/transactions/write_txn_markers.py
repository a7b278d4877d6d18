"""WriteTxnMarkers: a coordinator has the leaders of partitions end a transaction in their logs."""

from dataclasses import dataclass

from kspec.spec.topics import TopicPartition
from kspec.spec.values import Epoch, Error, ProducerEpoch, ProducerId


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """The end of a transaction for some partitions. Kafka: `WritableTxnMarker`.

    `client_level`: the transaction version with which it ended; a broker before 4.2 is not told.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: Epoch
    committed: bool
    partitions: frozenset[TopicPartition]
    client_level: int = 0


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """The error of each partition of a marker, in order of topic and partition. Kafka: `WritableTxnMarkerResult`."""

    partitions: tuple[tuple[TopicPartition, Error], ...]
