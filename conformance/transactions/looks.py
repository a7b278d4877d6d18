"""Looks at transactions: the part of them that a broker shows, and the same as a state of the model says it."""

from typing import NamedTuple

from kspec.conformance.kafka.codec import batches_in
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.transactions.prompt import slots_of
from kspec.conformance.transactions.wire import RunNames, value_of
from kspec.impl.records.markers import marker_of
from kspec.impl.wire.values import Message
from kspec.model_check.core.model import Model, State
from kspec.model_check.models.processes import INPUT
from kspec.model_check.models.transactions.board import ID, protocol_for
from kspec.model_check.models.transactions.properties import readable
from kspec.model_check.models.transactions.values import PartitionLog
from kspec.spec.coordinator.group import Group
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.transactions.adding import CONSUMER_OFFSETS
from kspec.spec.transactions.effects import CoordinatedTransaction
from kspec.spec.transactions.log.partition import AbortedTransaction, LoggedBatch, LoggedMarker, TransactionalEntry
from kspec.spec.transactions.log.reading import committed_batches, last_stable_offset
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import NO_PRODUCER_ID, NO_SEQUENCE, Epoch, Error, Offset, ProducerEpoch

FETCH_VERSION, OFFSETS_VERSION = 12, 8
MOST_BYTES = 1 << 20
READ_COMMITTED = 1
UNKNOWN = "no such id"


class PartitionLook(NamedTuple):
    """A partition: the records and markers of its log, how far it is stable, and what who reads what is committed gets."""

    entries: tuple[str, ...]
    stable: int
    committed: tuple[str, ...]

    def in_words(self) -> str:
        """As people read it."""
        log = " ".join(self.entries) or "empty"
        return f"{log}, stable up to {self.stable}, read as committed: {' '.join(self.committed) or 'nothing'}"


class TransactionsLook(NamedTuple):
    """A look at a broker: the transactional id at its coordinator, the partitions, and the committed offset of the group.

    `producer_id`: the producer id that the coordinator has by the model.
    """

    coordinator: str
    producer_id: int
    partitions: tuple[PartitionLook, ...]
    offset: str | None = None

    def differences(self, found: "TransactionsLook") -> list[str]:
        """The parts in which a broker differs: expected, and observed."""
        pairs = [("coordinator", self.coordinator, found.coordinator), ("offset of the group", self.offset, found.offset)]
        for number, (own, other) in enumerate(zip(self.partitions, found.partitions, strict=True)):
            pairs.append((f"partition {number}", own.in_words(), other.in_words()))
        return [f"{part}: expected {own}, observed {other}" for part, own, other in pairs if own != other]

    def in_words(self) -> str:
        """As people read it."""
        partitions = [f"{number}: {one.in_words()}" for number, one in enumerate(self.partitions)]
        return "; ".join([self.coordinator, *partitions, *([] if self.offset is None else [f"offset {self.offset}"])])


def transaction_in_words(state: str, producer_id: int, epoch: int, partitions: frozenset[str]) -> str:
    """A transactional id as both sides say it."""
    return f"{state}, {producer_id} in epoch {epoch}{' with ' + ' '.join(sorted(partitions)) if partitions else ''}"


# ---- of the model


def expected(model: Model, state: State) -> TransactionsLook:
    """The look that a state of the model gives."""
    protocol = protocol_for(model.parameters)
    (coordinator,) = slots_of(model, "coordinator")
    known: CoordinatedTransaction = state[coordinator.position]
    found, producer_id = UNKNOWN, NO_PRODUCER_ID
    if known.metadata is not None:
        own = known.metadata
        producer_id = own.producer_id
        places = frozenset("offsets" if one.topic == CONSUMER_OFFSETS else str(one.partition) for one in own.partitions)
        found = transaction_in_words(own.state.value, own.producer_id, own.producer_epoch, places)
    groups = slots_of(model, "group")
    count = len(slots_of(model, "partition")) - len(groups)
    logs: list[PartitionLog] = [state[slot.position] for slot in slots_of(model, "partition")[:count]]
    return TransactionsLook(
        found,
        producer_id,
        tuple(_expected_partition(protocol, log) for log in logs),
        _expected_offset(state[groups[0].position]) if groups else None,
    )


def _expected_partition(protocol: TransactionProtocol, log: PartitionLog) -> PartitionLook:
    values = iter([value_of(record).decode() for record in log.records])
    entries = tuple(_entry(one, next(values) if isinstance(one, LoggedBatch) else "") for one in log.entries)
    stable = last_stable_offset(protocol, log.transactions, Offset(0), log.end)
    return PartitionLook(entries, stable, tuple(value_of(record).decode() for record in readable(protocol, log)))


def _entry(entry: TransactionalEntry, value: str) -> str:
    match entry:
        case LoggedBatch(batch):
            return f"{value}({batch.producer_id}.{batch.producer_epoch}.{batch.first_sequence})"
        case LoggedMarker():
            return f"{'commit' if entry.committed else 'abort'}({entry.producer_id}.{entry.producer_epoch})"


def _expected_offset(group: Group) -> str:
    if group.pending_offsets:
        return "not stable"
    return str(group.offsets[0].offset) if group.offsets else "none"


# ---- of a broker


async def observed(connection: NodeConnection, names: RunNames, own: TransactionsLook) -> TransactionsLook:
    """The look that a broker gives, where this is expected."""
    coordinator = await _observed_id(connection, names, own.producer_id)
    found = [await look_at_partition(connection, names, number) for number in range(len(own.partitions))]
    offset = None if own.offset is None else await _observed_offset(connection, names)
    return TransactionsLook(coordinator, own.producer_id, tuple(found), offset)


async def _observed_id(connection: NodeConnection, names: RunNames, expected_id: int) -> str:
    asked = Message(transactional_ids=[names.transactional_id(ID)])
    (one,) = (await connection.ask("DescribeTransactions", 0, asked)).transaction_states
    if Error(one.error_code) == Error.TRANSACTIONAL_ID_NOT_FOUND:
        return UNKNOWN
    if one.error_code:
        return Error(one.error_code).name
    names.learn(expected_id, one.producer_id)
    places = frozenset(
        "offsets" if topic.topic == CONSUMER_OFFSETS else str(partition)
        for topic in one.topics
        for partition in topic.partitions
    )
    return transaction_in_words(one.transaction_state, names.in_model(one.producer_id), one.producer_epoch, places)


async def _fetched(connection: NodeConnection, names: RunNames, number: int, isolation: int) -> Message:
    partition = Message(partition=number, fetch_offset=0, partition_max_bytes=MOST_BYTES)
    topics = [Message(topic=names.topic, partitions=[partition])]
    asked = Message(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=MOST_BYTES, isolation_level=isolation, topics=topics
    )
    answer = await connection.ask("Fetch", FETCH_VERSION, asked)
    found: Message = answer.responses[0].partitions[0]
    return found


async def look_at_partition(connection: NodeConnection, names: RunNames, number: int) -> PartitionLook:
    """A look at a partition of the run's topic."""
    everything = await _fetched(connection, names, number, 0)
    stable = await _fetched(connection, names, number, READ_COMMITTED)
    if everything.error_code or stable.error_code:
        return PartitionLook((Error(everything.error_code or stable.error_code).name,), -1, ())
    entries = _entries(bytes(everything.records or b""), names)
    below = _entries(bytes(stable.records or b""), names)
    last = Offset(-1)
    aborted = tuple(
        AbortedTransaction(names.in_model(one.producer_id), Offset(one.first_offset), last, last)
        for one in stable.aborted_transactions or ()
    )
    values = {entry: value for entry, value in below if value}
    committed = committed_batches(tuple(entry for entry, _ in below), aborted)
    return PartitionLook(
        tuple(_entry(entry, value) for entry, value in entries),
        stable.last_stable_offset,
        tuple(values[one] for one in committed),
    )


def _entries(data: bytes, names: RunNames) -> list[tuple[TransactionalEntry, str]]:
    """The batches of a log, and the values of records."""
    found: list[tuple[TransactionalEntry, str]] = []
    for header, records in batches_in(data):
        producer_id, epoch = names.in_model(header.producer_id), ProducerEpoch(header.producer_epoch)
        offset = Offset(header.base_offset)
        marker = marker_of(header, data[header.position : header.position + header.size])
        if marker is not None:
            found.append((LoggedMarker(producer_id, epoch, Epoch(marker.coordinator_epoch), marker.committed, offset), ""))
            continue
        sequence = header.base_sequence if header.transactional else NO_SEQUENCE
        batch = ProducerBatch(producer_id, epoch, sequence, len(records), offset)
        value = b" ".join(record.value or b"" for record in records).decode("utf-8", "replace")
        found.append((LoggedBatch(batch, header.transactional), value))
    return found


async def _observed_offset(connection: NodeConnection, names: RunNames) -> str:
    """The committed offset, for who waits for open transactions."""
    topics = [Message(name=INPUT, partition_indexes=[0])]
    asked = Message(groups=[Message(group_id=names.group, topics=topics)], require_stable=True)
    answer = await connection.ask("OffsetFetch", OFFSETS_VERSION, asked)
    (group,) = answer.groups
    if group.error_code:
        return Error(group.error_code).name
    (found,) = group.topics[0].partitions
    if Error(found.error_code) == Error.UNSTABLE_OFFSET_COMMIT:
        return "not stable"
    if found.error_code:
        return Error(found.error_code).name
    return str(found.committed_offset) if found.committed_offset >= 0 else "none"
