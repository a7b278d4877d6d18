"""Everything that happens to a voter, and with it the messages of others, which are any that a theorem allows."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import z3

from kspec.proofs.symbolic.paths import assume, decide
from kspec.proofs.symbolic.values import SymbolicBool, number
from kspec.proofs.theorems.quorum.voter import (
    DIRECTORY,
    LEADER,
    ME,
    NOW,
    OTHER_DIRECTORY,
    THEM,
    Party,
    any_election,
    any_number,
    is_so,
    one_of,
)
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot, on_snapshot, on_snapshot_piece
from kspec.spec.quorum.leading import append, on_check_quorum, on_resignation
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.replica import QuorumReplica
from kspec.spec.quorum.requests import requests_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.step import Send, Step
from kspec.spec.values import NO_LEADER, NO_REPLICA, EpochEndOffset, Error, Record, ReplicaKey


class AnyError:
    """Any error of an answer: whether it is one of them is decided when that is asked."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and decide(z3.Int("error") == z3.IntVal([*Error].index(other)))

    def __hash__(self) -> int:
        return 0


class VoterStep(NamedTuple):
    """A step of a voter, as theorems look at it.

    - `before`: the voter; if it starts, with what is on its disk;
    - `step`: what it does;
    - `request`, `question`, `answer`: the message that arrives, if one does, and the request of its own that it answers;
    - `expected`: that the answer is to a request that has not been forgotten;
    - `sent`: the requests that it may send, in a step in which it sends.
    """

    before: QuorumReplica[Any]
    step: QuorumStep[Any]
    request: Any = None
    question: Any = None
    answer: Any = None
    expected: z3.BoolRef = z3.BoolVal(False)
    sent: tuple[Any, ...] = ()


# ---- messages of others


def vote(is_pre_vote: bool = False) -> VoteRequest:
    """A request of any replica for a vote."""
    asks = ReplicaKey(any_number("who asks"), DIRECTORY)
    return VoteRequest(request_epoch(), asks, any_number("last epoch"), any_number("its end"), who_is_asked(), is_pre_vote)


def begin() -> BeginQuorumEpochRequest:
    """A leader says that it leads."""
    return BeginQuorumEpochRequest(request_epoch(), any_number("leader of request"), who_is_asked())


def end() -> EndQuorumEpochRequest:
    """A leader has resigned."""
    own = ReplicaKey(ME, DIRECTORY)
    successors = (ReplicaKey(any_number("successor"), DIRECTORY), own) if is_so("names successors") else ()
    return EndQuorumEpochRequest(request_epoch(), any_number("leader of request"), successors)


def fetch() -> QuorumFetchRequest:
    """Another voter fetches from anywhere, or its server with another disk, which observes."""
    position = FetchPosition(request_epoch(), any_number("its end"), any_number("last epoch"))
    sender = one_of("who fetches", ReplicaKey(THEM, DIRECTORY), ReplicaKey(THEM, OTHER_DIRECTORY))
    return QuorumFetchRequest(sender, position, any_number("high watermark of it"))


def request_epoch() -> Any:
    """The epoch that a request names."""
    return any_number("epoch of request")


def who_is_asked() -> ReplicaKey:
    """The voter that a request is meant for, if it says so."""
    return ReplicaKey(any_number("who is asked"), DIRECTORY) if is_so("says for whom") else NO_REPLICA


REQUESTS: dict[str, Callable[[], Any]] = {
    "Vote": vote,
    "PreVote": partial(vote, is_pre_vote=True),
    "BeginQuorumEpoch": begin,
    "EndQuorumEpoch": end,
    "Fetch": fetch,
}
"""Any request of each kind."""


def answer_to(asked: Any, party: Party) -> Any:
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
            records = (Record(any_number("value of record"), any_number("epoch of record")),) if is_so("has records") else ()
            diverging = EpochEndOffset(any_number("diverging epoch"), any_number("diverging end"))
            told, wanted = any_number("high watermark told"), party.snapshot("wanted snapshot")
            return QuorumFetchResponse(error, epoch, leader, records, told, diverging, wanted, party.told_voter_sets())


def own_question(kind: str) -> Any:
    """A request of the voter, in any epoch, and with any end of its log."""
    epoch, end_offset, last_epoch = any_number("epoch of question"), any_number("its end"), any_number("last epoch")
    own = ReplicaKey(ME, DIRECTORY)
    match kind:
        case "Vote" | "PreVote":
            return VoteRequest(epoch, own, last_epoch, end_offset, is_pre_vote=kind == "PreVote")
        case "BeginQuorumEpoch":
            return BeginQuorumEpochRequest(epoch, ME)
        case "EndQuorumEpoch":
            return EndQuorumEpochRequest(epoch, ME)
        case _:
            return QuorumFetchRequest(own, FetchPosition(epoch, end_offset, last_epoch))


# ---- the steps


def asked(kind: str, party: Party, role: VoterRole) -> VoterStep:
    """A request of this kind arrives, of anybody, at any time."""
    before, request = party.in_role(role), REQUESTS[kind]()
    return VoterStep(before, handle_request(party.server, before, request, NOW), request=request)


def answered(kind: str, party: Party, role: VoterRole) -> VoterStep:
    """An answer arrives to a request of this kind, made at any time; it is expected if nothing has been forgotten since.

    Only one to a request of the present role and epoch is: a voter that leaves these forgets what it has asked.
    """
    before, question = party.in_role(role), Send(THEM, own_question(kind))
    answer, expected = answer_to(question.message, party), z3.Bool("is expected")
    assume(z3.Implies(expected, belongs(role, before.election.epoch, question.message)))
    is_expected: Any = SymbolicBool(expected)
    step = handle_answer(party.server, before, question, answer, is_expected, NOW)
    return VoterStep(before, step, question=question, answer=answer, expected=expected)


def timed_out(party: Party, role: VoterRole) -> VoterStep:
    """The time of its role is over, or that in which a leader needs to hear of others; or it is to resign."""
    before = party.in_role(role)
    over = one_of("what is over", on_timeout, on_check_quorum, on_resignation)
    return VoterStep(before, over(party.server, before, NOW))


def logged(party: Party, role: VoterRole) -> VoterStep:
    """The log changes: it appends as a leader, a snapshot is there, a piece of one, or one of its own."""
    before, server = party.in_role(role), party.server
    others = ("snapshot", "piece", "own snapshot") if party.has_snapshots else ()
    match one_of("what is new", *others, "records"):
        case "records":
            batch = Batch(1, payload=any_number("new value"))
            step = append(server, before, (batch,), NOW) if role == VoterRole.LEADER else Step(before)
        case "snapshot":
            step = on_snapshot(server, before, party.snapshot("new snapshot"), NOW)
        case "piece":
            step = on_snapshot_piece(server, before, NOW)
        case _:
            step = Step(after_own_snapshot(before, party.snapshot("new snapshot")))
    return VoterStep(before, step)


def started(party: Party, role: None) -> VoterStep:
    """The voter starts, with the election and the log that are on its disk.

    If that names a leader that is not itself, it is the one that is called `THEM` here.
    """
    leader = next((one for one in (ME, THEM) if decide(one == LEADER)), NO_LEADER)
    election = any_election()._replace(leader=leader)
    before = party.in_role(VoterRole.UNATTACHED)._replace(election=election)
    stored = (party.log(), election, DIRECTORY, party.voter_sets, party.snapshot("snapshot"), party.voters_in_log)
    return VoterStep(before, start(party.server, *stored))


def sends(party: Party, role: VoterRole) -> VoterStep:
    """The voter sends a request."""
    before = party.in_role(role)
    return VoterStep(before, Step(before), sent=tuple(send.message for send in requests_of(party.server, before, NOW)))


def belongs(role: VoterRole, epoch: Any, request: Any) -> Any:
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


STEPS: dict[str, Callable[[Party, VoterRole], VoterStep]] = {
    **{kind: partial(asked, kind) for kind in REQUESTS},
    **{f"{kind}Answer": partial(answered, kind) for kind in REQUESTS},
    "Time": timed_out,
    "Log": logged,
    "Send": sends,
}
"""All that happens to a voter that runs."""

STEPS_IN_ROLES: dict[str, tuple[Callable[[Party, Any], VoterStep], VoterRole | None]] = {
    "Start": (started, None),
    **{f"{name}({role.value})": (step, role) for (name, step), role in product(STEPS.items(), VoterRole)},
}
"""Each step in each role, by label; the start is in none."""
