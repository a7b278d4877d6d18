"""Handlers of elections: votes, answers to them, and the end of a replica's time."""

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.answers import take_epoch_and_leader
from kspec.spec.quorum.effects import Halt, IllegalState, PersistElection, QuorumEffect, QuorumTimer, StartTimer
from kspec.spec.quorum.refusals import check_voters_request, is_meant
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, may_stand
from kspec.spec.quorum.rules.epochs import LAST_EPOCH, NOMINEES, VoterRole
from kspec.spec.quorum.rules.replication import last_epoch_of
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.quorum.rules.votes import counted
from kspec.spec.quorum.transitions import (
    QuorumStep,
    become_candidate,
    become_follower,
    become_prospective,
    become_unattached,
    election_timer,
    go_forward,
    has_voted,
    is_rejected_prospective,
)
from kspec.spec.step import Reply, Send, Step
from kspec.spec.values import NO_LEADER, Error, MonotonicMs

# ---- asked for a vote


def handle_vote(
    server: QuorumServer, state: QuorumReplica[LogT], request: VoteRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Grant a vote, or say that one would be granted; a vote is stored before it is told.

    A later epoch counts at once, whoever names it, even if he only asks before an election: the sender need not be a voter,
    as voter sets may differ.

    **Kafka:** `KafkaRaftClient.handleVoteRequest`.
    """
    is_illegal = request.last_epoch > request.epoch or (request.last_epoch == request.epoch and not request.is_pre_vote)
    if is_illegal or request.end_offset < 0 or request.last_epoch < 0:
        return Step(state, (_answer(state, Error.INVALID_REQUEST),))
    error = check_voters_request(state, request.epoch)
    if error != Error.NONE:
        return Step(state, (_answer(state, error),))
    if request.epoch > state.election.epoch:
        is_served = state.role == VoterRole.FOLLOWER and state.has_fetched
        if not server.protocol.takes_epoch_of_vote(state.role == VoterRole.LEADER, is_served):
            return Step(state, (_answer(state, Error.NONE),))
        waiting = become_unattached(server, state, request.epoch)
        return _granted_or_not(server, waiting, request)
    return _granted_or_not(server, Step(state), request)


def _granted_or_not(server: QuorumServer, step: QuorumStep[LogT], request: VoteRequest) -> QuorumStep[LogT]:
    state, effects = step.state, step.effects
    if not is_meant(server, state, request.voter):
        return Step(state, (*effects, _answer(state, Error.INVALID_VOTER_KEY)))
    if not would_grant(server, state, request):
        return Step(state, (*effects, _answer(state, Error.NONE)))
    if request.is_pre_vote or has_voted(state.election):
        return Step(state, (*effects, _answer(state, Error.NONE, is_granted=True)))
    election = state.election._replace(voted=request.replica)
    voted = state._replace(election=election)
    stored: tuple[QuorumEffect, ...] = (PersistElection(election), election_timer(server))
    return Step(voted, (*effects, *stored, _answer(voted, Error.NONE, is_granted=True)))


def would_grant(server: QuorumServer, state: QuorumReplica[LogT], request: VoteRequest) -> bool:
    """Whether a replica grants a vote in its epoch, or would. **Kafka:** `EpochState.canGrantVote` of each state."""
    log, protocol = state.local.log, server.protocol
    up_to_date = protocol.is_up_to_date(request.last_epoch, request.end_offset, last_epoch_of(log), log.end_offset)
    if request.is_pre_vote:
        follows = state.role == VoterRole.FOLLOWER
        return protocol.grants_pre_vote(state.role == VoterRole.LEADER, follows, state.has_fetched, up_to_date)
    if state.role not in (VoterRole.UNATTACHED, VoterRole.PROSPECTIVE):
        return False
    return protocol.grants_vote(state.election.leader, state.election.voted, request.replica, up_to_date)


def _answer(state: QuorumReplica[LogT], error: Error, is_granted: bool = False) -> QuorumEffect:
    return Reply(VoteResponse(error, state.election.epoch, state.election.leader, is_granted))


# ---- answered


def handle_vote_response(
    server: QuorumServer, state: QuorumReplica[LogT], asked: Send[VoteRequest], response: VoteResponse, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Count a vote. With a majority the replica is a candidate, or a leader; refused by one, it asks no more.

    A voter that does not know the question before an election is of a release before 4.0; then the replica is a candidate
    at once, without a majority.

    **Kafka:** `KafkaRaftClient.handleVoteResponse`.
    """
    if response.error == Error.UNSUPPORTED_VERSION:
        return become_candidate(server, state) if state.role == VoterRole.PROSPECTIVE else Step(state)
    taken = take_epoch_and_leader(server, state, response.error, response.epoch, response.leader)
    if not taken.goes_on or taken.step.state.role not in NOMINEES:
        return taken.step
    if asked.to not in ids_of(state.tally.voters):
        return Step(state, (Halt(IllegalState.NOT_A_VOTER),))
    before = state.tally.rejected if response.is_granted else state.tally.granted
    if state.role == VoterRole.CANDIDATE and asked.to in before:
        return Step(state, (Halt(IllegalState.CHANGED_VOTE),))
    tallied = state._replace(tally=counted(state.tally, asked.to, response.is_granted))
    if is_rejected_prospective(tallied):
        return after_lost_pre_vote(server, tallied)
    return go_forward(server, tallied) or Step(tallied)


def after_lost_pre_vote(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The replica that would not be elected follows its leader again, if it knows one, or waits, in the same epoch.

    **Kafka:** `KafkaRaftClient.prospectiveTransitionAfterElectionLoss`.
    """
    epoch, leader, _ = state.election
    if leader != NO_LEADER and state.reaches_leader:
        return become_follower(server, state, epoch, leader)
    return become_unattached(server, state, epoch, leader)


# ---- the end of a time


def on_timeout(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """The time of the replica's role is over: without an election, a fetch that is answered, enough votes.

    An observer whose leader does not answer asks any voter who leads, and follows on until one says so.

    **Kafka:** `KafkaRaftClient.pollCurrentState`, `pollFollowerAsObserver`. **Leaves out:** the
    back-off between two elections, up to 4.1.
    """
    role = server.protocol.role_after_timeout(state.role)
    if state.role == VoterRole.FOLLOWER and not may_stand(server, state):
        return Step(state._replace(reaches_leader=False))
    if state.role == VoterRole.LEADER or (state.role != VoterRole.RESIGNED and not may_stand(server, state)):
        return Step(state)
    if state.role == VoterRole.RESIGNED and (role == VoterRole.UNATTACHED or not may_stand(server, state)):
        if state.election.epoch == LAST_EPOCH:
            return Step(state, (Halt(IllegalState.NO_EPOCH_LEFT),))
        return _without_delay(
            become_unattached(server, state, server.protocol.epoch_after_resignation(state.election.epoch))
        )
    if role == VoterRole.CANDIDATE:
        return become_candidate(server, state)
    if role == VoterRole.PROSPECTIVE:
        return become_prospective(server, state)
    lost = after_lost_pre_vote(server, state)
    return _without_delay(lost) if lost.state.role == VoterRole.UNATTACHED else lost


def _without_delay(step: QuorumStep[LogT]) -> QuorumStep[LogT]:
    """The replica waits for the rest of its time, of which nothing is left."""
    return Step(step.state, (*step.effects, StartTimer(QuorumTimer.ROLE, 0)))
