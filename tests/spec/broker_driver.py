"""Small partitions to test handlers with: broker 1 leads or follows, brokers 2 and 3 are the other replicas."""

from typing import Any

from kspec.spec.broker.partition import Broker, BrokerSettings, Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import FetchState, FetchStatus
from kspec.spec.broker.rules.followers import Follower, FollowerState
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest
from kspec.spec.messages.produce import ACKS_ALL, NO_DEADLINE, ProduceRequest
from kspec.spec.metadata import BrokerRegistration, PartitionRegistration
from kspec.spec.releases.broker import BROKER_4_0
from kspec.spec.step import Reply, Step
from kspec.spec.values import (
    NO_EPOCH,
    NO_PARTITION_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
    Record,
)

SELF, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


EVERYBODY = (SELF, OTHER, THIRD)


NOW = MonotonicMs(100_000)


EPOCH = Epoch(5)


def run_of(broker: BrokerId) -> BrokerEpoch:
    """The broker epoch in which a broker is registered."""
    return BrokerEpoch(10 * broker)


def registered(broker: BrokerId, **changes: Any) -> BrokerRegistration:
    return BrokerRegistration(broker, run_of(broker), Incarnation(0), fenced=False)._replace(**changes)


ALL_UP = tuple(registered(broker) for broker in EVERYBODY)


def broker(protocol: BrokerProtocol = BROKER_4_0, min_isr: int = 1, **changes: Any) -> Broker:
    return Broker(SELF, protocol, run_of(SELF), ALL_UP, BrokerSettings(min_isr=min_isr))._replace(**changes)


def log_of(*epochs: int) -> RecordLog:
    """A log with a record in each of these epochs, of increasing values."""
    return EMPTY_LOG.append(tuple(Record(value, Epoch(epoch)) for value, epoch in enumerate(epochs)))


def fetched(end: int, caught_up_time: int = 0, start: int = 0, **changes: Any) -> FollowerState:
    """A follower that fetched at the offset `end` last."""
    state = FollowerState(Offset(end), Offset(start), Offset(end), MonotonicMs(caught_up_time), MonotonicMs(caught_up_time))
    return state._replace(**changes)


def leader(
    log: RecordLog,
    high_watermark: int = 0,
    isr: tuple[BrokerId, ...] = EVERYBODY,
    follower_ends: dict[BrokerId, FollowerState] | None = None,
    epoch_start: int = 0,
    **changes: Any,
) -> Partition[RecordLog]:
    """Broker 1 as leader in epoch 5, partition epoch 7."""
    states = follower_ends or {}
    followers = tuple(Follower(replica, states.get(replica, FollowerState())) for replica in (OTHER, THIRD))
    members = LeaderIsr(frozenset(isr), PartitionEpoch(7), frozenset(), NO_PARTITION_EPOCH)
    local = LocalLog(log, Offset(high_watermark))
    partition: Partition[RecordLog] = Partition(PartitionId(0), local, SELF, EPOCH, members)
    return partition._replace(epoch_start=Offset(epoch_start), followers=followers)._replace(**changes)


def follower(
    log: RecordLog, high_watermark: int = 0, status: FetchStatus = FetchStatus.FETCHING, **changes: Any
) -> Partition[RecordLog]:
    """Broker 1 as follower of broker 2 in epoch 5, fetching at the end of its log."""
    members = LeaderIsr(frozenset(), PartitionEpoch(7), frozenset(), NO_PARTITION_EPOCH)
    fetcher = FetchState(status, OTHER, EPOCH, log.end_offset, log.latest_epoch)
    local = LocalLog(log, Offset(high_watermark))
    partition: Partition[RecordLog] = Partition(PartitionId(0), local, OTHER, EPOCH, members, fetcher=fetcher)
    return partition._replace(**changes)


def announced(
    leads: BrokerId, epoch: int, isr: tuple[BrokerId, ...] = EVERYBODY, partition_epoch: int = 8, **changes: Any
) -> PartitionRegistration:
    members = frozenset(isr)
    registration = PartitionRegistration(EVERYBODY, members, leads, Epoch(epoch), PartitionEpoch(partition_epoch))
    return registration._replace(**changes)


def fetch_of(replica: BrokerId, offset: int, last_epoch: int = NO_EPOCH, epoch: int = EPOCH, **changes: Any) -> FetchRequest:
    """A fetch of a follower in its present run."""
    request = FetchPosition(Epoch(epoch), Offset(offset), Epoch(last_epoch))
    return FetchRequest(replica, request, run_of(replica))._replace(**changes)


def consumer_fetch(offset: int, epoch: int = NO_EPOCH, **changes: Any) -> FetchRequest:
    return FetchRequest(CONSUMER, FetchPosition(Epoch(epoch), Offset(offset), NO_EPOCH))._replace(**changes)


def reply(step: Step[Any, Any]) -> Any:
    """The answer to the request that was handled."""
    (message,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    return message


LATE = MonotonicMs(10**9)
"""A time by which everybody has fallen behind who does not hold all."""


def produce(acks: int = ACKS_ALL, record_count: int = 1, deadline: int = NO_DEADLINE) -> ProduceRequest:
    return ProduceRequest(9, acks, Batch(record_count, payload=7), MonotonicMs(deadline))
