"""StopReplica: the controller deletes a replica, or stops its fetching (up to 3.9)."""

from typing import NamedTuple

from kspec.spec.values import BrokerEpoch, Epoch, PartitionId


class StopReplicaRequest(NamedTuple):
    """The controller deletes a broker's replica of a partition, or only stops its fetching. Kafka: `StopReplicaRequest`."""

    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    partition_id: PartitionId
    leader_epoch: Epoch
    delete: bool
