"""How a leader answers a fetch, and what it learns from a follower's fetch."""

from spec.broker.leader.isr import consider_joining
from spec.broker.partition import Broker, Handled, Partition, advance, complete_waiting, last_stable_offset_of, role_of
from spec.broker.rules.divergence import Divergence, is_diverging
from spec.broker.rules.fencing import check_assigned
from spec.broker.rules.followers import FollowerFetch, follower_of, with_follower
from spec.broker.rules.reading import is_follower, isolation_of, needs_leader, visible_end
from spec.log.algebra import LogT
from spec.log.local_log import read
from spec.messages.fetch import FetchRequest, FetchResponse
from spec.step import Reply, Step
from spec.values import BrokerId, Error


def handle_fetch(broker: Broker, partition: Partition[LogT], request: FetchRequest, now: int) -> Handled[LogT]:
    """Answer a fetch by a follower or a consumer; from a follower's fetch the leader learns the follower's log end.

    Errors: those of the release's fence, `NOT_LEADER_OR_FOLLOWER`, `UNKNOWN_LEADER_EPOCH`, `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `ReplicaManager.readFromLog`, `Partition.fetchRecords`. **Leaves out:** that a fetch may wait for more to
    read; the caller that makes it wait calls this again, with a `CONSUMER`'s rights, see `read_partition`.
    """
    answer = read_partition(broker, partition, request)
    counts = is_follower(request) and answer.error == Error.NONE and broker.protocol.counts_fetch(is_diverging(answer))
    if not counts:
        return Step(partition, (Reply(answer),))
    error = broker.protocol.check_replica_epoch(broker.brokers, request.replica, request.broker_epoch)
    if error != Error.NONE:
        return Step(partition, (Reply(FetchResponse(error)),))
    noted = note_fetch(broker, partition, request, now)
    after = after_noted_fetch(broker, partition, noted, request.replica, now)
    return Step(after.state, (*after.effects, Reply(answer)))


def read_partition(broker: Broker, partition: Partition[LogT], request: FetchRequest) -> FetchResponse:
    """The answer to a fetch, from the leader's state before the fetch changes it.

    **Kafka:** `Partition.readRecords`.
    """
    local, fetch = partition.local, request.fetch
    error = broker.protocol.serves(broker.self_id, role_of(partition), fetch.current_leader_epoch, needs_leader(request))
    if error == Error.NONE:
        error = check_assigned(partition.followers, request)
    parted = broker.protocol.divergence(local.log, fetch) if error == Error.NONE else Divergence(error)
    if parted.error != Error.NONE:
        return FetchResponse(parted.error)
    last_stable = last_stable_offset_of(partition)
    end = visible_end(isolation_of(request), local.log.end_offset, local.high_watermark, last_stable)
    answer = FetchResponse(
        Error.NONE, fetch.fetch_offset, (), local.high_watermark, local.log.start_offset, last_stable, parted.end
    )
    if is_diverging(answer):
        return answer
    found = read(local.log, fetch.fetch_offset, end, request.max_records)
    return answer._replace(records=found.records) if found.error == Error.NONE else FetchResponse(found.error)


def note_fetch(broker: Broker, partition: Partition[LogT], request: FetchRequest, now: int) -> Partition[LogT]:
    """The leader's state with the follower's log end from its fetch. **Kafka:** `Replica.updateFetchStateOrThrow`."""
    before = follower_of(partition.followers, request.replica)
    assert before is not None, f"replica {request.replica} is not assigned, so its fetch is not answered"
    offset, leader_end = request.fetch.fetch_offset, partition.local.log.end_offset
    fetch = FollowerFetch(now, offset, request.start_offset, leader_end, request.broker_epoch)
    noted = broker.protocol.notes_fetch(before, fetch)
    return partition._replace(followers=with_follower(partition.followers, request.replica, noted))


def after_noted_fetch(
    broker: Broker, before: Partition[LogT], partition: Partition[LogT], replica: BrokerId, now: int
) -> Handled[LogT]:
    """First the ISR, then the high watermark if the follower's end has changed, then the requests that wait for either.

    **Kafka:** `Partition.updateFollowerFetchState`.
    """
    joining = consider_joining(broker, partition, replica, now)
    old, new = follower_of(before.followers, replica), follower_of(partition.followers, replica)
    moved = old is not None and new is not None and old.end_offset != new.end_offset
    completed = complete_waiting(broker, advance(broker, joining.state, now) if moved else joining.state)
    return Step(completed.state, joining.effects + completed.effects)
