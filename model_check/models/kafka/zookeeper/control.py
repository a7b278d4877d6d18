"""The decisions of the ZooKeeper controller: creation, elections, reassignments, changes of live brokers; and its failover.

Each event is one decision, with all its writes and requests. If a leader writes before the first of these, the controller
reads the node again, and the outcome is that of the leader's write before the event. A leader that was announced by one of
them and writes before the next is not seen: its write is refused.
"""

from collections.abc import Callable
from itertools import combinations

from kspec.model_check.core.model import CONTROLLER, Argument, Note
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.cluster import NOW
from kspec.model_check.models.kafka.values import NO_TOPIC, ZkCluster
from kspec.model_check.models.kafka.zookeeper.state import ZkDecision, decided_by, live_now, partitions_of, zk_state
from kspec.model_check.models.parts import PARTITION
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.metadata import NOBODY
from kspec.spec.values import BrokerId, next_epoch
from kspec.spec.zookeeper.controller import (
    handle_elect_leaders,
    on_broker_change,
    on_failover,
    on_new_partition,
    on_reassignment,
    on_reassignment_progress,
)

Decides = Callable[[ZkCluster], ZkDecision | None]
"""The controller's decision, from ZooKeeper and its own memory; `None` if there is none."""


def add_zookeeper_control(board: Board) -> None:
    """Add the controller's own decisions."""
    for leader in board.brokers:
        if board.may_lead_first(leader):
            _add(board, "CreatePartition", {"leader": leader}, "creates the partition", _creates(board, leader))
        if board.parameters["elections"]:
            election = _elects(board, leader)
            _add(board, "ElectPreferred", {"leader": leader}, "elects the preferred leader", election, spends="elections")
        if _brokers_come_and_go(board):
            _add(board, "NoticeBrokers", {"successor": leader}, "looks which brokers there are", _notices(board, leader))
        if board.parameters["failovers"]:
            replaced = _fails_over(board, leader)
            what = "is replaced, and the next one reads ZooKeeper"
            _add(board, "FailOver", {"successor": leader}, what, replaced, spends="failovers")
        if board.parameters["reassignments"]:
            _add_reassignments(board, leader)


def _brokers_come_and_go(board: Board) -> bool:
    return board.stops_uncleanly or any(board.parameters[kind] for kind in ("fencings", "clean_shutdowns"))


def once(board: Board, chosen: BrokerId, outcome: Callable[[BrokerId], ZkDecision | None]) -> ZkDecision | None:
    """The outcome with `chosen` as the preferred replica, unless an earlier choice has the same outcome."""
    decision = outcome(chosen)
    return None if decision in [outcome(broker) for broker in board.brokers if broker < chosen] else decision


def _add(board: Board, name: str, args: dict[str, Argument], note: str, decides: Decides, spends: str | None = None) -> None:
    decided = board.decided(board.decision(f"{name} {args}", decides, board.slots.cluster))
    board.model.action(
        name,
        args,
        events=[Note(CONTROLLER, note)],
        guards=[decided.guard],
        effects=[*decided.effects, *([board.spend(spends)] if spends else [])],
    )


def _creates(board: Board, leader: BrokerId) -> Decides:
    replicas = (leader, *(other for other in board.brokers if other != leader))

    def create(cluster: ZkCluster) -> ZkDecision | None:
        if cluster.topic != NO_TOPIC:
            return None
        made = decided_by(cluster, on_new_partition(board.zookeeper, zk_state(cluster), PARTITION, replicas))
        return made if made.after.topic.leader == leader else None

    return create


def _elects(board: Board, leader: BrokerId) -> Decides:
    def elect(cluster: ZkCluster) -> ZkDecision | None:
        if cluster.topic == NO_TOPIC:
            return None
        made = decided_by(
            cluster,
            handle_elect_leaders(board.zookeeper, zk_state(cluster, first=leader), ElectLeadersRequest(PARTITION), NOW),
        )
        return made if made.after != cluster and made.after.topic.leader == leader else None

    return elect


def _notices(board: Board, successor: BrokerId) -> Decides:
    control = board.zookeeper

    def notice(cluster: ZkCluster) -> ZkDecision | None:
        now = live_now(control.protocol, cluster.brokers)
        if now == cluster.live:
            return None

        def outcome(first: BrokerId) -> ZkDecision:
            state = zk_state(cluster, first)
            return decided_by(cluster, on_broker_change(control, state, tuple(sorted(now))))

        return once(board, successor, outcome)

    return notice


def _fails_over(board: Board, successor: BrokerId) -> Decides:
    """A new controller knows only the content of ZooKeeper. The old one makes no more decisions."""
    control = board.zookeeper

    def fail_over(cluster: ZkCluster) -> ZkDecision | None:
        if cluster.topic == NO_TOPIC:
            return None
        now = live_now(control.protocol, cluster.brokers)
        epoch = next_epoch(cluster.controller_epoch)

        def outcome(first: BrokerId) -> ZkDecision:
            partitions = partitions_of(cluster.topic, first)
            step = on_failover(control, epoch, tuple(sorted(now)), partitions)
            return decided_by(cluster._replace(live=now, leaving=NOBODY), step)._replace(replaced=True)

        return once(board, successor, outcome)

    return fail_over


# ---- reassignments


def _add_reassignments(board: Board, leader: BrokerId) -> None:
    """Begin a reassignment, or go on with it; `leader` is the preferred replica."""
    for count in range(2, len(board.brokers) + 1):
        for some in combinations(board.brokers, count):
            if leader in some:
                args: dict[str, Argument] = {"replicas": some, "successor": leader}
                begins = _reassigns(board, leader, frozenset(some))
                _add(board, "Reassign", args, "begins a reassignment", begins, spends="reassignments")
    _add(board, "ReassignmentOver", {"successor": leader}, "ends the reassignment", _ends_reassignment(board, leader))


def _reassigns(board: Board, leader: BrokerId, target: frozenset[BrokerId]) -> Decides:
    control = board.zookeeper

    def reassign(cluster: ZkCluster) -> ZkDecision | None:
        topic = cluster.topic
        if topic == NO_TOPIC or topic.adding or topic.removing or target == topic.replicas:
            return None

        def outcome(first: BrokerId) -> ZkDecision | None:
            if first not in target:
                return None
            replicas = (first, *sorted(target - {first}))
            state = zk_state(cluster, first)
            step = on_reassignment(control, state, PARTITION, replicas)
            return decided_by(cluster, step)

        return once(board, leader, outcome)

    return reassign


def _ends_reassignment(board: Board, leader: BrokerId) -> Decides:
    control = board.zookeeper

    def end(cluster: ZkCluster) -> ZkDecision | None:
        topic = cluster.topic
        if topic == NO_TOPIC or not (topic.adding or topic.removing):
            return None

        def outcome(first: BrokerId) -> ZkDecision | None:
            state = zk_state(cluster, first)
            made = decided_by(cluster, on_reassignment_progress(control, state, PARTITION))
            return None if made.after == cluster else made

        return once(board, leader, outcome)

    return end
