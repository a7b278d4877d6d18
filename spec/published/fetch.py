"""Fetching in one step: a follower's request, the leader's fence and answer, and the follower's log afterwards."""

from kspec.spec.broker.rules.fencing import check_leader_epoch, check_serves_unfenced
from kspec.spec.log.algebra import Log, LogT
from kspec.spec.log.local_log import LocalLog, append_in_order, read, set_high_watermark
from kspec.spec.messages.fetch import FetchPosition, FetchResponse
from kspec.spec.values import BrokerId, Error, LeaderAndIsr, Offset


def fetch_request(role: LeaderAndIsr, log: Log, end_offset: Offset) -> FetchPosition:
    """The fetch that a follower sends when its log ends at `end_offset`.

    Parameters: the follower's `role` and `log`; `end_offset` is at most the log's end, and less where the fetch was
    sent before the log grew to its present end.

    **Kafka:** `AbstractFetcherThread.buildFetch`, `ReplicaFetcherThread`.

    **Departs:** a broker's fetcher keeps its offset and the last fetched epoch in a state of its own; here both follow
    from the log. The fetch names both epochs in every version; Kafka's fetch does so only since 2.8. The rules of an earlier
    version ignore them.
    """
    return FetchPosition(role.leader_epoch, end_offset, log.epoch_at(Offset(end_offset - 1)))


def fetch_without_fencing(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve every follower that fetches: its epoch and the end of its log are not checked.

    **Kafka:** fetching before KIP-320, up to 2.0.

    **Departs:** only in the order of checks. A broker's fence includes the check of its own role (`check_serves_unfenced`);
    here `answer_fetch` has that check.
    """
    return Error.NONE


def fetch_fenced_by_last_epoch(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve a follower whose last record has the epoch that the leader has at the same offset.

    Errors: `LOG_TRUNCATION` if the follower must truncate first.

    **Kafka:** the first draft of KIP-320, never released; refuted in `Kip320FirstTry.tla`.

    **Departs:** the released rule that checks the last epoch is KIP-595's (`diverges`). It finds where the epoch ends in the
    leader's log, and answers with that end; it does not refuse.
    """
    if request.fetch_offset == log.start_offset:
        return Error.NONE
    agrees = log.epoch_at(Offset(request.fetch_offset - 1)) == request.last_fetched_epoch
    return Error.NONE if agrees else Error.LOG_TRUNCATION


def fetch_fenced_by_leader_epoch(role: LeaderAndIsr, log: Log, request: FetchPosition) -> Error:
    """Serve a follower that is in the leader's own epoch, neither behind nor ahead.

    Errors: as `check_leader_epoch`.

    **Kafka:** `Partition.getLocalLog` (KIP-320, since 2.1).

    **Departs:** as `fetch_without_fencing`; a broker's fence is `check_serves`.
    """
    return check_leader_epoch(role, request.current_leader_epoch)


def answer_fetch(
    self_id: BrokerId,
    role: LeaderAndIsr,
    log: Log,
    high_watermark: Offset,
    request: FetchPosition,
    max_records: int,
    verdict: Error,
) -> FetchResponse:
    """A leader's answer to a follower's fetch.

    Parameters: the leader's id, role, log and high watermark (offset); the request; how many records fit into a
    response; the `verdict` of the version's fencing rule.

    Errors, in this order: the fencing rule's; `NOT_LEADER_OR_FOLLOWER` if this replica does not believe that it leads;
    `OFFSET_OUT_OF_RANGE` if the fetch offset lies outside the log. A refusal has no other content.

    **Kafka:** `Partition.fetchRecords`, `readRecords`. **Leaves out:** bytes and waiting time, consumers.

    **Departs:** a broker also records the fetch, and may then move its high watermark and ask for another ISR; here these
    are separate steps. This rule does not check whether the follower is assigned, nor where the logs diverge.
    """
    error = verdict
    if error == Error.NONE:
        error = check_serves_unfenced(self_id, role, request.current_leader_epoch, leader_only=True)
    if error != Error.NONE:
        return FetchResponse(error)
    found = read(log, request.fetch_offset, log.end_offset, max_records)
    if found.error != Error.NONE:
        return FetchResponse(found.error)
    return FetchResponse(
        Error.NONE, request.fetch_offset, found.records, high_watermark, log.start_offset, last_stable_offset=high_watermark
    )


def apply_fetch_response(log: LogT, response: FetchResponse) -> LocalLog[LogT]:
    """A follower's log and high watermark (offset) after a successful fetch from its end.

    **Kafka:** `ReplicaFetcherThread.processPartitionData`.

    **Departs:** a broker's answer may be late or of another epoch, and its records may be refused; here request and answer
    are one step. The leader's log start is ignored, because nothing is deleted.
    """
    appended = append_in_order(LocalLog(log), response.base_offset, response.records)
    return set_high_watermark(appended.local, response.high_watermark)
