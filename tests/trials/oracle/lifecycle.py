"""Requests of a broker to the controller between its start and its stop."""

from typing import Any

from kspec.spec.broker.lifecycle import CleanShutdown
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.step import SendToController
from kspec.spec.values import Error, Offset
from tests.trials.oracle.leader import Expected
from tests.trials.oracle.party import ObservedNode


def communicate(node: ObservedNode, metadata_offset: Offset) -> Expected:
    """It registers until it is registered; then it sends heartbeats, which say what it wants."""
    life = node.life
    if life.broker_epoch == -1:
        registration = BrokerRegistrationRequest(life.broker, life.incarnation, life.previous_broker_epoch)
        return {}, (SendToController(registration),)
    leaving = life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = BrokerHeartbeatRequest(life.broker, life.broker_epoch, metadata_offset, not life.ready_to_unfence, leaving)
    return {}, (SendToController(heartbeat),)


def registered(node: ObservedNode, answer: Any) -> Expected:
    """It takes its broker epoch from the answer to its own incarnation."""
    own = answer.error == Error.NONE and answer.incarnation == node.life.incarnation
    return {"broker_epoch": answer.broker_epoch} if own else {}, ()


def heard(node: ObservedNode, answer: Any) -> Expected:
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


def begin_shutdown(node: ObservedNode) -> Expected:
    """A running broker asks for leave to stop; one that does not take part yet stops at once."""
    if node.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        return {}, ()
    if node.life.state == BrokerState.RUNNING:
        return {"state": BrokerState.PENDING_CONTROLLED_SHUTDOWN}, ()
    return end(node)


def end(node: ObservedNode) -> Expected:
    """It stops in order, and notes its broker epoch."""
    return {"state": BrokerState.SHUTTING_DOWN}, (CleanShutdown(node.life.broker_epoch),)
