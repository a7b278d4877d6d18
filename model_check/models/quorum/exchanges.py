"""Exchanges: a server asks another, which answers. Both are late sometimes."""

from typing import Any

from kspec.model_check.core.model import REFUSED, Arrow, then
from kspec.model_check.models.quorum.board import NOW, Board, answer_of
from kspec.model_check.models.quorum.values import LateAnswer, StepOutcome, VoterServer
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.following import on_snapshot
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.refusals import check_leader_epoch
from kspec.spec.quorum.requests import QuorumRequest, requests_of
from kspec.spec.quorum.rules.snapshots import check_snapshot
from kspec.spec.quorum.rules.voters import sets_below
from kspec.spec.step import Send
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Error

KINDS = ("PreVote", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch")
"""The names of the exchanges, which are those of Kafka's APIs."""


def kind_of(request: QuorumRequest) -> str:
    """The name of a request."""
    match request:
        case VoteRequest():
            return "PreVote" if request.is_pre_vote else "Vote"
        case BeginQuorumEpochRequest():
            return "BeginQuorumEpoch"
        case EndQuorumEpochRequest():
            return "EndQuorumEpoch"
        case _:
            return "Fetch"


def add_exchanges(board: Board) -> None:
    """Add all that servers ask one another."""
    for one, other in board.pairs:
        for kind in KINDS:
            _add_exchange(board, kind, one, other)
            if board.parameters["lost_answers"]:
                _add_unanswered(board, kind, one, other)
            if board.slots.answer:
                _add_question(board, kind, one, other)
        if board.parameters["snapshots"]:
            _add_snapshot_fetch(board, one, other)
        if board.slots.answer:
            _add_late_answer(board, one, other)
        if board.slots.request:
            _add_departure(board, one, other)
            _add_late_request(board, one, other)


def request_to(board: Board, one: BrokerId, server: VoterServer, other: BrokerId) -> QuorumRequest | None:
    """The request that a server would send to another one now."""
    if server.halted is not None:
        return None
    asked = requests_of(board.servers[one], server.replica, NOW) if server.wanted == NO_SNAPSHOT else ()
    return next((send.message for send in asked if send.to == other), None)


def handled(board: Board, other: BrokerId, server: VoterServer, request: QuorumRequest) -> StepOutcome:
    """The server after a request."""
    return board.taken(other, server, handle_request(board.servers[other], server.replica, request, NOW))


def answered(
    board: Board, one: BrokerId, server: VoterServer, asked: Send[QuorumRequest], answer: QuorumAnswer, expected: bool
) -> StepOutcome:
    """The server after an answer."""
    step = handle_answer(board.servers[one], server.replica, asked, answer, expected, NOW)
    return board.taken(one, server, step)


def _asked(board: Board, kind: str, one: BrokerId, asking: VoterServer, other: BrokerId) -> QuorumRequest | None:
    request = request_to(board, one, asking, other)
    return request if request is not None and kind_of(request) == kind else None


def _add_exchange(board: Board, kind: str, one: BrokerId, other: BrokerId) -> None:
    """A request and its answer in one step, if no earlier answer is under way."""

    def exchange(asking: VoterServer, asked: VoterServer, *under_way: LateAnswer | None) -> tuple[StepOutcome, ...] | None:
        request = _asked(board, kind, one, asking, other)
        if request is None or asked.halted is not None or any(late is not None and late.is_expected for late in under_way):
            return None
        taken = handled(board, other, asked, request)
        answer = answer_of(taken)
        if answer is None:
            return (StepOutcome(asking), taken)
        return (answered(board, one, asking, Send(other, request), answer, True), taken)

    servers, arguments = board.slots.server, {"server": one, "asked": other}
    late = [board.slots.answer[one, other]] if board.slots.answer else []
    after = board.outcomes(kind, arguments, exchange, servers[one], servers[other], *late, link=(one, other))
    board.add(kind, arguments, after, (one, other), [Arrow(one, other, kind), Arrow(other, one, f"answer to {kind}")])


def _add_unanswered(board: Board, kind: str, one: BrokerId, other: BrokerId) -> None:
    """A request whose answer is lost."""

    def ask(asking: VoterServer, asked: VoterServer) -> tuple[StepOutcome, ...] | None:
        request = _asked(board, kind, one, asking, other)
        if request is None or asked.halted is not None:
            return None
        return (handled(board, other, asked, request),)

    servers, arguments, name = board.slots.server, {"server": one, "asked": other}, f"{kind}Unanswered"
    after = board.outcomes(name, arguments, ask, servers[one], servers[other], link=(one, other))
    board.add(name, arguments, after, (other,), [Arrow(one, other, kind)], spends="lost_answers")


# ---- snapshots


def _add_snapshot_fetch(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A follower fetches a snapshot, all of it at once, or hears that it is there no more, or that nobody leads there.

    **Leaves out:** the pieces of a snapshot, and what an answer says of another epoch.
    """

    def fetch(asking: VoterServer, asked: VoterServer) -> tuple[StepOutcome, ...] | None:
        election, leading = asking.replica.election, asked.replica
        is_asked = asking.wanted != NO_SNAPSHOT and asking.halted is None and election.leader == other
        if not is_asked or asked.halted is not None or check_leader_epoch(leading, election.epoch) != Error.NONE:
            return None
        idle, wanted = asking._replace(wanted=NO_SNAPSHOT), asking.wanted
        if check_snapshot(leading.snapshot, wanted) != Error.NONE:
            return (StepOutcome(idle),)
        last = sets_below(leading.voter_sets, wanted.end_offset)[-1]
        voters = last.voters if board.voters_in_log or last.offset != UNKNOWN_OFFSET else frozenset()
        step = on_snapshot(board.servers[one], asking.replica, wanted, NOW, voters)
        if step.state is asking.replica:
            return (StepOutcome(idle),)
        return (board.taken(one, idle._replace(in_snapshot=asked.in_snapshot), step),)

    servers, arguments, name = board.slots.server, {"server": one, "asked": other}, "FetchSnapshot"
    after = board.outcomes(name, arguments, fetch, servers[one], servers[other], link=(one, other))
    board.add(name, arguments, after, (one,), [Arrow(one, other, name), Arrow(other, one, "a snapshot")])


# ---- late answers


def _add_question(board: Board, kind: str, one: BrokerId, other: BrokerId) -> None:
    """A request whose answer is on its way."""
    under_way = board.slots.answer[one, other]

    def ask(asking: VoterServer, asked: VoterServer, late: LateAnswer | None) -> tuple[StepOutcome, ...] | None:
        request = _asked(board, kind, one, asking, other)
        if request is None or asked.halted is not None or late is not None:
            return None
        taken = handled(board, other, asked, request)
        return None if answer_of(taken) is None else (taken,)

    def send(asking: VoterServer, outcomes: Any) -> object:
        request = _asked(board, kind, one, asking, other)
        return REFUSED if outcomes is None or request is None else LateAnswer(other, request, outcomes[0].answer)

    servers, arguments, name = board.slots.server, {"server": one, "asked": other}, f"Ask{kind}"
    after = board.outcomes(name, arguments, ask, servers[one], servers[other], under_way, link=(one, other))
    more = [then(under_way, send, servers[one], after)]
    board.add(name, arguments, after, (other,), [Arrow(one, other, kind)], more, spends="late_answers")


def _add_late_answer(board: Board, one: BrokerId, other: BrokerId) -> None:
    """An answer arrives, or is lost."""
    under_way, servers, arguments = board.slots.answer[one, other], board.slots.server, {"server": one, "asked": other}

    def take(asking: VoterServer, late: LateAnswer | None) -> tuple[StepOutcome, ...] | None:
        if late is None or asking.halted is not None:
            return None
        return (answered(board, one, asking, Send(other, late.request), late.answer, late.is_expected),)

    after = board.outcomes("TakeAnswer", arguments, take, servers[one], under_way)
    more = [then(under_way, lambda late: None, under_way)]
    board.add("TakeAnswer", arguments, after, (one,), [Arrow(other, one, "a late answer")], more)


# ---- late requests


def _add_departure(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A copy of a request is on its way for any time."""
    under_way, left = board.slots.request[one, other], board.slots.left["late_requests"]

    def depart(asking: VoterServer, late: QuorumRequest | None, number: int) -> object:
        request = None if late is not None or number == 0 else request_to(board, one, asking, other)
        return REFUSED if request is None else (request, number - 1)

    board.model.action(
        "SendLate",
        {"server": one, "asked": other},
        [],
        [then([under_way, left], depart, board.slots.server[one], under_way, left)],
        [Arrow(one, other, "a request that will be late")],
    )


def _add_late_request(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A late request arrives; nobody waits for its answer any more."""
    under_way, servers, arguments = board.slots.request[one, other], board.slots.server, {"server": one, "asked": other}

    def arrive(asked: VoterServer, late: QuorumRequest | None) -> tuple[StepOutcome, ...] | None:
        return None if late is None or asked.halted is not None else (handled(board, other, asked, late),)

    after = board.outcomes("ArriveLate", arguments, arrive, servers[other], under_way)
    more = [then(under_way, lambda late: None, under_way)]
    board.add("ArriveLate", arguments, after, (other,), [Arrow(one, other, "a late request")], more)
