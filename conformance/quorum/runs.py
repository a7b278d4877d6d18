"""Runs of three voters, and what is claimed of them."""

from collections.abc import Callable
from typing import NamedTuple

from kspec.conformance.quorum.controller import REQUEST_MS
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
)
from kspec.conformance.quorum.voters import Voters, first_voters, take
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import NO_LEADER, UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, BrokerId, Error


class QuorumRun(NamedTuple):
    """A run of voters 1 to 3, of which 1 is real: its steps, and what is to be seen at its end, in words and in states.

    - `old`: played voters that know no pre-vote;
    - `since`: the first release that has such a run;
    - `departs`: why Kafka has to depart at the last step, if it has to;
    - `changes_voters`: the voters are in the log, with their directories, and may be changed (`kraft.version` 1);
    - `request_ms`: how long a request waits for its answer (milliseconds);
    - `is_free`: the real voter's times may end whenever its clock says so, and a step that is not possible then is left out.
    """

    name: str
    words: str
    claim: str
    steps: tuple[QuorumMove, ...]
    holds: Callable[[tuple[Voters, ...]], bool]
    old: frozenset[BrokerId] = frozenset()
    since: str = ""
    departs: str = ""
    is_free: bool = False
    changes_voters: bool = False
    request_ms: int = REQUEST_MS


def states_in(run: QuorumRun, protocol: QuorumProtocol) -> tuple[Voters, ...]:
    """The voters after each step by the rules of a release; the run ends before a step that is not possible there."""
    states = [first_voters(protocol, voters_in_log=run.changes_voters)]
    for move in run.steps:
        taken = take(states[-1], move)
        if taken is None and not run.is_free:
            break
        if taken is None:
            continue
        states.append(taken.after)
    return tuple(states)


def move_in_words(move: QuorumMove) -> str:
    """A step as people read it."""
    match move:
        case TimeOut(server):
            return f"the time of {server} is over"
        case Silence(server):
            return f"{server} does nothing, for longer than a voter waits"
        case VoterExchange(kind, server, asked):
            return f"{server} asks {asked}: {kind.value}{_fate_in_words(move)}"
        case AnswerArrival(server, asked):
            return f"the answer of {asked} arrives at {server}"
        case AddVoter(asked, voter):
            return f"an operator asks {asked} to add voter {voter}"
        case RemoveVoter(asked, voter):
            return f"an operator asks {asked} to remove voter {voter}"
        case VoterChangeTimesOut(server):
            return f"the operator's request to {server} has waited for too long"
        case Restart(server):
            return f"{server} is killed, and starts again"
        case LoseDisk(server):
            return f"{server} is killed, and starts again with an empty disk"
        case Append(server):
            return f"{server} appends a record"
        case TakeSnapshot(server):
            return f"{server} takes a snapshot"
        case SnapshotTransfer(server, asked):
            return f"{server} fetches the snapshot of {asked}"
        case Tell(asked, request, who):
            return f"{who} sends {asked}: {request_in_words(request)}"


def _fate_in_words(exchange: VoterExchange) -> str:
    if exchange.unknown:
        return ", which does not know this request"
    return ", and the answer is lost" if exchange.lost else ", and the answer is on its way" if exchange.late else ""


def request_in_words(request: QuorumRequest) -> str:
    """A request that nobody of the three sends."""
    name = type(request).__name__.removesuffix("Request").removeprefix("Quorum")
    if isinstance(request, VoteRequest):
        return f"{'PreVote' if request.is_pre_vote else 'Vote'} of {request.replica.id} in epoch {request.epoch}"
    epoch = getattr(request, "epoch", None)
    leader = getattr(request, "leader", NO_LEADER)
    return name if epoch is None else f"{name}: {leader} leads in epoch {epoch}"


def in_words(answer: QuorumAnswer | None) -> str:
    """An answer as people read it."""
    if answer is None:
        return "no answer"
    parts = [answer.error.name] if answer.error != Error.NONE else []
    if isinstance(answer, VoteResponse) and answer.error == Error.NONE:
        parts.append("granted" if answer.is_granted else "not granted")
    if isinstance(answer, QuorumFetchResponse) and answer.error == Error.NONE:
        count = sum(batch.record_count for batch in answer.records)
        parts.append(f"{count} records")
        if answer.high_watermark != UNKNOWN_OFFSET:
            parts.append(f"high watermark {answer.high_watermark}")
        if answer.snapshot != NO_SNAPSHOT:
            parts.append(f"a snapshot up to {answer.snapshot.end_offset}")
        if answer.diverging != UNDEFINED_EPOCH_END:
            parts.append(f"diverging at {answer.diverging.end_offset}")
    leads = f"{answer.leader} leads" if answer.leader != NO_LEADER else "no leader known"
    return ", ".join([*parts, f"epoch {answer.epoch}", leads])
