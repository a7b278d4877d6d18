"""The metadata log, fetched by other voters and by brokers: batches, and the snapshot with which the log begins.

Kafka: `KafkaRaftClient`. What is answered is decided in `spec.quorum`.
"""

from collections.abc import Callable

from kspec.impl.broker.administered import NOT_SEEN, MetadataObserver
from kspec.impl.broker.calls import Call, DelayedOperation, Effect, not_again
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.quorum.messages import FIRST_BY_ID, METADATA_TOPIC_ID, MOST_BYTES, fetch_asked, leaders_endpoint
from kspec.impl.wire.quorum import key_of
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.names import CLUSTER_METADATA, check_metadata_partition
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.leading import is_news
from kspec.spec.quorum.refusals import check_leader_epoch, check_quorum_request, check_wait
from kspec.spec.quorum.rules.snapshots import check_snapshot, check_snapshot_position, has_everything
from kspec.spec.quorum.rules.voters import reaches_end
from kspec.spec.values import NO_DIRECTORY, NO_LEADER, UNDEFINED_EPOCH_END, Epoch, Error, Instant, Offset


def fetch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A fetch of the metadata log waits if there is nothing to say. **Kafka:** `KafkaRaftClient.handleFetchRequest`."""
    message = call.message
    partition = _only_partition(call)
    error = check_quorum_request(_is_same_cluster(core, call), partition is not None)
    if partition is None or error != Error.NONE:
        return [call.respond(error_code=error.value, responses=[])]
    request = fetch_asked(message, partition, call.version)
    error = check_wait(message.max_wait_ms)
    if error != Error.NONE:
        return [_respond(core, call, request, QuorumFetchResponse(error, core.voter.epoch, core.voter.leader))]

    def answer(told: QuorumFetchResponse) -> list[Effect]:
        if message.max_wait_ms == 0 or is_news(request, told):
            return [_respond(core, call, request, told)]
        waiting = DelayedOperation(now.after(message.max_wait_ms), not_again, complete)
        core.wait(waiting)
        call.waiting = waiting
        return []

    def complete(now: Instant) -> list[Effect]:
        assert call.waiting is not None
        core.stop_waiting(call.waiting)
        return _handle(core, request, now, lambda told: [_respond(core, call, request, told)])

    return _handle(core, request, now, answer)


def _handle(
    core: ControllerCore, request: QuorumFetchRequest, now: Instant, answer: Callable[[QuorumFetchResponse], list[Effect]]
) -> list[Effect]:
    def noted(told: QuorumAnswer) -> list[Effect]:
        assert isinstance(told, QuorumFetchResponse), f"a fetch is answered with {told}"
        if told.error == Error.NONE:
            _note_observer(core, request, now)
        return answer(told)

    return core.voter.asked(request, now, noted)


def _is_same_cluster(core: ControllerCore, call: Call) -> bool:
    return call.message.cluster_id in (None, core.cluster_id)


def _only_partition(call: Call) -> Message | None:
    """The partition of the metadata log, if the request names it and nothing else."""
    topics = call.message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    (topic,) = topics
    named = bytes(topic.topic_id) == METADATA_TOPIC_ID if call.version >= FIRST_BY_ID else topic.topic == CLUSTER_METADATA
    partition: Message = topic.partitions[0]
    return partition if named and partition.partition == 0 else None


def _respond(core: ControllerCore, call: Call, request: QuorumFetchRequest, told: QuorumFetchResponse) -> Effect:
    fields: dict[str, object] = {"records": b""}
    if told.snapshot != NO_SNAPSHOT:
        fields["snapshot_id"] = Message(**told.snapshot._asdict())
    if told.diverging != UNDEFINED_EPOCH_END:
        fields["diverging_epoch"] = Message(epoch=told.diverging.leader_epoch, end_offset=told.diverging.end_offset)
    if told.records:
        fields["records"] = core.log.batches_from(request.fetch.fetch_offset, MOST_BYTES)
    partition = Message(
        partition_index=0,
        error_code=told.error.value,
        high_watermark=told.high_watermark,
        log_start_offset=core.log.log.start_offset if told.error == Error.NONE else -1,
        current_leader=Message(leader_id=told.leader, leader_epoch=told.epoch),
        **fields,
    )
    topic = call.message.topics[0]
    named = {"topic_id": topic.topic_id} if call.version >= FIRST_BY_ID else {"topic": topic.topic}
    responses = [Message(**named, partitions=[partition])]
    return call.respond(error_code=0, responses=responses, node_endpoints=_leaders_endpoint(core))


def _leaders_endpoint(core: ControllerCore) -> list[Message]:
    """The address of the leader, if there is one."""
    leader = core.voter.leader
    return [] if leader == NO_LEADER else leaders_endpoint(leader, core.endpoint_of(leader))


def _note_observer(core: ControllerCore, request: QuorumFetchRequest, now: Instant) -> None:
    """Remember who has read how far, for those who ask. **Kafka:** `LeaderState.updateReplicaState`."""
    replica = request.replica
    if replica.id < 0:
        return
    before = core.observers.get(replica, NOT_SEEN)
    fetched, end = request.fetch.fetch_offset, core.log.log.end_offset
    if has_everything(core.log.log, request.fetch):
        caught_up = now.timestamp
    elif reaches_end(fetched, end, before.leader_end):
        caught_up = before.fetched_ms
    else:
        caught_up = before.caught_up_ms
    core.observers[replica] = MetadataObserver(fetched, now.timestamp, caught_up, end)


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
    part = request.topics[0].partitions[0]
    directory = part.replica_directory_id if call.version else NO_DIRECTORY
    heard = core.voter.heard(key_of(request.replica_id, directory), now)
    return [*heard, call.respond(error_code=0, topics=topics, node_endpoints=_leaders_endpoint(core))]


def _piece(core: ControllerCore, topic: str, asked: Message, most_bytes: int) -> Message:
    wanted = SnapshotId(Offset(asked.snapshot_id.end_offset), Epoch(asked.snapshot_id.epoch))
    error = check_metadata_partition(topic, asked.partition)
    if error == Error.NONE:
        error = check_leader_epoch(core.voter.state, Epoch(asked.current_leader_epoch))
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
        current_leader=Message(leader_id=core.voter.leader, leader_epoch=core.voter.epoch),
        size=size,
        position=asked.position if error == Error.NONE else 0,
        unaligned_records=records,
    )
