"""The ZooKeeper controller's decisions about one partition: another leader, or one replica less.

Every decision opens a new leader epoch.
"""

from kspec.spec.broker.rules.isr.proposal import isr_without
from kspec.spec.values import NO_LEADER, BrokerId, LeaderAndIsr, next_epoch


def elect_cleanly(partition: LeaderAndIsr, candidate: BrokerId) -> LeaderAndIsr:
    """The partition with an in-sync replica as leader in a new epoch; the ISR is unchanged.

    **Kafka:** `Election.leaderForOffline`, clean.
    """
    return LeaderAndIsr(candidate, next_epoch(partition.leader_epoch), partition.isr)


def elect_uncleanly(partition: LeaderAndIsr, candidate: BrokerId) -> LeaderAndIsr:
    """The partition with an out-of-sync replica as leader in a new epoch; the ISR is that replica alone.

    **Kafka:** `Election.leaderForOffline`, unclean.
    """
    return LeaderAndIsr(candidate, next_epoch(partition.leader_epoch), frozenset({candidate}))


def fail_broker(partition: LeaderAndIsr, broker: BrokerId) -> LeaderAndIsr:
    """The partition without a failed broker, in a new epoch: the broker leaves the ISR, and the leadership if it led.

    The last in-sync replica stays, so that only a replica with every committed record can be elected later.

    **Kafka:** `ReplicaStateMachine.doRemoveReplicasFromIsr`, `PartitionStateMachine`.
    """
    leader = NO_LEADER if partition.leader == broker else partition.leader
    isr = partition.isr if partition.isr == {broker} else isr_without(partition.isr, frozenset({broker}))
    return LeaderAndIsr(leader, next_epoch(partition.leader_epoch), isr)
