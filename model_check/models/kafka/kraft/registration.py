"""Registrations of brokers: of one that starts, one that has started, and copies that arrive late.

A registration arrives late a second time, or reaches the controller after that of the next incarnation; an answer may
reach the next incarnation.
"""

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, Note, View, then, when
from kspec.model_check.models.kafka.board import FIRST_INCARNATION, Board, ControllerDecision
from kspec.model_check.models.kafka.cluster import NOW, is_the_choice, registered
from kspec.model_check.models.kafka.kraft.control import is_up_as_registered
from kspec.model_check.models.kafka.kraft.reading import NOT_READING, Reading
from kspec.model_check.models.kafka.kraft.state import answer_of, appended, cluster_of, controller_state
from kspec.model_check.models.kafka.values import (
    NO_TOPIC,
    ModelController,
    Process,
)
from kspec.spec.broker.lifecycle import (
    handle_broker_registration_response,
    next_communication,
    start_again,
)
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.controller.brokers import handle_broker_registration
from kspec.spec.controller.state import ControllerStep
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.step import SendToController
from kspec.spec.values import NO_BROKER_EPOCH, BrokerId, Incarnation, MonotonicMs, Offset


def add_registrations(board: Board, replica: BrokerId) -> None:
    """Add the registrations of a broker that has stopped, as its rules and the budgets have them."""
    for successor in board.brokers:
        _add_registration(board, replica, successor)
        if board.parameters["slow_registrations"]:
            _add_slow_registration(board, replica, successor)
    if board.parameters["slow_registrations"]:
        _add_start(board, replica)
    if board.parameters["late_registrations"]:
        _add_late_answer(board, replica)
    if board.parameters["earlier_registrations"]:
        _add_earlier_registration(board, replica)


def _registers(
    board: Board,
    cluster: ModelController,
    life: BrokerLifecycle,
    successor: BrokerId,
    heard: MonotonicMs | None = None,
) -> ControllerStep:
    """The step of a registration. `heard`: the last contact with the broker, where its session may be valid."""
    asked = next_communication(life._replace(broker_epoch=NO_BROKER_EPOCH), Offset(0)).effects[0]
    assert isinstance(asked, SendToController)
    assert isinstance(asked.message, BrokerRegistrationRequest)
    # The session of a broker that is down has expired, or the answer would be DUPLICATE_BROKER_REGISTRATION.
    end_offset = Offset(registered(cluster, life.broker).broker_epoch + 1)
    state = controller_state(cluster, first=successor, silent=life.broker, end_offset=end_offset)
    if heard is not None:
        sessions = (one._replace(last_contact_ms=heard) if one.broker == life.broker else one for one in state.sessions)
        state = state._replace(sessions=tuple(sessions))
    return handle_broker_registration(board.kraft, state, asked.message, NOW)


def _hears(board: Board, replica: BrokerId, life: BrokerLifecycle, response: BrokerRegistrationResponse) -> BrokerLifecycle:
    return handle_broker_registration_response(board.rules[replica].protocol, life, response, NOW).state


def _next_life(process: Process) -> BrokerLifecycle:
    return start_again(process.life, process.noted)


def _decided_at_start(board: Board, replica: BrokerId, decision: View) -> ControllerDecision:
    """The decision that a broker begins to read with, unless it remembers what it has read before."""
    if board.keeps_its_past(replica):
        return board.decided(decision)

    def first_image(after: ModelController | None) -> Reading:
        return NOT_READING if after is None else (board.image_for(replica, after),)

    decided = board.decided(decision, leaves=replica)
    return ControllerDecision(decided.guard, [*decided.effects, then(board.slots.reading[replica], first_image, decision)])


def _add_registration(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots = board.slots
    reads = (slots.cluster, slots.process[replica])

    def register(cluster: ModelController, process: Process) -> ModelController | None:
        if process.up:
            return None
        step = _registers(board, cluster, _next_life(process), successor)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: ModelController, process: Process) -> Process:
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
            Arrow(replica, CONTROLLER, "registration"),
            Arrow(CONTROLLER, replica, "its broker epoch"),
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

    def register(cluster: ModelController, process: Process) -> ModelController | None:
        if not process.up or process.life.broker_epoch != NO_BROKER_EPOCH:
            return None
        step = _registers(board, cluster, process.life, successor)
        after = cluster_of(step.state)
        return after if appended(step) and is_the_choice(cluster, after, successor, replica) else None

    def answered(cluster: ModelController, process: Process) -> Process:
        response = answer_of(_registers(board, cluster, process.life, successor))
        assert isinstance(response, BrokerRegistrationResponse)
        return process._replace(life=_hears(board, replica, process.life, response))

    decided = board.decided(board.decision(f"registered started {replica} succeeded by {successor}", register, *reads))
    board.model.action(
        "RegisterStarted",
        {"broker": replica, "successor": successor},
        events=[Arrow(replica, CONTROLLER, "registration"), Arrow(CONTROLLER, replica, "its broker epoch")],
        guards=[decided.guard],
        effects=[*decided.effects, then(slots.process[replica], answered, *reads)],
    )


def add_late_registration(board: Board, replica: BrokerId) -> None:
    """A registration arrives a second time, long after the first. The broker does not hear the answer."""

    def register(cluster: ModelController, process: Process) -> ModelController | None:
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
        events=[Arrow(replica, CONTROLLER, "registration, sent long ago")],
        guards=[decided.guard],
        effects=[*decided.effects, board.spend("late_registrations")],
    )


def _add_earlier_registration(board: Board, replica: BrokerId) -> None:
    """A registration of the incarnation before arrives, after that of the present one and before its first heartbeat.

    Nobody hears the answer: the process that asked has ended. The session is the one that the registration has left, so
    the rules decide whether it protects the broker.
    """

    def register(cluster: ModelController, process: Process) -> ModelController | None:
        life = process.life
        has_been_heard = process.published or life.incarnation == FIRST_INCARNATION
        if has_been_heard or not is_up_as_registered(cluster, replica, process):
            return None
        step = _registers(
            board, cluster, life._replace(incarnation=Incarnation(life.incarnation - 1)), replica, _just_now(board)
        )
        return cluster_of(step.state) if appended(step) else None

    reads = (board.slots.cluster, board.slots.process[replica])
    decided = board.decided(board.decision(f"registered {replica} of before", register, *reads))
    board.model.action(
        "RegisterEarlier",
        {"broker": replica},
        events=[Arrow(replica, CONTROLLER, "registration of the incarnation before, sent long ago")],
        guards=[decided.guard],
        effects=[*decided.effects, board.spend("earlier_registrations")],
    )


def _just_now(board: Board) -> MonotonicMs:
    """The last contact with a broker that has registered as a new incarnation just now."""
    return board.kraft.protocol.heard_at_registration(None, False, NOW)


def _add_late_answer(board: Board, replica: BrokerId) -> None:
    """The registration of the last incarnation has arrived a second time, and the answer reaches the one that now starts.

    One that does not take it registers by itself; so only one that does is looked at.
    """
    slots = board.slots
    reads = (slots.cluster, slots.process[replica])

    def answered(cluster: ModelController, process: Process) -> Process:
        response = answer_of(_registers(board, cluster, process.life, replica))
        assert isinstance(response, BrokerRegistrationResponse)
        return Process(True, _hears(board, replica, _next_life(process), response))

    def register(cluster: ModelController, process: Process) -> ModelController | None:
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
        events=[Note(replica, "starts"), Arrow(CONTROLLER, replica, "the broker epoch of its last incarnation")],
        guards=[decided.guard],
        effects=[
            *decided.effects,
            then(slots.process[replica], answered, *reads),
            board.spend("late_registrations"),
        ],
    )
