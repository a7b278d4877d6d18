"""Brokers stop, lose their power, start again, register and are unfenced."""

from model_check.model import CONTROLLER, REFUSED, Message, Note, then, when
from model_check.models.kafka.board import NOT_REPLAYING, Board
from model_check.models.kafka.cluster import (
    NOW,
    answer_of,
    appended,
    cluster_of,
    controller_state,
    is_the_choice,
    registered,
)
from model_check.models.kafka.control import heartbeat
from model_check.models.kafka.metadata import read_effects
from model_check.models.kafka.party import LATE, Log, broker, fetcher_of, leading
from model_check.models.kafka.replication import led_after
from model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_MEMORY,
    NO_ROLE,
    NO_TOPIC,
    Acknowledged,
    Change,
    Cluster,
    Exchange,
    Memory,
    Process,
    Role,
    Under,
)
from spec.broker_lifecycle import (
    BrokerLifecycle,
    BrokerState,
    CleanShutdown,
    answers_this_run,
    begin_controlled_shutdown,
    handle_heartbeat_response,
    handle_registration_response,
    next_communication,
    set_ready_to_unfence,
    start_again,
    stop,
)
from spec.controller import ControllerStep, handle_registration
from spec.controller_messages import BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse
from spec.fetcher import NOT_FETCHING, FetchState
from spec.local_log import LocalLog
from spec.metadata import LocalChange, local_change
from spec.recovery import Checkpoints, after_clean_stop, after_power_loss, previous_broker_epoch, recover
from spec.roles import apply_change
from spec.step import SendToController
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Offset


def add_lifecycle(board: Board, most: int) -> None:
    """Add what the budgets of shutdowns allow, and the way back, which is never bounded."""
    shutdowns = board.parameters["unclean_shutdowns"] + board.parameters["clean_shutdowns"]
    if shutdowns + board.parameters["fencings"] == 0:
        return
    for replica in board.brokers:
        for successor in board.brokers:
            _add_unfencing(board, replica, successor)
        if shutdowns == 0:
            continue
        if board.parameters["unclean_shutdowns"]:
            _add_power_loss(board, replica)
        if board.parameters["clean_shutdowns"]:
            _add_clean_stop(board, replica)
        _add_start(board, replica)
        for successor in board.brokers:
            _add_registration(board, replica, successor)
        for steps in range(most + 1):
            _add_first_image(board, replica, steps)


# ---- stopping


def _party(board: Board, replica: BrokerId) -> tuple:  # type: ignore[type-arg]
    slots = board.slots
    return (slots.role[replica], slots.memory[replica], slots.fetcher[replica], slots.exchange[replica])


def _stopped(exchange: Exchange) -> tuple[Role, Memory, FetchState, Exchange]:
    """What is left in memory; a request that was sent may still arrive, and nobody hears the answer."""
    return NO_ROLE, NO_MEMORY, NOT_FETCHING, exchange if exchange.state == Under.SENT else NO_EXCHANGE


def _off(board: Board, replica: BrokerId) -> list:  # type: ignore[type-arg]
    """The effects of a stop on memory and on who reads metadata."""
    slots = board.slots
    others = [slots.lag[other] for other in board.brokers if other != replica]
    return [
        then(_party(board, replica), _stopped, slots.exchange[replica]),
        then(slots.lag[replica], lambda lag: NOT_REPLAYING, slots.lag[replica]),
        then(slots.older, lambda older, *lags: older[len(older) - max(lags) :] if max(lags) > 0 else (), slots.older, *others),
    ]


def _down(process: Process, noted: BrokerEpoch) -> Process:
    life = BrokerLifecycle(process.life.broker, process.life.incarnation, BrokerState.SHUTTING_DOWN)
    return Process(False, life, noted=noted)


def _add_power_loss(board: Board, replica: BrokerId) -> None:
    slots, most = board.slots, board.parameters["values"]

    def lose(kept: int, checkpointed: int):  # type: ignore[no-untyped-def]
        def effect(log: Log) -> object:
            if kept > log.log.end_offset or checkpointed > min(kept, log.high_watermark):
                return REFUSED
            if log.log.start_offset:
                return REFUSED
            survived = after_power_loss(log, Checkpoints(Offset(checkpointed)), Offset(kept))
            return recover(survived).local

        return effect

    for kept in range(most + 1):
        for checkpointed in range(kept + 1):
            board.model.action(
                "UncleanShutdown",
                {"broker": replica, "kept": kept, "checkpointedHighWatermark": checkpointed},
                events=[Note(replica, "stops without warning")],
                guards=[when(lambda process: process.up, slots.process[replica])],
                effects=[
                    then(slots.log[replica], lose(kept, checkpointed), slots.log[replica]),
                    then(slots.process[replica], lambda process: _down(process, NO_BROKER_EPOCH), slots.process[replica]),
                    *_off(board, replica),
                    board.spend("unclean_shutdowns"),
                ],
            )


def _add_clean_stop(board: Board, replica: BrokerId) -> None:
    slots = board.slots

    def begin(process: Process) -> object:
        if process.life.state != BrokerState.RUNNING:
            return REFUSED
        return process._replace(life=begin_controlled_shutdown(process.life).state)

    board.model.action(
        "BeginControlledShutdown",
        {"broker": replica},
        events=[Note(replica, "is told to stop")],
        guards=[when(lambda process: process.up and process.published, slots.process[replica])],
        effects=[then(slots.process[replica], begin, slots.process[replica]), board.spend("clean_shutdowns")],
    )

    waits = when(
        lambda process: process.up and process.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        slots.process[replica],
    )
    off = [
        then(slots.log[replica], lambda log: recover(after_clean_stop(log)).local, slots.log[replica]),
        *_off(board, replica),
    ]

    def stopped(process: Process) -> Process:
        noted = next(effect for effect in stop(process.life).effects if isinstance(effect, CleanShutdown))
        return _down(process, previous_broker_epoch((noted.broker_epoch,)))

    for successor in board.brokers:
        asks = Message(replica, CONTROLLER, "heartbeat: wants to stop")

        def decide(cluster: Cluster, process: Process, lag: int, successor: BrokerId = successor) -> ControllerStep:
            return heartbeat(board, cluster, replica, process, lag, successor, shutdown=True)

        def hears(step: ControllerStep, process: Process) -> BrokerState:
            answer = answer_of(step)
            assert isinstance(answer, BrokerHeartbeatResponse)
            return handle_heartbeat_response(process.life, answer).state.state

        def wait(cluster: Cluster, process: Process, lag: int, decide=decide, successor=successor) -> object:  # type: ignore[no-untyped-def]
            step = decide(cluster, process, lag)
            after = cluster_of(step.state)
            if hears(step, process) == BrokerState.SHUTTING_DOWN or not appended(step):
                return REFUSED
            return after if is_the_choice(cluster, after, successor, replica) else REFUSED

        def leave(cluster: Cluster, process: Process, lag: int, decide=decide, successor=successor) -> object:  # type: ignore[no-untyped-def]
            step = decide(cluster, process, lag)
            after = cluster_of(step.state)
            if hears(step, process) != BrokerState.SHUTTING_DOWN or not appended(step):
                return REFUSED
            return after if is_the_choice(cluster, after, successor, replica) else REFUSED

        reads = (slots.cluster, slots.process[replica], slots.lag[replica])
        board.model.action(
            "AskToStop",
            {"broker": replica, "successor": successor},
            events=[asks, Message(CONTROLLER, replica, "wait")],
            guards=[waits],
            effects=[then(slots.cluster, wait, *reads), *board.published()],
        )
        published = board.published()
        without_older = [effect for effect in published if slots.older not in effect.writes]
        lag_of_others = [effect for effect in without_older if slots.lag[replica] not in effect.writes]
        others = [slots.lag[other] for other in board.brokers if other != replica]
        board.model.action(
            "StopCleanly",
            {"broker": replica, "successor": successor},
            events=[asks, Message(CONTROLLER, replica, "stop"), Note(replica, "flushes all, and stops")],
            guards=[waits],
            effects=[
                then(slots.cluster, leave, *reads),
                *[effect for effect in off if slots.older not in effect.writes],
                then(slots.process[replica], stopped, slots.process[replica]),
                *lag_of_others,
                then(slots.older, _with_image_of_others, slots.older, slots.cluster, *others),
            ],
        )
    board.model.action(
        "StopWithoutLeave",
        {"broker": replica},
        events=[Note(replica, "has waited too long, flushes all, and stops")],
        guards=[waits],
        effects=[*off, then(slots.process[replica], stopped, slots.process[replica])],
    )


def _with_image_of_others(older: tuple, cluster: Cluster, *lags: int) -> tuple:  # type: ignore[type-arg]
    from model_check.models.kafka.board import _with_image

    return _with_image(older, cluster, max(lags))


# ---- coming back


def _add_start(board: Board, replica: BrokerId) -> None:
    slots = board.slots

    def start(process: Process) -> Process:
        return Process(True, start_again(process.life, process.noted))

    board.model.action(
        "Start",
        {"broker": replica},
        events=[Note(replica, "starts")],
        guards=[when(lambda process: not process.up, slots.process[replica])],
        effects=[then(slots.process[replica], start, slots.process[replica])],
    )


def _add_registration(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots, control = board.slots, board.control

    def decide(cluster: Cluster, process: Process) -> ControllerStep:
        asked = next_communication(process.life, Offset(0)).effects[0]
        assert isinstance(asked, SendToController) and isinstance(asked.message, BrokerRegistrationRequest)
        # The session of a run that is down has expired, or the answer would be DUPLICATE_BROKER_REGISTRATION.
        end_offset = Offset(registered(cluster, replica).broker_epoch + 1)
        state = controller_state(cluster, first=successor, silent=replica, end_offset=end_offset)
        state = state._replace(image=state.image._replace(end_offset=end_offset))
        return handle_registration(control.protocol, control.settings, state, asked.message, NOW)

    def register(cluster: Cluster, process: Process) -> object:
        if process.life.broker_epoch != NO_BROKER_EPOCH:
            return REFUSED
        step = decide(cluster, process)
        after = cluster_of(step.state)
        if not appended(step) or not is_the_choice(cluster, after, successor, replica):
            return REFUSED
        return after, _answered(step, process)

    def _answered(step: ControllerStep, process: Process) -> Process:
        response = answer_of(step)
        assert isinstance(response, BrokerRegistrationResponse)
        return process._replace(life=handle_registration_response(answers_this_run, process.life, response).state)

    others = [slots.lag[other] for other in board.brokers if other != replica]
    board.model.action(
        "Register",
        {"broker": replica, "successor": successor},
        events=[Message(replica, CONTROLLER, "registration"), Message(CONTROLLER, replica, "its broker epoch")],
        guards=[
            when(
                lambda process: process.up and process.life.broker_epoch == NO_BROKER_EPOCH, slots.process[replica]
            ),
        ],
        effects=[
            then((slots.cluster, slots.process[replica]), register, slots.cluster, slots.process[replica]),
            then(slots.lag[replica], lambda lag: 0, slots.lag[replica]),
            *[
                effect
                for effect in board.published()
                if slots.older not in effect.writes and slots.lag[replica] not in effect.writes
            ],
            then(slots.older, _with_image_of_others, slots.older, slots.cluster, *others),
        ],
    )


def _add_first_image(board: Board, replica: BrokerId, steps: int) -> None:
    slots, rules = board.slots, board.rules[replica]
    change = board.replayed(replica, steps)
    party = (slots.log[replica], slots.role[replica], slots.memory[replica], slots.exchange[replica], slots.acknowledged)

    def replay(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: Exchange,
        known: frozenset[Acknowledged],
        fetcher: FetchState,
        process: Process,
        change: Change,
    ) -> object:
        own = broker(rules, replica, process, change.after.brokers)
        before = leading(log, role, memory)._replace(fetcher=fetcher)
        topic = change.after.topic
        asked: LocalChange = local_change(None, None if topic == NO_TOPIC else _whole(topic), replica)
        step = apply_change(own, before, asked, LATE)
        caught_up = handle_heartbeat_response(
            process.life, BrokerHeartbeatResponse(_NONE, is_caught_up=True, is_fenced=True)
        ).state
        ready = process._replace(life=set_ready_to_unfence(caught_up).state, published=True)
        return (*led_after(before, step, exchange, known), fetcher_of(rules, step.state), ready)

    board.model.action(
        "TakeFirstImage",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "has caught up with the metadata")],
        guards=[
            when(lambda change: change is not None, change),
            when(
                lambda process: process.up and not process.published and process.life.broker_epoch != NO_BROKER_EPOCH,
                slots.process[replica],
            ),
        ],
        effects=[
            then(
                (*party, slots.fetcher[replica], slots.process[replica]),
                replay,
                *party,
                slots.fetcher[replica],
                slots.process[replica],
                change,
            ),
            *(read_effects(board, replica, steps) if steps else ()),
        ],
    )


def _whole(topic):  # type: ignore[no-untyped-def]
    from model_check.models.kafka.cluster import registration

    return registration(topic)


def _add_unfencing(board: Board, replica: BrokerId, successor: BrokerId) -> None:
    slots = board.slots

    def unfence(cluster: Cluster, process: Process, lag: int) -> object:
        if not registered(cluster, replica).fenced:
            return REFUSED
        step = heartbeat(board, cluster, replica, process, lag, successor, shutdown=False)
        after = cluster_of(step.state)
        if not appended(step) or not is_the_choice(cluster, after, successor, replica):
            return REFUSED
        answer = answer_of(step)
        assert isinstance(answer, BrokerHeartbeatResponse)
        return after, process._replace(life=handle_heartbeat_response(process.life, answer).state)

    board.model.action(
        "Unfence",
        {"broker": replica, "successor": successor},
        events=[Message(replica, CONTROLLER, "heartbeat"), Message(CONTROLLER, replica, "you take part")],
        guards=[
            when(
                lambda process: process.published and process.life.state in (BrokerState.RECOVERY, BrokerState.RUNNING),
                slots.process[replica],
            )
        ],
        effects=[
            then(
                (slots.cluster, slots.process[replica]),
                unfence,
                slots.cluster,
                slots.process[replica],
                slots.lag[replica],
            ),
            *board.published(),
        ],
    )


from spec.values import Error  # noqa: E402

_NONE = Error.NONE
__all__ = ["LocalLog", "add_lifecycle"]
