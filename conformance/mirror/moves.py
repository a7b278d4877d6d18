"""What brokers and operators may send to a controller, and what the controller of the specification does about it.

A `Move` says what is sent in words that do not depend on the run before it: "the leader proposes the ISR without 3, in the
epoch before". `request_of` turns it into a request with the epochs that the sender then knows. So a move means the same to
the specification and to a real controller. `taken` hands the request to the handler of `spec`; no rule is restated here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, handle_unregister_broker
from spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_create_topics,
    handle_elect_leaders,
)
from spec.controller.protocol import Controller
from spec.controller.state import Answer, AppendRecords, ControllerState, ControllerStep
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


class Fault(Enum):
    """What is wrong with a proposal, or unusual."""

    NONE = "as it should be"
    STALE_BROKER_EPOCH = "in an earlier broker epoch"
    EARLIER_LEADER_EPOCH = "in an earlier leader epoch"
    LATER_LEADER_EPOCH = "in a later leader epoch"
    EARLIER_PARTITION_EPOCH = "on an earlier partition epoch"
    LATER_PARTITION_EPOCH = "on a later partition epoch"
    NOT_THE_LEADER = "by another replica"
    WITHOUT_THE_LEADER = "without the leader"
    STALE_MEMBER = "with members of earlier broker epochs"
    MEMBER_WITHOUT_EPOCH = "with members of unknown broker epoch"
    RECOVERING = "as recovering"
    UNKNOWN_PARTITION = "of a partition that does not exist"


class CreatePartition(NamedTuple):
    """An operator creates the partition."""

    replicas: tuple[BrokerId, ...]


class Heartbeat(NamedTuple):
    """A broker sends a heartbeat. It has replayed all of the metadata; `behind`: not even its own registration."""

    broker: BrokerId
    want_fence: bool = False
    want_shutdown: bool = False
    behind: bool = False
    stale: bool = False


class Register(NamedTuple):
    """A broker registers: the next incarnation, which may say that the last one stopped cleanly; or the same once more."""

    broker: BrokerId
    again: bool = False
    clean: bool = False


class Unregister(NamedTuple):
    """An operator removes a broker's registration."""

    broker: BrokerId


class Propose(NamedTuple):
    """The leader proposes its ISR with these brokers added, or dropped if they are in it."""

    changed: tuple[BrokerId, ...]
    fault: Fault = Fault.NONE


class ProposeAgain(NamedTuple):
    """Another copy of the last proposal arrives."""


class Elect(NamedTuple):
    """An operator asks for the preferred leader, or for an unclean election."""

    unclean: bool = False


class Reassign(NamedTuple):
    """An operator moves the partition to these replicas."""

    replicas: tuple[BrokerId, ...]


class CancelReassignment(NamedTuple):
    """An operator cancels the move."""


Move: TypeAlias = (
    CreatePartition | Heartbeat | Register | Unregister | Propose | ProposeAgain | Elect | Reassign | CancelReassignment
)

MOVES: tuple[type[Any], ...] = (
    CreatePartition,
    Heartbeat,
    Register,
    Unregister,
    Propose,
    ProposeAgain,
    Elect,
    Reassign,
    CancelReassignment,
)

Request: TypeAlias = (
    AlterPartitionReassignmentsRequest
    | AlterPartitionRequest
    | BrokerHeartbeatRequest
    | BrokerRegistrationRequest
    | CreateTopicsRequest
    | ElectLeadersRequest
    | UnregisterBrokerRequest
)


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

    request: Request
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


def request_of(known: Known, move: Move) -> Request:
    """The request of a move, with the epochs that its sender knows. `ImpossibleMoveError` if there is no such sender."""
    match move:
        case CreatePartition(replicas):
            return CreateTopicsRequest(PARTITION, replicas)
        case Heartbeat():
            return _heartbeat(known, move)
        case Register(broker, again, clean):
            incarnation = _of(known.incarnations, broker, Incarnation(0))
            previous = _of(known.broker_epochs, broker, NO_BROKER_EPOCH) if clean else NO_BROKER_EPOCH
            return BrokerRegistrationRequest(broker, Incarnation(incarnation + (not again)), previous)
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


def taken(controller: Controller, known: Known, request: Request) -> Taken:
    """What the specification's controller answers and writes."""
    step = HANDLERS[type(request)](controller, known.state, request, NOW_MS)
    answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    assert len(answers) == 1, "every request is answered once"
    appended = [effect.records for effect in step.effects if isinstance(effect, AppendRecords)]
    after = known._replace(state=step.state)
    match request, answers[0]:
        case BrokerRegistrationRequest(broker, incarnation), BrokerRegistrationResponse(Error.NONE, _, broker_epoch):
            after = after._replace(
                incarnations=_with(known.incarnations, broker, incarnation),
                broker_epochs=_with(known.broker_epochs, broker, broker_epoch),
            )
        case AlterPartitionRequest(), _:
            after = after._replace(sent=request)
    return Taken(request, answers[0], appended[0] if appended else (), after)


def move_in_words(move: Move) -> str:
    """A move as people read it: its name, and its arguments that are not the usual ones."""
    defaults: dict[str, object] = getattr(type(move), "_field_defaults", {})
    words = []
    for name, value in move._asdict().items():
        if name in defaults and value == defaults[name]:
            continue
        if isinstance(value, Enum):
            words.append(str(value.value))
        elif value is True:
            words.append(name.replace("_", " "))
        elif isinstance(value, tuple):
            words.append(", ".join(map(str, value)))
        else:
            words.append(str(value))
    return f"{type(move).__name__}({'; '.join(words)})"


def move_as_json(move: Move) -> dict[str, Any]:
    """A move as JSON: its name, and its arguments."""
    fields = {
        name: value.name if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
        for name, value in move._asdict().items()
    }
    return {"move": type(move).__name__, **fields}


class NoMoveError(ValueError):
    """JSON that is no move."""


def move_from_json(described: dict[str, Any]) -> Move:
    """The move that `move_as_json` describes. `NoMoveError` says why there is none."""
    fields = dict(described)
    name = fields.pop("move", None)
    kinds = {kind.__name__: kind for kind in MOVES}
    if name not in kinds:
        raise NoMoveError(f"there is no move {name!r}; there are {', '.join(kinds)}")
    for field, value in fields.items():
        if isinstance(value, list):
            fields[field] = tuple(value)
        elif field == "fault":
            if value not in Fault.__members__:
                raise NoMoveError(f"{name}: there is no fault {value!r}; there are {', '.join(Fault.__members__)}")
            fields[field] = Fault[value]
    try:
        move: Move = kinds[name](**fields)
    except TypeError as error:
        raise NoMoveError(f"{name}: {error}") from error
    return move
