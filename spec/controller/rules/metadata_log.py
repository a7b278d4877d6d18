"""Answers of the leader of the metadata log, which is the active controller, to those who fetch it.

A fetch of the metadata log is checked before it is answered with records. It may lie before what is still kept: then the
fetcher takes a snapshot first.
"""

from typing import NamedTuple

from kspec.spec.log.algebra import Log
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, Epoch, EpochEndOffset, Error, Offset


class SnapshotId(NamedTuple):
    """Names a snapshot: it says what the records before `end_offset` say, of which the last is of this epoch.

    Kafka: `OffsetAndEpoch`, `Snapshots.filenameFromSnapshotId`.
    """

    end_offset: Offset
    epoch: Epoch


NO_SNAPSHOT = SnapshotId(UNKNOWN_OFFSET, NO_EPOCH)


class FetchPlace(NamedTuple):
    """The position of a fetcher of the metadata log. At most one of the two is defined; if none is, records follow.

    `diverging`: to truncate to. `snapshot`: to be fetched instead of records. Kafka: `ValidOffsetAndEpoch`.
    """

    diverging: EpochEndOffset = UNDEFINED_EPOCH_END
    snapshot: SnapshotId = NO_SNAPSHOT


IN_PLACE = FetchPlace()


def check_controller_epoch(controller_epoch: Epoch, named: Epoch) -> Error:
    """Whether a request to the leader of the metadata log names its epoch.

    Errors: `FENCED_LEADER_EPOCH`, from which the sender learns the epoch; `UNKNOWN_LEADER_EPOCH`.

    **Kafka:** `KafkaRaftClient.validateLeaderOnlyRequest`.
    """
    if named < controller_epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.UNKNOWN_LEADER_EPOCH if named > controller_epoch else Error.NONE


def check_quorum_request(same_cluster: bool, names_one_partition: bool) -> Error:
    """Whether a request to the quorum is for this cluster, and for one partition: there is but that of the metadata log.

    Errors: `INCONSISTENT_CLUSTER_ID`, `INVALID_REQUEST`.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`, `handleFetchSnapshotRequest`, `RaftUtil.hasValidTopicPartition`.
    """
    if not same_cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    return Error.NONE if names_one_partition else Error.INVALID_REQUEST


def check_snapshot(known: SnapshotId, wanted: SnapshotId) -> Error:
    """Whether the snapshot that is fetched is the one that there is. Errors: `SNAPSHOT_NOT_FOUND`.

    **Kafka:** `KafkaRaftClient.handleFetchSnapshotRequest`.
    """
    return Error.NONE if wanted == known else Error.SNAPSHOT_NOT_FOUND


def check_metadata_fetch(fetch: FetchPosition, max_wait_ms: int) -> Error:
    """Whether a fetch of the metadata log names a place at all. Errors: `INVALID_REQUEST`.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`.
    """
    named = (max_wait_ms, fetch.fetch_offset, fetch.last_fetched_epoch, fetch.current_leader_epoch)
    return Error.INVALID_REQUEST if min(named) < 0 else Error.NONE


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
    parted = end.leader_epoch != epoch or end.end_offset < offset
    return FetchPlace(diverging=end) if parted else IN_PLACE


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


def is_news(place: FetchPlace, log: Log, fetch: FetchPosition, known_high_watermark: Offset) -> bool:
    """Whether a fetch is answered at once: there is something to say. Otherwise it may wait for it.

    `known_high_watermark`: the one that the fetcher says it knows (KIP-1166). All of the log is committed, see
    `spec.controller.state`.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`. **Leaves out:** `min_bytes`, as Kafka does.
    """
    return place != IN_PLACE or fetch.fetch_offset < log.end_offset or known_high_watermark < log.end_offset


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
