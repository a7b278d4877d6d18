"""Starting again: what a broker makes of a log and its checkpoints as they survived, cleanly stopped or not.

A record is committed when the brokers have it in their page cache, not when it is on a disk. A killed process loses
nothing of its log; a loss of power loses what was not flushed, and a clean stop flushes everything.
"""

from typing import Generic, NamedTuple

from spec.broker.partition import Partition
from spec.log.algebra import LogT
from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.log.local_log import LocalLog, high_watermark_from_checkpoint
from spec.log.producers import ProducerBatch, rebuilt_from
from spec.values import NO_BROKER_EPOCH, UNKNOWN_OFFSET, BrokerEpoch, Offset, PartitionId


class Checkpoints(NamedTuple):
    """What the files of the log directory say of one partition (offsets); 0 where they say nothing.

    Kafka: `replication-offset-checkpoint`, `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`.
    """

    high_watermark: Offset = Offset(0)
    recovery_point: Offset = Offset(0)
    log_start: Offset = Offset(0)


class Survived(NamedTuple, Generic[LogT]):
    """What is left of a replica once its broker has stopped.

    `log`: the segment files with the epoch file. `first_invalid`: the offset of the first batch from the recovery point on
    that is torn or corrupt, `UNKNOWN_OFFSET` if there is none. `clean`: the file `.kafka_cleanshutdown` was there.
    """

    log: LogT
    checkpoints: Checkpoints = Checkpoints()
    clean: bool = False
    first_invalid: Offset = UNKNOWN_OFFSET


class Recovered(NamedTuple, Generic[LogT]):
    """A replica's log when it is opened, and up to where it is known to be on the disk. Kafka: `LoadedLogOffsets`."""

    local: LocalLog[LogT]
    recovery_point: Offset


def checkpoint(local: LocalLog[LogT], recovery_point: Offset) -> Checkpoints:
    """What is written to the files from time to time: high watermarks every 5 s, the others every 60 s, all at a clean stop.

    **Kafka:** `ReplicaManager.checkpointHighWatermarks`, `LogManager.checkpointLogRecoveryOffsets`,
    `checkpointLogStartOffsets`.
    """
    return Checkpoints(local.high_watermark, recovery_point, local.log.start_offset)


def is_checkpointed(log_start: Offset, first_segment: Offset) -> bool:
    """Whether a log start is in the file at all: only where the first segment does not show it.

    **Kafka:** `LogManager.checkpointLogStartOffsetsInDir`.
    """
    return log_start > first_segment


def recovery_point_after_truncation(recovery_point: Offset, end_offset: Offset) -> Offset:
    """What was cut off is not on the disk. **Kafka:** `LogManager.truncateTo`, `LocalLog.truncateTo`."""
    return min(recovery_point, end_offset)


# ---- stopping


def after_clean_stop(local: LocalLog[LogT]) -> Survived[LogT]:
    """Everything is flushed and noted. **Kafka:** `LogManager.shutdown`."""
    return Survived(local.log, checkpoint(local, local.log.end_offset), clean=True)


def after_kill(local: LocalLog[LogT], checkpoints: Checkpoints) -> Survived[LogT]:
    """The operating system still writes what it was given; the checkpoints are as old as they are."""
    return Survived(local.log, checkpoints)


def after_power_loss(local: LocalLog[LogT], checkpoints: Checkpoints, flushed_end: Offset) -> Survived[LogT]:
    """Records from `flushed_end` on are gone; nothing below the recovery point is."""
    assert flushed_end >= min(checkpoints.recovery_point, local.log.end_offset), "what is flushed survives"
    return Survived(local.log.truncate_to(flushed_end), checkpoints)


# ---- starting


def recover(survived: Survived[LogT]) -> Recovered[LogT]:
    """The log as a starting broker opens it.

    After a clean stop nothing is looked at. Otherwise everything from the recovery point on is read, and cut at the first
    batch that is not valid. A log that then ends before where it is to start is emptied, and starts there without any
    epoch. The high watermark is the checkpointed one, within the log.

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
    """The epoch history of a log that is opened: what the file says within the log, and later epochs found in its batches.

    The file may say too much, for it is written at once when an epoch begins, and later when the log is cut.

    Parameters: the history in the file; where the log starts and ends; the first offset of each epoch in the batches that
    were read, in order.

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
    """A replica whose broker has just started: it neither leads nor follows until it hears the metadata.

    `batches` are those in its log whose producers are idempotent.

    **Kafka:** `ReplicaManager.getOrCreatePartition`, `Partition.createLogIfNotExists`.
    """
    return Partition(partition_id, recovered.local, producers=rebuilt_from(batches))


# ---- the broker as a whole


def previous_broker_epoch(noted: tuple[BrokerEpoch, ...]) -> BrokerEpoch:
    """The epoch of the incarnation that stopped cleanly before this one; `NO_BROKER_EPOCH` unless all log directories agree.

    `noted`: what `.kafka_cleanshutdown` says in each directory, `NO_BROKER_EPOCH` where it is missing or says nothing.

    **Kafka:** `LogManager.readBrokerEpochFromCleanShutdownFiles` (KIP-966).
    """
    agree = len(noted) > 0 and all(epoch == noted[0] for epoch in noted)
    return noted[0] if agree else NO_BROKER_EPOCH
