"""Offsets that are committed in a transaction, as a broker keeps them in `__consumer_offsets`."""

from kspec.impl.records.batch import header_at
from kspec.impl.requests.group_log import batch_of
from kspec.spec.coordinator.effects import PersistRecords, PersistTransactionalOffsets
from kspec.spec.coordinator.records import OffsetCommitRecord, TransactionalCommit
from kspec.spec.values import GroupId, Offset, ProducerEpoch, ProducerId
from tests.times import at_ms

COMMIT = OffsetCommitRecord(GroupId("group"), "topic", 0, Offset(5))


def test_they_are_in_a_batch_of_the_producer_without_a_sequence_number() -> None:
    stored = PersistTransactionalOffsets(ProducerEpoch(3), (TransactionalCommit(ProducerId(7), COMMIT),))
    header = header_at(batch_of(stored, at_ms(1)))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert header.transactional
    assert not header.control
    plain = header_at(batch_of(PersistRecords((COMMIT,)), at_ms(1)))
    assert (plain.producer_id, plain.producer_epoch, plain.base_sequence, plain.transactional) == (-1, -1, -1, False)
