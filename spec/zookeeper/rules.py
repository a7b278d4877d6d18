"""The rules of the ZooKeeper controller: elections, fencing by controller and broker epoch."""

from kspec.spec.metadata import NOBODY
from kspec.spec.values import NO_BROKER_EPOCH, NO_EPOCH, NO_LEADER, BrokerEpoch, BrokerId, Epoch, Error, LeaderAndIsr
from kspec.spec.zookeeper.decisions import elect_cleanly, elect_uncleanly, fail_broker
from kspec.spec.zookeeper.protocol import LiveBroker


def keep_last_unless_unclean(state: LeaderAndIsr, broker: BrokerId, unclean: bool) -> LeaderAndIsr:
    """The last in-sync replica stays listed, unless unclean elections are allowed: then the ISR becomes empty.

    **Kafka:** `KafkaController.removeReplicaFromIsr` up to 1.0.
    """
    without = fail_broker(state, broker)
    return without._replace(isr=NOBODY) if unclean and state.isr == {broker} else without


def keep_last(state: LeaderAndIsr, broker: BrokerId, unclean: bool) -> LeaderAndIsr:
    """The last in-sync replica always stays listed.

    **Kafka:** `ReplicaStateMachine.doRemoveReplicasFromIsr`, since 1.1.
    """
    return fail_broker(state, broker)


def unchecked_epoch(controller_epoch: Epoch) -> Epoch:
    """A controller that has been replaced can still write. **Kafka:** up to 2.0."""
    return NO_EPOCH


def own_epoch(controller_epoch: Epoch) -> Epoch:
    """Only the current controller can write. **Kafka:** `KafkaZkClient.updateLeaderAndIsr`, since 2.1 (KAFKA-6082)."""
    return controller_epoch


def no_broker_epoch(broker: LiveBroker) -> BrokerEpoch:
    """Requests do not name an incarnation of a broker. **Kafka:** up to 2.1."""
    return NO_BROKER_EPOCH


def current_broker_epoch(broker: LiveBroker) -> BrokerEpoch:
    """Requests name the incarnation that they are meant for; another incarnation refuses them.

    **Kafka:** since 2.2 (KIP-380).
    """
    return broker.broker_epoch


def never_bounced(before: LiveBroker, now: LiveBroker) -> bool:
    """A broker that is back before the controller notices does not count as restarted. **Kafka:** up to 2.1."""
    return False


def bounced(before: LiveBroker, now: LiveBroker) -> bool:
    """A broker with a later broker epoch counts as restarted.

    **Kafka:** `KafkaController.processBrokerChange`, since 2.2.
    """
    return now.broker_epoch > before.broker_epoch


def first_in_sync(replicas: tuple[BrokerId, ...], state: LeaderAndIsr, online: frozenset[BrokerId]) -> BrokerId:
    """The first online replica in the ISR, `NO_LEADER` if there is none.

    **Kafka:** `PartitionLeaderElectionAlgorithms`; before 1.1 the selectors in `PartitionLeaderSelector.scala`.
    """
    return next((replica for replica in replicas if replica in online and replica in state.isr), NO_LEADER)


def elect_offline(
    replicas: tuple[BrokerId, ...], state: LeaderAndIsr, online: frozenset[BrokerId], unclean: bool
) -> LeaderAndIsr | None:
    """The election where the leader is gone: the first online in-sync replica leads, offline ones leave the ISR.

    If there is none, and `unclean` elections are allowed, the first online replica leads alone. Otherwise there is no
    leader.

    **Kafka:** `Election.leaderForOffline`, formerly `OfflinePartitionLeaderSelector`.
    """
    leader = first_in_sync(replicas, state, online)
    if leader != NO_LEADER:
        return elect_cleanly(state._replace(isr=state.isr & online), leader)
    anybody = next((replica for replica in replicas if replica in online), NO_LEADER)
    return elect_uncleanly(state, anybody) if unclean and anybody != NO_LEADER else None


def elect_preferred(replicas: tuple[BrokerId, ...], state: LeaderAndIsr, online: frozenset[BrokerId]) -> LeaderAndIsr | None:
    """The first replica leads if it is online and in sync. **Kafka:** `Election.leaderForPreferredReplica`."""
    preferred = first_in_sync(replicas[:1], state, online)
    return None if preferred == NO_LEADER else elect_cleanly(state, preferred)


def elect_for_reassignment(
    replicas: tuple[BrokerId, ...], state: LeaderAndIsr, online: frozenset[BrokerId]
) -> LeaderAndIsr | None:
    """The first online in-sync replica of the new assignment leads. **Kafka:** `Election.leaderForReassign`."""
    leader = first_in_sync(replicas, state, online)
    return None if leader == NO_LEADER else elect_cleanly(state, leader)


def elect_for_shutdown(
    replicas: tuple[BrokerId, ...], state: LeaderAndIsr, live: frozenset[BrokerId], shutting_down: frozenset[BrokerId]
) -> LeaderAndIsr | None:
    """The first live in-sync replica that is not shutting down leads; all that are leave the ISR.

    **Kafka:** `Election.leaderForControlledShutdown`, formerly `ControlledShutdownLeaderSelector`.
    """
    leader = first_in_sync(replicas, state, live - shutting_down)
    return None if leader == NO_LEADER else elect_cleanly(state._replace(isr=state.isr - shutting_down), leader)


def check_controller_epoch(known: Epoch, claimed: Epoch) -> Error:
    """Whether a broker obeys a controller: not one that is older than a controller that it knows.

    Errors: `STALE_CONTROLLER_EPOCH`.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`, `stopReplicas`.
    """
    return Error.STALE_CONTROLLER_EPOCH if claimed < known else Error.NONE


def check_request_epoch(own: BrokerEpoch, claimed: BrokerEpoch) -> Error:
    """Whether a request of the controller is meant for this incarnation of the broker, or names none.

    Errors: `STALE_BROKER_EPOCH`.

    **Kafka:** `KafkaApis.isBrokerEpochStale` (KIP-380, since 2.2).
    """
    return Error.STALE_BROKER_EPOCH if claimed != NO_BROKER_EPOCH and claimed < own else Error.NONE
