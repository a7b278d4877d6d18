"""Transitions of a replica from one role to another: what it keeps, stores, and begins to wait for.

**Kafka:** `QuorumState`, with what `KafkaRaftClient` does on each transition.
"""

from typing import TypeAlias

from kspec.spec.log.algebra import LogT
from kspec.spec.log.batch import Batch
from kspec.spec.messages.quorum.voter_changes import VoterChangeResponse
from kspec.spec.messages.quorum.voters import VoterSet, VoterSetEntry
from kspec.spec.quorum.effects import (
    FailWaiting,
    ForgetRequests,
    Halt,
    IllegalState,
    LeaderChangeAppended,
    LogCommitted,
    LogFlushed,
    PersistElection,
    QuorumEffect,
    QuorumTimer,
    StartTimer,
    VoterChangeEnded,
    VotersAppended,
)
from kspec.spec.quorum.replica import (
    NO_CHANGE,
    ElectionState,
    QuorumReplica,
    QuorumServer,
    ReplicaProgress,
    may_stand,
    own_key,
    progress_of,
    voters_of,
    votes,
)
from kspec.spec.quorum.rules.epochs import LAST_EPOCH, VoterRole
from kspec.spec.quorum.rules.voters import ids_of, matches
from kspec.spec.quorum.rules.votes import NO_TALLY, Tally, is_elected, is_rejected
from kspec.spec.step import Step
from kspec.spec.values import NO_LEADER, NO_REPLICA, UNKNOWN_OFFSET, BrokerId, Epoch, Error, Offset, next_epoch

QuorumStep: TypeAlias = Step[QuorumReplica[LogT], QuorumEffect]

LEADER_CHANGE = Batch(1)
"""The first record of an epoch: who leads. A model does not look into it. Kafka: `LeaderChangeMessage`."""

VOTERS = Batch(1)
"""A record of the voters. A model does not look into it. Kafka: `VotersRecord`."""

VERSION_AND_VOTERS = Batch(2)
"""The version of KRaft, and the voters, in one batch: an upgrade. Kafka: `KRaftVersionRecord`, `VotersRecord`."""

LEADER_CHANGE_AND_VOTERS = Batch(3)
"""The first record of an epoch, the version of KRaft, and the voters, as the first leader writes them: in one batch, so that
no replica has the one without the others. Kafka: `LeaderChangeMessage`, `KRaftVersionRecord`, `VotersRecord`.
"""


def election_timer(server: QuorumServer) -> StartTimer:
    """The timer of a replica that waits for an election: a time, and up to as much more.

    **Kafka:** `QuorumState.randomElectionTimeoutMs`.
    """
    timeout = server.settings.election_timeout_ms
    return StartTimer(QuorumTimer.ROLE, timeout, timeout)


def fetch_timer(server: QuorumServer) -> StartTimer:
    """The timer of a follower. **Kafka:** `FollowerState.resetFetchTimeoutForSuccessfulFetch`."""
    return StartTimer(QuorumTimer.ROLE, server.settings.fetch_timeout_ms)


def check_quorum_timer(server: QuorumServer) -> StartTimer:
    """The timer of a leader that needs to hear of a majority: one and a half times that of a follower.

    **Kafka:** `LeaderState.checkQuorumTimer`, `CHECK_QUORUM_TIMEOUT_FACTOR`.
    """
    return StartTimer(QuorumTimer.CHECK_QUORUM, server.settings.fetch_timeout_ms * 3 // 2)


def in_role(state: QuorumReplica[LogT], role: VoterRole, election: ElectionState) -> QuorumReplica[LogT]:
    """The replica in another role, without what belongs to the one before."""
    return state._replace(
        role=role,
        election=election,
        reaches_leader=False,
        has_fetched=False,
        tally=NO_TALLY,
        epoch_start=UNKNOWN_OFFSET,
        progress=frozenset(),
        heard_from=frozenset(),
        unacknowledged=frozenset(),
        successors=(),
        change=NO_CHANGE,
        reported=frozenset(),
        has_reported=False,
    )


def become_unattached(
    server: QuorumServer, state: QuorumReplica[LogT], epoch: Epoch, leader: BrokerId = NO_LEADER
) -> QuorumStep[LogT]:
    """The replica waits in an epoch: a later one, or the same one if it has asked for votes in vain.

    One that was waiting for an election already goes on with the time that is left, so that later epochs do not put it off.

    **Kafka:** `QuorumState.transitionToUnattached`, `KafkaRaftClient.transitionToUnattached`.
    """
    voted = server.protocol.vote_as_unattached(state.election.voted, epoch == state.election.epoch)
    election = ElectionState(epoch, leader, voted)
    begins_to_wait = state.role in (VoterRole.LEADER, VoterRole.FOLLOWER) or is_rejected_prospective(state)
    timer = (election_timer(server),) if begins_to_wait and may_stand(server, state) else ()
    return Step(in_role(state, VoterRole.UNATTACHED, election), (PersistElection(election), ForgetRequests(), *timer))


def is_rejected_prospective(state: QuorumReplica[LogT]) -> bool:
    """Whether a replica has asked for votes before an election, and a majority refused."""
    return state.role == VoterRole.PROSPECTIVE and is_rejected(state.tally)


def become_follower(server: QuorumServer, state: QuorumReplica[LogT], epoch: Epoch, leader: BrokerId) -> QuorumStep[LogT]:
    """The replica follows the leader of an epoch.

    **Kafka:** `QuorumState.transitionToFollower`, `KafkaRaftClient.onBecomeFollower`.
    """
    voted = server.protocol.vote_as_follower(state.election.voted, epoch == state.election.epoch)
    election = ElectionState(epoch, leader, voted)
    after = in_role(state, VoterRole.FOLLOWER, election)._replace(reaches_leader=True)
    return Step(after, (PersistElection(election), ForgetRequests(), FailWaiting(), fetch_timer(server)))


def become_prospective(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The replica asks whether it would be elected; epoch, leader and vote stay as they are, on the disk, too.

    The only voter is elected at once, and halts if no epoch is left.

    **Kafka:** `QuorumState.transitionToProspective`, `KafkaRaftClient.onBecomeProspective`.
    """
    own, tally = own_key(server, state), first_tally(server, state)
    if is_elected(tally) and state.election.epoch == LAST_EPOCH:
        return Step(state, (Halt(IllegalState.NO_EPOCH_LEFT),))
    election = state.election._replace(voted=server.protocol.vote_as_prospective(state.election.voted, own))
    asking = in_role(state, VoterRole.PROSPECTIVE, election)
    asking = asking._replace(tally=tally, reaches_leader=state.reaches_leader)
    stored = () if election == state.election else (PersistElection(election),)
    return or_forward(server, Step(asking, (*stored, election_timer(server))))


def become_candidate(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The replica stands for election in the next epoch, and votes for itself, which it stores. It halts if there is none.

    **Kafka:** `QuorumState.transitionToCandidate`, `KafkaRaftClient.onBecomeCandidate`; there the epoch after the last is
    negative, and all others refuse it.
    """
    if state.election.epoch == LAST_EPOCH:
        return Step(state, (Halt(IllegalState.NO_EPOCH_LEFT),))
    election = ElectionState(next_epoch(state.election.epoch), NO_LEADER, own_key(server, state))
    standing = in_role(state, VoterRole.CANDIDATE, election)._replace(tally=first_tally(server, state))
    return or_forward(server, Step(standing, (PersistElection(election), election_timer(server))))


def first_tally(server: QuorumServer, state: QuorumReplica[LogT]) -> Tally:
    """The votes of an election that begins: the replica's own, if it counts.

    **Kafka:** `CandidateState`, `ProspectiveState`.
    """
    granted = frozenset({server.self_id}) if votes(server, state) else frozenset[BrokerId]()
    return Tally(voters_of(state), granted)


def or_forward(server: QuorumServer, step: QuorumStep[LogT]) -> QuorumStep[LogT]:
    """The step, and the next one if the replica has the votes that it needs already, being the only voter."""
    forward = go_forward(server, step.state)
    if forward is None:
        return Step(step.state, (*step.effects, ForgetRequests()))
    return Step(forward.state, (*step.effects, *forward.effects))


def go_forward(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT] | None:
    """The step of a replica that has the votes it needs, `None` if it does not.

    **Kafka:** `KafkaRaftClient.maybeTransitionForward`.
    """
    if not is_elected(state.tally):
        return None
    return become_candidate(server, state) if state.role == VoterRole.PROSPECTIVE else become_leader(server, state)


def become_leader(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The candidate leads in its epoch, and appends the first record of it: with that, earlier ones can be committed.

    In the same batch it writes the voters, if only the snapshot of its first start has them, or it is reached elsewhere.

    **Kafka:** `KafkaRaftClient.onBecomeLeader`, `LeaderState.appendStartOfEpochControlRecords`. **Leaves out:** the same
    thread appends the records in its next turn, before it looks at any other message.
    """
    epoch, log = state.election.epoch, state.local.log
    election = ElectionState(epoch, server.self_id)
    has_moved = server.has_moved and votes(server, state)
    tells_voters = state.voters_in_log and (state.voter_sets[-1].offset == UNKNOWN_OFFSET or has_moved)
    first = LEADER_CHANGE_AND_VOTERS if tells_voters else LEADER_CHANGE
    first_voters: VoterSet = voters_of(state) if tells_voters else frozenset()
    found = (VoterSetEntry(_last_offset(log.end_offset, first), first_voters),) if tells_voters else ()
    others = frozenset(ReplicaProgress(voter) for voter in voters_of(state) if voter.id != server.self_id)
    leading = in_role(state, VoterRole.LEADER, election)._replace(
        reaches_leader=True,
        epoch_start=log.end_offset,
        progress=others,
        high_watermark=server.protocol.first_high_watermark(state.high_watermark),
        local=state.local._replace(log=log.open_epoch(epoch).append((first.in_epoch(epoch),))),
        voter_sets=(*state.voter_sets, *found),
        reported=frozenset() if state.voters_in_log else frozenset({own_key(server, state)}),
    )
    voters, granted = ids_of(state.tally.voters), state.tally.granted
    appended = LeaderChangeAppended(log.end_offset, epoch, voters, granted, first_voters)
    committed = flush_and_count(server, leading)
    before = (PersistElection(election), ForgetRequests(), check_quorum_timer(server), appended)
    return Step(committed.state, (*before, *committed.effects))


def _last_offset(base_offset: Offset, batch: Batch) -> Offset:
    return Offset(base_offset + batch.record_count - 1)


def write_voters(state: QuorumReplica[LogT], voters: VoterSet) -> QuorumStep[LogT]:
    """The leader with a record of voters at the end of its log: they count at once, committed or not. If the log has no
    such record yet, `kraft.version` is 1 from now on.

    **Kafka:** `LeaderState.appendVotersRecord`, `maybeAppendUpgradedKRaftVersion`,
    `KRaftControlRecordStateMachine.updateState`.
    """
    log, epoch, upgrades = state.local.log, state.election.epoch, not state.voters_in_log
    batch = VERSION_AND_VOTERS if upgrades else VOTERS
    entry = VoterSetEntry(_last_offset(log.end_offset, batch), voters)
    local = state.local._replace(log=log.append((batch.in_epoch(epoch),)))
    after = state._replace(local=local, voter_sets=(*state.voter_sets, entry), voters_in_log=True)
    return Step(after, (VotersAppended(log.end_offset, epoch, voters, upgrades),))


def become_resigned(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The leader leads no more. It tells the others, and whose log is the longest.

    **Kafka:** `QuorumState.transitionToResigned`, `KafkaRaftClient.transitionToResigned`.
    """
    others = [progress_of(state, voter) for voter in voters_of(state) if voter.id != server.self_id]
    by_end = sorted(others, key=lambda one: (-one.end_offset, one.replica))
    return Step(
        resigned(server, state)._replace(successors=tuple(one.replica for one in by_end)),
        (FailWaiting(), ForgetRequests(), election_timer(server)),
    )


def resigned(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumReplica[LogT]:
    """The replica that led in the epoch of its election, and leads no more; it knows no high watermark then."""
    after = in_role(state, VoterRole.RESIGNED, state.election)
    others = ids_of(voters_of(state)) - {server.self_id}
    return after._replace(high_watermark=UNKNOWN_OFFSET, reaches_leader=True, unacknowledged=others)


# ---- what a leader commits


def flush_and_count(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The leader after an append: it counts its own log, and writes it through to the disk, in the order of its release.

    **Kafka:** `KafkaRaftClient.flushLeaderLog`.
    """
    counted = count_majority(server, state)
    flushed: tuple[QuorumEffect, ...] = (LogFlushed(),)
    effects = (*flushed, *counted.effects) if server.protocol.flushes_first else (*counted.effects, *flushed)
    return Step(counted.state, effects)


def count_majority(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The leader with the high watermark that the logs of a majority allow; it never goes back.

    **Kafka:** `LeaderState.maybeUpdateHighWatermark`, `KafkaRaftClient.onUpdateLeaderHighWatermark`.
    """
    offset = server.protocol.majority_offset(_ends(server, state))
    is_news = state.high_watermark == UNKNOWN_OFFSET or offset > state.high_watermark
    if offset == UNKNOWN_OFFSET or not is_news or not server.protocol.commits(offset, state.epoch_start):
        return Step(state)
    local = state.local._replace(high_watermark=max(state.local.high_watermark, offset))
    committed = state._replace(high_watermark=offset, local=local)
    ended = end_change_if_committed(server, committed)
    return Step(ended.state, (LogCommitted(offset), *ended.effects))


def end_change_if_committed(server: QuorumServer, state: QuorumReplica[LogT]) -> QuorumStep[LogT]:
    """The leader after more is committed: it answers who has asked for a change of voters, and resigns if it is removed.

    **Kafka:** `AddVoterHandler.highWatermarkUpdated`, `RemoveVoterHandler.highWatermarkUpdated`.
    """
    offset = state.change.offset
    is_answered = offset != UNKNOWN_OFFSET and state.high_watermark > offset
    is_removal = state.change.voter == NO_REPLICA
    waits = is_answered and state.change.waits
    ended: tuple[QuorumEffect, ...] = (VoterChangeEnded(VoterChangeResponse(Error.NONE)),) if waits else ()
    after = state._replace(change=NO_CHANGE) if is_answered else state
    is_removed = not votes(server, state) and state.high_watermark > state.voter_sets[-1].offset
    if not is_removed or not server.protocol.resigns_when_removed(is_answered and is_removal):
        return Step(after, ended)
    resigning = become_resigned(server, after)
    return Step(resigning.state, (*ended, *resigning.effects))


def _ends(server: QuorumServer, state: QuorumReplica[LogT]) -> tuple[Offset, ...]:
    """The log ends that count: of voters, the leader's own if its release counts it."""
    own, log_end = own_key(server, state), state.local.log.end_offset
    others = (progress_of(state, voter).end_offset for voter in voters_of(state) if not matches(voter, own))
    counts_itself = server.protocol.counts_leader(votes(server, state))
    return (*others, *((log_end,) if counts_itself else ()))


# ---- what others say of the leader


def follow_or_wait(server: QuorumServer, state: QuorumReplica[LogT], leader: BrokerId, epoch: Epoch) -> QuorumStep[LogT]:
    """The replica after a message that names an epoch, not before its own, and its leader, if the sender knows one.

    Two leaders of one epoch, or oneself as a leader while one is not: the replica halts.

    **Kafka:** `KafkaRaftClient.maybeTransition`, `hasConsistentLeader`.
    """
    leader = leader_told(server, state, leader)
    if leader == server.self_id and state.role != VoterRole.LEADER:
        return Step(state, (Halt(IllegalState.NOT_LEADER),))
    known = state.election.leader
    if epoch == state.election.epoch and NO_LEADER not in (leader, known) and leader != known:
        return Step(state, (Halt(IllegalState.TWO_LEADERS),))
    if epoch > state.election.epoch:
        return (
            become_unattached(server, state, epoch) if leader == NO_LEADER else become_follower(server, state, epoch, leader)
        )
    if leader != NO_LEADER and (known == NO_LEADER or not state.reaches_leader):
        return become_follower(server, state, epoch, leader)
    return Step(state)


def leader_told(server: QuorumServer, state: QuorumReplica[LogT], leader: BrokerId) -> BrokerId:
    """The leader by a message: nobody, if that names the replica itself, which does not lead, and does not stop for it.

    **Kafka:** `KafkaRaftClient.hasConsistentLeader`, by which it stops.
    """
    is_lost_office = leader == server.self_id and state.role != VoterRole.LEADER
    return NO_LEADER if is_lost_office and not server.protocol.stops_if_said_to_lead else leader


def is_halted(step: QuorumStep[LogT]) -> bool:
    """Whether the replica has stopped for good."""
    return any(_is_halt(effect) for effect in step.effects)


def _is_halt(effect: QuorumEffect) -> bool:
    match effect:
        case Halt():
            return True
        case _:
            return False


def has_voted(election: ElectionState) -> bool:
    """Whether a replica has voted in its epoch."""
    return election.voted != NO_REPLICA
