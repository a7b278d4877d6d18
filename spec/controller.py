"""The KRaft controller: what it decides on each request and at each tick.

A handler takes the rules of a version, the settings, the controller's state, and one message or the time; it returns the new
state and what is to be done. Records go into the metadata log before the answer is sent: an answer tells what *is*, and a
controller that has been replaced cannot append, so it never answers success.

The state already holds what the records say, for the next decision has to see this one. Should the append fail, the
controller resigns, and the next one starts from the log (`activate`).
"""

from typing import NamedTuple, TypeAlias

from spec.broker_control import (
    ControlState,
    Session,
    check_broker_epoch,
    check_registration,
    current_control_state,
    have_replayed,
    is_fenced_state,
    is_shutting_down,
    is_valid_session,
    new_registration,
    next_control_state,
)
from spec.controller_changes import (
    acceptable_leaders,
    change_partition,
    elect_leader,
    election_allowed,
    leads_any,
    partitions_eligible,
    partitions_in_sync,
    partitions_without_leader,
    records_of_control,
    records_of_departure,
    records_of_fencing,
    update_leader_and_isr,
)
from spec.controller_messages import (
    AlterPartitionReassignmentRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreatePartitionRequest,
    ElectLeadersRequest,
    ErrorResponse,
)
from spec.controller_protocol import ControllerProtocol, ControllerSettings
from spec.isr_proposals import check_proposal, ineligible_error, proposed_isr
from spec.metadata import (
    NO_LEADER_CHANGE,
    NOBODY,
    BrokerRegistration,
    MetadataImage,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    broker_of,
    has_leader,
    is_active,
    merge,
    partition_of,
    replay_all,
)
from spec.partition_change import Election, unchanged
from spec.reassignment import check_assignment, check_reassignment, reassigned, reverted
from spec.step import Reply, Step
from spec.values import UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Error, Offset, PartitionEpoch, PartitionId

Answer: TypeAlias = AlterPartitionResponse | BrokerRegistrationResponse | BrokerHeartbeatResponse | ErrorResponse


ControllerRequest: TypeAlias = (
    AlterPartitionReassignmentRequest
    | AlterPartitionRequest
    | BrokerHeartbeatRequest
    | BrokerRegistrationRequest
    | CreatePartitionRequest
    | ElectLeadersRequest
)


class AppendRecords(NamedTuple):
    """Append to the metadata log, and wait until it is committed; only in this controller epoch, and only at this offset.

    If the log refuses, no later effect happens, and the controller is no longer active. Kafka: `RaftClient.prepareAppend`.
    """

    controller_epoch: Epoch
    base_offset: Offset
    records: tuple[MetadataRecord, ...]


ControllerEffect: TypeAlias = AppendRecords | Reply[Answer]


class ControllerState(NamedTuple):
    """What a controller holds: the image of the metadata log, and the brokers' sessions while it is active.

    `controller_epoch` is the term in which the quorum elected it. Kafka: `QuorumController`, `BrokerHeartbeatManager`.
    """

    controller_epoch: Epoch
    image: MetadataImage
    sessions: tuple[Session, ...] = ()


ControllerStep: TypeAlias = Step[ControllerState, ControllerEffect]


def check_append(log_epoch: Epoch, end_offset: Offset, append: AppendRecords) -> Error:
    """Whether the metadata log takes records: from the controller of its current epoch, at its end.

    Errors: `NOT_CONTROLLER`.

    **Kafka:** `KafkaRaftClient.prepareAppend`. **Leaves out:** the quorum; the log stands for what it commits.
    """
    current = append.controller_epoch == log_epoch and append.base_offset == end_offset
    return Error.NONE if current else Error.NOT_CONTROLLER


def activate(controller_epoch: Epoch, image: MetadataImage, now_ms: int) -> ControllerState:
    """A new controller: all that is committed, and a fresh session for every broker (time in milliseconds).

    What was not in the log is forgotten: which brokers were about to be fenced, and who was in controlled shutdown since
    when.

    **Kafka:** `QuorumController.claim`, `ClusterControlManager.activate`.
    """
    sessions = tuple(Session(registration.broker, now_ms) for registration in image.brokers)
    return ControllerState(controller_epoch, image, sessions)


def refuse_as_inactive(state: ControllerState, request: ControllerRequest) -> ControllerStep:
    """Whatever a controller that is not active is asked, it refuses; the sender looks for the active one.

    Errors: `NOT_CONTROLLER`.

    **Kafka:** `QuorumController.ControllerWriteEvent`, `ControllerExceptions.newWrongControllerException`.
    """
    answer: Answer = ErrorResponse(Error.NOT_CONTROLLER)
    match request:
        case AlterPartitionRequest(partition=partition):
            answer = AlterPartitionResponse(Error.NOT_CONTROLLER, partition)
        case BrokerRegistrationRequest(incarnation=incarnation):
            answer = BrokerRegistrationResponse(Error.NOT_CONTROLLER, incarnation)
        case BrokerHeartbeatRequest():
            answer = BrokerHeartbeatResponse(Error.NOT_CONTROLLER)
    return Step(state, (Reply(answer),))


# ---- handlers


def _decide(
    state: ControllerState, records: tuple[MetadataRecord, ...], answer: Answer | None, *sessions: Session
) -> ControllerStep:
    """Append records, if any; then answer, if asked. `sessions` take the place of those of the same brokers."""
    replaced = {session.broker for session in sessions}
    kept = tuple(session for session in state.sessions if session.broker not in replaced)
    effects: tuple[ControllerEffect, ...] = () if answer is None else (Reply(answer),)
    if records:
        effects = (AppendRecords(state.controller_epoch, state.image.end_offset, records), *effects)
    elif not sessions:
        return Step(state, effects)
    after = replay_all(state.image, records)
    by_broker = tuple(sorted((*kept, *sessions), key=lambda session: session.broker))
    return Step(ControllerState(state.controller_epoch, after, by_broker), effects)


def session_of(state: ControllerState, broker: BrokerId) -> Session:
    """The session of a registered broker: the active controller has one. **Kafka:** `heartbeatStateOrThrow`."""
    found = [session for session in state.sessions if session.broker == broker]
    assert found, f"the active controller has no session of the registered broker {broker}"
    return found[0]


def is_alive(state: ControllerState, registration: BrokerRegistration, now_ms: int, timeout_ms: int) -> bool:
    """Whether a registered broker counts as alive. **Kafka:** `BrokerHeartbeatManager.hasValidSession`."""
    return is_valid_session(session_of(state, registration.broker), registration.fenced, now_ms, timeout_ms)


def handle_registration(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    state: ControllerState,
    request: BrokerRegistrationRequest,
    now_ms: int,
) -> ControllerStep:
    """A broker registers. A new run is fenced, and gets a broker epoch that no run has had.

    Errors: `DUPLICATE_BROKER_REGISTRATION`.

    **Kafka:** `ClusterControlManager.registerBroker`.
    """
    existing = broker_of(state.image.brokers, request.broker)
    alive = existing is not None and is_alive(state, existing, now_ms, settings.session_timeout_ms)
    error = check_registration(existing, request, alive)
    if error != Error.NONE:
        return Step(state, (Reply(BrokerRegistrationResponse(error, request.incarnation)),))
    broker_epoch = BrokerEpoch(state.image.end_offset)
    updates: tuple[MetadataRecord, ...] = ()
    if existing is not None and existing.incarnation == request.incarnation:
        registration = rules.register_again(existing, request, broker_epoch)
    else:
        registration = new_registration(request, broker_epoch)
        departure = rules.departure(existing, request, rules.elr_enabled(settings))
        updates = records_of_departure(rules, settings, state.image, request.broker, departure)
    answer = BrokerRegistrationResponse(Error.NONE, request.incarnation, registration.broker_epoch)
    records = (*updates, RegisterBrokerRecord(registration._replace(registered_at=UNKNOWN_OFFSET)))
    return _decide(state, records, answer, Session(request.broker, now_ms))


def handle_heartbeat(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    state: ControllerState,
    request: BrokerHeartbeatRequest,
    now_ms: int,
) -> ControllerStep:
    """A broker is alive, and may come in or go out.

    Errors: `STALE_BROKER_EPOCH`.

    **Kafka:** `ReplicationControlManager.processBrokerHeartbeat`, `QuorumController.processBrokerHeartbeat`.
    """
    image = state.image
    registration = broker_of(image.brokers, request.broker)
    error = check_broker_epoch(registration, request.broker_epoch)
    if registration is None or error != Error.NONE:
        return Step(state, (Reply(BrokerHeartbeatResponse(error)),))
    session = session_of(state, request.broker)
    current = current_control_state(registration, session)
    caught_up = rules.caught_up(image, registration, request.metadata_offset)
    others = have_replayed(state.sessions, image, session.controlled_shutdown_offset)
    following = next_control_state(current, request, caught_up, leads_any(image, request.broker), others)
    records = records_of_control(rules, settings, image, registration, current, following)
    touched = Session(request.broker, now_ms, request.metadata_offset, session.controlled_shutdown_offset)
    if is_fenced_state(following):
        touched = touched._replace(controlled_shutdown_offset=UNKNOWN_OFFSET)
    elif following == ControlState.CONTROLLED_SHUTDOWN and not is_shutting_down(session):
        touched = touched._replace(controlled_shutdown_offset=Offset(image.end_offset + len(records) - 1))
    answer = BrokerHeartbeatResponse(
        Error.NONE,
        is_caught_up=caught_up,
        is_fenced=is_fenced_state(following),
        should_shut_down=following == ControlState.SHUTDOWN_NOW,
    )
    return _decide(state, records, answer, touched)


def handle_session_timeout(
    rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState, now_ms: int
) -> ControllerStep:
    """Fence the unfenced broker that has been silent longest, if that is too long. One at a tick.

    **Kafka:** `ReplicationControlManager.maybeFenceOneStaleBroker`, `BrokerHeartbeatManager.findOneStaleBroker`.
    """
    timeout_ms = settings.session_timeout_ms
    unfenced = [registration for registration in state.image.brokers if not registration.fenced]
    stale = [registration for registration in unfenced if not is_alive(state, registration, now_ms, timeout_ms)]
    if not stale:
        return Step(state)
    longest = min(stale, key=lambda registration: session_of(state, registration.broker).last_contact_ms)
    records = records_of_fencing(rules, settings, state.image, longest)
    session = session_of(state, longest.broker)._replace(controlled_shutdown_offset=UNKNOWN_OFFSET)
    return _decide(state, records, None, session)


def handle_alter_partition(
    rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState, request: AlterPartitionRequest
) -> ControllerStep:
    """A leader proposes an ISR.

    Errors, the first that applies: `STALE_BROKER_EPOCH`, `UNKNOWN_TOPIC_OR_PARTITION`, those of `check_controller_ahead`,
    `check_proposer` and `check_proposal`, then `INELIGIBLE_REPLICA` or `OPERATION_NOT_ATTEMPTED`. If the proposal ends a
    reassignment and thereby the proposer's leadership, it is carried out, and answered `NEW_LEADER_ELECTED`.

    **Kafka:** `ReplicationControlManager.alterPartition`.
    """
    error = check_alter_partition_request(rules, state.image, request)
    partition = partition_of(state.image, request.partition)
    if partition is None or error != Error.NONE:
        return Step(state, (Reply(AlterPartitionResponse(error, request.partition)),))
    target = unchanged(partition)._replace(isr=proposed_isr(request), recovery=request.recovery)
    acceptable = acceptable_leaders(rules, state.image.brokers, NOBODY, NOBODY)
    before = PartitionRecord(request.partition, partition)
    change = change_partition(rules, settings, before, target, acceptable, election_allowed(settings))
    if change is None:
        return _decide(state, (), _as_it_is(request.partition, partition))
    if change.leader not in (NO_LEADER_CHANGE, request.broker):
        return _decide(state, (change,), AlterPartitionResponse(rules.moved_away(request), request.partition))
    return _decide(state, (change,), _as_it_is(request.partition, merge(partition, change)))


def check_alter_partition_request(rules: ControllerProtocol, image: MetadataImage, request: AlterPartitionRequest) -> Error:
    """The first error of a proposal, in Kafka's order (see `handle_alter_partition`), `NONE` if there is none.

    **Kafka:** `ReplicationControlManager.alterPartition`, `validateAlterPartitionData`.
    """
    error = check_broker_epoch(broker_of(image.brokers, request.broker), request.broker_epoch)
    if error != Error.NONE:
        return error
    partition = partition_of(image, request.partition)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    for check in (rules.check_controller_ahead, rules.check_proposer, check_proposal):
        error = check(partition, request)
        if error != Error.NONE:
            return error
    eligible = all(rules.eligible_for_isr(image.brokers, member) for member in request.isr)
    return Error.NONE if eligible else ineligible_error(request)


def _as_it_is(partition: PartitionId, registration: PartitionRegistration) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        Error.NONE,
        partition,
        registration.leader,
        registration.leader_epoch,
        registration.isr,
        registration.partition_epoch,
        registration.recovery,
    )


def check_election_request(partition: PartitionRegistration | None, unclean: bool) -> Error:
    """Whether an election is needed: the preferred replica does not lead; or for an unclean one, nobody does.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`, `ELECTION_NOT_NEEDED`.

    **Kafka:** `ReplicationControlManager.electLeader`, since 3.2.
    """
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    needless = has_leader(partition) if unclean else partition.leader == partition.replicas[0]
    return Error.ELECTION_NOT_NEEDED if needless else Error.NONE


def handle_elect_leaders(
    rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState, request: ElectLeadersRequest
) -> ControllerStep:
    """Somebody asks for the preferred leader, or for any leader; an unclean one even where the topic does not allow it.

    Errors: those of `check_election_request`, then `PREFERRED_LEADER_NOT_AVAILABLE` or `ELIGIBLE_LEADERS_NOT_AVAILABLE`.

    **Kafka:** `ReplicationControlManager.electLeader`. **Leaves out:** other errors in 3.0 and 3.1.
    """
    partition = partition_of(state.image, request.partition)
    error = check_election_request(partition, request.unclean)
    if partition is None or error != Error.NONE:
        return Step(state, (Reply(ErrorResponse(error)),))
    election = Election.UNCLEAN if request.unclean else Election.PREFERRED
    change = elect_leader(rules, settings, state.image, PartitionRecord(request.partition, partition), election)
    if change is None:
        nobody = Error.ELIGIBLE_LEADERS_NOT_AVAILABLE if request.unclean else Error.PREFERRED_LEADER_NOT_AVAILABLE
        return Step(state, (Reply(ErrorResponse(nobody)),))
    return _decide(state, (change,), ErrorResponse(Error.NONE))


def handle_balance(rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState) -> ControllerStep:
    """Give leadership to preferred replicas where they do not have it and can.

    **Kafka:** `ReplicationControlManager.maybeBalancePartitionLeaders`; `auto.leader.rebalance.enable`.
    """
    imbalanced = [
        record for record in state.image.partitions if record.registration.leader != record.registration.replicas[0]
    ]
    changes = [elect_leader(rules, settings, state.image, before, Election.PREFERRED) for before in imbalanced]
    return _decide(state, tuple(change for change in changes if change is not None), None)


def handle_unclean_elections(
    rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState
) -> ControllerStep:
    """Find leaders for partitions without one, in sync or not, if the setting allows it.

    **Kafka:** `ReplicationControlManager.maybeElectUncleanLeaders`; `unclean.leader.election.interval.ms`, since 3.9.
    """
    if not settings.unclean_election:
        return Step(state)
    leaderless = partitions_without_leader(state.image)
    changes = [elect_leader(rules, settings, state.image, before, Election.UNCLEAN) for before in leaderless]
    return _decide(state, tuple(change for change in changes if change is not None), None)


def handle_unregistration(
    rules: ControllerProtocol, settings: ControllerSettings, state: ControllerState, broker: BrokerId
) -> ControllerStep:
    """A broker is struck off, and out of every ISR. Where it was eligible, it stays so until a new run of it registers.

    Errors: `BROKER_ID_NOT_REGISTERED`.

    **Kafka:** `ReplicationControlManager.unregisterBroker`, `handleBrokerUnregistered`.
    """
    registration = broker_of(state.image.brokers, broker)
    if registration is None:
        return Step(state, (Reply(ErrorResponse(Error.BROKER_ID_NOT_REGISTERED)),))
    listed = (*partitions_in_sync(state.image, broker), *partitions_eligible(state.image, broker))
    updates = update_leader_and_isr(rules, settings, state.image, listed, leaving=frozenset({broker}))
    records: tuple[MetadataRecord, ...] = (*updates, UnregisterBrokerRecord(broker, registration.broker_epoch))
    without = state._replace(sessions=tuple(session for session in state.sessions if session.broker != broker))
    return _decide(without, records, ErrorResponse(Error.NONE))


def handle_create_partition(state: ControllerState, request: CreatePartitionRequest) -> ControllerStep:
    """A new partition: its active replicas are in sync, and the first of them leads.

    Errors: `INVALID_REPLICA_ASSIGNMENT` if no replica is active, or the assignment is none.

    **Kafka:** `ReplicationControlManager.createTopic`, `buildPartitionRegistration`.
    """
    active = [replica for replica in request.replicas if is_active(state.image.brokers, replica)]
    if not active or check_assignment(state.image.brokers, request.replicas) != Error.NONE:
        return Step(state, (Reply(ErrorResponse(Error.INVALID_REPLICA_ASSIGNMENT)),))
    created = PartitionRegistration(request.replicas, frozenset(active), active[0], Epoch(0), PartitionEpoch(0))
    return _decide(state, (PartitionRecord(request.partition, created),), ErrorResponse(Error.NONE))


def handle_reassignment(
    rules: ControllerProtocol,
    settings: ControllerSettings,
    state: ControllerState,
    request: AlterPartitionReassignmentRequest,
) -> ControllerStep:
    """Move a partition to other replicas, or cancel that. Who is only being added cannot be elected by it.

    Errors: see `check_reassignment`.

    **Kafka:** `ReplicationControlManager.alterPartitionReassignment`. **Leaves out:** that since 3.7 Kafka answers an error,
    and does nothing, where it would elect a replica that is only being added (`LeaderAcceptor` asks for its directory).
    """
    partition = partition_of(state.image, request.partition)
    error = check_reassignment(settings, state.image.brokers, partition, request.replicas)
    if partition is None or error != Error.NONE:
        return Step(state, (Reply(ErrorResponse(error)),))
    acceptable = acceptable_leaders(rules, state.image.brokers, NOBODY, NOBODY) & frozenset(partition.replicas)
    before = PartitionRecord(request.partition, partition)
    if request.replicas is None:
        election, target = election_allowed(settings), reverted(partition)
    else:
        election, target = Election.ONLINE, reassigned(partition, request.replicas)
    change = change_partition(rules, settings, before, target, acceptable, election)
    return _decide(state, () if change is None else (change,), ErrorResponse(Error.NONE))


def handle_min_isr_change(state: ControllerState) -> ControllerStep:
    """`min.insync.replicas` has been changed: who was eligible under the old value is so no longer.

    **Kafka:** `ReplicationControlManager.replay` of `ClearElrRecord`.
    """
    listed = [record for record in state.image.partitions if record.registration.elr or record.registration.last_known_elr]
    cleared = [PartitionChangeRecord(record.partition, elr=NOBODY, last_known_elr=NOBODY) for record in listed]
    return _decide(state, tuple(cleared), None)
