"""ISR changes: a leader proposes, the controller decides, the leader hears of it. The request may be sent twice."""

from collections.abc import Callable
from itertools import combinations

from model_check.model import CONTROLLER, REFUSED, Local, Message, Note, then, when
from model_check.models.kafka.board import Board
from model_check.models.kafka.cluster import answer_of, appended, cluster_of, controller_state, is_the_choice
from model_check.models.kafka.party import LATE, STRANGER, Log, awaits, broker, exchange_after, leading
from model_check.models.kafka.replication import NOBODY_KNOWN, led_after
from model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_TOPIC,
    Clients,
    Cluster,
    Exchange,
    Memory,
    Process,
    Role,
    Under,
)
from spec.alter_partition import AfterError
from spec.controller import ControllerStep, handle_alter_partition
from spec.controller_messages import AlterPartitionResponse
from spec.isr_requests import WriteIsr
from spec.leader import consider_shrinking, handle_alter_partition_response
from spec.local_log import LocalLog
from spec.log import EMPTY_LOG, RecordLog
from spec.partition import Partition
from spec.values import BrokerId, Error


def add_isr_changes(board: Board) -> None:
    """Add shrinking, and the exchange with the controller. (Expanding is part of handling a fetch.)"""
    for leader in board.brokers:
        _add_shrink(board, leader)
        # A grant may end a reassignment, and so the leadership of who asked.
        for successor in board.brokers if board.parameters["reassignments"] else [leader]:
            _add_grant(board, leader, successor)
        _add_refusal(board, leader)
        _add_answer(board, leader)


# ---- the leader shrinks


def _add_shrink(board: Board, leader: BrokerId) -> None:
    if board.budget("isr_shrinks") is None:
        return
    slots = board.slots
    others = [other for other in board.brokers if other != leader]
    subsets = [frozenset(some) for count in range(1, len(others) + 1) for some in combinations(others, count)]
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])

    def shrink(slow: frozenset[BrokerId]) -> Callable[[Log, Role, Memory, Exchange, Process], object]:
        def propose(log: Log, role: Role, memory: Memory, exchange: Exchange, process: Process) -> object:
            own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
            step = consider_shrinking(own, _in_time(leading(log, role, memory), slow), LATE)
            asked = exchange_after(exchange, step.state, step.effects)
            proposed = frozenset(member.broker for member in asked.request.isr)
            if step.state.isr == role.isr or role.isr.isr - proposed != slow:
                return REFUSED
            return role._replace(isr=step.state.isr), asked

        return propose

    for slow in subsets:
        board.model.action(
            "ProposeShrink",
            {"leader": leader, "slow": tuple(sorted(slow))},
            events=[Message(leader, CONTROLLER, "AlterPartition: a smaller ISR")],
            guards=[
                when(lambda role: role.leader == leader, slots.role[leader]),
                when(lambda process: process.up, slots.process[leader]),
            ],
            effects=[
                then(
                    (slots.role[leader], slots.exchange[leader]),
                    shrink(slow),
                    *led,
                    slots.exchange[leader],
                    slots.process[leader],
                ),
                board.spend("isr_shrinks"),
            ],
        )


def _in_time(partition: Partition[RecordLog], slow: frozenset[BrokerId]) -> Partition[RecordLog]:
    """The partition where all followers but the slow ones have been caught up of late."""
    followers = tuple(
        follower if follower.broker in slow else follower._replace(state=follower.state._replace(caught_up_time=LATE))
        for follower in partition.followers
    )
    return partition._replace(followers=followers)


# ---- the controller decides


Decides = Callable[[Cluster, Exchange], ControllerStep]
"""What the controller makes of a request."""


def _decides(board: Board, first: BrokerId) -> Decides:
    """What the controller makes of a request, with `first` as the replica that it likes best for a leader."""
    control = board.control

    def decide(cluster: Cluster, exchange: Exchange) -> ControllerStep:
        state = controller_state(cluster, first)
        return handle_alter_partition(control.protocol, control.settings, state, exchange.request)

    return decide


def _response(step: ControllerStep) -> AlterPartitionResponse:
    response = answer_of(step)
    assert isinstance(response, AlterPartitionResponse)
    return response


def _answer(
    board: Board, leader: BrokerId, step: ControllerStep, exchange: Exchange, role: Role, process: Process
) -> Exchange:
    answered = Exchange(Under.ANSWERED, exchange.request, _response(step))
    return answered if process.up and _matters(board, leader, role, answered) else NO_EXCHANGE


def _add_grant(board: Board, leader: BrokerId, successor: BrokerId) -> None:
    slots, decide = board.slots, _decides(board, successor)
    exchanged, ends_reassignments = slots.exchange[leader], bool(board.parameters["reassignments"])

    def grant(cluster: Cluster, exchange: Exchange) -> Cluster | None:
        if exchange.state != Under.SENT or cluster.topic == NO_TOPIC:
            return None
        step = decide(cluster, exchange)
        after = cluster_of(step.state)
        # Else at most one replica can succeed: who is let in while the leader waits for leave to stop.
        taken = not ends_reassignments or is_the_choice(cluster, after, successor, leader)
        return after if appended(step) and taken else None

    def answer(cluster: Cluster, exchange: Exchange, role: Role, process: Process) -> Exchange:
        return _answer(board, leader, decide(cluster, exchange), exchange, role, process)

    args = {"leader": leader, "successor": successor} if ends_reassignments else {"leader": leader}
    asked = Message(leader, CONTROLLER, "AlterPartition")
    decision = board.decision(f"granted to {leader} succeeded by {successor}", grant, slots.cluster, exchanged)
    decided = board.decided(decision, writes=[exchanged])
    said = Local(lambda cluster, exchange: _response(decide(cluster, exchange)).error, (slots.cluster, exchanged))
    board.model.action(
        "GrantIsr",
        args,
        events=[asked, Note(CONTROLLER, "writes the ISR")],
        guards=[decided.guard],
        effects=[
            *decided.effects,
            then(exchanged, answer, slots.cluster, exchanged, slots.role[leader], slots.process[leader]),
        ],
        answer=said,
    )
    protocol = board.rules[leader].protocol
    writes_itself = isinstance(protocol.asks_for_isr(NO_EXCHANGE.request), WriteIsr)
    if not writes_itself and protocol.on_isr_error(Error.INVALID_UPDATE_VERSION) != AfterError.AWAIT_METADATA:
        # Else an answer that is lost is as good as one that is never taken: asking again would tell the leader nothing.
        unanswered = board.decided(decision)
        board.model.action(
            "GrantIsrUnanswered",
            args,
            events=[asked, Note(CONTROLLER, "writes the ISR"), Message(CONTROLLER, leader, "(the answer is lost)")],
            guards=[unanswered.guard],
            effects=unanswered.effects,
            answer=said,
        )


def _add_refusal(board: Board, leader: BrokerId) -> None:
    slots, decide = board.slots, _decides(board, leader)
    exchanged = slots.exchange[leader]

    def refuse(cluster: Cluster, exchange: Exchange, role: Role, process: Process) -> object:
        step = decide(cluster, exchange)
        return REFUSED if appended(step) else _answer(board, leader, step, exchange, role, process)

    board.model.action(
        "RefuseIsr",
        {"leader": leader},
        events=[Message(leader, CONTROLLER, "AlterPartition"), Note(CONTROLLER, "refuses")],
        guards=[when(lambda exchange: exchange.state == Under.SENT, exchanged)],
        effects=[then(exchanged, refuse, slots.cluster, exchanged, slots.role[leader], slots.process[leader])],
        answer=Local(lambda cluster, exchange: _response(decide(cluster, exchange)).error, (slots.cluster, exchanged)),
    )


def _matters(board: Board, leader: BrokerId, role: Role, exchange: Exchange) -> bool:
    """Whether an answer tells the leader anything. One that does not is as good as lost, and so it is lost at once."""
    before = leading(LocalLog(EMPTY_LOG), role, Memory())
    own = broker(board.rules[leader], leader, STRANGER, NOBODY_KNOWN)
    step = handle_alter_partition_response(own, before, exchange.request, exchange.response, LATE)
    return awaits(before, exchange) and (step.state.isr != role.isr or bool(step.effects))


# ---- the leader hears of it


def _add_answer(board: Board, leader: BrokerId) -> None:
    slots = board.slots
    party = (slots.log[leader], slots.role[leader], slots.memory[leader], slots.exchange[leader], slots.clients)

    def take(log: Log, role: Role, memory: Memory, exchange: Exchange, known: Clients, process: Process) -> object:
        own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
        before = leading(log, role, memory)
        step = handle_alter_partition_response(own, before, exchange.request, exchange.response, LATE)
        return led_after(board.rules[leader], leader, step, NO_EXCHANGE, known)

    board.model.action(
        "TakeIsrAnswer",
        {"leader": leader},
        events=[Message(CONTROLLER, leader, "the answer to AlterPartition")],
        guards=[when(lambda exchange: exchange.state == Under.ANSWERED, slots.exchange[leader])],
        effects=[then(party, take, *party, slots.process[leader])],
    )
