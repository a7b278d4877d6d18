"""Messages by their kind: which handler takes a request, and which an answer."""

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.elections import handle_vote, handle_vote_response
from kspec.spec.quorum.following import handle_begin_quorum_epoch, handle_end_quorum_epoch, handle_fetch_response
from kspec.spec.quorum.leading import (
    handle_begin_quorum_epoch_response,
    handle_end_quorum_epoch_response,
    handle_fetch,
)
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.step import Send, Step
from kspec.spec.values import MonotonicMs


def handle_request(
    server: QuorumServer, state: QuorumReplica[LogT], request: QuorumRequest, now: MonotonicMs
) -> QuorumStep[LogT]:
    """The step that a request is a reason for. **Kafka:** `KafkaRaftClient.handleRequest`."""
    match request:
        case VoteRequest():
            return handle_vote(server, state, request, now)
        case BeginQuorumEpochRequest():
            return handle_begin_quorum_epoch(server, state, request, now)
        case EndQuorumEpochRequest():
            return handle_end_quorum_epoch(server, state, request, now)
        case _:
            return handle_fetch(server, state, request, now)


def handle_answer(
    server: QuorumServer,
    state: QuorumReplica[LogT],
    asked: Send[QuorumRequest],
    answer: QuorumAnswer,
    is_expected: bool,
    now: MonotonicMs,
) -> QuorumStep[LogT]:
    """The step that an answer is a reason for: none, if the replica has forgotten the request (`ForgetRequests`).

    **Kafka:** `KafkaRaftClient.handleInboundMessage`, `handleResponse`.
    """
    if not server.protocol.takes_answer(is_expected):
        return Step(state)
    match asked.message, answer:
        case VoteRequest() as vote, VoteResponse():
            return handle_vote_response(server, state, Send(asked.to, vote), answer, now)
        case BeginQuorumEpochRequest() as begin, BeginQuorumEpochResponse():
            return handle_begin_quorum_epoch_response(server, state, Send(asked.to, begin), answer, now)
        case EndQuorumEpochRequest() as end, EndQuorumEpochResponse():
            return handle_end_quorum_epoch_response(server, state, Send(asked.to, end), answer, now)
        case QuorumFetchRequest() as fetch, QuorumFetchResponse():
            return handle_fetch_response(server, state, Send(asked.to, fetch), answer, now)
        case _:
            return Step(state)
