"""Restarting: how a broker opens a log and its checkpoints after a clean or an unclean stop.

A record is committed when the brokers have it in their page cache, not when it is on a disk. A killed process loses nothing
of its log. A loss of power loses the records that were not flushed. A clean stop flushes everything.
"""

from enum import Enum
from typing import Generic, NamedTuple

from kspec.spec.broker.partition import Partition
from kspec.spec.log.algebra import LogT
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.log.local_log import LocalLog, high_watermark_from_checkpoint
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Offset,
    PartitionId,
)


class CheckpointedOffsets(NamedTuple):
    """One partition's offsets in the files of the log directory; 0 where a file does not list it.

    Kafka: `replication-offset-checkpoint`, `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`.
    """

    high_watermark: Offset = Offset(0)
    recovery_point: Offset = Offset(0)
    log_start: Offset = Offset(0)


class SurvivingFiles(NamedTuple, Generic[LogT]):
    """A replica's files after its broker has stopped.

    `log`: the segment files with the epoch file. `first_invalid`: the offset of the first incomplete or corrupt batch from
    the recovery point on, `UNKNOWN_OFFSET` if there is none. `clean`: the file `.kafka_cleanshutdown` was there.
    """

    log: LogT
    checkpoints: CheckpointedOffsets = CheckpointedOffsets()
    clean: bool = False
    first_invalid: Offset = UNKNOWN_OFFSET


class RecoveredLog(NamedTuple, Generic[LogT]):
    """A replica's log when it is opened, and the offset up to which it is known to be on the disk.

    Kafka: `LoadedLogOffsets`.
    """

    local: LocalLog[LogT]
    recovery_point: Offset


def checkpoint(local: LocalLog[LogT], recovery_point: Offset) -> CheckpointedOffsets:
    """The checkpoints that a broker writes: high watermarks every 5 s, the others every 60 s, all at a clean stop.

    **Kafka:** `ReplicaManager.checkpointHighWatermarks`, `LogManager.checkpointLogRecoveryOffsets`,
    `checkpointLogStartOffsets`.
    """
    return CheckpointedOffsets(local.high_watermark, recovery_point, local.log.start_offset)


def is_checkpointed(log_start: Offset, first_segment: Offset) -> bool:
    """Whether the file lists a log start at all: only where the first segment starts earlier.

    **Kafka:** `LogManager.checkpointLogStartOffsetsInDir`.
    """
    return log_start > first_segment


def recovery_point_after_truncation(recovery_point: Offset, end_offset: Offset) -> Offset:
    """The recovery point after a truncation is at most the new log end.

    **Kafka:** `LogManager.truncateTo`, `LocalLog.truncateTo`.
    """
    return min(recovery_point, end_offset)


# ---- stopping


def after_clean_stop(local: LocalLog[LogT]) -> SurvivingFiles[LogT]:
    """After a clean stop everything is flushed and checkpointed. **Kafka:** `LogManager.shutdown`."""
    return SurvivingFiles(local.log, checkpoint(local, local.log.end_offset), clean=True)


def after_kill(local: LocalLog[LogT], checkpoints: CheckpointedOffsets) -> SurvivingFiles[LogT]:
    """After the process is killed the operating system still writes the page cache; the checkpoints stay as they are."""
    return SurvivingFiles(local.log, checkpoints)


def after_power_loss(local: LocalLog[LogT], checkpoints: CheckpointedOffsets, flushed_end: Offset) -> SurvivingFiles[LogT]:
    """After a loss of power the records from `flushed_end` on are lost; no record below the recovery point is."""
    assert flushed_end >= min(checkpoints.recovery_point, local.log.end_offset), "what is flushed survives"
    return SurvivingFiles(local.log.truncate_to(flushed_end), checkpoints)


# ---- starting


def recover(survived: SurvivingFiles[LogT]) -> RecoveredLog[LogT]:
    """The log as a starting broker opens it.

    After a clean stop no batch is checked. Otherwise every batch from the recovery point on is read, and the log is
    truncated at the first invalid one. A log that then ends before its log start is emptied, and starts there without any
    epoch. The high watermark is the checkpointed one, kept within the log.

    **Kafka:** `LogLoader.load`, `recoverLog`, `deleteSegmentsIfLogStartGreaterThanLogEnd`; `Partition.createLog`.
    """
    log, checkpoints = survived.log, survived.checkpoints
    if not survived.clean and survived.first_invalid != UNKNOWN_OFFSET:
        log = log.truncate_to(survived.first_invalid)
    log = log.truncate_to(log.end_offset)
    if log.end_offset < checkpoints.log_start:
        log = log.restart_at(checkpoints.log_start)
    elif log.start_offset < checkpoints.log_start:
        log = log.start_at(checkpoints.log_start)
    recovery_point = log.end_offset if survived.clean else min(max(checkpoints.recovery_point, Offset(0)), log.end_offset)
    high_watermark = high_watermark_from_checkpoint(log, checkpoints.high_watermark)
    return RecoveredLog(LocalLog(log, high_watermark), recovery_point)


def is_clean_for(clean: bool, recovery_point: Offset, log_end: Offset) -> bool:
    """Whether a clean stop counts for one log: all of it was flushed then, so it ends at its recovery point.

    A log that ends elsewhere was changed after the stop, or the stop was not the last one. It is recovered as after an
    unclean stop, and a broker with such a log does not say that it stopped cleanly.

    Parameters: whether `.kafka_cleanshutdown` was there; the log's offset in `recovery-point-offset-checkpoint`, 0 if that
    does not list it; where its last whole batch ends.

    **Kafka:** `LogManager.shutdown` writes both; `LogLoader.recoverLog` believes the first, and serves the rest of the log.
    """
    return clean and log_end == recovery_point


def explains_start(clean: bool, log_start: Offset, log_end: Offset) -> bool:
    """Whether a log may end before its log start: only after an unclean stop, when the records above were not flushed.

    **Kafka:** `LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd` deletes all segments in either case.
    """
    return not clean or log_start <= log_end


def begins_as_left(file: EpochHistory, log_start: Offset) -> bool:
    """Whether a log begins where it did when its broker stopped cleanly: no later than the first entry of the epoch file.

    Somebody who deletes the oldest segments by hand moves the log start.

    **Kafka:** `LogLoader.load` takes the first segment that is there, and says nothing.
    """
    return not file.entries or log_start <= file.entries[0].start_offset


def may_be_elected(registration: PartitionRegistration, broker: BrokerId) -> bool:
    """Whether the controller may let a replica lead without the word of anybody else: it is in the ISR, or was until it
    stopped uncleanly.

    A broker that stopped uncleanly is taken out of the ISR when it registers. If nobody else is left, it stays the last that
    is known to have had all records, and leads again (KIP-966).

    **Kafka:** `PartitionChangeBuilder.electLeader`, `canElectLastKnownLeader`.
    """
    return broker in registration.isr | registration.elr | registration.last_known_elr


def may_begin_anew(clean: bool, recovery_point: Offset, may_lead: bool) -> bool:
    """Whether a replica may begin with an empty log, because its folder is not there, or is another topic's.

    Not if it is known that the folder was on the disk, and the replica may be elected: it would lead with an empty log, and
    the others would truncate. Otherwise it copies all from its leader.

    After a clean stop each log that is listed was there. After an unclean one only a log that was flushed was: a folder that
    is new goes with the power, and that replica cannot be told from one that was never made.

    Parameters: whether the broker stopped cleanly; the log's offset in `recovery-point-offset-checkpoint`, `UNKNOWN_OFFSET`
    if that does not list it; whether the replica may be elected, by the metadata.

    **Kafka:** `LogManager.getOrCreateLog` makes a new log as long as no log directory is offline.
    """
    was_there = recovery_point > 0 or (clean and recovery_point != UNKNOWN_OFFSET)
    return not (was_there and may_lead)


def recovered_epochs(
    file: EpochHistory, start_offset: Offset, end_offset: Offset, found: tuple[EpochEntry, ...]
) -> EpochHistory:
    """The epoch history of a log that is opened: the entries of the file that lie within the log, and later epochs of its
    batches.

    The file may have too many entries: it is written at once when an epoch begins, but only later when the log is truncated.

    Parameters: the history in the file; the log's start and end; the first offset of each epoch in the batches that were
    read, in order.

    **Kafka:** `LogLoader.load`, `recoverSegment`, `LogSegment.recover`, `LeaderEpochFileCache`.
    """
    history = file
    for entry in found:
        if entry.leader_epoch > history.latest_epoch:
            history = history.assign(entry.leader_epoch, entry.start_offset)
    return history.truncate_from_end(end_offset).truncate_from_start(start_offset)


class EpochOrder(Enum):
    """The order of a batch's epoch and those of the batches before it."""

    SAME = "the same, or none"
    NEW = "a later one"
    BACK = "an earlier one, which cannot be"


def next_epoch(latest: Epoch, epoch: Epoch) -> EpochOrder:
    """The order of a batch's epoch and the latest one before it. Epochs never go back in a log.

    **Kafka:** `LogSegment.recover` notes a later one, and lets an earlier one be.
    """
    if epoch in (NO_EPOCH, latest):
        return EpochOrder.SAME
    return EpochOrder.NEW if epoch > latest else EpochOrder.BACK


NO_TRANSACTIONS = PartitionTransactions()


def opened(
    partition_id: PartitionId,
    recovered: RecoveredLog[LogT],
    transactions: PartitionTransactions = NO_TRANSACTIONS,
) -> Partition[LogT]:
    """A replica whose broker has just started: it neither leads nor follows until it has metadata.

    `transactions`: what the batches in its log tell of producers and transactions.

    **Kafka:** `ReplicaManager.getOrCreatePartition`, `Partition.createLogIfNotExists`.
    """
    return Partition(partition_id, recovered.local, transactions=transactions)


# ---- the broker as a whole


def is_noted_as_clean(was_clean: bool, logs_loaded: bool) -> bool:
    """Whether an orderly stop may be noted as clean: the last one was, or all logs have been loaded and recovered since.

    A broker that stops before it has read metadata has not looked at logs that a loss of power may have damaged.

    **Kafka:** `LogManager.shutdown`, with `hadCleanShutdownFlags` and `loadLogsCompletedFlags` (KAFKA-10471).
    """
    return was_clean or logs_loaded


def previous_broker_epoch(noted: tuple[BrokerEpoch, ...]) -> BrokerEpoch:
    """The broker epoch of the incarnation before, if it stopped cleanly; `NO_BROKER_EPOCH` unless all log directories agree.

    `noted`: the broker epoch in each directory's `.kafka_cleanshutdown`, `NO_BROKER_EPOCH` where the file or the epoch is
    missing.

    **Kafka:** `LogManager.readBrokerEpochFromCleanShutdownFiles` (KIP-966).
    """
    agree = len(noted) > 0 and all(epoch == noted[0] for epoch in noted)
    return noted[0] if agree else NO_BROKER_EPOCH
