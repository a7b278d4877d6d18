"""Three voters by the handlers of `spec/quorum`, and what a step makes of them.

Time is a choice, as in model `quorum`: whoever has fetched has done so long ago.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kspec.conformance.quorum.moves import (
    AddVoter,
    AnswerArrival,
    Append,
    LoseDisk,
    QuorumMove,
    RemoveVoter,
    Restart,
    Silence,
    SnapshotTransfer,
    TakeSnapshot,
    Tell,
    TimeOut,
    VoterChangeTimesOut,
    VoterExchange,
    VoterRequestKind,
)
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest, VoterChangeResponse
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.quorum.effects import (
    ForgetRequests,
    Halt,
    IllegalState,
    LogReplaced,
    QuorumAnswer,
    SnapshotWanted,
    VersionsWanted,
    VoterChangeEnded,
)
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot, on_snapshot
from kspec.spec.quorum.leading import append, on_check_quorum
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.reconfiguration import handle_add_voter, handle_remove_voter, on_versions, on_voter_change_timeout
from kspec.spec.quorum.replica import (
    NO_CHANGE,
    NO_ELECTION,
    ElectionState,
    QuorumReplica,
    QuorumServer,
    QuorumSettings,
    voters_of,
)
from kspec.spec.quorum.requests import QuorumRequest, requests_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.snapshots import check_snapshot
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.releases.quorum import QUORUM_NEXT, QUORUM_RELEASES
from kspec.spec.step import Reply, Send
from kspec.spec.values import NO_DIRECTORY, NO_EPOCH, BrokerId, DirectoryId, Error, MonotonicMs, Offset, Record, ReplicaKey

NOW = MonotonicMs(1_000_000)
LONG_AGO = MonotonicMs(0)
VOTERS = tuple(BrokerId(number) for number in (1, 2, 3))
DIRECTORIES = {one: DirectoryId(bytes([one]) * 16) for one in VOTERS}
"""The directories of the voters, where those are in the log."""

APPENDED = 1
"""The value of a record that a played leader appends."""

KINDS = {
    VoterRequestKind.BEGIN_QUORUM_EPOCH: BeginQuorumEpochRequest,
    VoterRequestKind.END_QUORUM_EPOCH: EndQuorumEpochRequest,
}


class QuorumVoter(NamedTuple):
    """A voter: its replica, why it has stopped for good, if it has, and the snapshot that it is to fetch, if it is."""

    replica: QuorumReplica[RecordLog]
    halted: IllegalState | None = None
    wanted: SnapshotId = NO_SNAPSHOT


class AnswerOnItsWay(NamedTuple):
    """An answer that a voter has sent to another, which has not heard it yet.

    **Leaves out:** a server that changes its role meanwhile forgets the request (`ForgetRequests`); no run has that.
    """

    server: BrokerId
    asked: BrokerId
    request: QuorumRequest
    answer: QuorumAnswer


class Voters(NamedTuple):
    """The voters, by the rules of a release.

    They know each other by configuration, and no directories; with `voters_in_log` by the log, and with their directories.
    """

    protocol: QuorumProtocol
    voters: tuple[QuorumVoter, ...]
    voters_in_log: bool = False
    on_the_way: tuple[AnswerOnItsWay, ...] = ()

    def key(self, one: BrokerId) -> ReplicaKey:
        """A voter by its id and its directory, if that is known."""
        return ReplicaKey(one, DIRECTORIES[one] if self.voters_in_log else NO_DIRECTORY)

    def of(self, one: BrokerId) -> QuorumVoter:
        """A voter by its id."""
        return self.voters[one - 1]

    def replaced(self, one: BrokerId, voter: QuorumVoter) -> "Voters":
        """The voters with another state of one."""
        return self._replace(voters=tuple(voter if number == one else self.of(number) for number in VOTERS))

    def server(self, one: BrokerId) -> QuorumServer:
        """The server of a voter."""
        return QuorumServer(self.protocol, QuorumSettings(), one)


class VotersStep(NamedTuple):
    """A step: the voters after it, the request and the answer that went over the network, if any, and the answer to the
    operator, if he gets his."""

    after: Voters
    request: QuorumRequest | None = None
    answer: QuorumAnswer | None = None
    changed: VoterChangeResponse | None = None


def rules_of(kafka: str) -> QuorumProtocol:
    """The rules of a release of Kafka, such as `4.4.0`: those of the newest entry in `spec` that is not newer.

    3.9.1 and later of that series have the one rule of 4.1 (KAFKA-18723).
    """
    released = [rules for rules in QUORUM_RELEASES if rules is not QUORUM_NEXT]
    return [rules for rules in released if _numbers(rules.name) <= _numbers(kafka)][-1]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def first_voters(protocol: QuorumProtocol, *, voters_in_log: bool = False) -> Voters:
    """The voters as they start with empty disks."""
    blank = Voters(protocol, (), voters_in_log)
    everybody = fixed_voters(frozenset(blank.key(other) for other in VOTERS))
    return blank._replace(voters=tuple(_started(blank, one, EMPTY_LOG, NO_ELECTION, everybody) for one in VOTERS))


def _started(
    voters: Voters,
    one: BrokerId,
    log: RecordLog,
    election: ElectionState,
    voter_sets: VoterSets,
    snapshot: SnapshotId = NO_SNAPSHOT,
) -> QuorumVoter:
    step = start(voters.server(one), log, election, voters.key(one).directory, voter_sets, snapshot, voters.voters_in_log)
    return _after(QuorumVoter(step.state), step)


def _after(before: QuorumVoter, step: QuorumStep[RecordLog]) -> QuorumVoter:
    reasons = [effect.reason for effect in step.effects if isinstance(effect, Halt)]
    known = frozenset(one._replace(last_fetch_ms=LONG_AGO) for one in step.state.progress)
    wanted = before.wanted
    for effect in step.effects:
        if isinstance(effect, ForgetRequests | LogReplaced):
            wanted = NO_SNAPSHOT
        if isinstance(effect, SnapshotWanted):
            wanted = effect.snapshot
    return QuorumVoter(step.state._replace(progress=known), reasons[0] if reasons else before.halted, wanted)


def _answer_in(step: QuorumStep[RecordLog], voter: QuorumVoter) -> QuorumAnswer | None:
    answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    return answers[-1] if answers and voter.halted is None else None


def request_of(voters: Voters, one: BrokerId, other: BrokerId, kind: VoterRequestKind) -> QuorumRequest | None:
    """The request of a kind that a voter would send another one now."""
    if voters.of(one).halted is not None:
        return None
    asked = requests_of(voters.server(one), voters.of(one).replica, NOW)
    found = next((send.message for send in asked if send.to == other), None)
    return found if found is not None and kind_of(found) == kind else None


def kind_of(request: QuorumRequest) -> VoterRequestKind:
    """The kind of a request."""
    if isinstance(request, VoteRequest):
        return VoterRequestKind.PRE_VOTE if request.is_pre_vote else VoterRequestKind.VOTE
    return next((kind for kind, of in KINDS.items() if isinstance(request, of)), VoterRequestKind.FETCH)


def take(voters: Voters, move: QuorumMove) -> VotersStep | None:
    """A step, `None` if it is not possible by the rules."""
    match move:
        case TimeOut(server):
            return _timed_out(voters, server)
        case Silence(server):
            return None if _timed_out(voters, server) is not None else VotersStep(voters)
        case VoterExchange():
            return _asked(voters, move)
        case AnswerArrival(server, asked):
            return _arrived(voters, server, asked)
        case AddVoter(asked, voter):
            addition = AddVoterRequest(voters.key(voter))
            return _changed(voters, asked, lambda known, state: _added(known, state, addition))
        case RemoveVoter(asked, voter):
            removal = RemoveVoterRequest(voters.key(voter))
            return _changed(voters, asked, lambda known, state: handle_remove_voter(known, state, removal, NOW))
        case VoterChangeTimesOut(server):
            if voters.of(server).replica.change == NO_CHANGE:
                return None
            return _changed(voters, server, lambda known, state: on_voter_change_timeout(known, state, NOW))
        case Restart(server):
            replica = voters.of(server).replica
            log, begins = replica.local.log, replica.snapshot
            log = log if begins != NO_SNAPSHOT and not log.records else log._replace(opened_epoch=NO_EPOCH)
            return _restarted(voters, server, _started(voters, server, log, replica.election, replica.voter_sets, begins))
        case LoseDisk(server):
            assert not voters.voters_in_log, "who loses his disk has another directory, and is another replica"
            first = voters.of(server).replica.voter_sets[:1]
            return _restarted(voters, server, _started(voters, server, EMPTY_LOG, NO_ELECTION, first))
        case Append(server):
            return _appended(voters, server, (Record(APPENDED, NO_EPOCH),))
        case TakeSnapshot(server):
            return _with_snapshot(voters, server)
        case SnapshotTransfer(server, asked):
            return _with_snapshot_of(voters, server, asked)
        case Tell(asked, request):
            return handled(voters, asked, request)


def _restarted(voters: Voters, one: BrokerId, voter: QuorumVoter) -> VotersStep:
    """A voter has started anew: what was on its way to it is lost."""
    left = tuple(found for found in voters.on_the_way if found.server != one)
    return VotersStep(voters.replaced(one, voter)._replace(on_the_way=left))


def _changed(
    voters: Voters, one: BrokerId, change: Callable[[QuorumServer, QuorumReplica[RecordLog]], QuorumStep[RecordLog]]
) -> VotersStep | None:
    before = voters.of(one)
    if before.halted is not None:
        return None
    step = change(voters.server(one), before.replica)
    return VotersStep(voters.replaced(one, _after(before, step)), changed=_to_operator(step))


def _added(server: QuorumServer, state: QuorumReplica[RecordLog], request: AddVoterRequest) -> QuorumStep[RecordLog]:
    asked = handle_add_voter(server, state, request, NOW)
    if not any(isinstance(effect, VersionsWanted) for effect in asked.effects):
        return asked
    return on_versions(server, asked.state, Error.NONE, True, NOW)


def _to_operator(step: QuorumStep[RecordLog]) -> VoterChangeResponse | None:
    return next((effect.response for effect in step.effects if isinstance(effect, VoterChangeEnded)), None)


def _timed_out(voters: Voters, one: BrokerId) -> VotersStep | None:
    before = voters.of(one)
    ends = on_check_quorum if before.replica.role == VoterRole.LEADER else on_timeout
    step = ends(voters.server(one), before.replica, NOW)
    if before.halted is not None or step.state is before.replica:
        return None
    return VotersStep(voters.replaced(one, _after(before, step)))


def by_the_clock(voters: Voters, one: BrokerId, most: int) -> Iterator[Voters]:
    """The voters as they are, and as they are once and again after the time of one of them is over."""
    taken: VotersStep | None = VotersStep(voters)
    for _ in range(most + 1):
        if taken is None:
            return
        yield taken.after
        taken = _timed_out(taken.after, one)


def _with_snapshot(voters: Voters, one: BrokerId) -> VotersStep | None:
    before = voters.of(one)
    log, end = before.replica.local.log, before.replica.high_watermark
    if before.halted is not None or not log.start_offset < end:
        return None
    snapshot = SnapshotId(end, log.epoch_at(Offset(end - 1)))
    return VotersStep(voters.replaced(one, before._replace(replica=after_own_snapshot(before.replica, snapshot))))


def _with_snapshot_of(voters: Voters, one: BrokerId, asked: BrokerId) -> VotersStep | None:
    before, leader = voters.of(one), voters.of(asked)
    is_there = check_snapshot(leader.replica.snapshot, before.wanted) == Error.NONE
    if before.wanted == NO_SNAPSHOT or before.replica.election.leader != asked or not is_there:
        return None
    told = (
        voters_of(leader.replica._replace(voter_sets=leader.replica.voter_sets[:1])) if voters.voters_in_log else frozenset()
    )
    step = on_snapshot(voters.server(one), before.replica, before.wanted, NOW, told)
    return VotersStep(voters.replaced(one, _after(before, step)))


def _appended(voters: Voters, one: BrokerId, records: tuple[Record, ...]) -> VotersStep | None:
    before = voters.of(one)
    if before.halted is not None or before.replica.role != VoterRole.LEADER:
        return None
    step = append(voters.server(one), before.replica, tuple(records), NOW)
    return VotersStep(voters.replaced(one, _after(before, step)))


def with_appended(voters: Voters, one: BrokerId, count: int) -> Voters:
    """The voters after a leader has appended so many records by itself."""
    taken = _appended(voters, one, (Record(APPENDED, NO_EPOCH),) * count) if count else None
    return voters if taken is None else taken.after


def handled(voters: Voters, asked: BrokerId, request: QuorumRequest) -> VotersStep:
    """A request to one of the voters, and its answer, none if it has stopped."""
    before = voters.of(asked)
    step = handle_request(voters.server(asked), before.replica, request, NOW)
    after = _after(before, step)
    return VotersStep(voters.replaced(asked, after), request, _answer_in(step, after), _to_operator(step))


def heard(voters: Voters, one: BrokerId, asked: BrokerId, request: QuorumRequest, answer: QuorumAnswer) -> Voters:
    """The voters after one has heard the answer to its request."""
    before = voters.of(one)
    step = handle_answer(voters.server(one), before.replica, Send(asked, request), answer, True, NOW)
    return voters.replaced(one, _after(before, step))


def _asked(voters: Voters, ask: VoterExchange) -> VotersStep | None:
    request = request_of(voters, ask.server, ask.asked, ask.kind)
    if request is None or voters.of(ask.asked).halted is not None:
        return None
    if ask.unknown:
        refused = VoteResponse(Error.UNSUPPORTED_VERSION, NO_EPOCH)
        return VotersStep(heard(voters, ask.server, ask.asked, request, refused), request)
    step = handled(voters, ask.asked, request)
    if step.answer is None or ask.lost:
        return step
    if ask.late:
        coming = AnswerOnItsWay(ask.server, ask.asked, request, step.answer)
        return step._replace(after=step.after._replace(on_the_way=(*step.after.on_the_way, coming)))
    return step._replace(after=heard(step.after, ask.server, ask.asked, request, step.answer))


def _arrived(voters: Voters, one: BrokerId, asked: BrokerId) -> VotersStep | None:
    """An answer that was on its way arrives."""
    coming = next((found for found in voters.on_the_way if (found.server, found.asked) == (one, asked)), None)
    if coming is None or voters.of(one).halted is not None:
        return None
    left = tuple(found for found in voters.on_the_way if found is not coming)
    after = heard(voters._replace(on_the_way=left), one, asked, coming.request, coming.answer)
    return VotersStep(after, coming.request, coming.answer)
