"""`__consumer_offsets` in bytes, held against what Apache Kafka 4.4.0 wrote (`tests/data/consumer-offsets.json`)."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.impl.coordinator.fields import UnreadableRecordError
from kspec.impl.coordinator.records import decode, encode
from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.records import (
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from kspec.spec.coordinator.rules.subscription import subscribed_topics
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.values import NO_EPOCH, NO_TOPIC_ID, Epoch, Generation, GroupId, MemberId, Offset, TimestampMs, TopicId
from tests.places import REPOSITORY
from tests.spec.coordinator_driver import CoordinatorDriver, at

RECORDED: dict[str, Any] = json.loads((REPOSITORY / "tests/data/consumer-offsets.json").read_text(encoding="utf-8"))
LOG = [(bytes.fromhex(key), None if value is None else bytes.fromhex(value)) for key, value in RECORDED["log"]]
VERSIONS: dict[str, Any] = RECORDED["versions"]
G = GroupId("g")
OFFSET_KEY, GROUP_KEY = encode(OffsetTombstone(G, "t", 3))[0], encode(GroupTombstone(G))[0]


@pytest.mark.parametrize(("key", "value"), LOG)
def test_what_kafka_wrote_is_read_and_written_alike(key: bytes, value: bytes | None) -> None:
    record = decode(key, value)
    assert record is not None
    assert encode(record) == (key, value)


def test_what_kafka_wrote_is_what_its_clients_did() -> None:
    records = [record for record in (decode(key, value) for key, value in LOG) if record is not None]
    commits = [record for record in records if isinstance(record, OffsetCommitRecord)]
    assert [(one.group_id, one.topic, one.partition, one.offset, one.leader_epoch, one.metadata) for one in commits] == [
        ("simple", "topic", 0, 5, 3, "seen"),
        ("members", "topic", 1, 7, -1, ""),
    ]
    assert all(one.topic_id != NO_TOPIC_ID and one.expires_at_ms is None for one in commits)
    assert records[-2:] == [OffsetTombstone(GroupId("simple"), "topic", 0), GroupTombstone(GroupId("simple"))]


def test_the_groups_that_kafka_left_are_loaded() -> None:
    members, static = load(record for record in (decode(key, value) for key, value in LOG) if record is not None)
    assert (members.group_id, members.state, members.generation, len(members.offsets)) == ("members", GroupState.EMPTY, 2, 1)
    assert (static.state, static.generation, static.protocol_name) == (GroupState.STABLE, 1, "range")
    (member,) = static.members
    assert (member.instance_id, member.client_id, member.session_timeout_ms) == ("one", "static", 45_000)
    assert static.leader == member.member_id
    assert static.subscribed == subscribed_topics(member.protocols[0].metadata) == frozenset({"topic"})


def anonymous(record: GroupRecord) -> GroupRecord:
    """The record without what differs from run to run: the times, the ids of group, members and topic."""
    match record:
        case GroupMetadataRecord():
            members = tuple(replace(member, member_id=MemberId("?")) for member in record.members)
            leader = None if record.leader is None else MemberId("?")
            return replace(record, group_id=G, leader=leader, state_since_ms=None, members=members)
        case OffsetCommitRecord():
            return replace(record, group_id=G, committed_at_ms=TimestampMs(0), topic_id=NO_TOPIC_ID)
    return record


def test_the_coordinator_stores_what_kafka_stored() -> None:
    """The dynamic member's run again: it joins with its id, gets all partitions, commits and leaves."""
    records = [record for record in (decode(key, value) for key, value in LOG) if record is not None]
    stored = [anonymous(record) for record in records if record.group_id == "members"]
    generation = stored[1]
    assert isinstance(generation, GroupMetadataRecord)
    member = generation.members[0]
    driver = CoordinatorDriver(initial_rebalance_delay_ms=0)
    known: dict[str, Any] = {
        "protocols": (GroupProtocol("range", member.subscription), GroupProtocol("cooperative-sticky", b"")),
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
    }
    driver.join(requires_member_id=True, **known)
    driver.join("m1", requires_member_id=True, **known)
    driver.pass_time(0)
    driver.sync("m1", {"m1": member.assignment})
    driver.commit(at("topic", 1, 7), member_id="m1", generation=1)
    driver.leave("m1")
    assert [anonymous(record) for record in driver.log] == stored


@pytest.mark.parametrize("version", range(5))
def test_an_offset_in_any_version(version: int) -> None:
    epoch = Epoch(3) if version >= 3 else NO_EPOCH
    topic_id = TopicId((1).to_bytes(8, "big") + (2).to_bytes(8, "big")) if version == 4 else NO_TOPIC_ID
    expected = OffsetCommitRecord(
        G, "t", 3, Offset(5), epoch, "ü", TimestampMs(1000), TimestampMs(2000) if version == 1 else None, topic_id
    )
    value = bytes.fromhex(VERSIONS["offset"][version])
    assert decode(OFFSET_KEY, value) == expected
    if version in (1, 4):
        assert encode(expected) == (OFFSET_KEY, value)


@pytest.mark.parametrize("version", range(5))
def test_a_group_in_any_version(version: int) -> None:
    instance_id = "i" if version >= 3 else None
    member = MemberRecord(MemberId("m"), instance_id, "c", "h", 11 if version else -1, 12, b"\1\2", b"\3")
    since = TimestampMs(9) if version >= 2 else None
    expected = GroupMetadataRecord(G, "consumer", Generation(7), "range", MemberId("m"), since, (member,))
    value = bytes.fromhex(VERSIONS["group"][version])
    assert decode(GROUP_KEY, value) == expected
    if version == 3:
        assert encode(expected) == (GROUP_KEY, value)


def test_an_old_members_rebalance_time_out_is_its_session() -> None:
    record = decode(GROUP_KEY, bytes.fromhex(VERSIONS["group"][0]))
    assert record is not None
    (group,) = load([record])
    assert (group.members[0].rebalance_timeout_ms, group.state_since_ms) == (12, None)


def test_an_old_key() -> None:
    record = decode(bytes.fromhex(VERSIONS["legacy_key"]), bytes.fromhex(VERSIONS["legacy_offset"]))
    assert record == OffsetCommitRecord(G, "t", 3, Offset(5), NO_EPOCH, "ü", TimestampMs(1000))


def test_groups_of_other_protocols_are_passed_over() -> None:
    assert decode(b"\0\x0b" + bytes.fromhex(VERSIONS["consumer_group_key"])[2:], b"") is None


GROUP_3 = bytes.fromhex(VERSIONS["group"][3])
OFFSET_4 = bytes.fromhex(VERSIONS["offset"][4])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((GROUP_KEY, GROUP_3[:cut]) for cut in range(len(GROUP_3))),
        *((OFFSET_KEY, OFFSET_4[:cut]) for cut in range(len(OFFSET_4))),
        *((OFFSET_KEY[:cut], OFFSET_4) for cut in range(len(OFFSET_KEY))),
        (GROUP_KEY, b"\0\5" + GROUP_3[2:]),
        (GROUP_KEY, b"\xff\xff" + GROUP_3[2:]),
        (GROUP_KEY, b"\0\3\xff\xff" + GROUP_3[4:]),
        (GROUP_KEY, GROUP_3[:-5] + b"\xff\xff\xff\xff"),
    ],
)
def test_other_bytes_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        decode(key, value)


def test_a_length_of_several_bytes() -> None:
    record = OffsetCommitRecord(G, "t", 3, Offset(5), NO_EPOCH, "x" * 20_000, TimestampMs(1000))
    assert decode(*encode(record)) == record


names = st.text(max_size=8)
times = st.integers(0, 2**62)
members = st.builds(
    MemberRecord,
    names.map(MemberId),
    st.none() | names,
    names,
    names,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
groups = st.builds(
    GroupMetadataRecord,
    names.map(GroupId),
    names,
    st.integers(0, 2**31 - 1).map(Generation),
    st.none() | names,
    st.none() | names.map(MemberId),
    st.none() | times,
    st.lists(members, max_size=3).map(tuple),
)
offsets = st.builds(
    OffsetCommitRecord,
    names.map(GroupId),
    names,
    st.integers(0, 2**31 - 1),
    times.map(Offset),
    st.integers(-1, 2**31 - 1).map(Epoch),
    st.text(max_size=200),
    times,
    st.none(),
    st.binary(min_size=16, max_size=16).map(TopicId),
)


@given(groups | offsets)
def test_every_record_is_read_as_it_was_written(record: GroupRecord) -> None:
    assert decode(*encode(record)) == record
