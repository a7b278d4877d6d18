"""The controller's checks of an ISR that a leader proposes (AlterPartition).

The order of the checks is part of the protocol: a leader reacts differently to each error.
"""

from kspec.spec.controller.rules.isr_writer import check_partition_epoch, check_writer
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.metadata import BrokerRegistration, LeaderRecoveryState, PartitionRegistration, broker_of, is_active
from kspec.spec.values import NO_BROKER_EPOCH, BrokerId, Error, LeaderAndIsr


def proposed_isr(request: AlterPartitionRequest) -> frozenset[BrokerId]:
    """The broker ids of a proposed ISR. **Kafka:** `PartitionChangeBuilder.setTargetIsrWithBrokerStates`."""
    return frozenset(member.broker for member in request.isr)


def controller_may_be_behind(partition: PartitionRegistration, request: AlterPartitionRequest) -> Error:
    """A proposal with epochs that the controller does not know yet is refused; the leader looks for the controller again.

    Errors: `NOT_CONTROLLER` for a leader epoch or partition epoch above the controller's own.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`, since 3.3.
    """
    ahead = request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch
    return Error.NOT_CONTROLLER if ahead else Error.NONE


def controller_knows_best(partition: PartitionRegistration, request: AlterPartitionRequest) -> Error:
    """Epochs above the controller's own count like any other wrong epoch. **Kafka:** `alterIsr`, up to 3.2."""
    return Error.NONE


def check_proposer(partition: PartitionRegistration, request: AlterPartitionRequest) -> Error:
    """Whether the proposal comes from the leader, in its epoch, and is based on the present state; in this order.

    Errors: `FENCED_LEADER_EPOCH`, `INVALID_REQUEST`, `INVALID_UPDATE_VERSION`.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`.
    """
    state = LeaderAndIsr(partition.leader, partition.leader_epoch, partition.isr)
    error = check_writer(state, request.broker, request.leader_epoch)
    return error if error != Error.NONE else check_partition_epoch(partition.partition_epoch, request.partition_epoch)


def check_proposal(partition: PartitionRegistration, request: AlterPartitionRequest) -> Error:
    """Whether the proposed ISR is valid: replicas of the partition, with its leader, and only its leader while recovering.

    Errors: `INVALID_REQUEST`, also for a request to set a recovered partition back to recovering.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`, `Replicas.validateIsr`.
    """
    isr = proposed_isr(request)
    recovering = request.recovery == LeaderRecoveryState.RECOVERING
    if not isr <= frozenset(partition.replicas) or partition.leader not in isr or len(isr) != len(request.isr):
        return Error.INVALID_REQUEST
    if recovering and (len(isr) > 1 or partition.recovery == LeaderRecoveryState.RECOVERED):
        return Error.INVALID_REQUEST
    return Error.NONE


def anybody_is_eligible(brokers: tuple[BrokerRegistration, ...], member: IsrMember) -> bool:
    """A leader may propose any broker, fenced or not. **Kafka:** up to 3.2."""
    return True


def active_is_eligible(brokers: tuple[BrokerRegistration, ...], member: IsrMember) -> bool:
    """Whether a proposed member is registered, not fenced, and not in controlled shutdown (KIP-841).

    **Kafka:** `ReplicationControlManager.ineligibleReplicasForIsr` in 3.3 and 3.4.
    """
    return is_active(brokers, member.broker)


def same_broker_epoch_is_eligible(brokers: tuple[BrokerRegistration, ...], member: IsrMember) -> bool:
    """As `active_is_eligible`, and the registered incarnation must be the one that fetched (KIP-903).

    The broker epoch of a member without one is not checked.

    **Kafka:** `ReplicationControlManager.ineligibleReplicasForIsr`, since 3.5.
    """
    registration = broker_of(brokers, member.broker)
    if registration is None or not active_is_eligible(brokers, member):
        return False
    return member.broker_epoch in (NO_BROKER_EPOCH, registration.broker_epoch)


def ineligible_error(request: AlterPartitionRequest) -> Error:
    """The error for an ineligible member, in a form that the leader understands.

    Errors: `INELIGIBLE_REPLICA`, or `OPERATION_NOT_ATTEMPTED` for a leader before 3.3.

    **Kafka:** `ReplicationControlManager.validateAlterPartitionData`.
    """
    return Error.INELIGIBLE_REPLICA if request.understands_ineligible_replica else Error.OPERATION_NOT_ATTEMPTED


def moved_away_as_new_leader(request: AlterPartitionRequest) -> Error:
    """The error for a leader that loses the leadership by its own accepted proposal, in a form that it understands.

    Errors: `NEW_LEADER_ELECTED`, or `FENCED_LEADER_EPOCH` for a leader before 3.3.

    **Kafka:** `ReplicationControlManager.alterPartition`, since 3.3.
    """
    return Error.NEW_LEADER_ELECTED if request.understands_ineligible_replica else Error.FENCED_LEADER_EPOCH


def moved_away_as_fenced(request: AlterPartitionRequest) -> Error:
    """As `moved_away_as_new_leader`, with the error code of `alterIsr`. **Kafka:** up to 3.2."""
    return Error.FENCED_LEADER_EPOCH


def refusal_changes_nothing(error: Error) -> bool:
    """A refused proposal leaves the partition as it is.

    So a second copy of the request, handled later, may be granted: a member that was fenced may have been unfenced in
    between. The leader has rolled the proposal back by then, and commits without the member (`roll_back_if_ineligible`).

    **Kafka:** `ReplicationControlManager.alterPartition`, up to 4.4.
    """
    return False


def refusal_ends_proposal(error: Error) -> bool:
    """Whether a refusal is written to the partition, as a new partition epoch and nothing else.

    It is, if the leader will take the proposal back. Any other copy of the request is then out of date.

    **Kafka:** no release; the repair of `refusal_changes_nothing`.
    """
    return error in (Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED)
