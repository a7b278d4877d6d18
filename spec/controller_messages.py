"""Requests between brokers and the controller, and their answers.

A request is about one partition where Kafka's is about many: the parts of a Kafka request are decided one by one.
"""

from dataclasses import dataclass
from typing import NamedTuple

from spec.alter_partition import NO_PARTITION_EPOCH
from spec.metadata import LeaderRecoveryState
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    Offset,
    PartitionEpoch,
    PartitionId,
)

# ---- AlterPartition (KIP-497; before 3.2 it was called AlterIsr)


class IsrMember(NamedTuple):
    """A proposed in-sync replica, and the broker epoch in which it fetched, as its leader knows it.

    `NO_BROKER_EPOCH` for a member that has not fetched yet, and from brokers before 3.5 (KIP-903). Kafka: `BrokerState`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH

    def __hash__(self) -> int:
        """By broker alone: a proposal names each once, and in proofs the broker epoch is any."""
        return self.broker


class AlterPartitionRequest(NamedTuple):
    """A leader proposes an ISR, on top of a partition epoch, in its leader epoch. Kafka: `AlterPartitionRequest`.

    `understands_ineligible_replica`: whether the answer may say `INELIGIBLE_REPLICA` (since request version 2, KIP-841).
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    partition: PartitionId
    leader_epoch: Epoch
    partition_epoch: PartitionEpoch
    isr: frozenset[IsrMember]
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    understands_ineligible_replica: bool = True


class AlterPartitionResponse(NamedTuple):
    """The controller's answer: an error, else the partition as it is from now on. Kafka: `AlterPartitionResponse`."""

    error: Error
    partition: PartitionId
    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = frozenset()
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


# ---- registration, heartbeats, shutdown


class BrokerRegistrationRequest(NamedTuple):
    """A starting broker makes itself known. Kafka: `BrokerRegistrationRequest`.

    `previous_broker_epoch` is the epoch of the run that shut down cleanly before this one, `NO_BROKER_EPOCH` if the last one
    did not (KIP-966, since 3.7).
    """

    broker: BrokerId
    incarnation: Incarnation
    previous_broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class BrokerRegistrationResponse(NamedTuple):
    """The answer: an error, else the broker epoch of this run. Kafka: `BrokerRegistrationResponse`.

    `incarnation` repeats the request's. In Kafka the connection tells it: an answer reaches only the process that asked.
    """

    error: Error
    incarnation: Incarnation
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class BrokerHeartbeatRequest(NamedTuple):
    """A registered broker is alive, has replayed metadata up to an offset, and may wish something.

    `metadata_offset` is the offset of the last metadata record that it has applied. Kafka: `BrokerHeartbeatRequest`.
    """

    broker: BrokerId
    broker_epoch: BrokerEpoch
    metadata_offset: Offset
    want_fence: bool = False
    want_shutdown: bool = False


class BrokerHeartbeatResponse(NamedTuple):
    """What the controller tells a broker about itself. Kafka: `BrokerHeartbeatResponse`."""

    error: Error
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


# ---- administration; equal only to others of the same class, as tuples would not be


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    """Elect the preferred leader, or with `unclean` any replica for want of a leader. Kafka: `ElectLeadersRequest`."""

    partition: PartitionId
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentRequest:
    """Move a partition to other replicas; `None`: cancel the move under way. Kafka: `AlterPartitionReassignmentsRequest`."""

    partition: PartitionId
    replicas: tuple[BrokerId, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionRequest:
    """Create a partition with these replicas, in order of preference. Kafka: `CreateTopicsRequest`, with assignment."""

    partition: PartitionId
    replicas: tuple[BrokerId, ...]


class ErrorResponse(NamedTuple):
    """An answer that says only whether it was done."""

    error: Error


# ---- the controller that keeps its state in ZooKeeper (up to 3.9)


class LeaderAndIsrRequest(NamedTuple):
    """The controller announces a partition to one of its replicas. Kafka: `LeaderAndIsrRequest`.

    `broker_epoch` is that of the run which it is meant for (KIP-380, since 2.2), `NO_BROKER_EPOCH` before.
    `partition_epoch` is the version of the partition's ZooKeeper node.
    """

    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    partition: PartitionId
    leader: BrokerId
    leader_epoch: Epoch
    isr: frozenset[BrokerId]
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    adding: frozenset[BrokerId] = frozenset()
    removing: frozenset[BrokerId] = frozenset()


class StopReplicaRequest(NamedTuple):
    """The controller ends a broker's replica of a partition, or only its fetching. Kafka: `StopReplicaRequest`."""

    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    partition: PartitionId
    leader_epoch: Epoch
    delete: bool


class ControlledShutdownRequest(NamedTuple):
    """A broker wants to shut down without its partitions losing their leader. Kafka: `ControlledShutdownRequest`."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


class ControlledShutdownResponse(NamedTuple):
    """Which partitions the broker leads still; when none, it may stop. Kafka: `ControlledShutdownResponse`."""

    error: Error
    remaining: frozenset[PartitionId] = frozenset()
