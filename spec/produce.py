"""Producing: what a leader accepts and when it acknowledges."""

from typing import TypeVar

from spec.log import Log
from spec.values import Epoch, Error, LeaderAndIsr, Record

LogT = TypeVar("LogT", bound=Log)

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1


def check_produce(role: LeaderAndIsr, acks: int, min_isr: int) -> Error:
    """Whether a leader appends a produce request.

    Parameters: its role; the request's `acks`; `min.insync.replicas`, at most the number of replicas.

    Errors: `INVALID_REQUIRED_ACKS` unless acks is -1, 0 or 1; `NOT_ENOUGH_REPLICAS` for acks=all while there are fewer
    in-sync replicas than `min_isr`. With acks 0 and 1 the number does not matter.

    **Kafka:** `ReplicaManager.appendRecords`, `Partition.appendRecordsToLeader`. **Leaves out:** that a broker which does
    not lead answers `NOT_LEADER_OR_FOLLOWER`; only a leader is asked here (`leads`).
    """
    if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        return Error.INVALID_REQUIRED_ACKS
    if acks == ACKS_ALL and len(role.isr) < min_isr:
        return Error.NOT_ENOUGH_REPLICAS
    return Error.NONE


def append_as_leader(log: LogT, epoch: Epoch, value: int) -> LogT:
    """A leader's log with one more record, stamped with the leader's epoch.

    **Kafka:** `UnifiedLog.appendAsLeader`.
    """
    return log.append((Record(value, epoch),))


def acknowledged_on_append(acks: int) -> bool:
    """Whether the producer hears of success as soon as the leader has the record: acks=1.

    **Kafka:** `ReplicaManager.maybeAddDelayedProduce`.
    """
    return acks == ACKS_LEADER


def acknowledged_on_commit(role: LeaderAndIsr, acks: int, min_isr: int) -> bool:
    """Whether the producer hears of success when the high watermark passes the record: acks=all, enough in sync.

    **Kafka:** `Partition.checkEnoughReplicasReachOffset`.
    """
    return acks == ACKS_ALL and len(role.isr) >= min_isr
