"""A broker handles the controller's requests, one after the other; and its sessions with ZooKeeper end and begin again.

The controller sends a broker one request at a time, and sends it again over a new connection until it is answered, also to a
later incarnation of the broker. What waits is lost when the controller closes the connection: when it notices that the
broker is gone, or when it is replaced.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Effect, Event, Note, then, when
from kspec.model_check.models.kafka.board import NOBODY_KNOWN, Board
from kspec.model_check.models.kafka.cluster import NOW, registered
from kspec.model_check.models.kafka.late import gone_with
from kspec.model_check.models.kafka.party import PartyState, broker, partition_of
from kspec.model_check.models.kafka.replication import held_after
from kspec.model_check.models.kafka.stopping import add_unclean_stops, down_after_clean_stop, without_memory
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_EXCHANGE,
    NO_TOPIC,
    Inbox,
    Order,
    Process,
    RequestKind,
    ZkCluster,
)
from kspec.model_check.models.kafka.zookeeper.control import once
from kspec.model_check.models.kafka.zookeeper.state import (
    ZkDecision,
    decided_by,
    leader_and_isr,
    stop_replica,
    zk_answer_of,
    zk_state,
)
from kspec.model_check.models.parts import LATE
from kspec.spec.broker.lifecycle import begin_controlled_shutdown, start_again
from kspec.spec.broker.recovery import after_clean_stop, recover
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.zookeeper_era.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.step import Reply, Step
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error
from kspec.spec.zookeeper.broker import ZkReplica, handle_leader_and_isr, handle_stop_replica
from kspec.spec.zookeeper.controller import handle_controlled_shutdown
from kspec.spec.zookeeper.protocol import LiveBroker


def add_zookeeper_brokers(board: Board) -> None:
    """Add the handling of requests, and the expired sessions and shutdowns that the budgets allow."""
    unclean, clean = board.stops_uncleanly, board.parameters["clean_shutdowns"]
    for replica in board.brokers:
        _add_handling(board, replica, answered=True)
        if unclean or clean:
            _add_handling(board, replica, answered=False)
        if board.parameters["failovers"]:
            _add_stray(board, replica)
        if board.parameters["fencings"]:
            _add_expiry(board, replica)
        if unclean and board.may_stop(replica):
            add_unclean_stops(board, replica, _stops_hearing(board, replica))
            _add_expiry_when_down(board, replica)
        if clean and board.may_stop(replica):
            _add_clean_stop(board, replica)
        if (unclean or clean) and board.may_stop(replica):
            _add_start(board, replica)


# ---- requests


class BrokerAfterRequest(NamedTuple):
    """A broker that has handled a request: the controller epoch that it knows, its process, and what it holds."""

    controller_epoch: Epoch
    process: Process
    held: PartyState


def handled(
    board: Board, replica: BrokerId, order: Order, known_controller: Epoch, process: Process, held: PartyState
) -> BrokerAfterRequest:
    """A broker's state after it has handled a request."""
    rules = board.rules[replica]
    own = broker(rules, replica, process, NOBODY_KNOWN)._replace(shutting_down=False)
    before = ZkReplica(known_controller, partition_of(held))
    if order.told == RequestKind.LEAD_OR_FOLLOW:
        step = handle_leader_and_isr(own, before, leader_and_isr(order), LATE)
    else:
        step = handle_stop_replica(own, before, stop_replica(order), LATE)
    after, answer = step.state, step.effects[-1]
    assert isinstance(answer, Reply)
    effects = tuple(effect for effect in step.effects if not isinstance(effect, Reply))
    process = process._replace(published=process.published or answer.message == ErrorResponse(Error.NONE))
    return BrokerAfterRequest(after.controller_epoch, process, held_after(rules, own, Step(after.partition, effects), held))


def _add_handling(board: Board, replica: BrokerId, *, answered: bool) -> None:
    def head(inbox: Inbox) -> Order | None:
        return inbox.orders[0] if inbox.orders else None

    def done(inbox: Inbox) -> Inbox:
        return inbox._replace(orders=inbox.orders[1:])

    if answered:
        asked: list[Event] = [Arrow(CONTROLLER, replica, "a request"), Arrow(replica, CONTROLLER, "the answer")]
        _add_order(board, "HandleRequest", replica, asked, head, done)
    else:
        asked = [Arrow(CONTROLLER, replica, "a request"), Arrow(replica, CONTROLLER, "(the answer is lost)")]
        _add_order(board, "HandleRequestUnanswered", replica, asked, head, None)


def _add_stray(board: Board, replica: BrokerId) -> None:
    def stray(inbox: Inbox) -> Order | None:
        return inbox.stray[0] if inbox.stray else None

    asked: list[Event] = [Arrow(CONTROLLER, replica, "a request of a controller that has been replaced")]
    _add_order(board, "HandleStrayRequest", replica, asked, stray, lambda inbox: inbox._replace(stray=()))


def _add_order(
    board: Board,
    name: str,
    replica: BrokerId,
    events: list[Event],
    choose: Callable[[Inbox], Order | None],
    done: Callable[[Inbox], Inbox] | None,
) -> None:
    """Handle one of the requests. If it stays in the inbox (`done` is `None`) it must have changed something."""
    slots = board.slots
    inbox = slots.inbox[replica]
    party = (slots.heard[replica], slots.process[replica], *board.held(replica))
    order = board.model.view(f"order of {name}", choose, inbox, key=replica)

    def handle(order: Order | None, known_controller: Epoch, process: Process, *before: Any) -> object:
        if order is None:
            return REFUSED
        held = PartyState(*before)
        obeyed = handled(board, replica, order, known_controller, process, held)
        if done is None and obeyed == BrokerAfterRequest(known_controller, process, held):
            return REFUSED
        return obeyed.controller_epoch, obeyed.process, *obeyed.held

    board.model.action(
        name,
        {"broker": replica},
        events=events,
        guards=[
            when(lambda order: order is not None, order),
            when(lambda process: process.up, slots.process[replica]),
            *board.not_writing(replica),
        ],
        effects=[
            then(party, handle, order, *party),
            *([] if done is None else [then(inbox, done, inbox)]),
        ],
    )


# ---- sessions


def with_registration(cluster: ZkCluster, registration: BrokerRegistration) -> ZkCluster:
    """ZooKeeper with another session of a broker, or another state of it."""
    others = frozenset(entry for entry in cluster.brokers if entry.broker != registration.broker)
    return cluster._replace(brokers=others | {registration})


def _has_session(replica: BrokerId, cluster: ZkCluster) -> bool:
    return not registered(cluster, replica).fenced


def _ended(replica: BrokerId, cluster: ZkCluster) -> ZkCluster:
    return with_registration(cluster, registered(cluster, replica)._replace(fenced=True))


def _begun(replica: BrokerId, cluster: ZkCluster, process: Process) -> ZkCluster:
    return with_registration(cluster, _new_session(registered(cluster, replica), process))


def _new_session(entry: BrokerRegistration, process: Process) -> BrokerRegistration:
    epoch = BrokerEpoch(entry.broker_epoch + 1)
    return entry._replace(broker_epoch=epoch, incarnation=process.life.incarnation, fenced=False)


def _add_expiry(board: Board, replica: BrokerId) -> None:
    """The session of a running broker ends, and it begins another one."""
    cluster, process = board.slots.cluster, board.slots.process[replica]
    board.model.action(
        "ExpireSession",
        {"broker": replica},
        events=[Note(CONTROLLER, f"ZooKeeper has not heard of broker {replica} for too long")],
        guards=[
            when(lambda cluster: _has_session(replica, cluster), cluster),
            when(lambda process: process.up, process),
        ],
        effects=[then(cluster, lambda cluster: _ended(replica, cluster), cluster), board.spend("fencings")],
    )

    def renewed(cluster: ZkCluster, process: Process) -> Process:
        epoch = _new_session(registered(cluster, replica), process).broker_epoch
        return process._replace(life=process.life._replace(broker_epoch=epoch))

    board.model.action(
        "RenewSession",
        {"broker": replica},
        events=[Arrow(replica, CONTROLLER, "registers again in ZooKeeper")],
        guards=[
            when(lambda cluster: registered(cluster, replica).fenced, cluster),
            when(lambda process: process.up, process),
        ],
        effects=[
            then(cluster, lambda cluster, process: _begun(replica, cluster, process), cluster, process),
            then(process, renewed, cluster, process),
        ],
    )


def _add_expiry_when_down(board: Board, replica: BrokerId) -> None:
    """The session of a broker that is down ends, and its unfinished write is lost."""
    cluster, process = board.slots.cluster, board.slots.process[replica]
    board.model.action(
        "ExpireDown",
        {"broker": replica},
        events=[Note(CONTROLLER, f"ZooKeeper ends the session of broker {replica}, which is down")],
        guards=[
            when(lambda cluster: _has_session(replica, cluster), cluster),
            when(lambda process: not process.up, process),
        ],
        effects=[
            then(cluster, lambda cluster: _ended(replica, cluster), cluster),
            *_writes_no_more(board, replica),
        ],
    )


def _writes_no_more(board: Board, replica: BrokerId) -> list[Effect]:
    return [then(board.slots.exchange[replica], lambda: NO_EXCHANGE)] if board.writes_isr(replica) else []


# ---- stopping and starting


def _stops_hearing(board: Board, replica: BrokerId) -> list[Effect]:
    """The effects of a stop on the controller epoch that the broker knows, and on a stray request."""
    inbox = board.slots.inbox[replica]
    return [
        then(board.slots.heard[replica], lambda: FIRST_CONTROLLER),
        then(inbox, lambda inbox: inbox._replace(stray=()), inbox),
    ]


def _asked_to_stop(board: Board, successor: BrokerId, cluster: ZkCluster, process: Process) -> ZkDecision | None:
    """The controller's decision when a broker asks to stop; `None` if it does not know the broker."""
    control, live = board.zookeeper, LiveBroker(process.life.broker, process.life.broker_epoch)
    request = ControlledShutdownRequest(live.broker, control.protocol.epoch_of(live))

    def outcome(first: BrokerId) -> ZkDecision | None:
        step = handle_controlled_shutdown(control, zk_state(cluster, first), request, NOW)
        answer = zk_answer_of(step)
        assert isinstance(answer, ControlledShutdownResponse)
        return decided_by(cluster, step) if answer.error == Error.NONE else None

    return once(board, successor, outcome)


def _add_clean_stop(board: Board, replica: BrokerId) -> None:
    """A broker asks the controller to stop, again while it still leads. It stops when it no longer leads, or has asked often
    enough.
    """
    slots = board.slots
    cluster, process = slots.cluster, slots.process[replica]
    runs_on = when(lambda process: process.up and process.life.state == BrokerState.RUNNING, process)
    waits = when(lambda process: process.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN, process)
    begun = then(process, lambda process: process._replace(life=begin_controlled_shutdown(process.life).state), process)
    asks: list[Event] = [Arrow(replica, CONTROLLER, "wants to stop"), Arrow(CONTROLLER, replica, "what it leads still")]
    exchange = _writes_no_more(board, replica)
    stopped = [
        then(slots.log[replica], lambda log: recover(after_clean_stop(log)).local, slots.log[replica]),
        then(process, down_after_clean_stop, process),
        then(cluster, lambda cluster: _ended(replica, cluster), cluster),
        *without_memory(board, replica, keeps_exchange=bool(exchange)),
        *exchange,
        *gone_with(board, replica),
        *_stops_hearing(board, replica),
    ]
    for successor in board.brokers:
        args, who = {"broker": replica, "successor": successor}, f"{replica} succeeded by {successor}"

        def first(cluster: ZkCluster, process: Process, successor: BrokerId = successor) -> ZkDecision | None:
            return _asked_to_stop(board, successor, cluster, process)

        def again(cluster: ZkCluster, process: Process, successor: BrokerId = successor) -> ZkDecision | None:
            made = _asked_to_stop(board, successor, cluster, process)
            still_leads = cluster.topic.leader == process.life.broker
            return made if made is not None and still_leads and made.after != cluster else None

        one = board.decided(board.decision(f"shutdown of {who}", first, cluster, process))
        other = board.decided(board.decision(f"shutdown, again, of {who}", again, cluster, process))
        spent = board.spend("clean_shutdowns")
        told = [Note(replica, "is told to stop"), *asks]
        board.model.action(
            "BeginShutdown", args, events=told, guards=[runs_on, one.guard], effects=[*one.effects, begun, spent]
        )
        board.model.action("AskToStop", args, events=asks, guards=[waits, other.guard], effects=other.effects)
    stops = [Note(replica, "flushes all, ends its session, and stops")]
    board.model.action("StopCleanly", {"broker": replica}, events=stops, guards=[waits], effects=stopped)
    board.model.action(
        "StopUnheard",
        {"broker": replica},
        events=[Note(replica, "stops in order, unheard, and ends its session")],
        guards=[runs_on],
        effects=[*stopped, board.spend("clean_shutdowns")],
    )


def _add_start(board: Board, replica: BrokerId) -> None:
    """A broker starts, and registers in ZooKeeper: only once the session of its earlier incarnation has ended.

    If there is a partition, it has caught up (`published`) once it has handled a request.
    """
    cluster, process = board.slots.cluster, board.slots.process[replica]

    def next_incarnation(process: Process) -> Process:
        return Process(True, start_again(process.life, process.noted)._replace(state=BrokerState.RUNNING))

    def started(cluster: ZkCluster, process: Process) -> Process:
        begun = next_incarnation(process)
        epoch = _new_session(registered(cluster, replica), begun).broker_epoch
        life = begun.life._replace(broker_epoch=epoch, ready_to_unfence=True)
        return begun._replace(life=life, published=cluster.topic == NO_TOPIC)

    board.model.action(
        "Register",
        {"broker": replica},
        events=[Note(replica, "starts"), Arrow(replica, CONTROLLER, "registers in ZooKeeper")],
        guards=[
            when(lambda cluster: registered(cluster, replica).fenced, cluster),
            when(lambda process: not process.up, process),
        ],
        effects=[
            then(cluster, lambda cluster, process: _begun(replica, cluster, next_incarnation(process)), cluster, process),
            then(process, started, cluster, process),
        ],
    )
