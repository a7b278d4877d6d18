"""What the controller decides: the partition's creation, elections, who is fenced, and the ISRs that leaders propose."""

from collections.abc import Callable, Sequence
from functools import partial

from model_check.model import CONTROLLER, REFUSED, Effect, Message, Note, Slot, then, when
from model_check.models.messages.board import LATE, RUN, Board, decision_of
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
from spec.alter_partition import AfterError
from spec.controller import (
    ControllerStep,
    handle_alter_partition,
    handle_create_partition,
    handle_elect_leaders,
    handle_heartbeat,
    handle_session_timeout,
)
from spec.controller_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    CreatePartitionRequest,
    ElectLeadersRequest,
    IsrMember,
)
from spec.step import Reply
from spec.values import BrokerId, Epoch, PartitionEpoch


def add_control(board: Board) -> None:
    """Add creation, elections, fencing and unfencing, and the handling of proposals."""
    for version in board.numbers.versions:
        for epoch in board.numbers.epochs:
            for leader in board.brokers:
                _add_creation(board, leader, version, epoch)
                _add_election(board, leader, version, epoch)
                for broker in board.brokers:
                    _add_fencing(board, broker, leader, version, epoch)
            for proposal in board.numbers.proposals:
                _add_grant(board, proposal, version, epoch)
    for broker in board.brokers:
        _add_quiet_changes(board, broker)
    for proposal in board.numbers.proposals:
        _add_refusal(board, proposal)


Decides = Callable[..., Decision]
"""What the controller decides, by its last decision and by who is fenced."""


def _decided(
    board: Board, version: PartitionEpoch, epoch: Epoch, decide: Decides, also: tuple[tuple[Slot, bool], ...] = ()
) -> Effect:
    """The effect of a decision: the partition is changed, everybody will hear of it, and the epoch is as it says.

    `also`: what else is written.
    """
    slots = board.slots

    def decided(before: Decision, *fenced: bool) -> object:
        after = decide(before, fenced)
        if after == before or after.partition_epoch != version or after.leader_epoch != epoch:
            return REFUSED
        return after, after, Reign(after.leader, after.isr), *(value for _, value in also)

    written = (slots.partition, slots.decision[version], slots.reign[epoch], *(slot for slot, _ in also))
    return then(written, decided, slots.partition, *slots.fenced.values())


def _add_creation(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def create(before: Decision, fenced: Sequence[bool]) -> Decision:
        request = CreatePartitionRequest(PARTITION, (leader, *board.others(leader)))
        return decision_of(handle_create_partition(board.controller(before, leader, fenced), request).state)

    board.model.action(
        "CreatePartition",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[when(lambda before: before.partition_epoch == NOT_DECIDED.partition_epoch, board.slots.partition)],
        effects=[_decided(board, version, epoch, create)],
    )


def _add_election(board: Board, leader: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    def elect(before: Decision, fenced: Sequence[bool]) -> Decision:
        request = ElectLeadersRequest(PARTITION)
        state = board.controller(before, leader, fenced)
        return decision_of(handle_elect_leaders(board.control, board.settings, state, request).state)

    board.model.action(
        "ElectLeader",
        {"leader": leader, "version": version, "epoch": epoch},
        events=[Note(CONTROLLER, f"elects {leader}")],
        guards=[when(lambda before: before.partition_epoch >= 0, board.slots.partition)],
        effects=[_decided(board, version, epoch, elect)],
    )


# ---- who is fenced


def _fence(board: Board, broker: BrokerId, preferred: BrokerId, before: Decision, fenced: Sequence[bool]) -> Decision:
    """What is decided when a broker has not been heard of for long."""
    state = board.controller(before, preferred, fenced, silent=broker)
    return decision_of(handle_session_timeout(board.control, board.settings, state, LATE).state)


def _unfence(board: Board, broker: BrokerId, preferred: BrokerId, before: Decision, fenced: Sequence[bool]) -> Decision:
    """What is decided when a fenced broker sends a heartbeat, having replayed all metadata."""
    state = board.controller(before, preferred, fenced)
    request = BrokerHeartbeatRequest(broker, RUN, state.image.end_offset)
    return decision_of(handle_heartbeat(board.control, board.settings, state, request, LATE).state)


def _add_fencing(board: Board, broker: BrokerId, preferred: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker is fenced and leaves the ISR, or leads no more; or it is unfenced and leads again."""
    fenced = board.slots.fenced[broker]
    for name, decide, fences in (("Fence", _fence, True), ("Unfence", _unfence, False)):
        board.model.action(
            name,
            {"broker": broker, "preferred": preferred, "version": version, "epoch": epoch},
            events=[Note(CONTROLLER, f"{'fences' if fences else 'unfences'} {broker}, and decides anew")],
            guards=[
                when(lambda before: before.partition_epoch >= 0, board.slots.partition),
                when(lambda is_fenced, fences=fences: is_fenced != fences, fenced),
            ],
            effects=[_decided(board, version, epoch, partial(decide, board, broker, preferred), ((fenced, fences),))],
        )


def _add_quiet_changes(board: Board, broker: BrokerId) -> None:
    """A broker is fenced or unfenced, and nothing is decided about the partition."""
    slots = board.slots
    for name, decide, fences in (("FenceQuietly", _fence, True), ("UnfenceQuietly", _unfence, False)):
        board.model.action(
            name,
            {"broker": broker},
            events=[Note(CONTROLLER, f"{'fences' if fences else 'unfences'} {broker}")],
            guards=[
                when(lambda is_fenced, fences=fences: is_fenced != fences, slots.fenced[broker]),
                when(partial(_decides_nothing, board, broker, decide), slots.partition, *slots.fenced.values()),
            ],
            effects=[then(slots.fenced[broker], lambda fences=fences: fences)],
        )


def _decides_nothing(
    board: Board,
    broker: BrokerId,
    decide: Callable[[Board, BrokerId, BrokerId, Decision, Sequence[bool]], Decision],
    before: Decision,
    *fenced: bool,
) -> bool:
    return decide(board, broker, broker, before, fenced) == before


# ---- proposals


def _handled(board: Board, before: Decision, proposed: Proposed, fenced: Sequence[bool]) -> ControllerStep:
    leader = board.one_of(proposed.leader)
    isr = frozenset(IsrMember(member, RUN) for member in board.those_in(proposed.isr))
    request = AlterPartitionRequest(leader, RUN, PARTITION, proposed.leader_epoch, proposed.partition_epoch, isr)
    state = board.controller(before, board.brokers[0], fenced)
    return handle_alter_partition(board.control, board.settings, state, request)


def _verdict(board: Board, step: ControllerStep) -> Verdict:
    response = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(response, AlterPartitionResponse)
    for_good = board.rules.on_isr_error(response.error) == AfterError.ROLL_BACK
    return Verdict(True, for_good, response.error, response.leader_epoch, response.isr, response.partition_epoch)


def _add_grant(board: Board, proposal: MessageId, version: PartitionEpoch, epoch: Epoch) -> None:
    slots = board.slots
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]

    def grant(before: Decision, asked: Proposed, *fenced: bool) -> object:
        step = _handled(board, before, asked, fenced)
        after = decision_of(step.state)
        if after == before or after.partition_epoch != version or after.leader_epoch != epoch:
            return REFUSED
        return after, after, Reign(after.leader, after.isr), _verdict(board, step)

    board.model.action(
        "GrantProposal",
        {"proposal": proposal, "version": version, "epoch": epoch},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "writes the ISR")],
        guards=[
            when(lambda asked: asked.leader != NOT_PROPOSED.leader, proposed),
            when(lambda answer: not answer.for_good, verdict),
            when(lambda before: before.partition_epoch >= 0, slots.partition),
        ],
        effects=[
            then(
                (slots.partition, slots.decision[version], slots.reign[epoch], verdict),
                grant,
                slots.partition,
                proposed,
                *slots.fenced.values(),
            )
        ],
    )


def _add_refusal(board: Board, proposal: MessageId) -> None:
    slots = board.slots
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]

    def refuse(before: Decision, asked: Proposed, *fenced: bool) -> object:
        step = _handled(board, before, asked, fenced)
        return REFUSED if decision_of(step.state) != before else _verdict(board, step)

    board.model.action(
        "RefuseProposal",
        {"proposal": proposal},
        events=[Message("leader", CONTROLLER, "AlterPartition"), Note(CONTROLLER, "changes nothing")],
        guards=[
            when(lambda asked: asked.leader != NOT_PROPOSED.leader, proposed),
            when(lambda answer: not answer.for_good, verdict),
            when(lambda before: before.partition_epoch >= 0, slots.partition),
        ],
        effects=[then(verdict, refuse, slots.partition, proposed, *slots.fenced.values())],
    )
