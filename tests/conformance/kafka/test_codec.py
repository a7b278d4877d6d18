"""Schemas from the jars of a release: every message of every version is written and read."""

import struct

import pytest

from kspec.conformance.kafka.codec import LEADER_CHANGE, Codec, batches_in
from kspec.impl.wire.schema import Schema
from kspec.impl.wire.values import DecodeError, Message
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip


@pytest.fixture(params=[NEWEST, OLD])
def codec(request: pytest.FixtureRequest) -> Codec:
    return Codec(jars_or_skip(request.param))


def schemas(codec: Codec) -> list[Schema]:
    requests = [codec.schema(f"{api}{kind}") for api in codec.apis for kind in ("Request", "Response")]
    return [*requests, codec.schema("PartitionRecord"), codec.schema("RegisterBrokerRecord")]


def test_every_message_of_every_version_is_written_and_read(codec: Codec) -> None:
    count = 0
    for schema in schemas(codec):
        for version in range(schema.versions.first, schema.versions.last + 1):
            read = codec.read(schema.name, version, codec.write(schema.name, version, Message()))
            again = codec.read(schema.name, version, codec.write(schema.name, version, read))
            assert again == read, (schema.name, version)
            count += 1
    assert count > 600


def test_a_request_comes_back_with_its_header(codec: Codec) -> None:
    version = codec.versions("BrokerHeartbeat").last
    message = Message(broker_id=1, broker_epoch=7, current_metadata_offset=12, want_fence=True)
    frame = codec.request("BrokerHeartbeat", version, 5, "me", message)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    request = codec.read_request(frame[4:])
    assert request[:4] == ("BrokerHeartbeat", version, 5, "me")
    assert (request.message.current_metadata_offset, request.message.want_fence) == (12, True)


def test_an_unknown_version_of_api_versions_is_read_without_fields(codec: Codec) -> None:
    request = codec.read_request(struct.pack(">hhih", 18, 99, 3, -1))
    assert (request.api, request.version, request.client_id) == ("ApiVersions", 99, None)
    with pytest.raises(DecodeError, match="has no Fetch version 99"):
        codec.read_request(struct.pack(">hhih", 1, 99, 3, -1))


def test_metadata_records_and_control_batches(codec: Codec) -> None:
    change = codec.metadata_record("PartitionChangeRecord", Message(topic_id=bytes(16), leader=2, isr=[1, 3]), 1)
    leader = codec.write("LeaderChangeMessage", 0, Message(leader_id=100))
    log = codec.control_batch(0, 1, 0, (LEADER_CHANGE, leader)) + codec.metadata_batch(1, 1, 0, [change, change])
    (one, two) = codec.metadata_in(log + b"cut off" * 3)
    assert (one.name, one.version, one.offset, two.offset) == ("PartitionChangeRecord", 1, 1, 2)
    assert (one.message.leader, one.message.isr, one.message.leader_recovery_state) == (2, [1, 3], -1)
    (first, _), (second, _) = batches_in(log)
    assert (first.control, second.control, second.next_offset) == (True, False, 3)
