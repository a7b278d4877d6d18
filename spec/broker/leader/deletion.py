"""Deleting records from the start of a log: by request, and by retention."""

from dataclasses import replace

from kspec.spec.broker.effects import LogStartMoved, Persist
from kspec.spec.broker.partition import Broker, Handled, Partition, leads, with_producers
from kspec.spec.broker.rules.offsets import deletion_offset, is_deleted, low_watermark
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import move_start, retention_offset
from kspec.spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import Error, MonotonicMs, Offset


def handle_delete_records(
    broker: Broker, partition: Partition[LogT], request: DeleteRecordsRequest, now: MonotonicMs
) -> Handled[LogT]:
    """Delete up to the requested offset. `answer_deletion` tells when the client is answered.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `POLICY_VIOLATION`, `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `Partition.deleteRecordsOnLeader`.
    """
    high_watermark = partition.local.high_watermark
    offset = deletion_offset(request.offset, high_watermark)
    allowed = broker.protocol.may_delete(broker.settings.deletes_records, broker.settings.compacts_records)
    error = broker.protocol.check_deletion(leads(broker, partition), allowed, offset, high_watermark)
    moved = delete_records(partition, offset) if broker.protocol.deletes(error) else Step(partition)
    if moved.state != partition:
        log_start = moved.state.local.log.start_offset
        left = broker.protocol.producers_after_deletion(partition.producers, log_start)
        moved = Step(with_producers(moved.state, left), moved.effects)
    if error != Error.NONE:
        return Step(moved.state, (*moved.effects, Reply(DeleteRecordsResponse(error))))
    deletion = DeleteRecordsResponse(error, offset, low_watermark_of(broker, moved.state))
    return Step(moved.state, (*moved.effects, Reply(deletion)))


def answer_deletion(broker: Broker, partition: Partition[LogT], deletion: DeleteRecordsResponse) -> DeleteRecordsResponse:
    """The answer to a deletion on the leader: it is done, or the leader has resigned.

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
