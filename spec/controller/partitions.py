"""The controller's handlers for partitions: ISR proposals, elections, reassignment."""

from kspec.spec.controller.decisions import (
    acceptable_leaders,
    change_partition,
    elect_leader,
    election_allowed,
    partitions_without_leader,
)
from kspec.spec.controller.protocol import Controller, settings_of
from kspec.spec.controller.rules.brokers import check_broker_epoch
from kspec.spec.controller.rules.isr_proposals import check_proposal, ineligible_error, proposed_isr
from kspec.spec.controller.rules.partition_change import Election, unchanged
from kspec.spec.controller.rules.reassignment import check_reassignment, reassigned, reverted
from kspec.spec.controller.state import ControllerState, ControllerStep, decide
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.metadata import (
    NO_LEADER_CHANGE,
    NOBODY,
    MetadataImage,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
    has_leader,
    merge,
    partition_of,
)
from kspec.spec.step import Reply, Step
from kspec.spec.values import Error, MonotonicMs, PartitionId


def handle_alter_partition(
    controller: Controller, state: ControllerState, request: AlterPartitionRequest, now_ms: MonotonicMs
) -> ControllerStep:
    """A leader proposes an ISR.

    Errors, the first that applies: `STALE_BROKER_EPOCH`, `UNKNOWN_TOPIC_OR_PARTITION`, those of `check_controller_ahead`,
    `check_proposer` and `check_proposal`, then `INELIGIBLE_REPLICA` or `OPERATION_NOT_ATTEMPTED`. If the proposal ends a
    reassignment and with it the proposer's leadership, the proposal is applied, and answered `NEW_LEADER_ELECTED`. A refusal
    may be a decision, too, see `ControllerProtocol.ends_refused`.

    **Kafka:** `ReplicationControlManager.alterPartition`.
    """
    error = check_alter_partition_request(controller, state.image, request)
    partition = partition_of(state.image, request.partition_id)
    if partition is None or error != Error.NONE:
        ends = partition is not None and controller.protocol.ends_refused(error)
        records = (PartitionChangeRecord(request.partition_id),) if ends else ()
        return decide(state, records, AlterPartitionResponse(error, request.partition_id))
    target = unchanged(partition)._replace(isr=proposed_isr(request), recovery=request.recovery)
    acceptable = acceptable_leaders(controller, state.image.brokers, NOBODY, NOBODY)
    before = PartitionRecord(request.partition_id, partition)
    election = election_allowed(settings_of(controller.settings, request.partition_id))
    change = change_partition(controller, before, target, acceptable, election)
    if change is None:
        return decide(state, (), _as_it_is(request.partition_id, partition))
    if change.leader not in (NO_LEADER_CHANGE, request.broker):
        return decide(
            state, (change,), AlterPartitionResponse(controller.protocol.moved_away(request), request.partition_id)
        )
    return decide(state, (change,), _as_it_is(request.partition_id, merge(partition, change)))


def check_alter_partition_request(controller: Controller, image: MetadataImage, request: AlterPartitionRequest) -> Error:
    """The first error of a proposal, in Kafka's order (see `handle_alter_partition`), `NONE` if there is none.

    **Kafka:** `ReplicationControlManager.alterPartition`, `validateAlterPartitionData`.
    """
    error = check_broker_epoch(broker_of(image.brokers, request.broker), request.broker_epoch)
    if error != Error.NONE:
        return error
    partition = partition_of(image, request.partition_id)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    for check in (controller.protocol.check_controller_ahead, controller.protocol.check_proposer, check_proposal):
        error = check(partition, request)
        if error != Error.NONE:
            return error
    eligible = all(controller.protocol.eligible_for_isr(image.brokers, member) for member in request.isr)
    return Error.NONE if eligible else ineligible_error(request)


def _as_it_is(partition_id: PartitionId, registration: PartitionRegistration) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        Error.NONE,
        partition_id,
        registration.leader,
        registration.leader_epoch,
        registration.isr,
        registration.partition_epoch,
        registration.recovery,
    )


def check_election_request(partition: PartitionRegistration | None, unclean: bool) -> Error:
    """Whether an election is needed: the preferred replica does not lead; or, for an unclean one, there is no leader.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`, `ELECTION_NOT_NEEDED`.

    **Kafka:** `ReplicationControlManager.electLeader`, since 3.2.
    """
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    needless = has_leader(partition) if unclean else partition.leader == partition.replicas[0]
    return Error.ELECTION_NOT_NEEDED if needless else Error.NONE


def handle_elect_leaders(
    controller: Controller, state: ControllerState, request: ElectLeadersRequest, now_ms: MonotonicMs
) -> ControllerStep:
    """Elect the preferred leader, or any leader, by request; an unclean election even where the topic does not allow it.

    Errors: those of `check_election_request`, then `PREFERRED_LEADER_NOT_AVAILABLE` or `ELIGIBLE_LEADERS_NOT_AVAILABLE`.

    **Kafka:** `ReplicationControlManager.electLeader`. **Leaves out:** other errors in 3.0 and 3.1.
    """
    partition = partition_of(state.image, request.partition_id)
    error = check_election_request(partition, request.unclean)
    if partition is None or error != Error.NONE:
        return Step(state, (Reply(ErrorResponse(error)),))
    election = Election.UNCLEAN if request.unclean else Election.PREFERRED
    change = elect_leader(controller, state.image, PartitionRecord(request.partition_id, partition), election)
    if change is None:
        nobody = Error.ELIGIBLE_LEADERS_NOT_AVAILABLE if request.unclean else Error.PREFERRED_LEADER_NOT_AVAILABLE
        return Step(state, (Reply(ErrorResponse(nobody)),))
    return decide(state, (change,), ErrorResponse(Error.NONE))


def on_balance_check(controller: Controller, state: ControllerState, now_ms: MonotonicMs) -> ControllerStep:
    """Elect preferred replicas where they do not lead and can.

    **Kafka:** `ReplicationControlManager.maybeBalancePartitionLeaders`; `auto.leader.rebalance.enable`.
    """
    imbalanced = [
        record for record in state.image.partitions if record.registration.leader != record.registration.replicas[0]
    ]
    changes = [elect_leader(controller, state.image, before, Election.PREFERRED) for before in imbalanced]
    return decide(state, tuple(change for change in changes if change is not None), None)


def on_unclean_election_check(controller: Controller, state: ControllerState, now_ms: MonotonicMs) -> ControllerStep:
    """Elect leaders for partitions without one whose topics allow leaders out of sync.

    **Kafka:** `ReplicationControlManager.maybeElectUncleanLeaders`; `unclean.leader.election.interval.ms`, since 3.9.
    """
    allowed = [
        before
        for before in partitions_without_leader(state.image)
        if settings_of(controller.settings, before.partition_id).unclean_election
    ]
    changes = [elect_leader(controller, state.image, before, Election.UNCLEAN) for before in allowed]
    return decide(state, tuple(change for change in changes if change is not None), None)


def handle_alter_partition_reassignments(
    controller: Controller,
    state: ControllerState,
    request: AlterPartitionReassignmentsRequest,
    now_ms: MonotonicMs,
) -> ControllerStep:
    """Move a partition to other replicas, or cancel a move.

    Errors: see `check_reassignment`; `UNKNOWN_SERVER_ERROR` if it would elect a replica that is only being added. Up to 4.4
    such a replica can be eligible.

    **Kafka:** `ReplicationControlManager.alterPartitionReassignment`; `LeaderAcceptor` asks for the directory of a replica
    that has none.
    """
    partition = partition_of(state.image, request.partition_id)
    settings = settings_of(controller.settings, request.partition_id)
    error = check_reassignment(settings.unclean_election, state.image.brokers, partition, request.replicas)
    if partition is None or error != Error.NONE:
        return Step(state, (Reply(ErrorResponse(error)),))
    acceptable = acceptable_leaders(controller, state.image.brokers, NOBODY, NOBODY)
    before = PartitionRecord(request.partition_id, partition)
    if request.replicas is None:
        election, target = election_allowed(settings), reverted(partition)
    else:
        election, target = Election.ONLINE, reassigned(partition, request.replicas)
    change = change_partition(controller, before, target, acceptable, election)
    added_before = target.adding & frozenset(partition.replicas)
    if change is not None and change.leader in target.adding - added_before:
        return Step(state, (Reply(ErrorResponse(Error.UNKNOWN_SERVER_ERROR)),))
    return decide(state, () if change is None else (change,), ErrorResponse(Error.NONE))


def on_min_isr_change(
    controller: Controller, state: ControllerState, now_ms: MonotonicMs, partitions: frozenset[PartitionId] | None = None
) -> ControllerStep:
    """`min.insync.replicas` has changed: replicas that were eligible under the old value are no longer eligible.

    `partitions`: those of the topics whose setting has changed; `None`: the cluster's has.

    **Kafka:** `ReplicationControlManager.replay` of `ClearElrRecord`.
    """
    concerned = [record for record in state.image.partitions if partitions is None or record.partition_id in partitions]
    listed = [record for record in concerned if record.registration.elr or record.registration.last_known_elr]
    cleared = [PartitionChangeRecord(record.partition_id, elr=NOBODY, last_known_elr=NOBODY) for record in listed]
    return decide(state, tuple(cleared), None)
