"""ISR changes: a leader proposes, the controller decides, the leader gets the answer. The request may be sent twice.

A request whose answer is lost is sent again, and the controller handles it again (`GrantIsrUnanswered`). With
`--late-proposals` a copy of a request may also arrive after the other one was answered: the connection is lost while the
first copy is under way, the broker sends the request again on another, and the first one is handled later.
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Local, Note, then, when
from kspec.model_check.models.carriers import ModelLog, empty_log
from kspec.model_check.models.kafka.board import NOBODY_KNOWN, AnyDecision, Board, cluster_after
from kspec.model_check.models.kafka.cluster import NOW, is_the_choice
from kspec.model_check.models.kafka.kraft.state import answer_of, appended, cluster_of, controller_state
from kspec.model_check.models.kafka.party import STRANGER, Log, awaits, broker, exchange_after, is_asking, leading
from kspec.model_check.models.kafka.reductions import Reduction, may_miss_answers, tells_something
from kspec.model_check.models.kafka.replication import led_after
from kspec.model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_TOPIC,
    AlterPartitionExchange,
    AnyCluster,
    ClientKnowledge,
    Memory,
    Process,
    RequestState,
    ZkCluster,
)
from kspec.model_check.models.kafka.zookeeper.isr_writes import add_isr_writes
from kspec.model_check.models.kafka.zookeeper.state import decided_by, outcome_of_proposal
from kspec.model_check.models.parts import LATE, Role
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.partition import Partition
from kspec.spec.controller.partitions import handle_alter_partition
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.alter_partition import AlterPartitionResponse
from kspec.spec.values import BrokerId, Error


def add_isr_changes(board: Board) -> None:
    """Add shrinking, and the request to the controller with its answer. (Expanding is part of handling a fetch.)"""
    for leader in board.brokers:
        _add_shrink(board, leader)
        if board.has_zookeeper and board.writes_isr(leader):
            add_isr_writes(board, leader)
            continue
        # A grant of a KRaft controller may end a reassignment, and so the leadership of who asked.
        for successor in board.brokers if _ends_reassignments(board) else [leader]:
            _add_grant(board, leader, successor)
        if not board.has_zookeeper and board.kraft.protocol.ends_refused(Error.INELIGIBLE_REPLICA):
            _add_refusal_for_good(board, leader)
        _add_refusal(board, leader)
        _add_answer(board, leader)
        if board.slots.copy:
            _add_copy(board, leader)
            _add_handling_of_copy(board, leader)


def _ends_reassignments(board: Board) -> bool:
    return bool(board.parameters["reassignments"]) and not board.has_zookeeper


# ---- the leader shrinks


def _add_shrink(board: Board, leader: BrokerId) -> None:
    if board.budget("isr_shrinks") is None:
        return
    slots = board.slots
    others = [other for other in board.brokers if other != leader]
    subsets = [frozenset(some) for count in range(1, len(others) + 1) for some in combinations(others, count)]
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])

    def shrink(slow: frozenset[BrokerId]) -> Callable[[Log, Role, Memory, AlterPartitionExchange, Process], object]:
        def propose(log: Log, role: Role, memory: Memory, exchange: AlterPartitionExchange, process: Process) -> object:
            own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
            before = leading(log, role, memory, asking=is_asking(exchange, process))
            step = consider_shrinking(own, _in_time(before, slow), LATE)
            asked = exchange_after(board.rules[leader], exchange, step.state, step.effects)
            proposed = frozenset(member.broker for member in asked.request.isr)
            if step.state.isr == role.isr or role.isr.isr - proposed != slow:
                return REFUSED
            return role._replace(isr=step.state.isr), asked

        return propose

    for slow in subsets:
        board.model.action(
            "ProposeShrink",
            {"leader": leader, "slow": tuple(sorted(slow))},
            events=[Arrow(leader, CONTROLLER, "AlterPartition: a smaller ISR")],
            guards=[
                when(lambda role: role.leader == leader, slots.role[leader]),
                when(lambda process: process.up, slots.process[leader]),
                *board.not_writing(leader),
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


def _in_time(partition: Partition[ModelLog], slow: frozenset[BrokerId]) -> Partition[ModelLog]:
    """The partition where all followers except the slow ones have been caught up recently."""
    followers = tuple(
        follower if follower.broker in slow else follower._replace(state=follower.state._replace(caught_up_time=LATE))
        for follower in partition.followers
    )
    return partition._replace(followers=followers)


# ---- the controller decides


class ProposalOutcome(NamedTuple):
    """The controller's decision on a request, `None` if it refuses, and the answer."""

    decision: AnyDecision | None
    response: AlterPartitionResponse


Decides = Callable[[AnyCluster, AlterPartitionExchange], ProposalOutcome]
"""The decision of the controller on a request."""


def _decides(board: Board, first: BrokerId) -> Decides:
    """The controller's decision on a request, with `first` as the preferred replica."""

    def decide(cluster: AnyCluster, exchange: AlterPartitionExchange) -> ProposalOutcome:
        if isinstance(cluster, ZkCluster):
            outcome = outcome_of_proposal(board.zookeeper, cluster, exchange.request)
            return ProposalOutcome(decided_by(cluster, outcome.step) if outcome.written else None, outcome.response)
        control, state = board.kraft, controller_state(cluster, first)
        step = handle_alter_partition(control, state, exchange.request, NOW)
        response = answer_of(step)
        assert isinstance(response, AlterPartitionResponse)
        return ProposalOutcome(cluster_of(step.state) if appended(step) else None, response)

    return decide


def _answer(
    board: Board,
    leader: BrokerId,
    response: AlterPartitionResponse,
    exchange: AlterPartitionExchange,
    role: Role,
    process: Process,
) -> AlterPartitionExchange:
    answered = AlterPartitionExchange(RequestState.ANSWERED, exchange.request, response)
    told = not board.reduces(Reduction.IDLE_ANSWERS) or _is_told_something(board, leader, role, answered)
    return answered if process.up and told else NO_EXCHANGE


def _add_grant(board: Board, leader: BrokerId, successor: BrokerId) -> None:
    slots, decide = board.slots, _decides(board, successor)
    exchanged, ends_reassignments = slots.exchange[leader], _ends_reassignments(board)

    def grant(cluster: AnyCluster, exchange: AlterPartitionExchange) -> AnyDecision | None:
        if exchange.state != RequestState.SENT or cluster.topic == NO_TOPIC:
            return None
        granted, response = decide(cluster, exchange)
        if granted is None or _is_refused_for_good(board, response):
            return None
        # Otherwise at most one replica can succeed: the one that joins the ISR while the leader is in controlled shutdown.
        taken = not ends_reassignments or is_the_choice(cluster, cluster_after(granted), successor, leader)
        return granted if taken else None

    def answer(
        cluster: AnyCluster, exchange: AlterPartitionExchange, role: Role, process: Process
    ) -> AlterPartitionExchange:
        return _answer(board, leader, decide(cluster, exchange).response, exchange, role, process)

    args = {"leader": leader, "successor": successor} if ends_reassignments else {"leader": leader}
    asked = Arrow(leader, CONTROLLER, "AlterPartition")
    decision = board.decision(f"granted to {leader} succeeded by {successor}", grant, slots.cluster, exchanged)
    decided = board.decided(decision, writes=[exchanged])
    said = Local(lambda cluster, exchange: decide(cluster, exchange).response.error, (slots.cluster, exchanged))
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
    if not board.reduces(Reduction.LOST_ANSWERS) or not may_miss_answers(board.rules[leader].protocol):
        unanswered = board.decided(decision)
        board.model.action(
            "GrantIsrUnanswered",
            args,
            events=[asked, Note(CONTROLLER, "writes the ISR"), Arrow(CONTROLLER, leader, "(the answer is lost)")],
            guards=[unanswered.guard],
            effects=unanswered.effects,
            answer=said,
        )


def _is_refused_for_good(board: Board, response: AlterPartitionResponse) -> bool:
    return not board.has_zookeeper and board.kraft.protocol.ends_refused(response.error)


def _add_refusal_for_good(board: Board, leader: BrokerId) -> None:
    """The controller refuses, and writes that to the partition."""
    slots, decide = board.slots, _decides(board, leader)
    exchanged = slots.exchange[leader]

    def refuse(cluster: AnyCluster, exchange: AlterPartitionExchange) -> AnyDecision | None:
        if exchange.state != RequestState.SENT or cluster.topic == NO_TOPIC:
            return None
        refused, response = decide(cluster, exchange)
        return refused if _is_refused_for_good(board, response) else None

    def answer(
        cluster: AnyCluster, exchange: AlterPartitionExchange, role: Role, process: Process
    ) -> AlterPartitionExchange:
        return _answer(board, leader, decide(cluster, exchange).response, exchange, role, process)

    decided = board.decided(board.decision(f"refused to {leader}", refuse, slots.cluster, exchanged), writes=[exchanged])
    board.model.action(
        "RefuseIsrForGood",
        {"leader": leader},
        events=[Arrow(leader, CONTROLLER, "AlterPartition"), Note(CONTROLLER, "refuses, with a new partition epoch")],
        guards=[decided.guard],
        effects=[
            *decided.effects,
            then(exchanged, answer, slots.cluster, exchanged, slots.role[leader], slots.process[leader]),
        ],
        answer=Local(lambda cluster, exchange: decide(cluster, exchange).response.error, (slots.cluster, exchanged)),
    )


def _add_refusal(board: Board, leader: BrokerId) -> None:
    slots, decide = board.slots, _decides(board, leader)
    exchanged = slots.exchange[leader]

    def refuse(cluster: AnyCluster, exchange: AlterPartitionExchange, role: Role, process: Process) -> object:
        outcome = decide(cluster, exchange)
        if outcome.decision is not None:
            return REFUSED
        return _answer(board, leader, outcome.response, exchange, role, process)

    board.model.action(
        "RefuseIsr",
        {"leader": leader},
        events=[Arrow(leader, CONTROLLER, "AlterPartition"), Note(CONTROLLER, "refuses")],
        guards=[when(lambda exchange: exchange.state == RequestState.SENT, exchanged)],
        effects=[then(exchanged, refuse, slots.cluster, exchanged, slots.role[leader], slots.process[leader])],
        answer=Local(lambda cluster, exchange: decide(cluster, exchange).response.error, (slots.cluster, exchanged)),
    )


def _add_copy(board: Board, leader: BrokerId) -> None:
    """The connection of a request is lost; the request is sent again, and the first copy may still arrive."""
    exchange, copy = board.slots.exchange[leader], board.slots.copy[leader]

    def leave_behind(sent: AlterPartitionExchange, known: AlterPartitionExchange) -> object:
        return REFUSED if sent.state != RequestState.SENT or known != NO_EXCHANGE else sent

    board.model.action(
        "SendProposalAgain",
        {"leader": leader},
        events=[Arrow(leader, CONTROLLER, "AlterPartition, again on another connection")],
        guards=[],
        effects=[then(copy, leave_behind, exchange, copy), board.spend("late_proposals")],
    )


def _add_handling_of_copy(board: Board, leader: BrokerId) -> None:
    """A copy of a request leads to a decision, long after the request was answered; nobody hears the answer."""
    slots, copy = board.slots, board.slots.copy[leader]
    for successor in board.brokers if _ends_reassignments(board) else [leader]:
        decide = _decides(board, successor)

        def handle(
            cluster: AnyCluster, sent: AlterPartitionExchange, decide: Decides = decide, first: BrokerId = successor
        ) -> AnyDecision | None:
            nothing = cluster.topic == NO_TOPIC or sent == NO_EXCHANGE
            decision = None if nothing else decide(cluster, sent).decision
            if decision is None or not _ends_reassignments(board):
                return decision
            return decision if is_the_choice(cluster, cluster_after(decision), first, leader) else None

        name = f"late proposal of {leader} succeeded by {successor}"
        decided = board.decided(board.decision(name, handle, slots.cluster, copy), writes=[copy])
        board.model.action(
            "HandleLateProposal",
            {"leader": leader, "successor": successor} if _ends_reassignments(board) else {"leader": leader},
            events=[Arrow(leader, CONTROLLER, "AlterPartition, sent long ago"), Note(CONTROLLER, "decides")],
            guards=[decided.guard],
            effects=[*decided.effects, then(copy, lambda: NO_EXCHANGE)],
        )


def _is_told_something(board: Board, leader: BrokerId, role: Role, exchange: AlterPartitionExchange) -> bool:
    before = leading(LocalLog(empty_log(board.parameters)), role, Memory())
    own = broker(board.rules[leader], leader, STRANGER, NOBODY_KNOWN)
    step = handle_alter_partition_response(own, before, exchange.request, exchange.response, LATE)
    return awaits(before, exchange) and tells_something(role.isr, step.state.isr, step.effects)


# ---- the leader hears of it


def _add_answer(board: Board, leader: BrokerId) -> None:
    slots = board.slots
    party = (slots.log[leader], slots.role[leader], slots.memory[leader], slots.exchange[leader], slots.clients)

    def take(
        log: Log, role: Role, memory: Memory, exchange: AlterPartitionExchange, known: ClientKnowledge, process: Process
    ) -> object:
        own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
        before = leading(log, role, memory)
        step = handle_alter_partition_response(own, before, exchange.request, exchange.response, LATE)
        return led_after(board.rules[leader], leader, step, NO_EXCHANGE, known)

    board.model.action(
        "TakeIsrAnswer",
        {"leader": leader},
        events=[Arrow(CONTROLLER, leader, "the answer to AlterPartition")],
        guards=[when(lambda exchange: exchange.state == RequestState.ANSWERED, slots.exchange[leader])],
        effects=[then(party, take, *party, slots.process[leader])],
    )
