"""A broker of the ZooKeeper era: its handlers of the controller's requests, and its own writes of the ISR."""

from typing import Generic, NamedTuple, TypeAlias

from kspec.spec.broker.effects import Effect
from kspec.spec.broker.partition import Broker, Handled, Partition
from kspec.spec.broker.roles import become_follower, become_leader, leave
from kspec.spec.broker.rules.fetcher import NOT_FETCHING
from kspec.spec.log.algebra import LogT
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_LEADER, Epoch, Error, LeaderAndIsr, MonotonicMs, PartitionId, next_partition_epoch
from kspec.spec.zookeeper.node import ConditionalWrite, isr_write
from kspec.spec.zookeeper.rules import check_controller_epoch, check_request_epoch


class ZkReplica(NamedTuple, Generic[LogT]):
    """A replica, and the latest controller epoch that its broker knows.

    Kafka: `ReplicaManager.controllerEpoch`.
    """

    controller_epoch: Epoch
    partition: Partition[LogT]


ZkHandled: TypeAlias = Step[ZkReplica[LogT], Effect | Reply[ErrorResponse]]


def check_request(broker: Broker, replica: ZkReplica[LogT], request: LeaderAndIsrRequest | StopReplicaRequest) -> Error:
    """Whether a broker obeys a request: it is meant for this incarnation, and its controller has not been replaced.

    Errors: `STALE_BROKER_EPOCH`, `STALE_CONTROLLER_EPOCH`.

    **Kafka:** `KafkaApis.handleLeaderAndIsrRequest`, `handleStopReplicaRequest`.
    """
    error = check_request_epoch(broker.broker_epoch, request.broker_epoch)
    return error if error != Error.NONE else check_controller_epoch(replica.controller_epoch, request.controller_epoch)


def handle_leader_and_isr(
    broker: Broker, replica: ZkReplica[LogT], request: LeaderAndIsrRequest, now: MonotonicMs
) -> ZkHandled[LogT]:
    """Lead or follow as the controller announces, if the announcement is newer than what the broker knows.

    An announcement without a leader is ignored: the leader epoch stays, and so does the fetcher. A broker that led goes on
    leading, because it does not know that it has lost the leadership.

    Errors: those of `check_request`; `STALE_CONTROLLER_EPOCH` for an announcement that is not newer.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`; `makeFollowers`, which looks for the leader among the live brokers.
    **Leaves out:** that the live brokers come by another request of the controller (`UpdateMetadata`), always before the
    leader.
    """
    error, before = check_request(broker, replica, request), replica.partition
    is_newer = broker.protocol.takes_announcement(
        before.leader_epoch, before.isr, request.leader_epoch, request.partition_epoch
    )
    if error != Error.NONE:
        return Step(replica, (Reply(ErrorResponse(error)),))
    if not is_newer:
        heard = replica._replace(controller_epoch=request.controller_epoch)
        return Step(heard, (Reply(ErrorResponse(Error.STALE_CONTROLLER_EPOCH)),))
    if request.leader == NO_LEADER:
        return _done(request.controller_epoch, Step(before))
    announced = registration_of(request)
    if request.leader == broker.self_id:
        return _done(request.controller_epoch, become_leader(broker, before, announced, now))
    return _done(request.controller_epoch, become_follower(broker, before, announced))


def registration_of(request: LeaderAndIsrRequest) -> PartitionRegistration:
    """The partition as the controller announces it."""
    return PartitionRegistration(
        request.replicas,
        request.isr,
        request.leader,
        request.leader_epoch,
        request.partition_epoch,
        adding=request.adding,
        removing=request.removing,
    )


def handle_stop_replica(
    broker: Broker, replica: ZkReplica[LogT], request: StopReplicaRequest, now: MonotonicMs
) -> ZkHandled[LogT]:
    """Stop fetching, or delete the replica. Errors: those of `check_request`.

    **Kafka:** `ReplicaManager.stopReplicas`.
    """
    error = check_request(broker, replica, request)
    if error != Error.NONE:
        return Step(replica, (Reply(ErrorResponse(error)),))
    stopped: Handled[LogT] = Step(replica.partition._replace(fetcher=NOT_FETCHING))
    return _done(request.controller_epoch, leave(broker, replica.partition) if request.delete else stopped)


def _done(controller_epoch: Epoch, step: Handled[LogT]) -> ZkHandled[LogT]:
    return Step(ZkReplica(controller_epoch, step.state), (*step.effects, Reply(ErrorResponse(Error.NONE))))


# ---- the leader's own writes


def write_of(replica: ZkReplica[LogT], request: AlterPartitionRequest) -> ConditionalWrite:
    """The write to ZooKeeper that a leader makes for another ISR. **Kafka:** `Partition.updateIsr`."""
    isr = frozenset(member.broker for member in request.isr)
    role = LeaderAndIsr(request.broker, request.leader_epoch, isr)
    return isr_write(request.partition_id, role, replica.controller_epoch, request.partition_epoch)


def outcome_of(request: AlterPartitionRequest, write: ConditionalWrite, written: bool) -> AlterPartitionResponse:
    """The outcome of that write, in the form of a response. **Kafka:** `Partition.updateIsr`."""
    partition: PartitionId = request.partition_id
    if not written:
        return AlterPartitionResponse(Error.INVALID_UPDATE_VERSION, partition)
    epoch = next_partition_epoch(write.expected_partition_epoch)
    return AlterPartitionResponse(Error.NONE, partition, request.broker, request.leader_epoch, write.state.isr, epoch)
