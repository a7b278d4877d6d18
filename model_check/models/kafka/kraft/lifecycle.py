"""Brokers stop, lose their power, start again, register and are unfenced.

Two events are one step where no property depends on the state in between: a broker that shall stop asks the controller at
once; a broker that starts registers at once. With `--slow-registrations` it may start first, act on the metadata that it
finds as far as its release allows, and register later: the controller refuses a new incarnation while the session of the one
before is valid.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from model_check.core.model import CONTROLLER, REFUSED, Effect, Local, Message, Note, View, then, when
from model_check.models.kafka.board import Board, Decided
from model_check.models.kafka.cluster import NOW, is_the_choice, registered
from model_check.models.kafka.kraft.control import heartbeat, is_up_as_registered
from model_check.models.kafka.kraft.metadata import apply_image, has_read
from model_check.models.kafka.kraft.reading import NOT_READING, Reading
from model_check.models.kafka.kraft.state import END, answer_of, appended, cluster_of, controller_state
from model_check.models.kafka.late import gone_with
from model_check.models.kafka.party import Held
from model_check.models.kafka.stopping import add_power_loss, down_after_clean_stop, without_memory
from model_check.models.kafka.values import (
    NO_TOPIC,
    Change,
    Cluster,
    Image,
    Process,
)
from spec.broker.lifecycle import (
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    set_ready_to_unfence,
    start_again,
)
from spec.broker.protocol import BrokerProtocol
from spec.broker.recovery import after_clean_stop, recover
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.controller.brokers import handle_broker_registration
from spec.controller.state import ControllerStep
from spec.messages.broker_heartbeat import BrokerHeartbeatResponse
from spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from spec.step import SendToController
from spec.values import NO_BROKER_EPOCH, BrokerId, Error, Offset


def add_lifecycle(board: Board, most: int) -> None:
    """Add the shutdowns that the budgets allow, and the restart, which is never bounded."""
    unclean, clean = board.parameters["unclean_shutdowns"], board.parameters["clean_shutdowns"]
    for replica in board.brokers:
        if unclean and board.may_stop(replica):
            add_power_loss(board, replica, _reads_no_more(board, replica))
        if clean and board.may_stop(replica):
            _add_clean_stop(board, replica)
        if (unclean or clean) and board.may_stop(replica):
            _add_way_back(board, replica, most)
        if unclean or clean or board.parameters["fencings"] or board.parameters["late_registrations"]:
            for successor in board.brokers:
                _add_unfencing(board, replica, successor)
        if board.parameters["late_registrations"]:
            _add_late_registration(board, replica)


# ---- stopping


def _reads_no_more(board: Board, replica: BrokerId) -> list[Effect]:
    """The effect of a stop on a broker's metadata."""
    reading = board.slots.reading[replica]
    return [] if board.keeps_its_past(replica) else [then(reading, lambda images: NOT_READING, reading)]


def _protocol(board: Board, life: BrokerLifecycle) -> BrokerProtocol:
    return board.rules[life.broker].protocol


def _ask_to_stop(board: Board, successor: BrokerId, wanted: BrokerState) -> Callable[[Cluster, Process], Cluster | None]:
    """The controller's decision when a broker asks to stop, if the broker then gets into the state `wanted`."""

    def decide(cluster: Cluster, process: Process) -> Cluster | None:
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
    told = [Note(replica, "is told to stop"), Message(replica, CONTROLLER, "heartbeat: wants to stop")]
    asks = [Message(replica, CONTROLLER, "heartbeat: wants to stop")]
    stops = [Message(CONTROLLER, replica, "stop"), Note(replica, "flushes all, and stops")]
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
        waiting = [Message(CONTROLLER, replica, "wait")]
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
    for successor in board.brokers:
        _add_registration(board, replica, successor)
        if board.parameters["slow_registrations"]:
            _add_slow_registration(board, replica, successor)
    if board.parameters["slow_registrations"]:
        _add_start(board, replica)
    if board.parameters["late_registrations"]:
        _add_late_answer(board, replica)
    for steps in range(most + 1):
        _add_first_image(board, replica, steps, board.change_after(replica, steps))


def _registers(board: Board, cluster: Cluster, life: BrokerLifecycle, successor: BrokerId) -> ControllerStep:
    asked = next_communication(life._replace(broker_epoch=NO_BROKER_EPOCH), Offset(0)).effects[0]
    assert isinstance(asked, SendToController)
    assert isinstance(asked.message, BrokerRegistrationRequest)
    # The session of a broker that is down has expired, or the answer would be DUPLICATE_BROKER_REGISTRATION.
    end_offset = Offset(registered(cluster, life.broker).broker_epoch + 1)
    state = controller_state(cluster, first=successor, silent=life.broker, end_offset=end_offset)
    return handle_broker_registration(board.kraft, state, asked.message, NOW)


def _hears(board: Board, replica: BrokerId, life: BrokerLifecycle, response: BrokerRegistrationResponse) -> BrokerLifecycle:
    return handle_broker_registration_response(board.rules[replica].protocol, life, response, NOW).state


def _next_life(process: Process) -> BrokerLifecycle:
    return start_again(process.life, process.noted)


def _decided_at_start(board: Board, replica: BrokerId, decision: View) -> Decided:
    """The decision that a broker begins to read with, unless it remembers what it has read before."""
    if board.keeps_its_past(replica):
        return board.decided(decision)

    def first_image(after: Cluster | None) -> Reading:
        return NOT_READING if after is None else (board.image_for(replica, after),)

    decided = board.decided(decision, leaves=replica)
    return Decided(decided.guard, [*decided.effects, then(board.slots.reading[replica], first_image, decision)])


def _add_registration(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots = board.slots
    reads = (slots.cluster, slots.process[replica])

    def register(cluster: Cluster, process: Process) -> Cluster | None:
        if process.up:
            return None
        step = _registers(board, cluster, _next_life(process), successor)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: Cluster, process: Process) -> Process:
        response = answer_of(_registers(board, cluster, _next_life(process), successor))
        assert isinstance(response, BrokerRegistrationResponse)
        return Process(True, _hears(board, replica, _next_life(process), response))

    decided = _decided_at_start(
        board, replica, board.decision(f"registered {replica} succeeded by {successor}", register, *reads)
    )
    board.model.action(
        "Register",
        {"broker": replica, "successor": successor},
        events=[
            Note(replica, "starts"),
            Message(replica, CONTROLLER, "registration"),
            Message(CONTROLLER, replica, "its broker epoch"),
        ],
        guards=[decided.guard],
        effects=[*decided.effects, then(slots.process[replica], answered, *reads)],
    )


def _add_start(board: Board, replica: BrokerId) -> None:
    """A broker starts, and reads the metadata as they are now; its registration is under way."""
    slots = board.slots

    def start(process: Process) -> object:
        return REFUSED if process.up else Process(True, _next_life(process))

    reading = slots.reading[replica]
    first = then(reading, lambda cluster: (board.image_for(replica, cluster),), slots.cluster)
    board.model.action(
        "Start",
        {"broker": replica},
        events=[Note(replica, "starts, and is not registered yet")],
        guards=[when(lambda cluster: cluster.topic != NO_TOPIC, slots.cluster)],
        effects=[
            then(slots.process[replica], start, slots.process[replica]),
            *([] if board.keeps_its_past(replica) else [first]),
            board.spend("slow_registrations"),
        ],
    )


def _add_slow_registration(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    """A broker that has started is registered, once the session of its earlier incarnation has expired."""
    slots = board.slots
    reads = (slots.cluster, slots.process[replica])

    def register(cluster: Cluster, process: Process) -> Cluster | None:
        if not process.up or process.life.broker_epoch != NO_BROKER_EPOCH:
            return None
        step = _registers(board, cluster, process.life, successor)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: Cluster, process: Process) -> Process:
        response = answer_of(_registers(board, cluster, process.life, successor))
        assert isinstance(response, BrokerRegistrationResponse)
        return process._replace(life=_hears(board, replica, process.life, response))

    decided = board.decided(board.decision(f"registered started {replica} succeeded by {successor}", register, *reads))
    board.model.action(
        "RegisterStarted",
        {"broker": replica, "successor": successor},
        events=[Message(replica, CONTROLLER, "registration"), Message(CONTROLLER, replica, "its broker epoch")],
        guards=[decided.guard],
        effects=[*decided.effects, then(slots.process[replica], answered, *reads)],
    )


def _add_late_registration(board: Board, replica: BrokerId) -> None:
    """A registration arrives a second time, long after the first. The broker does not hear the answer."""

    def register(cluster: Cluster, process: Process) -> Cluster | None:
        if cluster.topic == NO_TOPIC or not is_up_as_registered(cluster, replica, process):
            return None
        step = _registers(board, cluster, process.life, replica)
        after = cluster_of(step.state)
        return after if after != cluster else None

    reads = (board.slots.cluster, board.slots.process[replica])
    decided = board.decided(board.decision(f"registered {replica} again", register, *reads))
    board.model.action(
        "RegisterAgain",
        {"broker": replica},
        events=[Message(replica, CONTROLLER, "registration, sent long ago")],
        guards=[decided.guard],
        effects=[*decided.effects, board.spend("late_registrations")],
    )


def _add_late_answer(board: Board, replica: BrokerId) -> None:
    """The registration of the last incarnation has arrived a second time, and the answer reaches the one that now starts.

    One that does not take it registers by itself; so only one that does is looked at.
    """
    slots = board.slots
    reads = (slots.cluster, slots.process[replica])

    def answered(cluster: Cluster, process: Process) -> Process:
        response = answer_of(_registers(board, cluster, process.life, replica))
        assert isinstance(response, BrokerRegistrationResponse)
        return Process(True, _hears(board, replica, _next_life(process), response))

    def register(cluster: Cluster, process: Process) -> Cluster | None:
        is_next = registered(cluster, replica).incarnation == process.life.incarnation
        if process.up or not is_next or answered(cluster, process).life.broker_epoch == NO_BROKER_EPOCH:
            return None
        return cluster_of(_registers(board, cluster, process.life, replica).state)

    decided = _decided_at_start(
        board, replica, board.decision(f"registered {replica} for its last incarnation", register, *reads)
    )
    board.model.action(
        "StartOnLateAnswer",
        {"broker": replica},
        events=[Note(replica, "starts"), Message(CONTROLLER, replica, "the broker epoch of its last incarnation")],
        guards=[decided.guard],
        effects=[
            *decided.effects,
            then(slots.process[replica], answered, *reads),
            board.spend("late_registrations"),
        ],
    )


def _add_first_image(board: Board, replica: BrokerId, steps: int, change: View) -> None:
    slots, held = board.slots, board.held(replica)
    protocol = board.rules[replica].protocol

    def is_registered(change: Change, process: Process) -> bool:
        return not board.reads_its_registration(replica) or _shows_registration(change.after, process)

    def may_act(change: Change | None, process: Process) -> bool:
        if change is None or not process.up or process.published:
            return False
        life = _told_to_recover(protocol, process.life) if is_registered(change, process) else process.life
        return protocol.acts_on_metadata(life, END, END)

    def take(change: Change | None, process: Process, *before: Any) -> object:
        return REFUSED if change is None else apply_image(board, replica, None, change.after, Held(*before), process)

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

    def ask(cluster: Cluster, process: Process, reading: Reading) -> ControllerStep:
        unread = max(0, len(reading) - 1)
        return heartbeat(board, cluster, process, unread, successor, shutdown=False)

    def recovering(process: Process) -> Process:
        return process._replace(life=_told_to_recover(_protocol(board, process.life), process.life))

    def unfence(cluster: Cluster, process: Process, reading: Reading = NOT_READING) -> Cluster | None:
        process = recovering(process)
        comes_back = process.published and process.life.state in (BrokerState.RECOVERY, BrokerState.RUNNING)
        if not comes_back or not registered(cluster, replica).fenced:
            return None
        step = ask(cluster, process, reading)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: Cluster, process: Process, reading: Reading = NOT_READING) -> Process:
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
        events=[Message(replica, CONTROLLER, "heartbeat"), Message(CONTROLLER, replica, "you take part")],
        guards=guards,
        effects=[*decided.effects, then(slots.process[replica], answered, *reads)],
    )


def _has_read_its_registration(board: Board, replica: BrokerId) -> Local:
    def read(cluster: Cluster, reading: Reading) -> bool:
        return reading != NOT_READING and registered(cluster, replica) in reading[0].brokers

    slots = board.slots
    view = board.model.view("has read its registration", read, slots.cluster, slots.reading[replica], key=replica)
    return when(lambda has_read: has_read, view)
