"""A leader and its transactions: verification, batches, markers, and what is stable."""

import pytest

from kspec.spec.broker.effects import AnswerProducer, VerificationAnswer
from kspec.spec.broker.follower import fetch_or_truncate, handle_fetch_response
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.leader.verification import adds_partitions, asks_again, begin_verification, is_asked, knows_abortable
from kspec.spec.broker.partition import Broker, BrokerSettings, Partition, last_stable_offset_of
from kspec.spec.broker.roles import become_follower
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.log.batch import Batch, EndMarker
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ProduceRequest
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.releases.broker import BROKER_4_4
from kspec.spec.step import Reply
from kspec.spec.transactions.log.partition import NO_GUARD
from kspec.spec.values import NO_PRODUCER_ID, Epoch, Error, MonotonicMs, Offset, PartitionEpoch, ProducerEpoch, ProducerId
from tests.spec.broker_driver import EPOCH, NOW, OTHER, SELF, broker, follower, leader, log_of

ONE, TWO = ProducerId(1), ProducerId(2)
LEADER = broker(BROKER_4_4)
UNVERIFYING = LEADER._replace(settings=BrokerSettings(verifies_transactions=False))


def sent(producer: ProducerId, sequence: int, epoch: int = 0, transactional: bool = True) -> Batch:
    return Batch(
        1, producer_id=producer, producer_epoch=ProducerEpoch(epoch), first_sequence=sequence, is_transactional=transactional
    )


def marker(producer: ProducerId, committed: bool, epoch: int = 0, coordinator: int = 0) -> Batch:
    ends = EndMarker(committed, Epoch(coordinator))
    return Batch(1, producer_id=producer, producer_epoch=ProducerEpoch(epoch), is_transactional=True, marker=ends)


class LonePartition:
    """A partition that is alone in its ISR, so that everything is committed at once."""

    def __init__(self, known: Broker = LEADER) -> None:
        self.broker = known
        log = LocalLog(EMPTY_EPOCH_LOG, Offset(0))
        self.partition: Partition[EpochLog] = Partition(
            leader(log_of()).partition_id, log, SELF, EPOCH, leader(log_of(), isr=(SELF,)).isr
        )

    def verify(self, batch: Batch, bumps: bool = False) -> VerificationAnswer:
        step = begin_verification(self.broker, self.partition, batch, bumps)
        self.partition = step.state
        (reply,) = step.effects
        assert isinstance(reply, Reply)
        assert isinstance(reply.message, VerificationAnswer)
        return reply.message

    def append(self, batch: Batch, guard: int = NO_GUARD, version: int = 0, acks: int = ACKS_LEADER) -> Error:
        step = handle_produce(self.broker, self.partition, ProduceRequest(1, acks, batch, NOW, guard, version), NOW)
        self.partition = step.state
        (answer,) = (one for one in step.effects if isinstance(one, AnswerProducer))
        return answer.response.error

    def write(self, batch: Batch) -> Error:
        return self.append(batch, self.verify(batch).guard)

    @property
    def stable(self) -> Offset:
        return last_stable_offset_of(self.broker, self.partition)


def test_a_transaction_begins_with_a_verified_batch_and_ends_with_a_marker() -> None:
    led = LonePartition()
    assert led.append(sent(ONE, 0)) == Error.INVALID_TXN_STATE, "nobody has asked the coordinator"
    answer = led.verify(sent(ONE, 0))
    assert is_asked(answer)
    assert led.append(sent(ONE, 0), answer.guard) == Error.NONE
    assert not is_asked(led.verify(sent(ONE, 1))), "it is open in the log"
    assert led.append(sent(ONE, 1)) == Error.NONE
    assert (led.stable, led.partition.local.high_watermark) == (0, 2)
    assert led.append(sent(ONE, 1)) == Error.NONE, "sent again"
    assert led.partition.local.log.end_offset == 2
    assert led.append(marker(ONE, committed=True), acks=ACKS_ALL) == Error.NONE
    assert led.stable == 3
    assert led.append(sent(ONE, 2), answer.guard) == Error.INVALID_TXN_STATE, "the guard was for the transaction before"


def test_one_producer_in_a_transaction_and_outside_of_it() -> None:
    led = LonePartition()
    assert led.append(sent(ONE, 0, transactional=False)) == Error.NONE
    assert led.write(sent(ONE, 1)) == Error.NONE
    assert led.append(sent(ONE, 2, transactional=False)) == Error.INVALID_TXN_STATE
    assert led.append(marker(ONE, committed=False)) == Error.NONE
    assert led.append(sent(ONE, 2, transactional=False)) == Error.NONE
    led.verify(sent(ONE, 3))
    assert led.append(sent(ONE, 4, transactional=False)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER, "one before it is verified"


def test_an_unverified_batch_where_nothing_is_verified() -> None:
    led = LonePartition(UNVERIFYING)
    assert not is_asked(led.verify(sent(ONE, 0)))
    assert led.append(sent(ONE, 0)) == Error.NONE
    assert is_asked(led.verify(sent(TWO, 0), bumps=True)), "its partitions are added by their leaders"


def test_a_marker_without_a_transaction_and_of_an_unknown_producer() -> None:
    led = LonePartition()
    assert led.append(marker(ONE, committed=False, epoch=3, coordinator=2)) == Error.NONE
    assert led.stable == 1
    (entry,) = led.partition.producers
    assert (entry.producer_epoch, entry.coordinator_epoch) == (3, 2)
    assert led.append(marker(ONE, committed=False, epoch=2)) == Error.INVALID_PRODUCER_EPOCH
    assert led.append(marker(ONE, committed=False, epoch=3, coordinator=1)) == Error.TRANSACTION_COORDINATOR_FENCED
    assert led.append(sent(ONE, 0, epoch=2)) == Error.INVALID_PRODUCER_EPOCH


def test_a_marker_of_version_2_ends_a_transaction_of_an_earlier_epoch() -> None:
    led = LonePartition()
    assert led.write(sent(ONE, 0)) == Error.NONE
    assert led.append(marker(ONE, committed=True), version=2) == Error.INVALID_PRODUCER_EPOCH
    assert led.append(marker(ONE, committed=True, epoch=1), version=2) == Error.NONE
    assert led.append(marker(ONE, committed=True, epoch=1), version=2) == Error.NONE, "written again"


def test_offsets_of_a_group_are_in_a_transaction_and_have_no_sequence() -> None:
    led = LonePartition()
    batch = sent(ONE, -1)
    guard = led.verify(batch).guard
    assert led.append(batch, guard) == led.append(batch) == Error.NONE
    assert led.partition.local.log.end_offset == 2


def test_a_batch_without_a_producer_is_not_verified() -> None:
    led = LonePartition()
    assert led.append(sent(NO_PRODUCER_ID, -1)) == Error.NONE
    assert led.stable == 1


def test_only_a_leader_asks() -> None:
    step = begin_verification(LEADER, follower(log_of()), sent(ONE, 0), True)
    assert step.effects == (Reply(VerificationAnswer(Error.NOT_LEADER_OR_FOLLOWER)),)
    led = LonePartition()
    assert led.append(marker(ONE, committed=True, epoch=1)) == Error.NONE
    assert led.verify(sent(ONE, 0)).error == Error.INVALID_PRODUCER_EPOCH


def test_an_end_that_is_not_committed_holds_back_what_is_stable() -> None:
    led = LonePartition()
    assert led.write(sent(ONE, 0)) == Error.NONE
    assert led.append(marker(ONE, committed=True)) == Error.NONE
    local = led.partition.local
    behind = led.partition._replace(local=local._replace(high_watermark=Offset(1)))
    assert last_stable_offset_of(LEADER, behind) == 0
    assert last_stable_offset_of(LEADER, led.partition) == 2


def followed(high_watermark: int) -> Partition[EpochLog]:
    """A follower that has taken an open transaction, and one that has ended, with this high watermark."""
    batches = tuple(one.in_epoch(EPOCH) for one in (sent(ONE, 0), sent(TWO, 0), marker(ONE, committed=True)))
    empty = Partition(leader(log_of()).partition_id, LocalLog(EMPTY_EPOCH_LOG, Offset(0)))
    announced = PartitionRegistration((SELF, OTHER), frozenset({SELF, OTHER}), OTHER, EPOCH, PartitionEpoch(7))
    following = fetch_or_truncate(LEADER, become_follower(LEADER, empty, announced).state, NOW).state
    answer = FetchResponse(Error.NONE, Offset(0), batches, Offset(high_watermark), Offset(0), Offset(1))
    return handle_fetch_response(LEADER, following, PendingFetch(EPOCH, Offset(0)), answer, NOW).state


def test_a_follower_takes_transactions_from_the_batches() -> None:
    partition = followed(high_watermark=3)
    assert [one.producer_id for one in partition.transactions.ongoing] == [TWO]
    assert last_stable_offset_of(LEADER, partition) == 1


def test_a_follower_forgets_what_has_ended_when_its_marker_is_committed() -> None:
    """It would keep every transaction there ever was."""
    assert [one.producer_id for one in followed(high_watermark=2).transactions.unreplicated] == [ONE]
    assert followed(high_watermark=3).transactions.unreplicated == ()


@pytest.mark.parametrize(
    ("error", "bumps", "later", "again"),
    [
        (Error.CONCURRENT_TRANSACTIONS, True, 0, True),
        (Error.CONCURRENT_TRANSACTIONS, True, 100, True),
        (Error.CONCURRENT_TRANSACTIONS, True, 101, False),
        (Error.CONCURRENT_TRANSACTIONS, False, 0, False),
        (Error.NOT_COORDINATOR, True, 0, False),
    ],
)
def test_a_leader_asks_again_for_a_while(error: Error, bumps: bool, later: int, again: bool) -> None:
    assert asks_again(error, bumps, MonotonicMs(later), MonotonicMs(100)) == again


def test_the_version_of_produce_tells_what_the_producer_knows() -> None:
    assert [(adds_partitions(one), knows_abortable(one)) for one in (10, 11, 12)] == [
        (False, False),
        (False, True),
        (True, True),
    ]
