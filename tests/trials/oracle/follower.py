"""Expected steps of a follower; and those of any replica when metadata come."""

from typing import Any

from kspec.spec.broker.effects import (
    BatchesAppended,
    EpochOpened,
    LogDeleted,
    LogRestarted,
    LogStartMoved,
    LogTruncated,
    Persist,
    RebuildProducers,
)
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchState, FetchStatus
from kspec.spec.broker.rules.followers import Follower, FollowerState
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import FetchPosition, FetchRequest
from kspec.spec.messages.list_offsets import ListOffsetsRequest, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kspec.spec.metadata import LocalRole
from kspec.spec.step import Send
from kspec.spec.values import (
    NO_EPOCH,
    NO_PARTITION_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerEpoch,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
)
from tests.trials.oracle.leader import NONE, Expected, LeadingPartition
from tests.trials.oracle.log import cut, end_of, epoch_end, from_start, latest_epoch, log_of, opened, with_batches
from tests.trials.oracle.party import ObservedNode

WORKING = (FetchStatus.TRUNCATING, FetchStatus.FETCHING, FetchStatus.FINDING_END, FetchStatus.FINDING_START)


def _keep(after: LeadingPartition, log: EpochLog, high_watermark: int) -> bool:
    """Note another log; whether it is another one."""
    changed: bool = LocalLog(log, Offset(high_watermark)) != after.local
    after.changes["local"] = LocalLog(log, Offset(high_watermark))
    return changed


def _cut_to(after: LeadingPartition, offset: int, status: FetchStatus) -> None:
    """The log ends at the offset at the latest, and the fetcher goes on there."""
    log = cut(after.log, offset)
    if _keep(after, log, min(after.local.high_watermark, end_of(log))):
        after.effects += [Persist(LogTruncated(end_of(log))), RebuildProducers()]
    after.changes["fetcher"] = after.fetcher._replace(
        status=status, fetch_offset=offset, last_fetched_epoch=latest_epoch(log)
    )


def ask(node: ObservedNode) -> Expected:
    """The next request, unless the fetcher has nothing to ask, or waits; a log without epochs is cut without asking."""
    after = LeadingPartition(node)
    fetcher = after.fetcher
    if fetcher.delayed_until <= node.now:
        fetcher = fetcher._replace(delayed_until=0)
        after.changes["fetcher"] = fetcher
    if fetcher.status not in WORKING or fetcher.delayed_until > node.now:
        return after.expected()
    latest = latest_epoch(after.log)
    if fetcher.status == FetchStatus.TRUNCATING and latest == NO_EPOCH:
        _cut_to(after, fetcher.fetch_offset, FetchStatus.FETCHING)
        return after.expected()
    request: Any = FetchRequest(
        node.id,
        FetchPosition(fetcher.leader_epoch, fetcher.fetch_offset, fetcher.last_fetched_epoch),
        node.epoch,
        after.log.start_offset,
    )
    if fetcher.status == FetchStatus.TRUNCATING:
        request = OffsetForLeaderEpochRequest(fetcher.leader_epoch, latest)
    if fetcher.status == FetchStatus.FINDING_END:
        request = ListOffsetsRequest(OffsetSpec.LATEST, fetcher.leader_epoch)
    if fetcher.status == FetchStatus.FINDING_START:
        request = ListOffsetsRequest(OffsetSpec.EARLIEST, fetcher.leader_epoch)
    after.effects.append(Send(fetcher.leader, request))
    return after.expected()


def no_answer(node: ObservedNode) -> Expected:
    """A fetcher at work waits a moment; one that waits already does not wait longer."""
    after = LeadingPartition(node)
    _back_off(after)
    return after.expected()


def _back_off(after: LeadingPartition) -> None:
    fetcher = after.fetcher
    if fetcher.status in WORKING and not fetcher.delayed_until:
        after.changes["fetcher"] = fetcher._replace(delayed_until=after.node.now + after.node.settings.back_off)


def _refused(after: LeadingPartition, error: Error, asked_in: Epoch) -> None:
    if error == Error.OFFSET_OUT_OF_RANGE:
        after.changes["fetcher"] = after.fetcher._replace(status=FetchStatus.FINDING_END)
    elif error == Error.FENCED_LEADER_EPOCH and asked_in == after.fetcher.leader_epoch:
        after.changes["fetcher"] = FetchState(FetchStatus.FAILED)
    else:
        _back_off(after)


def fetched(node: ObservedNode, asked: Any, answer: Any) -> Expected:
    """An answer counts in the epoch and at the offset of its request. The log is cut, or grows by what is not too new."""
    after = LeadingPartition(node)
    fetcher, log = after.fetcher, after.log
    if fetcher.status != FetchStatus.FETCHING or (fetcher.leader_epoch, fetcher.fetch_offset) != tuple(asked):
        return {}, ()
    if answer.error != Error.NONE:
        _refused(after, answer.error, asked.leader_epoch)
        return after.expected()
    if answer.diverging != UNDEFINED_EPOCH_END:
        _cut_to(after, _common_end(log, fetcher.fetch_offset, answer.diverging), FetchStatus.FETCHING)
        return after.expected()
    batches: list[Any] = []
    for batch in answer.records:
        if batch.leader_epoch > asked.leader_epoch:
            break
        batches.append(batch)
    _append(after, answer, tuple(batches))
    return after.expected()


def _common_end(log: EpochLog, high_watermark: int, end: EpochEndOffset) -> int:
    """The offset at which a follower cuts its log, when its leader says that an epoch ends there."""
    own = epoch_end(log, end.leader_epoch)
    if end.end_offset == -1:
        return min(high_watermark, end_of(log))
    if own == UNDEFINED_EPOCH_END:
        return min(end.end_offset, end_of(log))
    if own.leader_epoch != end.leader_epoch:
        return min(own.end_offset, end_of(log))
    return min(own.end_offset, end.end_offset, end_of(log))


def _append(after: LeadingPartition, answer: Any, batches: tuple[Any, ...]) -> None:
    log, fetcher, base = after.log, after.fetcher, answer.base_offset
    count = sum(batch.record_count for batch in batches)
    overlaps = bool(batches) and base < end_of(log)
    restarts = overlaps and log.start_offset == end_of(log) and base + count > end_of(log)
    if fetcher.fetch_offset != end_of(log) or (overlaps and not restarts):
        after.changes["fetcher"] = FetchState(FetchStatus.FAILED)
        return
    if restarts:
        log = log_of([], base, base)
        after.effects.append(Persist(LogRestarted(base)))
    if batches:
        after.effects.append(Persist(BatchesAppended(base, batches)))
    log = with_batches(log, base, batches)
    high_watermark = max(log.start_offset, min(answer.high_watermark, end_of(log)))
    if answer.log_start_offset > high_watermark:
        _keep(after, log, high_watermark)
        after.changes["fetcher"] = FetchState(FetchStatus.FAILED)
        return
    if answer.log_start_offset > log.start_offset:
        log = from_start(log, answer.log_start_offset)
        after.effects.append(Persist(LogStartMoved(answer.log_start_offset)))
    _keep(after, log, high_watermark)
    last = batches[-1].leader_epoch if batches else fetcher.last_fetched_epoch
    after.changes["fetcher"] = fetcher._replace(fetch_offset=end_of(log), last_fetched_epoch=last, answered=True)


def epoch_found(node: ObservedNode, asked: Any, answer: Any) -> Expected:
    """The log is cut where the histories part; the next fetch shows whether more is to be cut."""
    after = LeadingPartition(node)
    if after.fetcher.status != FetchStatus.TRUNCATING or after.fetcher.leader_epoch != asked.leader_epoch:
        return {}, ()
    if answer.error != Error.NONE:
        _refused(after, answer.error, asked.leader_epoch)
    else:
        _cut_to(after, _common_end(after.log, after.fetcher.fetch_offset, answer.end), FetchStatus.FETCHING)
    return after.expected()


def offset_listed(node: ObservedNode, asked: Any, answer: Any) -> Expected:
    """A follower outside its leader's log cuts its own to the leader's end, or starts again at the leader's start."""
    after = LeadingPartition(node)
    fetcher, log = after.fetcher, after.log
    finding = (FetchStatus.FINDING_END, FetchStatus.FINDING_START)
    if fetcher.status not in finding or fetcher.leader_epoch != asked.leader_epoch:
        return {}, ()
    if answer.error != Error.NONE:
        after.changes["fetcher"] = fetcher._replace(status=FetchStatus.FETCHING)
        _refused(after, answer.error, asked.leader_epoch)
        return after.expected()
    end, offset = end_of(log), answer.offset
    if fetcher.status == FetchStatus.FINDING_END and offset >= end:
        after.changes["fetcher"] = fetcher._replace(status=FetchStatus.FINDING_START)
        return after.expected()
    if fetcher.status == FetchStatus.FINDING_END:
        log = cut(log, offset)
        after.effects += [Persist(LogTruncated(offset)), RebuildProducers()]
        _keep(after, log, min(after.local.high_watermark, end_of(log)))
    elif offset > end:
        log = log_of([], offset, offset)
        after.effects += [Persist(LogRestarted(offset)), RebuildProducers()]
        _keep(after, log, offset)
    goes_on = offset if fetcher.status == FetchStatus.FINDING_END else max(offset, end)
    after.changes["fetcher"] = fetcher._replace(
        status=FetchStatus.FETCHING, fetch_offset=goes_on, last_fetched_epoch=latest_epoch(log), answered=True
    )
    return after.expected()


# ---- metadata


def change(node: ObservedNode, news: Any) -> Expected:
    """A replica leads, follows or leaves, as the newest metadata say; older ones than it knows it does not take."""
    after = LeadingPartition(node)
    announced = news.registration
    if news.role == LocalRole.DELETED:
        return _leave(after)
    if announced is None or announced.partition_epoch < after.isr.partition_epoch:
        return {}, ()
    if announced.leader == node.id:
        _lead(after, announced)
        after.raise_high_watermark()
    else:
        _follow(after, announced)
    after.answer_waiting()
    return after.expected()


def _leave(after: LeadingPartition) -> Expected:
    after.changes["leader"] = -1
    after.answer_waiting()
    asking = after.request_in_flight
    gone: Partition[EpochLog] = Partition(after.partition_id, LocalLog(EMPTY_EPOCH_LOG), request_in_flight=asking)
    return gone._asdict(), (*after.effects, Persist(LogDeleted()))


def _lead(after: LeadingPartition, announced: Any) -> None:
    node, before = after.node, after.before
    known = {one.broker: one for one in before.followers} if before.leader == node.id else {}
    others = sorted(one for one in announced.replicas if one != node.id)
    after.changes["followers"] = tuple([known.get(one, Follower(one)) for one in others])
    after.changes["leader"], after.changes["fetcher"] = node.id, NOT_FETCHING
    if announced.partition_epoch > after.isr.partition_epoch:
        after.changes["isr"] = LeaderIsr(announced.isr, announced.partition_epoch, NONE, NO_PARTITION_EPOCH)
    if announced.leader_epoch <= before.leader_epoch:
        return
    end, epoch = after.end, announced.leader_epoch
    went_on = before.leader == node.id and epoch == before.leader_epoch + 1
    followers = []
    for one in after.followers:
        time, state = (node.now if one.broker in announced.isr else 0), one.state
        fresh = FollowerState(Offset(-1), Offset(-1), Offset(-1), MonotonicMs(0), MonotonicMs(time), BrokerEpoch(-2))
        if went_on:
            fresh = FollowerState(
                state.end_offset, state.start_offset, end, MonotonicMs(time), MonotonicMs(time), state.broker_epoch
            )
        followers.append(Follower(one.broker, fresh))
    after.changes["followers"] = tuple(followers)
    after.changes["leader_epoch"], after.changes["epoch_start"] = epoch, end
    if latest_epoch(after.log) != epoch:
        after.effects.append(Persist(EpochOpened(epoch, end)))
        after.changes["local"] = after.local._replace(log=opened(after.log, epoch))


def _follow(after: LeadingPartition, announced: Any) -> None:
    node, before = after.node, after.before
    after.changes |= {
        "leader": announced.leader,
        "leader_epoch": announced.leader_epoch,
        "isr": LeaderIsr(NONE, announced.partition_epoch, NONE, NO_PARTITION_EPOCH),
        "epoch_start": -1,
        "followers": (),
    }
    if announced.leader == -1 or (node.shutting_down and node.id not in announced.isr):
        after.changes["fetcher"] = NOT_FETCHING
        return
    epoch, log = announced.leader_epoch, after.log
    if epoch <= before.leader_epoch or (before.fetcher.status in WORKING and before.fetcher.leader_epoch == epoch):
        return
    latest = latest_epoch(log)
    if latest == NO_EPOCH:
        high_watermark = after.local.high_watermark
        after.changes["fetcher"] = FetchState(FetchStatus.TRUNCATING, announced.leader, epoch, high_watermark)
    else:
        after.changes["fetcher"] = FetchState(FetchStatus.FETCHING, announced.leader, epoch, end_of(log), latest)
