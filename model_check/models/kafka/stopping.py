"""The state that a stopped broker leaves behind, with either kind of controller."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from kspec.model_check.core.model import REFUSED, Effect, Note, then, when
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.late import gone_with
from kspec.model_check.models.kafka.party import Log
from kspec.model_check.models.kafka.values import NO_EXCHANGE, NO_MEMORY, AlterPartitionExchange, Process, RequestState
from kspec.model_check.models.parts import NO_ROLE
from kspec.spec.broker.lifecycle import CleanShutdown, stop
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.recovery import (
    CheckpointedOffsets,
    after_kill,
    after_power_loss,
    previous_broker_epoch,
    recover,
    recovered_epochs,
)
from kspec.spec.broker.rules.fetcher import NOT_FETCHING
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory, Neighbours
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.stored_log import StoredLog
from kspec.spec.values import NO_BROKER_EPOCH, NO_EPOCH, BrokerEpoch, BrokerId, Offset


def _still_sent(exchange: AlterPartitionExchange) -> AlterPartitionExchange:
    """A request that was sent may still arrive, and its answer is lost."""
    return exchange if exchange.state == RequestState.SENT else NO_EXCHANGE


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


def add_unclean_stops(board: Board, replica: BrokerId, others: list[Effect]) -> None:
    """Add the ends of a process without warning that the budgets allow; `others`: further effects."""
    if board.parameters["unclean_shutdowns"]:
        _add_power_loss(board, replica, others)
    if board.parameters["epoch_file_losses"]:
        _add_epoch_file_loss(board, replica, others)


def _add_power_loss(board: Board, replica: BrokerId, others: list[Effect]) -> None:
    """Add the end of a process without warning, with any part of its log lost."""
    most = board.parameters["values"]

    def lose(kept: int, checkpointed: int) -> Callable[[Log], object]:
        def effect(log: Log) -> object:
            if kept > log.log.end_offset or checkpointed > min(kept, log.high_watermark):
                return REFUSED
            survived = after_power_loss(log, CheckpointedOffsets(Offset(checkpointed)), Offset(kept))
            return recover(survived).local

        return effect

    for kept in range(most + 1):
        for checkpointed in range(kept + 1):
            arguments = {"broker": replica, "kept": kept, "checkpointedHighWatermark": checkpointed}
            spent = board.spend("unclean_shutdowns")
            _add_unclean_stop(board, replica, "UncleanShutdown", arguments, lose(kept, checkpointed), [*others, spent])


def _add_epoch_file_loss(board: Board, replica: BrokerId, others: list[Effect]) -> None:
    """Add the end of a process without warning, with its whole log on the disk, and the epoch file beside it lost or behind.

    All of the log is below the recovery point, so that the start reads no batch; what the file then has counts, if the
    release believes it.
    """
    protocol = board.rules[replica].protocol

    def lose(left: EpochsLeft, checkpointed: int) -> Callable[[Log], object]:
        def effect(log: Log) -> object:
            stored = log.log
            assert isinstance(stored, StoredLog)
            known = stored.epoch_history.entries
            if checkpointed > log.high_watermark or len(known) < LEAST_KNOWN[left]:
                return REFUSED
            file = EpochHistory(known[:-1] if left == EpochsLeft.ALL_BUT_LAST else ())
            history = epochs_at_start(protocol, file, stored)
            found = stored._replace(epochs=stored.epochs._replace(epoch_history=history))
            checkpoints = CheckpointedOffsets(Offset(checkpointed), found.end_offset)
            return recover(after_kill(LocalLog(found, log.high_watermark), checkpoints)).local

        return effect

    for left in EpochsLeft:
        for checkpointed in range(board.parameters["values"] + 1):
            arguments = {"broker": replica, "left": left.value, "checkpointedHighWatermark": checkpointed}
            spent = board.spend("epoch_file_losses")
            _add_unclean_stop(board, replica, "LoseEpochFile", arguments, lose(left, checkpointed), [*others, spent])


class EpochsLeft(Enum):
    """The entries that are left in an epoch file."""

    NONE = "none"
    ALL_BUT_LAST = "all but the last"


LEAST_KNOWN: Mapping[EpochsLeft, int] = {EpochsLeft.NONE: 1, EpochsLeft.ALL_BUT_LAST: 2}
"""The least number of entries of a file, so that each way to lose some is another one."""


def epochs_at_start(protocol: BrokerProtocol, file: EpochHistory, log: StoredLog) -> EpochHistory:
    """The epoch history of a log that is opened with this file; it is made anew if the release does not believe it."""
    start, end = log.start_offset, log.end_offset
    epochs = [record.leader_epoch for record in log.records]
    history = recovered_epochs(file, start, end, ())

    def around(offset: Offset) -> Neighbours:
        before, following = epochs[: offset - start], epochs[offset - start :]
        return Neighbours(before[-1] if before else NO_EPOCH, following[0] if following else NO_EPOCH)

    neighbours = tuple(around(entry.start_offset) for entry in history.entries)
    if protocol.believes_epochs(history, start, end, neighbours, epochs[-1] if epochs else NO_EPOCH):
        return history
    first_of_each = {epoch: Offset(start + number) for number, epoch in reversed(list(enumerate(epochs)))}
    found = tuple(EpochEntry(epoch, first) for epoch, first in sorted(first_of_each.items()))
    return recovered_epochs(EpochHistory(), start, end, found)


def _add_unclean_stop(
    board: Board,
    replica: BrokerId,
    name: str,
    arguments: Mapping[str, Any],
    lose: Callable[[Log], object],
    others: list[Effect],
) -> None:
    slots = board.slots
    board.model.action(
        name,
        arguments,
        events=[Note(replica, "stops without warning")],
        guards=[when(lambda process: process.up, slots.process[replica])],
        effects=[
            then(slots.log[replica], lose, slots.log[replica]),
            then(slots.process[replica], lambda process: _down(process, NO_BROKER_EPOCH), slots.process[replica]),
            *without_memory(board, replica),
            *gone_with(board, replica),
            *others,
        ],
    )
