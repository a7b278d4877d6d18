"""The records of consumer groups in bytes; what Kafka 4.4.0 writes is in `tests/data/consumer-group-records.json`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.impl.coordinator.fields import UnreadableRecordError
from kspec.impl.coordinator.records import decode, encode
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    RegularExpressionRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import AssignedPartition, ClassicMetadata, MemberState
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import GroupEpoch, GroupId, MemberId, TimestampMs, TopicId
from tests.places import REPOSITORY

RECORDED: dict[str, Any] = json.loads((REPOSITORY / "tests/data/consumer-group-records.json").read_text(encoding="utf-8"))
LOG = [(bytes.fromhex(key), None if value is None else bytes.fromhex(value)) for key, value in RECORDED["log"]]

G = st.sampled_from([GroupId("g"), GroupId("ü")])
M = st.text(max_size=5).map(MemberId)
EPOCHS = st.integers(-2, 2**31 - 1).map(GroupEpoch)
TIMES = st.integers(0, 2**62).map(TimestampMs)
TEXTS = st.text(max_size=5)
PLACES = st.builds(TopicIdPartition, st.binary(min_size=16, max_size=16).map(TopicId), st.integers(0, 5))
HELD = st.lists(st.builds(AssignedPartition, PLACES, EPOCHS), max_size=5, unique_by=lambda one: one.place).map(
    lambda some: tuple(sorted(some))
)
CLASSIC = st.none() | st.builds(
    ClassicMetadata, st.integers(0, 9), st.lists(st.builds(GroupProtocol, TEXTS, st.binary(max_size=4))).map(tuple)
)
NAMED = (
    ConsumerRecordKind.MEMBER,
    ConsumerRecordKind.TARGET,
    ConsumerRecordKind.CURRENT,
    ConsumerRecordKind.REGULAR_EXPRESSION,
)
RECORDS: st.SearchStrategy[ConsumerRecord] = st.one_of(
    st.builds(ConsumerGroupEpochRecord, G, EPOCHS, st.integers(-(2**63), 2**63 - 1)),
    st.builds(
        ConsumerGroupMemberRecord,
        G,
        M,
        st.none() | TEXTS,
        st.none() | TEXTS,
        TEXTS,
        TEXTS,
        st.frozensets(TEXTS, max_size=3),
        st.none() | TEXTS,
        EPOCHS,
        st.none() | TEXTS,
        CLASSIC,
    ),
    st.builds(TargetEpochRecord, G, EPOCHS, TIMES),
    st.builds(TargetRecord, G, M, st.frozensets(PLACES, max_size=5)),
    st.builds(CurrentAssignmentRecord, G, M, EPOCHS, EPOCHS, st.sampled_from(MemberState), HELD, HELD),
    st.builds(RegularExpressionRecord, G, TEXTS, st.frozensets(TEXTS, max_size=3), st.integers(0, 99), TIMES),
    st.builds(ConsumerTombstone, G, st.sampled_from(NAMED), TEXTS),
    st.builds(
        ConsumerTombstone,
        G,
        st.sampled_from([kind for kind in ConsumerRecordKind if kind not in NAMED]),
    ),
)


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: ConsumerRecord) -> None:
    assert decode(*encode(record)) == record


@given(RECORDS, st.data())
def test_a_value_that_is_cut_is_none(record: ConsumerRecord, data: st.DataObject) -> None:
    key, value = encode(record)
    if value is not None:
        cut = data.draw(st.integers(0, len(value) - 1))
        with pytest.raises(UnreadableRecordError):
            decode(key, value[:cut])


@pytest.mark.parametrize(("key", "value"), LOG)
def test_what_kafka_wrote_is_read_and_written_alike(key: bytes, value: bytes | None) -> None:
    record = decode(key, value)
    assert record is not None
    assert encode(record) == (key, value)


def test_kafka_wrote_every_kind() -> None:
    kinds = {int.from_bytes(key[:2], "big") for key, value in LOG if value is not None}
    assert kinds >= {kind.value for kind in ConsumerRecordKind if kind != ConsumerRecordKind.PARTITION_METADATA}


def test_what_4_0_wrote_about_topics_is_passed_over() -> None:
    key, _ = encode(ConsumerTombstone(GroupId("g"), ConsumerRecordKind.PARTITION_METADATA))
    assert decode(key, b"\0\0\1\0") is None


def test_a_state_that_is_not_known_is_told_so() -> None:
    record = CurrentAssignmentRecord(GroupId("g"), MemberId("m"), GroupEpoch(1), GroupEpoch(0), MemberState.STABLE, (), ())
    key, value = encode(record)
    assert value is not None
    found = decode(key, value[:10] + b"\x09" + value[11:])
    assert isinstance(found, CurrentAssignmentRecord)
    assert found.state == MemberState.UNKNOWN


def test_partitions_without_epochs_are_of_the_members() -> None:
    """Up to 4.2 no assignment epochs were written."""
    place = AssignedPartition(TopicIdPartition(TopicId(bytes(16)), 2), GroupEpoch(7))
    record = CurrentAssignmentRecord(
        GroupId("g"), MemberId("m"), GroupEpoch(7), GroupEpoch(6), MemberState.STABLE, (place,), ()
    )
    key, value = encode(record)
    assert value is not None
    without = value[:-10] + b"\0" + value[-2:]
    assert decode(key, without) == record
    with pytest.raises(UnreadableRecordError, match="0 epochs of 1 partitions"):
        decode(key, value[:-10] + b"\1\0\1\1" + value[-2:])


@pytest.mark.parametrize("version", [1, -1])
def test_other_versions_are_not_known(version: int) -> None:
    key, value = encode(ConsumerGroupEpochRecord(GroupId("g"), GroupEpoch(1)))
    assert value is not None
    with pytest.raises(UnreadableRecordError, match=f"version {version} of a value"):
        decode(key, version.to_bytes(2, "big", signed=True) + value[2:])
