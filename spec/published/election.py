"""The published controller: which replicas it may elect or take out of the ISR, at any moment.

Its decisions are those of `spec.zookeeper.decisions`, with one exception.
"""

from kspec.spec.broker.rules.isr.proposal import isr_without
from kspec.spec.values import NO_LEADER, BrokerId, LeaderAndIsr, next_epoch
from kspec.spec.zookeeper.decisions import fail_broker


def may_elect_cleanly(partition: LeaderAndIsr, candidate: BrokerId) -> bool:
    """Whether `candidate` may be made leader without risk: it is in sync, and does not lead already.

    **Kafka:** `PartitionChangeBuilder.isValidNewLeader`; `ReplicaStateMachine`'s offline and preferred elections.

    **Departs:** Kafka elects for a reason, the first replica of the assignment that is alive; here any in-sync replica may
    take over at any moment, because the model does not say which brokers are alive.
    """
    return candidate in partition.isr and candidate != partition.leader


def may_elect_uncleanly(partition: LeaderAndIsr, candidate: BrokerId) -> bool:
    """Whether `candidate` may be made leader under `unclean.leader.election.enable`: there is no leader, it is out of sync.

    **Kafka:** `PartitionChangeBuilder.electAnyLeader`, last resort.

    **Departs:** in Kafka no in-sync replica may be alive; a partition without a leader stands for that here.
    """
    return partition.leader == NO_LEADER and candidate not in partition.isr


def may_lead_next(partition: LeaderAndIsr, replica: BrokerId, unclean: bool) -> bool:
    """Whether `replica` leads now, or may lead by the controller's next decision; `unclean` is the setting.

    **Kafka:** `PartitionChangeBuilder.electLeader`.

    **Departs:** as `may_elect_cleanly` and `may_elect_uncleanly`. Only properties ask this.
    """
    if replica == partition.leader or may_elect_cleanly(partition, replica):
        return True
    return unclean and may_elect_uncleanly(partition, replica)


def may_fail(partition: LeaderAndIsr, broker: BrokerId) -> bool:
    """Whether the failure of `broker` changes the partition: it leads, or is in sync.

    **Kafka:** `ReplicationControlManager.handleBrokerFenced`, `KafkaController.onBrokerFailure`.

    **Departs:** in Kafka a broker fails when it has lost its session; here any broker may fail, and it goes on as before.
    """
    return partition.leader == broker or broker in partition.isr


def fail_broker_emptying_isr(partition: LeaderAndIsr, broker: BrokerId) -> LeaderAndIsr:
    """As `fail_broker`, except that the last in-sync replica of a partition without a leader is removed, too.

    **Kafka:** no release does; the published models do.

    **Departs:** in Kafka the last in-sync replica stays listed; up to 1.0 it is removed where unclean elections are allowed,
    whether it led or not.
    """
    if partition.leader == broker:
        return fail_broker(partition, broker)
    isr = isr_without(partition.isr, frozenset({broker}))
    return LeaderAndIsr(partition.leader, next_epoch(partition.leader_epoch), isr)
