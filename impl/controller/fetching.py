"""The metadata log, fetched by brokers and other observers: batches, and the snapshot with which the log begins.

Kafka: `KafkaRaftClient`. What is answered is decided in `spec.controller.rules.metadata_log`. All of the log is committed,
so its end is the high watermark.
"""

from kspec.impl.broker.administered import MetadataObserver
from kspec.impl.broker.calls import Call, DelayedOperation, Effect, not_again
from kspec.impl.controller.core import ControllerCore
from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.metadata_log import (
    IN_PLACE,
    NO_SNAPSHOT,
    SnapshotId,
    check_controller_epoch,
    check_metadata_fetch,
    check_quorum_request,
    check_snapshot,
    check_snapshot_position,
    has_everything,
    is_news,
    place_fetch,
)
from kspec.spec.controller.topics.names import CLUSTER_METADATA, check_metadata_partition
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import NO_TIMESTAMP, UNDEFINED_EPOCH_END, Epoch, Error, Instant, Offset

TOPIC_ID = bytes(15) + b"\1"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

MOST_BYTES = 8 << 20
"""Of one answer. Kafka: `KafkaRaftClient.MAX_BATCH_SIZE_BYTES`, `MAX_FETCH_SIZE`."""

FIRST_BY_ID = 13
"""The version of Fetch from which topics are named by their ids."""

FIRST_WITH_STATE = 15
"""The version of Fetch from which the fetcher is named with its epoch."""


def fetch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A fetch of the metadata log waits if there is nothing to say. **Kafka:** `KafkaRaftClient.handleFetchRequest`."""
    request = call.message
    partition = _only_partition(call)
    error = check_quorum_request(_is_same_cluster(core, call), partition is not None)
    if partition is None or error != Error.NONE:
        return [call.respond(error_code=error.value, responses=[])]
    asked = FetchPosition(
        Epoch(partition.current_leader_epoch), Offset(partition.fetch_offset), Epoch(partition.last_fetched_epoch)
    )
    error = check_metadata_fetch(asked, request.max_wait_ms)
    if error == Error.NONE:
        error = check_controller_epoch(core.log.epoch, asked.current_leader_epoch)
    if error != Error.NONE:
        return [_answer(core, call, error_code=error.value, records=b"")]
    _note_observer(core, call, asked, now)
    place = place_fetch(core.log.log, core.log.snapshot, asked)
    if request.max_wait_ms == 0 or is_news(place, core.log.log, asked, Offset(partition.high_watermark)):
        return [_read(core, call, asked)]

    def complete(now: Instant) -> list[Effect]:
        core.stop_waiting(waiting)
        _note_observer(core, call, asked, now)
        return [_read(core, call, asked)]

    waiting = DelayedOperation(now.after(request.max_wait_ms), not_again, complete)
    core.wait(waiting)
    call.waiting = waiting
    return []


def _is_same_cluster(core: ControllerCore, call: Call) -> bool:
    return call.message.cluster_id in (None, core.cluster_id)


def _only_partition(call: Call) -> Message | None:
    """The partition of the metadata log, if the request names it and nothing else."""
    topics = call.message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    (topic,) = topics
    named = bytes(topic.topic_id) == TOPIC_ID if call.version >= FIRST_BY_ID else topic.topic == CLUSTER_METADATA
    partition: Message = topic.partitions[0]
    return partition if named and partition.partition == 0 else None


def _read(core: ControllerCore, call: Call, asked: FetchPosition) -> Effect:
    place = place_fetch(core.log.log, core.log.snapshot, asked)
    if place.snapshot != NO_SNAPSHOT:
        return _answer(core, call, snapshot_id=Message(**place.snapshot._asdict()), records=b"")
    if place.diverging != UNDEFINED_EPOCH_END:
        end = Message(epoch=place.diverging.leader_epoch, end_offset=place.diverging.end_offset)
        return _answer(core, call, diverging_epoch=end, records=b"")
    assert place == IN_PLACE
    return _answer(core, call, records=core.log.batches_from(asked.fetch_offset, MOST_BYTES))


def _answer(core: ControllerCore, call: Call, error_code: int = 0, **fields: object) -> Effect:
    log = core.log.log
    partition = Message(
        partition_index=0,
        error_code=error_code,
        high_watermark=log.end_offset,
        log_start_offset=log.start_offset,
        current_leader=_current_leader(core),
        **fields,
    )
    topic = call.message.topics[0]
    named = {"topic_id": topic.topic_id} if call.version >= FIRST_BY_ID else {"topic": topic.topic}
    responses = [Message(**named, partitions=[partition])]
    return call.respond(error_code=0, responses=responses, node_endpoints=[_endpoint(core)])


def _current_leader(core: ControllerCore) -> Message:
    return Message(leader_id=core.config.node_id, leader_epoch=core.log.epoch)


def _endpoint(core: ControllerCore) -> Message:
    return Message(node_id=core.config.node_id, host=core.host, port=core.port)


def _note_observer(core: ControllerCore, call: Call, asked: FetchPosition, now: Instant) -> None:
    """Remember who has read how far, for those who ask. **Kafka:** `LeaderState.updateReplicaState`."""
    request = call.message
    replica = request.replica_state.replica_id if call.version >= FIRST_WITH_STATE else request.replica_id
    if replica < 0:
        return
    before = core.observers.get(replica)
    caught_up = (
        now.timestamp if has_everything(core.log.log, asked) else NO_TIMESTAMP if before is None else before.caught_up_ms
    )
    core.observers[replica] = MetadataObserver(asked.fetch_offset, now.timestamp, caught_up)


# ---- snapshots


def fetch_snapshot(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A piece of the snapshot. **Kafka:** `KafkaRaftClient.handleFetchSnapshotRequest`."""
    request = call.message
    alone = len(request.topics) == 1 and len(request.topics[0].partitions) == 1
    error = check_quorum_request(_is_same_cluster(core, call), alone)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, topics=[])]
    topics = [
        Message(name=topic.name, partitions=[_piece(core, topic.name, one, request.max_bytes) for one in topic.partitions])
        for topic in request.topics
    ]
    return [call.respond(error_code=0, topics=topics, node_endpoints=[_endpoint(core)])]


def _piece(core: ControllerCore, topic: str, asked: Message, most_bytes: int) -> Message:
    wanted = SnapshotId(Offset(asked.snapshot_id.end_offset), Epoch(asked.snapshot_id.epoch))
    error = check_metadata_partition(topic, asked.partition)
    if error == Error.NONE:
        error = check_controller_epoch(core.log.epoch, Epoch(asked.current_leader_epoch))
    if error == Error.NONE:
        error = check_snapshot(core.log.snapshot, wanted)
    size = core.log.snapshot_size() if error == Error.NONE else 0
    if error == Error.NONE:
        error = check_snapshot_position(asked.position, size)
    records = core.log.snapshot_bytes(asked.position, min(most_bytes, MOST_BYTES)) if error == Error.NONE else b""
    return Message(
        index=asked.partition,
        error_code=error.value,
        snapshot_id=asked.snapshot_id,
        current_leader=_current_leader(core),
        size=size,
        position=asked.position if error == Error.NONE else 0,
        unaligned_records=records,
    )
