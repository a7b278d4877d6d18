"""The state of a KRaft controller, and its effects."""

from operator import attrgetter
from typing import NamedTuple, TypeAlias

from kspec.spec.controller.rules.brokers import NEVER_MS, BrokerSession, is_valid_session
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kspec.spec.messages.topics.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
)
from kspec.spec.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kspec.spec.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kspec.spec.metadata import BrokerRegistration, MetadataImage, MetadataRecord, replay_all
from kspec.spec.step import Reply, Step
from kspec.spec.values import BrokerId, Epoch, Error, MonotonicMs, Offset

NOT_STORED = Error.UNKNOWN_SERVER_ERROR
"""The error for a change that was decided, and that the metadata log could not take.

**Kafka:** `EventHandlerExceptionInfo.fromInternal`; the fault handler then ends the process.
"""

Answer: TypeAlias = (
    AllocateProducerIdsResponse
    | AlterConfigsResponse
    | AlterPartitionResponse
    | BrokerHeartbeatResponse
    | BrokerRegistrationResponse
    | CreatePartitionsResponse
    | CreateTopicsResponse
    | DeleteTopicsResponse
    | ErrorResponse
)

ControllerRequest: TypeAlias = (
    AllocateProducerIdsRequest
    | AlterConfigsRequest
    | AlterPartitionReassignmentsRequest
    | AlterPartitionRequest
    | BrokerHeartbeatRequest
    | BrokerRegistrationRequest
    | CreatePartitionsRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | ElectLeadersRequest
    | IncrementalAlterConfigsRequest
    | UnregisterBrokerRequest
)


class AppendRecords(NamedTuple):
    """Append records to the metadata log at this offset, in this controller epoch, and wait until they are committed.

    If the log refuses, no later effect happens, and the controller is no longer active. Kafka: `RaftClient.prepareAppend`.
    """

    controller_epoch: Epoch
    base_offset: Offset
    records: tuple[MetadataRecord, ...]


ControllerEffect: TypeAlias = AppendRecords | Reply[Answer]


class ControllerState(NamedTuple):
    """The state of a controller: the image of the metadata log, and the brokers' sessions while it is active.

    `controller_epoch` is the term in which the quorum elected it. Kafka: `QuorumController`, `BrokerHeartbeatManager`.
    """

    controller_epoch: Epoch
    image: MetadataImage
    sessions: tuple[BrokerSession, ...] = ()


ControllerStep: TypeAlias = Step[ControllerState, ControllerEffect]


def check_append(log_epoch: Epoch, end_offset: Offset, append: AppendRecords) -> Error:
    """Whether the metadata log takes records: from the controller of its current epoch, at its end.

    Errors: `NOT_CONTROLLER`.

    **Kafka:** `KafkaRaftClient.prepareAppend`. **Leaves out:** the quorum; the log stands for what it commits.
    """
    current = append.controller_epoch == log_epoch and append.base_offset == end_offset
    return Error.NONE if current else Error.NOT_CONTROLLER


def activate(controller_epoch: Epoch, image: MetadataImage, now_ms: MonotonicMs) -> ControllerState:
    """A new controller: the committed image, and a new session for every broker that is not fenced (time in milliseconds).

    State that is not in the log is lost: when each broker was last heard from, and when its controlled shutdown began.
    Nobody has heard from a fenced broker, so its next incarnation need not wait.

    **Kafka:** `QuorumController.claim`, `ClusterControlManager.activate`.
    """
    sessions = tuple(BrokerSession(one.broker, NEVER_MS if one.fenced else now_ms) for one in image.brokers)
    return ControllerState(controller_epoch, image, sessions)


def refuse_as_inactive(state: ControllerState, request: ControllerRequest) -> ControllerStep:
    """A controller that is not active refuses every request; the sender looks for the active one.

    Errors: `NOT_CONTROLLER`.

    **Kafka:** `QuorumController.ControllerWriteEvent`, `ControllerExceptions.newWrongControllerException`.
    """
    answer: Answer = ErrorResponse(Error.NOT_CONTROLLER)
    match request:
        case AlterPartitionRequest(partition_id=partition_id):
            answer = AlterPartitionResponse(Error.NOT_CONTROLLER, partition_id)
        case BrokerRegistrationRequest(incarnation=incarnation):
            answer = BrokerRegistrationResponse(Error.NOT_CONTROLLER, incarnation)
        case BrokerHeartbeatRequest():
            answer = BrokerHeartbeatResponse(Error.NOT_CONTROLLER)
        case AllocateProducerIdsRequest():
            answer = AllocateProducerIdsResponse(Error.NOT_CONTROLLER)
    return Step(state, (Reply(answer),))


def check_active(is_active: bool) -> Error:
    """Whether a request is sent to the active controller, as one has to be that may change something.

    Errors: `NOT_CONTROLLER`; the sender looks for the active one.

    **Kafka:** `QuorumController.ControllerWriteEvent`, `ControllerExceptions.newWrongControllerException`.
    """
    return Error.NONE if is_active else Error.NOT_CONTROLLER


def decide(
    state: ControllerState, records: tuple[MetadataRecord, ...], answer: Answer | None, *sessions: BrokerSession
) -> ControllerStep:
    """Append records, if any; then answer the request, if there is one. `sessions` replace those of the same brokers."""
    replaced = {session.broker for session in sessions}
    kept = tuple(session for session in state.sessions if session.broker not in replaced)
    effects: tuple[ControllerEffect, ...] = () if answer is None else (Reply(answer),)
    if records:
        effects = (AppendRecords(state.controller_epoch, state.image.end_offset, records), *effects)
    elif not sessions:
        return Step(state, effects)
    after = replay_all(state.image, records)
    by_broker = tuple(sorted((*kept, *sessions), key=attrgetter("broker")))
    return Step(ControllerState(state.controller_epoch, after, by_broker), effects)


def session_of(state: ControllerState, broker: BrokerId) -> BrokerSession:
    """The session of a registered broker: the active controller has one. **Kafka:** `heartbeatStateOrThrow`."""
    found = [session for session in state.sessions if session.broker == broker]
    assert found, f"the active controller has no session of the registered broker {broker}"
    return found[0]


def has_valid_session(
    state: ControllerState, registration: BrokerRegistration, now_ms: MonotonicMs, timeout_ms: int
) -> bool:
    """Whether a registered broker counts as alive. **Kafka:** `BrokerHeartbeatManager.hasValidSession`."""
    return is_valid_session(session_of(state, registration.broker), registration.fenced, now_ms, timeout_ms)
