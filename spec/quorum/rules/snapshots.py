"""Snapshots of the metadata log: a fetch may lie before what is still kept, and then the fetcher takes a snapshot first."""

from typing import NamedTuple

from kspec.spec.broker.rules.divergence import has_parted
from kspec.spec.log.algebra import Log
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.values import UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Error, Offset


class FetchPlace(NamedTuple):
    """The position of a fetcher of the metadata log. At most one of the two is defined; if none is, records follow.

    `diverging`: to truncate to. `snapshot`: to be fetched instead of records. Kafka: `ValidOffsetAndEpoch`.
    """

    diverging: EpochEndOffset = UNDEFINED_EPOCH_END
    snapshot: SnapshotId = NO_SNAPSHOT


IN_PLACE = FetchPlace()


def may_take_snapshot(end_offset: Offset, high_watermark: Offset) -> bool:
    """Whether a replica may take a snapshot of its log up to an offset: of nothing that is not committed.

    **Kafka:** `KafkaRaftLog.createNewSnapshot`.
    """
    return end_offset <= high_watermark


def check_snapshot(known: SnapshotId, wanted: SnapshotId) -> Error:
    """Whether the snapshot that is fetched is the one that there is. Errors: `SNAPSHOT_NOT_FOUND`.

    **Kafka:** `KafkaRaftClient.handleFetchSnapshotRequest`.
    """
    return Error.NONE if wanted == known else Error.SNAPSHOT_NOT_FOUND


def place_fetch(log: Log, snapshot: SnapshotId, fetch: FetchPosition) -> FetchPlace:
    """Whether a fetcher can go on at its offset, has to truncate first, or has to fetch the snapshot first.

    Parameters: the log; the snapshot at its start, `NO_SNAPSHOT` if there is none; the fetch.

    **Kafka:** `RaftLog.validateOffsetAndEpoch`, `KafkaRaftLog.endOffsetForEpoch`. **Leaves out:** several snapshots at a
    time; here the one at the start of the log is the only one.
    """
    offset, epoch = fetch.fetch_offset, fetch.last_fetched_epoch
    if log.start_offset == 0 and offset == 0:
        return IN_PLACE
    if snapshot != NO_SNAPSHOT:
        behind = offset < log.start_offset or epoch < snapshot.epoch
        if behind or (offset == log.start_offset and epoch != snapshot.epoch):
            return FetchPlace(snapshot=snapshot)
    end = end_of_epoch(log, snapshot, epoch)
    return FetchPlace(diverging=end) if has_parted(end, fetch) else IN_PLACE


def end_of_epoch(log: Log, snapshot: SnapshotId, epoch: Epoch) -> EpochEndOffset:
    """The largest epoch up to `epoch`, and its end, in a log that begins with a snapshot. It is always defined.

    **Kafka:** `KafkaRaftLog.endOffsetForEpoch`, `lastFetchedEpoch`.
    """
    end = log.end_offset_for_epoch(epoch)
    if end == UNDEFINED_EPOCH_END:
        return EpochEndOffset(max(log.latest_epoch, snapshot.epoch, Epoch(0)), log.end_offset)
    if snapshot != NO_SNAPSHOT and end == EpochEndOffset(epoch, snapshot.end_offset):
        return EpochEndOffset(snapshot.epoch, snapshot.end_offset)
    return end


def has_everything(log: Log, fetch: FetchPosition) -> bool:
    """Whether a fetcher has all of the log. **Kafka:** `LeaderState.updateReplicaState`."""
    return fetch.fetch_offset == log.end_offset


def check_snapshot_position(position: int, size: int) -> Error:
    """Whether a snapshot of this size can be read from a position on (bytes). Errors: `POSITION_OUT_OF_RANGE`.

    **Kafka:** `KafkaRaftClient.handleFetchSnapshotRequest`.
    """
    return Error.NONE if 0 <= position < size else Error.POSITION_OUT_OF_RANGE


def lacks_records(log_start: Offset, snapshot: SnapshotId) -> bool:
    """Whether a log begins after its snapshot ends: what lies between was in a snapshot that is gone.

    **Kafka:** `KafkaRaftLog.createLog`, `truncateToLatestSnapshot`, with the snapshots that were found.
    """
    return log_start > max(snapshot.end_offset, 0)
