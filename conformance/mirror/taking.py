"""Moves made into requests, and what the controller of the specification does about them.

`request_of` gives a request the epochs that its sender knows. `taken` hands it to the handler of `spec`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from conformance.mirror.moves import (
    CancelReassignment,
    CreatePartition,
    Elect,
    Fault,
    Heartbeat,
    Move,
    Propose,
    ProposeAgain,
    Reassign,
    Register,
    Unregister,
)
from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, handle_unregister_broker
from spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_create_topics,
    handle_elect_leaders,
)
from spec.controller.protocol import Controller
from spec.controller.state import Answer, AppendRecords, ControllerRequest, ControllerState, ControllerStep
from spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from spec.messages.administration.create_topics import CreateTopicsRequest
from spec.messages.administration.elect_leaders import ElectLeadersRequest
from spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from spec.metadata import LeaderRecoveryState, MetadataRecord, PartitionRegistration, broker_of, partition_of
from spec.step import Reply
from spec.values import (
    NO_BROKER_EPOCH,
    NO_LEADER,
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

NO_PARTITION = PartitionId(7)
"""A partition that its topic does not have."""

NOW_MS = 0
"""The controller's time. No session ends by time here: brokers ask to be fenced."""


class Known(NamedTuple):
    """What the controller of the specification knows, and what the brokers know of themselves.

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


class Taken(NamedTuple):
    """What a request brings about: the answer, the records that are written, and what is known then."""

    request: ControllerRequest
    answer: Answer
    records: tuple[MetadataRecord, ...]
    known: Known


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


def request_of(known: Known, move: Move) -> ControllerRequest:
    """The request of a move, with the epochs that its sender knows. `ImpossibleMoveError` if there is no such sender."""
    match move:
        case CreatePartition(replicas):
            return CreateTopicsRequest(PARTITION, replicas)
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


def _heartbeat(known: Known, move: Heartbeat) -> BrokerHeartbeatRequest:
    image = known.state.image
    broker_epoch = _of(known.broker_epochs, move.broker, NO_BROKER_EPOCH)
    registered = broker_of(image.brokers, move.broker)
    replayed = image.end_offset - 1
    if move.behind and registered is not None:
        replayed = registered.registered_at - 1
    if move.stale:
        broker_epoch = BrokerEpoch(broker_epoch - 1)
    return BrokerHeartbeatRequest(move.broker, broker_epoch, Offset(replayed), move.want_fence, move.want_shutdown)


def _proposal(known: Known, move: Propose) -> AlterPartitionRequest:
    partition, fault = known.partition, move.fault
    if partition is None:
        raise ImpossibleMoveError("there is no partition to propose an ISR for")
    proposer = partition.leader if partition.leader != NO_LEADER else partition.replicas[0]
    if fault == Fault.NOT_THE_LEADER:
        others = [replica for replica in partition.replicas if replica != partition.leader]
        if not others:
            raise ImpossibleMoveError("the partition has no other replica")
        proposer = others[0]
    proposed = partition.isr ^ frozenset(move.changed)
    if fault == Fault.WITHOUT_THE_LEADER:
        proposed -= {partition.leader}
    members = frozenset(IsrMember(broker, _member_epoch(known, broker, fault)) for broker in proposed)
    leader_epoch, partition_epoch = partition.leader_epoch, partition.partition_epoch
    by_leader_epoch = {Fault.EARLIER_LEADER_EPOCH: -1, Fault.LATER_LEADER_EPOCH: 1}.get(fault, 0)
    by_partition_epoch = {Fault.EARLIER_PARTITION_EPOCH: -1, Fault.LATER_PARTITION_EPOCH: 1}.get(fault, 0)
    broker_epoch = _of(known.broker_epochs, proposer, NO_BROKER_EPOCH)
    return AlterPartitionRequest(
        proposer,
        BrokerEpoch(broker_epoch - 1) if fault == Fault.STALE_BROKER_EPOCH else broker_epoch,
        NO_PARTITION if fault == Fault.UNKNOWN_PARTITION else PARTITION,
        Epoch(leader_epoch + by_leader_epoch),
        PartitionEpoch(partition_epoch + by_partition_epoch),
        members,
        LeaderRecoveryState.RECOVERING if fault == Fault.RECOVERING else LeaderRecoveryState.RECOVERED,
    )


def _member_epoch(known: Known, broker: BrokerId, fault: Fault) -> BrokerEpoch:
    if fault == Fault.MEMBER_WITHOUT_EPOCH:
        return NO_BROKER_EPOCH
    broker_epoch = _of(known.broker_epochs, broker, NO_BROKER_EPOCH)
    return BrokerEpoch(broker_epoch - 1) if fault == Fault.STALE_MEMBER else broker_epoch


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


def handler_of(request: ControllerRequest) -> Callable[..., ControllerStep]:
    """The handler of a request."""
    return HANDLERS[type(request)]


def taken(controller: Controller, known: Known, request: ControllerRequest) -> Taken:
    """What the specification's controller answers and writes."""
    step = handler_of(request)(controller, known.state, request, NOW_MS)
    answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
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
    return Taken(request, answers[0], appended[0] if appended else (), after)
