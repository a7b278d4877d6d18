"""LeaderAndIsr: the controller announces a partition to a replica (up to 3.9)."""

from typing import NamedTuple

from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, PartitionEpoch, PartitionId


class LeaderAndIsrRequest(NamedTuple):
    """The controller announces a partition to one of its replicas. Kafka: `LeaderAndIsrRequest`.

    `broker_epoch` is that of the incarnation that the request is meant for (KIP-380, since 2.2), `NO_BROKER_EPOCH` before.
    `partition_epoch` is the version of the partition's ZooKeeper node.
    """

    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    partition_id: PartitionId
    leader: BrokerId
    leader_epoch: Epoch
    isr: frozenset[BrokerId]
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    adding: frozenset[BrokerId] = frozenset()
    removing: frozenset[BrokerId] = frozenset()
