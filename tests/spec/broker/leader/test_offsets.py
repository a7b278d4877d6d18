"""The end of an epoch, the start and the end of the log (rules R)."""

from dataclasses import replace

import pytest

from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.partition import Partition
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kspec.spec.releases.broker import BROKER_0_10, BROKER_2_0, BROKER_4_0
from kspec.spec.transactions.log.partition import OpenTransaction, PartitionTransactions
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, Error, Offset, ProducerId
from tests.spec.broker_driver import EPOCH, NOW, broker, follower, leader, log_of, reply

# ---- questions: R4, R5, R7


def open_at(offset: int) -> PartitionTransactions:
    """A log in which a transaction is open from this offset on."""
    return PartitionTransactions(ongoing=(OpenTransaction(Offset(offset), ProducerId(1)),))


def test_where_an_epoch_ends() -> None:
    partition = leader(log_of(2, 4, 5))

    def ask(epoch: int, claimed: int = EPOCH) -> object:
        return reply(
            handle_offset_for_leader_epoch(
                broker(), partition, OffsetForLeaderEpochRequest(Epoch(claimed), Epoch(epoch)), NOW
            )
        )

    assert ask(3) == (Error.NONE, (2, 1))
    assert ask(5) == (Error.NONE, (5, 3))
    assert ask(5, 4) == (Error.FENCED_LEADER_EPOCH, UNDEFINED_EPOCH_END)
    asked = OffsetForLeaderEpochRequest(NO_EPOCH, Epoch(2))
    assert (
        reply(handle_offset_for_leader_epoch(broker(), follower(log_of(2)), asked, NOW)).error
        == Error.NOT_LEADER_OR_FOLLOWER
    )
    assert (
        reply(handle_offset_for_leader_epoch(broker(), follower(log_of(2)), asked._replace(leader_only=False), NOW)).error
        == Error.NONE
    )


@pytest.mark.parametrize(
    ("name", "epoch", "end"),
    [
        ("0.11", 2, (-1, 1)),
        ("0.11", 1, (-1, -1)),
        ("2.0", 3, (2, 1)),
        ("2.0", 1, (-1, -1)),
        ("2.0", 5, (5, 3)),
        ("2.1", 1, (1, 0)),
    ],
)
def test_what_a_release_knows_of_an_epochs_end(name: str, epoch: int, end: tuple[int, int]) -> None:
    lookups = {each.name: each.epoch_lookup for each in (replace(BROKER_0_10, name="0.11"), BROKER_2_0)}
    lookup = lookups.get(name, BROKER_4_0.epoch_lookup)
    assert lookup(log_of(2, 4, 5), Epoch(epoch)) == end


def listed(
    partition: Partition[RecordLog], wanted: OffsetSpec, isolation: Isolation, found: ListOffsetsResponse = NOT_FOUND
) -> ListOffsetsResponse:
    step = handle_list_offsets(broker(), partition, ListOffsetsRequest(wanted, EPOCH, isolation), NOW, found)
    answer = reply(step)
    assert isinstance(answer, ListOffsetsResponse)
    return answer


def test_the_latest_offset_by_who_asks() -> None:
    partition = leader(log_of(4, 5, 5, 5), 3, transactions=open_at(2))
    offsets = [listed(partition, OffsetSpec.LATEST, isolation).offset for isolation in Isolation]
    assert offsets == [4, 3, 2]
    assert listed(partition, OffsetSpec.LATEST, Isolation.LOG_END).leader_epoch == EPOCH
    assert listed(partition, OffsetSpec.EARLIEST, Isolation.HIGH_WATERMARK) == (Error.NONE, 0, 4)


def test_the_start_of_a_log_without_records_is_in_the_epoch_that_was_opened_there() -> None:
    """As Apache Kafka 4.4.0 and 3.9.2 answer: a new partition, and one whose records were all deleted."""
    opened = RecordLog().open_epoch(EPOCH)
    assert listed(leader(opened), OffsetSpec.EARLIEST, Isolation.HIGH_WATERMARK) == (Error.NONE, 0, EPOCH)
    emptied = log_of(4, 4).start_at(Offset(2))
    assert listed(leader(emptied, 2), OffsetSpec.EARLIEST, Isolation.HIGH_WATERMARK) == (Error.NONE, 2, 4)
    assert listed(leader(RecordLog()), OffsetSpec.EARLIEST, Isolation.HIGH_WATERMARK) == (Error.NONE, 0, NO_EPOCH)


def test_a_new_leader_does_not_show_clients_an_offset_that_goes_back() -> None:
    partition = leader(log_of(4, 4, 5), 1, epoch_start=2)
    client, replica = Isolation.HIGH_WATERMARK, Isolation.LOG_END
    assert listed(partition, OffsetSpec.LATEST, client).error == Error.OFFSET_NOT_AVAILABLE
    assert listed(partition, OffsetSpec.LATEST, replica) == (Error.NONE, 3, EPOCH)
    assert listed(partition, OffsetSpec.EARLIEST, client).error == Error.NONE
    seen, beyond = (ListOffsetsResponse(Error.NONE, Offset(offset), Epoch(4)) for offset in (0, 1))
    assert listed(partition, OffsetSpec.BY_TIMESTAMP, client, seen) == seen
    assert listed(partition, OffsetSpec.BY_TIMESTAMP, client, beyond).error == Error.OFFSET_NOT_AVAILABLE
    assert listed(partition._replace(epoch_start=Offset(1)), OffsetSpec.BY_TIMESTAMP, client, beyond) == NOT_FOUND


def test_up_to_2_1_it_does() -> None:
    partition = leader(log_of(4, 4, 5), 1, epoch_start=2)
    request = ListOffsetsRequest(OffsetSpec.LATEST, EPOCH, Isolation.HIGH_WATERMARK)
    assert reply(handle_list_offsets(broker(BROKER_2_0), partition, request, NOW)).offset == 1


def test_a_question_of_another_epoch_is_refused() -> None:
    request = ListOffsetsRequest(OffsetSpec.LATEST, Epoch(4))
    assert reply(handle_list_offsets(broker(), leader(log_of(5)), request, NOW)) == ListOffsetsResponse(
        Error.FENCED_LEADER_EPOCH
    )
