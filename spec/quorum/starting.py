"""The start of a replica, from what is on its disk."""

from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.quorum.effects import Halt, IllegalState, PersistElection
from kspec.spec.quorum.replica import ElectionState, QuorumReplica, QuorumServer, may_stand, own_key, voters_of, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import last_epoch_of
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.quorum.rules.votes import size_of
from kspec.spec.quorum.transitions import (
    QuorumStep,
    become_follower,
    become_leader,
    become_prospective,
    election_timer,
    first_tally,
    in_role,
    or_forward,
    resigned,
)
from kspec.spec.step import Step
from kspec.spec.values import NO_LEADER, DirectoryId


def start(
    server: QuorumServer,
    log: LogT,
    election: ElectionState,
    directory: DirectoryId,
    voter_sets: VoterSets,
    snapshot: SnapshotId = NO_SNAPSHOT,
    voters_in_log: bool = False,
) -> QuorumStep[LogT]:
    """The replica as it starts: from its log, the stored election, the id of its directory, the voter sets of its log, the
    snapshot with which that begins, and whether its voter sets may change.

    An election that is older than the log counts for nothing. The only voter leads at once, in the next epoch.

    **Kafka:** `QuorumState.initialize`, `KafkaRaftClient.initialize`.
    """
    last_epoch = last_epoch_of(log)
    stored = ElectionState(last_epoch) if election.epoch < last_epoch else election
    committed = max(log.start_offset, snapshot.end_offset)
    state = QuorumReplica(
        LocalLog(log, committed), voter_sets, directory, stored, snapshot=snapshot, voters_in_log=voters_in_log
    )
    step = _restored(server, state)
    stands = step.state.role in (VoterRole.UNATTACHED, VoterRole.FOLLOWER, VoterRole.RESIGNED)
    if stands and votes(server, state) and size_of(voters_of(state)) == 1:
        alone = become_prospective(server, step.state)
        return Step(alone.state, (*step.effects, *alone.effects))
    return step


def _restored(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    election, own = state.election, own_key(server, state)
    match server.protocol.role_after_restart(election.leader, election.voted, own):
        case VoterRole.LEADER:
            return become_leader(server, state._replace(tally=first_tally(server, state)))
        case VoterRole.RESIGNED:  # its time ends, whether it votes or not: one that does not reads on then
            return Step(resigned(server, state), (PersistElection(state.election), election_timer(server)))
        case VoterRole.CANDIDATE:
            return _standing_again(server, state)
        case _:
            return _following_or_waiting(server, state)


def _standing_again(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The replica that had voted for itself stands again in that epoch, even if it knew who won. Only a voter can."""
    if not may_stand(server, state):
        return Step(state, (Halt(IllegalState.STANDS_WITHOUT_VOTE),))
    standing = in_role(state, VoterRole.CANDIDATE, state.election._replace(leader=NO_LEADER))
    return or_forward(server, _stored(server, standing._replace(tally=first_tally(server, state))))


def _following_or_waiting(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The replica follows the leader that it knew, if the voter set has its address; or it waits, and asks who leads."""
    epoch, leader, _ = state.election
    if leader in ids_of(voters_of(state)):
        return become_follower(server, state, epoch, leader)
    return _stored(server, in_role(state, VoterRole.UNATTACHED, state.election))


def _stored(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    timer = (election_timer(server),) if may_stand(server, state) else ()
    return Step(state, (PersistElection(state.election), *timer))
