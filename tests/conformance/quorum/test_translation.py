"""Requests and answers of voters on the wire, and back, by the schemas of each release."""

import pytest

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.quorum.translation import (
    answer_in_words_of_spec,
    answer_on_the_wire,
    as_told,
    on_the_wire,
    request_in_words_of_spec,
)
from kspec.impl.wire.quorum import by_ids
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import BrokerId, DirectoryId, Epoch, EpochEndOffset, Error, Offset, ReplicaKey
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip

ONE, TWO = ReplicaKey(BrokerId(1)), ReplicaKey(BrokerId(2))
KNOWN = ReplicaKey(BrokerId(3), DirectoryId(bytes([7]) * 16))
"""A voter whose directory is known."""

FETCH = QuorumFetchRequest(ONE, FetchPosition(Epoch(3), Offset(7), Epoch(2)), Offset(5))

REQUESTS: list[QuorumRequest] = [
    VoteRequest(Epoch(4), ONE, Epoch(3), Offset(9), TWO),
    BeginQuorumEpochRequest(Epoch(4), BrokerId(2), ONE),
    EndQuorumEpochRequest(Epoch(4), BrokerId(2), (ONE,)),
    FETCH,
    VoteRequest(Epoch(4), KNOWN, Epoch(3), Offset(9), KNOWN),
    BeginQuorumEpochRequest(Epoch(4), BrokerId(2), KNOWN),
    EndQuorumEpochRequest(Epoch(4), BrokerId(2), (KNOWN, ONE)),
    QuorumFetchRequest(KNOWN, FETCH.fetch, Offset(5)),
]

ANSWERS: list[tuple[str, QuorumAnswer]] = [
    ("Vote", VoteResponse(Error.NONE, Epoch(4), BrokerId(2), is_granted=True)),
    ("BeginQuorumEpoch", BeginQuorumEpochResponse(Error.FENCED_LEADER_EPOCH, Epoch(4))),
    ("EndQuorumEpoch", EndQuorumEpochResponse(Error.NONE, Epoch(4), BrokerId(2))),
    ("Fetch", QuorumFetchResponse(Error.NOT_LEADER_OR_FOLLOWER, Epoch(4), BrokerId(2))),
    ("Fetch", QuorumFetchResponse(Error.NONE, Epoch(4), BrokerId(2), (), Offset(3), EpochEndOffset(Epoch(2), Offset(6)))),
    ("Fetch", QuorumFetchResponse(Error.NONE, Epoch(4), BrokerId(2), (), Offset(3))),
]


@pytest.mark.parametrize("kafka", [NEWEST, OLD])
def test_requests_and_answers_come_back_as_they_were(kafka: str) -> None:
    codec = Codec(jars_or_skip(kafka))
    for request in REQUESTS:
        sent = on_the_wire(codec, request)
        name = f"{sent.api}Request"
        read = codec.read(name, sent.version, codec.write(name, sent.version, sent.message))
        assert request_in_words_of_spec(sent.api, sent.version, read) == as_told(request, sent.version)
    for api, answer in ANSWERS:
        version = codec.versions(api).last
        written = codec.write(f"{api}Response", version, answer_on_the_wire(answer))
        assert answer_in_words_of_spec(api, codec.read(f"{api}Response", version, written)) == answer


def test_voters_of_the_configuration_have_no_directories() -> None:
    told = [by_ids(request) for request in REQUESTS]
    assert "directory=b'\\x07" in str(REQUESTS)
    assert "directory=b'\\x07" not in str(told)
    assert told[:4] == REQUESTS[:4]
    assert [type(request) for request in told] == [type(request) for request in REQUESTS]


def test_a_pre_vote_is_told_since_4_0_and_a_followers_high_watermark_later() -> None:
    codec = Codec(jars_or_skip(NEWEST))
    request = VoteRequest(Epoch(4), ONE, Epoch(4), Offset(9), TWO, is_pre_vote=True)
    sent = on_the_wire(codec, request)
    read = codec.read("VoteRequest", sent.version, codec.write("VoteRequest", sent.version, sent.message))
    assert request_in_words_of_spec("Vote", sent.version, read) == request
    with pytest.raises(AssertionError, match="knows no pre-vote"):
        on_the_wire(Codec(jars_or_skip(OLD)), request)
    assert as_told(FETCH, 18) == FETCH
    assert as_told(FETCH, 17) == QuorumFetchRequest(FETCH.replica, FETCH.fetch)
    assert request_in_words_of_spec("ControllerRegistration", 0, read) is None
