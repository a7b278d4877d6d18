"""The model's values as a reader of traces sees them. Importing this module makes `in_words` know them."""

from kspec.model_check.models.quorum.values import LateAnswer, VoterServer
from kspec.model_check.traces.encode import in_words
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.quorum.replica import voters_of
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.values import NO_LEADER, NO_REPLICA, UNKNOWN_OFFSET, ReplicaKey

FIRST_LIFE = 1


def _replica_in_words(replica: ReplicaKey) -> str:
    life = replica.directory[0]
    return f"{replica.id}" if life <= FIRST_LIFE else f"{replica.id} (disk {life})"


@in_words.register
def _(replica: ReplicaKey) -> str:
    return _replica_in_words(replica)


@in_words.register
def _(server: VoterServer) -> str:
    replica, election = server.replica, server.replica.election
    if server.halted is not None:
        return f"has stopped: {server.halted.value}"
    parts = [f"{replica.role.value} in epoch {election.epoch}"]
    if replica.role == VoterRole.FOLLOWER:
        parts[0] += f" of {election.leader}" + (", fetches" if replica.has_fetched else "")
    elif replica.role != VoterRole.LEADER and election.leader != NO_LEADER:
        parts.append(f"{election.leader} led")
    if election.voted != NO_REPLICA:
        parts.append(f"voted for {_replica_in_words(election.voted)}")
    if replica.role in NOMINEES:
        parts.append(f"has votes of {in_words(replica.tally.granted)}")
        if replica.tally.rejected:
            parts.append(f"refused by {in_words(replica.tally.rejected)}")
    if replica.voters_in_log:
        parts.append(f"voters {in_words(ids_of(voters_of(replica)))}")
    parts.append(f"log {in_words(replica.local.log)}")
    if replica.snapshot != NO_SNAPSHOT:
        parts.append(f"snapshot to {replica.snapshot.end_offset} of epoch {replica.snapshot.epoch}")
    if server.wanted != NO_SNAPSHOT:
        parts.append(f"fetches a snapshot to {server.wanted.end_offset}")
    if server.flushed < replica.local.log.end_offset:
        parts.append(f"flushed to {server.flushed}")
    if replica.high_watermark != UNKNOWN_OFFSET:
        parts.append(f"committed to {replica.high_watermark}")
    if replica.role == VoterRole.LEADER:
        known = sorted(replica.progress)
        parts += [f"{one.replica.id} at {one.end_offset}" for one in known if one.end_offset != UNKNOWN_OFFSET]
    return ", ".join(parts)


def _request_in_words(request: QuorumRequest) -> str:
    match request:
        case VoteRequest():
            kind = "PreVote" if request.is_pre_vote else "Vote"
            return f"{kind} of epoch {request.epoch}, log to {request.end_offset} of epoch {request.last_epoch}"
        case BeginQuorumEpochRequest():
            return f"BeginQuorumEpoch {request.epoch}"
        case EndQuorumEpochRequest():
            return f"EndQuorumEpoch {request.epoch}"
        case QuorumFetchRequest():
            return f"Fetch at {request.fetch.fetch_offset} in epoch {request.fetch.current_leader_epoch}"


@in_words.register(VoteRequest)
@in_words.register(BeginQuorumEpochRequest)
@in_words.register(EndQuorumEpochRequest)
@in_words.register(QuorumFetchRequest)
def _(request: QuorumRequest) -> str:
    return _request_in_words(request)


@in_words.register
def _(late: LateAnswer) -> str:
    forgotten = "" if late.is_expected else ", forgotten"
    return f"{_request_in_words(late.request)}, answered {late.answer.error.name}{forgotten}"
