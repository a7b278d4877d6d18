"""Producing: what a leader accepts and when it acknowledges."""

from typing import NamedTuple

from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, NO_DEADLINE
from kspec.spec.values import Error, LeaderAndIsr, MonotonicMs, Offset


def check_produce(role: LeaderAndIsr, acks: int, min_isr: int) -> Error:
    """Whether a leader appends a produce request.

    Parameters: its role; the request's `acks`; `min.insync.replicas`, at most the number of replicas.

    Errors: `INVALID_REQUIRED_ACKS` unless acks is -1, 0 or 1; `NOT_ENOUGH_REPLICAS` for acks=all while there are fewer
    in-sync replicas than `min_isr`. With acks 0 and 1 the number of in-sync replicas does not matter.

    **Kafka:** `ReplicaManager.appendRecords`, `Partition.appendRecordsToLeader`. **Leaves out:** that a broker which does
    not lead answers `NOT_LEADER_OR_FOLLOWER`; only a leader is asked here (`leads`).
    """
    error = check_required_acks(acks)
    if error != Error.NONE:
        return error
    if acks == ACKS_ALL and len(role.isr) < min_isr:
        return Error.NOT_ENOUGH_REPLICAS
    return Error.NONE


def check_required_acks(acks: int) -> Error:
    """Whether there are such acks at all; a broker asks before it looks at any partition.

    Errors: `INVALID_REQUIRED_ACKS`.

    **Kafka:** `ReplicaManager.isValidRequiredAcks`.
    """
    return Error.NONE if acks in (ACKS_NONE, ACKS_LEADER, ACKS_ALL) else Error.INVALID_REQUIRED_ACKS


def min_isr_as_configured(min_isr: int, replicas: int) -> int:
    """The number of in-sync replicas that acks=all requires: `min.insync.replicas`, even if the partition has fewer
    replicas.

    **Kafka:** `Partition.appendRecordsToLeader` up to 3.6.
    """
    return min_isr


def min_isr_within_replicas(min_isr: int, replicas: int) -> int:
    """The number of in-sync replicas that acks=all requires: `min.insync.replicas`, but at most the number of replicas.

    **Kafka:** `Partition.effectiveMinIsr` (KAFKA-15583, since 3.7).
    """
    return min(min_isr, replicas)


class AppendedRecords(NamedTuple):
    """A waiting acks=all request: the offset for its answer, and the high watermark that it waits for (offsets).

    `required_offset` is the offset after the last record; for a duplicate, after the last record of the first copy.
    `deadline` is in milliseconds. Kafka: `DelayedProduce`, `ProducePartitionStatus`.
    """

    base_offset: Offset
    required_offset: Offset
    deadline: MonotonicMs = NO_DEADLINE


def completion(leads: bool, high_watermark: Offset, required_offset: Offset, isr_size: int, min_isr: int) -> Error | None:
    """The answer to a waiting acks=all request, `None` while it has to wait.

    The size is that of the *maximal* ISR, while the check before the append takes the committed one. The leader epoch in
    which the records were appended does not matter.

    Errors: `NOT_LEADER_OR_FOLLOWER`; `NOT_ENOUGH_REPLICAS_AFTER_APPEND` if the ISR has shrunk since; the records are
    committed even so.

    **Kafka:** `Partition.checkEnoughReplicasReachOffset`, `DelayedProduce.tryComplete`.
    """
    if not leads:
        return Error.NOT_LEADER_OR_FOLLOWER
    if high_watermark < required_offset:
        return None
    return Error.NONE if isr_size >= min_isr else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def expiry(waiting: AppendedRecords, now: MonotonicMs) -> Error | None:
    """The answer to a waiting request whose deadline has passed: the records stay, and may be committed later.

    Errors: `REQUEST_TIMED_OUT`.

    **Kafka:** `DelayedProduce.onExpiration`.
    """
    return Error.REQUEST_TIMED_OUT if waiting.deadline != NO_DEADLINE and now >= waiting.deadline else None
