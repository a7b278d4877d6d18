"""Writing in the published models: one record at a time."""

from spec.log.algebra import LogT
from spec.messages.produce import ACKS_ALL, ACKS_LEADER
from spec.values import Epoch, LeaderAndIsr, Record


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
