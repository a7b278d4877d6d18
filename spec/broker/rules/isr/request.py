"""The request of a leader for another ISR, and its fields about the members, by release."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kspec.spec.broker.rules.followers import NEVER_FETCHED, Follower, follower_of
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.step import SendToController
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId


class IsrWriter(Enum):
    """The party that writes an ISR to the controller's state."""

    LEADER = "the leader"
    """The leader itself, to ZooKeeper: up to 2.6."""

    CONTROLLER = "the controller"
    """The controller, when a leader asks for it: since 2.7 (KIP-497)."""


@dataclass(frozen=True, slots=True)
class WriteIsr:
    """Write the partition's state to ZooKeeper if it has the version that the leader knows; the answer comes before any
    other message.

    Kafka: `ReplicationUtils.updateLeaderAndIsr`, a conditional write under the partition's lock.
    """

    request: AlterPartitionRequest


IsrRequest: TypeAlias = WriteIsr | SendToController[AlterPartitionRequest]


def members(
    isr: frozenset[BrokerId], self_id: BrokerId, own_epoch: BrokerEpoch, followers: tuple[Follower, ...]
) -> frozenset[IsrMember]:
    """The proposed members, each with the broker epoch of its last fetch, as its leader knows it; none if it has not fetched
    yet.

    **Kafka:** `Partition.addBrokerEpochToIsr`.
    """
    return frozenset(IsrMember(replica, _run_of(replica, self_id, own_epoch, followers)) for replica in isr)


def _run_of(replica: BrokerId, self_id: BrokerId, own_epoch: BrokerEpoch, followers: tuple[Follower, ...]) -> BrokerEpoch:
    if replica == self_id:
        return own_epoch
    follower = follower_of(followers, replica)
    return NO_BROKER_EPOCH if follower is None or follower.broker_epoch == NEVER_FETCHED else follower.broker_epoch


def _without_broker_epochs(request: AlterPartitionRequest) -> AlterPartitionRequest:
    return request._replace(isr=frozenset(IsrMember(member.broker) for member in request.isr))


def write_isr(request: AlterPartitionRequest) -> IsrRequest:
    """By a write to ZooKeeper. **Kafka:** `Partition.updateIsr` up to 2.6."""
    return WriteIsr(_without_broker_epochs(request))


def ask_for_isr(request: AlterPartitionRequest) -> IsrRequest:
    """By a request to the controller. **Kafka:** `AlterIsrManager` (KIP-497), 2.7 to 3.2."""
    return SendToController(_without_broker_epochs(request)._replace(understands_ineligible_replica=False))


def ask_for_eligible_isr(request: AlterPartitionRequest) -> IsrRequest:
    """By a request that may be refused for a member that is down. **Kafka:** AlterPartition version 2, 3.3 and 3.4."""
    return SendToController(_without_broker_epochs(request))


def ask_for_isr_by_broker_epoch(request: AlterPartitionRequest) -> IsrRequest:
    """By a request that says in which incarnation of its broker each member fetched.

    **Kafka:** version 3 (KIP-903), since 3.5.
    """
    return SendToController(request)


# ---- how many requests at a time


def asks_at_any_time(request_in_flight: bool) -> bool:
    """A leader may ask for another ISR while its last request is unanswered; it has dropped that proposal since.

    **Kafka:** `AlterIsrManager.clearPending`, called by `Partition.makeLeader` and `makeFollower`, in 2.7 and 2.8 (read from
    2.7.2 and 2.8.2). **Leaves out:** that the broker still sends one request at a time. Up to 2.6 a leader holds the
    partition's lock while it writes.
    """
    return True


def asks_once_answered(request_in_flight: bool) -> bool:
    """A leader asks for another ISR only when its last request for the partition has been answered.

    Metadata may drop the leader's proposal while the request for it is under way. A new proposal is then refused without
    being sent (`OPERATION_NOT_ATTEMPTED` from 3.1 on), and the leader is as if it had not proposed.

    **Kafka:** `AlterIsrManager.submit`, `AlterPartitionManager.submit`, since 3.0 (read from 3.0.2, 3.1.2 and 4.4.0).
    """
    return not request_in_flight
