"""The controller's own decisions: creation, elections, reassignments, fencing; and its handling of heartbeats."""

from itertools import combinations

from kspec.model_check.core.model import CONTROLLER, Note, when
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.cluster import NOW, is_the_choice, registered
from kspec.model_check.models.kafka.kraft.state import END, appended, cluster_of, controller_state
from kspec.model_check.models.kafka.values import NO_TOPIC, ModelController, Process
from kspec.model_check.models.parts import PARTITION, creation_of
from kspec.spec.controller.brokers import handle_broker_heartbeat, on_session_check
from kspec.spec.controller.partitions import (
    handle_alter_partition_reassignments,
    handle_elect_leaders,
    on_unclean_election_check,
)
from kspec.spec.controller.state import ControllerStep
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.values import NO_LEADER, BrokerId, Offset


def add_control(board: Board) -> None:
    """Add creation, elections, reassignments and fencing."""
    for replica in board.brokers:
        if board.may_lead_first(replica):
            _add_creation(board, replica)
        if board.parameters["elections"]:
            _add_election(board, replica)
        if board.parameters["unclean"]:
            _add_unclean_election(board, replica)
    if board.parameters["reassignments"]:
        _add_reassignments(board)
    for replica in board.brokers:
        for successor in board.brokers:
            _add_fencing(board, replica, successor)


def _add_creation(board: Board, leader: BrokerId) -> None:
    replicas = (leader, *(other for other in board.brokers if other != leader))
    request = creation_of(replicas)

    def create(cluster: ModelController) -> ModelController | None:
        if cluster.topic != NO_TOPIC:
            return None
        return cluster_of(handle_create_topics(board.kraft, controller_state(cluster), request, NOW).state)

    decided = board.decided(board.decision(f"created with leader {leader}", create, board.slots.cluster))
    board.model.action(
        "CreatePartition",
        {"leader": leader},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[decided.guard],
        effects=decided.effects,
    )


def _add_election(board: Board, leader: BrokerId) -> None:
    control = board.kraft

    def elect(cluster: ModelController) -> ModelController | None:
        if cluster.topic == NO_TOPIC:
            return None
        state = controller_state(cluster, first=leader)
        step = handle_elect_leaders(control, state, ElectLeadersRequest(PARTITION), NOW)
        after = cluster_of(step.state)
        return after if appended(step) and after.topic.leader == leader else None

    decided = board.decided(board.decision(f"elected {leader}", elect, board.slots.cluster))
    board.model.action(
        "ElectPreferred",
        {"leader": leader},
        events=[Note(CONTROLLER, "elects the preferred leader")],
        guards=[decided.guard],
        effects=[*decided.effects, board.spend("elections")],
    )


def _add_unclean_election(board: Board, leader: BrokerId) -> None:
    """Kafka looks for partitions without a leader every five minutes, so this needs no occasion and has no bound."""
    control = board.kraft

    def elect(cluster: ModelController) -> ModelController | None:
        if cluster.topic == NO_TOPIC or cluster.topic.leader != NO_LEADER:
            return None
        state = controller_state(cluster, first=leader)
        step = on_unclean_election_check(control, state, NOW)
        after = cluster_of(step.state)
        return after if appended(step) and after.topic.leader == leader else None

    decided = board.decided(board.decision(f"elected {leader} uncleanly", elect, board.slots.cluster))
    board.model.action(
        "ElectUncleanly",
        {"leader": leader},
        events=[Note(CONTROLLER, "elects whoever is there")],
        guards=[decided.guard],
        effects=decided.effects,
    )


# ---- reassignments


def _add_reassignments(board: Board) -> None:
    targets = [frozenset(some) for count in range(2, len(board.brokers) + 1) for some in combinations(board.brokers, count)]
    for leader in board.brokers:
        for target in targets:
            _add_reassignment(board, leader, target)
        _add_reassignment(board, leader, None)


def _add_reassignment(board: Board, leader: BrokerId, target: frozenset[BrokerId] | None) -> None:
    """Begin or (no `target`) cancel a reassignment, with `leader` as the preferred replica."""
    control = board.kraft

    def reassign(cluster: ModelController) -> ModelController | None:
        topic = cluster.topic
        # A target that the partition already has is no step. It would change the order of preference alone, which is not
        # kept here; and whether that changes depends on the brokers' ids, so they would not be interchangeable.
        if topic == NO_TOPIC or target == topic.replicas - topic.removing or (target is not None and leader not in target):
            return None
        replicas = None if target is None else (leader, *sorted(target - {leader}))
        state = controller_state(cluster, first=leader)
        request = AlterPartitionReassignmentsRequest(PARTITION, replicas)
        step = handle_alter_partition_reassignments(control, state, request, NOW)
        after = cluster_of(step.state)
        stands_for_any = min(topic.replicas if target is None else target)
        return after if appended(step) and is_the_choice(cluster, after, leader, stands_for_any) else None

    name = "CancelReassignment" if target is None else "Reassign"
    goal = () if target is None else tuple(sorted(target))
    view = board.decision(f"{name} {goal} {leader}", reassign, board.slots.cluster)
    decided = board.decided(view)
    board.model.action(
        name,
        {"successor": leader} if target is None else {"replicas": goal, "successor": leader},
        events=[Note(CONTROLLER, "cancels the reassignment" if target is None else "begins a reassignment")],
        guards=[decided.guard],
        effects=[*decided.effects, board.spend("reassignments")],
    )


# ---- fencing


def is_up_as_registered(cluster: ModelController, replica: BrokerId, process: Process) -> bool:
    """Whether a broker is up in the broker epoch with which it is registered: only a lost session can fence it."""
    return process.up and process.life.broker_epoch == registered(cluster, replica).broker_epoch


def _add_fencing(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots, control = board.slots, board.kraft
    stops = board.stops_uncleanly or board.parameters["clean_shutdowns"]
    if not stops and not board.parameters["fencings"]:
        return

    def fence(cluster: ModelController) -> ModelController | None:
        if cluster.topic == NO_TOPIC or registered(cluster, replica).fenced:
            return None
        state = controller_state(cluster, first=successor, silent=replica)
        step = on_session_check(control, state, NOW)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    decided = board.decided(board.decision(f"fenced {replica} succeeded by {successor}", fence, slots.cluster))
    reads = (slots.cluster, slots.process[replica])
    if board.parameters["fencings"]:
        board.model.action(
            "Fence",
            {"broker": replica, "successor": successor},
            events=[Note(CONTROLLER, "fences a broker that it has not heard of for too long")],
            guards=[decided.guard, when(lambda cluster, process: is_up_as_registered(cluster, replica, process), *reads)],
            effects=[*decided.effects, board.spend("fencings")],
        )
    if stops:
        board.model.action(
            "FenceDown",
            {"broker": replica, "successor": successor},
            events=[Note(CONTROLLER, "fences a broker that is down")],
            guards=[
                decided.guard,
                when(lambda cluster, process: not is_up_as_registered(cluster, replica, process), *reads),
            ],
            effects=decided.effects,
        )


# ---- heartbeats


def heartbeat(
    board: Board, cluster: ModelController, process: Process, unread: int, first: BrokerId, shutdown: bool
) -> ControllerStep:
    """The controller's handling of a broker's heartbeat."""
    request = BrokerHeartbeatRequest(
        process.life.broker,
        process.life.broker_epoch,
        Offset(END - 1 - unread),
        want_fence=not process.life.ready_to_unfence,
        want_shutdown=shutdown,
    )
    state = controller_state(cluster, first=first)
    return handle_broker_heartbeat(board.kraft, state, request, NOW)
