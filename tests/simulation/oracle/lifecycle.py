"""What a broker says to the controller between its start and its stop."""

from typing import Any

from spec.broker.lifecycle import CleanShutdown
from spec.broker.rules.lifecycle import BrokerState
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.step import SendToController
from spec.values import Error, Offset
from tests.simulation.oracle.leader import Expected
from tests.simulation.parties import Node


def communicate(node: Node) -> Expected:
    """It registers until it is registered; then it sends heartbeats, which say what it wants."""
    life = node.life
    if life.broker_epoch == -1:
        registration = BrokerRegistrationRequest(life.broker, life.incarnation, life.previous_broker_epoch)
        return {}, (SendToController(registration),)
    leaving = life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = BrokerHeartbeatRequest(
        life.broker, life.broker_epoch, Offset(node.image.end_offset - 1), not life.ready_to_unfence, leaving
    )
    return {}, (SendToController(heartbeat),)


def registered(node: Node, answer: Any) -> Expected:
    """It takes its broker epoch from the answer to its own incarnation."""
    own = answer.error == Error.NONE and answer.incarnation == node.life.incarnation
    return {"broker_epoch": answer.broker_epoch} if own else {}, ()


def heard(node: Node, answer: Any) -> Expected:
    """It catches up, is unfenced, and stops, as the controller says."""
    state = node.life.state
    if answer.error == Error.NONE:
        if state == BrokerState.STARTING and answer.is_caught_up:
            return {"state": BrokerState.RECOVERY}, ()
        if state == BrokerState.RECOVERY and not answer.is_fenced:
            return {"state": BrokerState.RUNNING}, ()
        if state == BrokerState.PENDING_CONTROLLED_SHUTDOWN and answer.should_shut_down:
            return end(node)
    return {}, ()


def begin_shutdown(node: Node) -> Expected:
    """A running broker asks for leave to stop; one that does not take part yet stops at once."""
    if node.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        return {}, ()
    if node.life.state == BrokerState.RUNNING:
        return {"state": BrokerState.PENDING_CONTROLLED_SHUTDOWN}, ()
    return end(node)


def end(node: Node) -> Expected:
    """It stops in order, and notes its broker epoch."""
    return {"state": BrokerState.SHUTTING_DOWN}, (CleanShutdown(node.life.broker_epoch),)
