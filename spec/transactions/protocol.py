"""The rules in which Kafka's releases differ about transactions, and a coordinator with its settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kspec.spec.transactions.rules import coordination, partitions
from kspec.spec.values import Error, Offset, ProducerEpoch, TimestampMs

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionProtocol:
    """The rules of a release about transactions (`spec.releases.transactions`)."""

    name: str

    named_by: Callable[[Any], Any]
    """The id and epoch that a producer counts as having, of those that its InitProducerId names, or `None`."""

    may_end: Callable[[bool, int, int], bool]
    """Whether an EndTxn is taken before version 2: if it is from a client, its epoch, and the producer's."""

    fence: Callable[[ProducerEpoch, bool], ProducerEpoch]
    """The epoch that fences a producer, of its epoch, and whether an earlier fence has failed."""

    bumps_from: Callable[[ProducerEpoch, ProducerEpoch], ProducerEpoch]
    """The epoch from which the end of a fenced transaction of version 2 goes on, of the producer's and the fence's."""

    epoch_after: Callable[[ProducerEpoch, bool], ProducerEpoch]
    """The producer's epoch after a transaction of version 2, of the one in it, and whether it is aborted."""

    rotates: Callable[[bool], bool]
    """Whether a producer whose epochs are used up gets another id as its transaction ends, if it is fenced or not."""

    forgets_markers: Callable[[int, int], bool]
    """Whether a late answer ends the sending of markers: by its coordinator epoch, and that of those sent last."""

    pending_first: bool
    """Whether a step that is being written is looked at before the producer's id and epoch."""

    unverified: Error
    """The answer for a partition that is not in the transaction."""

    is_verified: Callable[[bool], bool]
    """Whether the coordinator is asked before a batch is appended, of whether its transaction is open in the log."""

    epoch_before_guard: bool
    """Whether a batch of an earlier epoch is told that, and not that it is unverified."""

    takes_marker: Callable[[int, int, bool, bool], bool]
    """Whether a leader takes a marker: its epoch, the producer's, if each transaction has its epoch, if one is open."""

    overtaken_commit: Callable[[bool], Error] = coordination.is_invalid_state
    """The answer to a commit of a transaction that was aborted, if it comes from the epoch before or not."""

    counts_append: Callable[[int, int], bool] = coordination.is_same_coordinator
    """Whether a record that was written counts, of the coordinator epochs then and now."""

    may_coordinate: Callable[[int, int], bool] = coordination.coordinates_at_once
    """Whether a coordinator acts on its log, of the offsets up to which it has read it, and up to which it is committed."""

    passes_guard: Callable[[int, int], bool] = partitions.is_this_guard
    """Whether a batch is verified, by the guards of its producer and of itself."""

    keeps_guard: Callable[[bool, bool, int, int], bool] = partitions.keeps_guard
    """Whether a verification goes on after a batch: if epochs grow, if it is a marker, its epoch, the guard's."""

    begins: Callable[[int, int], bool] = partitions.is_lowest
    """Whether a batch may be the first of a transaction, of its sequence number and the lowest that was verified."""

    takes_coordinator: Callable[[int, int], bool] = partitions.is_later_coordinator
    """Whether a marker's coordinator epoch is taken, beside the last one of its producer."""

    marker_goes: Callable[[bool], bool] = partitions.goes_without_batches
    """Whether a marker may go in a compaction, by whether that has read a batch of its transaction."""

    empties_marker: Callable[[bool, int, TimestampMs], bool] = partitions.goes_after_horizon
    """Whether a marker goes now, if it may, of the delete horizon of its batch, and the time (ms)."""

    is_aborted_within: Callable[[int, int, int, int], bool] = partitions.is_aborted_within
    """Whether a consumer has to know an aborted transaction, of its first and last offset, and of those that are read."""

    ends_search: Callable[[int, int], bool] = partitions.ends_search
    """Whether no later aborted transaction matters, of the stable offset in an entry of the index, and the last to read."""

    first_unstable: Callable[[tuple[Offset, ...], tuple[Offset, ...]], Offset | None] = partitions.first_unstable
    """The first unstable offset, of those where open transactions begin, and those whose end is not committed."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The configuration of a broker that coordinates transactions; times in milliseconds. Kafka: `TransactionLogConfig`."""

    max_timeout_ms: int = 15 * MINUTE_MS
    """`transaction.max.timeout.ms`."""

    expiration_ms: int = 7 * 24 * 60 * MINUTE_MS
    """`transactional.id.expiration.ms`."""

    offsets_partitions: int = 50
    """`offsets.topic.num.partitions`."""

    cluster_level: int = 2
    """The finalized level of the feature `transaction.version`."""


@dataclass(frozen=True, slots=True)
class TransactionCoordinator:
    """A transaction coordinator: the rules of its release, and its settings."""

    protocol: TransactionProtocol
    settings: TransactionSettings = TransactionSettings()
