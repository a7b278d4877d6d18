"""Requests and answers of voters in words of `spec`, and on the wire, in the newest version that a release has.

Directories are told where a version has a field for them. The voters of `controller.quorum.voters` know none
(`impl.wire.quorum.by_ids`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kspec.conformance.kafka.codec import Codec, batches_in
from kspec.conformance.kafka.process import CLUSTER_ID, HOST
from kspec.impl.wire.quorum import FIRST_WITH_ACK, begin_asked, diverging_in, end_asked, vote_asked, votes_answer
from kspec.impl.wire.values import Message
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import (
    NO_DIRECTORY,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    DirectoryId,
    Epoch,
    Error,
    Offset,
    Record,
    ReplicaKey,
)

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\1"
FETCH_BYTES = 1 << 22
LISTENER = "CONTROLLER"
OPERATOR_MS = 60_000
TELLS_HIGH_WATERMARK = 18
"""The first version of Fetch in which a follower tells its high watermark."""

FIRST_SNAPSHOT_WITH_DIRECTORY = 1
"""The first version of FetchSnapshot in which a replica tells its directory."""

SINCE_PRE_VOTE = 2
"""The first version of Vote that may ask before an election."""


class OutgoingRequest(NamedTuple):
    """A request as it is sent."""

    api: str
    version: int
    message: Message


def _topics(fields: dict[str, Any]) -> list[Message]:
    return [Message(topic_name=TOPIC, partitions=[Message(partition_index=0, **fields)])]


def on_the_wire(codec: Codec, request: QuorumRequest, wait_ms: int = 0) -> OutgoingRequest:
    """A request as a voter of the release sends it; `wait_ms`: how long a fetch may wait for news."""
    match request:
        case VoteRequest():
            return _vote_on_the_wire(codec, request)
        case BeginQuorumEpochRequest(epoch, leader, voter):
            fields = {"leader_id": leader, "leader_epoch": epoch, "voter_directory_id": bytes(voter.directory)}
            message = Message(cluster_id=CLUSTER_ID, voter_id=voter.id, topics=_topics(fields), leader_endpoints=[])
            return OutgoingRequest("BeginQuorumEpoch", codec.versions("BeginQuorumEpoch").last, message)
        case EndQuorumEpochRequest(epoch, leader, successors):
            candidates = [Message(candidate_id=one.id, candidate_directory_id=bytes(one.directory)) for one in successors]
            told = {"leader_id": leader, "leader_epoch": epoch, "preferred_candidates": candidates}
            message = Message(cluster_id=CLUSTER_ID, topics=_topics(told), leader_endpoints=[])
            return OutgoingRequest("EndQuorumEpoch", codec.versions("EndQuorumEpoch").last, message)
        case QuorumFetchRequest():
            return _fetch_on_the_wire(codec, request, wait_ms)


def _vote_on_the_wire(codec: Codec, request: VoteRequest) -> OutgoingRequest:
    version = codec.versions("Vote").last
    knows = version >= SINCE_PRE_VOTE
    who = "replica" if knows else "candidate"
    fields: dict[str, Any] = {
        f"{who}_epoch": request.epoch,
        f"{who}_id": request.replica.id,
        f"{who}_directory_id": bytes(request.replica.directory),
        "voter_directory_id": bytes(request.voter.directory),
        "last_offset_epoch": request.last_epoch,
        "last_offset": request.end_offset,
    }
    if knows:
        fields["pre_vote"] = request.is_pre_vote
    assert knows or not request.is_pre_vote, "the release knows no pre-vote"
    return OutgoingRequest(
        "Vote", version, Message(cluster_id=CLUSTER_ID, voter_id=request.voter.id, topics=_topics(fields))
    )


def _fetch_on_the_wire(codec: Codec, request: QuorumFetchRequest, wait_ms: int) -> OutgoingRequest:
    version, fetch = codec.versions("Fetch").last, request.fetch
    fields: dict[str, Any] = {
        "partition": 0,
        "current_leader_epoch": fetch.current_leader_epoch,
        "fetch_offset": fetch.fetch_offset,
        "last_fetched_epoch": fetch.last_fetched_epoch,
        "partition_max_bytes": FETCH_BYTES,
        "replica_directory_id": bytes(request.replica.directory),
    }
    if version >= TELLS_HIGH_WATERMARK:
        fields["high_watermark"] = request.high_watermark
    message = Message(
        cluster_id=CLUSTER_ID,
        replica_state=Message(replica_id=request.replica.id, replica_epoch=-1),
        max_wait_ms=wait_ms,
        topics=[Message(topic_id=TOPIC_ID, partitions=[Message(**fields)])],
    )
    return OutgoingRequest("Fetch", version, message)


def snapshot_request_on_the_wire(codec: Codec, replica: ReplicaKey, epoch: Epoch, snapshot: SnapshotId) -> OutgoingRequest:
    """The request of a played follower for a snapshot of its leader: all of it, if it is not too large."""
    version = codec.versions("FetchSnapshot").last
    part = Message(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=Message(**snapshot._asdict()),
        position=0,
        **({"replica_directory_id": bytes(replica.directory)} if version >= FIRST_SNAPSHOT_WITH_DIRECTORY else {}),
    )
    topics = [Message(name=TOPIC, partitions=[part])]
    message = Message(cluster_id=CLUSTER_ID, replica_id=replica.id, max_bytes=FETCH_BYTES, topics=topics)
    return OutgoingRequest("FetchSnapshot", version, message)


def removal_on_the_wire(voter: ReplicaKey) -> Message:
    """An operator's request to remove a voter (RemoveRaftVoter)."""
    return Message(cluster_id=CLUSTER_ID, voter_id=voter.id, voter_directory_id=bytes(voter.directory))


def addition_on_the_wire(voter: ReplicaKey, port: int, version: int) -> Message:
    """An operator's request to add a voter (AddRaftVoter), which is reached at a port; it waits for the commit."""
    waits = {"ack_when_committed": True} if version >= FIRST_WITH_ACK else {}
    listeners = [Message(name=LISTENER, host=HOST, port=port)]
    return Message(
        cluster_id=CLUSTER_ID,
        timeout_ms=OPERATOR_MS,
        voter_id=voter.id,
        voter_directory_id=bytes(voter.directory),
        listeners=listeners,
        **waits,
    )


def voters_on_the_wire(voters: VoterSet, ports: Mapping[BrokerId, int]) -> Message:
    """A record of the voters (VotersRecord), each at its port."""
    told = [
        Message(
            voter_id=one.id,
            voter_directory_id=bytes(one.directory),
            endpoints=[Message(name=LISTENER, host=HOST, port=ports[one.id])],
            k_raft_version_feature=Message(min_supported_version=0, max_supported_version=1),
        )
        for one in sorted(voters)
    ]
    return Message(version=0, voters=told)


def request_in_words_of_spec(api: str, version: int, message: Message) -> QuorumRequest | None:
    """A request of a real voter, `None` if it is none of the quorum's."""
    match api:
        case "Vote":
            part = message.topics[0].partitions[0]
            who = "replica" if hasattr(part, "replica_id") else "candidate"
            return vote_asked(message, part, version, who)
        case "BeginQuorumEpoch":
            return begin_asked(message, message.topics[0].partitions[0], version)
        case "EndQuorumEpoch":
            return end_asked(message, message.topics[0].partitions[0], version)
        case "Fetch":
            part = message.topics[0].partitions[0]
            position = FetchPosition(
                Epoch(part.current_leader_epoch), Offset(part.fetch_offset), Epoch(part.last_fetched_epoch)
            )
            told = Offset(part.high_watermark) if version >= TELLS_HIGH_WATERMARK else UNKNOWN_OFFSET
            return QuorumFetchRequest(_key(message.replica_state.replica_id, part, "replica"), position, told)
        case _:
            return None


def _key(number: int, part: Message, whose: str) -> ReplicaKey:
    told = getattr(part, f"{whose}_directory_id", None)
    return ReplicaKey(BrokerId(number), NO_DIRECTORY if told is None else DirectoryId(bytes(told)))


def as_told(request: QuorumRequest, version: int) -> QuorumRequest:
    """A request as far as a version of its API tells it."""
    if isinstance(request, QuorumFetchRequest) and version < TELLS_HIGH_WATERMARK:
        return QuorumFetchRequest(request.replica, request.fetch)
    return request


# ---- answers


def answer_on_the_wire(answer: QuorumAnswer, records: bytes = b"") -> Message:
    """An answer of a played voter; `records` are the batches of an answer to a fetch."""
    if isinstance(answer, QuorumFetchResponse):
        return _fetch_answer_on_the_wire(answer, records)
    fields: dict[str, Any] = {
        "error_code": answer.error.value,
        "leader_id": answer.leader,
        "leader_epoch": answer.epoch,
    }
    if isinstance(answer, VoteResponse):
        fields["vote_granted"] = answer.is_granted
    return Message(error_code=0, topics=_topics(fields))


def _fetch_answer_on_the_wire(answer: QuorumFetchResponse, records: bytes) -> Message:
    fields: dict[str, Any] = {
        "partition_index": 0,
        "error_code": answer.error.value,
        "high_watermark": answer.high_watermark,
        "log_start_offset": 0,
        "current_leader": Message(leader_id=answer.leader, leader_epoch=answer.epoch),
        "records": records,
    }
    if answer.diverging != UNDEFINED_EPOCH_END:
        fields["diverging_epoch"] = Message(epoch=answer.diverging.leader_epoch, end_offset=answer.diverging.end_offset)
    if answer.snapshot != NO_SNAPSHOT:
        fields["snapshot_id"] = Message(**answer.snapshot._asdict())
    return Message(error_code=0, responses=[Message(topic_id=TOPIC_ID, partitions=[Message(**fields)])])


def snapshot_on_the_wire(snapshot: SnapshotId, content: bytes, leader: BrokerId, epoch: Epoch) -> Message:
    """The answer of a played leader to FetchSnapshot: all of the snapshot in one piece."""
    part = Message(
        index=0,
        error_code=0,
        snapshot_id=Message(**snapshot._asdict()),
        current_leader=Message(leader_id=leader, leader_epoch=epoch),
        size=len(content),
        position=0,
        unaligned_records=content,
    )
    return Message(error_code=0, topics=[Message(name=TOPIC, partitions=[part])])


def answer_in_words_of_spec(api: str, message: Message) -> QuorumAnswer:
    """An answer of a real voter. An error for the whole request counts as one for the partition."""
    if api == "Fetch":
        return _fetch_answer_in_words_of_spec(message)
    return votes_answer(api, message.topics[0].partitions[0])


def _fetch_answer_in_words_of_spec(message: Message) -> QuorumFetchResponse:
    part = message.responses[0].partitions[0]
    error, leader = Error(part.error_code), part.current_leader
    epoch, leader_id = Epoch(leader.leader_epoch), BrokerId(leader.leader_id)
    if error != Error.NONE:
        return QuorumFetchResponse(error, epoch, leader_id)
    records = tuple(record_epochs(bytes(part.records or b"")))
    told = getattr(part, "snapshot_id", None)
    is_told = told is not None and told.end_offset >= 0
    snapshot = SnapshotId(Offset(told.end_offset), Epoch(told.epoch)) if told is not None and is_told else NO_SNAPSHOT
    return QuorumFetchResponse(error, epoch, leader_id, records, Offset(part.high_watermark), diverging_in(part), snapshot)


def record_epochs(batches: bytes) -> list[Record]:
    """The records in batches, as far as the quorum looks at them: their epochs."""
    return [Record(0, Epoch(header.leader_epoch)) for header, records in batches_in(batches) for _ in records]
