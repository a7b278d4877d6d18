"""Writing in the published models: one record at a time."""

from spec.broker.rules.produce import completion
from spec.log.algebra import LogT
from spec.messages.produce import ACKS_ALL, ACKS_LEADER
from spec.values import Epoch, Error, LeaderAndIsr, Offset, Record


def append_as_leader(log: LogT, epoch: Epoch, value: int) -> LogT:
    """A leader's log with one more record, stamped with the leader's epoch.

    **Kafka:** `UnifiedLog.appendAsLeader`.

    **Departs:** one record without a producer; a broker appends a batch, and moves its high watermark in the same step
    if it alone is in sync.
    """
    return log.append((Record(value, epoch),))


def acknowledged_on_append(acks: int) -> bool:
    """Whether the producer hears of success as soon as the leader has the record: acks=1.

    **Kafka:** `ReplicaManager.maybeAddDelayedProduce`.

    **Departs:** in Kafka a producer with acks=0 goes on at once as well; nobody tells it anything.
    """
    return acks == ACKS_LEADER


def acknowledged_on_commit(role: LeaderAndIsr, acks: int, high_watermark: Offset, min_isr: int) -> bool:
    """Whether the producer hears of success when the high watermark passes the record: acks=all, enough in sync.

    Parameters: the leader's `role`; the request's `acks`; the high watermark that has just passed the record (offset);
    `min.insync.replicas`, at most the number of replicas.

    **Kafka:** `Partition.checkEnoughReplicasReachOffset`.

    **Departs:** nobody waits: the answer is given in the step that moves the high watermark, by the leader that moves it.
    A broker answers when it looks, and a leader that was deposed answers `NOT_LEADER_OR_FOLLOWER`.
    """
    told = completion(True, high_watermark, high_watermark, len(role.isr), min_isr)
    return acks == ACKS_ALL and told == Error.NONE
