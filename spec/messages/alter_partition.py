"""AlterPartition (KIP-497; before 3.2 it was called AlterIsr): a leader proposes an ISR."""

from typing import NamedTuple

from kspec.spec.metadata import LeaderRecoveryState
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    PartitionEpoch,
    PartitionId,
)


class IsrMember(NamedTuple):
    """A proposed in-sync replica, and the broker epoch in which it fetched, as its leader knows it.

    `NO_BROKER_EPOCH` for a member that has not fetched yet, and from brokers before 3.5 (KIP-903). Kafka: `BrokerState`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH

    def __hash__(self) -> int:
        """Only the broker id counts: a proposal names each broker once, and in proofs the broker epoch is arbitrary."""
        return self.broker


class AlterPartitionRequest(NamedTuple):
    """A leader proposes an ISR, based on a partition epoch, in its leader epoch. Kafka: `AlterPartitionRequest`.

    `isr` is a tuple if it names a broker twice, which no broker does. `understands_ineligible_replica`: whether the answer
    may say `INELIGIBLE_REPLICA` (since request version 2, KIP-841).
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    partition_id: PartitionId
    leader_epoch: Epoch
    partition_epoch: PartitionEpoch
    isr: frozenset[IsrMember] | tuple[IsrMember, ...]
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    understands_ineligible_replica: bool = True


class AlterPartitionResponse(NamedTuple):
    """The controller's answer: an error, or the new state of the partition. Kafka: `AlterPartitionResponse`."""

    error: Error
    partition_id: PartitionId
    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = frozenset()
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
