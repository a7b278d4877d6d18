"""Observations of a cluster, and the faults in them."""

from pathlib import Path

import pytest

from kspec.conformance.story.rendering import WIDTH, table
from kspec.conformance.story.snapshots import AckedRecord, ClusterSnapshot, ReplicaSnapshot, replica_in, wrongs
from kspec.impl.records.record import new_batch
from kspec.spec.values import Epoch, Record


def log(*records: tuple[int, int]) -> tuple[Record, ...]:
    return tuple(Record(value, Epoch(epoch)) for value, epoch in records)


ONE, OTHER = log((1, 0)), log((2, 1))


def seen(leader: int, isr: set[int], *replicas: ReplicaSnapshot, told: tuple[AckedRecord, ...] = ()) -> ClusterSnapshot:
    return ClusterSnapshot(leader, 1, frozenset(isr), dict(enumerate(replicas, start=1)), frozenset(told))


def test_nothing_is_wrong_where_all_logs_agree() -> None:
    assert wrongs(seen(1, {1, 2}, ReplicaSnapshot(ONE, 1), ReplicaSnapshot(ONE, 0), told=(AckedRecord(0, 1),))) == {}


def test_a_record_that_only_a_former_member_lacks_is_not_lost() -> None:
    assert wrongs(seen(1, {1}, ReplicaSnapshot(ONE, 1), ReplicaSnapshot((), 0), told=(AckedRecord(0, 1),))) == {}


def test_an_acknowledged_record_that_the_leader_lacks() -> None:
    found = wrongs(seen(2, {2}, ReplicaSnapshot(ONE, 0), ReplicaSnapshot(OTHER, 0), told=(AckedRecord(0, 1),)))
    assert found["AcknowledgedOnLeader"] == "m1 was acknowledged at offset 0, and leader 2 does not have it"
    assert "AcknowledgedOnNextLeader" in found


def test_a_committed_record_that_a_member_of_the_isr_lacks() -> None:
    found = wrongs(seen(1, {1, 2}, ReplicaSnapshot(ONE, 1), ReplicaSnapshot((), 0)))
    assert list(found) == ["CommittedOnNextLeader"]


def test_an_eligible_replica_may_lead_as_a_member_of_the_isr_may() -> None:
    one = seen(1, {1}, ReplicaSnapshot(ONE, 1), ReplicaSnapshot((), 0))
    assert wrongs(one) == {}
    assert list(wrongs(one._replace(eligible=frozenset({2})))) == ["CommittedOnNextLeader"]


@pytest.mark.parametrize(("high_watermark", "differ"), [(1, True), (0, False)])
def test_logs_that_differ_are_wrong_below_both_high_watermarks(high_watermark: int, differ: bool) -> None:
    found = wrongs(seen(1, {1}, ReplicaSnapshot(ONE, 1), ReplicaSnapshot(OTHER, high_watermark)))
    assert ("LogMatching" in found) == differ


def test_a_replica_is_read_from_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "story-0"
    folder.mkdir()
    whole = new_batch([(0, None, b"m7")], leader_epoch=3)
    (folder / "00000000000000000000.log").write_bytes(whole + whole[:20])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\nother 0 4\nstory 0 1\n", encoding="utf-8")
    assert replica_in(tmp_path, "story") == ReplicaSnapshot(log((7, 3)), 1)


def test_no_line_of_the_table_is_too_long() -> None:
    long = log(*((number, 1) for number in range(1, 40)))
    told = tuple(AckedRecord(number, number + 1) for number in range(3))
    lines = table(seen(1, {1, 2}, ReplicaSnapshot(long, 39), ReplicaSnapshot((), 0), told=told))
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].startswith("      1*      m1(1) m2(1)")
