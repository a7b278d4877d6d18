"""The common state of both kinds of controller: the registrations, and the replica that an election chooses."""

from kspec.model_check.models.kafka.values import AnyCluster
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import NO_BROKER_EPOCH, NO_LEADER, BrokerId, MonotonicMs

NOW = MonotonicMs(1_000_000)
"""The controller's time, in milliseconds."""


def in_order(replicas: frozenset[BrokerId], first: BrokerId = NO_LEADER) -> tuple[BrokerId, ...]:
    """The replicas as an assignment, with `first` as the preferred one if it is among them."""
    others = sorted(replicas - {first})
    return (first, *others) if first in replicas else tuple(others)


def is_the_choice(before: AnyCluster, after: AnyCluster, chosen: BrokerId, actor: BrokerId) -> bool:
    """Whether a decision with `chosen` as the preferred replica is an action, so that each outcome is taken once.

    Either `chosen` becomes leader; or the partition has no leader, and then the decision is taken with the broker that it
    concerns as `chosen`.
    """
    leader = after.topic.leader
    if leader in (before.topic.leader, NO_LEADER):
        return chosen == actor
    return leader == chosen


def registered(cluster: AnyCluster, broker: BrokerId) -> BrokerRegistration:
    """The registration of a broker; all brokers of the model are registered."""
    return next(entry for entry in cluster.brokers if is_registration_of(entry, broker))


def is_registration_of(entry: BrokerRegistration, broker: BrokerId) -> bool:
    """Whether this is the registration of a broker."""
    return entry.broker == broker


def is_current_epoch(cluster: AnyCluster, broker: BrokerId, broker_epoch: int) -> bool:
    """Whether this is the broker epoch with which a broker is registered."""
    return broker_epoch != NO_BROKER_EPOCH and registered(cluster, broker).broker_epoch == broker_epoch
