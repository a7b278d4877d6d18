"""Fetch: what a follower or a consumer reads, at once or when there is enough of it."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from kspec.impl.broker.calls import (
    TURN_SIZE,
    Call,
    DelayedOperation,
    Effect,
    InTurns,
    Respond,
    Steps,
    StoredPartition,
    not_again,
    nothing,
)
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.fetch_sessions import ClientFetch, FetchedPartition, RequestedPartition
from kspec.impl.broker.replica import Replica
from kspec.impl.storage import FileSlice, InvalidSegmentError, StorageError
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.fetch_sessions import NO_SESSION
from kspec.spec.broker.clients.leader_hints import tells_leader_to_consumer
from kspec.spec.broker.clients.named_partitions import check_isolation_level
from kspec.spec.broker.leader.fetch import handle_fetch, read_partition, repeats
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.reading import (
    answers_at_once,
    counted_bytes,
    ends_waiting,
    gives_first_batch,
    has_enough,
    isolation_of,
    may_throttle,
    most_of_partition,
    room_after,
    room_in_answer,
    unreadable,
    visible_end,
)
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.transactions.log.partition import AbortedTransaction
from kspec.spec.transactions.log.reading import aborted_between
from kspec.spec.values import UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Error, Instant, Offset

LOG = logging.getLogger("kspec.broker")

READ_COMMITTED = 1
FIRST_BY_ID, FIRST_WITH_STATE = 13, 15


@dataclass(slots=True)
class ReadPartition:
    """One partition's part of an answer: what `spec` says, and the piece of a file to be sent."""

    fetched: FetchedPartition
    answer: FetchResponse
    piece: FileSlice | None = None
    size: int = 0
    """The bytes of records."""
    counted: int = 0
    """The bytes that count towards the fetch's minimum."""
    ends: bool = False
    """Whether the fetch does not wait, however little there is."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """The aborted transactions that a consumer has to know for the records."""

    @property
    def wanted(self) -> RequestedPartition:
        """The client's request."""
        return self.fetched.wanted

    @property
    def replica(self) -> Replica | None:
        """The partition, if this broker has it."""
        return self.fetched.replica


def fetch(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Read from the partitions that a request names, or that its session remembers and of which there is news.

    **Kafka:** `KafkaApis.handleFetchRequest`.
    """
    request = call.message
    error = check_isolation_level(request.isolation_level)
    if error != Error.NONE:
        return [_refused(call, error)]
    effects = [effect for one in core.sessions.disturbed_by(call) if not one.done for effect in one.complete(now)]
    error, begun = core.sessions.begin(call, _terms(core, call), now.monotonic)
    if error != Error.NONE:
        return [*effects, call.respond(error_code=error.value, session_id=0, responses=[])]
    if len(begun.asked) > TURN_SIZE:
        return [*effects, InTurns(call, _fetch_many(core, begun, now))]
    reads, noted = _read_all(core, call, begun.asked, now, first=True)
    effects += noted
    if _is_answered(core, begun, reads):
        return [*effects, answer(core, begun, reads, now)]
    _wait(core, begun, reads, now)
    return effects


def _is_answered(core: BrokerCore, fetch: ClientFetch, reads: list[ReadPartition]) -> bool:
    may_wait = fetch.call.message.max_wait_ms > 0 and bool(fetch.asked or fetch.session is not None)
    return not may_wait or _is_enough(core, fetch.call, reads)


def _fetch_many(core: BrokerCore, fetch: ClientFetch, now: Instant) -> Steps:
    """Read from many partitions, some in each step. If the fetch is to wait, those that have changed are looked at again."""
    call, _, asked = fetch
    reads: list[ReadPartition] = []
    seen: list[object] = []
    size = 0
    for start in range(0, len(asked), TURN_SIZE):
        some, effects = _read_all(core, call, asked[start : start + TURN_SIZE], now, first=True, size_before=size)
        size += sum([read.size for read in some])
        seen += [None if read.replica is None else read.replica.partition for read in some]
        reads += some
        yield effects
    if _is_answered(core, fetch, reads):
        return (yield from _answer_many(core, fetch, reads, now))
    waiting, effects = _wait(core, fetch, reads, now), []
    for read, partition in zip(reads, seen, strict=True):
        replica = read.replica
        if replica is not None and replica.partition is not partition and not waiting.done:
            effects += waiting.look_again(replica, now)
    return effects


def _read_and_answer_many(core: BrokerCore, fetch: ClientFetch, asked: list[FetchedPartition], now: Instant) -> Steps:
    reads: list[ReadPartition] = []
    size = 0
    for start in range(0, len(asked), TURN_SIZE):
        some, _ = _read_all(core, fetch.call, asked[start : start + TURN_SIZE], now, size_before=size)
        size += sum([read.size for read in some])
        reads += some
        yield []
    return (yield from _answer_many(core, fetch, reads, now))


def _terms(core: BrokerCore, call: Call) -> object:
    """The terms that the answers for all partitions of a session depend on: another of these, and all of them are looked at
    again.
    """
    message = call.message
    replica = message.replica_id if call.version < FIRST_WITH_STATE else message.replica_state.__dict__
    return call.version, replica, message.isolation_level, core.shutting_down, core.cluster.image.spec.brokers


def _is_enough(core: BrokerCore, call: Call, reads: list[ReadPartition]) -> bool:
    """Whether a fetch that may wait is answered at once."""
    if any(read.ends or answers_at_once(read.answer, UNLIMITED, True, False) for read in reads):
        return True
    return has_enough(sum([read.counted for read in reads]), call.message.min_bytes, _most_bytes(core, call))


UNLIMITED = 2**63
"""No number of records is enough: a broker counts bytes instead."""


def _wait(core: BrokerCore, fetch: ClientFetch, reads: list[ReadPartition], now: Instant) -> DelayedOperation:
    """Wait for more to read: `sizes` has how many bytes each partition has for it, as last seen."""
    call, session, asked = fetch
    sizes: dict[StoredPartition, int] = {
        read.replica: read.counted for read in reads if read.replica is not None and read.counted
    }
    places: dict[StoredPartition, FetchedPartition] = {}
    lists: list[dict[DelayedOperation, None]] = [] if session is None else [session.waiting]
    for one in asked if session is None else ():
        if one.replica is not None:
            places[one.replica] = one
            lists.append(one.replica.waiting)
    waiting = DelayedOperation(now.after(call.message.max_wait_ms), not_again, nothing)
    waiting.look_again = partial(_look_again, core, fetch, waiting, places, sizes)
    waiting.complete = partial(_complete, core, fetch, waiting)
    core.wait(waiting, lists)
    call.waiting = waiting
    return waiting


def _complete(core: BrokerCore, fetch: ClientFetch, waiting: DelayedOperation, now: Instant) -> list[Effect]:
    core.stop_waiting(waiting)
    those = fetch.partitions
    if len(those) > TURN_SIZE:
        return [InTurns(fetch.call, _read_and_answer_many(core, fetch, those, now))]
    reads, _ = _read_all(core, fetch.call, those, now)
    return [answer(core, fetch, reads, now)]


def _look_again(
    core: BrokerCore,
    fetch: ClientFetch,
    waiting: DelayedOperation,
    places: dict[StoredPartition, FetchedPartition],
    sizes: dict[StoredPartition, int],
    replica: StoredPartition,
    now: Instant,
) -> list[Effect]:
    """A partition has changed: answer if there is enough now."""
    call, session, _ = fetch
    fetched = places.get(replica) if session is None else session.at(replica)
    if fetched is None:
        return []
    read, _ = _read_one(core, call, fetched, fetched.wanted.max_bytes, now)
    sizes[replica] = read.counted
    enough = has_enough(sum(sizes.values()), call.message.min_bytes, _most_bytes(core, call))
    if enough or read.ends or answers_at_once(read.answer, UNLIMITED, True, False):
        return _complete(core, fetch, waiting, now)
    return []


def _most_bytes(core: BrokerCore, call: Call) -> int:
    return int(min(call.message.max_bytes, core.config.number("fetch.max.bytes")))


def _read_all(
    core: BrokerCore,
    call: Call,
    asked: Iterable[FetchedPartition],
    now: Instant,
    first: bool = False,
    size_before: int = 0,
) -> tuple[list[ReadPartition], list[Effect]]:
    """Read partition by partition, until the answer has as many bytes as it may; the first batch is given in any case.

    `first`: whether the leader takes note of how far a follower is, which has effects. `size_before`: the bytes that are in
    the answer already.
    """
    room = room_in_answer(_most_bytes(core, call), size_before)
    reads: list[ReadPartition] = []
    effects: list[Effect] = []
    for one in asked:
        limit = most_of_partition(room, one.wanted.max_bytes)
        read, noted = _read_one(core, call, one, limit, now, gives_first_batch(room), first)
        room = room_after(room, read.size)
        reads.append(read)
        effects += noted
    return reads, effects


def _read_one(
    core: BrokerCore,
    call: Call,
    asked: FetchedPartition,
    limit: int,
    now: Instant,
    at_least_one: bool = True,
    first: bool = False,
) -> tuple[ReadPartition, list[Effect]]:
    """Ask `spec` about a partition, and read what it allows."""
    wanted = asked.wanted
    replica, error = core.find(wanted.topic, wanted.topic_id, wanted.partition, by_id=call.version >= 13)
    asked.found_at(replica)
    if replica is None:
        return ReadPartition(asked, FetchResponse(error)), []
    request = asked.request
    if request is None:
        request = asked.request = _request(call, wanted)
    found, effects = _ask(core, replica, asked, request, now, first)
    if found.error != Error.NONE:
        return ReadPartition(asked, found), effects
    return _read_records(core, replica, asked, request, found, limit, now, at_least_one), effects


def _read_records(
    core: BrokerCore,
    replica: Replica,
    asked: FetchedPartition,
    request: FetchRequest,
    found: FetchResponse,
    limit: int,
    now: Instant,
    at_least_one: bool,
) -> ReadPartition:
    """Read the records that `spec` gives to a fetch, or none if they are held back."""
    local, offset = replica.partition.local, request.fetch.fetch_offset
    end = visible_end(isolation_of(request), local.log.end_offset, found.high_watermark, found.last_stable_offset)
    if not found.records:
        return ReadPartition(asked, found, ends=ends_waiting(offset, end, False))
    if _is_held_back(core, replica, request, now):
        return ReadPartition(asked, found._replace(records=()))
    try:
        piece = replica.files.read(found.base_offset, end, limit, at_least_one)
    except (OSError, StorageError) as error:
        LOG.error("%s-%d cannot be read at %d: %s", *replica.place, found.base_offset, error)
        return ReadPartition(asked, FetchResponse(unreadable(isinstance(error, InvalidSegmentError))))
    counted = counted_bytes(piece.length, limit, piece.next_offset, end)
    ends = ends_waiting(offset, end, not replica.files.in_same_segment(offset, end))
    read = ReadPartition(asked, found, piece, piece.length, counted, ends)
    if isolation_of(request) == Isolation.COMMITTED_TRANSACTIONS and piece.length:
        read.aborted = aborted_between(core.protocol.transactions, replica.files.aborted(offset), offset, piece.next_offset)
    return read


def _is_held_back(core: BrokerCore, replica: Replica, request: FetchRequest, now: Instant) -> bool:
    """Whether a follower gets no records for now, because its replica is throttled."""
    throttle = core.leader_throttle
    if request.replica == CONSUMER or not throttle.concerns(replica):
        return False
    return may_throttle(True, throttle.is_exceeded(now.monotonic), request.replica in replica.partition.isr.isr)


def _ask(
    core: BrokerCore, replica: Replica, asked: FetchedPartition, request: FetchRequest, now: Instant, first: bool
) -> tuple[FetchResponse, list[Effect]]:
    """The answer of `spec`. Only the first look at a follower's fetch tells the leader how far the follower is."""
    if request.replica == CONSUMER or not first:
        answered = core.ask(read_partition, replica, request)
        if request.replica == CONSUMER:
            asked.repeats = repeats(replica.partition, request, answered)
        return answered, []
    asked.broker, asked.repeats = core.broker(replica), True
    done = core.run(handle_fetch, replica, request, now.monotonic, now=now)
    reply = done.reply
    assert isinstance(reply, FetchResponse)
    asked.repeats = asked.repeats and repeats(replica.partition, request, reply)
    return reply, done.effects


def _request(call: Call, wanted: RequestedPartition) -> FetchRequest:
    message, version = call.message, call.version
    replica, epoch = message.replica_id, -1
    if version >= FIRST_WITH_STATE:
        state = message.replica_state
        replica, epoch = state.replica_id, state.replica_epoch
    return FetchRequest(
        BrokerId(replica) if replica >= 0 else CONSUMER,
        FetchPosition(Epoch(wanted.leader_epoch), Offset(wanted.offset), Epoch(wanted.last_epoch)),
        BrokerEpoch(epoch),
        Offset(wanted.start_offset),
        read_committed=message.isolation_level == READ_COMMITTED,
        has_client_metadata=version >= 11,
    )


# ---- the answer


def answer(core: BrokerCore, fetch: ClientFetch, reads: list[ReadPartition], now: Instant) -> Respond:
    """The answer with all partitions, or in a session with those of which there is news."""
    by_topic: dict[str | bytes, list[Message]] = {}
    leaders: set[BrokerId] = set()
    session_id = _put(core, fetch, reads, by_topic, leaders, now)
    return _answer(core, fetch.call, session_id, by_topic, leaders)


def _answer_many(core: BrokerCore, fetch: ClientFetch, reads: list[ReadPartition], now: Instant) -> Steps:
    by_topic: dict[str | bytes, list[Message]] = {}
    leaders: set[BrokerId] = set()
    session_id = NO_SESSION
    for start in range(0, len(reads), TURN_SIZE):
        session_id = _put(core, fetch, reads[start : start + TURN_SIZE], by_topic, leaders, now)
        yield []
    return [_answer(core, fetch.call, session_id, by_topic, leaders).long_if(True)]


def _put(
    core: BrokerCore,
    fetch: ClientFetch,
    reads: list[ReadPartition],
    by_topic: dict[str | bytes, list[Message]],
    leaders: set[BrokerId],
    now: Instant,
) -> int:
    """Put partitions into an answer, in a session those of which there is news; the id of the session."""
    call = fetch.call
    session_id, told = core.sessions.finish(fetch, reads)
    by_id = call.version >= 13
    throttled = 0
    for read in told:
        wanted = read.wanted
        message = _partition(call, read)
        by_topic.setdefault(wanted.topic_id if by_id else wanted.topic, []).append(message)
        if read.piece is not None and _is_throttled(core, call, read):
            throttled += read.size
        if tells_leader_to_consumer(read.answer.error, call.version):
            leaders.add(_tell_leader(core, wanted, by_id, message))
    core.leader_throttle.count(throttled, now.monotonic)
    return session_id


def _answer(
    core: BrokerCore, call: Call, session_id: int, by_topic: dict[str | bytes, list[Message]], leaders: set[BrokerId]
) -> Respond:
    by_id = call.version >= 13
    named = "topic_id" if by_id else "topic"
    responses = [Message(**{named: key, "partitions": partitions}) for key, partitions in by_topic.items()]
    answered = Message(session_id=session_id, responses=responses)
    if leaders:
        answered.__dict__["node_endpoints"] = core.endpoints_of(leaders)
    return Respond(call, answered)


def _is_throttled(core: BrokerCore, call: Call, read: ReadPartition) -> bool:
    """Whether what is read counts for the throttle: a follower's part of a throttled replica, in sync or not."""
    if read.replica is None or not core.leader_throttle.concerns(read.replica):
        return False
    return _request(call, read.wanted).replica != CONSUMER


def _tell_leader(core: BrokerCore, wanted: RequestedPartition, by_id: bool, message: Message) -> BrokerId:
    leader, epoch = core.leader_of(wanted.topic, wanted.topic_id, wanted.partition, by_id)
    message.__dict__["current_leader"] = Message(leader_id=leader, leader_epoch=epoch)
    return leader


def _partition(call: Call, read: ReadPartition) -> Message:
    found = read.answer
    message = Message(
        partition_index=read.wanted.partition,
        error_code=found.error.value,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable_offset,
        log_start_offset=found.log_start_offset,
        records=b"" if read.piece is None or not read.piece.length else read.piece,
    )
    values = message.__dict__
    if read.replica is not None:
        committed = found.error == Error.NONE and call.message.isolation_level == READ_COMMITTED
        aborted = [Message(producer_id=one.producer_id, first_offset=one.first_offset) for one in read.aborted]
        values["aborted_transactions"] = aborted if committed else None
    if is_diverging(found):
        values["diverging_epoch"] = Message(epoch=found.diverging.leader_epoch, end_offset=found.diverging.end_offset)
    return message


def _refused(call: Call, error: Error) -> Respond:
    """The same error for the request and, for clients that may not know that, for each of its partitions."""
    topics = [] if call.version >= FIRST_BY_ID else call.message.topics
    responses = [
        Message(
            topic=topic.topic,
            partitions=[
                Message(
                    partition_index=partition.partition,
                    error_code=error.value,
                    high_watermark=UNKNOWN_OFFSET,
                    records=b"",
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
    return call.respond(error_code=error.value, session_id=call.message.session_id, responses=responses)
