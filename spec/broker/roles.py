"""Becoming leader or follower of a partition by the metadata; leaving it; and its state after a start."""

from kspec.spec.broker.effects import Effect, EpochOpened, LogDeleted, LogTruncated, Persist, RebuildProducers
from kspec.spec.broker.partition import Broker, Handled, Partition, advance, complete_waiting, leads, with_producers
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, started
from kspec.spec.broker.rules.followers import Follower, assign, reset_follower
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import restart
from kspec.spec.log.producers import forget
from kspec.spec.metadata import LocalChange, LocalRole, PartitionRegistration, has_leader
from kspec.spec.step import Step
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.values import NO_LEADER, NO_PARTITION_EPOCH, UNKNOWN_OFFSET, MonotonicMs, Offset, ProducerId


def apply_change(broker: Broker, partition: Partition[LogT], change: LocalChange, now: MonotonicMs) -> Handled[LogT]:
    """Apply the difference of two metadata images to this broker's replica, however many records lie between them.

    **Kafka:** `ReplicaManager.applyDelta`.
    """
    if change.role == LocalRole.DELETED:
        return leave(broker, partition)
    if change.registration is None:
        return Step(partition)
    if change.role == LocalRole.LEADER:
        return become_leader(broker, partition, change.registration, now)
    return become_follower(broker, partition, change.registration)


def _takes(broker: Broker, partition: Partition[LogT], announced: PartitionRegistration) -> bool:
    return broker.protocol.takes_announcement(
        partition.leader_epoch, partition.isr, announced.leader_epoch, announced.partition_epoch
    )


def become_leader(
    broker: Broker, partition: Partition[LogT], announced: PartitionRegistration, now: MonotonicMs
) -> Handled[LogT]:
    """Lead, or go on leading, as announced.

    The leader takes the announced assignment and ISR. It drops a pending proposal; in `next` only if the announcement is new
    to it. In a new leader epoch only, the epoch starts at the log's end, and the state of the followers is reset. Then the
    high watermark may move, because the ISR may be smaller.

    **Kafka:** `Partition.makeLeader`. A partition that recovers from an unclean election counts as recovered from here on;
    the next AlterPartition says so.
    """
    if not _takes(broker, partition, announced):
        return Step(partition)
    followers = assign(partition.followers if leads(broker, partition) else (), broker.self_id, announced.replicas)
    isr = broker.protocol.announced_isr(partition.isr, PartitionIsr(announced.isr, announced.partition_epoch))
    after = partition._replace(leader=broker.self_id, isr=isr, followers=followers, fetcher=NOT_FETCHING)
    effects: tuple[Effect, ...] = ()
    if broker.protocol.begins_epoch(partition.leader_epoch, announced.leader_epoch):
        opened = _open_epoch(broker, partition, after, announced, now)
        after, effects = opened.state, opened.effects
    completed = complete_waiting(broker, advance(broker, after, now))
    return Step(completed.state, effects + completed.effects)


def _open_epoch(
    broker: Broker, before: Partition[LogT], after: Partition[LogT], announced: PartitionRegistration, now: MonotonicMs
) -> Handled[LogT]:
    epoch, log = announced.leader_epoch, after.local.log
    end_offset = log.end_offset
    knows_followers = broker.protocol.knows_followers(leads(broker, before), before.leader_epoch, epoch)
    keeps = broker.protocol.keeps_of_followers
    followers = tuple(
        Follower(
            follower.broker,
            reset_follower(follower.state, now, follower.broker in announced.isr, end_offset, knows_followers, keeps),
        )
        for follower in after.followers
    )
    opened = broker.protocol.start_leading(log, epoch)
    effects = (Persist(EpochOpened(epoch, end_offset)),) if opened != log else ()
    local = after.local._replace(log=opened)
    return Step(after._replace(local=local, leader_epoch=epoch, epoch_start=end_offset, followers=followers), effects)


def become_follower(broker: Broker, partition: Partition[LogT], announced: PartitionRegistration) -> Handled[LogT]:
    """Follow the announced leader, or no leader. Waiting producers are told that this broker does not lead.

    The log is not truncated here, except up to 0.10. **Kafka:** `Partition.makeFollower`,
    `ReplicaManager.applyLocalFollowersDelta`, up to 3.9 also `makeFollowers`.
    """
    if not _takes(broker, partition, announced) or not broker.protocol.hears_of_leader(announced.leader):
        return Step(partition)
    restarts = broker.protocol.restarts_fetching(
        partition.leader, partition.leader_epoch, announced.leader, announced.leader_epoch
    )
    isr = LeaderIsr(frozenset(), announced.partition_epoch, frozenset(), NO_PARTITION_EPOCH)
    after = partition._replace(
        leader=announced.leader, leader_epoch=announced.leader_epoch, isr=isr, epoch_start=UNKNOWN_OFFSET, followers=()
    )
    completed = complete_waiting(broker, after)
    in_isr = broker.self_id in announced.isr
    if not has_leader(announced) or broker.protocol.stops_fetching(broker.shutting_down, in_isr):
        return Step(completed.state._replace(fetcher=NOT_FETCHING), completed.effects)
    if not restarts:
        return completed
    following = _start_following(broker, completed.state)
    return Step(following.state, completed.effects + following.effects)


def _start_following(broker: Broker, partition: Partition[LogT]) -> Handled[LogT]:
    start = broker.protocol.start_following(partition.local.log, partition.local.high_watermark)
    local = partition.local
    effects: tuple[Effect, ...] = ()
    if start.kept_end < local.log.end_offset:
        local = broker.protocol.truncate(local, start.kept_end)
        effects = (Persist(LogTruncated(start.kept_end)), RebuildProducers())
    fetcher = started(partition.fetcher, partition.leader, partition.leader_epoch, start)
    return Step(partition._replace(local=local, fetcher=fetcher), effects)


def leave(broker: Broker, partition: Partition[LogT]) -> Handled[LogT]:
    """Remove the replica of the partition. Waiting producers are told that this broker does not lead.

    **Kafka:** `ReplicaManager.stopPartitions`, `Partition.delete`.
    """
    gone = complete_waiting(broker, partition._replace(leader=NO_LEADER, followers=(), epoch_start=UNKNOWN_OFFSET))
    asking = partition.request_in_flight
    empty = Partition(partition.partition_id, restart(partition.local, Offset(0)), request_in_flight=asking)
    return Step(empty, (*gone.effects, Persist(LogDeleted())))


def producers_rebuilt(partition: Partition[LogT], found: PartitionTransactions) -> Partition[LogT]:
    """The partition once the batches left in its log have been read: the producers and transactions that were `found`.

    The guards that were given out before name nothing any more, and none of them is given out again.

    **Kafka:** `UnifiedLog.rebuildProducerState`.
    """
    return partition._replace(transactions=found._replace(guards=partition.transactions.guards))


def producers_expired(partition: Partition[LogT], gone: tuple[ProducerId, ...]) -> Partition[LogT]:
    """The partition without the producers that have been silent for too long.

    **Kafka:** `UnifiedLog.removeExpiredProducers`.
    """
    return with_producers(partition, forget(partition.producers, gone)) if gone else partition
