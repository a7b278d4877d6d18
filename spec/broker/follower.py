"""Handlers of a follower: its next request, and its reaction to each answer.

One request is under way at a time. The answer comes with the request, because by then the follower may follow another
leader. Kafka: `AbstractFetcherThread`, `ReplicaFetcherThread`.
"""

from kspec.spec.broker.effects import (
    BatchesAppended,
    Effect,
    FollowerRequest,
    LogRestarted,
    LogStartMoved,
    LogTruncated,
    Persist,
    RebuildProducers,
)
from kspec.spec.broker.partition import Broker, Handled, Partition
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.fetcher import (
    FetchState,
    FetchStatus,
    OnError,
    PendingFetch,
    Reset,
    Truncation,
    after_records,
    after_reset,
    after_truncation,
    awake,
    backing_off,
    failed,
    is_fetching,
    on_fetch_error,
    reset_by_leader_end,
    reset_by_leader_start,
)
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import move_start, set_high_watermark
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.step import Send, Step
from kspec.spec.transactions.log.partition import PartitionTransactions, with_batches
from kspec.spec.transactions.log.reading import on_high_watermark
from kspec.spec.values import Epoch, EpochEndOffset, Error, MonotonicMs, Offset

# ---- asking


def fetch_or_truncate(broker: Broker, partition: Partition[LogT], now: MonotonicMs) -> Handled[LogT]:
    """The follower's next request to its leader; a log without any epoch is truncated without asking.

    **Kafka:** `AbstractFetcherThread.doWork`.
    """
    partition = _with_fetcher(partition, awake(partition.fetcher, now))
    fetcher = partition.fetcher
    if not is_fetching(fetcher) or fetcher.delayed_until > now:
        return Step(partition)
    if broker.protocol.needs_no_answer(fetcher, partition.local.log):
        return truncated(broker, partition, Truncation(fetcher.fetch_offset, FetchStatus.FETCHING))
    return Step(partition, (Send(fetcher.leader, next_request(broker, partition)),))


def next_request(broker: Broker, partition: Partition[LogT]) -> FollowerRequest:
    """The follower's next request. **Kafka:** `buildFetch`, `fetchTruncatingPartitions`, `fetchOffsetAndTruncate`."""
    fetcher, log = partition.fetcher, partition.local.log
    fetch = broker.protocol.names_epochs(fetcher)
    if fetcher.status == FetchStatus.TRUNCATING:
        return OffsetForLeaderEpochRequest(fetch.current_leader_epoch, log.latest_epoch)
    if fetcher.status == FetchStatus.FINDING_END:
        return ListOffsetsRequest(OffsetSpec.LATEST, fetch.current_leader_epoch)
    if fetcher.status == FetchStatus.FINDING_START:
        return ListOffsetsRequest(OffsetSpec.EARLIEST, fetch.current_leader_epoch)
    broker_epoch = broker.protocol.names_broker_epoch(broker.broker_epoch)
    return FetchRequest(broker.self_id, fetch, broker_epoch, log.start_offset)


def _with_fetcher(partition: Partition[LogT], fetcher: FetchState) -> Partition[LogT]:
    return partition if fetcher == partition.fetcher else partition._replace(fetcher=fetcher)


# ---- truncating


def truncated(broker: Broker, partition: Partition[LogT], truncation: Truncation) -> Handled[LogT]:
    """The follower with its log truncated as the truncation says. **Kafka:** `ReplicaFetcherThread.truncate`."""
    local = broker.protocol.truncate(partition.local, truncation.offset)
    fetcher = after_truncation(partition.fetcher, truncation, local.log)
    after = partition._replace(local=local, fetcher=fetcher)
    return Step(after, () if local == partition.local else _cut(local.log.end_offset))


def _cut(end_offset: Offset) -> tuple[Effect, ...]:
    return (Persist(LogTruncated(end_offset)), RebuildProducers())


def handle_offset_for_leader_epoch_response(
    broker: Broker, partition: Partition[LogT], asked: PendingFetch, response: OffsetForLeaderEpochResponse, now: MonotonicMs
) -> Handled[LogT]:
    """Truncate by the end of an epoch in the leader's log, as the answer to the request `asked` says.

    **Kafka:** `AbstractFetcherThread.truncateToEpochEndOffsets`, `maybeTruncateToEpochEndOffsets`.
    """
    if not broker.protocol.may_truncate_by(partition.fetcher, asked.leader_epoch):
        return Step(partition)
    if response.error != Error.NONE:
        return _after_error(broker, partition, response.error, asked.leader_epoch, now)
    return truncate_by(broker, partition, response.end)


def truncate_by(broker: Broker, partition: Partition[LogT], end: EpochEndOffset) -> Handled[LogT]:
    """Truncate by an epoch's end, from OffsetForLeaderEpoch or from a fetch; a removed partition stays as it is.

    **Kafka:** `AbstractFetcherThread.truncateOnFetchResponse`.
    """
    if not is_fetching(partition.fetcher):
        return Step(partition)
    return truncated(broker, partition, broker.protocol.truncation(partition.fetcher, partition.local.log, end))


# ---- fetching


def handle_fetch_response(
    broker: Broker, partition: Partition[LogT], asked: PendingFetch, response: FetchResponse, now: MonotonicMs
) -> Handled[LogT]:
    """Append the leader's records, or truncate as the leader says; take its high watermark and log start.

    **Kafka:** `AbstractFetcherThread.processFetchRequest`.
    """
    if not broker.protocol.takes_answer(partition.fetcher, asked.fetch_offset, asked.leader_epoch):
        return Step(partition)
    if response.error != Error.NONE:
        return _after_error(broker, partition, response.error, asked.leader_epoch, now)
    if is_diverging(response):
        local, hw_rule = partition.local, broker.protocol.high_watermark_when_diverging
        local = local._replace(high_watermark=hw_rule(local.log, local.high_watermark, response.high_watermark))
        return truncate_by(broker, partition._replace(local=local), response.diverging)
    return process_records(broker, partition, asked.leader_epoch, response)


def process_records(broker: Broker, partition: Partition[LogT], asked_in: Epoch, answer: FetchResponse) -> Handled[LogT]:
    """Append, update the producers, then take the high watermark within the log, then the log start.

    The follower drops the partition in three cases: its log does not end where its fetcher is, the leader sends records that
    it has already, or the leader's log start is above the follower's high watermark.

    **Kafka:** `ReplicaFetcherThread.processPartitionData`.
    """
    fetcher, before = partition.fetcher, partition.local
    records = broker.protocol.takes_records(answer.records, asked_in)
    appended = broker.protocol.appends(before, answer.base_offset, records)
    if fetcher.fetch_offset != before.log.end_offset or appended.error != Error.NONE:
        return Step(partition._replace(fetcher=failed(fetcher)))
    known = PartitionTransactions(guards=partition.transactions.guards) if appended.restarted else partition.transactions
    read = with_batches(broker.protocol.transactions, known, answer.base_offset, records)
    local = set_high_watermark(appended.local, answer.high_watermark)
    transactions = on_high_watermark(read, local.high_watermark)
    effects: tuple[Effect, ...] = (Persist(BatchesAppended(answer.base_offset, records)),) if records else ()
    if appended.restarted:
        effects = (Persist(LogRestarted(answer.base_offset)), *effects)
    moved = move_start(local, answer.log_start_offset)
    if moved.error != Error.NONE:
        return Step(partition._replace(local=local, fetcher=failed(fetcher), transactions=transactions), effects)
    if moved.local != local:
        left = broker.protocol.producers_after_deletion(transactions.producers, moved.local.log.start_offset)
        transactions = transactions._replace(producers=left)
        effects = (*effects, Persist(LogStartMoved(answer.log_start_offset)))
    last_epoch = broker.protocol.last_epoch(fetcher, records)
    fetching = after_records(fetcher, moved.local.log.end_offset, last_epoch)
    return Step(partition._replace(local=moved.local, fetcher=fetching, transactions=transactions), effects)


# ---- errors


def on_no_answer(broker: Broker, partition: Partition[LogT], now: MonotonicMs) -> Handled[LogT]:
    """Back off after a failed request to any leader, and after corrupt records.

    **Kafka:** `AbstractFetcherThread.processFetchRequest`, `handlePartitionsWithErrors`.
    """
    if not is_fetching(partition.fetcher):
        return Step(partition)
    return Step(_with_fetcher(partition, backing_off(partition.fetcher, MonotonicMs(now + broker.settings.back_off))))


def _after_error(
    broker: Broker, partition: Partition[LogT], error: Error, asked_in: Epoch, now: MonotonicMs
) -> Handled[LogT]:
    what = on_fetch_error(partition.fetcher, error, asked_in)
    if what == OnError.FAIL:
        return Step(partition._replace(fetcher=failed(partition.fetcher)))
    if what == OnError.BACK_OFF:
        return on_no_answer(broker, partition, now)
    return Step(partition._replace(fetcher=partition.fetcher._replace(status=FetchStatus.FINDING_END)))


# ---- an offset outside the leader's log


def handle_list_offsets_response(
    broker: Broker, partition: Partition[LogT], asked: PendingFetch, response: ListOffsetsResponse, now: MonotonicMs
) -> Handled[LogT]:
    """Go on from the end or the start of the leader's log, as asked. The answer counts only in the epoch of the request.

    **Kafka:** `AbstractFetcherThread.fetchOffsetAndTruncate`, which holds the lock of the partition meanwhile.
    """
    fetcher, log = partition.fetcher, partition.local.log
    finding = fetcher.status in (FetchStatus.FINDING_END, FetchStatus.FINDING_START)
    if not finding or fetcher.leader_epoch != asked.leader_epoch:
        return Step(partition)
    if response.error != Error.NONE:
        restarted = partition._replace(fetcher=fetcher._replace(status=FetchStatus.FETCHING))
        return _after_error(broker, restarted, response.error, asked.leader_epoch, now)
    by = reset_by_leader_end if fetcher.status == FetchStatus.FINDING_END else reset_by_leader_start
    return _reset(broker, partition, by(log, response.offset))


def _reset(broker: Broker, partition: Partition[LogT], reset: Reset) -> Handled[LogT]:
    local = partition.local
    effects: tuple[Effect, ...] = ()
    if reset.restarted:
        local = broker.protocol.restart(local, reset.offset)
        effects = (Persist(LogRestarted(reset.offset)), RebuildProducers())
    elif reset.offset < local.log.end_offset:
        local, effects = broker.protocol.truncate(local, reset.offset), _cut(reset.offset)
    return Step(partition._replace(local=local, fetcher=after_reset(partition.fetcher, reset, local.log)), effects)
