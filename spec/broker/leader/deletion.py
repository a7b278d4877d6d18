"""Deleting records from the start of a log: by request, and by retention."""

from dataclasses import replace

from spec.broker.effects import LogStartMoved, Persist
from spec.broker.partition import Broker, Handled, Partition, leads
from spec.broker.rules.offsets import check_deletion, deletion_offset, is_deleted, low_watermark
from spec.log.algebra import LogT
from spec.log.local_log import move_start, retention_offset
from spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from spec.step import Reply, Step
from spec.values import Error, Offset


def handle_delete_records(
    broker: Broker, partition: Partition[LogT], request: DeleteRecordsRequest, now: int
) -> Handled[LogT]:
    """Delete up to the requested offset. `answer_deletion` tells when the client is answered.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `POLICY_VIOLATION`, `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `Partition.deleteRecordsOnLeader`.
    """
    high_watermark = partition.local.high_watermark
    offset = deletion_offset(request.offset, high_watermark)
    deletes = broker.settings.deletes_records
    error = check_deletion(leads(broker, partition), deletes, offset, high_watermark)
    if error != Error.NONE:
        return Step(partition, (Reply(DeleteRecordsResponse(error)),))
    moved = delete_records(partition, offset)
    deletion = DeleteRecordsResponse(error, offset, low_watermark_of(broker, moved.state))
    return Step(moved.state, (*moved.effects, Reply(deletion)))


def answer_deletion(broker: Broker, partition: Partition[LogT], deletion: DeleteRecordsResponse) -> DeleteRecordsResponse:
    """What the client is told of a deletion on the leader: that it is done, or that the leader has resigned.

    `REQUEST_TIMED_OUT`: live followers still have the records. The client waits, and is told so when its time is over.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `REQUEST_TIMED_OUT`.

    **Kafka:** `DelayedDeleteRecords.tryComplete`, and its constructor for the answer after the time.
    """
    if not leads(broker, partition):
        return DeleteRecordsResponse(Error.NOT_LEADER_OR_FOLLOWER)
    low = low_watermark_of(broker, partition)
    if is_deleted(deletion, low):
        return replace(deletion, low_watermark=low)
    return replace(deletion, error=Error.REQUEST_TIMED_OUT)


def low_watermark_of(broker: Broker, partition: Partition[LogT]) -> Offset:
    """The low watermark: as far as the leader knows, no live replica has records below this offset.

    **Kafka:** `Partition.lowWatermarkIfLeader`.
    """
    return low_watermark(partition.local.log.start_offset, partition.followers, broker.brokers)


def delete_records(partition: Partition[LogT], offset: Offset) -> Handled[LogT]:
    """Move the log start to `offset`, unless it is later already or `offset` is not committed. Followers learn it by
    fetching.

    **Kafka:** `UnifiedLog.maybeIncrementLogStartOffset`.
    """
    moved = move_start(partition.local, offset)
    if moved.local == partition.local:
        return Step(partition)
    return Step(partition._replace(local=moved.local), (Persist(LogStartMoved(offset)),))


def apply_retention(partition: Partition[LogT], wanted: Offset) -> Handled[LogT]:
    """Delete the records that exceed the time or size limit, as far as they are committed; on leader and follower alike.

    **Kafka:** `UnifiedLog.deleteOldSegments`.
    """
    return delete_records(partition, retention_offset(partition.local, wanted))
