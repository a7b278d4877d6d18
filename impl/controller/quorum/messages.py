"""Requests of voters to one another, and their answers, in the words of the wire and in those of `spec.quorum`.

Voters are named by their ids: the voter set is that of the settings (`kraft.version` 0), which knows no directories.
"""

from typing import NamedTuple

from kspec.impl.records.batch import BatchHeader, InvalidBatchError, headers, is_intact
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.names import CLUSTER_METADATA
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import (
    NO_EPOCH,
    NO_REPLICA,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Offset,
    ReplicaKey,
)

METADATA_TOPIC_ID = bytes(15) + b"\1"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

MOST_BYTES = 8 << 20
"""Of one answer. Kafka: `KafkaRaftClient.MAX_BATCH_SIZE_BYTES`, `MAX_FETCH_SIZE`."""

FIRST_BY_ID = 13
"""The version of Fetch from which topics are named by their ids."""

FIRST_WITH_STATE = 15
"""The version of Fetch from which the fetcher is named with its epoch."""

FIRST_WITH_PRE_VOTE = 2
"""The version of Vote that may ask before an election."""

FIRST_WITH_CANDIDATES = 1
"""The version of EndQuorumEpoch from which successors are named with their directories."""


class OutgoingAsk(NamedTuple):
    """A request as it is sent: its API, the lowest version that can say it, its content, and the topic of its channel."""

    api: str
    lowest: int
    message: Message
    purpose: str = "votes"


def _topics(**fields: object) -> list[Message]:
    return [Message(topic_name=CLUSTER_METADATA, partitions=[Message(partition_index=0, **fields)])]


def as_sent(request: QuorumRequest, cluster_id: str, wait_ms: int) -> OutgoingAsk:
    """A request as it is sent; `wait_ms`: how long a fetch may wait for news."""
    match request:
        case VoteRequest():
            fields = {
                "replica_epoch": request.epoch,
                "replica_id": request.replica.id,
                "last_offset_epoch": request.last_epoch,
                "last_offset": request.end_offset,
                "pre_vote": request.is_pre_vote,
            }
            message = Message(cluster_id=cluster_id, voter_id=request.voter.id, topics=_topics(**fields))
            return OutgoingAsk("Vote", FIRST_WITH_PRE_VOTE if request.is_pre_vote else 0, message)
        case BeginQuorumEpochRequest(epoch, leader, voter):
            topics = _topics(leader_id=leader, leader_epoch=epoch)
            message = Message(cluster_id=cluster_id, voter_id=voter.id, topics=topics, leader_endpoints=[])
            return OutgoingAsk("BeginQuorumEpoch", 0, message)
        case EndQuorumEpochRequest(epoch, leader, successors):
            candidates = [Message(candidate_id=one.id) for one in successors]
            named = {"preferred_candidates": candidates, "preferred_successors": [one.id for one in successors]}
            topics = _topics(leader_id=leader, leader_epoch=epoch, **named)
            return OutgoingAsk("EndQuorumEpoch", 0, Message(cluster_id=cluster_id, topics=topics, leader_endpoints=[]))
        case _:
            return OutgoingAsk("Fetch", 0, _fetch(request, cluster_id, wait_ms), "log")


def _fetch(request: QuorumFetchRequest, cluster_id: str, wait_ms: int) -> Message:
    fetch, replica = request.fetch, request.replica.id
    partition = Message(
        partition=0,
        current_leader_epoch=fetch.current_leader_epoch,
        fetch_offset=fetch.fetch_offset,
        last_fetched_epoch=fetch.last_fetched_epoch,
        log_start_offset=-1,
        partition_max_bytes=MOST_BYTES,
        high_watermark=request.high_watermark,
    )
    return Message(
        cluster_id=cluster_id,
        replica_id=replica,
        replica_state=Message(replica_id=replica, replica_epoch=-1),
        max_wait_ms=wait_ms,
        max_bytes=MOST_BYTES,
        session_id=0,
        session_epoch=-1,
        topics=[Message(topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


# ---- requests that come


def only_partition(message: Message) -> Message | None:
    """The partition of the metadata log, if a request about votes names it and nothing else."""
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return None
    (topic,) = message.topics
    part: Message = topic.partitions[0]
    return part if topic.topic_name == CLUSTER_METADATA and part.partition_index == 0 else None


def vote_asked(message: Message, part: Message, version: int) -> VoteRequest:
    """A Vote request in words of `spec`."""
    return VoteRequest(
        Epoch(part.replica_epoch),
        ReplicaKey(BrokerId(part.replica_id)),
        Epoch(part.last_offset_epoch),
        Offset(part.last_offset),
        _voter(message, version),
        version >= FIRST_WITH_PRE_VOTE and part.pre_vote,
    )


def begin_asked(message: Message, part: Message, version: int) -> BeginQuorumEpochRequest:
    """A BeginQuorumEpoch request in words of `spec`."""
    return BeginQuorumEpochRequest(Epoch(part.leader_epoch), BrokerId(part.leader_id), _voter(message, version))


def end_asked(message: Message, part: Message, version: int) -> EndQuorumEpochRequest:
    """An EndQuorumEpoch request in words of `spec`."""
    if version >= FIRST_WITH_CANDIDATES:
        named = [one.candidate_id for one in part.preferred_candidates]
    else:
        named = part.preferred_successors
    successors = tuple(ReplicaKey(BrokerId(one)) for one in named)
    return EndQuorumEpochRequest(Epoch(part.leader_epoch), BrokerId(part.leader_id), successors)


def _voter(message: Message, version: int) -> ReplicaKey:
    """The voter that is asked, as far as the request says it: since version 1."""
    return NO_REPLICA if version < 1 or message.voter_id < 0 else ReplicaKey(BrokerId(message.voter_id))


def fetch_asked(message: Message, part: Message, version: int) -> QuorumFetchRequest:
    """A Fetch request in words of `spec`. One that does not say how far its sender knows the log to be committed, knows it
    up to where it fetches.
    """
    replica = message.replica_state.replica_id if version >= FIRST_WITH_STATE else message.replica_id
    position = FetchPosition(Epoch(part.current_leader_epoch), Offset(part.fetch_offset), Epoch(part.last_fetched_epoch))
    return QuorumFetchRequest(ReplicaKey(BrokerId(replica)), position, Offset(part.high_watermark))


# ---- answers


def as_answered(answer: QuorumAnswer) -> dict[str, object]:
    """The fields of an answer about votes."""
    fields: dict[str, object] = {"error_code": answer.error.value, "leader_id": answer.leader, "leader_epoch": answer.epoch}
    match answer:
        case VoteResponse():
            fields["vote_granted"] = answer.is_granted
        case _:
            pass
    return {"error_code": 0, "topics": _topics(**fields), "node_endpoints": []}


def answer_taken(api: str, message: Message, fetch_offset: Offset) -> QuorumAnswer | None:
    """An answer in words of `spec`, with the bytes of each batch; `None` if it says nothing that can be relied on."""
    if api == "Fetch":
        return _fetch_answer(message, fetch_offset)
    if message.error_code == Error.UNSUPPORTED_VERSION.value and api == "Vote":
        return VoteResponse(Error.UNSUPPORTED_VERSION, NO_EPOCH)
    part = only_partition(message) if not message.error_code else None
    if part is None:
        return None
    error, epoch, leader = _error(part.error_code), Epoch(part.leader_epoch), BrokerId(part.leader_id)
    match api:
        case "Vote":
            return VoteResponse(error, epoch, leader, part.vote_granted)
        case "BeginQuorumEpoch":
            return BeginQuorumEpochResponse(error, epoch, leader)
        case _:
            return EndQuorumEpochResponse(error, epoch, leader)


def _fetch_answer(message: Message, fetch_offset: Offset) -> QuorumFetchResponse | None:
    if message.error_code or len(message.responses) != 1 or len(message.responses[0].partitions) != 1:
        return None
    (part,) = message.responses[0].partitions
    error, leader = _error(part.error_code), part.current_leader
    epoch, leader_id = Epoch(leader.leader_epoch), BrokerId(leader.leader_id)
    if error != Error.NONE:
        return QuorumFetchResponse(error, epoch, leader_id)
    diverging, snapshot = UNDEFINED_EPOCH_END, NO_SNAPSHOT
    if part.diverging_epoch is not None and part.diverging_epoch.end_offset >= 0:
        diverging = EpochEndOffset(Epoch(part.diverging_epoch.epoch), Offset(part.diverging_epoch.end_offset))
    if part.snapshot_id is not None and part.snapshot_id.end_offset >= 0:
        snapshot = SnapshotId(Offset(part.snapshot_id.end_offset), Epoch(part.snapshot_id.epoch))
    batches = _batches(memoryview(part.records or b""), fetch_offset)
    if batches is None:
        return None
    return QuorumFetchResponse(error, epoch, leader_id, batches, Offset(part.high_watermark), diverging, snapshot)


def _batches(records: memoryview, offset: Offset) -> tuple[Batch, ...] | None:
    """Whole batches with their bytes; none if one is corrupt, or not where it should be."""
    found: list[Batch] = []
    try:
        for header in headers(records):
            if header.base_offset != offset or not is_intact(records, header):
                return None
            found.append(_with_bytes(header, records))
            offset = header.next_offset
    except InvalidBatchError:
        return None
    return tuple(found)


def _with_bytes(header: BatchHeader, records: memoryview) -> Batch:
    content = bytes(records[header.position : header.position + header.size])
    return Batch(header.last_offset_delta + 1, header.leader_epoch, content)


def _error(code: int) -> Error:
    return Error(code) if code in KNOWN else Error.UNKNOWN_SERVER_ERROR


KNOWN = frozenset(error.value for error in Error)
