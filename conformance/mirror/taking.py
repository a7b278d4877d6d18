"""Moves made into requests, and what the controller of the specification does about them.

`request_of` gives a request the epochs that its sender knows. `taken` hands it to the handler of `spec`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kspec.conformance.mirror.moves import (
    CancelReassignment,
    CreatePartition,
    Elect,
    Heartbeat,
    Move,
    ProposalFault,
    Propose,
    ProposeAgain,
    Reassign,
    Register,
    Unregister,
)
from kspec.spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, handle_unregister_broker
from kspec.spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_elect_leaders,
)
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import Answer, AppendRecords, ControllerState, ControllerStep
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic, ReplicaAssignment
from kspec.spec.metadata import (
    ConfigRecord,
    LeaderRecoveryState,
    MetadataRecord,
    PartitionRegistration,
    TopicRecord,
    broker_of,
    partition_of,
)
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    Offset,
    PartitionEpoch,
    PartitionId,
)

PARTITION = PartitionId(0)
"""The one partition of a run."""

TOPIC = "run"
"""Its topic, which the controller under test has under a name and an id of its own."""

OF_NAMES = (TopicRecord, ConfigRecord)
"""Records that are left out: about names, ids and settings that only the controller under test has."""

NO_PARTITION = PartitionId(7)
"""A partition that its topic does not have."""

NOW_MS = 0
"""The controller's time. No session ends by time here: brokers ask to be fenced."""


MirroredRequest: TypeAlias = (
    AlterPartitionReassignmentsRequest
    | AlterPartitionRequest
    | BrokerHeartbeatRequest
    | BrokerRegistrationRequest
    | CreateTopicsRequest
    | ElectLeadersRequest
    | UnregisterBrokerRequest
)
"""The requests that both controllers are sent."""

MirroredAnswer: TypeAlias = AlterPartitionResponse | BrokerHeartbeatResponse | BrokerRegistrationResponse | ErrorResponse
"""The answers that are compared; of a creation the error alone, as the topics have different ids."""


class ControllerKnowledge(NamedTuple):
    """The knowledge of the specification's controller, and of the brokers about themselves.

    `incarnations`: the number of each broker's present incarnation. `broker_epochs`: the broker epoch in its last answer.
    `sent`: the last proposal.
    """

    state: ControllerState
    incarnations: tuple[tuple[BrokerId, Incarnation], ...] = ()
    broker_epochs: tuple[tuple[BrokerId, BrokerEpoch], ...] = ()
    sent: AlterPartitionRequest | None = None

    @property
    def partition(self) -> PartitionRegistration | None:
        """The partition, `None` before its creation."""
        return partition_of(self.state.image, PARTITION)


class RequestResult(NamedTuple):
    """The result of a request: the answer, the records that are written, and what is known then."""

    request: MirroredRequest
    answer: MirroredAnswer
    records: tuple[MetadataRecord, ...]
    known: ControllerKnowledge


@dataclass(frozen=True)
class ImpossibleMoveError(Exception):
    """A move that nobody can make in this state, such as a proposal for a partition that was never created."""

    why: str

    def __str__(self) -> str:
        return self.why


ValueT = TypeVar("ValueT")


def _of(pairs: tuple[tuple[BrokerId, ValueT], ...], broker: BrokerId, otherwise: ValueT) -> ValueT:
    return dict(pairs).get(broker, otherwise)


def _with(
    pairs: tuple[tuple[BrokerId, ValueT], ...], broker: BrokerId, value: ValueT
) -> tuple[tuple[BrokerId, ValueT], ...]:
    return tuple(sorted({**dict(pairs), broker: value}.items()))


def request_of(known: ControllerKnowledge, move: Move) -> MirroredRequest:
    """The request of a move, with the epochs that its sender knows. `ImpossibleMoveError` if there is no such sender."""
    match move:
        case CreatePartition(replicas):
            return CreateTopicsRequest((NewTopic(TOPIC, NO_TOPIC_ID, assignments=(ReplicaAssignment(0, replicas),)),))
        case Heartbeat():
            return _heartbeat(known, move)
        case Register(broker, again, clean, earlier):
            incarnation = _of(known.incarnations, broker, Incarnation(0))
            previous = _of(known.broker_epochs, broker, NO_BROKER_EPOCH) if clean else NO_BROKER_EPOCH
            step = -1 if earlier else 0 if again else 1
            return BrokerRegistrationRequest(broker, Incarnation(incarnation + step), previous)
        case Unregister(broker):
            return UnregisterBrokerRequest(broker)
        case Propose():
            return _proposal(known, move)
        case ProposeAgain():
            if known.sent is None:
                raise ImpossibleMoveError("no proposal has been sent")
            return known.sent
        case Elect(unclean):
            return ElectLeadersRequest(PARTITION, unclean)
        case Reassign(replicas):
            return AlterPartitionReassignmentsRequest(PARTITION, replicas)
        case CancelReassignment():
            return AlterPartitionReassignmentsRequest(PARTITION, None)


def _heartbeat(known: ControllerKnowledge, move: Heartbeat) -> BrokerHeartbeatRequest:
    image = known.state.image
    broker_epoch = _of(known.broker_epochs, move.broker, NO_BROKER_EPOCH)
    registered = broker_of(image.brokers, move.broker)
    replayed = image.end_offset - 1
    if move.behind and registered is not None:
        replayed = registered.registered_at - 1
    if move.stale:
        broker_epoch = BrokerEpoch(broker_epoch - 1)
    return BrokerHeartbeatRequest(move.broker, broker_epoch, Offset(replayed), move.want_fence, move.want_shutdown)


def _proposal(known: ControllerKnowledge, move: Propose) -> AlterPartitionRequest:
    partition, fault = known.partition, move.fault
    if partition is None:
        raise ImpossibleMoveError("there is no partition to propose an ISR for")
    proposer = partition.leader if partition.leader != NO_LEADER else partition.replicas[0]
    if fault == ProposalFault.NOT_THE_LEADER:
        others = [replica for replica in partition.replicas if replica != partition.leader]
        if not others:
            raise ImpossibleMoveError("the partition has no other replica")
        proposer = others[0]
    proposed = partition.isr ^ frozenset(move.changed)
    if fault == ProposalFault.WITHOUT_THE_LEADER:
        proposed -= {partition.leader}
    members = frozenset(IsrMember(broker, _member_epoch(known, broker, fault)) for broker in proposed)
    leader_epoch, partition_epoch = partition.leader_epoch, partition.partition_epoch
    by_leader_epoch = {ProposalFault.EARLIER_LEADER_EPOCH: -1, ProposalFault.LATER_LEADER_EPOCH: 1}.get(fault, 0)
    by_partition_epoch = {ProposalFault.EARLIER_PARTITION_EPOCH: -1, ProposalFault.LATER_PARTITION_EPOCH: 1}.get(fault, 0)
    broker_epoch = _of(known.broker_epochs, proposer, NO_BROKER_EPOCH)
    return AlterPartitionRequest(
        proposer,
        BrokerEpoch(broker_epoch - 1) if fault == ProposalFault.STALE_BROKER_EPOCH else broker_epoch,
        NO_PARTITION if fault == ProposalFault.UNKNOWN_PARTITION else PARTITION,
        Epoch(leader_epoch + by_leader_epoch),
        PartitionEpoch(partition_epoch + by_partition_epoch),
        members,
        LeaderRecoveryState.RECOVERING if fault == ProposalFault.RECOVERING else LeaderRecoveryState.RECOVERED,
    )


def _member_epoch(known: ControllerKnowledge, broker: BrokerId, fault: ProposalFault) -> BrokerEpoch:
    if fault == ProposalFault.MEMBER_WITHOUT_EPOCH:
        return NO_BROKER_EPOCH
    broker_epoch = _of(known.broker_epochs, broker, NO_BROKER_EPOCH)
    return BrokerEpoch(broker_epoch - 1) if fault == ProposalFault.STALE_MEMBER else broker_epoch


HANDLERS: dict[type[Any], Callable[..., ControllerStep]] = {
    AlterPartitionReassignmentsRequest: handle_alter_partition_reassignments,
    AlterPartitionRequest: handle_alter_partition,
    BrokerHeartbeatRequest: handle_broker_heartbeat,
    BrokerRegistrationRequest: handle_broker_registration,
    CreateTopicsRequest: handle_create_topics,
    ElectLeadersRequest: handle_elect_leaders,
    UnregisterBrokerRequest: handle_unregister_broker,
}
"""The handler of each request that the mirror sends."""


def handler_of(request: MirroredRequest) -> Callable[..., ControllerStep]:
    """The handler of a request."""
    return HANDLERS[type(request)]


def taken(controller: Controller, known: ControllerKnowledge, request: MirroredRequest) -> RequestResult:
    """The answer and the records of the specification's controller."""
    step = handler_of(request)(controller, known.state, request, NOW_MS)
    answers = [_compared_part(effect.message) for effect in step.effects if isinstance(effect, Reply)]
    assert len(answers) == 1, "every request is answered once"
    appended = [effect.records for effect in step.effects if isinstance(effect, AppendRecords)]
    after = known._replace(state=step.state)
    match request, answers[0]:
        case BrokerRegistrationRequest(broker, incarnation), BrokerRegistrationResponse(Error.NONE, _, broker_epoch) if (
            incarnation >= _of(known.incarnations, broker, incarnation)
        ):
            after = after._replace(
                incarnations=_with(known.incarnations, broker, incarnation),
                broker_epochs=_with(known.broker_epochs, broker, broker_epoch),
            )
        case AlterPartitionRequest(), _:
            after = after._replace(sent=request)
    records = tuple(record for record in (appended[0] if appended else ()) if not isinstance(record, OF_NAMES))
    return RequestResult(request, answers[0], records, after)


def _compared_part(answer: Answer) -> MirroredAnswer:
    match answer:
        case CreateTopicsResponse(topics=(topic,)):
            return ErrorResponse(topic.error)
        case AlterPartitionResponse() | BrokerHeartbeatResponse() | BrokerRegistrationResponse() | ErrorResponse():
            return answer
    raise AssertionError(f"no mirrored request is answered with {answer}")
