"""What the controller decides: the partition's creation, elections, and the ISRs that leaders propose."""

from collections.abc import Callable

from model_check.model import CONTROLLER, REFUSED, Effect, Message, Note, then, when
from model_check.models.messages.board import RUN, Board, decision_of
from model_check.models.messages.values import (
    NOT_DECIDED,
    NOT_PROPOSED,
    PARTITION,
    Decision,
    MessageId,
    Proposed,
    Reign,
    Verdict,
)
from spec.controller import ControllerStep, handle_alter_partition, handle_create_partition, handle_elect_leaders
from spec.controller_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    CreatePartitionRequest,
    ElectLeadersRequest,
    IsrMember,
)
from spec.step import Reply
from spec.values import BrokerId, Epoch, PartitionEpoch


def add_control(board: Board) -> None:
    """Add creation, elections and the handling of proposals."""
    for version in board.numbers.versions:
        for epoch in board.numbers.epochs:
            for leader in board.brokers:
                _add_creation(board, leader, version, epoch)
                _add_election(board, leader, version, epoch)
            for proposal in board.numbers.proposals:
                _add_grant(board, proposal, version, epoch)
    for proposal in board.numbers.proposals:
        _add_refusal(board, proposal)


Decides = Callable[[Decision], Decision]


def _decided(board: Board, version: PartitionEpoch, epoch: Epoch, decide: Decides) -> Effect:
    """The effect of a decision: the partition is changed, everybody will hear of it, and the epoch is as it says."""
    slots = board.slots

    def decided(before: Decision) -> object:
        after = decide(before)
        if after == before or after.partition_epoch != version or after.leader_epoch != epoch:
            return REFUSED
        return after, after, Reign(after.leader, after.isr)

    return then((slots.partition, slots.decision[version], slots.reign[epoch]), decided, slots.partition)


def _add_creation(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def create(before: Decision) -> Decision:
        request = CreatePartitionRequest(PARTITION, (leader, *board.others(leader)))
        return decision_of(handle_create_partition(board.controller(before, leader), request).state)

    board.model.action(
        "CreatePartition",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[when(lambda before: before.partition_epoch == NOT_DECIDED.partition_epoch, board.slots.partition)],
        effects=[_decided(board, version, epoch, create)],
    )


def _add_election(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def elect(before: Decision) -> Decision:
        request = ElectLeadersRequest(PARTITION)
        state = board.controller(before, leader)
        return decision_of(handle_elect_leaders(board.control, board.settings, state, request).state)

    board.model.action(
        "ElectLeader",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, f"elects {leader}")],
        guards=[when(lambda before: before.partition_epoch >= 0, board.slots.partition)],
        effects=[_decided(board, version, epoch, elect)],
    )


def _handled(board: Board, before: Decision, proposed: Proposed) -> ControllerStep:
    leader = board.one_of(proposed.leader)
    isr = frozenset(IsrMember(member, RUN) for member in board.those_in(proposed.isr))
    request = AlterPartitionRequest(leader, RUN, PARTITION, proposed.leader_epoch, proposed.partition_epoch, isr)
    return handle_alter_partition(board.control, board.settings, board.controller(before, board.brokers[0]), request)


def _verdict(step: ControllerStep) -> Verdict:
    response = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(response, AlterPartitionResponse)
    return Verdict(True, response.error, response.leader_epoch, response.isr, response.partition_epoch)


def _add_grant(board: Board, proposal: MessageId, version: PartitionEpoch, epoch: Epoch) -> None:
    slots = board.slots
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]

    def grant(before: Decision, asked: Proposed) -> object:
        step = _handled(board, before, asked)
        after = decision_of(step.state)
        if after == before or after.partition_epoch != version or after.leader_epoch != epoch:
            return REFUSED
        return after, after, Reign(after.leader, after.isr), _verdict(step)

    board.model.action(
        "GrantProposal",
        {"proposal": proposal, "version": version, "epoch": epoch},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "writes the ISR")],
        guards=[
            when(lambda asked: asked.leader != NOT_PROPOSED.leader, proposed),
            when(lambda before: before.partition_epoch >= 0, slots.partition),
        ],
        effects=[
            then((slots.partition, slots.decision[version], slots.reign[epoch], verdict), grant, slots.partition, proposed)
        ],
    )


def _add_refusal(board: Board, proposal: MessageId) -> None:
    slots = board.slots
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]

    def refuse(before: Decision, asked: Proposed) -> object:
        step = _handled(board, before, asked)
        return REFUSED if decision_of(step.state) != before else _verdict(step)

    board.model.action(
        "RefuseProposal",
        {"proposal": proposal},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "changes nothing")],
        guards=[
            when(lambda asked: asked.leader != NOT_PROPOSED.leader, proposed),
            when(lambda before: before.partition_epoch >= 0, slots.partition),
        ],
        effects=[then(verdict, refuse, slots.partition, proposed)],
    )
