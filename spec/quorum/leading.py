"""Handlers of a leader: it appends, answers fetches, is acknowledged, and resigns."""

from kspec.spec.log.algebra import LogT
from kspec.spec.log.batch import Batches, count_records
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.quorum.answers import take_epoch_and_leader
from kspec.spec.quorum.effects import Halt, IllegalState, LogAppended, QuorumEffect
from kspec.spec.quorum.refusals import check_leaders_request
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, ReplicaProgress, progress_of, voters_of, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.snapshots import IN_PLACE, FetchPlace, place_fetch
from kspec.spec.quorum.rules.voters import is_voter, reaches_end, sets_between
from kspec.spec.quorum.rules.votes import majority_of, size_of
from kspec.spec.quorum.transitions import (
    QuorumStep,
    become_resigned,
    check_quorum_timer,
    count_majority,
    flush_and_count,
)
from kspec.spec.step import Reply, Send, Step
from kspec.spec.values import UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, Epoch, Error, MonotonicMs, Offset, ReplicaKey

# ---- appending


def leads_in(state: QuorumReplica[LogT], epoch: Epoch) -> bool:
    """Whether the replica leads in an epoch, so that what was decided in it may be appended.

    **Kafka:** `KafkaRaftClient.append`, which throws `NotLeaderException`.
    """
    return state.role == VoterRole.LEADER and state.election.epoch == epoch


def is_active(state: QuorumReplica[LogT]) -> bool:
    """Whether the replica leads, and knows all that was committed before it did: then its controller may decide.

    **Kafka:** `KafkaRaftClient.maybeFireLeaderChange`, `QuorumController.claim`.
    """
    return state.role == VoterRole.LEADER and state.high_watermark != UNKNOWN_OFFSET


def append(server: QuorumServer, state: QuorumReplica[LogT], batches: Batches, now: MonotonicMs) -> QuorumStep[LogT]:
    """Append batches as a leader, which must lead in the epoch that they were made in (`leads_in`).

    **Kafka:** `KafkaRaftClient.maybeAppendBatches`.
    """
    log, epoch = state.local.log, state.election.epoch
    appended = tuple(batch.in_epoch(epoch) for batch in batches)
    counted = flush_and_count(server, state._replace(local=state.local._replace(log=log.append(appended))))
    return Step(counted.state, (LogAppended(log.end_offset, appended), *counted.effects))


# ---- answering fetches


def handle_fetch(
    server: QuorumServer, state: QuorumReplica[LogT], request: QuorumFetchRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Answer a fetch with records, or with the end to which the follower has to truncate; note how far it is.

    An answer that says nothing new (`is_news`) may wait until the log grows or more is committed; then the fetch is handled
    once more.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`, `tryCompleteFetchRequest`.
    """
    error = check_leaders_request(state, request.fetch)
    if error != Error.NONE:
        return Step(state, (_fetch_answer(state, error),))
    if request.replica.id == server.self_id:
        return Step(state, (_fetch_answer(state, Error.UNKNOWN_SERVER_ERROR),))
    place = place_fetch(state.local.log, state.snapshot, request.fetch)
    noted = note_fetch(server, state, request, now) if server.protocol.counts_fetch(place != IN_PLACE) else Step(state)
    answering = _before_resignation(noted.state)
    if place != IN_PLACE:
        return Step(noted.state, (*noted.effects, _elsewhere(answering, place)))
    records = state.local.log.read(request.fetch.fetch_offset, server.settings.max_records)
    found = _voter_sets_among(state, request.fetch.fetch_offset, records)
    return Step(noted.state, (*noted.effects, _fetch_answer(answering, Error.NONE, records, found)))


def _before_resignation(state: QuorumReplica[LogT]) -> QuorumReplica[LogT]:
    """The leader that has just committed its own removal: it answers who has committed it, and resigns after that.

    **Kafka:** `LeaderState.requestResign`, `KafkaRaftClient.pollLeader`.
    """
    return state if state.role == VoterRole.LEADER else state._replace(high_watermark=state.local.high_watermark)


def _voter_sets_among(state: QuorumReplica[LogT], begin: Offset, records: Batches) -> VoterSets:
    if not state.voters_in_log:
        return ()
    return sets_between(state.voter_sets, begin, Offset(begin + count_records(records)))


def _fetch_answer(
    state: QuorumReplica[LogT], error: Error, records: Batches = (), voter_sets: VoterSets = ()
) -> QuorumEffect:
    epoch, leader, _ = state.election
    if error != Error.NONE:
        return Reply(QuorumFetchResponse(error, epoch, leader))
    return Reply(QuorumFetchResponse(error, epoch, leader, records, state.high_watermark, voter_sets=voter_sets))


def _elsewhere(state: QuorumReplica[LogT], place: FetchPlace) -> QuorumEffect:
    epoch, leader, _ = state.election
    return Reply(QuorumFetchResponse(Error.NONE, epoch, leader, (), state.high_watermark, *place))


def is_news(request: QuorumFetchRequest, response: QuorumFetchResponse) -> bool:
    """Whether a fetch is answered at once: with an error, records, a truncation, a snapshot, or a later high watermark.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`.
    """
    has_parted = response.diverging != UNDEFINED_EPOCH_END
    is_error = response.error != Error.NONE
    needs_snapshot = response.snapshot != NO_SNAPSHOT
    knows_less = response.high_watermark > request.high_watermark
    return is_error or bool(response.records) or has_parted or needs_snapshot or knows_less


def note_fetch(
    server: QuorumServer, state: QuorumReplica[LogT], request: QuorumFetchRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """Note the end of a replica's log, lower ones, too; commit what a majority of voters has.

    **Kafka:** `LeaderState.updateReplicaState`, `ReplicaState.updateFollowerState`.
    """
    known = progress_of(state, request.replica)
    fetch_offset, is_observer = request.fetch.fetch_offset, not is_voter(voters_of(state), request.replica)
    fetched = known._replace(end_offset=fetch_offset, last_fetch_ms=now, has_acknowledged=True)
    if is_observer or state.voters_in_log:
        fetched = _seen_at_end(fetched, known, state.local.log.end_offset)
    noted = state._replace(progress=(state.progress - {known}) | {fetched})
    heard = hear(server, noted, request.replica)
    if is_observer:
        return heard
    counted = count_majority(server, heard.state)
    return Step(counted.state, (*heard.effects, *counted.effects))


def _seen_at_end(fetched: ReplicaProgress, before: ReplicaProgress, leader_end: Offset) -> ReplicaProgress:
    has_caught_up = before.has_caught_up or reaches_end(fetched.end_offset, leader_end, before.leader_end)
    return fetched._replace(has_caught_up=has_caught_up, leader_end=UNKNOWN_OFFSET if has_caught_up else leader_end)


def hear(server: QuorumServer, state: QuorumReplica[LogT], replica: ReplicaKey) -> QuorumStep[LogT]:
    """Note that a voter is there; with a majority of them, the time in which a leader needs to hear of one begins anew.

    **Kafka:** `LeaderState.updateCheckQuorumForFollowingVoter` (KAFKA-15489, KAFKA-16531).
    """
    voters = voters_of(state)
    if not is_voter(voters, replica):
        return Step(state)
    heard_from = state.heard_from | {replica.id}
    needed = majority_of(size_of(voters)) - votes(server, state)
    if size_of(heard_from) < needed:
        return Step(state._replace(heard_from=heard_from))
    return Step(state._replace(heard_from=frozenset()), (check_quorum_timer(server),))


# ---- being acknowledged


def handle_begin_quorum_epoch_response(
    server: QuorumServer,
    state: QuorumReplica[LogT],
    asked: Send[BeginQuorumEpochRequest],
    response: BeginQuorumEpochResponse,
    now: MonotonicMs,
) -> QuorumStep[LogT]:
    """Note that a voter knows its leader.

    In each release of Kafka the answer of one that is no voter any more stops the process.

    **Kafka:** `KafkaRaftClient.handleBeginQuorumEpochResponse`, `LeaderState.addAcknowledgementFrom`.
    """
    taken = take_epoch_and_leader(server, state, response.error, response.epoch, response.leader)
    if not taken.goes_on or taken.step.state.role != VoterRole.LEADER:
        return taken.step
    voter = next((one for one in voters_of(state) if one.id == asked.to), None)
    if server.protocol.stops_for_acknowledgement(voter is not None):
        return Step(state, (Halt(IllegalState.NOT_A_VOTER),))
    if voter is None:
        return Step(state)
    known = progress_of(state, voter)
    acknowledged = (state.progress - {known}) | {known._replace(has_acknowledged=True)}
    return Step(state._replace(progress=acknowledged))


# ---- resigning


def on_check_quorum(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """The time in which a leader needs to hear of a majority is over: it resigns.

    **Kafka:** `KafkaRaftClient.pollLeader`, `LeaderState.timeUntilCheckQuorumExpires`.
    """
    voters = size_of(voters_of(state))
    if state.role != VoterRole.LEADER or not server.protocol.checks_quorum(voters):
        return Step(state)
    return become_resigned(server, state)


def on_resignation(server: QuorumServer, state: QuorumReplica[LogT], now: MonotonicMs) -> QuorumStep[LogT]:
    """A leader is to stop, or to give up its office. **Kafka:** `KafkaRaftClient.resign`, `shutdown`."""
    return become_resigned(server, state) if state.role == VoterRole.LEADER else Step(state)


def handle_end_quorum_epoch_response(
    server: QuorumServer,
    state: QuorumReplica[LogT],
    asked: Send[EndQuorumEpochRequest],
    response: EndQuorumEpochResponse,
    now: MonotonicMs,
) -> QuorumStep[LogT]:
    """Note that a voter knows of the resignation. **Kafka:** `KafkaRaftClient.handleEndQuorumEpochResponse`."""
    taken = take_epoch_and_leader(server, state, response.error, response.epoch, response.leader)
    if not taken.goes_on:
        return taken.step
    if taken.step.state.role != VoterRole.RESIGNED:
        return Step(state, (Halt(IllegalState.NOT_RESIGNED),))
    return Step(state._replace(unacknowledged=state.unacknowledged - {asked.to}))
