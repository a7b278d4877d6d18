"""Runs with a name: findings, and candidates that are refuted."""

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
from kspec.conformance.quorum.runs import QuorumRun
from kspec.conformance.quorum.voters import VOTERS, Voters
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.quorum.effects import IllegalState
from kspec.spec.quorum.replica import QuorumReplica, may_stand, progress_of, voters_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.values import BrokerId, Epoch, Offset, ReplicaKey

ONE, TWO, THREE = VOTERS
STRANGER = ReplicaKey(BrokerId(9))
LATER = Epoch(1000)
SHORT_MS = 1500
"""So long a request for a change of the voters waits in a run in which it waits for too long (milliseconds)."""


def _pre_vote(one: BrokerId, other: BrokerId) -> VoterExchange:
    return VoterExchange(VoterRequestKind.PRE_VOTE, one, other)


def _vote(one: BrokerId, other: BrokerId) -> VoterExchange:
    return VoterExchange(VoterRequestKind.VOTE, one, other)


def _begin(one: BrokerId, other: BrokerId) -> VoterExchange:
    return VoterExchange(VoterRequestKind.BEGIN_QUORUM_EPOCH, one, other)


def _fetch(one: BrokerId, other: BrokerId) -> VoterExchange:
    return VoterExchange(VoterRequestKind.FETCH, one, other)


def _elects(one: BrokerId, other: BrokerId) -> tuple[QuorumMove, ...]:
    """One is elected by another, in a release with a pre-vote."""
    return (TimeOut(one), _pre_vote(one, other), _vote(one, other))


def _real_leads() -> tuple[QuorumMove, ...]:
    """1 leads, and 2 has fetched all there is, so that the leader knows it committed."""
    return (*_elects(ONE, TWO), _begin(ONE, TWO), _fetch(TWO, ONE), _fetch(TWO, ONE))


def _ends(states: tuple[Voters, ...], reason: IllegalState) -> bool:
    return any(state.of(ONE).halted == reason for state in states)


def unseated(states: tuple[Voters, ...]) -> bool:
    """Whether 1 led, and leads no more."""
    led = [state.of(ONE).replica.role == VoterRole.LEADER for state in states]
    return any(led) and not led[-1]


def two_leaders(states: tuple[Voters, ...]) -> bool:
    """Whether two voters led in one epoch."""
    leading = {
        (voter.replica.election.epoch, one)
        for state in states
        for one, voter in zip(VOTERS, state.voters, strict=True)
        if voter.replica.role == VoterRole.LEADER
    }
    return len({epoch for epoch, _ in leading}) < len(leading)


def leader_deposed(states: tuple[Voters, ...]) -> bool:
    """Whether 2 led, and leads no more."""
    led = [state.of(TWO).replica.role == VoterRole.LEADER for state in states]
    return any(led) and not led[-1]


def leads_without_vote(states: tuple[Voters, ...]) -> bool:
    """Whether 1 leads, and knows that its removal from the voters is committed."""
    replica = states[-1].of(ONE).replica
    removed = replica.voter_sets[-1].offset
    is_removed = ONE not in ids_of(voters_of(replica)) and removed < replica.high_watermark
    return replica.role == VoterRole.LEADER and is_removed


def added_though_behind(states: tuple[Voters, ...]) -> bool:
    """Whether 3 was added to the voters, and that was committed, while it lacked records before that."""
    return any(_is_behind(state.of(ONE).replica, state.key(THREE)) for state in states)


def _is_behind(leader: QuorumReplica[RecordLog], voter: ReplicaKey) -> bool:
    added = leader.voter_sets[-1].offset
    is_added = 0 < added < leader.high_watermark and voter in voters_of(leader)
    return is_added and leader.role == VoterRole.LEADER and progress_of(leader, voter).end_offset < added


def begins_with_snapshot(states: tuple[Voters, ...]) -> bool:
    """Whether 1 leads with a log that begins with another one's snapshot, and knows more than that to be committed."""
    replica = states[-1].of(ONE).replica
    is_begun = 0 < replica.snapshot.end_offset == replica.local.log.start_offset < replica.high_watermark
    return is_begun and replica.role == VoterRole.LEADER


def nobody_can_lead(states: tuple[Voters, ...]) -> bool:
    """Whether 2 is refused, since its log is shorter than that of 1, which it needs, and 1 stands for nothing."""
    last = states[-1]
    first, second = last.of(ONE).replica, last.of(TWO).replica
    is_needed = ids_of(voters_of(second)) == {ONE, TWO}
    is_longer = second.local.log.end_offset < first.local.log.end_offset
    stands = may_stand(last.server(ONE), first) or any(one.replica.role == VoterRole.LEADER for one in last.voters)
    return is_needed and is_longer and not stands


def committed_by_one(states: tuple[Voters, ...]) -> bool:
    """Whether a leader takes for committed what it knows no other voter to have."""
    leader = states[-1].of(ONE).replica
    ends = [progress_of(leader, ReplicaKey(other)).end_offset for other in (TWO, THREE)]
    return leader.role == VoterRole.LEADER and max(ends) < leader.high_watermark


CANDIDATES = (
    QuorumRun(
        "kept-vote",
        "1 stands in an epoch that 2 wins, and starts again. 3 has voted, and has not heard of the leader.",
        "the process ends",
        (
            TimeOut(TWO),
            _pre_vote(TWO, THREE),
            TimeOut(ONE),
            _pre_vote(ONE, THREE),
            _vote(TWO, THREE),
            _begin(TWO, ONE),
            _fetch(ONE, TWO),
            Restart(ONE),
            _vote(ONE, THREE),
            Restart(ONE),
            TimeOut(THREE),
            _pre_vote(THREE, ONE),
            _vote(ONE, THREE),
        ),
        lambda states: _ends(states, IllegalState.INVALID_REQUEST),
    ),
    QuorumRun(
        "pre-vote-unseats",
        "1 leads. Somebody who is no voter asks it in a later epoch whether it would vote for him.",
        "the leader leads no more",
        (*_real_leads(), Tell(ONE, VoteRequest(LATER, STRANGER, Epoch(0), Offset(0), is_pre_vote=True))),
        unseated,
        since="4.0",
    ),
    QuorumRun(
        "vote-unseats",
        "1 leads. Somebody who is no voter asks it for its vote in a later epoch.",
        "the leader leads no more",
        (*_real_leads(), Tell(ONE, VoteRequest(LATER, STRANGER, Epoch(0), Offset(0)))),
        unseated,
    ),
    QuorumRun(
        "begin-unseats",
        "1 leads. Somebody says that 3 leads in a later epoch.",
        "the leader leads no more",
        (*_real_leads(), Tell(ONE, BeginQuorumEpochRequest(LATER, THREE))),
        unseated,
    ),
    QuorumRun(
        "fetch-unseats",
        "1 leads. Somebody fetches from it in a later epoch.",
        "the leader leads no more",
        (*_real_leads(), Tell(ONE, QuorumFetchRequest(STRANGER, FetchPosition(LATER, Offset(0), Epoch(0))))),
        unseated,
    ),
    QuorumRun(
        "last-epoch",
        "1 leads. Somebody asks it in the last epoch that there is. Its time is over, and 2 would vote for it.",
        "the epoch after the last one is negative",
        (
            *_real_leads(),
            Tell(ONE, VoteRequest(Epoch(2**31 - 1), STRANGER, Epoch(0), Offset(0))),
            TimeOut(ONE),
            _pre_vote(ONE, TWO),
        ),
        unseated,
        departs="an epoch has 32 bits, and by the rules of spec who finds none left halts",
    ),
    QuorumRun(
        "old-voter",
        "2 leads, and 1 is cut off from it. 1 asks 3, which knows no pre-vote.",
        "the leader leads no more",
        (
            *_elects(TWO, THREE),
            _begin(TWO, ONE),
            _begin(TWO, THREE),
            _fetch(ONE, TWO),
            _fetch(THREE, TWO),
            TimeOut(ONE),
            VoterExchange(VoterRequestKind.PRE_VOTE, ONE, THREE, unknown=True),
            _vote(ONE, TWO),
        ),
        leader_deposed,
        since="4.0",
        old=frozenset({THREE}),
    ),
    QuorumRun(
        "new-voter",
        "The control of old-voter: 3 knows the pre-vote, and has a leader.",
        "the leader leads no more",
        (
            *_elects(TWO, THREE),
            _begin(TWO, ONE),
            _begin(TWO, THREE),
            _fetch(ONE, TWO),
            _fetch(THREE, TWO),
            TimeOut(ONE),
            _pre_vote(ONE, THREE),
            _pre_vote(ONE, TWO),
            _fetch(ONE, TWO),
        ),
        leader_deposed,
        since="4.0",
    ),
    QuorumRun(
        "lost-disk",
        "1 votes, loses its disk, and votes again in the same epoch (kraft.version 0).",
        "an epoch has two leaders",
        (
            TimeOut(TWO),
            _pre_vote(TWO, ONE),
            TimeOut(THREE),
            _pre_vote(THREE, ONE),
            _vote(TWO, ONE),
            LoseDisk(ONE),
            _vote(THREE, ONE),
        ),
        two_leaders,
    ),
    QuorumRun(
        "goes-back",
        "1 leads, and 2 has all records. 2 loses its disk, and fetches from the start.",
        "the leader takes for committed what it knows nobody else to have",
        (*_real_leads(), LoseDisk(TWO), _fetch(TWO, ONE), _fetch(TWO, ONE)),
        committed_by_one,
    ),
    QuorumRun(
        "lost-leader",
        "1 leads, and starts again with an empty disk. 2 says that 1 leads.",
        "the process ends",
        (*_real_leads(), LoseDisk(ONE), _fetch(ONE, TWO)),
        lambda states: _ends(states, IllegalState.NOT_LEADER),
    ),
    QuorumRun(
        "another-leader",
        "1 follows 2. Somebody says that 3 leads in the same epoch.",
        "the process ends",
        (*_elects(TWO, THREE), _begin(TWO, ONE), Tell(ONE, BeginQuorumEpochRequest(Epoch(1), THREE))),
        lambda states: _ends(states, IllegalState.TWO_LEADERS),
    ),
    QuorumRun(
        "removed-voter-answers",
        "1 leads. 3 is removed from the voters, and only then 1 hears that 3 knows its leader.",
        "the process ends",
        (
            *_elects(ONE, TWO),
            _begin(ONE, TWO),
            _begin(ONE, THREE)._replace(late=True),
            *(_fetch(TWO, ONE),) * 2,
            RemoveVoter(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            AnswerArrival(ONE, THREE),
        ),
        lambda states: _ends(states, IllegalState.NOT_A_VOTER),
        changes_voters=True,
    ),
    QuorumRun(
        "removed-leader",
        "1 leads, and is removed from the voters. The request for it times out before the removal is committed.",
        "a leader leads on that is no voter",
        (
            *_elects(ONE, TWO),
            _begin(ONE, TWO),
            _begin(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
            RemoveVoter(ONE, ONE),
            VoterChangeTimesOut(ONE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
        ),
        leads_without_vote,
        changes_voters=True,
        request_ms=SHORT_MS,
    ),
    QuorumRun(
        "removed-leader-resigns",
        "The control of removed-leader: the request still waits when the removal is committed.",
        "a leader leads on that is no voter",
        (
            *_elects(ONE, TWO),
            _begin(ONE, TWO),
            _begin(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
            RemoveVoter(ONE, ONE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
        ),
        leads_without_vote,
        changes_voters=True,
    ),
    QuorumRun(
        "lagging-voter",
        "1 leads, and 3 is removed from the voters, which 2 commits. 3, which reads nothing meanwhile, is added again.",
        "a replica is added to the voters that lacks what is committed",
        (
            *_elects(ONE, TWO),
            _begin(ONE, TWO),
            _begin(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
            RemoveVoter(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            AddVoter(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
        ),
        added_though_behind,
        changes_voters=True,
    ),
    QuorumRun(
        "needed-voter",
        "1 leads, and writes its own removal, which nobody fetches before it starts again. 3 was removed before.",
        "nobody can lead: the only voter has a log that is too short, and who has the longer one stands for nothing",
        (
            *_elects(ONE, TWO),
            _begin(ONE, TWO),
            _begin(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            *(_fetch(THREE, ONE),) * 2,
            RemoveVoter(ONE, THREE),
            *(_fetch(TWO, ONE),) * 2,
            RemoveVoter(ONE, ONE),
            Restart(ONE),
            TimeOut(ONE),
            Silence(ONE),
            *(TimeOut(TWO), _pre_vote(TWO, ONE)) * 2,
        ),
        nobody_can_lead,
        changes_voters=True,
    ),
    *(
        QuorumRun(
            name,
            f"2 leads, with a snapshot in place of its first records{also}. 1 fetches the snapshot, and leads after that.",
            "a voter that began with another one's snapshot leads, and commits what follows",
            (
                *_elects(TWO, THREE),
                _begin(TWO, THREE),
                Append(TWO),
                *(_fetch(THREE, TWO),) * 3,
                TakeSnapshot(TWO),
                _begin(TWO, ONE),
                _fetch(ONE, TWO),
                SnapshotTransfer(ONE, TWO),
                _fetch(ONE, TWO),
                Append(TWO),
                _fetch(ONE, TWO),
                Restart(ONE),
                _fetch(ONE, TWO),
                Restart(THREE),
                TimeOut(ONE),
                _pre_vote(ONE, THREE),
                _vote(ONE, THREE),
                _begin(ONE, THREE),
                *(_fetch(THREE, ONE),) * 3,
            ),
            begins_with_snapshot,
            changes_voters=changes_voters,
        )
        for name, also, changes_voters in (
            ("snapshot", "", False),
            ("snapshot-with-voters", ", which names the voters", True),
        )
    ),
)
"""Each by the rules of 4.4; a release without a pre-vote leaves those steps out."""


def for_release(run: QuorumRun, *, asks_before: bool) -> QuorumRun:
    """A run without the steps that a release without a pre-vote does not have."""
    if asks_before:
        return run
    steps = [step for step in run.steps if not (isinstance(step, VoterExchange) and step.kind == VoterRequestKind.PRE_VOTE)]
    return run._replace(steps=tuple(steps), old=frozenset())


NAMED = {run.name: run for run in CANDIDATES}
