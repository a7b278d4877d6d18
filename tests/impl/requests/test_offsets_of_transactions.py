"""Offsets that are committed in a transaction, as a broker keeps them in `__consumer_offsets`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kspec.impl.records.batch import header_at
from kspec.impl.requests.group_log import batch_of
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.effects import PersistRecords, PersistTransactionalOffsets
from kspec.spec.coordinator.records import OffsetCommitRecord, TransactionalCommit
from kspec.spec.values import Error, GroupId, Offset, ProducerEpoch, ProducerId
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.requests.transaction_client import TransactionClient
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


# ---- on a broker, field by field

GROUP, TOPIC = "group", "t"


class OffsetsBroker(NamedTuple):
    """A broker with a topic, and a client."""

    broker: BrokerProcess
    client: BrokerClient

    def producer(self, name: str) -> TransactionClient:
        made = TransactionClient(self.client, name)
        made.init_when_possible()
        return made

    def commit(self, producer: TransactionClient, offset: int, version: int = 5, **fields: Any) -> Error:
        """Send a TxnOffsetCommit; one that adds the partition of the group itself waits for the transaction before."""
        part = Message(partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
        named = {"topic_id": self.topic_id()} if version >= 6 else {"name": TOPIC}
        given = {
            "transactional_id": producer.name,
            "group_id": GROUP,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [Message(**named, partitions=[part])],
        }
        answer = self.client.call("TxnOffsetCommit", version, **{**given, **fields})
        return Error(answer.topics[0].partitions[0].error_code)

    def topic_id(self) -> bytes:
        answer = self.client.call("Metadata", 12, topics=[Message(name=TOPIC)])
        return bytes(answer.topics[0].topic_id)

    def fetched(self, stable: bool = True, group: str = GROUP) -> tuple[Error, int]:
        """The committed offset, or the error of its partition."""
        wanted = Message(group_id=group, topics=[Message(name=TOPIC, partition_indexes=[0])])
        answer = self.client.call("OffsetFetch", 8, groups=[wanted], require_stable=stable)
        one = answer.groups[0].topics[0].partitions[0]
        return Error(one.error_code), one.committed_offset


def ended(producer: TransactionClient) -> bool:
    return producer.state() in ("CompleteCommit", "CompleteAbort")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[OffsetsBroker]:
    overrides = ("offsets.topic.num.partitions=2",)
    with BrokerProcess(tmp_path / "broker", overrides=overrides) as broker, BrokerClient(broker.port) as client:
        client.create(TOPIC, 1)
        TransactionClient(client, "first").find()
        wait_until(lambda: client.call("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP]).coordinators[0].port > 0)
        offsets = OffsetsBroker(broker, client)
        wait_until(lambda: offsets.fetched(stable=False)[0] == Error.NONE)
        yield offsets


def test_a_commit_counts_when_its_transaction_ends(served: OffsetsBroker) -> None:
    producer = served.producer("p")
    for committed, before, after in ((True, -1, 5), (False, 5, 5)):
        assert served.commit(producer, 5 if committed else 9) == Error.NONE
        assert served.fetched() == (Error.UNSTABLE_OFFSET_COMMIT, -1)
        assert served.fetched(stable=False) == (Error.NONE, before)
        assert producer.end(committed) == Error.NONE
        wait_until(lambda: ended(producer))
        assert served.fetched() == served.fetched(stable=False) == (Error.NONE, after)


def test_before_version_2_the_offsets_are_added_first(served: OffsetsBroker) -> None:
    producer = served.producer("p")
    assert served.commit(producer, 5, version=4) == Error.TRANSACTION_ABORTABLE
    assert served.commit(producer, 5, version=3) == Error.INVALID_TXN_STATE
    assert producer.add_offsets(GROUP) == Error.NONE
    assert served.commit(producer, 5, version=3) == Error.NONE
    assert producer.end(True, version=4) == Error.NONE
    wait_until(lambda: served.fetched() == (Error.NONE, 5))


def test_who_is_fenced_or_no_member_commits_nothing(served: OffsetsBroker) -> None:
    old = served.producer("p")
    served.producer("p")
    assert served.commit(old, 5) == Error.INVALID_PRODUCER_EPOCH
    other = served.producer("other")
    assert served.commit(other, 5, generation_id_or_member_epoch=3, member_id="m") == Error.ILLEGAL_GENERATION
    assert served.commit(other, 5, version=6, generation_id_or_member_epoch=3, member_id="m") == Error.GROUP_ID_NOT_FOUND
    assert served.commit(other, 5, group_id="") == Error.INVALID_GROUP_ID
    unknown = [Message(name="unknown", partitions=[Message(partition_index=0, committed_offset=1, committed_metadata="")])]
    assert served.commit(other, 5, topics=unknown) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert served.fetched() == (Error.NONE, -1)


def test_what_is_open_is_open_after_a_restart(served: OffsetsBroker) -> None:
    producer = served.producer("p")
    assert served.commit(producer, 5, version=6) == Error.NONE
    served.broker.kill()
    served.broker.start()
    with BrokerClient(served.broker.port) as client:
        again = OffsetsBroker(served.broker, client)
        producer.client = client
        wait_until(lambda: again.fetched() == (Error.UNSTABLE_OFFSET_COMMIT, -1))
        wait_until(lambda: producer.end(True) == Error.NONE)
        wait_until(lambda: again.fetched() == (Error.NONE, 5))
