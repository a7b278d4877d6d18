"""Restarting: how a broker opens a log and its checkpoints after a clean or an unclean stop.

A record is committed when the brokers have it in their page cache, not when it is on a disk. A killed process loses nothing
of its log. A loss of power loses the records that were not flushed. A clean stop flushes everything.
"""

from typing import Generic, NamedTuple

from spec.broker.partition import Partition
from spec.log.algebra import LogT
from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.log.local_log import LocalLog, high_watermark_from_checkpoint
from spec.log.producers import ProducerBatch, rebuilt_from
from spec.values import NO_BROKER_EPOCH, UNKNOWN_OFFSET, BrokerEpoch, Offset, PartitionId


class Checkpoints(NamedTuple):
    """One partition's offsets in the files of the log directory; 0 where a file does not list it.

    Kafka: `replication-offset-checkpoint`, `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`.
    """

    high_watermark: Offset = Offset(0)
    recovery_point: Offset = Offset(0)
    log_start: Offset = Offset(0)


class Survived(NamedTuple, Generic[LogT]):
    """A replica's files after its broker has stopped.

    `log`: the segment files with the epoch file. `first_invalid`: the offset of the first incomplete or corrupt batch from
    the recovery point on, `UNKNOWN_OFFSET` if there is none. `clean`: the file `.kafka_cleanshutdown` was there.
    """

    log: LogT
    checkpoints: Checkpoints = Checkpoints()
    clean: bool = False
    first_invalid: Offset = UNKNOWN_OFFSET


class Recovered(NamedTuple, Generic[LogT]):
    """A replica's log when it is opened, and the offset up to which it is known to be on the disk.

    Kafka: `LoadedLogOffsets`.
    """

    local: LocalLog[LogT]
    recovery_point: Offset


def checkpoint(local: LocalLog[LogT], recovery_point: Offset) -> Checkpoints:
    """The checkpoints that a broker writes: high watermarks every 5 s, the others every 60 s, all at a clean stop.

    **Kafka:** `ReplicaManager.checkpointHighWatermarks`, `LogManager.checkpointLogRecoveryOffsets`,
    `checkpointLogStartOffsets`.
    """
    return Checkpoints(local.high_watermark, recovery_point, local.log.start_offset)


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


def after_clean_stop(local: LocalLog[LogT]) -> Survived[LogT]:
    """After a clean stop everything is flushed and checkpointed. **Kafka:** `LogManager.shutdown`."""
    return Survived(local.log, checkpoint(local, local.log.end_offset), clean=True)


def after_kill(local: LocalLog[LogT], checkpoints: Checkpoints) -> Survived[LogT]:
    """After the process is killed the operating system still writes the page cache; the checkpoints stay as they are."""
    return Survived(local.log, checkpoints)


def after_power_loss(local: LocalLog[LogT], checkpoints: Checkpoints, flushed_end: Offset) -> Survived[LogT]:
    """After a loss of power the records from `flushed_end` on are lost; no record below the recovery point is."""
    assert flushed_end >= min(checkpoints.recovery_point, local.log.end_offset), "what is flushed survives"
    return Survived(local.log.truncate_to(flushed_end), checkpoints)


# ---- starting


def recover(survived: Survived[LogT]) -> Recovered[LogT]:
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
    recovery_point = log.end_offset if survived.clean else min(checkpoints.recovery_point, log.end_offset)
    high_watermark = high_watermark_from_checkpoint(log, checkpoints.high_watermark)
    return Recovered(LocalLog(log, high_watermark), recovery_point)


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


def opened(
    partition_id: PartitionId, recovered: Recovered[LogT], batches: tuple[ProducerBatch, ...] = ()
) -> Partition[LogT]:
    """A replica whose broker has just started: it neither leads nor follows until it has metadata.

    `batches` are the batches in its log whose producers are idempotent.

    **Kafka:** `ReplicaManager.getOrCreatePartition`, `Partition.createLogIfNotExists`.
    """
    return Partition(partition_id, recovered.local, producers=rebuilt_from(batches))


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
