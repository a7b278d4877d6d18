"""The controller's handlers for brokers: registration, heartbeats, the end of sessions."""

from kspec.spec.controller.decisions import (
    leads_any,
    partitions_eligible,
    partitions_in_sync,
    records_of_control,
    records_of_departure,
    records_of_fencing,
    update_leader_and_isr,
)
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.brokers import (
    BrokerSession,
    ControlState,
    check_broker_epoch,
    check_registration,
    current_control_state,
    have_replayed,
    is_fenced_state,
    new_registration,
    next_control_state,
)
from kspec.spec.controller.state import ControllerState, ControllerStep, decide, has_valid_session, session_of
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.metadata import MetadataRecord, RegisterBrokerRecord, UnregisterBrokerRecord, broker_of
from kspec.spec.step import Reply, Step
from kspec.spec.values import UNKNOWN_OFFSET, BrokerEpoch, Error, MonotonicMs, Offset


def handle_broker_registration(
    controller: Controller,
    state: ControllerState,
    request: BrokerRegistrationRequest,
    now_ms: MonotonicMs,
) -> ControllerStep:
    """A broker registers. A new incarnation is fenced, and gets a new broker epoch.

    Errors: `DUPLICATE_BROKER_REGISTRATION`.

    **Kafka:** `ClusterControlManager.registerBroker`.
    """
    existing = broker_of(state.image.brokers, request.broker)
    session = None if existing is None else session_of(state, request.broker)
    timeout_ms = controller.settings.session_timeout_ms
    alive = (
        existing is not None
        and session is not None
        and controller.protocol.valid_session(session, existing.fenced, now_ms, timeout_ms)
    )
    error = check_registration(existing, request, alive)
    if error != Error.NONE:
        return Step(state, (Reply(BrokerRegistrationResponse(error, request.incarnation)),))
    broker_epoch = BrokerEpoch(state.image.end_offset)
    updates: tuple[MetadataRecord, ...] = ()
    again = existing is not None and existing.incarnation == request.incarnation
    if existing is not None and again:
        registration = controller.protocol.register_again(existing, request, broker_epoch)
    else:
        registration = new_registration(request, broker_epoch)
        departure = controller.protocol.departure(existing, request, controller.protocol.elr_enabled(controller.settings))
        updates = records_of_departure(controller, state.image, request.broker, departure)
    answer = BrokerRegistrationResponse(Error.NONE, request.incarnation, registration.broker_epoch)
    records = (*updates, RegisterBrokerRecord(registration._replace(registered_at=UNKNOWN_OFFSET), request.rack))
    heard = controller.protocol.heard_at_registration(session, again, now_ms)
    return decide(state, records, answer, BrokerSession(request.broker, heard))


def handle_broker_heartbeat(
    controller: Controller,
    state: ControllerState,
    request: BrokerHeartbeatRequest,
    now_ms: MonotonicMs,
) -> ControllerStep:
    """A broker sends a heartbeat, and may be fenced, unfenced or shut down.

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
    caught_up = controller.protocol.caught_up(image, registration, request.metadata_offset)
    others = have_replayed(state.sessions, image, session.controlled_shutdown_offset)
    may_unfence = caught_up and controller.protocol.may_unfence(registration)
    following = next_control_state(current, request, may_unfence, leads_any(image, request.broker), others)
    records = records_of_control(controller, image, registration, current, following)
    touched = BrokerSession(request.broker, now_ms, request.metadata_offset, session.controlled_shutdown_offset)
    if is_fenced_state(following):
        touched = touched._replace(controlled_shutdown_offset=UNKNOWN_OFFSET)
    elif following == ControlState.CONTROLLED_SHUTDOWN:
        end = Offset(image.end_offset + len(records) - 1)
        begun = controller.protocol.shutdown_offset(session.controlled_shutdown_offset, end)
        touched = touched._replace(controlled_shutdown_offset=begun)
    answer = BrokerHeartbeatResponse(
        Error.NONE,
        is_caught_up=caught_up,
        is_fenced=is_fenced_state(following),
        should_shut_down=following == ControlState.SHUTDOWN_NOW,
    )
    return decide(state, records, answer, touched)


def on_session_check(controller: Controller, state: ControllerState, now_ms: MonotonicMs) -> ControllerStep:
    """Fence the unfenced broker that has been silent longest, if its session has expired. One for each tick.

    **Kafka:** `ReplicationControlManager.maybeFenceOneStaleBroker`, `BrokerHeartbeatManager.findOneStaleBroker`.
    """
    timeout_ms = controller.settings.session_timeout_ms
    unfenced = [registration for registration in state.image.brokers if not registration.fenced]
    stale = [registration for registration in unfenced if not has_valid_session(state, registration, now_ms, timeout_ms)]
    if not stale:
        return Step(state)
    longest = min(stale, key=lambda registration: session_of(state, registration.broker).last_contact_ms)
    records = records_of_fencing(controller, state.image, longest)
    session = session_of(state, longest.broker)._replace(controlled_shutdown_offset=UNKNOWN_OFFSET)
    return decide(state, records, None, session)


def handle_unregister_broker(
    controller: Controller, state: ControllerState, request: UnregisterBrokerRequest, now_ms: MonotonicMs
) -> ControllerStep:
    """A broker's registration is removed, and it leaves every ISR. Where it was eligible, it stays so until it registers
    again.

    Errors: `BROKER_ID_NOT_REGISTERED`.

    **Kafka:** `ReplicationControlManager.unregisterBroker`, `handleBrokerUnregistered`.
    """
    broker = request.broker
    registration = broker_of(state.image.brokers, broker)
    if registration is None:
        return Step(state, (Reply(ErrorResponse(Error.BROKER_ID_NOT_REGISTERED)),))
    listed = (*partitions_in_sync(state.image, broker), *partitions_eligible(state.image, broker))
    updates = update_leader_and_isr(controller, state.image, listed, leaving=frozenset({broker}))
    records: tuple[MetadataRecord, ...] = (*updates, UnregisterBrokerRecord(broker, registration.broker_epoch))
    without = state._replace(sessions=tuple(session for session in state.sessions if session.broker != broker))
    return decide(without, records, ErrorResponse(Error.NONE))
