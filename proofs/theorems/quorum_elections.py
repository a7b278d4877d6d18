"""Theorem: the quorum of controllers elects one leader at most in an epoch, and no voter votes twice in one.

A step changes what one voter has. So the state is that of one voter and two histories of all: for whom each voter has voted
in each epoch, and who was elected in it. The handlers of `spec` make the step, with epochs, offsets and logs that are any.
What others send is any message that the invariant allows, however late, and however often.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import z3

from kspec.proofs.induction.by_steps import StepTheorem, obligations_of_step
from kspec.proofs.induction.claims import Obligation
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.paths import decide, fresh
from kspec.proofs.symbolic.values import AnyNumber, SymbolicBool, number, truth
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.mutation import weaken
from kspec.spec.quorum.effects import ForgetRequests, PersistElection
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot, on_snapshot, on_snapshot_piece
from kspec.spec.quorum.leading import append, on_check_quorum, on_resignation
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import (
    NO_ELECTION,
    ElectionState,
    QuorumReplica,
    QuorumServer,
    QuorumSettings,
    ReplicaProgress,
)
from kspec.spec.quorum.requests import requests_of
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.rules.votes import Tally
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.step import Reply, Send, Step
from kspec.spec.values import (
    NO_LEADER,
    NO_REPLICA,
    BrokerId,
    DirectoryId,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Record,
    ReplicaKey,
)

NAME = "quorum-elections"
SUMMARY = (
    "Each epoch of the metadata quorum has one leader at most, for whom a majority of the voters has voted; no voter votes"
    " for two in it."
)

ME, NOW, DIRECTORY = BrokerId(1), MonotonicMs(0), DirectoryId(bytes([1] * 16))
OTHER_DIRECTORY = DirectoryId(bytes([2] * 16))
"""The voter that takes the step; ids are compared for equality alone, but for the order in which requests are sent."""

History = Callable[..., Any]
"""For whom a voter has voted in an epoch, or who was elected in an epoch; `NO_LEADER` if nobody."""

VOTES_BEFORE: History = z3.Function("vote", z3.IntSort(), z3.IntSort(), z3.IntSort())
ELECTED_BEFORE: History = z3.Function("elected", z3.IntSort(), z3.IntSort())


def any_number(name: str) -> Any:
    """An epoch or an offset of this name."""
    return AnyNumber(z3.Int(name))


def one_of(name: str, *choices: Any) -> Any:
    """One of the choices, by the position that the name stands for."""
    for position, choice in enumerate(choices[:-1]):
        if decide(z3.Int(name) == position):
            return choice
    return choices[-1]


def is_so(name: str) -> bool:
    """Whether something is so of which nothing is known."""
    return decide(z3.Bool(name))


class AnyVoters(AbstractSet[BrokerId]):
    """Any set of some voters: whether it has one of them is decided when that is asked."""

    def __init__(self, name: str, voters: tuple[BrokerId, ...]) -> None:
        self.name, self.voters = name, voters

    @classmethod
    def _from_iterable(cls, found: Any) -> Any:
        return frozenset(found)

    def holds(self, voter: BrokerId) -> z3.BoolRef:
        """A formula: it has this voter."""
        return z3.Bool(f"{self.name} {voter}") if voter in self.voters else z3.BoolVal(False)

    def __contains__(self, voter: object) -> bool:
        return any(voter == one and decide(self.holds(one)) for one in self.voters)

    def __iter__(self) -> Iterator[BrokerId]:
        return (voter for voter in self.voters if voter in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _holds(members: Any, voter: BrokerId) -> z3.BoolRef:
    return members.holds(voter) if isinstance(members, AnyVoters) else z3.BoolVal(voter in members)


class AnyError:
    """Any error of an answer: whether it is one of them is decided when that is asked."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and decide(z3.Int("error") == z3.IntVal([*Error].index(other)))

    def __hash__(self) -> int:
        return 0


class DirectoryIfKnown:
    """The directory of a voter, or none if voter sets know none: which of the two is decided when that is asked."""

    def __eq__(self, other: object) -> bool:
        return decide(z3.Bool("voters have directories") == z3.BoolVal(other == DIRECTORY))

    def __hash__(self) -> int:
        return 0


class FixedQuorum(NamedTuple):
    """The fixed voter set, and the rules of the release."""

    protocol: QuorumProtocol
    size: int

    @property
    def ids(self) -> tuple[BrokerId, ...]:
        """The ids of the voters."""
        return tuple(BrokerId(number) for number in range(1, self.size + 1))

    @property
    def others(self) -> tuple[BrokerId, ...]:
        """The ids of the other voters."""
        return self.ids[1:]

    @property
    def server(self) -> QuorumServer:
        """The server of the voter that takes the step."""
        return QuorumServer(self.protocol, QuorumSettings(max_records=1), ME)

    def key(self, voter: BrokerId) -> ReplicaKey:
        """The voter with the directory of its disk, which it never loses."""
        return ReplicaKey(voter, DIRECTORY)


# ---- any voter


EPOCH, LEADER, VOTED = z3.Ints("epoch leader voted")
"""Of the voter's election, in memory and on the disk: who leads and whom it has voted for are ids."""

START, END = z3.Ints("start end")
"""Of its log."""

REACHES, FETCHED = z3.Bools("reaches_leader has_fetched")
"""Of the voter: it knows its leader's address, and that has answered a fetch."""


def any_election() -> ElectionState:
    """Any election in which the invariant holds."""
    voted = NO_REPLICA if decide(VOTED == NO_LEADER) else ReplicaKey(any_number("voted"), DIRECTORY)
    return ElectionState(any_number("epoch"), any_number("leader"), voted)


class AnyLog(SymbolicLog):
    """A log that answers anything to a question about an epoch: no election depends on the answer."""

    __slots__ = ()

    def end_offset_for_epoch(self, epoch: Any) -> EpochEndOffset:
        answer: Any = (AnyNumber(fresh("named epoch")), AnyNumber(fresh("its end")))
        return EpochEndOffset(*answer)

    largest_epoch_up_to = end_offset_for_epoch


def any_log() -> Any:
    """A log of any length, from any offset on."""
    epoch, value = (z3.Function(name, z3.IntSort(), z3.IntSort()) for name in ("epoch at", "value at"))
    return AnyLog(START, END, epoch, value, z3.Int("opened"))


def any_snapshot(name: str) -> SnapshotId:
    """A snapshot of any end and epoch, or none."""
    return SnapshotId(any_number(f"end of {name}"), any_number(f"epoch of {name}"))


def any_voter_sets(quorum: FixedQuorum) -> VoterSets:
    """The voter set of the configuration: with directories (`kraft.version` 1), or without."""
    directory: Any = DirectoryIfKnown()
    return fixed_voters(frozenset(ReplicaKey(one, directory) for one in quorum.ids))


def any_tally(quorum: FixedQuorum) -> Tally:
    """Any votes of an election."""
    granted: Any = AnyVoters("granted", quorum.ids)
    rejected: Any = AnyVoters("rejected", quorum.ids)
    return Tally(frozenset(quorum.ids), granted, rejected)


def any_voter(quorum: FixedQuorum, role: VoterRole) -> QuorumReplica[Any]:
    """Any voter in this role in which the invariant holds."""
    voters = any_voter_sets(quorum)
    state = QuorumReplica(LocalLog(any_log(), any_number("committed")), voters, DIRECTORY, any_election(), role)
    state = state._replace(high_watermark=any_number("high watermark"), snapshot=any_snapshot("snapshot"))
    if role in NOMINEES:
        state = state._replace(tally=any_tally(quorum))
    if role == VoterRole.LEADER:
        known = (voter for voter in voters[-1].voters if voter.id != ME)
        progress = frozenset(ReplicaProgress(voter, any_number("end of others")) for voter in known)
        heard = one_of("heard", frozenset(), frozenset(quorum.others))
        state = state._replace(progress=progress, heard_from=heard, epoch_start=any_number("epoch start"))
    if role == VoterRole.RESIGNED:
        unacknowledged: Any = AnyVoters("unacknowledged", quorum.others)
        state = state._replace(unacknowledged=unacknowledged)
    reaches_leader: Any = SymbolicBool(REACHES)
    has_fetched: Any = SymbolicBool(FETCHED)
    return state._replace(reaches_leader=reaches_leader, has_fetched=has_fetched)


# ---- the invariant


class Histories(NamedTuple):
    """The histories of all voters: their votes, and who was elected."""

    votes: History
    elected: History

    def with_vote(self, epoch: Any, candidate: Any) -> "Histories":
        """The histories after a vote of the voter that takes the step."""

        def votes(voter: Any, at: Any) -> Any:
            before = self.votes(voter, at)
            return z3.If(z3.And(at == epoch, candidate != NO_LEADER), candidate, before) if voter == ME else before

        return self._replace(votes=votes)

    def with_leader(self, epoch: Any, leader: Any) -> "Histories":
        """The histories after an election, if it is of the voter that takes the step."""
        return self._replace(elected=lambda at: z3.If(z3.And(at == epoch, leader == ME), leader, self.elected(at)))


BEFORE = Histories(VOTES_BEFORE, ELECTED_BEFORE)


def on_disk(past: Histories, epoch: Any, leader: Any, voted: Any) -> dict[str, z3.BoolRef]:
    """The invariant of the election that is on a voter's disk, and so of the voter after any crash."""
    at, mine = z3.Int("any epoch"), past.votes(ME, epoch)
    return {
        "RemembersVote": z3.And(
            z3.Or(mine == NO_LEADER, mine == voted, leader != NO_LEADER), z3.Or(voted == NO_LEADER, mine == voted)
        ),
        "NothingInLaterEpochs": z3.ForAll(
            [at], z3.Implies(at > epoch, z3.And(past.votes(ME, at) == NO_LEADER, past.elected(at) != ME))
        ),
        "KnowsElectedLeader": z3.Or(leader == NO_LEADER, past.elected(epoch) == leader),
    }


def fits(role: VoterRole, leader: Any, voted: Any, reaches_leader: Any) -> z3.BoolRef:
    """The leader and the vote that go with a role, as a formula."""
    match role:
        case VoterRole.LEADER:
            return z3.And(leader == ME, reaches_leader, voted == NO_LEADER)
        case VoterRole.RESIGNED:
            return z3.And(leader == ME)
        case VoterRole.FOLLOWER:
            return z3.And(leader != ME, leader != NO_LEADER)
        case VoterRole.CANDIDATE:
            return z3.And(leader == NO_LEADER, voted == ME)
        case _:
            return z3.And(leader != ME)


def counts_cast(quorum: FixedQuorum, past: Histories, role: VoterRole, epoch: Any, tally: Tally) -> z3.BoolRef:
    """Whether each vote that a candidate counts has been cast for it; its own is among them, and nobody's counts twice."""
    told = [z3.BoolVal(True)]
    if role in NOMINEES:
        told = [z3.Not(z3.And(_holds(tally.granted, one), _holds(tally.rejected, one))) for one in quorum.ids]
        told.append(_holds(tally.granted, ME))
    if role == VoterRole.CANDIDATE:
        told += [z3.Implies(_holds(tally.granted, one), past.votes(one, epoch) == ME) for one in quorum.ids]
    return z3.And(*told)


def by_majority(quorum: FixedQuorum, past: Histories, epoch: Any) -> z3.BoolRef:
    """Whether more than half of the voters have voted for the leader of an epoch, if it has one."""
    leader = past.elected(epoch)
    votes = z3.Sum(*(z3.If(past.votes(one, epoch) == leader, 1, 0) for one in quorum.ids))
    return z3.Or(leader == NO_LEADER, votes * 2 > quorum.size)


DISK = ("RemembersVote", "NothingInLaterEpochs", "KnowsElectedLeader")
CONJUNCTS = (
    "ElectionSafety",
    "VotesOnce",
    "ElectedByMajority",
    *DISK,
    "StoredBeforeSent",
    "MessagesAreTrue",
    "CountsVotesCast",
    "RoleFitsElection",
    "ForgetsQuestions",
)
"""The invariant, and what is told apart of a step: the first two are the theorem."""


def claims(
    quorum: FixedQuorum, before: ElectionState, role: VoterRole | None, step: QuorumStep[Any], asked: Any = None
) -> dict[str, Any]:
    """Whether each conjunct holds after a step, and, of what is on the disk, after each of its effects.

    `role`: before the step, `None` if the voter starts. `asked`: the request that the step answers, if it does.
    """
    past, stored = BEFORE, before
    told: dict[str, list[Any]] = {name: [] for name in CONJUNCTS}
    for effect in step.effects:
        match effect:
            case PersistElection(election):
                stored = election
                epoch, leader, voted = terms_of(election)
                mine, theirs = past.votes(ME, epoch), past.elected(epoch)
                told["VotesOnce"].append(z3.Or(voted == NO_LEADER, mine == NO_LEADER, mine == voted))
                told["ElectionSafety"].append(z3.Or(leader != ME, theirs == NO_LEADER, theirs == ME))
                past = past.with_vote(epoch, voted).with_leader(epoch, leader)
                told["ElectedByMajority"].append(z3.Or(leader != ME, by_majority(quorum, past, epoch)))
                for name, holds in on_disk(past, epoch, leader, voted).items():
                    told[name].append(holds)
            case Reply(answer):
                told["MessagesAreTrue"].append(is_true(past, answer, asked))
            case _:
                pass
    after = step.state
    epoch, leader, voted = terms_of(after.election)
    for name, holds in on_disk(past, epoch, leader, voted).items():
        told[name].append(holds)
    told["StoredBeforeSent"] += [one == other for one, other in zip(terms_of(after.election), terms_of(stored), strict=True)]
    told["CountsVotesCast"].append(counts_cast(quorum, past, after.role, epoch, after.tally))
    told["RoleFitsElection"].append(fits(after.role, leader, voted, truth(after.reaches_leader)))
    if role is not None and ForgetRequests() not in step.effects:
        stays = z3.And(z3.BoolVal(after.role == role), truth(after.election.epoch == before.epoch))
        told["ForgetsQuestions"].append(stays)
    return {name: z3.And(*holds) if holds else z3.BoolVal(True) for name, holds in told.items()}


def terms_of(election: ElectionState) -> tuple[Any, Any, Any]:
    """An election as terms: epoch, leader, and the id of whom the voter has voted for."""
    return number(election.epoch), number(election.leader), number(election.voted.id)


def is_true(past: Histories, message: Any, asked: Any = None) -> z3.BoolRef:
    """Whether what a message says of leaders and votes is so, and stays so."""
    match message:
        case VoteRequest() | QuorumFetchRequest():
            return z3.BoolVal(True)
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return past.elected(number(message.epoch)) == number(message.leader)
    leader, epoch = number(message.leader), number(message.epoch)
    said = [z3.Or(leader == NO_LEADER, past.elected(epoch) == leader)]
    match message, asked:
        case VoteResponse(is_granted=True), (voter, VoteRequest(is_pre_vote=False) as vote):
            said += [epoch == number(vote.epoch), past.votes(voter, epoch) == number(vote.replica.id)]
    return z3.And(*said)


# ---- messages of others


def vote(quorum: FixedQuorum, is_pre_vote: bool = False) -> VoteRequest:
    """A request of any replica for a vote, true or false."""
    asks = ReplicaKey(any_number("who asks"), DIRECTORY)
    return VoteRequest(request_epoch(), asks, any_number("last epoch"), any_number("its end"), who_is_asked(), is_pre_vote)


def begin(quorum: FixedQuorum) -> BeginQuorumEpochRequest:
    """A leader says that it leads."""
    return BeginQuorumEpochRequest(request_epoch(), any_number("leader of request"), who_is_asked())


def end(quorum: FixedQuorum) -> EndQuorumEpochRequest:
    """A leader has resigned."""
    successors = (ReplicaKey(any_number("successor"), DIRECTORY), quorum.key(ME)) if is_so("names successors") else ()
    return EndQuorumEpochRequest(request_epoch(), any_number("leader of request"), successors)


def fetch(quorum: FixedQuorum) -> QuorumFetchRequest:
    """Another voter fetches from anywhere, or its server with another disk, which observes."""
    position = FetchPosition(request_epoch(), any_number("its end"), any_number("last epoch"))
    other = quorum.others[0]
    sender = one_of("who fetches", quorum.key(other), ReplicaKey(other, OTHER_DIRECTORY))
    return QuorumFetchRequest(sender, position, any_number("high watermark of it"))


def request_epoch() -> Any:
    """The epoch that a request names."""
    return any_number("epoch of request")


def who_is_asked() -> ReplicaKey:
    """The voter that a request is meant for, if it says so."""
    return ReplicaKey(any_number("who is asked"), DIRECTORY) if is_so("says for whom") else NO_REPLICA


REQUESTS: dict[str, Callable[[FixedQuorum], Any]] = {
    "Vote": vote,
    "PreVote": partial(vote, is_pre_vote=True),
    "BeginQuorumEpoch": begin,
    "EndQuorumEpoch": end,
    "Fetch": fetch,
}
"""Any request of each kind."""


def answer_to(asked: Any) -> Any:
    """Any answer to a request of the voter."""
    error: Any = AnyError()
    epoch, leader = any_number("epoch of answer"), any_number("leader of answer")
    match asked:
        case VoteRequest():
            return VoteResponse(error, epoch, leader, is_so("is granted"))
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochResponse(error, epoch, leader)
        case EndQuorumEpochRequest():
            return EndQuorumEpochResponse(error, epoch, leader)
        case _:
            records = (Record(0, any_number("epoch of record")),) if is_so("has records") else ()
            diverging = EpochEndOffset(any_number("diverging epoch"), any_number("diverging end"))
            told, wanted = any_number("high watermark told"), any_snapshot("wanted snapshot")
            return QuorumFetchResponse(error, epoch, leader, records, told, diverging, wanted)


def belongs(role: VoterRole, epoch: Any, request: Any) -> z3.BoolRef:
    """Whether a request is one that a voter sends in this role and epoch."""
    match request:
        case VoteRequest(is_pre_vote=is_pre_vote):
            of_role = role == (VoterRole.PROSPECTIVE if is_pre_vote else VoterRole.CANDIDATE)
            named = request.epoch
        case BeginQuorumEpochRequest():
            of_role, named = role == VoterRole.LEADER, request.epoch
        case EndQuorumEpochRequest():
            of_role, named = role == VoterRole.RESIGNED, request.epoch
        case _:
            of_role, named = role in (VoterRole.UNATTACHED, VoterRole.FOLLOWER), request.fetch.current_leader_epoch
    return z3.And(z3.BoolVal(of_role), number(named) == number(epoch))


# ---- the steps


Taken = dict[str, Any]


def under(premise: z3.BoolRef, told: Taken) -> Taken:
    """The conjuncts, as far as a premise holds."""
    return {name: z3.Implies(premise, holds) for name, holds in told.items()}


def asked(kind: str, quorum: FixedQuorum, role: VoterRole) -> Taken:
    """A request of this kind arrives, of anybody, at any time."""
    before, request = any_voter(quorum, role), REQUESTS[kind](quorum)
    step = handle_request(quorum.server, before, request, NOW)
    return under(is_true(BEFORE, request), claims(quorum, before.election, role, step, (ME, request)))


def answered(kind: str, quorum: FixedQuorum, role: VoterRole) -> Taken:
    """An answer arrives to a request of this kind, made at any time; it is expected if nothing has been forgotten since."""
    before, epoch = any_voter(quorum, role), any_number("epoch of question")
    other = one_of("who answers", *quorum.others) if kind in ("Vote", "PreVote") else quorum.others[0]
    question = own_question(kind, quorum, epoch)
    expected = z3.Bool("is expected")
    is_expected: Any = SymbolicBool(expected)
    answer = answer_to(question)
    premise = z3.And(
        is_true(BEFORE, answer, (other, question)), z3.Implies(expected, belongs(role, before.election.epoch, question))
    )
    step = handle_answer(quorum.server, before, Send(other, question), answer, is_expected, NOW)
    return under(premise, claims(quorum, before.election, role, step))


def own_question(kind: str, quorum: FixedQuorum, epoch: Any) -> Any:
    """A request of the voter in this epoch. Where its log ends does not matter for what an answer does."""
    nowhere = any_number("its end")
    match kind:
        case "Vote" | "PreVote":
            return VoteRequest(epoch, quorum.key(ME), epoch, nowhere, is_pre_vote=kind == "PreVote")
        case "BeginQuorumEpoch":
            return BeginQuorumEpochRequest(epoch, ME)
        case "EndQuorumEpoch":
            return EndQuorumEpochRequest(epoch, ME)
        case _:
            return QuorumFetchRequest(quorum.key(ME), FetchPosition(epoch, nowhere, any_number("last epoch")))


def timed_out(quorum: FixedQuorum, role: VoterRole) -> Taken:
    """The time of its role is over, or that in which a leader needs to hear of others; or it is to resign."""
    before = any_voter(quorum, role)
    over = one_of("what is over", on_timeout, on_check_quorum, on_resignation)
    return claims(quorum, before.election, role, over(quorum.server, before, NOW))


def logged(quorum: FixedQuorum, role: VoterRole) -> Taken:
    """The log changes: it appends as a leader, a snapshot is there, a piece of one, or one of its own."""
    before, snapshot = any_voter(quorum, role), any_snapshot("new snapshot")
    server, what = quorum.server, one_of("what is new", "records", "snapshot", "piece", "own snapshot")
    match what:
        case "records":
            step = append(server, before, (Batch(1),), NOW) if role == VoterRole.LEADER else Step(before)
        case "snapshot":
            step = on_snapshot(server, before, snapshot, NOW)
        case "piece":
            step = on_snapshot_piece(server, before, NOW)
        case _:
            step = Step(after_own_snapshot(before, snapshot))
    return claims(quorum, before.election, role, step)


def started(quorum: FixedQuorum, role: None) -> Taken:
    """The voter starts, with the election that is on its disk, and with any log."""
    election = any_election()
    leader = next((one for one in quorum.ids if decide(one == LEADER)), NO_LEADER)
    election = election._replace(leader=leader)
    voters, snapshot = any_voter_sets(quorum), any_snapshot("snapshot")
    return claims(quorum, election, role, start(quorum.server, any_log(), election, DIRECTORY, voters, snapshot))


def sends(quorum: FixedQuorum, role: VoterRole) -> Taken:
    """The voter sends a request, which says no more than is so, and belongs to its role and epoch."""
    before = any_voter(quorum, role)
    sent = [send.message for send in requests_of(quorum.server, before, NOW)]
    told = claims(quorum, before.election, role, Step(before))
    told["MessagesAreTrue"] = z3.And(*(is_true(BEFORE, request) for request in sent))
    told["ForgetsQuestions"] = z3.And(*(belongs(role, before.election.epoch, request) for request in sent))
    return told


def first(quorum: FixedQuorum, role: None) -> Taken:
    """The first start of all: nobody has voted, and nobody was elected."""
    nothing = Histories(lambda voter, epoch: z3.IntVal(NO_LEADER), lambda epoch: z3.IntVal(NO_LEADER))
    epoch = number(NO_ELECTION.epoch)
    told = on_disk(nothing, z3.IntVal(epoch), z3.IntVal(NO_ELECTION.leader), z3.IntVal(NO_ELECTION.voted.id))
    told["ElectedByMajority"] = by_majority(quorum, nothing, epoch)
    return {name: told.get(name, z3.BoolVal(True)) for name in CONJUNCTS}


def any_in(quorum: FixedQuorum, role: VoterRole | None) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
    """The assumptions about the voter before a step, and about the histories."""
    known = [START >= 0, END >= START]
    known += [z3.Or(one == NO_LEADER, z3.And(one >= 1, one <= quorum.size)) for one in (LEADER, VOTED)]
    assumed = [*on_disk(BEFORE, EPOCH, LEADER, VOTED).values()]
    assumed += [by_majority(quorum, BEFORE, epoch) for epoch in (EPOCH, EPOCH + 1)]
    if role is not None:
        known += [fits(role, LEADER, VOTED, REACHES), counts_cast(quorum, BEFORE, role, EPOCH, any_tally(quorum))]
    return known, assumed


def _obligations(
    taken: Callable[[FixedQuorum, Any], Taken], label: str, role: VoterRole | None, settings: ProofSettings
) -> list[Obligation]:
    protocol = QUORUM_RELEASES[-1]
    if settings.mutant is not None:
        protocol = weaken(protocol, QUORUM_ELECTIONS_THEOREM.mutants[settings.mutant])
    quorum = FixedQuorum(protocol, settings.number_of_replicas)
    known, assumed = any_in(quorum, role)
    return obligations_of_step(settings, label, CONJUNCTS, lambda: taken(quorum, role), known, assumed)


STEPS: dict[str, Callable[[FixedQuorum, VoterRole], Taken]] = {
    **{kind: partial(asked, kind) for kind in REQUESTS},
    **{f"{kind}Answer": partial(answered, kind) for kind in REQUESTS},
    "Time": timed_out,
    "Log": logged,
    "Send": sends,
}
"""Everything that happens to a voter that runs."""

TASKS: dict[str, Callable[[ProofSettings], list[Obligation]]] = {
    "Init": partial(_obligations, first, "Init", None),
    "Start": partial(_obligations, started, "Start", None),
}
for (_step, _taken), _role in product(STEPS.items(), VoterRole):
    _label = f"{_step}({_role.value})"
    TASKS[_label] = partial(_obligations, _taken, _label, _role)

OF_ELECTIONS = {
    *("role_after_timeout", "role_after_restart", "epoch_after_resignation", "is_up_to_date", "grants_vote"),
    *("grants_pre_vote", "vote_as_unattached", "vote_as_follower", "vote_as_prospective", "takes_answer"),
}
"""The rules that elections ask. The others say what is committed, and how long one leads: nothing here depends on them."""

QUORUM_ELECTIONS_THEOREM = StepTheorem(
    NAME, SUMMARY, {mutant.name: mutant for mutant in QUORUM_MUTANTS if mutant.field in OF_ELECTIONS}, TASKS, "voters", 3
)
