"""Offsets that are committed in a transaction: who may, and when they count."""

from typing import Any

import pytest

from kspec.spec.coordinator.effects import PersistTransactionalOffsets
from kspec.spec.coordinator.group import Group, GroupState, Member, absent, created
from kspec.spec.coordinator.loading import replay, replay_end_of_transaction
from kspec.spec.coordinator.modern.state import ClassicMetadata, ConsumerGroup, ConsumerGroupMember
from kspec.spec.coordinator.offsets import check_txn_commit, handle_txn_offset_commit
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.messages.groups.offset_commit import OffsetToCommit
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.values import (
    Error,
    Generation,
    GroupEpoch,
    GroupId,
    MemberId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TransactionalId,
)
from tests.times import at_ms

COORDINATOR = Coordinator(COORDINATOR_RELEASES[-1])
GROUP, PRODUCER, M = GroupId("g"), ProducerId(7), MemberId("m")
EMPTY = created(absent(GROUP), TimestampMs(0))


def request(**fields: Any) -> TxnOffsetCommitRequest:
    offsets = (OffsetToCommit("t", 0, Offset(5)),)
    asked = {"offsets": offsets, "transactional_id": TransactionalId("id"), "group_id": GROUP, "producer_id": PRODUCER}
    return TxnOffsetCommitRequest(**{**asked, "producer_epoch": ProducerEpoch(0), **fields})


def offsets_of(group: Group) -> list[int]:
    return [one.offset for one in group.offsets]


def test_they_count_when_the_transaction_is_committed() -> None:
    step = handle_txn_offset_commit(COORDINATOR, EMPTY, request(), at_ms(1))
    stored, answer = step.effects
    assert isinstance(stored, PersistTransactionalOffsets)
    assert [one.commit.offset for one in stored.commits] == [5]
    assert answer.message.partitions[0].error == Error.NONE  # type: ignore[union-attr]
    assert offsets_of(step.state) == []
    assert offsets_of(replay_end_of_transaction(step.state, PRODUCER, committed=True)) == [5]
    assert offsets_of(replay_end_of_transaction(step.state, PRODUCER, committed=False)) == []


def test_a_plain_commit_that_comes_later_stays() -> None:
    waiting = handle_txn_offset_commit(COORDINATOR, EMPTY, request(), at_ms(1)).state
    later = replay(waiting, OffsetCommitRecord(GROUP, "t", 0, Offset(3)))
    assert offsets_of(replay_end_of_transaction(later, PRODUCER, committed=True)) == [3]


def test_one_that_says_too_much_is_refused() -> None:
    long = (OffsetToCommit("t", 0, Offset(5), metadata="x" * 5000),)
    step = handle_txn_offset_commit(COORDINATOR, EMPTY, request(offsets=long), at_ms(1))
    assert step.state == EMPTY
    assert step.effects[0].message.partitions[0].error == Error.OFFSET_METADATA_TOO_LARGE  # type: ignore[union-attr]
    refused = handle_txn_offset_commit(COORDINATOR, absent(GROUP), request(generation=Generation(1)), at_ms(1))
    assert refused.effects[0].message.partitions[0].error == Error.ILLEGAL_GENERATION  # type: ignore[union-attr]


MEMBER = Member(M, None, "c", "h", 1, 1, "consumer", ())
CLASSIC = EMPTY._replace(state=GroupState.COMPLETING_REBALANCE, generation=Generation(2), members=(MEMBER,))


def consumers(**fields: Any) -> Group:
    member = ConsumerGroupMember(M, epoch=GroupEpoch(3), **fields)
    return EMPTY._replace(state=GroupState.STABLE, consumer=ConsumerGroup(members=(member,)))


@pytest.mark.parametrize(
    ("group", "fields", "error"),
    [
        (absent(GROUP), {}, Error.NONE),
        (absent(GROUP), {"generation": Generation(1), "reports_missing_group": True}, Error.GROUP_ID_NOT_FOUND),
        (EMPTY, {}, Error.NONE),
        (CLASSIC, {}, Error.NONE),
        (CLASSIC, {"generation": Generation(2), "member_id": M}, Error.NONE),
        (CLASSIC, {"generation": Generation(1), "member_id": M}, Error.ILLEGAL_GENERATION),
        (CLASSIC, {"generation": Generation(2), "member_id": MemberId("n")}, Error.UNKNOWN_MEMBER_ID),
        (consumers(), {"generation": Generation(3), "member_id": M}, Error.NONE),
        (consumers(), {"generation": Generation(2), "member_id": M}, Error.ILLEGAL_GENERATION),
        (
            consumers(),
            {"generation": Generation(2), "member_id": M, "reports_missing_group": True},
            Error.STALE_MEMBER_EPOCH,
        ),
        (
            consumers(classic=ClassicMetadata(1, ())),
            {"generation": Generation(2), "member_id": M, "reports_missing_group": True},
            Error.ILLEGAL_GENERATION,
        ),
        (consumers(), {"member_id": MemberId("n")}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit(group: Group, fields: dict[str, Any], error: Error) -> None:
    assert check_txn_commit(COORDINATOR, group, request(**fields)) == error
