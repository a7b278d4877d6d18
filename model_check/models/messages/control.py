"""What the controller decides: the partition's creation, elections, who is registered and fenced, and proposed ISRs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from model_check.core.model import CONTROLLER, REFUSED, Effect, Local, Message, Note, Slot, then, when
from model_check.models.messages.board import ANOTHER_PROCESS, LATE, Board, decision_of, registered_of
from model_check.models.messages.values import (
    NO_FETCH,
    NOT_DECIDED,
    NOT_PROPOSED,
    PARTITION,
    Decision,
    ProposalId,
    Proposed,
    Registered,
    Reign,
    Since,
    Verdict,
)
from spec.broker.rules.isr.errors import AfterError
from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, handle_session_timeout
from spec.controller.partitions import handle_alter_partition, handle_create_topics, handle_elect_leaders
from spec.controller.state import ControllerState
from spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.messages.create_topics import CreateTopicsRequest
from spec.messages.elect_leaders import ElectLeadersRequest
from spec.step import Reply
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Epoch, PartitionEpoch


def add_control(board: Board) -> None:
    """Add creation, elections, registration, fencing and unfencing, and the handling of proposals."""
    for version in board.numbers.versions:
        for epoch in board.numbers.epochs:
            for leader in board.brokers:
                _add_creation(board, leader, version, epoch)
                _add_election(board, leader, version, epoch)
                for broker in board.brokers:
                    _add_fencing(board, broker, leader, version, epoch)
                    if board.stops:
                        _add_registration(board, broker, leader, version, epoch)
            for proposal in board.numbers.proposals:
                _add_grant(board, proposal, version, epoch)
    for broker in board.brokers:
        _add_quiet_fencing(board, broker)
        if board.stops:
            for epoch in board.numbers.epochs:
                _add_quiet_registration(board, broker, epoch)
    for proposal in board.numbers.proposals:
        _add_refusal(board, proposal)


Decides = Callable[..., tuple[Any, ...]]
"""What the controller makes of its last decision, of all registrations, and of what else it reads: its state, and what else
is written."""


def _reads(board: Board, *given: Slot) -> tuple[Slot, ...]:
    return (board.slots.partition, *board.slots.registered.values(), *given)


def _decided(
    board: Board, version: PartitionEpoch, epoch: Epoch, decide: Decides, also: Sequence[Slot] = (), *given: Slot
) -> Effect:
    """The effect of a decision: the partition is changed, everybody will hear of it, and the epoch is as it says."""
    slots, count = board.slots, len(board.brokers)

    def decided(before: Decision, *known: Any) -> object:
        state, *values = decide(before, known[:count], *known[count:])
        after = decision_of(state)
        if after == before or after.partition_epoch != version or after.leader_epoch != epoch:
            return REFUSED
        return after, after, Reign(after.leader, after.isr, after.elr), *values

    return then((slots.partition, slots.decision[version], slots.reign[epoch], *also), decided, *_reads(board, *given))


def _undecided(board: Board, decide: Decides, also: Sequence[Slot], *given: Slot) -> Effect:
    """The effect where the controller leaves the partition as it is."""
    count = len(board.brokers)

    def undecided(before: Decision, *known: Any) -> object:
        state, *values = decide(before, known[:count], *known[count:])
        if decision_of(state) != before:
            return REFUSED
        return tuple(values) if len(also) > 1 else values[0]

    return then(tuple(also), undecided, *_reads(board, *given))


def _is_created(board: Board) -> Local:
    return when(lambda before: before.partition_epoch >= 0, board.slots.partition)


def _add_creation(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def create(before: Decision, registered: Sequence[Registered]) -> tuple[ControllerState]:
        request = CreateTopicsRequest(PARTITION, (leader, *board.others(leader)))
        return (handle_create_topics(board.controller(before, leader, registered), request).state,)

    board.model.action(
        "CreatePartition",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[when(lambda before: before.partition_epoch == NOT_DECIDED.partition_epoch, board.slots.partition)],
        effects=[_decided(board, version, epoch, create)],
    )


def _add_election(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def elect(before: Decision, registered: Sequence[Registered]) -> tuple[ControllerState]:
        state = board.controller(before, leader, registered)
        return (handle_elect_leaders(board.control, board.settings, state, ElectLeadersRequest(PARTITION)).state,)

    board.model.action(
        "ElectLeader",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, f"elects {leader}")],
        guards=[_is_created(board)],
        effects=[_decided(board, version, epoch, elect)],
    )


# ---- who is fenced


def _fence(
    board: Board, broker: BrokerId, preferred: BrokerId, before: Decision, registered: Sequence[Registered]
) -> tuple[ControllerState, Registered]:
    """What is decided when a broker has not been heard of for long."""
    state = board.controller(before, preferred, registered, silent=broker)
    after = handle_session_timeout(board.control, board.settings, state, LATE).state
    return after, registered_of(after, broker)


def _unfence(
    board: Board, broker: BrokerId, preferred: BrokerId, before: Decision, registered: Sequence[Registered]
) -> tuple[ControllerState, Registered]:
    """What is decided when a fenced broker sends a heartbeat, having replayed all metadata."""
    state = board.controller(before, preferred, registered)
    request = BrokerHeartbeatRequest(broker, registered_of(state, broker).run, state.image.end_offset)
    after = handle_broker_heartbeat(board.control, board.settings, state, request, LATE).state
    return after, registered_of(after, broker)


FENCING = (("Fence", _fence, "fences", False), ("Unfence", _unfence, "unfences", True))
"""Both directions: what happens, what is decided, in words, and of whom: whether that one is fenced."""


def _add_fencing(board: Board, broker: BrokerId, preferred: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker is fenced and leaves the ISR, or leads no more; or it is unfenced and leads again."""
    slot = board.slots.registered[broker]
    for name, decide, what, if_fenced in FENCING:
        board.model.action(
            name,
            {"broker": broker, "preferred": preferred, "version": version, "epoch": epoch},
            events=[Note(CONTROLLER, f"{what} {broker}, and decides anew")],
            guards=[_is_created(board), when(lambda known, which=if_fenced: known.fenced == which, slot)],
            effects=[_decided(board, version, epoch, partial(decide, board, broker, preferred), [slot])],
        )


def _add_quiet_fencing(board: Board, broker: BrokerId) -> None:
    """A broker is fenced or unfenced, and nothing is decided about the partition."""
    slot = board.slots.registered[broker]
    for name, decide, what, if_fenced in FENCING:
        board.model.action(
            f"{name}Quietly",
            {"broker": broker},
            events=[Note(CONTROLLER, f"{what} {broker}")],
            guards=[when(lambda known, which=if_fenced: known.fenced == which, slot)],
            effects=[_undecided(board, partial(decide, board, broker, broker), [slot])],
        )


# ---- who is registered


def _register(
    board: Board,
    broker: BrokerId,
    preferred: BrokerId,
    before: Decision,
    registered: Sequence[Registered],
    next_run: BrokerEpoch,
) -> tuple[Any, ...]:
    """What is decided when a broker registers that has stopped without warning: its session must have expired.

    What the run before has fetched in this epoch counts no more, so the epoch's history forgets it.
    """
    state = board.controller(before, preferred, registered, broker, next_run)
    request = BrokerRegistrationRequest(broker, ANOTHER_PROCESS, NO_BROKER_EPOCH)
    after = handle_broker_registration(board.control, board.settings, state, request, LATE).state
    known, decided = registered_of(after, broker), decision_of(after)
    since = Since(decided.partition_epoch, decided.leader_epoch)
    return after, known, known.run, since, BrokerEpoch(known.run + 1), NO_FETCH._replace(run=known.run, anew=True)


def _run_slots(board: Board, broker: BrokerId, epoch: Epoch) -> tuple[Slot, ...]:
    """What is written when a new run of a broker is registered in a leader epoch."""
    slots = board.slots
    return slots.registered[broker], slots.run[broker], slots.since[broker], slots.next_run, slots.fetched[broker][epoch]


def _is_down(board: Board, broker: BrokerId) -> Local:
    return when(lambda run: run == NO_BROKER_EPOCH, board.slots.run[broker])


def _add_registration(board: Board, broker: BrokerId, preferred: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A new run of a broker registers, and leaves the ISR; from now on it is this run that takes part."""
    register, written = partial(_register, board, broker, preferred), _run_slots(board, broker, epoch)
    board.model.action(
        "Register",
        {"broker": broker, "preferred": preferred, "version": version, "epoch": epoch},
        events=[Message(broker, CONTROLLER, "registration"), Note(CONTROLLER, "decides anew")],
        guards=[_is_created(board), _is_down(board, broker)],
        effects=[_decided(board, version, epoch, register, written, board.slots.next_run)],
    )


def _add_quiet_registration(board: Board, broker: BrokerId, epoch: Epoch) -> None:
    """A new run of a broker registers that is not in sync, so nothing is decided about the partition."""
    register, written = partial(_register, board, broker, broker), _run_slots(board, broker, epoch)
    board.model.action(
        "RegisterQuietly",
        {"broker": broker, "epoch": epoch},
        events=[Message(broker, CONTROLLER, "registration")],
        guards=[
            _is_created(board),
            when(lambda before: before.leader_epoch == epoch, board.slots.partition),
            _is_down(board, broker),
        ],
        effects=[_undecided(board, register, written, board.slots.next_run)],
    )


# ---- proposals


def _handle(
    board: Board, before: Decision, registered: Sequence[Registered], proposed: Proposed, *named: BrokerEpoch
) -> tuple[ControllerState, Verdict]:
    """What is decided on a proposal, and the answer; `named` are the runs of the members that it names."""
    leader, runs = board.one_of(proposed.leader), dict(zip(board.brokers, named, strict=True))
    isr = frozenset(IsrMember(member, runs[member]) for member in board.those_in(proposed.isr))
    epochs = proposed.leader_epoch, proposed.partition_epoch
    request = AlterPartitionRequest(leader, proposed.run, PARTITION, *epochs, isr)
    state = board.controller(before, board.brokers[0], registered)
    step = handle_alter_partition(board.control, board.settings, state, request)
    response = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(response, AlterPartitionResponse)
    for_good = board.rules.on_isr_error(response.error) == AfterError.ROLL_BACK
    told = response.leader_epoch, response.isr, response.partition_epoch
    return step.state, Verdict(True, for_good, response.error, *told)


def _is_open(board: Board, proposal: ProposalId) -> list[Local]:
    """Whether a proposal may be handled, whenever it comes, and again until the leader hears that it was in vain."""
    return [
        when(lambda asked: asked.leader != NOT_PROPOSED.leader, board.slots.proposed[proposal]),
        when(lambda answer: not answer.for_good, board.slots.verdict[proposal]),
        _is_created(board),
    ]


def _add_grant(board: Board, proposal: ProposalId, version: PartitionEpoch, epoch: Epoch) -> None:
    verdict, asked = board.slots.verdict[proposal], board.asked(proposal)
    board.model.action(
        "GrantProposal",
        {"proposal": proposal, "version": version, "epoch": epoch},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "writes the ISR")],
        guards=_is_open(board, proposal),
        effects=[_decided(board, version, epoch, partial(_handle, board), [verdict], *asked)],
    )


def _add_refusal(board: Board, proposal: ProposalId) -> None:
    verdict, asked = board.slots.verdict[proposal], board.asked(proposal)
    board.model.action(
        "RefuseProposal",
        {"proposal": proposal},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "changes nothing")],
        guards=_is_open(board, proposal),
        effects=[_undecided(board, partial(_handle, board), [verdict], *asked)],
    )
