"""Records of voters, as bytes and back; those of Apache Kafka 4.4.0 among them."""

from base64 import b64decode

import pytest

from kspec.impl.controller.quorum.messages import answer_taken, as_sent, only_partition
from kspec.impl.metadata.bootstrap import InitialVotersError, voters_in_text
from kspec.impl.metadata.files import batches_of, replay_into
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.snapshots import CONTROL, to_bytes, version_of_snapshot, voters_of_snapshot
from kspec.impl.metadata.voters import Endpoint, version_in_batch, version_record, voters_in, voters_record
from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch
from kspec.impl.storage import StorageError
from kspec.impl.wire.quorum import begin_asked, by_ids, end_asked, vote_asked
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.messages.quorum.fetch import QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import BrokerId, DirectoryId, Epoch, Offset, ReplicaKey, TimestampMs

OF_KAFKA = b64decode(
    "AAAAAAAAAAAAAACaAAAAAALROGKfACAAAAACAAABoiJe15oAAAGiIl7Xmv//////////////////AAAAAyoAAAAIAAAAAxYAAAAA"
    "AaIiXtdZAAAeAAACCAAAAAUKAAAAAQAAggEAAAQIAAAABm4AAAIAAABlAAAAAAAAAAAAAAAAAAABkQILQ09OVFJPTExFUgoxMjcu"
    "MC4wLjFKnQAAAAABAAAAAA=="
)
"""The first batch of a snapshot, by `kafka-storage format --initial-controllers`."""

ONE = ReplicaKey(BrokerId(101), DirectoryId((401).to_bytes(16, "big")))
TWO = ReplicaKey(BrokerId(102), DirectoryId(b"d" * 16))
VOTERS = {
    ONE: (Endpoint("CONTROLLER", "127.0.0.1", 19101),),
    TWO: (Endpoint("CONTROLLER", "h", 9), Endpoint("OTHER", "::1", 65535)),
}


def test_kafkas_voters_are_read() -> None:
    (found,) = voters_in(memoryview(OF_KAFKA))
    assert (found.offset, found.voters) == (2, {ONE: VOTERS[ONE]})


def test_voters_are_written_as_kafka_does() -> None:
    assert voters_record({ONE: VOTERS[ONE]})[1] in OF_KAFKA
    batch = new_batch([(5, *voters_record(VOTERS))], base_offset=7, attributes=CONTROL)
    (found,) = voters_in(memoryview(batch))
    assert (found.offset, found.voters) == (7, VOTERS)


def test_a_snapshot_has_the_voters() -> None:
    content = to_bytes([], Epoch(3), TimestampMs(5), VOTERS)
    assert voters_of_snapshot(content, "a file") == VOTERS
    assert voters_of_snapshot(to_bytes([], Epoch(3), TimestampMs(5)), "a file") == {}
    with pytest.raises(StorageError, match="a file is damaged"):
        voters_of_snapshot(content[:100] + bytes(60), "a file")


@pytest.mark.parametrize(
    "text", ["", "1@h:9", "x@h:9:AAAAAAAAAAAAAAAAAAABkQ", "1@h:99999:AAAAAAAAAAAAAAAAAAABkQ", "1@h:9:short"]
)
def test_a_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InitialVotersError):
        voters_in_text(text, "CONTROLLER")


def test_a_list_names_each_once() -> None:
    one = "101@[::1]:9:AAAAAAAAAAAAAAAAAAABkQ"
    assert voters_in_text(one, "CONTROLLER") == {ONE: (Endpoint("CONTROLLER", "::1", 9),)}
    with pytest.raises(InitialVotersError, match="listed twice"):
        voters_in_text(f"{one},{one}", "CONTROLLER")


@pytest.mark.parametrize(
    "request_",
    [
        VoteRequest(Epoch(3), ONE, Epoch(2), Offset(7), TWO, True),
        BeginQuorumEpochRequest(Epoch(3), ONE.id, TWO),
        EndQuorumEpochRequest(Epoch(3), ONE.id, (TWO, ONE)),
    ],
)
def test_a_request_names_replicas_with_their_directories(request_: QuorumRequest) -> None:
    asked = as_sent(request_, "c", VOTERS[TWO])
    part = only_partition(asked.message)
    assert part is not None
    if asked.api == "Vote":
        assert vote_asked(asked.message, part, 2) == request_
    elif asked.api == "BeginQuorumEpoch":
        assert begin_asked(asked.message, part, 1) == request_
    else:
        assert end_asked(asked.message, part, 1) == request_
    assert str(TWO.directory) not in str(by_ids(request_))


def test_the_voters_among_fetched_records_are_found() -> None:
    batch = new_batch([(5, *voters_record(VOTERS))], base_offset=7, leader_epoch=2, attributes=CONTROL)
    leader = Message(leader_id=1, leader_epoch=2)
    told = {"error_code": 0, "current_leader": leader, "high_watermark": 7, "diverging_epoch": None, "snapshot_id": None}
    part = Message(records=batch, **told)
    answer = answer_taken("Fetch", Message(error_code=0, responses=[Message(partitions=[part])]), Offset(7))
    assert isinstance(answer, QuorumFetchResponse)
    assert answer.voter_sets == (VoterSetEntry(Offset(7), frozenset(VOTERS)),)
    cut_off = new_batch([(5, voters_record(VOTERS)[0], b"\0\0\x09")], base_offset=7, leader_epoch=2, attributes=CONTROL)
    part = Message(records=cut_off, **told)
    assert answer_taken("Fetch", Message(error_code=0, responses=[Message(partitions=[part])]), Offset(7)) is None


def test_a_snapshot_of_a_broker_has_the_version_and_no_voters() -> None:
    for version in (0, 1):
        content = to_bytes([], Epoch(3), TimestampMs(7), None, version)
        assert version_of_snapshot(content) == version
        assert voters_of_snapshot(content, "a snapshot") == {}
    assert version_of_snapshot(to_bytes([], Epoch(3), TimestampMs(7), VOTERS)) == 1


def test_the_version_of_a_control_batch() -> None:
    told = new_batch([(7, *version_record()), (7, *voters_record(VOTERS))], attributes=CONTROL)
    other = new_batch([(7, *voters_record(VOTERS))], attributes=CONTROL)
    assert [version_in_batch(memoryview(one), next(iter(headers(memoryview(one))))) for one in (told, other)] == [1, None]
    (batch,) = batches_of(memoryview(told))
    image = ClusterImage()
    replay_into(image, [batch])
    assert (image.kraft_version, image.spec.end_offset) == (1, 2)
