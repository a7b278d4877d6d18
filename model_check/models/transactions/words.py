"""The model's values as a reader of traces sees them. Importing this module makes `in_words` know them."""

from kspec.model_check.models.transactions.values import (
    OffsetsRequest,
    PartitionLog,
    Phase,
    Processor,
    SentMarker,
    TransactionalProducer,
    TransactionExchange,
    Wish,
    WriteRequest,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.coordinator.group import Group
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction
from kspec.spec.transactions.log.partition import LoggedBatch, LoggedMarker
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.transactions.records import TransactionRecord
from kspec.spec.values import NO_PRODUCER_ID, Error


@in_words.register
def _(state: TransactionalProducer) -> str:
    parts = [state.phase.value if state.failed is None else f"{state.phase.value} by {state.failed.name}"]
    if state.producer_id != NO_PRODUCER_ID:
        parts[0] += f" as {state.producer_id} in epoch {state.producer_epoch}"
    parts += [f"transaction {number} {wish.value}" for number, wish in enumerate(state.wishes, 1) if wish != Wish.NONE]
    if state.phase == Phase.OPEN and state.wishes and state.wishes[-1] == Wish.NONE:
        parts.append(f"transaction {len(state.wishes)} open")
    return ", ".join(parts)


@in_words.register
def _(process: Processor) -> str:
    member = f"member in generation {process.generation}" if process.generation else "in no group"
    at = "" if process.position is None else f", next input {process.position}"
    return f"{member}{at}{', offset in the transaction' if process.offered else ''}"


def _places(places: frozenset[TopicPartition]) -> str:
    return in_words(frozenset(place.partition for place in places))


def request_in_words(request: object) -> str:
    """A request of a producer as people read it."""
    match request:
        case InitProducerIdRequest():
            return "InitProducerId"
        case AddPartitionsToTxnRequest():
            return f"AddPartitionsToTxn of {_places(request.partitions)} in epoch {request.producer_epoch}"
        case EndTxnRequest():
            return f"EndTxn to {'commit' if request.committed else 'abort'} in epoch {request.producer_epoch}"
        case AddOffsetsToTxnRequest():
            return f"AddOffsetsToTxn in epoch {request.producer_epoch}"
        case OffsetsRequest(commit=commit):
            member = f", {commit.member_id} in generation {commit.generation}" if commit.member_id else ""
            return f"TxnOffsetCommit of {commit.offsets[0].offset} in epoch {commit.producer_epoch}{member}"
        case WriteRequest():
            batch = request.batch
            what = f"a record of transaction {request.record.transaction}"
            return f"{what} in epoch {batch.producer_epoch}, partition {request.partition}"
        case _:
            return in_words(request)


@in_words.register
def _(found: TransactionExchange) -> str:
    asked = request_in_words(found.request)
    if found.answer is not None:
        return f"{asked}, answered {_error(found.answer)}"
    if found.verified is not None:
        return f"{asked}, verified: {found.verified.name}"
    if found.guard:
        return f"{asked}, the coordinator is asked"
    return f"{asked}, {'waits' if found.is_taken else 'under way'}"


def _error(answer: object) -> str:
    match answer:
        case Error():
            return answer.name
        case _:
            partitions = getattr(answer, "partitions", None)
            error: Error = partitions[0][1] if partitions else getattr(answer, "error")  # noqa: B009
            return error.name


def _metadata(state: TransactionMetadata | TransactionRecord) -> str:
    partitions = f" with {_places(state.partitions)}" if state.partitions else ""
    return f"{state.state.value}{partitions}, {state.producer_id} in epoch {state.producer_epoch}"


@in_words.register
def _(known: CoordinatedTransaction) -> str:
    if known.metadata is None:
        return f"knows nothing, coordinator epoch {known.coordinator_epoch}"
    pending = "" if known.metadata.pending is None else f", {known.metadata.pending.value} to come"
    return f"{_metadata(known.metadata)}{pending}, coordinator epoch {known.coordinator_epoch}"


@in_words.register
def _(append: AppendTransaction) -> str:
    return _metadata(append.target)


@in_words.register
def _(record: TransactionRecord) -> str:
    return _metadata(record)


@in_words.register
def _(sent: SentMarker) -> str:
    marker = sent.marker
    end = "commit" if marker.committed else "abort"
    return f"{end} of {marker.producer_id} in epoch {marker.producer_epoch}, coordinator epoch {marker.coordinator_epoch}"


@in_words.register
def _(log: PartitionLog) -> str:
    records = iter(log.records)
    parts = []
    for entry in log.entries:
        match entry:
            case LoggedBatch():
                record = next(records)
                parts.append(f"{record.producer}.{record.transaction}(e{entry.batch.producer_epoch})")
            case LoggedMarker():
                parts.append(f"{'commit' if entry.committed else 'abort'}(e{entry.producer_epoch})")
    verified = [f"verifies {one.producer_id} as {one.guard}" for one in log.transactions.verifications]
    return ", ".join([" ".join(parts) or "empty", *verified])


@in_words.register
def _(group: Group) -> str:
    members = ", ".join(member.member_id for member in group.members)
    offsets = [f"offset {one.offset}" for one in group.offsets]
    pending = [f"offset {one.commit.offset} of {one.producer_id} open" for one in group.pending_offsets]
    return ", ".join([f"{members} in generation {group.generation}", *offsets, *pending])
