"""Brokers stop, lose their power, start again, register and are unfenced.

Two events are one step where no property depends on the state in between: a broker that shall stop asks the controller at
once; a broker that starts registers at once. With `--slow-registrations` it may start first, act on the metadata that it
finds as far as its release allows, and register later: the controller refuses a new incarnation while the session of the one
before is valid.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Effect, Local, Note, View, then, when
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.cluster import NOW, is_the_choice, registered
from kspec.model_check.models.kafka.kraft.control import heartbeat
from kspec.model_check.models.kafka.kraft.metadata import apply_image, has_read
from kspec.model_check.models.kafka.kraft.reading import NOT_READING, Reading
from kspec.model_check.models.kafka.kraft.registration import add_late_registration, add_registrations
from kspec.model_check.models.kafka.kraft.state import END, answer_of, appended, cluster_of
from kspec.model_check.models.kafka.late import gone_with
from kspec.model_check.models.kafka.party import PartyState
from kspec.model_check.models.kafka.stopping import add_unclean_stops, down_after_clean_stop, without_memory
from kspec.model_check.models.kafka.values import (
    Image,
    MetadataChange,
    ModelController,
    Process,
)
from kspec.spec.broker.lifecycle import (
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    set_ready_to_unfence,
)
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.recovery import after_clean_stop, recover
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.controller.state import ControllerStep
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatResponse
from kspec.spec.values import NO_BROKER_EPOCH, BrokerId, Error


def add_lifecycle(board: Board, most: int) -> None:
    """Add the shutdowns that the budgets allow, and the restart, which is never bounded."""
    unclean, clean = board.stops_uncleanly, board.parameters["clean_shutdowns"]
    for replica in board.brokers:
        if unclean and board.may_stop(replica):
            add_unclean_stops(board, replica, _reads_no_more(board, replica))
        if clean and board.may_stop(replica):
            _add_clean_stop(board, replica)
        if (unclean or clean) and board.may_stop(replica):
            _add_way_back(board, replica, most)
        if unclean or clean or board.parameters["fencings"] or board.parameters["late_registrations"]:
            for successor in board.brokers:
                _add_unfencing(board, replica, successor)
        if board.parameters["late_registrations"]:
            add_late_registration(board, replica)


# ---- stopping


def _reads_no_more(board: Board, replica: BrokerId) -> list[Effect]:
    """The effect of a stop on a broker's metadata."""
    reading = board.slots.reading[replica]
    return [] if board.keeps_its_past(replica) else [then(reading, lambda images: NOT_READING, reading)]


def _protocol(board: Board, life: BrokerLifecycle) -> BrokerProtocol:
    return board.rules[life.broker].protocol


def _ask_to_stop(
    board: Board, successor: BrokerId, wanted: BrokerState
) -> Callable[[ModelController, Process], ModelController | None]:
    """The controller's decision when a broker asks to stop, if the broker then gets into the state `wanted`."""

    def decide(cluster: ModelController, process: Process) -> ModelController | None:
        begun = begin_controlled_shutdown(process.life).state
        if not process.published or begun.state != BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return None
        step = heartbeat(board, cluster, process, 0, successor, shutdown=True)
        answer = answer_of(step)
        assert isinstance(answer, BrokerHeartbeatResponse)
        after = cluster_of(step.state)
        if handle_broker_heartbeat_response(
            _protocol(board, begun), begun, answer, NOW
        ).state.state != wanted or not appended(step):
            return None
        return after if is_the_choice(cluster, after, successor, process.life.broker) else None

    return decide


def _add_clean_stop(board: Board, replica: BrokerId) -> None:
    slots = board.slots
    runs_on = when(lambda process: process.life.state == BrokerState.RUNNING, slots.process[replica])
    waits = when(
        lambda process: process.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        slots.process[replica],
    )
    flushed = then(slots.log[replica], lambda log: recover(after_clean_stop(log)).local, slots.log[replica])
    stopped = then(slots.process[replica], down_after_clean_stop, slots.process[replica])
    begun = then(
        slots.process[replica],
        lambda process: process._replace(life=begin_controlled_shutdown(process.life).state),
        slots.process[replica],
    )
    alone = [flushed, stopped, *without_memory(board, replica), *_reads_no_more(board, replica), *gone_with(board, replica)]
    spent = board.spend("clean_shutdowns")
    told = [Note(replica, "is told to stop"), Arrow(replica, CONTROLLER, "heartbeat: wants to stop")]
    asks = [Arrow(replica, CONTROLLER, "heartbeat: wants to stop")]
    stops = [Arrow(CONTROLLER, replica, "stop"), Note(replica, "flushes all, and stops")]
    reads = (slots.cluster, slots.process[replica])

    def add(name: str, successor: BrokerId | None, events: list, guards: list[Local], effects: list[Effect]) -> None:  # type: ignore[type-arg]
        args = {"broker": replica} if successor is None else {"broker": replica, "successor": successor}
        board.model.action(name, args, events=events, guards=guards, effects=effects)

    for successor in board.brokers:
        who = f"{replica} succeeded by {successor}"
        wait = board.decided(
            board.decision(
                f"shutdown of {who}", _ask_to_stop(board, successor, BrokerState.PENDING_CONTROLLED_SHUTDOWN), *reads
            )
        )
        leave = board.decided(
            board.decision(f"leave of {who}", _ask_to_stop(board, successor, BrokerState.SHUTTING_DOWN), *reads),
            leaves=None if board.keeps_its_past(replica) else replica,
            writes=[slots.exchange[replica]],
        )
        gone = [*leave.effects, *alone]
        waiting = [Arrow(CONTROLLER, replica, "wait")]
        add("BeginShutdown", successor, told + waiting, [runs_on, wait.guard], [*wait.effects, begun, spent])
        add("AskToStop", successor, asks + waiting, [waits, wait.guard], wait.effects)
        add("StopAtOnce", successor, told + stops, [runs_on, leave.guard], [*gone, spent])
        add("StopCleanly", successor, asks + stops, [waits, leave.guard], gone)
    add(
        "StopUnheard",
        None,
        [Note(replica, "stops in order, unheard")],
        [runs_on],
        [*alone, spent],
    )
    add("StopWithoutLeave", None, [Note(replica, "has waited too long, flushes all, and stops")], [waits], alone)


# ---- coming back


def _add_way_back(board: Board, replica: BrokerId, most: int) -> None:
    add_registrations(board, replica)
    for steps in range(most + 1):
        _add_first_image(board, replica, steps, board.change_after(replica, steps))


def _add_first_image(board: Board, replica: BrokerId, steps: int, change: View) -> None:
    slots, held = board.slots, board.held(replica)
    protocol = board.rules[replica].protocol

    def is_registered(change: MetadataChange, process: Process) -> bool:
        return not board.reads_its_registration(replica) or _shows_registration(change.after, process)

    def may_act(change: MetadataChange | None, process: Process) -> bool:
        if change is None or not process.up or process.published:
            return False
        life = _told_to_recover(protocol, process.life) if is_registered(change, process) else process.life
        return protocol.acts_on_metadata(life, END, END)

    def take(change: MetadataChange | None, process: Process, *before: Any) -> object:
        return REFUSED if change is None else apply_image(board, replica, None, change.after, PartyState(*before), process)

    board.model.action(
        "TakeFirstImage",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "has caught up with the metadata")],
        guards=[when(may_act, change, slots.process[replica])],
        effects=[
            then(held, take, change, slots.process[replica], *held),
            then(slots.process[replica], partial(_ready, protocol), slots.process[replica]),
            has_read(board, replica, steps),
        ],
    )


def _shows_registration(image: Image, process: Process) -> bool:
    known = {(entry.broker, entry.broker_epoch) for entry in image.brokers}
    return (process.life.broker, process.life.broker_epoch) in known


def _told_to_recover(protocol: BrokerProtocol, life: BrokerLifecycle) -> BrokerLifecycle:
    """The incarnation once the controller has answered that it has read its registration; one without has no heartbeat."""
    if life.broker_epoch == NO_BROKER_EPOCH:
        return life
    caught_up = BrokerHeartbeatResponse(Error.NONE, is_caught_up=True, is_fenced=True)
    return handle_broker_heartbeat_response(protocol, life, caught_up, NOW).state


def _ready(protocol: BrokerProtocol, process: Process) -> Process:
    life = _told_to_recover(protocol, process.life)
    return process._replace(life=set_ready_to_unfence(life).state, published=True)


def _add_unfencing(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots = board.slots
    asked = (slots.reading[replica],) if board.asks_who_has_read else ()
    reads = (slots.cluster, slots.process[replica], *asked)

    def ask(cluster: ModelController, process: Process, reading: Reading) -> ControllerStep:
        unread = max(0, len(reading) - 1)
        return heartbeat(board, cluster, process, unread, successor, shutdown=False)

    def recovering(process: Process) -> Process:
        return process._replace(life=_told_to_recover(_protocol(board, process.life), process.life))

    def unfence(cluster: ModelController, process: Process, reading: Reading = NOT_READING) -> ModelController | None:
        process = recovering(process)
        comes_back = process.published and process.life.state in (BrokerState.RECOVERY, BrokerState.RUNNING)
        if not comes_back or not registered(cluster, replica).fenced:
            return None
        step = ask(cluster, process, reading)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: ModelController, process: Process, reading: Reading = NOT_READING) -> Process:
        answer = answer_of(ask(cluster, process, reading))
        assert isinstance(answer, BrokerHeartbeatResponse)
        life = recovering(process).life
        return process._replace(life=handle_broker_heartbeat_response(_protocol(board, life), life, answer, NOW).state)

    decided = board.decided(board.decision(f"unfenced {replica} succeeded by {successor}", unfence, *reads))
    guards = [decided.guard]
    if board.reads_its_registration(replica):
        guards.append(_has_read_its_registration(board, replica))
    board.model.action(
        "Unfence",
        {"broker": replica, "successor": successor},
        events=[Arrow(replica, CONTROLLER, "heartbeat"), Arrow(CONTROLLER, replica, "you take part")],
        guards=guards,
        effects=[*decided.effects, then(slots.process[replica], answered, *reads)],
    )


def _has_read_its_registration(board: Board, replica: BrokerId) -> Local:
    def read(cluster: ModelController, reading: Reading) -> bool:
        return reading != NOT_READING and registered(cluster, replica) in reading[0].brokers

    slots = board.slots
    view = board.model.view("has read its registration", read, slots.cluster, slots.reading[replica], key=replica)
    return when(lambda has_read: has_read, view)
