"""Brokers as the controller tracks them: sessions, registration, fencing, shutdown.

The metadata log survives the controller. Sessions do not: the active controller keeps them in memory, and a new controller
starts with new ones.
"""

from enum import Enum
from typing import NamedTuple

from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import BrokerRegistration, MetadataImage
from kspec.spec.values import UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Error, MonotonicMs, Offset

NEVER_MS = MonotonicMs(-(1 << 62))
"""The time of a contact that has not been."""


class BrokerSession(NamedTuple):
    """The active controller's state of a broker's heartbeats.

    `last_contact_ms`: time of the last heartbeat. `metadata_offset`: the offset that the broker had replayed by then.
    `controlled_shutdown_offset`: the end of the metadata log when the broker's controlled shutdown began, unknown if it has
    not. Kafka: `BrokerHeartbeatManager.BrokerHeartbeatState`.
    """

    broker: BrokerId
    last_contact_ms: MonotonicMs
    metadata_offset: Offset = UNKNOWN_OFFSET
    controlled_shutdown_offset: Offset = UNKNOWN_OFFSET


class ControlState(Enum):
    """A broker's state as the controller controls it. Kafka: `BrokerControlState`."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shut down now"


def is_valid_session(session: BrokerSession, fenced: bool, now_ms: MonotonicMs, timeout_ms: int) -> bool:
    """Whether a broker counts as alive: not fenced, and heard from within the session timeout (milliseconds).

    **Kafka:** `BrokerHeartbeatManager.hasValidSession` up to 3.9; `broker.session.timeout.ms`.
    """
    return not fenced and session.last_contact_ms + timeout_ms >= now_ms


def is_valid_session_fenced_or_not(session: BrokerSession, fenced: bool, now_ms: MonotonicMs, timeout_ms: int) -> bool:
    """Whether a broker counts as alive: heard from in its broker epoch within the session timeout, fenced or not.

    So a broker that sends heartbeats while it is fenced, as at its start, keeps its next incarnation waiting.

    **Kafka:** `BrokerHeartbeatTracker.hasValidSession`, since 4.0; executed on 4.4.0.
    """
    return session.last_contact_ms + timeout_ms >= now_ms


def registration_is_contact(session: BrokerSession | None, again: bool, now_ms: MonotonicMs) -> MonotonicMs:
    """The time of the last contact with a broker that registers: now.

    Parameters: its session before, if it had one; whether it is the same incarnation; the time (milliseconds).

    **Kafka:** `BrokerHeartbeatManager.register` up to 3.9.
    """
    return now_ms


def heartbeats_are_contact(session: BrokerSession | None, again: bool, now_ms: MonotonicMs) -> MonotonicMs:
    """The time of the last contact with a broker that registers: its last heartbeat in this incarnation, if there was one.

    **Kafka:** `ClusterControlManager.trackBrokerHeartbeat`, `BrokerHeartbeatManager.register`, since 4.0.
    """
    return session.last_contact_ms if again and session is not None else NEVER_MS


def is_shutting_down(session: BrokerSession) -> bool:
    """Whether the broker is in controlled shutdown. **Kafka:** `BrokerHeartbeatState.shuttingDown`."""
    return session.controlled_shutdown_offset != UNKNOWN_OFFSET


# ---- registration


def check_broker_epoch(registration: BrokerRegistration | None, broker_epoch: BrokerEpoch) -> Error:
    """Whether a request comes from the registered incarnation of a broker.

    Errors: `STALE_BROKER_EPOCH` also for a broker that is not registered.

    **Kafka:** `ClusterControlManager.checkBrokerEpoch`.
    """
    if registration is None or registration.broker_epoch != broker_epoch:
        return Error.STALE_BROKER_EPOCH
    return Error.NONE


def check_registration(
    existing: BrokerRegistration | None, request: BrokerRegistrationRequest, session_valid: bool
) -> Error:
    """Whether a broker may register: not while another incarnation with its id counts as alive.

    Errors: `DUPLICATE_BROKER_REGISTRATION`.

    **Kafka:** `ClusterControlManager.registerBroker`. **Leaves out:** cluster id, features, log directories.
    """
    another_incarnation = existing is not None and existing.incarnation != request.incarnation
    return Error.DUPLICATE_BROKER_REGISTRATION if another_incarnation and session_valid else Error.NONE


def new_registration(request: BrokerRegistrationRequest, broker_epoch: BrokerEpoch) -> BrokerRegistration:
    """The registration of a new incarnation: fenced, with a new broker epoch.

    **Kafka:** `ClusterControlManager.registerBroker`.
    """
    return BrokerRegistration(request.broker, broker_epoch, request.incarnation, fenced=True)


def register_again_anew(
    existing: BrokerRegistration, request: BrokerRegistrationRequest, broker_epoch: BrokerEpoch
) -> BrokerRegistration:
    """An incarnation that registers twice is fenced again, with another broker epoch, even if it was unfenced in between.

    It stays in the ISRs that it is in. **Kafka:** `ClusterControlManager.registerBroker` up to 3.7.0.
    """
    return new_registration(request, broker_epoch)


def register_again_with_new_epoch(
    existing: BrokerRegistration, request: BrokerRegistrationRequest, broker_epoch: BrokerEpoch
) -> BrokerRegistration:
    """An incarnation that registers twice stays fenced or unfenced, with another broker epoch.

    **Kafka:** `ClusterControlManager.registerBroker` in 3.7.1 and 3.8 (KAFKA-16757).
    """
    return existing._replace(broker_epoch=broker_epoch)


def register_again_as_is(
    existing: BrokerRegistration, request: BrokerRegistrationRequest, broker_epoch: BrokerEpoch
) -> BrokerRegistration:
    """An incarnation that registers twice keeps its registration and its broker epoch. **Kafka:** since 3.9."""
    return existing


class IncarnationChange(Enum):
    """Effect of a broker's new incarnation on the partitions that list the incarnation before.

    Kafka: `ReplicationControlManager.handleBrokerUncleanShutdown`, later `handleBrokerShutdown`.
    """

    IGNORED = "the broker stays where it is listed"
    LIKE_FENCING = "it leaves every ISR"
    UNCLEAN = "it leaves every ISR, and is not eligible to lead"


def new_incarnation_is_ignored(
    existing: BrokerRegistration | None, request: BrokerRegistrationRequest, elr_enabled: bool
) -> IncarnationChange:
    """A new incarnation changes no partition: fencing is supposed to have done so.

    But a broker with an expired session may register before it has been fenced. Then the new incarnation takes its
    predecessor's place in the ISR, and may not have its records (KAFKA-18106).

    **Kafka:** `ClusterControlManager.registerBroker` up to 3.9.
    """
    return IncarnationChange.IGNORED


def new_incarnation_is_clean_if_it_says_so(
    existing: BrokerRegistration | None, request: BrokerRegistrationRequest, elr_enabled: bool
) -> IncarnationChange:
    """A new incarnation leaves every ISR of the incarnation before. With eligible leader replicas it counts as unclean,
    unless the request has the predecessor's broker epoch, which shows a clean shutdown.

    **Kafka:** `ClusterControlManager.registerBroker`, `ReplicationControlManager.handleBrokerShutdown` since 4.0
    (KAFKA-18106, KAFKA-18635); `BrokerServer` reads the epoch from the files of a clean shutdown. Read from kafka-metadata
    4.0.0.
    """
    clean = existing is not None and request.previous_broker_epoch == existing.broker_epoch
    return IncarnationChange.UNCLEAN if elr_enabled and not clean else IncarnationChange.LIKE_FENCING


# ---- heartbeats


def caught_up_with_all(image: MetadataImage, registration: BrokerRegistration, metadata_offset: Offset) -> bool:
    """Whether a broker has replayed all of the metadata log. **Kafka:** `processBrokerHeartbeat` up to 3.2.

    **Leaves out:** that Kafka compares with the committed offset; here everything is committed.
    """
    return metadata_offset >= image.end_offset - 1


def caught_up_with_registration(image: MetadataImage, registration: BrokerRegistration, metadata_offset: Offset) -> bool:
    """Whether a broker has replayed its own registration. **Kafka:** `processBrokerHeartbeat` since 3.3."""
    return metadata_offset >= registration.registered_at


def unfences_whoever_asks(registration: BrokerRegistration) -> bool:
    """A broker in controlled shutdown may be unfenced, too: two late heartbeats fence and unfence it, and it leads again.

    **Kafka:** `BrokerHeartbeatManager.calculateNextBrokerState` does not look at the registration.
    """
    return True


def unfences_who_is_not_stopping(registration: BrokerRegistration) -> bool:
    """A broker in controlled shutdown stays fenced until another incarnation registers.

    **Kafka:** never; the repair of `stopping-broker-is-elected` in `docs/findings`.
    """
    return not registration.in_controlled_shutdown


def current_control_state(registration: BrokerRegistration, session: BrokerSession) -> ControlState:
    """A broker's state before its next heartbeat. **Kafka:** `BrokerHeartbeatManager.currentBrokerState`."""
    if is_shutting_down(session):
        return ControlState.CONTROLLED_SHUTDOWN
    return ControlState.FENCED if registration.fenced else ControlState.UNFENCED


def next_control_state(
    current: ControlState, request: BrokerHeartbeatRequest, may_unfence: bool, leads: bool, others_caught_up: bool
) -> ControlState:
    """A broker's state after a heartbeat.

    A fenced broker may shut down at once. It is unfenced if it asks for that and `may_unfence` holds. An unfenced broker is
    fenced, or shuts down, at its request. If it `leads` a partition it enters controlled shutdown first. The controlled
    shutdown ends when the broker leads no partition and `others_caught_up` holds: all active brokers have replayed the
    metadata log beyond the beginning of the shutdown.

    **Kafka:** `BrokerHeartbeatManager.calculateNextBrokerState`.
    """
    if current == ControlState.FENCED:
        if request.want_shutdown:
            return ControlState.SHUTDOWN_NOW
        return ControlState.UNFENCED if may_unfence and not request.want_fence else ControlState.FENCED
    if current == ControlState.CONTROLLED_SHUTDOWN:
        return ControlState.SHUTDOWN_NOW if others_caught_up and not leads else ControlState.CONTROLLED_SHUTDOWN
    if request.want_fence:
        return ControlState.SHUTDOWN_NOW if request.want_shutdown else ControlState.FENCED
    if request.want_shutdown:
        return ControlState.CONTROLLED_SHUTDOWN if leads else ControlState.SHUTDOWN_NOW
    return ControlState.UNFENCED


def is_fenced_state(state: ControlState) -> bool:
    """Whether a broker in this state is fenced or stopped. **Kafka:** `BrokerControlState.fenced`."""
    return state in (ControlState.FENCED, ControlState.SHUTDOWN_NOW)


def have_replayed(sessions: tuple[BrokerSession, ...], image: MetadataImage, offset: Offset) -> bool:
    """Whether all brokers that are unfenced and not shutting down have replayed the metadata log up to `offset`.

    **Kafka:** `BrokerHeartbeatManager.lowestActiveOffset`.
    """
    unfenced = {registration.broker for registration in image.brokers if not registration.fenced}
    active = [session for session in sessions if session.broker in unfenced and not is_shutting_down(session)]
    return all(session.metadata_offset >= offset for session in active)


def shutdown_offset_of_first_heartbeat(begun: Offset, end: Offset) -> Offset:
    """The offset that all active brokers must replay before a broker in controlled shutdown stops: that of its beginning.

    Parameters: the offset so far, `UNKNOWN_OFFSET` before the first heartbeat of the shutdown; the end of the metadata log
    after this one.

    **Kafka:** `BrokerHeartbeatManager.maybeUpdateControlledShutdownOffset` (KAFKA-14292, since 3.3.2 and 3.4).
    """
    return end if begun == UNKNOWN_OFFSET else begun


def shutdown_offset_of_last_heartbeat(begun: Offset, end: Offset) -> Offset:
    """As `shutdown_offset_of_first_heartbeat`, but each heartbeat moves it to the end: on a busy log nobody gets there.

    **Kafka:** `BrokerHeartbeatManager.updateControlledShutdownOffset`, 3.0 to 3.3.1.
    """
    return end


def marks_shutdown_never(registration: BrokerRegistration) -> bool:
    """The metadata do not show a controlled shutdown, so the broker may rejoin an ISR. **Kafka:** up to 3.2."""
    return False


def marks_shutdown_once(registration: BrokerRegistration) -> bool:
    """The metadata show a controlled shutdown from its beginning on (KIP-841).

    **Kafka:** `ReplicationControlManager.handleBrokerInControlledShutdown`, since 3.3.
    """
    return not registration.in_controlled_shutdown
