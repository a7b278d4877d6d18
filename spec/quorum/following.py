"""Handlers of a follower: it hears of leaders, and appends what its leader sends."""

from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import LocalLog, append_in_order, truncate
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSet, VoterSetEntry
from kspec.spec.quorum.answers import take_epoch_and_leader
from kspec.spec.quorum.effects import (
    Halt,
    IllegalState,
    LogAppended,
    LogCommitted,
    LogCut,
    LogFlushed,
    LogReplaced,
    QuorumEffect,
    QuorumTimer,
    SnapshotWanted,
    StartTimer,
)
from kspec.spec.quorum.refusals import check_voters_request, is_meant
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, own_key, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import truncation_offset
from kspec.spec.quorum.rules.voters import are_in_log, matches, sets_after_snapshot, sets_between
from kspec.spec.quorum.transitions import QuorumStep, fetch_timer, follow_or_wait, is_halted
from kspec.spec.step import Reply, Send, Step
from kspec.spec.values import (
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
    ReplicaKey,
)

# ---- told of a leader


def handle_begin_quorum_epoch(
    server: QuorumServer, state: QuorumReplica[LogT], request: BeginQuorumEpochRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Follow a leader that says so. Its epoch counts even if the request was meant for another replica.

    **Kafka:** `KafkaRaftClient.handleBeginQuorumEpochRequest`.
    """
    error = check_voters_request(state, request.epoch)
    if error != Error.NONE:
        return Step(state, (_begin_answer(state, error),))
    step = follow_or_wait(server, state, request.leader, request.epoch)
    if is_halted(step):
        return step
    error = Error.NONE if is_meant(server, state, request.voter) else Error.INVALID_VOTER_KEY
    return Step(step.state, (*step.effects, _begin_answer(step.state, error)))


def _begin_answer(state: QuorumReplica[LogT], error: Error) -> QuorumEffect:
    return Reply(BeginQuorumEpochResponse(error, state.election.epoch, state.election.leader))


def handle_end_quorum_epoch(
    server: QuorumServer, state: QuorumReplica[LogT], request: EndQuorumEpochRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Wait no longer for a leader that has resigned: the sooner, the better the replica's place among the successors.

    **Kafka:** `KafkaRaftClient.handleEndQuorumEpochRequest`.
    """
    error = check_voters_request(state, request.epoch)
    if error != Error.NONE:
        return Step(state, (_end_answer(state, error),))
    step = follow_or_wait(server, state, request.leader, request.epoch)
    if is_halted(step):
        return step
    after, effects = step.state, step.effects
    if after.role == VoterRole.FOLLOWER and after.election.leader == request.leader:
        backoff = successors_backoff(own_key(server, state), request.successors, server.settings.election_backoff_max_ms)
        effects = (*effects, StartTimer(QuorumTimer.ROLE, backoff))
    return Step(after, (*effects, _end_answer(after, Error.NONE)))


def _end_answer(state: QuorumReplica[LogT], error: Error) -> QuorumEffect:
    return Reply(EndQuorumEpochResponse(error, state.election.epoch, state.election.leader))


def successors_backoff(own: ReplicaKey, successors: tuple[ReplicaKey, ...], longest_ms: int) -> int:
    """The time (milliseconds) that a follower waits after a resignation: none as the first of the successors, then more for
    each; the longest if it is not among them.

    **Kafka:** `KafkaRaftClient.endEpochElectionBackoff`, `strictExponentialElectionBackoffMs`.
    """
    places = [place for place, successor in enumerate(successors) if matches(successor, own)]
    if not places:
        return longest_ms if successors else 0
    shortest = longest_ms >> (len(successors) - 1)
    return 0 if places[0] == 0 else min(longest_ms, shortest << (places[0] - 1))


# ---- fetching


def handle_fetch_response(
    server: QuorumServer,
    state: QuorumReplica[LogT],
    asked: Send[QuorumFetchRequest],
    response: QuorumFetchResponse,
    now: MonotonicMs,
) -> QuorumStep[LogT]:
    """Append the leader's records, and write them through to the disk before the next fetch; or truncate; or ask for a
    snapshot.

    **Kafka:** `KafkaRaftClient.handleFetchResponse`.
    """
    taken = take_epoch_and_leader(server, state, response.error, response.epoch, response.leader)
    if not taken.goes_on:
        return taken.step
    following, effects = taken.step
    if following.role != VoterRole.FOLLOWER:
        return Step(state, (Halt(IllegalState.NOT_FOLLOWING),))
    if response.snapshot != NO_SNAPSHOT:
        step: QuorumStep[LogT] = Step(following, (SnapshotWanted(response.snapshot),))
    elif response.diverging != UNDEFINED_EPOCH_END:
        step = truncate_by(server, following, response.diverging)
    else:
        step = append_records(server, following, asked.message.fetch.fetch_offset, response)
    fetched: tuple[QuorumEffect, ...] = () if is_halted(step) else (fetch_timer(server),)
    return Step(step.state._replace(has_fetched=True, reaches_leader=True), (*effects, *step.effects, *fetched))


def truncate_by(server: QuorumServer, state: QuorumReplica[LogT], end: EpochEndOffset) -> QuorumStep[LogT]:
    """Truncate to where the follower's log has parted from the leader's, which is never below what is committed.

    A log that is empty then begins and ends with a snapshot, whose epoch is its last one.

    **Kafka:** `KafkaRaftClient.handleFetchResponse`, `KafkaRaftLog.truncateTo`, `lastFetchedEpoch`.
    """
    offset = truncation_offset(state.local.log, state.snapshot, end)
    committed = max(state.high_watermark, state.local.high_watermark)
    if not server.protocol.may_truncate(min(offset, end.end_offset), committed):
        return Step(state, (Halt(IllegalState.BELOW_HIGH_WATERMARK),))
    local = truncate(state.local, offset)
    if state.snapshot != NO_SNAPSHOT and state.snapshot.end_offset == offset:
        local = local._replace(log=local.log.open_epoch(state.snapshot.epoch))
    after = state._replace(local=local)
    if state.voters_in_log:
        voter_sets = server.protocol.sets_after_cut(state.voter_sets, offset)
        after = after._replace(voter_sets=voter_sets, voters_in_log=are_in_log(voter_sets[-1].voters))
    return Step(after, (LogCut(offset),))


def append_records(
    server: QuorumServer, state: QuorumReplica[LogT], base_offset: Offset, response: QuorumFetchResponse
) -> QuorumStep[LogT]:
    """Append what a leader has sent, and take its high watermark, as far as the log goes.

    **Kafka:** `KafkaRaftClient.appendAsFollower`, `updateFollowerHighWatermark`.
    """
    records = server.protocol.takes_records(response.records, state.election.epoch)
    appended = append_in_order(state.local, base_offset, records)
    if appended.error != Error.NONE:
        return Step(state, (Halt(IllegalState.UNEXPECTED_OFFSET),))
    written: tuple[QuorumEffect, ...] = (LogAppended(base_offset, records),) if records else ()
    if records and server.protocol.flushes_fetched(server.may_vote or votes(server, state)):
        written = (*written, LogFlushed())
    found = sets_between(response.voter_sets, base_offset, appended.local.log.end_offset)
    in_log = state.voters_in_log or bool(found)
    after = state._replace(local=appended.local, voter_sets=(*state.voter_sets, *found), voters_in_log=in_log)
    known, told = state.high_watermark, min(response.high_watermark, appended.local.log.end_offset)
    if response.high_watermark == UNKNOWN_OFFSET or told == known:
        return Step(after, written)
    if told < known:
        return Step(after, (*written, Halt(IllegalState.HIGH_WATERMARK_BACK)))
    local = appended.local._replace(high_watermark=max(told, appended.local.high_watermark))
    return Step(after._replace(local=local, high_watermark=told), (*written, LogCommitted(told)))


def on_snapshot(
    server: QuorumServer,
    state: QuorumReplica[LogT],
    snapshot: SnapshotId,
    now: MonotonicMs,
    voters: VoterSet = frozenset(),
) -> QuorumStep[LogT]:
    """Go on after a snapshot that is complete and on the disk: the log begins with it, and what was in the log is gone.

    The epoch of the snapshot counts as opened, so that the log's last epoch is known before its first record. A snapshot
    of less than is known to be committed changes nothing. `voters`: those that it tells; none with `kraft.version` 0.

    **Kafka:** `KafkaRaftClient.handleFetchSnapshotResponse`, `KafkaRaftLog.truncateToLatestSnapshot`,
    `KRaftControlRecordStateMachine.maybeLoadSnapshot`.
    """
    end = snapshot.end_offset
    if end <= state.local.high_watermark:
        return Step(state)
    log = state.local.log.restart_at(end).open_epoch(snapshot.epoch)
    known = max(state.high_watermark, end)
    voter_sets = (VoterSetEntry(Offset(end - 1), voters),) if voters else state.voter_sets
    after = state._replace(local=LocalLog(log, end), snapshot=snapshot, high_watermark=known, voter_sets=voter_sets)
    after = after._replace(voters_in_log=state.voters_in_log or bool(voters))
    return Step(after, (LogReplaced(snapshot), LogCommitted(known), fetch_timer(server)))


def on_snapshot_piece(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """A piece of a snapshot is there: the leader is.

    **Kafka:** `KafkaRaftClient.handleFetchSnapshotResponse`, `FollowerState.resetFetchTimeoutForSuccessfulFetch`.
    """
    return Step(state, (fetch_timer(server),))


def after_own_snapshot(state: QuorumReplica[LogT], snapshot: SnapshotId) -> QuorumReplica[LogT]:
    """The replica that has taken a snapshot of what is committed, and keeps no records before its end.

    **Kafka:** `KafkaRaftClient.createSnapshot`, `KafkaRaftLog.deleteBeforeSnapshot`.
    """
    local, end = state.local, snapshot.end_offset
    voter_sets = sets_after_snapshot(state.voter_sets, end) if state.voters_in_log else state.voter_sets
    return state._replace(snapshot=snapshot, local=local._replace(log=local.log.start_at(end)), voter_sets=voter_sets)
