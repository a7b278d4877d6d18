"""What the controller decides by itself or is told by brokers: creation, elections, fencing, registration, unfencing."""

from collections.abc import Callable

from model_check.model import CONTROLLER, REFUSED, Message, Note, then, when
from model_check.models.kafka.board import Board
from model_check.models.kafka.cluster import (
    NOW,
    appended,
    cluster_of,
    controller_state,
    is_the_choice,
    registered,
    registration,
)
from model_check.models.kafka.values import NO_TOPIC, PARTITION, Cluster, Process, Topic
from spec.broker_lifecycle import BrokerState
from spec.controller import (
    ControllerState,
    ControllerStep,
    handle_create_partition,
    handle_elect_leaders,
    handle_heartbeat,
    handle_session_timeout,
    is_alive,
)
from spec.controller_messages import BrokerHeartbeatRequest, CreatePartitionRequest, ElectLeadersRequest
from spec.metadata import has_leader
from spec.values import NO_LEADER, BrokerId, Offset


def add_control(board: Board) -> None:
    """Add creation, elections and fencing."""
    for replica in board.brokers:
        _add_creation(board, replica)
        _add_election(board, replica)
        for successor in board.brokers:
            _add_fencing(board, replica, successor)


def _add_creation(board: Board, leader: BrokerId) -> None:
    slots = board.slots
    replicas = (leader, *(other for other in board.brokers if other != leader))

    def create(cluster: Cluster) -> object:
        return cluster_of(
            handle_create_partition(controller_state(cluster), CreatePartitionRequest(PARTITION, replicas)).state
        )

    board.model.action(
        "CreatePartition",
        {"leader": leader},
        events=[Note(CONTROLLER, "creates the partition")],
        guards=[when(lambda topic: topic == NO_TOPIC, board.views.current)],
        effects=[then(slots.cluster, create, slots.cluster), *board.published()],
    )


def _add_election(board: Board, leader: BrokerId) -> None:
    if board.budget("elections") is None:
        return
    slots, control = board.slots, board.control

    def elect(cluster: Cluster) -> object:
        step = handle_elect_leaders(
            control.protocol,
            control.settings,
            controller_state(cluster, first=leader),
            ElectLeadersRequest(PARTITION),
        )
        after = cluster_of(step.state)
        return after if appended(step) and after.topic.leader == leader else REFUSED

    board.model.action(
        "ElectPreferred",
        {"leader": leader},
        events=[Note(CONTROLLER, "elects the preferred leader")],
        guards=[when(lambda topic: topic != NO_TOPIC and topic.leader != leader, board.views.current)],
        effects=[then(slots.cluster, elect, slots.cluster), *board.published(), board.spend("elections")],
    )


# ---- fencing


def _runs(cluster: Cluster, replica: BrokerId, process: Process) -> bool:
    """Whether the registered run of a broker is up, so that only a lost session can fence it."""
    return process.up and process.life.broker_epoch == registered(cluster, replica).broker_epoch


def _add_fencing(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots, control = board.slots, board.control

    def fence(cluster: Cluster) -> object:
        state = controller_state(cluster, first=successor, silent=replica)
        step = handle_session_timeout(control.protocol, control.settings, state, NOW)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else REFUSED

    effects = [then(slots.cluster, fence, slots.cluster), *board.published()]
    exists = when(lambda topic: topic != NO_TOPIC, board.views.current)
    if board.parameters["fencings"]:
        board.model.action(
            "Fence",
            {"broker": replica, "successor": successor},
            events=[Note(CONTROLLER, "fences a broker that it has not heard of for too long")],
            guards=[
                exists,
                when(lambda cluster, process: _runs(cluster, replica, process), slots.cluster, slots.process[replica]),
            ],
            effects=[*effects, board.spend("fencings")],
        )
    if board.parameters["unclean_shutdowns"] or board.parameters["clean_shutdowns"]:
        board.model.action(
            "FenceDown",
            {"broker": replica, "successor": successor},
            events=[Note(CONTROLLER, "fences a broker that is down")],
            guards=[
                exists,
                when(lambda cluster, process: not _runs(cluster, replica, process), slots.cluster, slots.process[replica]),
            ],
            effects=effects,
        )


# ---- heartbeats


def heartbeat(
    board: Board, cluster: Cluster, replica: BrokerId, process: Process, lag: int, successor: BrokerId, shutdown: bool
) -> ControllerStep:
    """What the controller makes of a broker's heartbeat."""
    state: ControllerState = controller_state(cluster, first=successor)
    request = BrokerHeartbeatRequest(
        replica,
        process.life.broker_epoch,
        Offset(state.image.end_offset - 1 - lag),
        want_fence=not process.life.ready_to_unfence,
        want_shutdown=shutdown,
    )
    return handle_heartbeat(board.control.protocol, board.control.settings, state, request, NOW)


__all__ = [
    "BrokerState",
    "Callable",
    "Message",
    "NO_LEADER",
    "Topic",
    "add_control",
    "has_leader",
    "heartbeat",
    "is_alive",
    "registration",
]
