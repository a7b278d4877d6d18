"""Requests that any replica may answer: the end of an epoch, the start and the end of the log."""

from kspec.spec.broker.partition import Broker, Handled, Partition, last_stable_offset_of, role_of
from kspec.spec.broker.rules.epoch_lookup import answer_offset_for_leader_epoch
from kspec.spec.broker.rules.offsets import earliest_offset, latest_offset, offset_found
from kspec.spec.broker.rules.reading import visible_end
from kspec.spec.log.algebra import LogT
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import Error, MonotonicMs


def handle_offset_for_leader_epoch(
    broker: Broker, partition: Partition[LogT], request: OffsetForLeaderEpochRequest, now: MonotonicMs
) -> Handled[LogT]:
    """Answer with the end of an epoch in this replica's log. Errors: those of the release's fence.

    **Kafka:** `Partition.lastOffsetForLeaderEpoch`.
    """
    claimed = request.current_leader_epoch
    error = broker.protocol.serves(broker.self_id, role_of(partition), claimed, request.leader_only)
    end = broker.protocol.epoch_lookup(partition.local.log, request.leader_epoch)
    response: OffsetForLeaderEpochResponse = answer_offset_for_leader_epoch(error, end)
    return Step(partition, (Reply(response),))


def handle_list_offsets(
    broker: Broker,
    partition: Partition[LogT],
    request: ListOffsetsRequest,
    now: MonotonicMs,
    found: ListOffsetsResponse = NOT_FOUND,
) -> Handled[LogT]:
    """Answer with the log's start or its end for the sender, or the record that was `found` in it by its timestamp.

    Errors: those of the release's fence; `OFFSET_NOT_AVAILABLE`.

    **Kafka:** `Partition.fetchOffsetForTimestamp`.
    """
    error = broker.protocol.serves(broker.self_id, role_of(partition), request.current_leader_epoch, request.leader_only)
    if error != Error.NONE:
        return Step(partition, (Reply(ListOffsetsResponse(error)),))
    answer = broker.protocol.answers_offset(_listed(broker, partition, request, found))
    return Step(partition, (Reply(answer),))


def _listed(
    broker: Broker, partition: Partition[LogT], request: ListOffsetsRequest, found: ListOffsetsResponse
) -> ListOffsetsResponse:
    log, high_watermark = partition.local.log, partition.local.high_watermark
    last_stable = last_stable_offset_of(broker, partition)
    lag = broker.protocol.latest_offset_lags(request.isolation, high_watermark, partition.epoch_start)
    if request.wanted == OffsetSpec.EARLIEST:
        return earliest_offset(log)
    if request.wanted == OffsetSpec.LATEST:
        epoch = partition.leader_epoch
        return latest_offset(request.isolation, log.end_offset, high_watermark, last_stable, epoch, lag)
    return offset_found(found, visible_end(request.isolation, log.end_offset, high_watermark, last_stable), lag)
