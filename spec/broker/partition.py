"""A partition on one broker: its state, and the questions that several handlers ask of it.

The handlers are in `spec.broker.leader`, `spec.broker.follower` and `spec.broker.roles` (becoming leader or follower).
Kafka: `Partition`, with the partition's share of `ReplicaManager` and of the fetcher thread.
"""

from typing import Generic, NamedTuple, TypeAlias

from kspec.spec.broker.effects import AnswerProducer, Effect
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchState
from kspec.spec.broker.rules.followers import Brokers, Follower, is_caught_up
from kspec.spec.broker.rules.high_watermark import leader_high_watermark
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.broker.rules.produce import AppendedRecords, completion, expiry
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import LocalLog, raise_high_watermark
from kspec.spec.log.producers import Producers
from kspec.spec.messages.produce import ProduceResponse
from kspec.spec.step import Step
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.transactions.log.reading import last_stable_offset, on_high_watermark
from kspec.spec.values import (
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    Offset,
    PartitionId,
)


class BrokerSettings(NamedTuple):
    """The configuration of a partition, with times in milliseconds.

    `min_isr`: min.insync.replicas; `max_lag`: replica.lag.time.max.ms; `back_off`: replica.fetch.backoff.ms;
    `deletes_records`, `compacts_records`: cleanup.policy contains "delete", or "compact"; `verifies_transactions`:
    transaction.partition.verification.enable.
    """

    min_isr: int = 1
    max_lag: int = 30_000
    back_off: int = 1_000
    deletes_records: bool = True
    compacts_records: bool = True
    verifies_transactions: bool = True


class Broker(NamedTuple):
    """A broker as its partitions' handlers see it: its id, its release's rules, its view of the other brokers."""

    self_id: BrokerId
    protocol: BrokerProtocol
    broker_epoch: BrokerEpoch = BrokerEpoch(-1)
    brokers: Brokers = ()
    settings: BrokerSettings = BrokerSettings()
    shutting_down: bool = False


class WaitingProduce(NamedTuple):
    """A waiting acks=all request, with the number that its connection gave it. Kafka: an entry of the purgatory."""

    request: int
    appended: AppendedRecords


class Partition(NamedTuple, Generic[LogT]):
    """The state of one replica. `leader`, `leader_epoch` and `isr.partition_epoch` are those of the last announcement taken.

    Only a leader uses `isr` (its members and a pending proposal), `epoch_start` (its log end when its epoch began),
    `followers` and `waiting`. Only a follower uses `fetcher`. `request_in_flight`: the last AlterPartition request is
    unanswered; a new role does not change that. `transactions`: what it remembers of producers and transactions in the log;
    those that were aborted are noted with the log, and not here.
    """

    partition_id: PartitionId
    local: LocalLog[LogT]
    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: LeaderIsr = LeaderIsr(frozenset(), NO_PARTITION_EPOCH, frozenset(), NO_PARTITION_EPOCH)
    epoch_start: Offset = UNKNOWN_OFFSET
    followers: tuple[Follower, ...] = ()
    waiting: tuple[WaitingProduce, ...] = ()
    fetcher: FetchState = NOT_FETCHING
    transactions: PartitionTransactions = PartitionTransactions()
    request_in_flight: bool = False

    @property
    def producers(self) -> Producers:
        """The state of the producers in its log."""
        return self.transactions.producers


Handled: TypeAlias = Step[Partition[LogT], Effect]


# ---- what several handlers need


def leads(broker: Broker, partition: Partition[LogT]) -> bool:
    """Whether this broker believes that it leads. **Kafka:** `Partition.isLeader`."""
    return is_leader(broker.self_id, role_of(partition))


def role_of(partition: Partition[LogT]) -> LeaderAndIsr:
    """The last announcement that the replica took; a follower's has no ISR."""
    return LeaderAndIsr(partition.leader, partition.leader_epoch, partition.isr.isr)


def min_isr_of(broker: Broker, partition: Partition[LogT]) -> int:
    """The number of in-sync replicas that acks=all requires. **Kafka:** `Partition.effectiveMinIsr`."""
    return broker.protocol.min_isr(broker.settings.min_isr, len(partition.followers) + 1)


def is_under_min_isr(broker: Broker, partition: Partition[LogT]) -> bool:
    """Whether a leader's committed ISR is too small for acks=all. **Kafka:** `Partition.isUnderMinIsr`."""
    return leads(broker, partition) and len(partition.isr.isr) < min_isr_of(broker, partition)


def last_stable_offset_of(broker: Broker, partition: Partition[LogT]) -> Offset:
    """The offset before which committed transactions may be read. **Kafka:** `UnifiedLog.lastStableOffset`."""
    state, high_watermark = partition.transactions, partition.local.high_watermark
    if not state.ongoing and not state.unreplicated:
        return high_watermark
    stable = on_high_watermark(state, high_watermark)
    return last_stable_offset(broker.protocol.transactions, stable, partition.local.log.start_offset, high_watermark)


def with_producers(partition: Partition[LogT], producers: Producers) -> Partition[LogT]:
    """The partition with this state of the producers in its log."""
    return partition._replace(transactions=partition.transactions._replace(producers=producers))


def awaited_offsets(broker: Broker, partition: Partition[LogT], now: MonotonicMs) -> tuple[Offset, ...]:
    """The known log end offsets of all followers that the high watermark waits for.

    **Kafka:** `Partition.maybeIncrementLeaderHW`.
    """
    maybe_in_sync = broker.protocol.counted_isr(partition.isr)
    end_offset, max_lag = partition.local.log.end_offset, broker.settings.max_lag
    return tuple(
        follower.state.end_offset
        for follower in partition.followers
        if broker.protocol.awaits(
            follower.broker in maybe_in_sync,
            is_caught_up(follower.state, end_offset, now, max_lag),
            broker.protocol.is_eligible(broker.brokers, follower.broker, follower.state.broker_epoch),
        )
    )


def advance(broker: Broker, partition: Partition[LogT], now: MonotonicMs) -> Partition[LogT]:
    """A leader's state with its high watermark moved as far as allowed. **Kafka:** `Partition.maybeIncrementLeaderHW`."""
    local = partition.local
    may_advance = broker.protocol.may_advance(len(partition.isr.isr), min_isr_of(broker, partition))
    awaited = awaited_offsets(broker, partition, now)
    high_watermark = leader_high_watermark(local.high_watermark, local.log.end_offset, awaited, may_advance)
    if high_watermark == local.high_watermark:
        return partition
    return partition._replace(local=raise_high_watermark(local, high_watermark))


def complete_waiting(broker: Broker, partition: Partition[LogT]) -> Handled[LogT]:
    """Answer the acks=all requests whose wait is over.

    **Kafka:** `Partition.tryCompleteDelayedRequests`, `DelayedProduce.tryComplete`.
    """
    if not partition.waiting:
        return Step(partition)
    leading, min_isr = leads(broker, partition), min_isr_of(broker, partition)
    high_watermark, isr_size = partition.local.high_watermark, len(broker.protocol.counted_isr(partition.isr))
    verdicts = [
        completion(leading, high_watermark, waiting.appended.required_offset, isr_size, min_isr)
        for waiting in partition.waiting
    ]
    return _answer(partition, verdicts)


def expire_waiting(partition: Partition[LogT], now: MonotonicMs) -> Handled[LogT]:
    """Answer the acks=all requests whose deadline has passed. **Kafka:** `DelayedProduce.onExpiration`."""
    return _answer(partition, [expiry(waiting.appended, now) for waiting in partition.waiting])


def _answer(partition: Partition[LogT], verdicts: list[Error | None]) -> Handled[LogT]:
    decided = list(zip(partition.waiting, verdicts, strict=True))
    answers = tuple(
        AnswerProducer(waiting.request, ProduceResponse(error, waiting.appended.base_offset))
        for waiting, error in decided
        if error is not None
    )
    if not answers:
        return Step(partition)
    return Step(partition._replace(waiting=tuple(waiting for waiting, error in decided if error is None)), answers)
