"""Fetch: what a follower or a consumer reads, at once or when there is enough of it."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from impl.broker.calls import Call, Effect, Respond
from impl.broker.core import Core
from impl.broker.fetch_sessions import Wanted
from impl.broker.replica import Replica, Waiting, not_again
from impl.broker.timers import nothing
from impl.storage import FileSlice
from impl.wire.values import Message
from spec.broker.clients.named_partitions import check_isolation_level
from spec.broker.leader.fetch import handle_fetch, read_partition
from spec.broker.rules.divergence import is_diverging
from spec.broker.rules.reading import answers_at_once, isolation_of, may_throttle, visible_end
from spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse
from spec.values import UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Error, Offset

READ_COMMITTED = 1
FIRST_WITH_LEADER_HINT = 16


@dataclass(slots=True)
class ReadPartition:
    """One partition's part of an answer: what `spec` says, and the piece of a file to be sent."""

    wanted: Wanted
    replica: Replica | None
    answer: FetchResponse
    piece: FileSlice | None = None
    size: int = 0
    """How many bytes of records there are."""


def fetch(core: Core, call: Call, now: int) -> list[Effect]:
    """Read from the partitions that a request names, or that its session remembers.

    **Kafka:** `KafkaApis.handleFetchRequest`.
    """
    request = call.message
    error = check_isolation_level(request.isolation_level)
    if error != Error.NONE:
        return [_refused(call, error)]
    error, wanted = core.sessions.begin(call, now)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, session_id=0, responses=[])]
    asked = [Asked(one, _request(call, one)) for one in wanted]
    before = core.begin_collecting()
    reads = _read_all(core, call, asked, now, first=True)
    effects = core.collected(before)
    may_wait = request.max_wait_ms > 0 and bool(wanted)
    if not may_wait or _is_enough(core, call, reads):
        return [*effects, answer(core, call, reads, now)]
    _wait(core, call, asked, reads, now)
    return effects


class Asked(NamedTuple):
    """One partition of a fetch: as the client named it, and in the words of `spec`."""

    wanted: Wanted
    request: FetchRequest


def _is_enough(core: Core, call: Call, reads: list[ReadPartition]) -> bool:
    """Whether a fetch that may wait is answered at once."""
    size = 0
    for read in reads:
        if answers_at_once(read.answer, UNLIMITED, True, False):
            return True
        size += read.size
    return bool(size >= min(call.message.min_bytes, _most_bytes(core, call)))


UNLIMITED = 2**63
"""No number of records is enough: a broker counts bytes instead."""


def _wait(core: Core, call: Call, asked: list[Asked], reads: list[ReadPartition], now: int) -> None:
    """Wait for more to read: `sizes` has how many bytes each partition has for it, as last seen."""
    sizes = {read.replica: read.size for read in reads if read.replica is not None}
    places = {read.replica: one for read, one in zip(reads, asked, strict=True) if read.replica is not None}

    waiting = Waiting(list(sizes), now + call.message.max_wait_ms, not_again, nothing)
    waiting.look_again = partial(_look_again, core, call, waiting, asked, places, sizes)
    waiting.complete = partial(_complete, core, call, waiting, asked)
    core.wait(waiting)
    call.waiting = waiting


def _complete(core: Core, call: Call, waiting: Waiting, asked: list[Asked], now: int) -> list[Effect]:
    core.stop_waiting(waiting)
    return [answer(core, call, _read_all(core, call, asked, now), now)]


def _look_again(
    core: Core,
    call: Call,
    waiting: Waiting,
    asked: list[Asked],
    places: dict[Replica, Asked],
    sizes: dict[Replica, int],
    replica: Replica,
    now: int,
) -> list[Effect]:
    """A partition has changed: answer if there is enough now."""
    read = _read_one(core, call, places[replica], places[replica].wanted.max_bytes, now)
    sizes[replica] = read.size
    enough = sum(sizes.values()) >= call.message.min_bytes
    if enough or answers_at_once(read.answer, UNLIMITED, True, False):
        return _complete(core, call, waiting, asked, now)
    return []


def _most_bytes(core: Core, call: Call) -> int:
    return int(min(call.message.max_bytes, core.config["fetch.max.bytes"]))


def _read_all(core: Core, call: Call, asked: list[Asked], now: int, first: bool = False) -> list[ReadPartition]:
    """Read partition by partition, until the answer has as many bytes as it may; the first batch is given in any case."""
    left = _most_bytes(core, call)
    reads: list[ReadPartition] = []
    found_any = False
    for one in asked:
        read = _read_one(core, call, one, min(left, one.wanted.max_bytes), now, not found_any, first)
        size = read.size
        found_any = found_any or size > 0
        left = max(0, left - size)
        reads.append(read)
    return reads


def _read_one(
    core: Core, call: Call, asked: Asked, limit: int, now: int, at_least_one: bool = True, first: bool = False
) -> ReadPartition:
    wanted, request = asked
    replica, error = core.find(wanted.topic, wanted.topic_id, wanted.partition, by_id=call.version >= 13)
    if replica is None:
        return ReadPartition(wanted, None, FetchResponse(error))
    found = _ask(core, replica, request, now, first)
    if found.error != Error.NONE or not found.records:
        return ReadPartition(wanted, replica, found)
    if _is_held_back(core, replica, request, now):
        return ReadPartition(wanted, replica, found._replace(records=()))
    local = replica.partition.local
    end = visible_end(isolation_of(request), local.log.end_offset, found.high_watermark, found.last_stable_offset)
    piece = replica.files.read(found.base_offset, end, limit, at_least_one)
    return ReadPartition(wanted, replica, found, piece, piece.length)


def _is_held_back(core: Core, replica: Replica, request: FetchRequest, now: int) -> bool:
    """Whether a follower gets no records for now, because its replica is throttled."""
    throttle = core.leader_throttle
    if request.replica == CONSUMER or not throttle.concerns(replica):
        return False
    return may_throttle(True, throttle.is_exceeded(now), request.replica in replica.partition.isr.isr)


def _ask(core: Core, replica: Replica, request: FetchRequest, now: int, first: bool) -> FetchResponse:
    """What `spec` answers. Only the first look at a follower's fetch tells the leader how far the follower is."""
    if request.replica == CONSUMER or not first:
        answered: FetchResponse = core.ask(read_partition, replica, request)
        return answered
    done = core.run(handle_fetch, replica, request, now, now=now)
    core.add(done.effects)
    reply: FetchResponse = done.reply
    return reply


def _request(call: Call, wanted: Wanted) -> FetchRequest:
    message, version = call.message, call.version
    replica, epoch = message.replica_id, -1
    if version >= 15:
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


def answer(core: Core, call: Call, reads: list[ReadPartition], now: int) -> Respond:
    """The answer with all partitions, or in a session with those of which there is news."""
    session_id, told = core.sessions.finish(call, reads)
    by_id = call.version >= 13
    by_topic: dict[Any, list[Message]] = {}
    throttled = 0
    misled: list[Replica | None] = []
    for read in told:
        wanted = read.wanted
        by_topic.setdefault(wanted.topic_id if by_id else wanted.topic, []).append(_partition(call, read))
        if read.piece is not None and _is_throttled(core, call, read):
            throttled += read.size
        if _wrong_leader(read):
            misled.append(read.replica)
    core.leader_throttle.count(throttled, now)
    named = "topic_id" if by_id else "topic"
    responses = [Message(**{named: key, "partitions": partitions}) for key, partitions in by_topic.items()]
    if call.version < FIRST_WITH_LEADER_HINT:
        return Respond(call, Message(session_id=session_id, responses=responses))
    endpoints = core.leaders_elsewhere(misled) if misled else []
    return Respond(call, Message(session_id=session_id, responses=responses, node_endpoints=endpoints))


def _is_throttled(core: Core, call: Call, read: ReadPartition) -> bool:
    """Whether what is read counts for the throttle: a follower's part of a throttled replica, in sync or not."""
    if read.replica is None or not core.leader_throttle.concerns(read.replica):
        return False
    return _request(call, read.wanted).replica != CONSUMER


def _wrong_leader(read: ReadPartition) -> bool:
    return read.answer.error in (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


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
        values["aborted_transactions"] = [] if committed else None
    if is_diverging(found):
        values["diverging_epoch"] = Message(epoch=found.diverging.leader_epoch, end_offset=found.diverging.end_offset)
    if call.version >= FIRST_WITH_LEADER_HINT and _wrong_leader(read) and read.replica is not None:
        partition = read.replica.partition
        values["current_leader"] = Message(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return message


def _refused(call: Call, error: Error) -> Respond:
    """The same error for the request and for each of its partitions."""
    named = "topic_id" if call.version >= 13 else "topic"
    responses = [
        Message(
            **{named: getattr(topic, named)},
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
        for topic in call.message.topics
    ]
    return call.respond(error_code=error.value, responses=responses)
