"""Answers of a leader to a fetch, and its knowledge of a follower from the follower's fetch."""

from kspec.spec.broker.leader.isr import consider_joining
from kspec.spec.broker.partition import Broker, Handled, Partition, advance, complete_waiting, last_stable_offset_of, role_of
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.fencing import is_unassigned
from kspec.spec.broker.rules.followers import FollowerFetch, follower_of, with_follower
from kspec.spec.broker.rules.reading import is_follower, isolation_of, visible_end
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import read
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import BrokerId, Error, MonotonicMs


def handle_fetch(broker: Broker, partition: Partition[LogT], request: FetchRequest, now: MonotonicMs) -> Handled[LogT]:
    """Answer a fetch by a follower or a consumer; from a follower's fetch the leader learns the follower's log end.

    Errors: those of the release's fence, `NOT_LEADER_OR_FOLLOWER`, `UNKNOWN_LEADER_EPOCH`, `OFFSET_OUT_OF_RANGE`; up to 0.11
    `UNKNOWN_SERVER_ERROR`.

    **Kafka:** `ReplicaManager.readFromLog`, `Partition.fetchRecords`. **Leaves out:** that a fetch may wait for more to
    read; the caller that makes it wait calls this again, with a `CONSUMER`'s rights, see `read_partition`.
    """
    answer = read_partition(broker, partition, request)
    if not is_follower(request) or is_unassigned(partition.followers, request):
        return Step(partition, (Reply(answer),))
    if answer.error != Error.NONE:
        return Step(note_failed_fetch(broker, partition, request), (Reply(answer),))
    if not broker.protocol.counts_fetch(is_diverging(answer)):
        return Step(partition, (Reply(answer),))
    error = broker.protocol.check_replica_epoch(broker.brokers, request.replica, request.broker_epoch)
    if error != Error.NONE:
        return Step(partition, (Reply(FetchResponse(error)),))
    noted = note_fetch(broker, partition, request, now)
    after = after_noted_fetch(broker, partition, noted, request.replica, now)
    told = broker.protocol.answered_high_watermark(answer.high_watermark, after.state.local.high_watermark)
    return Step(after.state, (*after.effects, Reply(answer._replace(high_watermark=told))))


def read_partition(broker: Broker, partition: Partition[LogT], request: FetchRequest) -> FetchResponse:
    """The answer to a fetch, from the leader's state before the fetch changes it.

    **Kafka:** `Partition.readRecords`.
    """
    fetch = request.fetch
    leader_only = broker.protocol.needs_leader(request)
    error = broker.protocol.serves(broker.self_id, role_of(partition), fetch.current_leader_epoch, leader_only)
    if error != Error.NONE:
        return FetchResponse(error)
    answer = _read(broker, partition, request)
    return broker.protocol.answers_unassigned(answer, request) if is_unassigned(partition.followers, request) else answer


def _read(broker: Broker, partition: Partition[LogT], request: FetchRequest) -> FetchResponse:
    """The answer to a fetch that the fence lets pass. **Kafka:** `Partition.readRecords`."""
    local, fetch = partition.local, request.fetch
    parted = broker.protocol.divergence(local.log, fetch)
    if parted.error != Error.NONE:
        return FetchResponse(parted.error)
    last_stable = last_stable_offset_of(broker, partition)
    end = visible_end(isolation_of(request), local.log.end_offset, local.high_watermark, last_stable)
    answer = FetchResponse(
        Error.NONE, fetch.fetch_offset, (), local.high_watermark, local.log.start_offset, last_stable, parted.end
    )
    if is_diverging(answer):
        return answer
    found = read(local.log, fetch.fetch_offset, end, request.max_records)
    return answer._replace(records=found.records) if found.error == Error.NONE else FetchResponse(found.error)


def note_fetch(broker: Broker, partition: Partition[LogT], request: FetchRequest, now: MonotonicMs) -> Partition[LogT]:
    """The leader's state with the follower's log end from its fetch. **Kafka:** `Replica.updateFetchStateOrThrow`."""
    before = follower_of(partition.followers, request.replica)
    assert before is not None, f"replica {request.replica} is not assigned, so its fetch is not answered"
    offset, leader_end = request.fetch.fetch_offset, partition.local.log.end_offset
    fetch = FollowerFetch(now, offset, request.start_offset, leader_end, request.broker_epoch)
    noted = broker.protocol.notes_fetch(before, fetch)
    return partition._replace(followers=with_follower(partition.followers, request.replica, noted))


def note_failed_fetch(broker: Broker, partition: Partition[LogT], request: FetchRequest) -> Partition[LogT]:
    """The leader's state after it has refused a follower's fetch. **Kafka:** `ReplicaManager.updateFollowerFetchState`."""
    before = follower_of(partition.followers, request.replica)
    assert before is not None, f"replica {request.replica} is not assigned, so its fetch is not noted"
    noted = broker.protocol.notes_failed_fetch(before)
    if noted == before:
        return partition
    return partition._replace(followers=with_follower(partition.followers, request.replica, noted))


def after_noted_fetch(
    broker: Broker, before: Partition[LogT], partition: Partition[LogT], replica: BrokerId, now: MonotonicMs
) -> Handled[LogT]:
    """First the ISR, then the high watermark (since 2.4 only if the follower's end has changed), then the requests that wait
    for either.

    **Kafka:** `Partition.updateFollowerFetchState`.
    """
    joining = consider_joining(broker, partition, replica, now)
    old, new = follower_of(before.followers, replica), follower_of(partition.followers, replica)
    moved = old is not None and new is not None and old.end_offset != new.end_offset
    advances = broker.protocol.advances_after_fetch(moved)
    completed = complete_waiting(broker, advance(broker, joining.state, now) if advances else joining.state)
    return Step(completed.state, joining.effects + completed.effects)


# ---- fetches that need no look


def repeats(partition: Partition[LogT], request: FetchRequest, answer: FetchResponse) -> bool:
    """Whether the same fetch is answered the same, and teaches its leader the time alone, as long as nothing else changes.

    So it is if there is nothing to read, and if a follower is in the ISR, so that nobody asks to admit it.

    Parameters: the partition after the fetch was handled; the fetch; its answer. "Nothing else" is the partition, as far as
    `concerns_others` says, and what the leader knows of brokers and settings.

    **Kafka:** no counterpart: a session's fetch looks at all of its partitions, `IncrementalFetchContext.foreachPartition`.
    """
    said_all = answer.error == Error.NONE and not answer.records and not is_diverging(answer)
    return said_all and (not is_follower(request) or request.replica in partition.isr.isr)


def concerns_others(before: Partition[LogT], after: Partition[LogT]) -> bool:
    """Whether a change of a partition may change what is read from it, or what it asks: all but what was noted of fetches,
    of waiting producers, and of the producers of batches unless they begin or end a transaction.

    **Kafka:** no counterpart, as `repeats`.
    """
    known, noted = before.transactions, after.transactions
    if (known.ongoing, known.unreplicated) != (noted.ongoing, noted.unreplicated):
        return True
    same = after._replace(followers=before.followers, waiting=before.waiting, transactions=known)
    return same != before
