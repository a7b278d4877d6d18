"""Proposals of another ISR by a leader, and its reaction to the answer."""

from kspec.spec.broker.partition import Broker, Handled, Partition, advance, complete_waiting, is_under_min_isr, leads
from kspec.spec.broker.rules.followers import follower_of, is_caught_up
from kspec.spec.broker.rules.isr.announcement import apply_partition
from kspec.spec.broker.rules.isr.errors import AfterError
from kspec.spec.broker.rules.isr.proposal import PartitionIsr, is_pending, isr_with, isr_without, nothing_pending, roll_back
from kspec.spec.broker.rules.isr.request import members
from kspec.spec.log.algebra import LogT
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.step import Step
from kspec.spec.values import BrokerId, Error, MonotonicMs


def may_join(broker: Broker, partition: Partition[LogT], replica: BrokerId, now: MonotonicMs) -> bool:
    """Whether a leader asks to admit a follower that has just fetched.

    **Kafka:** `Partition.needsExpandIsr`, `canAddReplicaToIsr`, `isFollowerInSync`.
    """
    state, local = follower_of(partition.followers, replica), partition.local
    if state is None or replica in partition.isr.isr or not nothing_pending(partition.isr):
        return False
    caught_up = is_caught_up(state, local.log.end_offset, now, broker.settings.max_lag)
    return (
        broker.protocol.is_eligible(broker.brokers, replica, state.broker_epoch)
        and broker.protocol.has_reached(state.end_offset, local.high_watermark, partition.epoch_start)
        and broker.protocol.joins(state, caught_up, is_under_min_isr(broker, partition))
    )


def consider_joining(broker: Broker, partition: Partition[LogT], replica: BrokerId, now: MonotonicMs) -> Handled[LogT]:
    """Ask to admit a follower to the ISR, if it may join. **Kafka:** `Partition.maybeExpandIsr`."""
    if not may_join(broker, partition, replica, now):
        return Step(partition)
    return _propose(broker, partition, isr_with(partition.isr.isr, replica))


def consider_shrinking(broker: Broker, partition: Partition[LogT], now: MonotonicMs) -> Handled[LogT]:
    """Ask to drop the followers that have fallen behind; called every half of `max_lag`.

    **Kafka:** `Partition.maybeShrinkIsr`.
    """
    if not leads(broker, partition) or not nothing_pending(partition.isr):
        return Step(partition)
    end_offset, max_lag = partition.local.log.end_offset, broker.settings.max_lag
    leaving = broker.protocol.drops(partition.isr.isr, broker.self_id, partition.followers, end_offset, now, max_lag)
    return _propose(broker, partition, isr_without(partition.isr.isr, leaving)) if leaving else Step(partition)


def may_fall_behind(broker: Broker, partition: Partition[LogT]) -> bool:
    """Whether `consider_shrinking` may find somebody to drop later, though the partition stays as it is.

    Nobody falls behind who has all of the leader's records, however long ago it fetched (`is_caught_up`).

    **Kafka:** no counterpart: `ReplicaManager.maybeShrinkIsr` looks at all partitions.
    """
    if not leads(broker, partition):
        return False
    end_offset = partition.local.log.end_offset
    caught_up = {one.broker for one in partition.followers if one.state.end_offset == end_offset}
    waits = not nothing_pending(partition.isr) or partition.request_in_flight
    return waits or any(one != broker.self_id and one not in caught_up for one in partition.isr.isr)


def _propose(broker: Broker, partition: Partition[LogT], isr: frozenset[BrokerId]) -> Handled[LogT]:
    if not broker.protocol.may_ask(partition.request_in_flight):
        return Step(partition)
    proposal = broker.protocol.propose(partition.isr, isr)
    request = AlterPartitionRequest(
        broker.self_id,
        broker.broker_epoch,
        partition.partition_id,
        partition.leader_epoch,
        proposal.request.partition_epoch,
        members(isr, broker.self_id, broker.broker_epoch, partition.followers),
    )
    asking = partition._replace(isr=proposal.leader, request_in_flight=True)
    return Step(asking, (broker.protocol.asks_for_isr(request),))


def handle_alter_partition_response(
    broker: Broker,
    partition: Partition[LogT],
    request: AlterPartitionRequest,
    response: AlterPartitionResponse,
    now: MonotonicMs,
) -> Handled[LogT]:
    """Take the ISR that the controller has now; after an error, drop the proposal, wait for new metadata, or ask again.

    An answer to a proposal that is not the pending one is ignored, but it is an answer: the leader may ask again.

    **Kafka:** `Partition.submitAlterPartition`, `handleAlterPartitionUpdate`, `handleAlterPartitionError`.
    """
    answered = partition._replace(request_in_flight=False)
    if not is_pending(partition.isr, _as_proposed(request)):
        return Step(answered)
    if response.error == Error.NONE:
        return _take_granted(broker, answered, response, now)
    what = broker.protocol.on_isr_error(response.error)
    if what == AfterError.ROLL_BACK:
        return Step(answered._replace(isr=roll_back(partition.isr)))
    if what == AfterError.RETRY:
        again = request._replace(broker_epoch=broker.broker_epoch)
        return Step(partition, (broker.protocol.asks_for_isr(again),))
    return Step(answered)


def _as_proposed(request: AlterPartitionRequest) -> PartitionIsr:
    return PartitionIsr(frozenset(member.broker for member in request.isr), request.partition_epoch)


def _take_granted(
    broker: Broker, partition: Partition[LogT], response: AlterPartitionResponse, now: MonotonicMs
) -> Handled[LogT]:
    granted = PartitionIsr(response.isr, response.partition_epoch)
    if not broker.protocol.takes_granted(partition.isr, partition.leader_epoch, granted, response.leader_epoch):
        return Step(partition)
    taken = partition._replace(isr=apply_partition(partition.isr, granted))
    possible = advance(broker, taken, now)
    before, after = taken.local.high_watermark, possible.local.high_watermark
    moved = broker.protocol.advances_when_granted(before, after) != before
    return complete_waiting(broker, possible if moved else taken)
