"""Requests and answers about votes, in the words of the wire and in those of `spec.quorum`: for the controllers of this
project, and for programs that speak with Kafka's.
"""

from dataclasses import replace
from typing import TypeVar

from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_REPLICA,
    UNDEFINED_EPOCH_END,
    BrokerId,
    DirectoryId,
    Epoch,
    EpochEndOffset,
    Error,
    Offset,
    ReplicaKey,
)

FIRST_WITH_PRE_VOTE = 2
"""The version of Vote that may ask before an election."""

FIRST_WITH_DIRECTORIES = 1
"""The version of Vote from which voters are named with their directories."""

FIRST_WITH_ACK = 1
"""The version of AddRaftVoter from which who asks says whether it waits for the commit."""

FIRST_WITH_CANDIDATES = 1
"""The version of EndQuorumEpoch from which successors are named with their directories."""


# ---- requests


def vote_asked(message: Message, part: Message, version: int, who: str = "replica") -> VoteRequest:
    """A Vote request in words of `spec`. `who`: the name by which the fields begin of the one who asks: before 4.0
    `candidate`.
    """
    directory = getattr(part, f"{who}_directory_id") if version >= FIRST_WITH_DIRECTORIES else NO_DIRECTORY
    return VoteRequest(
        Epoch(getattr(part, f"{who}_epoch")),
        key_of(getattr(part, f"{who}_id"), directory),
        Epoch(part.last_offset_epoch),
        Offset(part.last_offset),
        _voter(message, part, version),
        version >= FIRST_WITH_PRE_VOTE and part.pre_vote,
    )


def begin_asked(message: Message, part: Message, version: int) -> BeginQuorumEpochRequest:
    """A BeginQuorumEpoch request in words of `spec`."""
    return BeginQuorumEpochRequest(Epoch(part.leader_epoch), BrokerId(part.leader_id), _voter(message, part, version))


def end_asked(message: Message, part: Message, version: int) -> EndQuorumEpochRequest:
    """An EndQuorumEpoch request in words of `spec`."""
    if version >= FIRST_WITH_CANDIDATES:
        successors = tuple(key_of(one.candidate_id, one.candidate_directory_id) for one in part.preferred_candidates)
    else:
        successors = tuple(key_of(one, NO_DIRECTORY) for one in part.preferred_successors)
    return EndQuorumEpochRequest(Epoch(part.leader_epoch), BrokerId(part.leader_id), successors)


def key_of(node: int, directory: bytes) -> ReplicaKey:
    """A replica by what a message says of it."""
    return ReplicaKey(BrokerId(node), DirectoryId(bytes(directory)))


def _voter(message: Message, part: Message, version: int) -> ReplicaKey:
    """The voter that is asked, as far as the request says it: since version 1."""
    if version < FIRST_WITH_DIRECTORIES or message.voter_id < 0:
        return NO_REPLICA
    return key_of(message.voter_id, part.voter_directory_id)


AnyRequest = TypeVar("AnyRequest", bound=QuorumRequest)


def by_ids(request: AnyRequest) -> AnyRequest:
    """A request that names servers only, as one of a sender that knows no directories."""
    match request:
        case VoteRequest():
            return replace(request, replica=_server(request.replica), voter=_server(request.voter))
        case BeginQuorumEpochRequest():
            return replace(request, voter=_server(request.voter))
        case EndQuorumEpochRequest():
            return replace(request, successors=tuple(map(_server, request.successors)))
        case QuorumFetchRequest():
            return replace(request, replica=_server(request.replica))
        case _:
            raise AssertionError(f"{request} is no request of the quorum")


def _server(replica: ReplicaKey) -> ReplicaKey:
    return ReplicaKey(replica.id)


# ---- answers


def votes_answer(api: str, part: Message) -> QuorumAnswer:
    """The answer to Vote, BeginQuorumEpoch or EndQuorumEpoch, by its partition."""
    error, epoch, leader = error_of(part.error_code), Epoch(part.leader_epoch), BrokerId(part.leader_id)
    match api:
        case "Vote":
            return VoteResponse(error, epoch, leader, part.vote_granted)
        case "BeginQuorumEpoch":
            return BeginQuorumEpochResponse(error, epoch, leader)
        case _:
            return EndQuorumEpochResponse(error, epoch, leader)


def diverging_in(part: Message) -> EpochEndOffset:
    """The end to which a follower has to truncate, by the partition of an answer to Fetch."""
    found = part.diverging_epoch
    if found is None or found.end_offset < 0:
        return UNDEFINED_EPOCH_END
    return EpochEndOffset(Epoch(found.epoch), Offset(found.end_offset))


def error_of(code: int) -> Error:
    """The error of a code; one that `spec` has no name for is unknown."""
    return Error(code) if code in KNOWN else Error.UNKNOWN_SERVER_ERROR


KNOWN = frozenset(error.value for error in Error)
