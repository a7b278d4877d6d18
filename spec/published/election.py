"""The controller: elections, and the removal of failed brokers from the in-sync replicas.

Every decision of the controller opens a new leader epoch.
"""

from spec.values import NO_LEADER, BrokerId, LeaderAndIsr, next_epoch


def may_elect_cleanly(partition: LeaderAndIsr, candidate: BrokerId) -> bool:
    """Whether `candidate` may be made leader without risk: it is in sync, and does not lead already.

    **Kafka:** `PartitionChangeBuilder.isValidNewLeader`; `ReplicaStateMachine`'s offline and preferred elections.
    **Leaves out:** which of several candidates is preferred, and whether it is alive.
    """
    return candidate in partition.isr and candidate != partition.leader


def may_elect_uncleanly(partition: LeaderAndIsr, candidate: BrokerId) -> bool:
    """Whether `candidate` may be made leader under `unclean.leader.election.enable`: nobody leads, it is out of sync.

    **Kafka:** `PartitionChangeBuilder.electAnyLeader`, last resort. **Leaves out:** that no in-sync replica may be
    alive; a partition without a leader stands for it.
    """
    return partition.leader == NO_LEADER and candidate not in partition.isr


def may_lead_next(partition: LeaderAndIsr, replica: BrokerId, unclean: bool) -> bool:
    """Whether `replica` leads now, or may by the controller's next decision; `unclean` as configured.

    **Kafka:** `PartitionChangeBuilder.electLeader`.
    """
    if replica == partition.leader or may_elect_cleanly(partition, replica):
        return True
    return unclean and may_elect_uncleanly(partition, replica)


def elect_cleanly(partition: LeaderAndIsr, candidate: BrokerId) -> LeaderAndIsr:
    """The partition led by an in-sync replica in a new epoch; the ISR is unchanged.

    **Kafka:** `PartitionChangeBuilder.tryElection`.
    """
    return LeaderAndIsr(candidate, next_epoch(partition.leader_epoch), partition.isr)


def elect_uncleanly(partition: LeaderAndIsr, candidate: BrokerId) -> LeaderAndIsr:
    """The partition led by an out-of-sync replica in a new epoch; it alone is the ISR from now on.

    **Kafka:** `PartitionChangeBuilder.tryElection`, unclean.
    """
    return LeaderAndIsr(candidate, next_epoch(partition.leader_epoch), frozenset({candidate}))


def may_fail(partition: LeaderAndIsr, broker: BrokerId) -> bool:
    """Whether the failure of `broker` changes the partition: it leads, or is in sync.

    **Kafka:** `ReplicationControlManager.handleBrokerFenced`, `KafkaController.onBrokerFailure`.
    """
    return partition.leader == broker or broker in partition.isr


def fail_broker(partition: LeaderAndIsr, broker: BrokerId) -> LeaderAndIsr:
    """The partition without a failed broker, in a new epoch: out of the ISR, and no leader if it led.

    The last in-sync replica stays, so that only a replica with every committed record can be elected later.

    **Kafka:** `PartitionChangeBuilder.build`, `PartitionStateMachine`.
    """
    leader = NO_LEADER if partition.leader == broker else partition.leader
    isr = partition.isr if partition.isr == {broker} else partition.isr - {broker}
    return LeaderAndIsr(leader, next_epoch(partition.leader_epoch), isr)


def fail_broker_emptying_isr(partition: LeaderAndIsr, broker: BrokerId) -> LeaderAndIsr:
    """As `fail_broker`, except that the last in-sync replica of a partition without a leader goes too.

    **Kafka:** no release does; the published models do.
    """
    if partition.leader == broker:
        return fail_broker(partition, broker)
    return LeaderAndIsr(partition.leader, next_epoch(partition.leader_epoch), partition.isr - {broker})
