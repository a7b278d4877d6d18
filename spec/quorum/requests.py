"""Requests of a replica: which it would send to whom, in the state that it is in."""

from typing import TypeAlias

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, own_key, progress_of, voters_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import last_epoch_of
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.quorum.rules.votes import is_rejected
from kspec.spec.step import Send
from kspec.spec.values import BrokerId, MonotonicMs, ReplicaKey

QuorumRequest: TypeAlias = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | QuorumFetchRequest


def requests_of(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> tuple[Send[QuorumRequest], ...]:
    """The requests that a replica would send now, one to a server at most, to each of which one is under way at a time.

    One that waits, and an observer whose leader does not answer, asks any voter who leads, or any server by which it was
    told to begin, by a fetch: the caller picks one of them.

    **Kafka:** `KafkaRaftClient.pollCurrentState`. **Leaves out:** a voter that gets no answer from its
    leader asks another one.
    """
    others = sorted(voter for voter in voters_of(state) if voter.id != server.self_id)
    if asks_anybody(state):
        return tuple(Send(one, _fetch(server, state)) for one in _who_may_know(server, state))
    match state.role:
        case VoterRole.FOLLOWER:
            return (Send(state.election.leader, _fetch(server, state)),)
        case VoterRole.PROSPECTIVE | VoterRole.CANDIDATE:
            asked = () if is_rejected(state.tally) else others
            answered = state.tally.granted | state.tally.rejected
            return tuple(Send(voter.id, _vote(server, state, voter)) for voter in asked if voter.id not in answered)
        case VoterRole.LEADER:
            told = (voter for voter in others if _needs_begin(server, state, voter, now))
            return tuple(Send(voter.id, _begin(server, state, voter)) for voter in told)
        case _:  # it has resigned
            return tuple(Send(voter.id, _end(server, state)) for voter in others if voter.id in state.unacknowledged)


def asks_anybody(state: QuorumReplica[LogT]) -> bool:
    """Whether each of the requests of a replica would do: it asks who leads.

    **Kafka:** `KafkaRaftClient.maybeSendFetchToAnyBootstrap`.
    """
    waits = state.role == VoterRole.UNATTACHED
    return waits or (state.role == VoterRole.FOLLOWER and not state.reaches_leader)


def _who_may_know(server: QuorumServer, state: QuorumReplica[LogT]) -> tuple[BrokerId, ...]:
    return (*sorted(ids_of(voters_of(state)) - {server.self_id}), *server.bootstrap)


def _fetch(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumRequest:
    log = state.local.log
    position = FetchPosition(state.election.epoch, log.end_offset, last_epoch_of(log))
    return QuorumFetchRequest(own_key(server, state), position, state.high_watermark)


def _vote(server: QuorumServer, state: QuorumReplica[LogT], voter: ReplicaKey) -> QuorumRequest:
    log, is_pre_vote = state.local.log, state.role == VoterRole.PROSPECTIVE
    own = own_key(server, state)
    return VoteRequest(state.election.epoch, own, last_epoch_of(log), log.end_offset, voter, is_pre_vote)


def _begin(server: QuorumServer, state: QuorumReplica[LogT], voter: ReplicaKey) -> QuorumRequest:
    return BeginQuorumEpochRequest(state.election.epoch, server.self_id, voter)


def _end(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumRequest:
    return EndQuorumEpochRequest(state.election.epoch, server.self_id, state.successors)


def _needs_begin(server: QuorumServer, state: QuorumReplica[LogT], voter: ReplicaKey, now: MonotonicMs) -> bool:
    known = progress_of(state, voter)
    period = begin_period_ms(server)
    return server.protocol.needs_begin(known.has_acknowledged, now - known.last_fetch_ms, period)


def begin_period_ms(server: QuorumServer) -> int:
    """The time (milliseconds) after which a leader looks again whom to tell that it leads.

    **Kafka:** `LeaderState.beginQuorumEpochTimer`.
    """
    return server.settings.fetch_timeout_ms // 2
