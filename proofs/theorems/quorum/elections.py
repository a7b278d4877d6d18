"""Theorem: the quorum of controllers elects one leader at most in an epoch, and no voter votes twice in one.

A step changes what one voter has. So the state is that of one voter and histories of all, however many there are: for whom
each voter has voted in each epoch, who was elected in it, and by whom. The handlers of `spec` make the step, with epochs,
offsets and logs that are any. What others send is any message that the invariant allows, however late, and however often.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import z3

from kspec.proofs.induction.by_steps import StepTheorem, obligations_of_step
from kspec.proofs.induction.claims import Obligation
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.members import Membership, Whole, is_part, majorities_share, membership_of, size_term
from kspec.proofs.symbolic.paths import fresh
from kspec.proofs.symbolic.values import AnyNumber, number, truth
from kspec.proofs.theorems.quorum.majorities import TASK, lemmas
from kspec.proofs.theorems.quorum.steps import STEPS_IN_ROLES, VoterStep, belongs
from kspec.proofs.theorems.quorum.voter import (
    END,
    EPOCH,
    GRANTED,
    LEADER,
    ME,
    REACHES,
    REJECTED,
    SEEN,
    START,
    THEM,
    VOTED,
    VOTERS,
    Party,
    VoterLog,
)
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.mutation import Mutant, weaken
from kspec.spec.quorum.effects import ForgetRequests, LeaderChangeAppended, PersistElection
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import NO_ELECTION, ElectionState
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.step import Reply
from kspec.spec.values import NO_LEADER, BrokerId, EpochEndOffset, Offset

NAME = "quorum-elections"
SUMMARY = (
    "Each epoch of the metadata quorum has one leader at most, for whom a majority of the voters has voted; no voter votes"
    " for two in it."
)

History = Callable[..., Any]
"""Something of the past: for each epoch, and of each voter."""


class AnyLog(VoterLog):
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


def any_majority_offset(ends: tuple[Offset, ...]) -> Offset:
    """Any offset: no election depends on what is committed."""
    offset: Any = AnyNumber(fresh("offset of majority"))
    found: Offset = offset
    return found


# ---- the invariant


class Elections(NamedTuple):
    """The histories of all voters: whom each voted for in each epoch, who was elected in it, and by whom, as a set.

    `NO_LEADER` stands for nobody.
    """

    votes: History
    elected: History
    elector: History
    electors: History

    def with_vote(self, epoch: Any, candidate: Any) -> "Elections":
        """The histories after a vote of the voter that takes the step."""

        def votes(voter: Any, at: Any) -> Any:
            is_new = z3.And(voter == ME, at == epoch, candidate != NO_LEADER)
            return z3.If(is_new, candidate, self.votes(voter, at))

        return self._replace(votes=votes)

    def with_leader(self, epoch: Any, leader: Any, granting: AbstractSet[BrokerId]) -> "Elections":
        """The histories after an election, if it is of the voter that takes the step; once it is elected, it stays so."""
        has, size = membership_of(granting), size_term(granting)

        def is_new(at: Any) -> z3.BoolRef:
            return z3.And(at == epoch, leader == ME, self.elected(at) != ME)

        return self._replace(
            elected=lambda at: z3.If(is_new(at), leader, self.elected(at)),
            elector=lambda at, voter: z3.If(is_new(at), has(voter), self.elector(at, voter)),
            electors=lambda at: z3.If(is_new(at), size, self.electors(at)),
        )

    def electors_of(self, epoch: Any) -> tuple[Membership, Any]:
        """The voters that have elected the leader of an epoch, and how many they are."""
        return partial(self.elector, epoch), self.electors(epoch)


_ID = z3.IntSort()
BEFORE = Elections(
    z3.Function("vote", _ID, _ID, _ID),
    z3.Function("elected", _ID, _ID),
    z3.Function("elector", _ID, _ID, z3.BoolSort()),
    z3.Function("electors", _ID, _ID),
)
"""The histories before a step."""


def on_disk(past: Elections, epoch: Any, leader: Any, voted: Any) -> dict[str, z3.BoolRef]:
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


class Electorates(NamedTuple):
    """The voters of whom a majority elects, each as a set.

    - `of_epoch`: those that elected the leader of an epoch, before the step;
    - `own`: those that the voter would ask;
    - `share`: whether majorities of the two share a voter.
    """

    of_epoch: Callable[[Any], Whole]
    own: Whole
    share: Callable[[Any], z3.BoolRef]


EVERYBODY: Whole = (VOTERS.has, VOTERS.size)
FIXED = Electorates(lambda epoch: EVERYBODY, EVERYBODY, lambda epoch: z3.BoolVal(True))
"""The voter set is that of the configuration."""


def counts_cast(
    past: Elections, role: VoterRole, epoch: Any, granted: Any, rejected: Any, voters: Membership = VOTERS.has
) -> z3.BoolRef:
    """Whether each vote that a candidate counts is a voter's and has been cast for it; its own is among them if it is a
    voter, and nobody's counts twice.
    """
    voter = z3.Int("any voter")
    has, refuses = membership_of(granted), membership_of(rejected)
    told = [z3.BoolVal(True)]
    if role in NOMINEES:
        told = [is_part(has, voters), has(ME) == voters(ME), z3.ForAll([voter], z3.Not(z3.And(has(voter), refuses(voter))))]
    if role == VoterRole.CANDIDATE:
        told.append(z3.ForAll([voter], z3.Implies(has(voter), past.votes(voter, epoch) == ME)))
    return z3.And(*told)


def by_majority(past: Elections, epoch: Any, voters: Whole = EVERYBODY) -> z3.BoolRef:
    """Whether more than half of the voters have voted for the leader of an epoch, if it has one."""
    members, size = voters
    leader, voter = past.elected(epoch), z3.Int("any voter")
    have_voted = z3.ForAll([voter], z3.Implies(past.elector(epoch, voter), past.votes(voter, epoch) == leader))
    enough = past.electors(epoch) * 2 > size
    return z3.Or(leader == NO_LEADER, z3.And(enough, is_part(partial(past.elector, epoch), members), have_voted))


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

Told = dict[str, Any]
"""Whether each conjunct holds after a step."""


def claims(taken: VoterStep, role: VoterRole | None, electorates: Electorates = FIXED) -> Told:
    """Whether each conjunct holds after a step, and, of what is on the disk, after each of its effects.

    `role`: before the step, `None` if the voter starts.
    """
    before, step = taken.before.election, taken.step
    past, stored = BEFORE, before
    granting = granting_in(taken)
    told: dict[str, list[Any]] = {name: [] for name in CONJUNCTS}
    for effect in step.effects:
        match effect:
            case PersistElection(election):
                stored = election
                epoch, leader, voted = terms_of(election)
                mine, theirs = past.votes(ME, epoch), past.elected(epoch)
                told["VotesOnce"].append(z3.Or(voted == NO_LEADER, mine == NO_LEADER, mine == voted))
                one_leader = z3.Or(leader != ME, theirs == NO_LEADER, theirs == ME)
                elected_before = by_majority(BEFORE, epoch, electorates.of_epoch(epoch))
                known = z3.And(shared(past, epoch, granting, electorates), elected_before)
                told["ElectionSafety"].append(z3.Implies(known, one_leader))
                past = past.with_vote(epoch, voted).with_leader(epoch, leader, granting)
                as_before, now = (by_majority(past, epoch, one) for one in (electorates.of_epoch(epoch), electorates.own))
                by_now = z3.Or(leader != ME, z3.If(theirs == ME, as_before, now))
                told["ElectedByMajority"].append(z3.Implies(elected_before, by_now))
                for name, holds in on_disk(past, epoch, leader, voted).items():
                    told[name].append(holds)
            case Reply(answer):
                told["MessagesAreTrue"].append(is_true(past, answer, (ME, taken.request)))
            case _:
                pass
    after = step.state
    epoch, leader, voted = terms_of(after.election)
    for name, holds in on_disk(past, epoch, leader, voted).items():
        told[name].append(holds)
    told["StoredBeforeSent"] += [one == other for one, other in zip(terms_of(after.election), terms_of(stored), strict=True)]
    voters, _ = electorates.own
    told["CountsVotesCast"].append(counts_cast(past, after.role, epoch, after.tally.granted, after.tally.rejected, voters))
    told["RoleFitsElection"].append(fits(after.role, leader, voted, truth(after.reaches_leader)))
    if role is not None and ForgetRequests() not in step.effects:
        stays = z3.And(z3.BoolVal(after.role == role), truth(after.election.epoch == before.epoch))
        told["ForgetsQuestions"].append(stays)
    for request in taken.sent:
        told["MessagesAreTrue"].append(is_true(past, request))
        told["ForgetsQuestions"].append(belongs(after.role, after.election.epoch, request))
    return {name: z3.And(*holds) if holds else z3.BoolVal(True) for name, holds in told.items()}


def granting_in(taken: VoterStep) -> AbstractSet[BrokerId]:
    """The voters that a voter is elected by in a step, by the first record that it appends; nobody, if it is not elected."""
    effects = taken.step.effects
    none: AbstractSet[BrokerId] = frozenset()
    return next((effect.granting for effect in effects if isinstance(effect, LeaderChangeAppended)), none)


def shared(past: Elections, epoch: Any, granting: AbstractSet[BrokerId], electorates: Electorates) -> z3.BoolRef:
    """A fact: a majority that votes now shares a voter with that of a leader who was elected in this epoch before."""
    now, wholes = (membership_of(granting), size_term(granting)), (electorates.of_epoch(epoch), electorates.own)
    share = majorities_share(past.electors_of(epoch), now, wholes, z3.Int("voter of both"))
    return z3.And(electorates.share(epoch), share)


def terms_of(election: ElectionState) -> tuple[Any, Any, Any]:
    """An election as terms: epoch, leader, and the id of whom the voter has voted for."""
    return number(election.epoch), number(election.leader), number(election.voted.id)


def is_true(past: Elections, message: Any, asked: Any = None) -> z3.BoolRef:
    """Whether what a message says of leaders and votes is so, and stays so. `asked`: who answers it, and what."""
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


def premise(taken: VoterStep) -> z3.BoolRef:
    """The truth of the message that arrives."""
    told = []
    if taken.request is not None:
        told.append(is_true(BEFORE, taken.request))
    if taken.question is not None:
        question = taken.question.message
        told.append(is_true(BEFORE, taken.answer, (taken.question.to, question)))
    return z3.And(*told)


OF_FIXED = (VOTERS.has(ME), VOTERS.size >= z3.Sum(*(z3.If(VOTERS.has(one), 1, 0) for one in SEEN)))
"""Facts about a fixed voter set: the one that takes the step votes."""


def any_in(
    role: VoterRole | None, voters: Membership = VOTERS.has, of_voters: Sequence[z3.BoolRef] = OF_FIXED
) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
    """The assumptions about the voter before a step, and about the histories: without and with quantifiers.

    `of_voters`: what is known of the voter set that the voter goes by.
    """
    known = [START >= 0, END >= START, *of_voters]
    assumed = [*on_disk(BEFORE, EPOCH, LEADER, VOTED).values()]
    if role is None:
        known.append(z3.Or(*(one == LEADER for one in (NO_LEADER, ME, THEM))))
    else:
        known.append(fits(role, LEADER, VOTED, REACHES))
        assumed.append(counts_cast(BEFORE, role, EPOCH, GRANTED, REJECTED, voters))
    return known, assumed


# ---- the obligations


def protocol_of(settings: ProofSettings, mutants: dict[str, Mutant]) -> QuorumProtocol:
    """The rules of the newest release, one of them weakened if the settings say so."""
    protocol = QUORUM_RELEASES[-1]
    return protocol if settings.mutant is None else weaken(protocol, mutants[settings.mutant])


def _obligations(label: str, settings: ProofSettings) -> list[Obligation]:
    protocol = replace(protocol_of(settings, MUTANTS), majority_offset=any_majority_offset)
    party = Party(protocol, any_log, has_snapshots=True)
    take, role = STEPS_IN_ROLES[label]
    known, assumed = any_in(role)

    def told() -> Told:
        taken = take(party, role)
        if_true = premise(taken)
        return {name: z3.Implies(if_true, holds) for name, holds in claims(taken, role).items()}

    return obligations_of_step(settings, label, CONJUNCTS, told, known, assumed)


def at_first() -> Told:
    """The first start of all: nobody has voted, and nobody was elected."""
    nobody = z3.IntVal(NO_LEADER)
    nothing = Elections(
        lambda voter, epoch: nobody, lambda epoch: nobody, lambda epoch, voter: z3.BoolVal(False), lambda epoch: z3.IntVal(0)
    )
    told = on_disk(nothing, *terms_of(NO_ELECTION)) | {"ElectedByMajority": by_majority(nothing, number(NO_ELECTION.epoch))}
    return {name: told.get(name, z3.BoolVal(True)) for name in CONJUNCTS}


def _init(settings: ProofSettings) -> list[Obligation]:
    return obligations_of_step(settings, "Init", CONJUNCTS, at_first)


TASKS: dict[str, Callable[[ProofSettings], list[Obligation]]] = {
    TASK: lemmas,
    "Init": _init,
    **{label: partial(_obligations, label) for label in STEPS_IN_ROLES},
}

OF_ELECTIONS = {
    *("role_after_timeout", "role_after_restart", "epoch_after_resignation", "is_up_to_date", "grants_vote"),
    *("grants_pre_vote", "vote_as_unattached", "vote_as_follower", "vote_as_prospective", "takes_answer"),
}
"""The rules that elections ask. The others say what is committed, and how long one leads: nothing here depends on them."""

MUTANTS = {mutant.name: mutant for mutant in QUORUM_MUTANTS if mutant.field in OF_ELECTIONS}

QUORUM_ELECTIONS_THEOREM = StepTheorem(NAME, SUMMARY, MUTANTS, TASKS, "voters")
