"""Handlers of a change of the voters (KIP-853), one voter at a time: asked for, written, committed, timed out.

The record of the new voters counts as soon as it is in a log; truncation takes it back. A leader that is no voter does not
count itself, and resigns once its removal is committed (`spec.quorum.transitions.end_change_if_committed`).
"""

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.quorum.voter_changes import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.quorum.answers import take_epoch_and_leader
from kspec.spec.quorum.effects import QuorumEffect, VersionsWanted, VoterChangeEnded
from kspec.spec.quorum.leading import hear
from kspec.spec.quorum.replica import (
    NO_CHANGE,
    QuorumReplica,
    QuorumServer,
    ReplicaProgress,
    VoterChange,
    own_key,
    progress_of,
    voters_of,
    votes,
)
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import is_voter, with_report, with_voter, without_voter
from kspec.spec.quorum.transitions import QuorumStep, fetch_timer, flush_and_count, write_voters
from kspec.spec.step import Send, Step
from kspec.spec.values import NO_REPLICA, UNKNOWN_OFFSET, BrokerId, Epoch, Error, MonotonicMs

CAUGHT_UP_MS = 3_600_000
"""The time within which a replica must have fetched that is to vote. Kafka: `LeaderState.isReplicaCaughtUp`."""


def handle_add_voter(
    server: QuorumServer, state: QuorumReplica[LogT], request: AddVoterRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Begin to add a voter: ask it for its versions first.

    Errors: those of `check_voter_change`; `DUPLICATE_VOTER`.

    **Kafka:** `KafkaRaftClient.handleAddVoterRequest`, `AddVoterHandler.handleAddVoterRequest`.
    """
    error = check_voter_change(server, state)
    if error == Error.NONE and with_voter(voters_of(state), request.voter) is None:
        error = Error.DUPLICATE_VOTER
    if error != Error.NONE:
        return Step(state, (VoterChangeEnded(VoterChangeResponse(error)),))
    return Step(state._replace(change=VoterChange(request.voter, waits=request.waits)), (VersionsWanted(request.voter),))


def on_versions(
    server: QuorumServer, state: QuorumReplica[LogT], error: Error, is_supported: bool, now: MonotonicMs
) -> QuorumStep[LogT]:
    """The replica that is to vote has told its versions, or an error: write the new voters, if it has caught up.

    `is_supported`: whether its versions of `kraft.version` include that of the cluster.

    **Kafka:** `AddVoterHandler.handleApiVersionsResponse`.
    """
    voter = state.change.voter
    if voter == NO_REPLICA or state.change.offset != UNKNOWN_OFFSET:
        return Step(state)
    if error != Error.NONE:
        return _ended(state, Error.REQUEST_TIMED_OUT)
    if not is_supported:
        return _ended(state, Error.INVALID_REQUEST)
    if not has_caught_up(progress_of(state, voter), now):
        return _ended(state, Error.REQUEST_TIMED_OUT)
    voters = with_voter(voters_of(state), voter)
    assert voters is not None, "no other change comes between"
    changed = _changed(server, state, voters)
    if state.change.waits:
        return changed
    return Step(changed.state, (*changed.effects, VoterChangeEnded(VoterChangeResponse(Error.NONE))))


def has_caught_up(progress: ReplicaProgress, now: MonotonicMs) -> bool:
    """Whether a replica has once fetched from the leader's end, and has fetched within the last hour.

    So it may be far behind by now. One that was a voter until now may be one again at once.

    **Kafka:** `LeaderState.isReplicaCaughtUp`.
    """
    return progress.has_caught_up and now - progress.last_fetch_ms < CAUGHT_UP_MS


def handle_remove_voter(
    server: QuorumServer, state: QuorumReplica[LogT], request: RemoveVoterRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Remove a voter: write the voters without it. The leader itself may be removed.

    Errors: those of `check_voter_change`; `VOTER_NOT_FOUND`, also for the only voter.

    **Kafka:** `KafkaRaftClient.handleRemoveVoterRequest`, `RemoveVoterHandler.handleRemoveVoterRequest`.
    """
    error = check_voter_change(server, state)
    voters = without_voter(voters_of(state), request.voter)
    if error == Error.NONE and voters is None:
        error = Error.VOTER_NOT_FOUND
    if error != Error.NONE or voters is None:
        return Step(state, (VoterChangeEnded(VoterChangeResponse(error)),))
    return _changed(server, state, voters)


def handle_update_voter(
    server: QuorumServer, state: QuorumReplica[LogT], request: UpdateVoterRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Write the voters once more, as one of them is reached elsewhere; that is answered before it is committed.

    With `kraft.version` 0 the leader remembers what the voter reports instead, for an upgrade (`upgrade_voters`).

    Errors: those of `check_voter_change`; `VOTER_NOT_FOUND`.

    **Kafka:** `KafkaRaftClient.handleUpdateVoterRequest`, `UpdateVoterHandler.handleUpdateVoterRequest`.
    """
    reports = not state.voters_in_log and server.protocol.takes_reports
    error = _check_report(state) if reports else check_voter_change(server, state)
    if error == Error.NONE and not is_voter(voters_of(state), request.voter):
        error = Error.VOTER_NOT_FOUND
    ended: tuple[QuorumEffect, ...] = (VoterChangeEnded(VoterChangeResponse(error)),)
    if error != Error.NONE:
        return Step(state, ended)
    noted: QuorumStep[LogT] = (
        Step(state._replace(reported=with_report(state.reported, request.voter, request.may_upgrade)))
        if reports
        else _written(server, write_voters(state, voters_of(state)))
    )
    heard = hear(server, noted.state, request.voter)
    return Step(heard.state, (*noted.effects, *heard.effects, *ended))


def _check_report(state: QuorumReplica[LogT]) -> Error:
    if state.role != VoterRole.LEADER:
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.NONE if state.high_watermark != UNKNOWN_OFFSET else Error.REQUEST_TIMED_OUT


# ---- the voters of the settings become those of the log


def check_upgrade(server: QuorumServer, state: QuorumReplica[LogT]) -> Error:
    """Whether the replica may raise `kraft.version` to 1, or has it already.

    Errors: `NOT_LEADER_OR_FOLLOWER`; `INVALID_UPDATE_VERSION` while a voter has not reported, or cannot work with it.

    **Kafka:** `KafkaRaftClient.upgradeKRaftVersion`, `LeaderState.maybeAppendUpgradedKRaftVersion`.
    """
    if state.role != VoterRole.LEADER:
        return Error.NOT_LEADER_OR_FOLLOWER
    is_allowed = state.voters_in_log or server.protocol.may_upgrade(voters_of(state), state.reported)
    return Error.NONE if is_allowed else Error.INVALID_UPDATE_VERSION


def upgrade_voters(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """Raise `kraft.version` from 0 to 1, if that is allowed (`check_upgrade`): the voters are written into the log, as they
    have reported. They count at once; a truncation takes them back, and the version.

    A voter that has got another disk since it reported votes no more.

    **Kafka:** `LeaderState.maybeAppendUpgradedKRaftVersion`, `updateVoterAndObserverStates`.
    """
    if state.voters_in_log or check_upgrade(server, state) != Error.NONE:
        return Step(state)
    known = {one.id: one for one in state.reported}
    progress = frozenset(one._replace(replica=known.get(one.replica.id, one.replica)) for one in state.progress)
    written = _written(server, write_voters(state._replace(progress=progress), state.reported))
    return Step(written.state._replace(reported=frozenset()), written.effects)


def _written(server: QuorumServer, step: QuorumStep[LogT]) -> QuorumStep[LogT]:
    counted = flush_and_count(server, step.state)
    return Step(counted.state, (*step.effects, *counted.effects))


# ---- a voter that is reached elsewhere


def update_of(server: QuorumServer, state: QuorumReplica[LogT]) -> Send[UpdateVoterRequest] | None:
    """The request of a follower that votes, and is reached elsewhere than the voters' record says; none of any other.

    It is sent each time that a fetch may take (`fetch_timeout_ms`), until the log says where the voter is reached. A leader
    needs no request (`spec.quorum.transitions.become_leader`). With `kraft.version` 0 a voter reports its directory to each
    leader, until that has taken it.

    **Kafka:** `KafkaRaftClient.pollFollowerAsVoter`, `shouldSendUpdateVoteRequest`.
    """
    follows = state.role == VoterRole.FOLLOWER and state.reaches_leader and votes(server, state)
    is_due = server.has_moved if state.voters_in_log else server.protocol.takes_reports and not state.has_reported
    return Send(state.election.leader, UpdateVoterRequest(own_key(server, state))) if follows and is_due else None


def handle_update_voter_response(
    server: QuorumServer, state: QuorumReplica[LogT], error: Error, epoch: Epoch, leader: BrokerId, now: MonotonicMs
) -> QuorumStep[LogT]:
    """The leader has answered a voter's report: with its epoch, and without an error once it is written or remembered.

    One of a release that remembers no reports says so, and is told nothing more.

    **Kafka:** `KafkaRaftClient.handleUpdateVoterResponse`, `FollowerState.resetFetchTimeoutForSuccessfulFetch`.
    """
    is_unknown = error == Error.UNSUPPORTED_VERSION
    taken = take_epoch_and_leader(server, state, Error.NONE if is_unknown else error, epoch, leader)
    if not taken.goes_on or taken.step.state.role != VoterRole.FOLLOWER:
        return taken.step
    after = taken.step.state._replace(has_reported=not taken.step.state.voters_in_log)
    return Step(after, (*taken.step.effects, fetch_timer(server)))


# ---- a replica that sees to its vote itself


def join_of(server: QuorumServer, state: QuorumReplica[LogT]) -> Send[AddVoterRequest] | Send[RemoveVoterRequest] | None:
    """The request of a controller that does not vote, and is to: none of any other.

    If its server votes with another directory, as after the loss of a disk, it asks to remove that one first. It is sent
    each time that a fetch may take (`fetch_timeout_ms`), so a controller that an operator removes comes back, unless it is
    stopped before (KAFKA-19850).

    **Kafka:** `KafkaRaftClient.pollFollowerAsObserver`, `shouldSendAddOrRemoveVoterRequest`.
    """
    follows = state.role == VoterRole.FOLLOWER and state.reaches_leader and state.voters_in_log
    if not follows or not server.protocol.joins(server.joins) or not server.may_vote or votes(server, state):
        return None
    leader, before = state.election.leader, next((one for one in voters_of(state) if one.id == server.self_id), None)
    if before is not None:
        return Send(leader, RemoveVoterRequest(before))
    return Send(leader, AddVoterRequest(own_key(server, state), waits=False))


# ---- when voters may change


def check_voter_change(server: QuorumServer, state: QuorumReplica[LogT]) -> Error:
    """Whether the voters may be changed now.

    Errors: `NOT_LEADER_OR_FOLLOWER`; `UNSUPPORTED_VERSION` before `kraft.version` 1; `REQUEST_TIMED_OUT` while another
    change is under way, or nothing of the leader's epoch is committed.

    **Kafka:** `AddVoterHandler.handleAddVoterRequest`, `RemoveVoterHandler.handleRemoveVoterRequest`.
    """
    if state.role != VoterRole.LEADER:
        return Error.NOT_LEADER_OR_FOLLOWER
    if state.change != NO_CHANGE:
        return Error.REQUEST_TIMED_OUT
    is_known = state.high_watermark != UNKNOWN_OFFSET
    is_committed = is_known and state.voter_sets[-1].offset < state.high_watermark
    is_allowed = server.protocol.may_change_voters(is_known, is_committed)
    if not state.voters_in_log and (is_known or is_allowed):
        return Error.UNSUPPORTED_VERSION
    return Error.NONE if is_allowed else Error.REQUEST_TIMED_OUT


def on_voter_change_timeout(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """A change of voters has taken too long: its request is answered. The record may be committed all the same.

    **Kafka:** `LeaderState.maybeExpirePendingOperation`.
    """
    return Step(state) if state.change == NO_CHANGE else _ended(state, Error.REQUEST_TIMED_OUT)


def _changed(server: QuorumServer, state: QuorumReplica[LogT], voters: VoterSet) -> QuorumStep[LogT]:
    written = write_voters(state, voters)
    offset = written.state.voter_sets[-1].offset
    waiting = written.state._replace(change=written.state.change._replace(offset=offset))
    return _written(server, Step(waiting, written.effects))


def _ended(state: QuorumReplica[LogT], error: Error) -> QuorumStep[LogT]:
    is_answered = state.change.offset != UNKNOWN_OFFSET and not state.change.waits
    told: tuple[QuorumEffect, ...] = () if is_answered else (VoterChangeEnded(VoterChangeResponse(error)),)
    return Step(state._replace(change=NO_CHANGE), told)
