"""Promises of the model `kafka` for runs (of the model) without end, if nothing that heals is put off for ever.

Disturbances are not fair: they need not happen, and their budgets end them. What heals is fair, each action to each party
that waits for it, because Kafka tries again or has a timeout: see docs/kafka-model.md for the reason of each.
"""

from functools import partial

from kspec.model_check.core.model import LivenessProperty, Local, PropertyCase, when
from kspec.model_check.core.temporal import weak
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.cluster import is_current_epoch, registered
from kspec.model_check.models.kafka.party import Log
from kspec.model_check.models.kafka.values import NO_TOPIC, AnyCluster, ClientKnowledge, Memory, Process
from kspec.model_check.models.parts import Role
from kspec.spec.broker.rules.isr.proposal import nothing_pending
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.claims import claim
from kspec.spec.values import BrokerId

HEALING = (
    weak("ReplayMetadata", of=("broker",)),
    weak("Fetch", of=("follower", "leader")),
    weak("AskLeader", of=("follower", "leader")),
    weak("TruncateWithoutAsking", of=("follower",)),
    weak("HandleLateFetch", of=("follower", "leader")),
    weak("TakeLateAnswer", of=("follower", "leader")),
    weak("GrantIsr", of=("leader",)),
    weak("RefuseIsr", of=("leader",)),
    weak("RefuseIsrForGood", of=("leader",)),
    weak("TakeIsrAnswer", of=("leader",)),
    weak("WriteIsr", of=("leader",)),
    weak("WriteIsrAgain", of=("leader",)),
    weak("HandleRequest", of=("broker",)),
    weak("NoticeBrokers"),
    weak("ReassignmentOver"),
    weak("ExpireDown", of=("broker",)),
    weak("RenewSession", of=("broker",)),
    weak("ElectUncleanly"),
    weak("FenceDown", of=("broker",)),
    weak("AskToStop", of=("broker",)),
    weak("StopCleanly", of=("broker",)),
    weak("StopWithoutLeave", of=("broker",)),
    weak("Register", of=("broker",)),
    weak("RegisterStarted", of=("broker",)),
    weak("TakeFirstImage", of=("broker",)),
    weak("Unfence", of=("broker",)),
)
"""The healing actions, which are fair. The bounds of a model say which of them it has."""


def add_liveness(board: Board) -> None:
    """Add fairness and promises. All actions must have been added before."""
    names = set(board.model.action_names)
    board.model.fairness += [fairness for fairness in HEALING if fairness.action in names]
    values = range(1, board.parameters["values"] + 1)
    board.model.liveness += [
        LivenessProperty(
            "BrokerComesBack",
            "leads-to",
            tuple(_comes_back(board, broker) for broker in board.brokers),
            claim("BrokerComesBack", "kafka"),
        ),
        LivenessProperty(
            "LeaderTakesOffice",
            "leads-to",
            (_takes_office(board),),
            claim("LeaderTakesOffice", "kafka"),
        ),
        LivenessProperty(
            "IsrChangeCompletes",
            "leads-to",
            tuple(_completes(board, broker) for broker in board.brokers),
            claim("IsrChangeCompletes", "kafka"),
        ),
        LivenessProperty(
            "WriteIsAnswered",
            "leads-to",
            tuple(_is_answered(board, broker, value) for value in values for broker in board.brokers),
            claim("WriteIsAnswered", "kafka"),
        ),
        LivenessProperty(
            "AcknowledgedIsReplicated",
            "leads-to",
            tuple(_is_replicated(board, value) for value in values),
            claim("AcknowledgedIsReplicated", "kafka"),
        ),
        LivenessProperty(
            "ActiveReplicaJoinsIsr",
            "leads-to",
            tuple(_joins(board, broker) for broker in board.brokers),
            claim("ActiveReplicaJoinsIsr", "kafka"),
        ),
        LivenessProperty(
            "IsrIsWholeAgain",
            "leads-to",
            (_is_whole(board),),
            claim("IsrIsWholeAgain", "kafka"),
        ),
    ]
    if board.parameters["reassignments"]:
        ends = (_ends(board),)
        board.model.liveness.append(
            LivenessProperty("ReassignmentEnds", "leads-to", ends, claim("ReassignmentEnds", "kafka"))
        )


def _unless(premise: Local, label: str) -> PropertyCase:
    """A case: the goal is that a condition no longer holds."""
    function = premise.function
    return PropertyCase(label, ((premise,),), ((when(lambda *values: not function(*values), *premise.reads),),))


def takes_part(broker: BrokerId, cluster: AnyCluster, process: Process) -> bool:
    """Whether a broker is up, and neither fenced nor in controlled shutdown."""
    entry = registered(cluster, broker)
    is_up = process.up and process.published and is_current_epoch(cluster, broker, process.life.broker_epoch)
    wanted = not entry.fenced and not entry.in_controlled_shutdown and broker not in cluster.leaving
    return is_up and wanted and process.life.state == BrokerState.RUNNING


def _comes_back(board: Board, broker: BrokerId) -> PropertyCase:
    slots = board.slots
    is_away = when(lambda *values: not takes_part(broker, *values), slots.cluster, slots.process[broker])
    return _unless(is_away, f"broker {broker}")


def _leads(cluster: AnyCluster, *others: Role | Process) -> bool:
    """Whether the controller's leader is up, and knows that it leads in this epoch. `others`: all roles, all processes."""
    topic, half = cluster.topic, len(others) // 2
    roles, processes = others[:half], others[half:]
    return any(
        isinstance(role, Role)
        and isinstance(process, Process)
        and process.up
        and (role.leader, role.leader_epoch) == (topic.leader, topic.leader_epoch)
        and process.life.broker == topic.leader
        for role, process in zip(roles, processes, strict=True)
    )


def _takes_office(board: Board) -> PropertyCase:
    slots = board.slots
    everybody = (*slots.role.values(), *slots.process.values())
    exists = when(lambda cluster: cluster.topic != NO_TOPIC, slots.cluster)
    in_office = when(_leads, slots.cluster, *everybody)
    nobody_up = when(lambda *processes: not any(process.up for process in processes), *slots.process.values())
    return PropertyCase("the partition", ((exists,),), ((in_office,), (nobody_up,)))


def _completes(board: Board, leader: BrokerId) -> PropertyCase:
    pending = when(lambda role: role.leader == leader and not nothing_pending(role.isr), board.slots.role[leader])
    return _unless(pending, f"leader {leader}")


def _waits(value: int, memory: Memory) -> bool:
    return any(waiting.request == value for waiting in memory.waiting)


def _is_answered(board: Board, leader: BrokerId, value: int) -> PropertyCase:
    return _unless(when(partial(_waits, value), board.slots.memory[leader]), f"record {value} at broker {leader}")


def _holds(broker: BrokerId, value: int, cluster: AnyCluster, log: Log) -> bool:
    assigned = broker in cluster.topic.replicas
    return not assigned or any(record.value == value for record in log.log.records)


def _is_replicated(board: Board, value: int) -> PropertyCase:
    slots = board.slots
    told = when(lambda clients: _is_told(value, clients), slots.clients)
    everywhere = tuple(when(partial(_holds, broker, value), slots.cluster, slots.log[broker]) for broker in board.brokers)
    return PropertyCase(f"record {value}", ((told,),), (everywhere,))


def _is_told(value: int, clients: ClientKnowledge) -> bool:
    return any(placed.record.value == value for placed in clients.told)


def _joins(board: Board, broker: BrokerId) -> PropertyCase:
    def is_kept_out(cluster: AnyCluster, process: Process) -> bool:
        is_candidate = broker in cluster.topic.replicas - cluster.topic.removing
        return is_candidate and broker not in cluster.topic.isr and takes_part(broker, cluster, process)

    return _unless(when(is_kept_out, board.slots.cluster, board.slots.process[broker]), f"broker {broker}")


def _ends(board: Board) -> PropertyCase:
    under_way = when(lambda cluster: bool(cluster.topic.adding or cluster.topic.removing), board.slots.cluster)
    return _unless(under_way, "the partition")


def _is_whole(board: Board) -> PropertyCase:
    lacks = when(lambda cluster: cluster.topic.isr != cluster.topic.replicas, board.slots.cluster)
    return _unless(lacks, "the partition")
