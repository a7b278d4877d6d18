"""Produce: each batch, and what is in it, is handed to `spec`; what `spec` takes is stored."""

from dataclasses import dataclass, field
from functools import partial
from struct import Struct
from typing import NamedTuple, TypeAlias

from kspec.impl.broker.calls import Aside, Call, Detain, Effect, InTurns, Resume, Steps, aside, ends_turn, in_one_go
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.pending import PendingProduce, answer_of, refusal, refusal_of_records
from kspec.impl.broker.replica import Replica
from kspec.impl.broker.verification import TransactionQuestion, Verdict
from kspec.impl.records.batch import HEADER_SIZE, LENGTH_END, BatchHeader, Buffer, header_at, is_intact, stamped
from kspec.impl.records.markers import batch_for_spec
from kspec.impl.records.pieces import MoreBytesError
from kspec.impl.records.reading import read_records, records_in
from kspec.impl.records.record import rewritten
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.batches import (
    FIRST_VERSION_WITH_ZSTD,
    LEAST_LENGTH,
    MAGIC,
    BatchLimits,
    Framing,
    ProduceTerms,
    ReceivedBatch,
    check_all_framings,
    check_batch_of_request,
    check_begin,
    check_framing,
    check_one_producer,
    check_received_batch,
    check_request_records,
    fails_as_a_whole,
    of_copies,
)
from kspec.spec.broker.clients.records import (
    RecordFault,
    check_records,
    check_stored_size,
    is_rewritten,
    is_skimmed,
    stored_codec,
    stored_times,
)
from kspec.spec.broker.effects import VerificationAnswer
from kspec.spec.broker.leader.verification import adds_partitions, begin_verification, is_asked, knows_abortable
from kspec.spec.log.found_records import FoundRecord
from kspec.spec.messages.produce import ACKS_ALL, NO_DEADLINE, ProduceResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.log.partition import NO_GUARD, error_after_verification
from kspec.spec.values import NO_PRODUCER_ID, Error, Instant, TimestampMs, TransactionalId

READ_AT_ONCE = 4 << 20
"""Bytes of a batch's records that are read before others are served: compressed, a batch may become far more."""

LENGTH_AT, MAGIC_AT, ATTRIBUTES_AT, FIXED = 8, 16, 22, 17
_LENGTH, _MAGIC = Struct(">i"), Struct(">b")
TRANSACTIONAL = 0x10
NO_RECORDS = memoryview(b"")
UNKNOWN = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)


class NamedPartition(NamedTuple):
    """A partition that a request names: its topic, its number, its records, how they begin."""

    topic: Message
    number: int
    records: memoryview
    framing: Framing


Copies: TypeAlias = dict[tuple[str | bytes, int], list[NamedPartition]]
"""The batches of a request for each partition that it names: by its topic's name or id, and its number."""


class CompleteBatch(NamedTuple):
    """A batch that is there as a whole: its header, and what `spec` asks of it."""

    header: BatchHeader
    batch: ReceivedBatch
    guard: int = NO_GUARD
    """The guard under which its transaction was verified."""


@dataclass(slots=True)
class RequestVerification:
    """The verification of a request's transaction: the guard or the error of each place, and what is asked."""

    guards: dict[int, int] = field(default_factory=dict)
    errors: dict[int, Error] = field(default_factory=dict)
    asked: dict[TopicPartition, int] = field(default_factory=dict)
    """The places of partitions about which the coordinator is asked."""
    undecided: dict[int, Error] = field(default_factory=dict)
    """Of places whose error stands for another one: that."""


PRODUCED_AT_ONCE = 40
"""Partitions of a request that names many to which is appended before others are served: each has files to be written."""


def produce(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Append the batches of a request. **Kafka:** `KafkaApis.handleProduceRequest`."""
    if sum([len(topic.partition_data) for topic in call.message.topic_data]) <= PRODUCED_AT_ONCE:
        return in_one_go(_produce(core, call, now))
    for topic in call.message.topic_data:  # the buffer that was received is used again before all is handled
        for data in topic.partition_data:
            if data.records is not None:
                data.__dict__["records"] = memoryview(bytes(data.records))
    return [InTurns(call, _produce(core, call, now))]


def _produce(core: BrokerCore, call: Call, now: Instant) -> Steps:
    """Look at the beginning of all batches, as one may fail the others, and then append them; some in each step."""
    request, by_id = call.message, call.version >= 13
    terms = ProduceTerms(call.version, request.acks, request.transactional_id is not None)
    copies: Copies = {}
    framings: list[Framing] = []
    is_odd = call.version < FIRST_VERSION_WITH_ZSTD
    for topic in request.topic_data:
        key = bytes(topic.topic_id) if by_id else topic.name
        for data in topic.partition_data:
            records = data.records if data.records is not None else NO_RECORDS
            framing = _framing(records)
            is_odd = is_odd or len(records) < HEADER_SIZE or framing.length != len(records) - LENGTH_END
            framings.append(framing)
            copies.setdefault((key, data.index), []).append(NamedPartition(topic, data.index, records, framing))
            if ends_turn(len(framings) - 1):
                yield []
    pending = PendingProduce(call, request.acks, len(copies), leader_of=core.leader_named, endpoints_of=core.endpoints_of)
    error = check_all_framings(framings, terms.has_transactional_id)
    if error == Error.NONE and is_odd:
        for number, one in enumerate(named for those in copies.values() for named in those):
            if _fails_all(core, terms, one, by_id):
                error = Error.UNKNOWN_SERVER_ERROR
                break
            if ends_turn(number):
                yield []
    words = _words(framings) if error == Error.CORRUPT_MESSAGE else None
    verification = RequestVerification()
    if error == Error.NONE and terms.has_transactional_id and any(framing.transactional for framing in framings):
        error, question = _begin_verification(core, call, terms, copies, verification, now)
        if question is not None:
            kept = _kept(copies)  # the buffer that was received is used again before the answer is there

            def go_on(verdict: Verdict, later: Instant) -> list[Effect]:
                _end_verification(terms, verification, verdict)
                steps = _append_all(core, pending, terms, kept, Error.NONE, None, verification, later)
                return [InTurns(call, steps), Resume(call)]

            return [Detain(call), *core.verifier.ask(question, go_on, now)]
    return (yield from _append_all(core, pending, terms, copies, error, words, verification, now))


def _begin_verification(
    core: BrokerCore, call: Call, terms: ProduceTerms, copies: Copies, verification: RequestVerification, now: Instant
) -> tuple[Error, TransactionQuestion | None]:
    """Find out which partitions the coordinator is to be asked about; an error is the whole request's.

    **Kafka:** `ReplicaManager.maybeStartTransactionVerificationForPartitions`.
    """
    adds = adds_partitions(terms.version)
    found: list[tuple[int, Replica, BatchHeader]] = []
    for place, named in enumerate(copies.values()):
        topic, index, _, framing = named[-1]
        replica, _ = core.find(topic.name, topic.topic_id, index, by_id=terms.version >= 13)
        received = _received(named[-1], intact=False)
        if replica is None or received is None or not framing.transactional:
            continue
        if received.header.producer_id > NO_PRODUCER_ID:
            found.append((place, replica, received.header))
    error = check_one_producer({(header.producer_id, header.producer_epoch) for _, _, header in found})
    if error != Error.NONE:
        return error, None
    for place, replica, header in found:
        answer = core.run(begin_verification, replica, batch_for_spec(header), adds, now=now).reply
        assert isinstance(answer, VerificationAnswer)
        if answer.error != Error.NONE:
            verification.errors[place] = answer.error
        elif is_asked(answer):
            verification.guards[place] = answer.guard
            verification.asked[replica.place] = place
    if not verification.asked:
        return Error.NONE, None
    header = found[0][2]
    whose = TransactionalId(call.message.transactional_id), header.producer_id, header.producer_epoch
    return Error.NONE, TransactionQuestion(*whose, tuple(verification.asked), adds)


def _end_verification(terms: ProduceTerms, verification: RequestVerification, verdict: Verdict) -> None:
    """The coordinator has answered: partitions that it has not confirmed have an error."""
    bumps, knows = adds_partitions(terms.version), knows_abortable(terms.version)
    for partition, place in verification.asked.items():
        told = verdict.get(partition, Error.NETWORK_EXCEPTION)
        error = error_after_verification(told, bumps, knows)
        if error != Error.NONE:
            verification.errors[place] = error
            if error == Error.NOT_ENOUGH_REPLICAS:
                verification.undecided[place] = told


def _kept(copies: Copies) -> Copies:
    """The partitions of a request with their own bytes."""
    return {
        key: [one._replace(topic=_own(one.topic), records=memoryview(bytes(one.records))) for one in named]
        for key, named in copies.items()
    }


def _own(topic: Message) -> Message:
    return Message(name=topic.name, topic_id=bytes(topic.topic_id))


def _append_all(
    core: BrokerCore,
    pending: PendingProduce,
    terms: ProduceTerms,
    copies: Copies,
    error: Error,
    words: str | None,
    verification: RequestVerification,
    now: Instant,
) -> Steps:
    """Append the batches of a request, some in each step. An `error` is that of all of them."""
    effects: list[Effect] = []
    for place, ((key, index), named) in enumerate(copies.items()):
        pending.topics.setdefault(key, []).append(place)
        if error != Error.NONE:
            effects += pending.take(place, refusal(index, error, words))
        else:
            effects += _produce_one(core, pending, place, named, terms, verification, now)
        if ends_turn(place, PRODUCED_AT_ONCE):
            yield effects
            effects = []
    if not copies:
        return pending.finish()
    # The batches are in the effects; while the answer waits, it holds no memory.
    pending.call.message = Message(timeout_ms=pending.call.message.timeout_ms)
    return effects


def _fails_all(core: BrokerCore, terms: ProduceTerms, one: NamedPartition, by_id: bool) -> bool:
    """Whether one of its batches is such that all of a request fails."""
    _, error = core.find(one.topic.name, one.topic.topic_id, one.number, by_id)
    received = None if error in UNKNOWN else _received(one, intact=False)
    return received is not None and fails_as_a_whole(terms.version, received.batch)


def _produce_one(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    named: list[NamedPartition],
    terms: ProduceTerms,
    verification: RequestVerification,
    now: Instant,
) -> list[Effect]:
    """Append what a request has for one partition. Of several batches for the same partition one is appended."""
    topic, index, _, _ = named[-1]
    replica, found = core.find(topic.name, topic.topic_id, index, by_id=terms.version >= 13)
    if found in UNKNOWN:
        return pending.take(place, refusal(index, found))
    received = [_received(one) for one in named]
    errors = [_error_of_request(one, it, terms) for one, it in zip(named, received, strict=True)]
    chosen, error = of_copies(errors)
    if error != Error.NONE:
        pending.refuse(place, refusal(index, error))
    one = None if chosen is None else received[chosen]
    if one is None:
        return pending.take(place, refusal(index, error))
    if place in verification.errors:
        return pending.take(place, _unverified(index, verification, place))
    name = topic.name if replica is None else replica.place.topic
    error = check_batch_of_request(terms, one.batch, core.is_internal(name))
    if error == Error.NONE and replica is None:
        error = found
    if error != Error.NONE or replica is None:
        return pending.take(place, refusal(index, error))
    one = one._replace(guard=verification.guards.get(place, NO_GUARD))
    return _append(core, pending, place, replica, one, named[chosen or 0], now)


def _unverified(index: int, verification: RequestVerification, place: int) -> Message:
    """The answer for a partition whose transaction the coordinator has not confirmed, in Kafka's words."""
    error, undecided = verification.errors[place], verification.undecided.get(place)
    words = "Partition was not added to the transaction" if error == Error.INVALID_TXN_STATE else None
    if undecided is not None:
        words = f"Unable to verify the partition has been added to the transaction. Underlying error: {undecided.name}"
    return refusal(index, error, words)


class BatchVerdict(NamedTuple):
    """A batch that has been looked into: an error, or its bytes and header as they are stored."""

    error: Error
    header: BatchHeader
    stored: Buffer
    timestamp: TimestampMs
    """The time by the broker's clock (ms) when it was looked into."""
    refused: tuple[tuple[FoundRecord, RecordFault], ...] = ()
    """The records for which it is refused, and why."""


def _append(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    named: NamedPartition,
    now: Instant,
) -> list[Effect]:
    """Append a batch, if what is in it is right and fits the topic. It is looked into aside if that takes long."""
    try:
        ready = _look_into(one, named.records, replica.limits, now.timestamp, READ_AT_ONCE)
    except MoreBytesError:
        kept = named._replace(  # without the buffer that was received, which is used again
            topic=_own(named.topic),
            records=memoryview(bytes(named.records)),
        )
        return [_aside(core, pending, place, replica, one, kept, pending.call.message.timeout_ms, now)]
    return _append_ready(core, pending, place, replica, one, ready, pending.call.message.timeout_ms, now)


def _aside(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    named: NamedPartition,
    timeout_ms: int,
    now: Instant,
) -> Aside:
    """Look into a batch in a thread, and append it after that.

    Meanwhile the partition may have been deleted, moved away, made anew, or given other settings: it is looked for again.
    """
    limits = replica.limits

    def append(ready: BatchVerdict, later: Instant) -> list[Effect]:
        again, error = core.find(named.topic.name, named.topic.topic_id, named.number, by_id=pending.call.version >= 13)
        if again is None:
            return pending.take(place, refusal(named.number, error))
        if again is not replica or again.limits != limits:
            return [_aside(core, pending, place, again, one, named, timeout_ms, later)]
        return _append_ready(core, pending, place, replica, one, ready, timeout_ms, later)

    return aside(pending.call, partial(_look_into, one, named.records, limits, now.timestamp, None), append)


def _look_into(
    one: CompleteBatch, records: memoryview, limits: BatchLimits, now: TimestampMs, most: int | None
) -> BatchVerdict:
    """Read a batch, and make it what is stored. Raises: `MoreBytesError`, if its records have more than `most` bytes."""
    header, batch = one.header, one.batch
    error = check_received_batch(batch, limits.max_size)
    if error != Error.NONE:
        return BatchVerdict(error, header, records, now)
    skims = is_skimmed(batch.codec, limits.stored_codec)
    found = read_records(records, header, skims, most)
    error, refused = check_records(batch, found, limits, now, partial(records_in, records, header, skims))
    if error != Error.NONE:
        return BatchVerdict(error, header, records, now, refused)
    times = stored_times(batch, found, limits, now)
    stored: Buffer
    if is_rewritten(batch, limits):
        stored = rewritten(records, stored_codec(batch.codec, limits.stored_codec), *times)
        header = header_at(stored)
    else:
        stored = stamped(records, header, *times)
    return BatchVerdict(check_stored_size(len(stored), is_rewritten(batch, limits), limits), header, stored, now)


def _append_ready(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    ready: BatchVerdict,
    timeout_ms: int,
    now: Instant,
) -> list[Effect]:
    """Append a batch that has been looked into, unless something was wrong with it."""
    header, limits = ready.header, replica.limits
    if ready.error != Error.NONE and core.takes_records(replica, pending.acks):
        if not ready.refused:
            return pending.take(place, answer_of(replica, ProduceResponse(ready.error)))
        message = refusal_of_records(replica, ready.error, one.batch, limits, ready.timestamp, ready.refused)
        return pending.take(place, message)
    if not limits.create_time:
        pending.append_times[place] = ready.timestamp
    deadline = now.after(timeout_ms) if pending.acks == ACKS_ALL else NO_DEADLINE
    before = replica.partition.local.log
    effects = core.append(replica, pending, place, header, ready.stored, now, pending.acks, deadline, one.guard)
    if header.producer_id > NO_PRODUCER_ID and replica.partition.local.log is before:
        pending.append_times[place] = replica.files.states.time_of(header)
    return effects


# ---- what has arrived


def _framing(records: memoryview) -> Framing:
    """The beginning of a partition's records."""
    count = len(records)
    length = _LENGTH.unpack_from(records, LENGTH_AT)[0] if count >= LENGTH_END else None
    if count < FIXED or length is None:
        return Framing(length, MAGIC, False, False)
    whole = count >= LENGTH_END + length
    transactional = whole and count > ATTRIBUTES_AT and bool(records[ATTRIBUTES_AT] & TRANSACTIONAL)
    return Framing(length, _MAGIC.unpack_from(records, MAGIC_AT)[0], whole, transactional)


def _error_of_request(one: NamedPartition, received: CompleteBatch | None, terms: ProduceTerms) -> Error:
    """Whether a request may carry these records."""
    length, magic, whole, _ = one.framing
    error = check_framing(length, magic, whole)
    return error if error != Error.NONE or received is None else check_request_records(terms.version, received.batch)


def _received(one: NamedPartition, intact: bool = True) -> CompleteBatch | None:
    """The batch, if it is there as a whole. `intact`: whether its checksum is to be looked at."""
    length, magic, whole, _ = one.framing
    if length is None or check_framing(length, magic, whole) != Error.NONE:
        return None
    records, size = one.records, LENGTH_END + length
    header = header_at(records if size >= HEADER_SIZE else bytes(records[:size]).ljust(HEADER_SIZE, b"\0"))
    more, behind = (False, Error.NONE) if len(records) == size else _behind(records[size:])
    batch = ReceivedBatch(
        size,
        magic,
        header.base_offset,
        header.last_offset_delta,
        header.record_count,
        header.compression,
        header.control,
        header.transactional,
        header.producer_id,
        header.base_sequence,
        header.max_timestamp,
        intact and is_intact(records, header),
        more,
        header.log_append_time,
        behind,
    )
    return CompleteBatch(header, batch)


def _behind(records: memoryview) -> tuple[bool, Error]:
    """Whether another whole batch lies behind the first, and the error of bytes that cannot be one."""
    length, magic, whole, _ = _framing(records)
    error = check_begin(length, magic)
    return whole and error == Error.NONE, error


def _words(framings: list[Framing]) -> str | None:
    """The defect of first bytes that are no batch, as Kafka says it."""
    for length, magic, _, _ in framings:
        if check_begin(length, magic) != Error.NONE:
            if length is not None and length < LEAST_LENGTH:
                return f"Record size {length} is less than the minimum record overhead ({LEAST_LENGTH})"
            return f"Invalid magic found in record: {magic}"
    return None
