"""Requests of voters to one another, and their answers, in the words of the wire and in those of `spec.quorum`.

With `kraft.version` 0 voters are named by their ids: the settings, which name them, know no directories.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from kspec.impl.metadata.voters import RECONFIGURABLE, Endpoint, VotersFound, voters_in
from kspec.impl.records.batch import BatchHeader, InvalidBatchError, headers, is_intact
from kspec.impl.records.record import RecordError
from kspec.impl.wire.quorum import FIRST_WITH_PRE_VOTE, diverging_in, error_of, key_of, votes_answer
from kspec.impl.wire.values import DecodeError, Message
from kspec.spec.controller.topics.names import CLUSTER_METADATA
from kspec.spec.log.batch import Batch, Batches
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_EPOCH,
    BrokerId,
    Epoch,
    Error,
    Offset,
    ReplicaKey,
)

METADATA_TOPIC_ID = bytes(15) + b"\1"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

MOST_BYTES = 8 << 20
"""Of one answer. Kafka: `KafkaRaftClient.MAX_BATCH_SIZE_BYTES`, `MAX_FETCH_SIZE`."""

WAIT_MS = 500
"""The time that a fetch of the log waits for news. Kafka: `KafkaRaftClient.MAX_FETCH_WAIT_MS`."""

FIRST_BY_ID = 13
"""The version of Fetch from which topics are named by their ids."""

FIRST_WITH_STATE = 15
"""The version of Fetch from which the fetcher is named with its epoch."""

FIRST_FETCH_WITH_DIRECTORY = 17
"""The version of Fetch from which the fetcher is named with its directory."""


class OutgoingAsk(NamedTuple):
    """A request as it is sent: its API, the lowest version that can say it, its content, and the topic of its channel."""

    api: str
    lowest: int
    message: Message
    purpose: str = "votes"


def _topics(**fields: object) -> list[Message]:
    return [Message(topic_name=CLUSTER_METADATA, partitions=[Message(partition_index=0, **fields)])]


def listeners_of(endpoints: Iterable[Endpoint]) -> list[Message]:
    """Listeners as requests and answers have them."""
    return [Message(name=one.listener, host=one.host, port=one.port) for one in endpoints]


def endpoints_in(listeners: Iterable[Message]) -> tuple[Endpoint, ...]:
    """The listeners that a message names."""
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)


def as_sent(request: QuorumRequest, cluster_id: str, own: Iterable[Endpoint]) -> OutgoingAsk:
    """A request as it is sent; `own`: where the sender is reached."""
    match request:
        case VoteRequest():
            told = {
                "replica_epoch": request.epoch,
                "replica_id": request.replica.id,
                "replica_directory_id": request.replica.directory,
                "voter_directory_id": request.voter.directory,
                "last_offset_epoch": request.last_epoch,
                "last_offset": request.end_offset,
                "pre_vote": request.is_pre_vote,
            }
            message = Message(cluster_id=cluster_id, voter_id=request.voter.id, topics=_topics(**told))
            return OutgoingAsk("Vote", FIRST_WITH_PRE_VOTE if request.is_pre_vote else 0, message)
        case BeginQuorumEpochRequest(epoch, leader, voter):
            topics = _topics(leader_id=leader, leader_epoch=epoch, voter_directory_id=voter.directory)
            endpoints = listeners_of(own)
            message = Message(cluster_id=cluster_id, voter_id=voter.id, topics=topics, leader_endpoints=endpoints)
            return OutgoingAsk("BeginQuorumEpoch", 0, message)
        case EndQuorumEpochRequest(epoch, leader, successors):
            candidates = [Message(candidate_id=one.id, candidate_directory_id=one.directory) for one in successors]
            named = {"preferred_candidates": candidates, "preferred_successors": [one.id for one in successors]}
            topics = _topics(leader_id=leader, leader_epoch=epoch, **named)
            message = Message(cluster_id=cluster_id, topics=topics, leader_endpoints=listeners_of(own))
            return OutgoingAsk("EndQuorumEpoch", 0, message)
        case _:
            return OutgoingAsk("Fetch", 0, _fetch(request, cluster_id), "log")


def _fetch(request: QuorumFetchRequest, cluster_id: str) -> Message:
    fetch, replica = request.fetch, request.replica.id
    partition = Message(
        partition=0,
        current_leader_epoch=fetch.current_leader_epoch,
        fetch_offset=fetch.fetch_offset,
        last_fetched_epoch=fetch.last_fetched_epoch,
        log_start_offset=-1,
        partition_max_bytes=MOST_BYTES,
        high_watermark=request.high_watermark,
        replica_directory_id=request.replica.directory,
    )
    return Message(
        cluster_id=cluster_id,
        replica_id=replica,
        replica_state=Message(replica_id=replica, replica_epoch=-1),
        max_wait_ms=WAIT_MS,
        max_bytes=MOST_BYTES,
        session_id=0,
        session_epoch=-1,
        topics=[Message(topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def piece_asked(cluster_id: str, replica: ReplicaKey, epoch: Epoch, snapshot: SnapshotId, position: int) -> Message:
    """A request for a piece of a snapshot, from a position on."""
    partition = Message(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=Message(**snapshot._asdict()),
        position=position,
        replica_directory_id=replica.directory,
    )
    topics = [Message(name=CLUSTER_METADATA, partitions=[partition])]
    return Message(cluster_id=cluster_id, replica_id=replica.id, max_bytes=MOST_BYTES, topics=topics)


def update_asked(cluster_id: str, epoch: Epoch, voter: ReplicaKey, own: Iterable[Endpoint]) -> Message:
    """A voter's request to write where it is reached, and the levels of `kraft.version` that it works with."""
    return Message(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory,
        listeners=listeners_of(own),
        k_raft_version_feature=Message(min_supported_version=0, max_supported_version=RECONFIGURABLE),
    )


# ---- requests that come


def only_partition(message: Message) -> Message | None:
    """The partition of the metadata log, if a request about votes names it and nothing else."""
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return None
    (topic,) = message.topics
    part: Message = topic.partitions[0]
    return part if topic.topic_name == CLUSTER_METADATA and part.partition_index == 0 else None


def fetch_asked(message: Message, part: Message, version: int) -> QuorumFetchRequest:
    """A Fetch request in words of `spec`. One that does not say how far its sender knows the log to be committed, knows it
    up to where it fetches.
    """
    replica = message.replica_state.replica_id if version >= FIRST_WITH_STATE else message.replica_id
    position = FetchPosition(Epoch(part.current_leader_epoch), Offset(part.fetch_offset), Epoch(part.last_fetched_epoch))
    directory = part.replica_directory_id if version >= FIRST_FETCH_WITH_DIRECTORY else NO_DIRECTORY
    return QuorumFetchRequest(key_of(replica, directory), position, Offset(part.high_watermark))


# ---- answers


def leaders_endpoint(leader: int, at: Endpoint | None) -> list[Message]:
    """The address of the leader in an answer, if it is known."""
    return [] if at is None else [Message(node_id=leader, host=at.host, port=at.port)]


def as_answered(answer: QuorumAnswer, leader_at: Endpoint | None) -> dict[str, object]:
    """The fields of an answer about votes; `leader_at`: where the leader is reached that it names."""
    told: dict[str, object] = {"error_code": answer.error.value, "leader_id": answer.leader, "leader_epoch": answer.epoch}
    match answer:
        case VoteResponse():
            told["vote_granted"] = answer.is_granted
        case _:
            pass
    return {"error_code": 0, "topics": _topics(**told), "node_endpoints": leaders_endpoint(answer.leader, leader_at)}


def answer_taken(api: str, message: Message, fetch_offset: Offset) -> QuorumAnswer | None:
    """An answer in words of `spec`, with the bytes of each batch; `None` if it says nothing that can be relied on."""
    if api == "Fetch":
        return _fetch_answer(message, fetch_offset)
    if message.error_code == Error.UNSUPPORTED_VERSION.value and api == "Vote":
        return VoteResponse(Error.UNSUPPORTED_VERSION, NO_EPOCH)
    part = only_partition(message) if not message.error_code else None
    if part is None:
        return None
    return votes_answer(api, part)


def _fetch_answer(message: Message, fetch_offset: Offset) -> QuorumFetchResponse | None:
    if message.error_code or len(message.responses) != 1 or len(message.responses[0].partitions) != 1:
        return None
    (part,) = message.responses[0].partitions
    error, leader = error_of(part.error_code), part.current_leader
    epoch, leader_id = Epoch(leader.leader_epoch), BrokerId(leader.leader_id)
    if error != Error.NONE:
        return QuorumFetchResponse(error, epoch, leader_id)
    diverging, snapshot = diverging_in(part), NO_SNAPSHOT
    if part.snapshot_id is not None and part.snapshot_id.end_offset >= 0:
        snapshot = SnapshotId(Offset(part.snapshot_id.end_offset), Epoch(part.snapshot_id.epoch))
    batches = _batches(memoryview(part.records or b""), fetch_offset)
    if batches is None:
        return None
    try:
        found = voters_among(batches)
    except (DecodeError, RecordError, struct.error):
        return None
    told = (Offset(part.high_watermark), diverging, snapshot)
    sets = tuple(VoterSetEntry(one.offset, frozenset(one.voters)) for one in found)
    return QuorumFetchResponse(error, epoch, leader_id, batches, *told, sets)


def voters_among(batches: Batches) -> list[VotersFound]:
    """The records of voters among batches with their bytes. Raises: `DecodeError`, `RecordError`, `struct.error`."""
    found: list[VotersFound] = []
    for batch in batches:
        assert isinstance(batch, Batch)
        assert isinstance(batch.payload, bytes), "a batch has its bytes"
        found += voters_in(memoryview(batch.payload))
    return found


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
