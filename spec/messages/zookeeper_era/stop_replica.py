"""StopReplica: the controller ends a replica, or its fetching (up to 3.9)."""

from typing import NamedTuple

from spec.values import BrokerEpoch, Epoch, PartitionId


class StopReplicaRequest(NamedTuple):
    """The controller ends a broker's replica of a partition, or only its fetching. Kafka: `StopReplicaRequest`."""

    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    partition_id: PartitionId
    leader_epoch: Epoch
    delete: bool
