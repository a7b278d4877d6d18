"""Up to 2.6 a leader writes an ISR to ZooKeeper itself, if the partition's node still has the version that it knows.

It holds the partition's lock until ZooKeeper has answered, so the write and the answer are one step. A confirmation may be
lost with the connection to ZooKeeper. Then the leader, which still holds the lock, sends the write again when it is
connected. If that is refused, it checks whether the node holds its write. The controller may have written in between.
"""

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Effect, Local, Note, then, when
from kspec.model_check.models.kafka.board import NOBODY_KNOWN, Board
from kspec.model_check.models.kafka.party import Log, broker, leading
from kspec.model_check.models.kafka.replication import led_after
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_EXCHANGE,
    AlterPartitionExchange,
    ClientKnowledge,
    Memory,
    Process,
    RequestState,
    ZkCluster,
)
from kspec.model_check.models.kafka.zookeeper.state import node_of
from kspec.model_check.models.parts import LATE, PARTITION, Role
from kspec.spec.broker.leader.isr import handle_alter_partition_response
from kspec.spec.broker.partition import Partition
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.values import BrokerId, Error
from kspec.spec.zookeeper.broker import ZkReplica, outcome_of, write_of
from kspec.spec.zookeeper.node import ConditionalWrite, was_written, write_partition

NO_PARTITION = Partition(PARTITION, LocalLog(EMPTY_LOG))


def add_isr_writes(board: Board, leader: BrokerId) -> None:
    """Add the writes of one leader. The decision to write is part of handling a fetch, or of a shrink."""
    slots = board.slots
    reads = (slots.cluster, slots.exchange[leader])
    sent, written = _is(board, leader, RequestState.SENT), _is(board, leader, RequestState.WRITTEN)
    writes = then(slots.cluster, _node_written, *reads)
    asked = Arrow(leader, CONTROLLER, "setData: the ISR")
    board.model.action(
        "WriteIsr",
        {"leader": leader},
        events=[asked, Arrow(CONTROLLER, leader, "written, or the node is another")],
        guards=[sent],
        effects=[writes, _answered(board, leader)],
        answer=Local(_outcome, reads),
    )
    if not board.parameters["lost_confirmations"]:
        return
    board.model.action(
        "WriteIsrUnconfirmed",
        {"leader": leader},
        events=[asked, Arrow(CONTROLLER, leader, "(the confirmation is lost)")],
        guards=[sent, when(lambda process: process.up, slots.process[leader])],
        effects=[
            writes,
            then(slots.exchange[leader], _unconfirmed, *reads),
            board.spend("lost_confirmations"),
        ],
    )
    board.model.action(
        "WriteIsrAgain",
        {"leader": leader},
        events=[asked, Note(leader, "looks whether the node is what it has written")],
        guards=[written],
        effects=[_answered(board, leader)],
        answer=Local(_outcome, reads),
    )


def _is(board: Board, leader: BrokerId, state: RequestState) -> Local:
    return when(lambda exchange: exchange.state == state, board.slots.exchange[leader])


def _write(exchange: AlterPartitionExchange) -> ConditionalWrite:
    return write_of(ZkReplica(FIRST_CONTROLLER, NO_PARTITION), exchange.request)


def _outcome(cluster: ZkCluster, exchange: AlterPartitionExchange) -> Error:
    """Whether ZooKeeper has the ISR that is being written, after this attempt."""
    node, write = node_of(cluster.topic), _write(exchange)
    error = write_partition(node, cluster.controller_epoch, write).error
    return Error.NONE if error == Error.INVALID_UPDATE_VERSION and was_written(node, write) else error


def _node_written(cluster: ZkCluster, exchange: AlterPartitionExchange) -> ZkCluster:
    result = write_partition(node_of(cluster.topic), cluster.controller_epoch, _write(exchange))
    role, epoch = result.node.state, result.node.partition_epoch
    return cluster._replace(topic=cluster.topic._replace(isr=role.isr, partition_epoch=epoch))


def _unconfirmed(cluster: ZkCluster, exchange: AlterPartitionExchange) -> object:
    return exchange._replace(state=RequestState.WRITTEN) if _outcome(cluster, exchange) == Error.NONE else REFUSED


def _answered(board: Board, leader: BrokerId) -> Effect:
    """The effect of ZooKeeper's answer on the leader, if its process is still there."""
    slots = board.slots
    party = (slots.log[leader], slots.role[leader], slots.memory[leader], slots.exchange[leader], slots.clients)
    succeeds = board.model.view("write succeeds", _succeeds, slots.cluster, slots.exchange[leader], key=leader)

    def take(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: AlterPartitionExchange,
        known: ClientKnowledge,
        process: Process,
        succeeds: bool,
    ) -> object:
        if not process.up:
            return log, role, memory, NO_EXCHANGE, known
        own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
        response = outcome_of(exchange.request, _write(exchange), succeeds)
        step = handle_alter_partition_response(own, leading(log, role, memory), exchange.request, response, LATE)
        return led_after(board.rules[leader], leader, step, NO_EXCHANGE, known)

    return then(party, take, *party, slots.process[leader], succeeds)


def _succeeds(cluster: ZkCluster, exchange: AlterPartitionExchange) -> bool:
    return exchange != NO_EXCHANGE and _outcome(cluster, exchange) == Error.NONE
