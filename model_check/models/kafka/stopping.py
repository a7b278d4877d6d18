"""The state that a stopped broker leaves behind, with either kind of controller."""

from collections.abc import Callable

from model_check.core.model import REFUSED, Effect, Note, then, when
from model_check.models.kafka.board import Board
from model_check.models.kafka.late import gone_with
from model_check.models.kafka.party import Log
from model_check.models.kafka.values import NO_EXCHANGE, NO_MEMORY, Exchange, Process, Under
from model_check.models.parts import NO_ROLE
from spec.broker.lifecycle import CleanShutdown, stop
from spec.broker.recovery import Checkpoints, after_power_loss, previous_broker_epoch, recover
from spec.broker.rules.fetcher import NOT_FETCHING
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Offset


def _still_sent(exchange: Exchange) -> Exchange:
    """A request that was sent may still arrive, and its answer is lost."""
    return exchange if exchange.state == Under.SENT else NO_EXCHANGE


def without_memory(board: Board, replica: BrokerId, *, keeps_exchange: bool = False) -> list[Effect]:
    """The effects of a stop on the memory and (unless the caller has its own) on the request to the controller."""
    slots = board.slots
    party, exchange = (slots.role[replica], slots.memory[replica], slots.fetcher[replica]), slots.exchange[replica]
    gone = then(party, lambda: (NO_ROLE, NO_MEMORY, NOT_FETCHING))
    return [gone] if keeps_exchange else [gone, then(exchange, _still_sent, exchange)]


def _down(process: Process, noted: BrokerEpoch) -> Process:
    life = BrokerLifecycle(process.life.broker, process.life.incarnation, BrokerState.SHUTTING_DOWN)
    return Process(False, life, noted=noted)


def down_after_clean_stop(process: Process) -> Process:
    """A process that has stopped cleanly, with its clean-shutdown file."""
    noted = next(effect for effect in stop(process.life).effects if isinstance(effect, CleanShutdown))
    return _down(process, previous_broker_epoch((noted.broker_epoch,)))


def add_power_loss(board: Board, replica: BrokerId, others: list[Effect]) -> None:
    """Add the end of a process without warning, with any part of its log lost; `others`: further effects."""
    slots, most = board.slots, board.parameters["values"]

    def lose(kept: int, checkpointed: int) -> Callable[[Log], object]:
        def effect(log: Log) -> object:
            if kept > log.log.end_offset or checkpointed > min(kept, log.high_watermark):
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
                    *without_memory(board, replica),
                    *gone_with(board, replica),
                    *others,
                    board.spend("unclean_shutdowns"),
                ],
            )
