"""Decisions of the controller: the partition's creation, elections, registration, fencing, and proposed ISRs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Effect, Local, Note, Slot, when
from kspec.model_check.models.messages.board import ANOTHER_PROCESS, Board, decision_of, registered_of
from kspec.model_check.models.messages.values import (
    NO_FETCH,
    NOT_DECIDED,
    NOT_PROPOSED,
    IsrAnswer,
    IsrProposal,
    LastDecision,
    ProposalId,
    RegisteredAt,
    RegistrationState,
)
from kspec.model_check.models.parts import LATE, PARTITION, Values, by_slot, creation_of
from kspec.spec.broker.rules.isr.errors import AfterError
from kspec.spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, on_session_check
from kspec.spec.controller.partitions import handle_alter_partition, handle_elect_leaders
from kspec.spec.controller.state import ControllerState
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.step import Reply
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Epoch, PartitionEpoch


def add_control(board: Board) -> None:
    """Add creation, elections, registration, fencing and unfencing, and the handling of proposals."""
    for partition_epoch in board.numbers.partition_epochs:
        for epoch in board.numbers.epochs:
            for leader in board.brokers:
                _add_creation(board, leader, partition_epoch, epoch)
                _add_election(board, leader, partition_epoch, epoch)
                for broker in board.brokers:
                    _add_fencing(board, broker, leader, partition_epoch, epoch)
                    if board.unclean_shutdowns:
                        _add_registration(board, broker, leader, partition_epoch, epoch)
            for proposal in board.numbers.proposals:
                _add_grant(board, proposal, partition_epoch, epoch)
    for broker in board.brokers:
        _add_quiet_fencing(board, broker)
        if board.unclean_shutdowns:
            for epoch in board.numbers.epochs:
                _add_quiet_registration(board, broker, epoch)
    for proposal in board.numbers.proposals:
        _add_refusal(board, proposal)


class Reaction(NamedTuple):
    """The controller's state before and after a step, and the other written values by slot."""

    before: ControllerState
    state: ControllerState
    also: dict[Slot, Any]

    @property
    def decided(self) -> bool:
        """Whether the partition is another than before."""
        return self.state.image.partitions != self.before.image.partitions


Decides = Callable[[Values], Reaction]
"""The controller's step from its last decision, all registrations, and the other slots that it reads."""


def _reads(board: Board, *given: Slot) -> tuple[Slot, ...]:
    return (board.slots.partition, *board.slots.registered.values(), *given)


def _registered(board: Board, at: Values) -> dict[BrokerId, RegistrationState]:
    return {broker: at[board.slots.registered[broker]] for broker in board.brokers}


def _decided(
    board: Board, partition_epoch: PartitionEpoch, epoch: Epoch, decide: Decides, also: Sequence[Slot] = (), *given: Slot
) -> Effect:
    """The effect of a decision: the partition, the decision for all brokers to replay, and the epoch."""
    partition, decision = board.slots.partition, board.slots.decision[partition_epoch]
    last_decision = board.slots.last_decision[epoch]

    def decided(at: Values) -> object:
        found = decide(at)
        after = decision_of(found.state)
        if not found.decided or after.partition_epoch != partition_epoch or after.leader_epoch != epoch:
            return REFUSED
        last = LastDecision(after.leader, after.isr, after.elr)
        return {partition: after, decision: after, last_decision: last, **found.also}

    return by_slot((partition, decision, last_decision, *also), decided, _reads(board, *given))


def _undecided(board: Board, decide: Decides, also: Sequence[Slot], *given: Slot) -> Effect:
    """The effect where the controller leaves the partition as it is."""

    def undecided(at: Values) -> object:
        found = decide(at)
        return REFUSED if found.decided else found.also

    return by_slot(also, undecided, _reads(board, *given))


def _is_created(board: Board) -> Local:
    return when(lambda before: before.partition_epoch >= 0, board.slots.partition)


def _add_creation(board: Board, leader: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    def create(at: Values) -> Reaction:
        state = board.controller(at[board.slots.partition], leader, _registered(board, at))
        request = creation_of((leader, *board.others(leader)))
        return Reaction(state, handle_create_topics(board.control, state, request, LATE).state, {})

    board.model.action(
        "CreatePartition",
        {"leader": leader, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[when(lambda before: before.partition_epoch == NOT_DECIDED.partition_epoch, board.slots.partition)],
        effects=[_decided(board, partition_epoch, epoch, create)],
    )


def _add_election(board: Board, leader: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    def elect(at: Values) -> Reaction:
        state = board.controller(at[board.slots.partition], leader, _registered(board, at))
        after = handle_elect_leaders(board.control, state, ElectLeadersRequest(PARTITION), LATE).state
        return Reaction(state, after, {})

    board.model.action(
        "ElectPreferred",
        {"leader": leader, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Note(CONTROLLER, f"elects {leader}")],
        guards=[_is_created(board)],
        effects=[_decided(board, partition_epoch, epoch, elect)],
    )


# ---- fencing


def _fence(board: Board, broker: BrokerId, preferred: BrokerId, at: Values) -> Reaction:
    """The decision when a broker's session has expired."""
    state = board.controller(at[board.slots.partition], preferred, _registered(board, at), silent=broker)
    after = on_session_check(board.control, state, LATE).state
    return Reaction(state, after, {board.slots.registered[broker]: registered_of(after, broker)})


def _unfence(board: Board, broker: BrokerId, preferred: BrokerId, at: Values) -> Reaction:
    """The decision on a heartbeat of a fenced broker that has replayed all metadata."""
    state = board.controller(at[board.slots.partition], preferred, _registered(board, at))
    request = BrokerHeartbeatRequest(broker, registered_of(state, broker).broker_epoch, state.image.end_offset)
    after = handle_broker_heartbeat(board.control, state, request, LATE).state
    return Reaction(state, after, {board.slots.registered[broker]: registered_of(after, broker)})


FENCING = (("Fence", _fence, "fences", False), ("Unfence", _unfence, "unfences", True))
"""Both directions: the action, what is decided, the same in words, and whether the broker must be fenced before."""


def _add_fencing(board: Board, broker: BrokerId, preferred: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    """A broker is fenced and leaves the ISR, or loses the leadership; or it is unfenced and leads again."""
    slot = board.slots.registered[broker]
    for name, decide, what, if_fenced in FENCING:
        board.model.action(
            name,
            {"broker": broker, "preferred": preferred, "partition_epoch": partition_epoch, "epoch": epoch},
            events=[Note(CONTROLLER, f"{what} {broker}, and decides anew")],
            guards=[_is_created(board), when(lambda known, which=if_fenced: known.fenced == which, slot)],
            effects=[_decided(board, partition_epoch, epoch, partial(decide, board, broker, preferred), [slot])],
        )


def _add_quiet_fencing(board: Board, broker: BrokerId) -> None:
    """A broker is fenced or unfenced, and the partition does not change."""
    slot = board.slots.registered[broker]
    for name, decide, what, if_fenced in FENCING:
        board.model.action(
            f"{name}Quietly",
            {"broker": broker},
            events=[Note(CONTROLLER, f"{what} {broker}")],
            guards=[when(lambda known, which=if_fenced: known.fenced == which, slot)],
            effects=[_undecided(board, partial(decide, board, broker, broker), [slot])],
        )


# ---- registration


def _register(board: Board, broker: BrokerId, preferred: BrokerId, epoch: Epoch, at: Values) -> Reaction:
    """The decision when a broker registers that has stopped without warning: its session must have expired.

    The fetches of the incarnation before in this epoch no longer count, so the history variables drop them.
    """
    slots = board.slots
    next_broker_epoch = at[slots.next_broker_epoch]
    state = board.controller(at[slots.partition], preferred, _registered(board, at), broker, next_broker_epoch)
    request = BrokerRegistrationRequest(broker, ANOTHER_PROCESS, NO_BROKER_EPOCH)
    after = handle_broker_registration(board.control, state, request, LATE).state
    known, decided = registered_of(after, broker), decision_of(after)
    written = {
        slots.registered[broker]: known,
        slots.broker_epoch[broker]: known.broker_epoch,
        slots.registered_at[broker]: RegisteredAt(decided.partition_epoch, decided.leader_epoch),
        slots.next_broker_epoch: BrokerEpoch(known.broker_epoch + 1),
        slots.fetched[broker][epoch]: NO_FETCH._replace(broker_epoch=known.broker_epoch, anew=True),
    }
    return Reaction(state, after, written)


def _registration_slots(board: Board, broker: BrokerId, epoch: Epoch) -> tuple[Slot, ...]:
    """The written values when a new incarnation of a broker is registered in a leader epoch."""
    slots = board.slots
    return (
        slots.registered[broker],
        slots.broker_epoch[broker],
        slots.registered_at[broker],
        slots.next_broker_epoch,
        slots.fetched[broker][epoch],
    )


def _is_down(board: Board, broker: BrokerId) -> Local:
    return when(lambda broker_epoch: broker_epoch == NO_BROKER_EPOCH, board.slots.broker_epoch[broker])


def _add_registration(
    board: Board, broker: BrokerId, preferred: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch
) -> None:
    """A new incarnation of a broker registers. The broker leaves the ISR."""
    register, written = partial(_register, board, broker, preferred, epoch), _registration_slots(board, broker, epoch)
    board.model.action(
        "Register",
        {"broker": broker, "preferred": preferred, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Arrow(broker, CONTROLLER, "registration"), Note(CONTROLLER, "decides anew")],
        guards=[_is_created(board), _is_down(board, broker)],
        effects=[_decided(board, partition_epoch, epoch, register, written, board.slots.next_broker_epoch)],
    )


def _add_quiet_registration(board: Board, broker: BrokerId, epoch: Epoch) -> None:
    """A new incarnation of a broker registers that is not in sync, so the partition does not change."""
    register, written = partial(_register, board, broker, broker, epoch), _registration_slots(board, broker, epoch)
    board.model.action(
        "RegisterQuietly",
        {"broker": broker, "epoch": epoch},
        events=[Arrow(broker, CONTROLLER, "registration")],
        guards=[
            _is_created(board),
            when(lambda before: before.leader_epoch == epoch, board.slots.partition),
            _is_down(board, broker),
        ],
        effects=[_undecided(board, register, written, board.slots.next_broker_epoch)],
    )


# ---- proposals


def _handle(board: Board, proposal: ProposalId, at: Values) -> Reaction:
    """The decision on a proposal, and the answer."""
    slots = board.slots
    proposed: IsrProposal = at[slots.proposed[proposal]]
    leader, named = board.one_of(proposed.leader), {broker: at[slot] for broker, slot in board.named(proposal).items()}
    isr = frozenset(IsrMember(member, named[member]) for member in board.those_in(proposed.isr))
    epochs = proposed.leader_epoch, proposed.partition_epoch
    request = AlterPartitionRequest(leader, proposed.broker_epoch, PARTITION, *epochs, isr)
    state = board.controller(at[slots.partition], board.brokers[0], _registered(board, at))
    step = handle_alter_partition(board.control, state, request, LATE)
    response = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(response, AlterPartitionResponse)
    answer = IsrAnswer(
        given=True,
        for_good=board.rules.on_isr_error(response.error) == AfterError.ROLL_BACK,
        error=response.error,
        leader_epoch=response.leader_epoch,
        isr=response.isr,
        partition_epoch=response.partition_epoch,
    )
    return Reaction(state, step.state, {slots.isr_answer[proposal]: answer})


def _handle_again(board: Board, proposal: ProposalId, at: Values) -> Reaction:
    """The decision on a proposal or a copy of it. The leader has given up the connection on which a copy came."""
    found, before = _handle(board, proposal, at), at[board.slots.isr_answer[proposal]]
    return found._replace(also={board.slots.isr_answer[proposal]: before}) if before.for_good else found


def _is_open(board: Board, proposal: ProposalId) -> list[Local]:
    """Whether a proposal may be handled: at any time, and any number of times."""
    return [
        when(lambda asked: asked.leader != NOT_PROPOSED.leader, board.slots.proposed[proposal]),
        _is_created(board),
    ]


def _add_grant(board: Board, proposal: ProposalId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    isr_answer, asked = board.slots.isr_answer[proposal], board.asked(proposal)
    board.model.action(
        "GrantIsr",
        {"proposal": proposal, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Arrow("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "writes the ISR")],
        guards=_is_open(board, proposal),
        effects=[
            _decided(
                board, partition_epoch, epoch, partial(_handle_again, board, proposal), [isr_answer], isr_answer, *asked
            )
        ],
    )


def _add_refusal(board: Board, proposal: ProposalId) -> None:
    isr_answer, asked = board.slots.isr_answer[proposal], board.asked(proposal)
    board.model.action(
        "RefuseIsr",
        {"proposal": proposal},
        events=[Arrow("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "changes nothing")],
        guards=[
            *_is_open(board, proposal),
            when(lambda answer: not answer.for_good, isr_answer),
        ],
        effects=[_undecided(board, partial(_handle, board, proposal), [isr_answer], isr_answer, *asked)],
    )
