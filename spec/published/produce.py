"""Writing in the published models: one record at a time."""

from kspec.spec.broker.rules.produce import completion
from kspec.spec.log.algebra import LogT
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER
from kspec.spec.values import Epoch, Error, LeaderAndIsr, Offset, Record


def append_as_leader(log: LogT, epoch: Epoch, value: int) -> LogT:
    """A leader's log with one more record, stamped with the leader's epoch.

    **Kafka:** `UnifiedLog.appendAsLeader`.

    **Departs:** one record without a producer; a broker appends a batch, and moves its high watermark in the same step if it
    is the only in-sync replica.
    """
    return log.append((Record(value, epoch),))


def acknowledged_on_append(acks: int) -> bool:
    """Whether the producer gets its acknowledgement as soon as the leader has the record: acks=1.

    **Kafka:** `ReplicaManager.maybeAddDelayedProduce`.

    **Departs:** in Kafka a producer with acks=0 also goes on at once; it gets no answer.
    """
    return acks == ACKS_LEADER


def acknowledged_on_commit(role: LeaderAndIsr, acks: int, high_watermark: Offset, min_isr: int) -> bool:
    """Whether the producer gets its acknowledgement when the high watermark passes the record: acks=all, enough in sync.

    Parameters: the leader's `role`; the request's `acks`; the high watermark that has just passed the record (offset);
    `min.insync.replicas`, at most the number of replicas.

    **Kafka:** `Partition.checkEnoughReplicasReachOffset`.

    **Departs:** no request waits: the leader answers in the step in which it moves the high watermark. A broker may answer
    later, and a deposed leader answers `NOT_LEADER_OR_FOLLOWER`.
    """
    told = completion(True, high_watermark, high_watermark, len(role.isr), min_isr)
    return acks == ACKS_ALL and told == Error.NONE
