"""Fetching: what a follower asks, whom a leader serves, and what the follower makes of the answer."""

from typing import NamedTuple

from spec.broker.rules.fencing import check_leader_epoch
from spec.log.algebra import Log, LogT
from spec.log.batch import Batches
from spec.log.local_log import check_fetch_offset, follower_high_watermark
from spec.messages.fetch import FetchPosition
from spec.values import UNKNOWN_OFFSET, BrokerId, Error, LeaderAndIsr, Offset


class PublishedFetchResponse(NamedTuple):
    """The leader's answer: records from the fetch offset on, and the leader's high watermark (an offset)."""

    error: Error
    records: Batches
    high_watermark: Offset


def fetch_request(role: LeaderAndIsr, log: Log, end_offset: Offset) -> FetchPosition:
    """The fetch that a follower sends when its log ends at `end_offset`.

    Parameters: the follower's `role` and `log`; `end_offset` is at most the log's end, and less where the fetch was
    sent before the log grew to its present end.

    **Kafka:** `AbstractFetcherThread.buildFetch`, `ReplicaFetcherThread`.
    """
    return FetchPosition(role.leader_epoch, end_offset, log.epoch_at(Offset(end_offset - 1)))


def fetch_without_fencing(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve any follower that fetches: nothing tells which epoch it believes in, nor what its log ends with.

    **Kafka:** fetching before KIP-320, up to 2.0.
    """
    return Error.NONE


def fetch_fenced_by_last_epoch(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve a follower whose last record has the epoch that the leader has at the same offset.

    Errors: `LOG_TRUNCATION` if the follower must truncate first.

    **Kafka:** the first draft of KIP-320, never released; refuted in `Kip320FirstTry.tla`.
    """
    if request.fetch_offset == log.start_offset:
        return Error.NONE
    agrees = log.epoch_at(Offset(request.fetch_offset - 1)) == request.last_fetched_epoch
    return Error.NONE if agrees else Error.LOG_TRUNCATION


def fetch_fenced_by_leader_epoch(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve a follower that is in the leader's own epoch, neither behind nor ahead.

    Errors: as `check_leader_epoch`.

    **Kafka:** `Partition.getLocalLog` (KIP-320, since 2.1).
    """
    return check_leader_epoch(role, request.current_leader_epoch)


def handle_fetch(
    self_id: BrokerId,
    role: LeaderAndIsr,
    log: Log,
    high_watermark: Offset,
    request: FetchPosition,
    max_records: int,
    verdict: Error,
) -> PublishedFetchResponse:
    """A leader's answer to a follower's fetch.

    Parameters: the leader's id, role, log and high watermark (offset); the request; how many records fit into a
    response; the `verdict` of the protocol version's fencing rule.

    Errors, in this order: the fencing rule's; `NOT_LEADER_OR_FOLLOWER` if this replica does not believe that it leads;
    `OFFSET_OUT_OF_RANGE` if the fetch offset lies outside the log. A refusal carries neither records nor a watermark.

    **Kafka:** `Partition.fetchRecords`, `readRecords`. **Leaves out:** bytes and waiting time; a follower reads up to
    the log end.
    """
    if verdict != Error.NONE:
        return PublishedFetchResponse(verdict, (), UNKNOWN_OFFSET)
    if role.leader != self_id:
        return PublishedFetchResponse(Error.NOT_LEADER_OR_FOLLOWER, (), UNKNOWN_OFFSET)
    error = check_fetch_offset(log, request.fetch_offset)
    if error != Error.NONE:
        return PublishedFetchResponse(error, (), UNKNOWN_OFFSET)
    return PublishedFetchResponse(Error.NONE, log.read(request.fetch_offset, max_records), high_watermark)


def apply_fetch_response(log: LogT, response: PublishedFetchResponse) -> tuple[LogT, Offset]:
    """A follower's log and high watermark (offset) after a successful fetch.

    **Kafka:** `ReplicaFetcherThread.processPartitionData`.
    """
    appended = log.append(response.records)
    return appended, follower_high_watermark(appended, response.high_watermark)
